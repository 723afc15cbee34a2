"""The exercise of notebook 14 that is a crash test in small: what a sink guarantees, told from its requests.

The judge executes the requests by itself, on lists. That a real SQLite gives the same after real kills is for the tests
(`tests/exercises/test_kills.py`).
"""

from collections.abc import Sequence
from functools import partial
from typing import Literal

from labkit.core.judge import Guarantee
from labkit.teach.exercises.asking import Asker, Unusable, shown
from labkit.teach.exercises.contract import Answer, Finding, Variant
from labkit.teach.exercises.searching import ask_each

Request = Literal["LOOK", "ROW", "MARK", "BEGIN", "COMMIT"]
"""LOOK: return at once if the marker is there. ROW: write one row more of the batch. MARK: write the marker. What
stands between BEGIN and COMMIT is there from COMMIT on, or not at all; everything else is there at once.
"""

Requests = Sequence[Request]

APPEND: Requests = ("BEGIN", "ROW", "ROW", "COMMIT")
BEHIND: Requests = ("LOOK", "BEGIN", "ROW", "COMMIT", "MARK")
FIRST: Requests = ("LOOK", "MARK", "BEGIN", "ROW", "COMMIT")
TOGETHER: Requests = ("BEGIN", "LOOK", "ROW", "ROW", "MARK", "COMMIT")
BETWEEN: Requests = ("LOOK", "ROW", "MARK", "ROW")
BEFORE_THE_LOOK: Requests = ("ROW", "LOOK", "MARK", "ROW")
WITHIN: Requests = ("BEGIN", "ROW", "LOOK", "MARK", "COMMIT")
"""A look within the transaction of a row: whoever returns there leaves it open, and it is rolled back."""
UNREAD: Requests = ("BEGIN", "ROW", "MARK", "COMMIT")
"""A marker at which nobody looks."""
ONE_LASTS = ("LOOK", "BEGIN", "ROW", "COMMIT", "BEGIN", "ROW", "MARK", "COMMIT")
"""Two transactions, of which the second has the marker."""

PUBLIC = (
    Variant("no marker", (("cases", (("ROW",), APPEND)),)),
    Variant("a marker in a transaction of its own", (("cases", (BEHIND, FIRST)),)),
    Variant("one commit for both", (("cases", (TOGETHER, UNREAD)),)),
    Variant("a marker between rows", (("cases", (BETWEEN, ONE_LASTS)),)),
    Variant("rows before the look", (("cases", (BEFORE_THE_LOOK, WITHIN)),)),
)


def left_by(requests: Requests, stored: Sequence[str]) -> list[str]:
    """What is in the database after these requests, which found so much there: `MARK`, and rows by their numbers.

    An open transaction at the end is rolled back.
    """
    kept = list(stored)
    held: list[str] | None = None
    row = 0
    for request in requests:
        match request:
            case "BEGIN":
                held = []
            case "COMMIT":
                kept, held = [*kept, *(held or ())], None
            case "LOOK":
                if "MARK" in [*kept, *(held or ())]:
                    return kept
            case "ROW" | "MARK":
                row += request == "ROW"
                written = kept if held is None else held
                written.append(str(row) if request == "ROW" else request)
    return kept


def guarantee(requests: Requests) -> Guarantee:
    """What is guaranteed by a sink with these requests, over a kill at each place and one call more."""
    places = (*range(len(requests)), len(requests))
    ends = [left_by(requests, left_by(requests[:place], ())) for place in places]
    rows = [str(row) for row in range(1, requests.count("ROW") + 1)]
    counts = {end.count(row) for end in ends for row in rows}
    return {
        (False, False): Guarantee.EXACTLY_ONCE,
        (False, True): Guarantee.AT_LEAST_ONCE,
        (True, False): Guarantee.AT_MOST_ONCE,
        (True, True): Guarantee.NONE,
    }[0 in counts, bool(counts - {0, 1})]


WORDS = tuple(each.value for each in Guarantee if each != Guarantee.UNKNOWN)


def judge(answer: Answer, variant: Variant) -> Finding:
    """Asks what each list of requests guarantees, until one is answered wrongly."""
    ask = Asker(answer, "guarantee")
    return ask_each(ask, variant["cases"], partial(_wrong, ask), "It is right about {} sinks")


def _wrong(ask: Asker, requests: Requests) -> Finding | None:
    said, right = ask(list(requests)), guarantee(requests).value
    if said not in WORDS:
        raise Unusable(f"{ask.call(list(requests))} returned {shown(said)}; return one of {', '.join(WORDS)}.")
    if said == right:
        return None
    told = f"{ask.with_answer(list(requests))}, and it is {right}"
    return Finding(False, f"{told}.", told, right, general="One list of requests guarantees another thing.")
