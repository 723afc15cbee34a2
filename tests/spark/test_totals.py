"""The job `totals` on real Spark: any text, foreachBatch, every strategy, killed in the middle, counted again."""

import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import psutil
import pytest
from conducted import Outcomes

from labkit import lab
from labkit.core.failpoints import Crash, FailPoint, Order
from labkit.host.processes.events import AnyEvent, Recovered
from labkit.runs.expected import Cell, expectations
from labkit.runs.outcome import Outcome
from labkit.runs.scenario import Scenario, plan
from labkit.spark.options import JABBERWOCKY

pytestmark = pytest.mark.spark

CELLS = expectations()
KILLED = [
    cell
    for cell in CELLS
    if cell.point is FailPoint.AFTER_PRE_COMMIT and cell.store == "sqlite" and cell.order is not Order.DECISION
]
"""Each strategy once; what other points, stores and orders do is tried with the running count."""
MIDDLE = 1
"""Of the three batches, the one that is killed."""


def letters(text: str) -> Iterator[str]:
    """The words of a text, found by the categories of its characters and by nothing of the lab's."""
    for is_word, run in groupby(text, lambda char: unicodedata.category(char)[0] in "LN" or char == "'"):
        if is_word:
            yield "".join(run).lower()


def counted(path: Path) -> dict[str, int]:
    return dict(Counter(letters(path.read_text(encoding="utf-8"))))


def in_the_middle(cell: Cell) -> Scenario:
    order = None if cell.order is Order.NONE else cell.order.value
    scenario = plan(job="totals", sink=cell.strategy, store=cell.store, order=order, records_per_batch=12)
    return replace(scenario, crashes=(Crash(cell.point, MIDDLE),))


def check(cell: Cell, outcome: Outcome) -> None:
    """A batch is a batch, whatever the job: the guarantee is that of the running count in the same cell."""
    [crash] = outcome.crashes
    assert (crash["point"], crash["batch"], crash["signal"]) == (cell.point, MIDDLE, 9)
    assert outcome.verdict.guarantee == CELLS[cell].guarantee, CELLS[cell].reason
    assert dict(outcome.verdict.final) == counted(JABBERWOCKY)
    assert {row.batch for row in outcome.rows()} == {0, 1, 2}


RUNS = {cell: in_the_middle(cell) for cell in KILLED}


@pytest.mark.slow
@pytest.mark.parametrize("cell", RUNS, ids=str)
def test_the_final_table_is_an_independent_count(cell: Cell, outcomes: Outcomes):
    check(cell, outcomes[cell])


@pytest.mark.variant
@pytest.mark.slow
def test_a_driver_of_totals_has_no_setting_for_small_runs(tmp_path: Path):
    seen: list[str] = []

    def look(event: AnyEvent) -> None:
        if isinstance(event, Recovered):
            commands = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
            jvms = [command for command in commands if "org.apache.spark.deploy.SparkSubmit" in command]
            seen.extend(" ".join(command) for command in jvms if any(str(tmp_path) in word for word in command))

    lab.crash(job="totals", folder=tmp_path / "run", tell=look)
    [command] = seen
    assert "-Xmx2g" in command
    for setting in ("TieredStopAtLevel", "UseSerialGC", "NO_CODEGEN", "wholeStage", "labkit.spark.fast.daemon"):
        assert setting not in command
