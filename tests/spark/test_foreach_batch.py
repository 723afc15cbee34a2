"""The foreachBatch adapter without Spark: what it is handed, what it writes, and what a replayed batch does to it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from labkit.core.failpoints import Order
from labkit.core.judge import Guarantee, Verdict, judge
from labkit.core.records import History, Observation, Reading
from labkit.core.strategies import Strategy, orders
from labkit.runs.counting import Totals, words
from labkit.sinks.idempotent import IdempotentSink
from labkit.spark import stopwatch
from labkit.spark.adapters.data_source import SinkOptions
from labkit.spark.adapters.foreach_batch import PARTICIPANTS, ForeachBatchAdapter, deal

TEXT = ["hello world, hello", "World! it's me", "hello 'again' and again"]
"""One line a batch."""


class Frame:
    """What `totals` hands over for one batch: the table that the adapter asks for."""

    def __init__(self, batch: int) -> None:
        totals = Counter(word for line in TEXT[: batch + 1] for word in words(line))
        rows = [{"offset": batch, "key": word, "value": totals[word]} for word in set(words(TEXT[batch]))]
        self._table = pa.Table.from_pylist(rows)

    def toArrow(self) -> pa.Table:  # noqa: N802  # PySpark's name
        return self._table


def run(strategy: Strategy, order: Order, folder: Path, batches: Sequence[int]) -> Verdict:
    """The batches in this order, each with a driver of its own; a number that comes again is a replay."""
    (folder / "text").write_text("\n".join(TEXT))
    for incarnation, batch in enumerate(batches, start=1):
        options = SinkOptions(
            strategy, order, "sqlite", folder / "store.sqlite", "q", incarnation, folder / "log", PARTICIPANTS
        )
        list(options.coordinator().recover(batch - 1 if batch else None))
        ForeachBatchAdapter(options)(Frame(batch), batch)
        options.coordinator().commit_log_durable(batch)
    count = Totals(folder / "text", 1)
    store = options.coordinator().sink.store
    events: Iterator[Observation | Reading] = iter([*count.numbered(store.history()), Reading("end")])
    keyed = strategy.facts.replaces
    return judge(count.expected(), History(events, keyed=keyed, hidden=count.numbered(store.hidden())))


ALL = [(strategy, order) for strategy in Strategy for order in orders(strategy)]


@pytest.mark.parametrize(("strategy", "order"), ALL, ids=str)
def test_every_strategy_writes_the_totals_of_every_batch(strategy: Strategy, order: Order, tmp_path: Path):
    verdict = run(strategy, order, tmp_path, [0, 1, 2])
    assert verdict.guarantee is Guarantee.EXACTLY_ONCE, verdict.because
    assert verdict.final == Counter(word for line in TEXT for word in words(line))


REPLAYED = {
    Strategy.APPEND: "at-least-once",
    Strategy.IDEMPOTENT: "exactly-once",
    Strategy.BATCH_MARKER: "exactly-once",
}


@pytest.mark.parametrize("strategy", REPLAYED)
def test_a_replayed_batch_counts_as_the_strategy_lets_it(strategy: Strategy, tmp_path: Path):
    verdict = run(strategy, Order.NONE, tmp_path, [0, 1, 1, 2])
    assert verdict.guarantee == REPLAYED[strategy], verdict.because


def add_up(sink: IdempotentSink, handle: object, rows: Iterator[Observation]) -> None:
    """An upsert that adds: n = n + what this batch brought."""
    known = Counter({row.key: row.value for row in sink.store.history()})
    for row in rows:
        brought = words(TEXT[row.batch]).count(row.key)
        sink.store.upsert(row._replace(value=known[row.key] + brought))


def test_totals_that_count_a_replayed_batch_twice_are_found_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(IdempotentSink, "pre_commit", add_up)
    (tmp_path / "once").mkdir()
    (tmp_path / "twice").mkdir()
    assert run(Strategy.IDEMPOTENT, Order.NONE, tmp_path / "once", [0, 1, 2]).guarantee is Guarantee.EXACTLY_ONCE
    verdict = run(Strategy.IDEMPOTENT, Order.NONE, tmp_path / "twice", [0, 1, 1, 2])
    assert verdict.unexpected
    assert verdict.final["world"] == 3
    assert verdict.guarantee is not Guarantee.EXACTLY_ONCE


@pytest.mark.parametrize("rows", range(8))
def test_rows_are_dealt_in_order_and_to_no_empty_participant(rows: int):
    dealt = deal([Observation(number, "a", 1, 0, 1) for number in range(rows)])
    assert [row.offset for part in dealt for row in part] == list(range(rows))
    assert all(dealt)
    assert len(dealt) == min(rows, PARTICIPANTS)


def test_a_stopwatch_writes_only_where_somebody_asked(tmp_path: Path):
    watch = stopwatch.Stopwatch(tmp_path, 0)
    with watch.phase("write"):
        pass
    watch.keep()
    assert list(tmp_path.iterdir()) == []
    stopwatch.ask(tmp_path)
    watch.seconds.update({"write": 0.5})
    watch.move(0.2, out_of="write", to="pre_commit")
    watch.keep()
    late = stopwatch.Stopwatch(tmp_path, 0)
    late.seconds["commit"] = 0.1
    late.keep()
    assert stopwatch.read(tmp_path) == {0: {"write": 0.3, "pre_commit": 0.2, "commit": 0.1}}
