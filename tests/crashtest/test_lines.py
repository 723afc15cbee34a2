"""Places before lines: where a library writes unseen the statement is found, and the job can die on both
sides of it.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from labkit.core.errors import InvalidInput
from labkit.crashtest.harness.reader import Reader
from labkit.crashtest.harness.watching import Watcher
from labkit.crashtest.instrument.effects import Effect, Kind, Point, Side, check_id
from labkit.crashtest.instrument.ticket import Ticket
from labkit.crashtest.points import Plan, choose, line_points, points, unfinished, with_lines
from labkit.crashtest.project import Project
from labkit.crashtest.seeing import Gap, PointReading, doubts, gaps, read_logged, unseen_effects
from labkit.crashtest.subject import Subject

PROCESS = Path(__file__).parents[1] / "support" / "plain_sink_process.py"
SINKS = Path(__file__).parents[2] / "data" / "sinks"
COPIED = SINKS / "wrong_copied_unseen.py"
PATIENCE = 60.0


def line_of(text: str, file: Path = COPIED) -> int:
    lines = file.read_text().splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


class Place(NamedTuple):
    """One sink in a plain process whose lines are places."""

    folder: Path
    file: Path

    @property
    def log(self) -> Path:
        return self.folder / "effects.jsonl"

    @property
    def evidence(self) -> Path:
        return self.folder / "reached.json"

    def start(self, armed: Point | None = None, asks: str = "", batches: int = 2) -> "subprocess.Popen[bytes]":
        ticket = Ticket(
            str(self.file),
            str(self.log),
            1,
            armed,
            str(self.evidence) if armed else "",
            "crash",
            *Project.of(str(self.file))[1:],
            asks=asks,
            lines=True,
        )
        words = [str(PROCESS), str(self.file), "write_batch"]
        plain = json.dumps(ticket.to_json())
        return subprocess.Popen([sys.executable, *words, plain, str(batches)], start_new_session=True)

    def healthy(self) -> list[PointReading]:
        """What the reader saw at each place of a run without a crash."""
        asks = self.folder / "asks"
        with (
            Reader(Subject(str(self.file), "read"), self.folder / "log") as reader,
            Watcher(reader, asks=asks) as watcher,
        ):
            reader.read_surely()  # so that it has imported what it needs
            with self.start(asks=str(asks)) as process:
                assert process.wait(PATIENCE) == 0
            watcher.look("end")
        end = PointReading("the end", self.log.stat().st_size, watcher.samples[-1].seen)
        return [PointReading("the start", 0, ()), *watcher.readings, end]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Place]:
    monkeypatch.setenv("SINK_STORE", str(tmp_path / "store"))

    def made(text: str = "wrong_copied_unseen.py") -> Place:
        if text.endswith(".py"):
            return Place(tmp_path, SINKS / text)
        file = tmp_path / "sink.py"
        file.write_text(text)
        return Place(tmp_path, file)

    return made


def test_the_statement_that_writes_unseen_is_found_by_its_line(place: Callable[..., Place]) -> None:
    made = place()
    readings, log = made.healthy(), read_logged(made.log)
    found = gaps(readings, log)
    copies, marks = line_of("subprocess.run("), line_of("done.touch()")
    assert [tuple(edge.id for edge in gap.edges) for gap in found] == [
        (f"b{n}.call.line{copies}.before", f"b{n}.call.line{marks}.before") for n in (0, 1)
    ]
    said = doubts(readings, log)[0]
    assert "killed before and after these lines, but never within one" in said


def test_a_child_that_writes_is_bounded_by_two_lines(place: Callable[..., Place]) -> None:
    made = place("wrong_child_process.py")
    found = gaps(made.healthy(), read_logged(made.log))
    starts = line_of("subprocess.run(", made.file)
    assert [tuple(edge.id for edge in gap.edges) for gap in found] == [
        (f"b{n}.call.line{starts}.before", f"b{n}.call.line{starts + 1}.before") for n in (0, 1)
    ]


def test_whoever_reaches_a_line_stops_before_it(place: Callable[..., Place]) -> None:
    made = place()
    with made.start() as process:
        assert process.wait(PATIENCE) == 0
    copies = line_of("subprocess.run(")
    every = points([each.effect for each in read_logged(made.log)], [0, 1], lines=True)
    armed = next(point for point in every if point.id == f"b1.call.line{copies}.before")
    made.log.unlink()
    store = Path(os.environ["SINK_STORE"])
    for file in store.iterdir():
        file.unlink()
    with made.start(armed) as process:
        end = time.monotonic() + PATIENCE
        stopped = psutil.STATUS_STOPPED
        while psutil.Process(process.pid).status() != stopped or not made.evidence.exists():
            if time.monotonic() > end:
                os.killpg(process.pid, signal.SIGKILL)
                pytest.fail("the line was not reached")
            time.sleep(0.01)
        assert len(list(store.glob("*.json"))) == 1  # batch 0 is copied, batch 1 is not
        os.killpg(process.pid, signal.SIGKILL)
    assert json.loads(made.evidence.read_text())["point"] == armed.id


LOOP = """
import os
from helper import put
def write_batch(df, batch):
    with open(os.environ["SINK_STORE"], "a") as file:
        for row in df.collect():
            put(file, row)
