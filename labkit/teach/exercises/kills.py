"""An exercise of notebook 14, a crash test in miniature: determine the guarantee of a sink from its requests.

The judge executes the requests on Python lists. Tests compare the results with those of a real SQLite database after
real kills (`tests/exercises/test_rules.py`).
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from labkit.core.judge import Guarantee
from labkit.teach.exercises.asking import Asker
from labkit.teach.exercises.contract import Finding, Variant
from labkit.teach.exercises.searching import Cases

Request = Literal["LOOK", "ROW", "MARK", "BEGIN", "COMMIT"]
"""A request of a sink to its database.

LOOK: return at once if the marker exists. ROW: write the next row of the batch. MARK: write the marker. Everything
between BEGIN and COMMIT takes effect at COMMIT or not at all; everything else takes effect at once.
"""

Requests = Sequence[Request]

APPEND: Requests = ("BEGIN", "ROW", "ROW", "COMMIT")
BEHIND: Requests = ("LOOK", "BEGIN", "ROW", "COMMIT", "MARK")
FIRST: Requests = ("LOOK", "MARK", "BEGIN", "ROW", "COMMIT")
TOGETHER: Requests = ("BEGIN", "LOOK", "ROW", "ROW", "MARK", "COMMIT")
BETWEEN: Requests = ("LOOK", "ROW", "MARK", "ROW")
BEFORE_THE_LOOK: Requests = ("ROW", "LOOK", "MARK", "ROW")
WITHIN: Requests = ("BEGIN", "ROW", "LOOK", "MARK", "COMMIT")
"""A sink that looks for the marker only inside the transaction of a row.

If it finds the marker, it returns and leaves the transaction open, so the row is rolled back.
"""
UNREAD: Requests = ("BEGIN", "ROW", "MARK", "COMMIT")
"""A sink that writes a marker and never reads it."""
AFTER_NOTHING: Requests = ("BEGIN", "COMMIT", *TOGETHER)
"""A sink with an empty transaction before the one that holds the rows and the marker."""
ONE_LASTS = ("LOOK", "BEGIN", "ROW", "COMMIT", "BEGIN", "ROW", "MARK", "COMMIT")
"""A sink with two transactions: the first writes a row, the second a row and the marker."""

NOTHING: Requests = ("LOOK", "LOOK", *("BEGIN", "COMMIT") * 198)
"""Many empty transactions, like those of a sink that commits after each row of another table."""

PUBLIC = (
    Variant("no marker", (("cases", (("ROW",), APPEND)),)),
    Variant("a marker in a transaction of its own", (("cases", (BEHIND, FIRST)),)),
    Variant("one commit for both", (("cases", (TOGETHER, UNREAD, AFTER_NOTHING)),)),
    Variant("a marker between rows", (("cases", (BETWEEN, ONE_LASTS)),)),
    Variant("rows before the look", (("cases", (BEFORE_THE_LOOK, WITHIN)),)),
    Variant("many requests", (("cases", ((*NOTHING, "ROW", "MARK"),)),)),
)


def left_by(requests: Requests, stored: Sequence[str]) -> list[str]:
    """Return a database's content after a sink's requests: each row as its number (`"1"`), each marker as `"MARK"`.

    `stored` is the content before the requests. A transaction that is still open at the end is rolled back.
    """
    kept = list(stored)
    open_rows: list[str] | None = None
    row = 0
    for request in requests:
        match request:
            case "BEGIN":
                open_rows = []
            case "COMMIT":
                kept, open_rows = [*kept, *(open_rows or ())], None
            case "LOOK":
                if "MARK" in [*kept, *(open_rows or ())]:
                    return kept
            case "ROW" | "MARK":
                row += request == "ROW"
                written = kept if open_rows is None else open_rows
                written.append(str(row) if request == "ROW" else request)
    return kept


def guarantee(requests: Requests) -> Guarantee:
    """Return the guarantee of a sink that makes these requests, is killed once at any place, and then runs again."""
    return _guarantee(tuple(requests))


@lru_cache(maxsize=256)  # a grader asks for the same requests in each submission
def _guarantee(requests: Requests) -> Guarantee:
    ends = [left_by(requests, left_by(requests[:place], ())) for place in range(len(requests) + 1)]
    rows = [str(row) for row in range(1, requests.count("ROW") + 1)]
    counts = {end.count(row) for end in ends for row in rows}
    return {
        (False, False): Guarantee.EXACTLY_ONCE,
        (False, True): Guarantee.AT_LEAST_ONCE,
        (True, False): Guarantee.AT_MOST_ONCE,
        (True, True): Guarantee.NONE,
    }[0 in counts, bool(counts - {0, 1})]


WORDS = tuple(each.value for each in Guarantee if each != Guarantee.UNKNOWN)


def _wrong(ask: Asker, requests: Requests) -> Finding | None:
    answer, right = ask(list(requests)), guarantee(requests).value
    if answer not in WORDS:
        raise ask.unusable(f"one of {', '.join(WORDS)}", list(requests))
    if answer == right:
        return None
    statement = f"{ask.with_answer(list(requests))}, but the right answer is {right}"
    return Finding(False, f"{statement}.", statement, right, general="One list of requests has another guarantee.")


KILLS = Cases("guarantee", lambda variant: variant["cases"], _wrong, "It is right about {} sinks")
