"""The reader looks while the job runs, and not only at the end: what is gone by then has been seen."""

import time
from pathlib import Path

import pytest

from labkit.core.judge import judge
from labkit.crashtest.harness.reader import Reader, ReaderFailed
from labkit.crashtest.harness.watching import Watcher
from labkit.crashtest.rows import Seen, Shape, generate, named
from labkit.crashtest.samples import history
from labkit.crashtest.subject import Subject

READ = """
from pathlib import Path
STORE = Path(__file__).with_name("store")
def read():
    text = STORE.read_text()
    return [tuple(map(int, text.split()))[:1]] if " " in text else [int(line) for line in text.split()]
"""
ROWS = generate(1, per_batch=4)
PATIENCE = 20.0


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "sink.py").write_text(READ)
    (tmp_path / "store").write_text("")
    return tmp_path / "store"


def await_seen(watcher: Watcher, rows: int) -> None:
    end = time.monotonic() + PATIENCE
    while not watcher.samples or len(watcher.samples[-1].seen) != rows:
        assert time.monotonic() < end, watcher.samples
        time.sleep(0.01)


def test_rows_that_are_taken_back_before_the_end_were_read(store: Path, tmp_path: Path) -> None:
    with (
        Reader(Subject(str(tmp_path / "sink.py"), "read"), tmp_path / "log") as reader,
        Watcher(reader, 0.01) as watcher,
    ):
        await_seen(watcher, 0)
        store.write_text("0\n1\n2\n3\n")
        await_seen(watcher, 4)
        store.write_text("")
        await_seen(watcher, 0)
        store.write_text("0\n1\n2\n3\n")
        watcher.look("end")
    due = [named(each, Shape.ROWS) for each in ROWS.expected()]
    verdict = judge(due, history(watcher.samples, ROWS, Shape.ROWS, ROWS.expected()))
    assert verdict.aborted_read == (0, 1, 2, 3)
    assert verdict.guarantee == "exactly-once"


def test_what_does_not_change_is_kept_once_and_quiet_moments_always(store: Path, tmp_path: Path) -> None:
    store.write_text("0\n")
    with (
        Reader(Subject(str(tmp_path / "sink.py"), "read"), tmp_path / "log") as reader,
        Watcher(reader, 0.01) as watcher,
    ):
        await_seen(watcher, 1)
        watcher.look("crash 1", (0,))
        watcher.look("end")
    assert [(sample.moment, sample.seen) for sample in watcher.samples] == [
        (moment, (Seen(0, None, None),)) for moment in ("", "crash 1", "end")
    ]


def test_a_reader_that_fails_meanwhile_is_counted_and_at_a_quiet_moment_heard(store: Path, tmp_path: Path) -> None:
    store.unlink()
    with (
        Reader(Subject(str(tmp_path / "sink.py"), "read"), tmp_path / "log") as reader,
        Watcher(reader, 0.01) as watcher,
    ):
        end = time.monotonic() + PATIENCE
        while not watcher.failures:
            assert time.monotonic() < end
            time.sleep(0.01)
        with pytest.raises(ReaderFailed, match="FileNotFoundError"):
            reader.read_surely(0.2)
    assert watcher.samples == []
