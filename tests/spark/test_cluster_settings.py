"""What a driver and a cluster are started with and what is refused, before anything is started."""

import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from labkit.core.errors import InvalidInput, JobFailed
from labkit.core.failpoints import Crash, FailPoint, Order
from labkit.core.strategies import Strategy
from labkit.host.java import Java
from labkit.host.processes.executors import Executors
from labkit.runs.conduct import Setup, _runs_of_next_driver
from labkit.runs.crash import finish
from labkit.runs.prepare import prepare
from labkit.runs.scenario import plan
from labkit.spark import cluster, jvm, reach, start
from labkit.spark import master as masters
from labkit.spark.adapters.data_source import SinkOptions
from labkit.spark.reach import Armed, Reaction, Turn

URL = "spark://127.0.0.1:7077"
JAVA = Java(Path("/usr/bin/java"), 17, "PATH", "17.0.1")


@pytest.mark.parametrize(
    ("master", "local", "loopback"),
    [
        ("local[16]", True, True),
        ("local", True, True),
        ("local-cluster[2,1,1024]", False, True),
        (URL, False, True),
        ("spark://localhost:7077,127.0.0.1:7078", False, True),
        ("spark://localhost:7077,there:7077", False, False),
    ],
)
def test_local_means_threads_of_the_driver(master: str, local: bool, loopback: bool):
    assert (masters.is_local(master), masters.is_loopback(master)) == (local, loopback)
    assert ("spark.driver.host" in jvm.every_run(master, Path("scratch"), 3)) is loopback
    assert bool(cluster.executors(master, JAVA, "")) is not local


def test_executors_get_the_way_to_the_lab_and_to_the_stores_and_no_small_run_setting():
    environment = {"LABKIT_POSTGRES": "postgresql://me:secret@there/db", "HOME": "/root"}
    told = cluster.executors(URL, JAVA, "/lab", jvm.PROFILES["cluster"].executors, environment)
    assert told["spark.executorEnv.PYTHONPATH"] == "/lab"
    assert told["spark.executorEnv.LABKIT_POSTGRES"] == environment["LABKIT_POSTGRES"]
    assert "spark.executorEnv.HOME" not in told
    assert "-XX:TieredStopAtLevel=1" in told["spark.executor.extraJavaOptions"]
    assert jvm.PROFILES["cluster"].configuration == {}
    bulk = cluster.executors(URL, JAVA, "/lab", jvm.PROFILES["bulk"].executors, environment)
    assert "Tiered" not in bulk["spark.executor.extraJavaOptions"]


def test_what_executors_are_told_is_on_no_command_line(tmp_path: Path):
    told = {"spark.executorEnv.LABKIT_POSTGRES": "postgresql://me:secret@there/db"}
    command = jvm._command(JAVA, tmp_path, jvm.PROFILES["cluster"], told)
    assert "secret" not in " ".join(command)
    properties = Path(command[command.index("--properties-file") + 1])
    assert stat.S_IMODE(properties.stat().st_mode) == 0o600
    assert "secret" in properties.read_text()


def test_a_properties_file_keeps_every_sign():
    written = cluster.to_properties({"a": "x = y:#!\\ \n", "b": "grün 𝄞"})
    assert written == "a=x\\ \\=\\ y\\:\\#\\!\\\\\\ \\n\nb=gr\\u00fcn\\ \\ud834\\udd1e\n"


def test_speculation_is_refused_where_rows_would_mix():
    on: Callable[[str, str], str | None] = {"spark.speculation": "true"}.get
    cluster.check_speculation(True, "two_phase", on)
    cluster.check_speculation(False, "append", {}.get)
    with pytest.raises(InvalidInput, match=r"spark\.speculation is on, but the sink append"):
        cluster.check_speculation(False, "append", on)


@pytest.mark.parametrize(("master", "retries"), [(URL, True), ("local[4]", False)])
def test_a_query_is_launched_knowing_whether_its_tasks_are_tried_again(master: str, retries: bool, tmp_path: Path):
    opened = start.open_checkpoint(
        tmp_path / "checkpoint", sink=Strategy.APPEND, order=Order.NONE, store="files", location=tmp_path / "files"
    )
    conf: dict[str, str] = {}
    spark = SimpleNamespace(sparkContext=SimpleNamespace(master=master, getConf=lambda: conf))
    options = start._for_attempts(opened, spark).options
    assert options.retries is retries
    assert SinkOptions.from_text(options.to_text()) == options
    conf["spark.speculation"] = "true"
    with pytest.raises(InvalidInput, match="the sink append does not support it"):
        start._for_attempts(opened, spark)
    opened.lock.release()


