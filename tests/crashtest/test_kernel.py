"""A sink in a plain job that is killed at its system calls: what the JVM does is cut, too."""

import shutil
import tempfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from sink_texts import APPEND

from labkit.core.errors import InvalidInput, LabError
from labkit.core.judge import judge
from labkit.core.records import History
from labkit.crashtest import sink_variants
from labkit.crashtest.blackbox.campaign import pipeline_campaign
from labkit.crashtest.blackbox.copies import how_many
from labkit.crashtest.blackbox.effects import Effect, Namer
from labkit.crashtest.blackbox.lines import Lines
from labkit.crashtest.blackbox.points import QUICK_SINK, Point, choose
from labkit.crashtest.blackbox.reading import HelperCommands
from labkit.crashtest.blackbox.runs import PipelineRun
from labkit.crashtest.blackbox.story import ALONE, lines, text
from labkit.crashtest.campaigns import crash_test
from labkit.crashtest.claim import Strength
from labkit.crashtest.harness.plain_job import PlainJob
from labkit.crashtest.kernel import IGNORED, SinkPipeline, as_pipeline, kernel_campaign
from labkit.crashtest.rows import generate
from labkit.crashtest.settings import settings
from labkit.crashtest.sink_variants import SinkVariants, of_tasks
from labkit.crashtest.subject import Adapter
from labkit.crashtest.verdict import Group, Result
from labkit.host.class_data import find_archive
from labkit.host.java import java_for_spark
from labkit.host.processes import wire
from labkit.host.python_line import Line
from labkit.host.syscalls.ahead import Ahead
from labkit.host.syscalls.calls import Call, CallKind
from labkit.host.syscalls.faults import Fault

JOB = """
import json, shutil
from pathlib import Path
STORE = Path("store")
def start(stream):
    return stream.writeStream.format("json").option("path", str(STORE))
def read():
    return [json.loads(line) for path in sorted(STORE.glob("part-*.json")) for line in path.read_text().splitlines()]
def reset():
    shutil.rmtree(STORE, ignore_errors=True)
"""


@pytest.fixture
def file(nothing_is_left: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "job.py").write_text(JOB)
    return folder / "job.py"


def test_the_job_is_written_down_and_repeated_by_the_user_s_own_words(file: Path, tmp_path: Path) -> None:
    wanted = settings(f"{file}:start", watch=(str(tmp_path / "elsewhere"),), batches=2)
    made = as_pipeline(wanted, Adapter.STREAM, ("/a.jar",), tmp_path / "place")
    job = wire.decode((tmp_path / "place" / "job.json").read_bytes(), PlainJob)
    assert (job.file, job.name, job.jars) == (str(file), "start", ["/a.jar"])
    assert len(list((tmp_path / "place" / "input").iterdir())) == 4
    assert made.watched == (file.parent, tmp_path / "elsewhere", job.checkpoint)
    assert str(made.subject) == "job.py:start"
    assert made.command("rename a #1") == (
        f"labkit crashtest {file}:start --watch {tmp_path / 'elsewhere'} --only 'rename a #1' --batches 2"
    )


def test_only_the_usual_limit_is_raised_for_spark_and_no_run_is_made_beside_another(file: Path, tmp_path: Path) -> None:
    limits = {}
    for limit in (20, 30, 40):
        made = as_pipeline(settings(f"{file}:start", limit=limit), Adapter.STREAM, (), tmp_path / str(limit))
        limits[limit] = made.limit
        assert how_many(made) == 1
    assert limits == {20: 20, 30: 120, 40: 40}


