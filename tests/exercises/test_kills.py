"""What the exercise 14-kills takes for granted of a database is what a real SQLite does under real kills."""

from itertools import product
from typing import Any, get_args

import pytest

from labkit import lab
from labkit.core.judge import Guarantee
from labkit.grading.hidden import variants
from labkit.teach.exercises import kills

WITH_THREE_ROWS: list[kills.Requests] = [
    ("BEGIN", "ROW", "ROW", "ROW", "COMMIT"),  # wrong at the last place alone
    ("LOOK", "BEGIN", "ROW", "ROW", "ROW", "COMMIT", "MARK"),
    ("BEGIN", "LOOK", "ROW", "MARK", "ROW", "ROW", "COMMIT"),
]
SLOW: list[kills.Requests] = [
    ("LOOK", "ROW", "MARK", "ROW", "ROW"),
    ("LOOK", "BEGIN", "ROW", "COMMIT", "BEGIN", "ROW", "ROW", "MARK", "COMMIT"),
    ("LOOK", "BEGIN", "ROW", "MARK", "COMMIT", "BEGIN", "ROW", "ROW", "COMMIT"),
    ("ROW", "ROW", "MARK", "ROW"),
]


def sink_of(requests: kills.Requests) -> Any:
    """A sink that makes these requests of a database."""

    def sink(db: Any, query: str, batch: int, rows: list[dict[str, Any]]) -> None:
        db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
        db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
        waiting = sorted(rows, key=lambda row: row["id"])
        for request in requests:
            if request == "LOOK":
                look = "SELECT 1 FROM marks WHERE query = ? AND batch = ?"
                if db.execute(look, [query, batch]):
                    break
            elif request == "ROW":
                if waiting:
                    row = waiting.pop(0)
                    db.execute("INSERT INTO orders VALUES (?, ?, ?)", [*row.values()])
            elif request == "MARK":
                db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
            else:
                db.execute(request)

    return sink


@pytest.mark.parametrize(
    "requests", [*WITH_THREE_ROWS, *(pytest.param(each, marks=pytest.mark.slow) for each in SLOW)], ids=" ".join
)
def test_a_real_database_gives_the_same_after_real_kills(requests: kills.Requests) -> None:
    words = set(lab.try_sink(sink_of(requests), "table").kills)
    twice = bool(words & {Guarantee.AT_LEAST_ONCE, Guarantee.NONE})
    lost = bool(words & {Guarantee.AT_MOST_ONCE, Guarantee.NONE})
    said = kills.guarantee(requests)
    assert (lost, twice) == (
        said in (Guarantee.AT_MOST_ONCE, Guarantee.NONE),
        said in (Guarantee.AT_LEAST_ONCE, Guarantee.NONE),
    )


def test_variants_have_every_guarantee() -> None:
    drawn = [*kills.PUBLIC, *variants("14-kills", 1)]
    said = {kills.guarantee(case) for variant in drawn for case in variant["cases"]}
    assert said == set(Guarantee) - {Guarantee.UNKNOWN}


def test_no_sink_without_a_look_is_exactly_once() -> None:
    """By all lists of five requests: who never looks, repeats."""
    for requests in product(get_args(kills.Request), repeat=5):
        if "LOOK" not in requests and "ROW" in requests:
            assert kills.guarantee(requests) != Guarantee.EXACTLY_ONCE