def test_a_file_of_one_host_is_refused_on_several():
    cluster.check_store("sqlite", {"here"})
    cluster.check_store("postgres", {"here", "there"})
    with pytest.raises(InvalidInput, match=r"--store sqlite: .* on the hosts here, there"):
        cluster.check_store("sqlite", {"there", "here"})


def test_tasks_are_tried_again_everywhere_but_on_threads():
    assert [masters.retries(each) for each in (URL, "local-cluster[2,1,1024]", "local[4,3]", "local[4]", "local")] == [
        *[True] * 3,
        *[False] * 2,
    ]


def test_a_standby_is_refused_on_a_cluster(tmp_path: Path):
    run = prepare(plan(master=URL, crashes=["sink.after_pre_commit@0"]), tmp_path / "run")
    with pytest.raises(InvalidInput, match=r"--standby: .* would take the cluster's cores"):
        finish(run, setup=Setup(standby=True))


def test_on_a_cluster_a_task_that_waits_has_a_driver_of_its_own(tmp_path: Path):
    points = ["sink.after_pre_commit", "sink.mid_write", "engine.after_commit_log", "sink.mid_write"]
    runs = [prepare(plan(master=URL, crashes=[point]), tmp_path / str(n)) for n, point in enumerate(points)]
    here = prepare(plan(crashes=["sink.mid_write"]), tmp_path / "here")
    assert list(_runs_of_next_driver([*runs, here], 9)) == [runs[0], runs[2]]
    assert list(_runs_of_next_driver([runs[1], runs[3], here], 9)) == [runs[1]]
    assert list(_runs_of_next_driver([here, *runs], 9)) == [here]


def test_only_an_executor_of_the_application_is_killed():
    with pytest.raises(JobFailed, match="is not an executor of app-1"):
        Executors("app-1").kill(1)


def test_the_point_of_a_killed_executor_triggers_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    parked = []
    monkeypatch.setattr(reach, "park", lambda: parked.append(1))
    arming = Armed(Crash(FailPoint.MID_WRITE), tmp_path / "reached-1.json", Reaction.WAIT_FOR_ITS_OWN_DEATH)
    assert Armed.from_json(arming.to_json()) == arming
    arming.reach(FailPoint.MID_WRITE, 0)
    arming.reach(FailPoint.MID_WRITE, 0)
    assert parked == [1]
    before = Turn(arming.evidence, 0, 2, batch_dies=False)
    before.done()
    assert not list(Turn(arming.evidence, 1, 2, batch_dies=False).take(iter(())))


SHORT_LIVED = {"TieredStopAtLevel", "UseSerialGC", "Xmx1g"}
SMALL_ONLY = {*SHORT_LIVED, "NO_CODEGEN", "wholeStage", "labkit.spark.fast.daemon"}


def command(profile: str, scratch: Path) -> str:
    """The command, and the file of properties that it names."""
    words = jvm._command(JAVA, scratch, jvm.PROFILES[profile], jvm.every_run("local[2]", scratch, 3))
    return " ".join([*words, Path(words[words.index("--properties-file") + 1]).read_text()])


@pytest.mark.parametrize(("profile", "has"), [("small", SMALL_ONLY), ("bulk", set()), ("cluster", SHORT_LIVED)])
def test_no_setting_of_spark_for_small_runs_is_among_those_for_bulk_or_a_cluster(
    profile: str, has: set[str], tmp_path: Path
):
    given = command(profile, tmp_path)
    assert {name for name in SMALL_ONLY if name in given} == has


def test_local_files_of_spark_lie_in_the_folder_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Also if the user has set the variable. The setting of this name would only give a warning in each driver."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/elsewhere")
    assert jvm._environment(tmp_path)["SPARK_LOCAL_DIRS"] == str(tmp_path)
    assert "spark.local.dir" not in jvm.every_run("local[2]", tmp_path, 3)


def test_the_class_path_names_no_folder_of_the_run(tmp_path: Path):
    words = jvm._command(JAVA, tmp_path, jvm.PROFILES["small"], jvm.every_run("local[2]", tmp_path, 3))
    assert str(tmp_path) not in words[words.index("-cp") + 1]


def test_an_archive_is_used_where_there_is_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jvm, "find_archive", lambda _: Path("/cache/classes.jsa"))
    assert jvm.use_archive(JAVA)[0] == "-XX:SharedArchiveFile=/cache/classes.jsa"
    monkeypatch.setattr(jvm, "find_archive", lambda _: None)
    assert jvm.use_archive(JAVA) == []