def test_a_folder_that_contains_the_temporary_one_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkpoint would have another name there, and everything that Spark writes would count."""
    place = file.parent / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    with (
        pytest.raises(InvalidInput, match="set TMPDIR to a folder outside"),
        kernel_campaign(settings(f"{file}:start")),
    ):
        pass
    assert list(place.iterdir()) == []


@pytest.mark.usefixtures("java")
def test_a_store_that_nobody_empties_is_refused(file: Path) -> None:
    file.write_text(JOB.partition("def reset")[0])
    wanted = settings(f"{file}:start")
    with pytest.raises(InvalidInput, match="write a function reset"), kernel_campaign(wanted):
        pass


def test_a_reset_leaves_neither_store_nor_checkpoint(file: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    made = as_pipeline(settings(f"{file}:start"), Adapter.STREAM, (), place)
    left = [place / "checkpoint", place / "scratch-1", Path("store"), place / "input"]
    for folder in left:
        folder.mkdir(exist_ok=True)
    with HelperCommands(made, tmp_path, {}) as helpers:
        helpers.reset()
    assert [folder.exists() for folder in left] == [False, False, False, True]


ENGINE = ("create checkpoint/offsets/x", "rename checkpoint/offsets/x checkpoint/offsets/0")
SINK = ("create store/a", "write store/a", "rename store/a store/b")
COMMIT = ("create checkpoint/commits/x", "rename checkpoint/commits/x checkpoint/commits/0")


def effects(place: Path, *said: str) -> list[Effect]:
    namer = Namer([place])
    found = []
    for number, one in enumerate(said):
        kind, *names = one.split()
        paths = [str(place / name) for name in names] if kind != "send" else ["", *names]
        call = Call(number, 1, 1, CallKind(kind), kind, *paths, *[""] * (2 - len(paths)), 0, 0.0)
        found.append(namer.name(call))
    return found


@pytest.mark.parametrize(
    ("at", "left"),
    [
        ("create checkpoint/offsets/x #1", (0,)),
        ("rename store/b #1", (0,)),
        ("create checkpoint/commits/x #1", ()),
        ("rename checkpoint/commits/<n> #1", ()),
        ("create store/a #2", (1,)),
        ("rename checkpoint/commits/<n> #2", ()),
        ("unlink store/b #1", ()),
        ("exit", ()),
        ("an effect of a recovery", ()),
    ],
)
def test_a_batch_is_unfinished_as_long_as_a_file_of_the_sink_is_to_change(
    tmp_path: Path, at: str, left: tuple[int, ...]
) -> None:
    log = effects(tmp_path, *(ENGINE + SINK + COMMIT) * 2, "unlink store/b", "exit")
    assert at in [each.name for each in log] or not left
    place = tmp_path / "checkpoint"
    pipeline = SinkPipeline(pipeline="true", read_command="true", checkpoint=place, folder=tmp_path, rows=generate(2))
    assert pipeline.unfinished(log, at) == left


def test_a_file_of_the_sink_with_the_name_of_one_of_spark_s_counts(tmp_path: Path) -> None:
    spark = tmp_path / "place" / "checkpoint"
    pipeline = SinkPipeline(pipeline="true", read_command="true", checkpoint=spark, folder=tmp_path)
    namer = Namer([spark, tmp_path], unnamed=tmp_path)
    calls = (Call(1, 1, 1, CallKind.MKDIR, "mkdir", str(path / "commits"), "", 0, 0.0) for path in (spark, tmp_path))
    own, other = map(namer.name, calls)
    same = namer.name(Call(1, 1, 1, CallKind.MKDIR, "mkdir", str(tmp_path / "checkpoint" / "commits"), "", 0, 0.0))
    made = [each for each in (own, other, same) if each]
    assert len({each.where for each in made}) == 3
    assert pipeline.immaterial(made) == pipeline.minor(made) == {"checkpoint/commits"}


@pytest.mark.parametrize(("name", "is_seen"), [("a.crc", True), (".a.crc", False), ("a.pyc", False), ("a", True)])
def test_only_hadoop_s_own_checksums_are_ignored(tmp_path: Path, name: str, is_seen: bool) -> None:
    call = Call(1, 1, 1, CallKind.CREATE, "openat", str(tmp_path / "export" / name), "", 0, 0.0)
    assert (Namer([tmp_path], IGNORED).name(call) is not None) is is_seen


def test_a_quick_test_kills_where_a_file_is_empty(tmp_path: Path) -> None:
    """A position file that is overwritten in place is empty between the two calls."""
    overwritten = ("truncate position", "write position", "write log")
    log = effects(tmp_path, *(*ENGINE, *overwritten, *COMMIT) * 3, "exit")
    chosen = [point.name for point in choose(log, {"write log #3"}, QUICK_SINK.points)]
    assert "write position #3" in chosen


def test_messages_to_a_server_do_not_say_whether_a_batch_is_unfinished(tmp_path: Path) -> None:
    """The last one may say goodbye only."""
    log = effects(tmp_path, *ENGINE, "send 127.0.0.1:1", *COMMIT)
    pipeline = SinkPipeline(pipeline="true", read_command="true", checkpoint=tmp_path / "checkpoint", folder=tmp_path)
    assert pipeline.unfinished(log, log[0].name) == ()
    assert pipeline.unjudged(log) == ("precommitted_read",)
    assert pipeline.unjudged(effects(tmp_path, *ENGINE, *SINK, *COMMIT)) == ()


BY_BATCH = (
    APPEND.replace('STORE = Path("rows.jsonl")', 'STORE = Path("store")')
    .replace(
        """    with STORE.open("a") as file:
        file.write(""",
        """    STORE.mkdir(exist_ok=True)
    part = STORE / "part"
    part.write_text(""",
    )
    .replace("rows))\n", 'rows)); part.rename(STORE / f"{batch}")\n', 1)
)
"""Overwrites the file of the batch's number: right after each crash, wrong for a second query."""


@pytest.mark.slow
@pytest.mark.spark
def test_what_identifies_a_batch_is_tried(file: Path, tmp_path: Path) -> None:
    """Another query numbers its batches from 0 again; a source may give other rows for a number."""
    file.write_text(
        BY_BATCH.replace("STORE.unlink(missing_ok=True)", "shutil.rmtree(STORE, ignore_errors=True)")
        .replace("STORE.read_text().splitlines()]", "path.read_text().splitlines()]")
        .replace("for line in path", "for path in sorted(STORE.glob('[0-9]*')) for line in path")
    )
    broken = dict.fromkeys(("fresh_checkpoint", "two_queries", "other_rows"), ("lost",))
    wanted = settings(f"{file}:sink", batches=2, seconds=900)
    with kernel_campaign(wanted, tmp_path / "out") as running:
        running.healthy()
        jobs = {job.id: job for job in running.jobs()}
        names = ("fresh_checkpoint", "two_queries", "other_rows", "copied_checkpoint", "new_input")
        results = [running.run(jobs[name]) for name in names]
        print(running.report().text())
    assert {each.id: each.unknown for each in results if each.unknown} == {}
    assert {each.id: tuple(set(each.violated) & {"lost", "duplicate"}) for each in results if each.violated} == broken
    assert [each.id for each in results if each.group is Group.CONDITION] == ["other_rows"]


@pytest.mark.slow
@pytest.mark.spark
def test_a_large_batch_is_cut_between_its_commits(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reader makes the tables, so each run begins with a reading: else an effect would be another one in each."""
    monkeypatch.setenv("SINK_STORE", str(file.parent / "store"))
    shutil.copy(Path(__file__).parents[2] / "data" / "sinks" / "wrong_chunks.py", file)
    wanted = settings(f"{file}:write_batch", quick=True, seconds=900)
    with kernel_campaign(wanted, tmp_path / "out") as running:
        running.healthy()
        places = [running.points[job.id].number for job in running.jobs() if job.group is Group.CRASH]
        assert places[0] == running.points_total, "with --seconds the most important point comes first, here the end"
        assert places != sorted(places, reverse=True)
        results = [running.run(job) for job in running.further.last_jobs()]
        assert running.harness.starter.__self__._waiting == [], "no session of Spark waits for a run that never comes"
    assert {each.id: each.unknown for each in results if each.unknown} == {}
    assert results[0].violated == ()
    assert not any("checkpoint/" in each.id for each in results), "these are not places of the sink"
    assert any("duplicate" in each.violated for each in results[1:])


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.variant
def test_the_first_test_makes_a_class_data_archive(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file.write_text(BY_BATCH)
    told: list[str] = []
    for times, only_lists in ((0, True), (1, False), (1, False)):
        with kernel_campaign(
            settings(f"{file}:sink"), tmp_path / "out", lambda _, what: told.append(what), only_lists=only_lists
        ):
            pass
        assert sum("class-data archive" in each for each in told) == times
        assert (find_archive(java_for_spark()) is not None) == bool(times)


SWALLOWS = """
import json, os
def sink(frame, batch_id):
    rows = [row.asDict() for row in frame.collect()]
    file = os.open(f"{batch_id}.draft", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(file, json.dumps(rows).encode())
    try:
        os.fsync(file)
    except OSError:
        return
    finally:
        os.close(file)
    os.replace(f"{batch_id}.draft", f"{batch_id}.json")
def read():
    names = [name for name in os.listdir() if name.endswith(".json")]
    return [row for name in sorted(names) for row in json.load(open(name))]
def reset():
    for name in os.listdir():
        if name.endswith((".draft", ".json")):
            os.remove(name)
"""
"""A sink for which a batch is done although its sync failed."""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "under"),
    [
        (SWALLOWS, "at best at-most-once, although the command ended well (2 of 2 calls)"),
        pytest.param(
            SWALLOWS.replace("return\n    finally", "raise\n    finally"),
            "withstood (2 of 2 calls)",
            marks=pytest.mark.variant,
        ),
    ],
    ids=["swallows", "raises"],
)
def test_a_sync_of_a_sink_fails(file: Path, text: str, under: str) -> None:
    file.write_text(text)
    report = crash_test(f"{file}:sink", fault=["fsync"], only=["fsync"], batches=2, seconds=900)
    assert dict(report.fault_rows())["under fsync"] == under
    assert report.claim.strength is Strength.UNKNOWN


def test_a_fault_is_refused_where_no_call_is_held(file: Path, tmp_path: Path) -> None:
    made = as_pipeline(settings(f"{file}:start", fault=["eio"], grace=3), Adapter.STREAM, (), tmp_path / "place")
    assert (made.faults, made.grace) == ((Fault.EIO,), 3)
    without = replace(made, unwatchable="This machine has no ptrace.")
    with pytest.raises(InvalidInput, match="--fault: on this machine labkit cannot"), pipeline_campaign(without):
        pass


@pytest.mark.spark
def test_a_session_that_cannot_start_is_told_in_one_sentence(file: Path, tmp_path: Path) -> None:
    file.write_text(APPEND)
    wanted = settings(f"{file}:sink", conf=("spark.driver.extraJavaOptions=-XX:+NoSuchOption",))
    with (
        kernel_campaign(wanted, tmp_path / "out") as running,
        pytest.raises(LabError, match=r"Spark could not be started.*Could not create the Java"),
    ):
        running.healthy()


REMEMBERS = APPEND.replace(
    "def sink(df, batch):",
    "SEEN = set()\ndef sink(df, batch):\n    if batch in SEEN:\n        return\n    SEEN.add(batch)",
)
"""Remembers a batch in its process only: a session that another run used must not know it."""
IN_WORKERS = """
import json
from pathlib import Path
STORE = Path("rows.jsonl")
SEEN = set()
class sink:
    def process(self, row):
        if row.id not in SEEN:
            SEEN.add(row.id)
            with STORE.open("a") as file:
                file.write(json.dumps(row.asDict()) + "\\n")
def read():
    return [json.loads(line) for line in STORE.read_text().splitlines()] if STORE.exists() else []
def reset():
    STORE.unlink(missing_ok=True)
"""
LEAVES = REMEMBERS.replace("    SEEN.add(batch)", "    SEEN.add(batch)\n    atexit.register(print)").replace(
    "import json", "import atexit, json"
)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    ("text", "is_kept"),
    [pytest.param(IN_WORKERS, True, marks=pytest.mark.variant), (LEAVES, False)],
    ids=["workers", "left"],
)
def test_a_session_begins_another_run_only_if_the_sink_left_nothing(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, is_kept: bool
) -> None:
    file.write_text(text)
    kept: list[bool] = []
    watch = Ahead.watch
    monkeypatch.setattr(Ahead, "watch", lambda self, *a, **k: (watch(self, *a, **k), kept.append(self.is_alive))[0])
    with kernel_campaign(settings(f"{file}:sink", batches=2, seconds=900), tmp_path / "out") as running:
        running.healthy()
        jobs = {job.id: job for job in running.jobs()}
        for name in ("rename checkpoint/commits/<n> #1", "rename checkpoint/commits/<n> #2"):
            result = running.run(jobs[name])
            assert (result.violated, result.unknown) == (("duplicate",), "")
        assert running.run(jobs["fresh_checkpoint"]).violated == ()
    assert any(kept) is is_kept


def test_a_large_batch_counts_as_tried_only_if_one_was_run() -> None:
    """A sink that commits every thousand rows is wrong with a large batch alone."""
    pipeline = SinkPipeline(pipeline="true", read_command="true", rows=generate(3))
    right = judge([], History([]))
    runs = [Result("large", "a large batch", Group.LARGE, unknown="no answer"), Result("a", "a", Group.CRASH, right)]
    assert "batches of more than 10 rows" in pipeline.untested(runs)
    assert "batches of more than 3000 rows" in pipeline.untested([*runs, Result("l", "l", Group.LARGE, right)])


def test_a_worker_of_spark_is_known_without_a_line_and_one_that_commits_is_no_task() -> None:
    """A task may have no line of the user's, as where the sink is an installed module, or a function `commit`."""

    def effect(number: int, *words: str) -> Effect:
        call = Call(number, 1, 1, CallKind.WRITE, "write", f"/f{number}", "", 1, 0.0, words=words)
        return Effect(call, f"f{number}", 1)

    daemon = ("python3", "-m", "pyspark.daemon")
    made = [
        effect(1, "python3", "-m", "labkit.crashtest.harness.plain_job", "run", "job.json"),
        effect(2, *daemon, "pyspark.worker"),
        effect(3, *daemon, "pyspark.sql.worker.python_streaming_sink_runner"),
        effect(4),
    ]
    assert [each.where for each in of_tasks(made)] == ["f2"]


def test_a_task_that_died_alone_is_told_as_that() -> None:
    run = PipelineRun("retry", "a task dies alone", Path())
    run.crashes.append({"point": "write rows #1", "signal": 9, "killed": [7], "at": 12.0, ALONE: True})
    assert text(lines(run)) == ("   0.00 s  labkit  SIGKILL to one process alone before write rows #1",)
    run.crashes[0].pop(ALONE)
    assert "every process of the job" in text(lines(run))[0]


def test_a_run_with_a_large_batch_compares_no_files_and_reads_few_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would take hours if the sink writes a file for each row."""
    for name in ("_query", "_running"):
        monkeypatch.setattr(SinkVariants, name, lambda *_: nullcontext())
    monkeypatch.setattr(sink_variants, "_expecting", lambda *_: nullcontext())
    variants = object.__new__(SinkVariants)
    variants.job = SimpleNamespace(checkpoint=tmp_path)
    usual = Lines()
    harness, run = SimpleNamespace(lines=usual), PipelineRun("large", "", tmp_path)
    with variants._with_large(harness, run):
        assert run.files is None
        assert harness.lines._is_large
    assert harness.lines is usual


def test_a_point_is_also_known_by_its_line() -> None:
    line = Line("/a/job.py", 16, "put")
    point = Point("write rows #2", 3, line=line)
    assert point.is_called("write rows #2")
    assert point.is_called("job.py:16")
    assert not point.is_called("job.py:1")
    assert not Point("exit", 4).is_called("job.py:16")
