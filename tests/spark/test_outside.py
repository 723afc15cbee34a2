"""Prices and mails outside of a job, what should come out of the shop, and which options go together; without Spark."""

from pathlib import Path

import pyarrow as pa
import pytest

from labkit.core.records import Record
from labkit.runs.counting import Prices
from labkit.spark.jobs import serve
from labkit.spark.options import THREE_ORDERS
from labkit.spark.outside import Mail, Outside


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    place = Outside(tmp_path / "outside")
    place.open(["pen", "book", "pen"])
    return place


def orders(*items: str) -> pa.RecordBatch:
    rows = [{"offset": number, "word": item} for number, item in enumerate(items)]
    return pa.RecordBatch.from_pylist(rows)


def test_prices_are_those_of_the_moment_of_the_look(outside: Outside) -> None:
    assert outside.read() == {"pen": 10, "book": 20}
    assert outside.edit() == outside.read() == {"pen": 11, "book": 21}


def test_a_task_that_runs_twice_sends_twice_and_may_give_other_rows(outside: Outside) -> None:
    [first] = serve(outside, iter([orders("pen", "book")]))
    outside.edit()
    [again] = serve(outside, iter([orders("pen", "book")]))
    assert first.column("value").to_pylist() == [10, 20]
    assert again.column("value").to_pylist() == [11, 21]
    assert first.column("offset").to_pylist() == again.column("offset").to_pylist()
    assert outside.sent() == [Mail(0, "pen", 10), Mail(0, "pen", 11), Mail(1, "book", 20), Mail(1, "book", 21)]


def test_a_task_without_orders_sends_nothing(outside: Outside) -> None:
    empty = orders("pen").slice(0, 0)
    assert [batch.num_rows for batch in serve(outside, iter([empty]))] == [0]
    assert outside.sent() == []


def test_an_edited_price_is_one_more_outcome() -> None:
    assert list(Prices(THREE_ORDERS, 0).expected()) == [
        Record(0, "pen", 10),
        Record(1, "book", 20),
        Record(2, "lamp", 30),
    ]
    assert Prices(THREE_ORDERS, 0).outcomes() == {}
    twice = Prices(THREE_ORDERS, 2).outcomes()
    assert {offset: list(values) for offset, values in twice.items()} == {
        0: [10, 11, 12],
        1: [20, 21, 22],
        2: [30, 31, 32],
    }
