"""What a test of a sink says beside its verdict: where a run left all failure-free ones, and for how long that was
seen.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path

from waiting import until

from labkit.core.exposure import Span
from labkit.core.judge import Outcome
from labkit.crashtest.blackbox.words import in_their_rows
from labkit.crashtest.harness.reader import Reader
from labkit.crashtest.harness.runs import Run
from labkit.crashtest.harness.watching import Watcher
from labkit.crashtest.instrument.effects import Effect, Kind
from labkit.crashtest.jobs import Job
from labkit.crashtest.judging import explained
from labkit.crashtest.page import page
from labkit.crashtest.rows import Rows, Seen, Shape, generate
from labkit.crashtest.samples import Readings, Sample
from labkit.crashtest.settings import settings
from labkit.crashtest.sink_judging import judged
from labkit.crashtest.sink_report import sink_report
from labkit.crashtest.subject import Adapter, Subject
from labkit.crashtest.verdict import Coverage, Group, Result, summarise

ROWS = generate(1, per_batch=4)
ALL = [Seen(**row) for row in ROWS.batches[0].rows]
READ = """
from pathlib import Path
def read():
    return [int(line) for line in Path(__file__).with_name("store").read_text().split()]
"""
PATIENCE = 20.0


def sample(at: float, seen: Sequence[Seen], moment: str = "", before: float | None = None) -> Sample:
    return Sample(at, 1, tuple(seen), moment, since=before, until=at + 0.5)


class Watched:
    """A watcher that is over."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = list(samples)


def result(folder: Path, samples: Sequence[Sample], rows: Rows = ROWS) -> Result:
    """The result of a run whose log says when the sink got its batch, and whose reader read this."""
    folder.mkdir(parents=True, exist_ok=True)
    begin = Effect(0, "call", 0, Kind.BEGIN, "", 0).to_json()
    lines = [json.dumps({**begin, "at": at}) + "\n" for at in (1002.0, 1009.0)]
    run = Run("a", "A", folder, rows, Watched(samples))  # type: ignore[arg-type]  # of a watcher, only the samples are read once it is over
    run.log.write_text("".join(lines))
    return judged(Job("a", "A", Group.CRASH, ()), run, Shape.ROWS, resets=True)


READ_TWICE = [
    sample(1000.0, []),
    sample(1004.0, ALL, before=1003.0),
    sample(1010.0, ALL, "crash 1", before=1009.0),
    sample(1020.0, [*ALL, *ALL[:1]], before=1019.0),
    sample(1030.0, [*ALL, *ALL[:1]], "end", before=1029.0),
]


def test_a_row_that_is_there_twice_is_wrong_from_then_on(tmp_path: Path) -> None:
    found = result(tmp_path, READ_TWICE)
    assert found.explanation is not None
    assert found.explanation.because.endswith(
        "(after crash 1, between 19.00 and 20.50 s): offset 0 ('k0/0' = 1), written by attempt 1 of batch 0, appears a "
        "second time"
    )
    assert found.exposure is not None
    twice, once = (found.exposure.keys[f"k{n}/{n}"] for n in (0, 1))
    assert (twice.wrong, twice.lasts) == (Span(9.5, 11.5), True)
    assert once.wrong == Span(0, 0)
    assert once.held == Span(1.0, 2.5), "since the sink got its batch for the first time"


def test_a_row_that_is_taken_back_was_wrong_while_it_was_there(tmp_path: Path) -> None:
    readings = [
        sample(1000.0, []),
        sample(1004.0, ALL, before=1003.0),
        sample(1006.0, [], before=1005.0),
        sample(1020.0, ALL, "end", before=1019.0),
    ]
    found = result(tmp_path, readings)
    assert found.exposure is not None
    assert found.exposure.keys["k0/0"].wrong == Span(0.5, 3.5)
    assert not found.exposure.keys["k0/0"].lasts


def test_a_reading_without_moments_says_nothing_of_seconds(tmp_path: Path) -> None:
    untimed = [Sample(0.0, 1, tuple(ALL)), Sample(1.0, 1, (*ALL, ALL[0]), "end")]
    found = result(tmp_path, untimed)
    assert found.exposure is not None
    assert found.exposure.keys["k0/0"].wrong is None
    assert found.explanation is not None
    assert (found.explanation.at, found.explanation.exists) == ("", Outcome.VIOLATED)


def test_a_run_without_a_flaw_has_nothing_to_explain(tmp_path: Path) -> None:
    found = result(tmp_path, [*READ_TWICE[:3], sample(1030.0, ALL, "end", 1029.0)])
    assert [name for name, _ in found.verdict_notes()] == ["wrong"]


def test_text_page_and_json_say_both(tmp_path: Path) -> None:
    found = result(tmp_path / "run", READ_TWICE)
    file = tmp_path / "sink.py"
    file.write_text("def sink(df, batch):\n    pass\n")
    summary = summarise([found], Coverage(1, 0, 1, 1))
    report = sink_report(settings(f"{file}:sink"), Adapter.BATCH, Shape.ROWS, summary, [])
    told = dict(found.verdict_notes())
    for name in ("breaks", "wrong"):
        assert f"\n{name:<17} {told[name]}\n" in report.text()
    assert "could have read a wrong value for 9.500 to 11.500 s up to the end" in page(report)
    plain = json.loads(json.dumps(report.to_json()))["weakest"]
    assert plain["explanation"]["failure_free_run"] == "violated"
    assert plain["exposure"]["keys"]["k0/0"]["wrong"] == [9.5, 11.5]


def test_a_value_that_a_key_loses_is_wrong_until_there_is_one_again() -> None:
    rows = generate(2, per_batch=4)
    first, second = ([Seen(**row) for row in batch.rows] for batch in rows.batches)
    readings = Readings(
        [sample(1, first, before=0.5), sample(3, [], before=2.5), sample(7, second, "end", before=6.5)],
        rows,
        Shape.LAST,
    )
    sights = [(each.row.offset, each.goes) for each in readings.sights()]
    assert sights[:8] == [*((n, False) for n in range(4)), *((n, True) for n in range(4))]
    assert explained(readings, Shape.LAST, rows.expected()).exists is Outcome.HOLDS


def test_the_watcher_knows_between_which_readings_something_changed(tmp_path: Path) -> None:
    (tmp_path / "sink.py").write_text(READ)
    store = tmp_path / "store"
    store.write_text("")
    with (
        Reader(Subject(str(tmp_path / "sink.py"), "read"), tmp_path / "log") as reader,
        Watcher(reader, 0.01) as watcher,
    ):
        until(lambda: watcher.samples, "a first reading", PATIENCE)
        begun = time.time()
        store.write_text("0\n")
        written = time.time()
        watcher.look("end")
    changed = [each.changed() for each in watcher.samples if each.seen]
    assert watcher.samples[0].changed() is None
    assert changed[0] is not None
    assert changed[0].least <= written
    assert changed[0].most >= begun


def test_a_pipeline_is_told_in_its_own_rows() -> None:
    twice = Readings([sample(1, [*ALL, ALL[1]], "end")], ROWS, Shape.ROWS)
    found = explained(twice, Shape.ROWS, ROWS.expected())
    said = in_their_rows(found, {n: {"a": n} for n in range(4)}).because
    assert said.endswith('{"a": 1} appears a second time')
