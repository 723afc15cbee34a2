"""The exercise of notebook 14 that is a crash test in small: what a sink guarantees, told from its requests.

The judge executes the requests by itself, on lists. That a real SQLite gives the same after real kills is for the tests
(`tests/exercises/test_kills.py`). This module must not start a process.
"""

from collections.abc import Sequence
from typing import Literal

from labkit.core.judge import Guarantee
from labkit.teach.exercises.asking import Asker, Unusable, shown
from labkit.teach.exercises.contract import Answer, Finding, Variant
from labkit.teach.exercises.searching import steady, unusable

Request = Literal["LOOK", "ROW", "MARK", "BEGIN", "COMMIT"]
"""LOOK: return at once if the marker is there. ROW: write one row more of the batch. MARK: write the marker. What stands
between BEGIN and COMMIT is there from COMMIT on, or not at all; everything else is there at once."""

Requests = Sequence[Request]

APPEND: Requests = ("BEGIN", "ROW", "ROW", "COMMIT")
BEHIND: Requests = ("LOOK", "BEGIN", "ROW", "COMMIT", "MARK")
FIRST: Requests = ("LOOK", "MARK", "BEGIN", "ROW", "COMMIT")
TOGETHER: Requests = ("BEGIN", "LOOK", "ROW", "ROW", "MARK", "COMMIT")
BETWEEN: Requests = ("LOOK", "ROW", "MARK", "ROW")
UNREAD: Requests = ("BEGIN", "ROW", "MARK", "COMMIT")
"""A marker at which nobody looks."""
ONE_LASTS = ("LOOK", "BEGIN", "ROW", "COMMIT", "BEGIN", "ROW", "MARK", "COMMIT")
"""Two transactions, of which the second has the marker."""

PUBLIC = (
    Variant("no marker", (("cases", (("ROW",), APPEND)),)),
    Variant("a marker in a transaction of its own", (("cases", (BEHIND, FIRST)),)),
    Variant("one commit for both", (("cases", (TOGETHER, UNREAD)),)),
    Variant("a marker between rows", (("cases", (BETWEEN, ONE_LASTS)),)),
)


def left_by(requests: Requests, stored: Sequence[str]) -> list[str]:
    """What is in the database after these requests, which found so much there: `MARK`, and rows by their numbers.

    An open transaction at the end is rolled back.
    """
    kept, is_open, row = list(stored), False, 0
    held: list[str] = []
    for request in requests:
        if request == "LOOK":
            if "MARK" in kept or "MARK" in held:
                break
        elif request == "BEGIN":
            is_open = True
        elif request == "COMMIT":
            kept, held, is_open = [*kept, *held], [], False
        else:
            row += request == "ROW"
            written = held if is_open else kept
            written.append("MARK" if request == "MARK" else str(row))
    return kept


def guarantee(requests: Requests) -> Guarantee:
    """What is guaranteed by a sink with these requests, over a kill at each place and one call more."""
    lost = twice = False
    rows = [str(row) for row in range(1, requests.count("ROW") + 1)]
    for place in range(len(requests) + 1):
        left = left_by(requests, left_by(requests[:place], ()))
        lost |= any(row not in left for row in rows)
        twice |= any(left.count(row) > 1 for row in rows)
    return {
        (False, False): Guarantee.EXACTLY_ONCE,
        (False, True): Guarantee.AT_LEAST_ONCE,
        (True, False): Guarantee.AT_MOST_ONCE,
        (True, True): Guarantee.NONE,
    }[lost, twice]


WORDS = tuple(each.value for each in Guarantee if each != Guarantee.UNKNOWN)


def judge(answer: Answer, variant: Variant) -> Finding:
    """Asks what each list of requests guarantees, until one is answered wrongly."""
    ask, cases = Asker(answer, "guarantee"), variant["cases"]
    try:
        for requests in cases:
            said, right = ask(list(requests)), guarantee(requests).value
            if said not in WORDS:
                raise Unusable(
                    f"{ask.call(list(requests))} returned {shown(said)}; return one of {', '.join(WORDS)}."
                )
            if said != right:
                told = f"{ask.with_answer(list(requests))}, and it is {right}"
                return Finding(
                    False,
                    f"{told}.",
                    told,
                    right,
                    general="One list of requests guarantees another thing.",
                )
    except Unusable as error:
        return unusable(ask.name, error)
    return steady(ask, f"It is right about {len(cases)} sinks")