"""


def test_of_a_loop_the_first_times_and_the_last_are_places(place: Callable[..., Place]) -> None:
    made = place(LOOP)
    (made.folder / "helper.py").write_text("def put(file, row):\n    file.write(f'{row.id}\\n')\n")
    with made.start(batches=1) as process:
        assert process.wait(PATIENCE) == 0
    log = [each.effect for each in read_logged(made.log)]
    lines = [each for each in log if each.file == "helper.py" and each.kind is Kind.LINE]
    assert [(each.file, each.line, each.nth) for each in lines] == [
        ("helper.py", 2, 1),
        ("helper.py", 2, 2),
        ("helper.py", 2, 10),
    ]
    ids = [point.id for point in points(log, [0], lines=True)]
    assert [name for name in ids if "@helper" in name] == [
        "b0.call.line2@helper.before",
        "b0.call.line2.2@helper.before",
        "b0.call.line2.10@helper.before",
    ]
    assert [check_id(name) for name in ids] == ids
    order = [ids.index(name) for name in ("b0.call.1.after", "b0.call.2.before")]
    inner = ids.index("b0.call.line2@helper.before")
    assert order[0] < inner < order[1]  # the file is made, and its buffer goes in the end


@pytest.mark.parametrize("text", ["b0.call.line.before", "b0.call.line3.after", "line3"])
def test_other_names_of_lines_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        check_id(text)


def line(number: int, step: int, at: int, batch: int = 0) -> Effect:
    return Effect(batch, "call", number, Kind.LINE, "", at, step=step)


LOG = [
    Effect(0, "call", 0, Kind.BEGIN, "", 0),
    line(0, 1, 11),
    Effect(0, "call", 1, Kind.WRITE, "t", 11),
    line(1, 1, 12),
    line(1, 2, 13),
    Effect(0, "call", 2, Kind.COMMIT, "t", 13),
    Effect(0, "call", 3, Kind.RETURN, "", 0),
]
GAP = Gap("a", "b", 1, 0, (LOG[3].point(Side.BEFORE), LOG[4].point(Side.BEFORE)))


def test_lines_are_places_in_the_order_of_their_call_and_only_on_request() -> None:
    assert not any(".line" in point.id for point in points(LOG, [0]))
    assert [point.id for point in points(LOG, [0], lines=True)] == [
        "b0.call.begins",
        "b0.call.line11.before",
        "b0.call.1.before",
        "b0.call.1.after",
        "b0.call.line12.before",
        "b0.call.line13.before",
        "b0.call.2.before",
        "b0.call.2.after",
        "b0.call.returns",
        "b0.engine.commits",
    ]


def test_a_line_and_the_effect_of_that_line_are_two_places() -> None:
    before, write = LOG[1].point(Side.BEFORE), LOG[2].point(Side.BEFORE)
    assert before.is_here(LOG[1], Side.BEFORE)
    assert not before.is_here(LOG[2], Side.BEFORE)
    assert not write.is_here(LOG[1], Side.BEFORE)


def test_what_a_line_does_unseen_is_an_effect_between_two_places() -> None:
    (effect,) = unseen_effects([GAP])
    assert (effect.kind, effect.line) == (Kind.UNSEEN, 12)
    first, second = GAP.edges
    assert unfinished(first, [effect])
    assert not unfinished(second, [effect])
    assert points([*LOG, effect], [0]) == points(LOG, [0])


def test_lines_beside_what_is_unseen_are_tried_first() -> None:
    usual = choose(LOG, 1, quick=True)
    both = with_lines(usual, LOG, GAP.edges, 1)
    assert set(both.chosen) == {*usual.chosen, *GAP.edges}
    assert [point.id for point in both.chosen if point.kind is Kind.LINE] == [
        "b0.call.line12.before",
        "b0.call.line13.before",
    ]
    assert line_points(LOG, GAP.edges) == [*GAP.edges, LOG[1].point(Side.BEFORE)]
    assert isinstance(both, Plan)
