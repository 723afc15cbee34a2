"""Spark's own Kafka source on a real broker: crashed, restarted, with partitions that appear, and a group that lies."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from choosing import variant_but
from conducted import Outcomes, conducted
from waiting import until

from labkit.core.errors import InvalidInput, ServiceUnavailable
from labkit.core.judge import Guarantee
from labkit.host.java import Java
from labkit.host.servers.kafka_jars import CONNECTOR
from labkit.runs.prepare import prepare
from labkit.runs.scenario import plan
from labkit.stores.kafka.input import InputTopic
from labkit.stores.kafka.transaction import Coordinators

pytestmark = pytest.mark.spark

WORDS = ["hello", "world", "hello", "moon", "hello", "moon"]

KAFKA_TO_KAFKA = {"job": "kafka", "sink": "two_phase", "store": "kafka", "order": "decision"}
CASES: dict[str, dict[str, Any]] = {
    "appended": {"job": "kafka", "crashes": ["sink.after_pre_commit@1"], "records_per_batch": 1, "commit_group": True},
    "planned": {"job": "kafka", "sink": "batch_marker", "store": "sqlite", "crashes": ["source.after_offset_log@0"]},
    "falsified": {
        **KAFKA_TO_KAFKA,
        "crashes": ["engine.after_commit_log@0", "sink.mid_commit@1"],
        "records_per_batch": 2,
        "commit_group": True,
        "between": "falsify-group",
    },
    "grown": {
        **KAFKA_TO_KAFKA,
        "order": "engine",
        "crashes": ["sink.after_pre_commit@0"],
        "records_per_batch": 3,
        "between": "add-partition",
    },
}


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("words") / "words.jsonl"
    path.write_text("".join(json.dumps({"word": word}) + "\n" for word in WORDS))
    return path


@pytest.fixture(scope="module")
def outcomes(kafka_address: str, words: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    scenarios = {name: plan(**case, input=words) for name, case in CASES.items()}
    return conducted(scenarios, tmp_path_factory.mktemp("source"))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_crash_was_one(name: str, outcomes: Outcomes) -> None:
    crashes = outcomes[name].crashes
    assert [f"{each['point']}@{each['batch']}" for each in crashes] == CASES[name]["crashes"]
    assert {each["signal"] for each in crashes} == {9}
    assert all(len(each["killed"]) > 3 for each in crashes)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["planned", "falsified", "grown"])
def test_every_record_comes_out_once(name: str, outcomes: Outcomes) -> None:
    verdict = outcomes[name].verdict
    assert (verdict.guarantee, verdict.rows) == (Guarantee.EXACTLY_ONCE, len(WORDS))
    assert dict(verdict.final.items()) == {"hello": 3, "moon": 2, "world": 1}


@pytest.mark.slow
def test_a_sink_that_cannot_take_back_doubles_the_batch_that_runs_again(outcomes: Outcomes) -> None:
    verdict = outcomes["appended"].verdict
    assert (verdict.guarantee, verdict.duplicate, verdict.unexpected) == (Guarantee.AT_LEAST_ONCE, (1,), ())


@pytest.mark.slow
def test_the_jobs_progress_is_in_its_checkpoint_and_the_group_only_follows(outcomes: Outcomes) -> None:
    outcome = outcomes["appended"]
    [crash] = outcome.crashes
    [partitions] = json.loads(outcome.checkpoint_file("offsets/1").splitlines()[-1]).values()
    assert partitions == crash["progress"]["planned"] == {"0": 2}
    assert crash["progress"]["finished"] == crash["progress"]["group"] == {"0": 1}
    end = json.loads(outcome.record.folder.evidence.read_text())["end"]["progress"]
    lines_aborted_and_marker = {"0": len(WORDS) + 2}
    assert list(end.values()) == [lines_aborted_and_marker] * 4


@pytest.mark.slow
def test_without_being_asked_no_group_is_told_anything(outcomes: Outcomes) -> None:
    assert outcomes["planned"].crashes[0]["progress"]["group"] == {}
    end = json.loads(outcomes["grown"].record.folder.evidence.read_text())["end"]["progress"]
    assert (end["group"], end["finished"]) == ({}, end["ends"])


@pytest.mark.slow
def test_a_falsified_group_changes_nothing(outcomes: Outcomes) -> None:
    """Slip B3. Had the job believed it, four records would have been lost, and then all of them doubled."""
    first, second = outcomes["falsified"].crashes
    all_of_it = {"0": len(WORDS) + 2}
    assert first["progress"]["group"] == first["progress"]["finished"] == {"0": 2}
    assert first["source"] == {"between": "falsify-group", "group": all_of_it}
    assert second["progress"]["group"] == second["progress"]["finished"] == {"0": 4}
    assert second["source"] == {"between": "falsify-group", "group": {"0": 0}}
    assert outcomes["falsified"].verdict.guarantee is Guarantee.EXACTLY_ONCE


@pytest.mark.slow
def test_a_partition_that_appears_between_two_drivers_is_read(outcomes: Outcomes) -> None:
    outcome = outcomes["grown"]
    [crash] = outcome.crashes
    assert crash["progress"]["planned"] == {"0": 3}
    assert crash["source"]["ends"].keys() == {"0", "1"}
    [begun] = json.loads(outcome.checkpoint_file("offsets/0").splitlines()[-1]).values()
    assert begun == {"0": 3}
    assert outcome.verdict.final["moon"] == 2, "the new word lives in the new partition"


@pytest.mark.slow
def test_topics_and_groups_are_gone_when_their_runs_are_judged(outcomes: Outcomes, kafka_address: str) -> None:
    coordinators = Coordinators(kafka_address)
    # The broker confirms that a topic is deleted before it has forgotten it.
    until(
        lambda: not any(name.startswith("labkit-") for name in coordinators.admin.list_topics()),
        "the end of the topics",
    )
    groups = [group["group_id"] for group in coordinators.admin.list_groups()]
    coordinators.close()
    assert not any(outcome.record.folder.source.joinpath("topic").exists() for outcome in outcomes.values())
    assert not [group for group in groups if group.endswith(".progress")]


GROWING = """
import json, sys, time
from pathlib import Path
from labkit.spark.jobs import keep_state, running_on_topic
from labkit.spark.options import State
from labkit.runs.layout import RunFolder
from labkit.runs.kafka_source import source_options
from labkit.spark.session import start_session
from labkit.spark.start import launch, open_checkpoint
from labkit.core.failpoints import Order
from labkit.core.strategies import Strategy
from labkit.stores import open_store
from labkit.stores.kafka.input import InputTopic

folder = RunFolder(Path(sys.argv[1]))
isolation = sys.argv[2]
scratch = folder.path / "scratch"
scratch.mkdir(parents=True)
topic = InputTopic(folder.source)
topic.fill(enumerate(["hello", "world"]))
spark = start_session("local[4]", scratch, 2, (scratch / "log").open("wb"), "kafka")
keep_state(spark, State.ROCKSDB)
options = source_options(folder, 1000) | {"kafka.isolation.level": isolation}
opened = open_checkpoint(
    folder.checkpoint, sink=Strategy.APPEND, order=Order.NONE, store="files", location=folder.store("files")
)
opened.recover()
records = spark.readStream.format("kafka").options(**options).load()
query = launch(running_on_topic(records), opened, every=0)

def rows():
    return [(row.offset, row.key, row.value) for row in open_store("files", folder.store("files")).history()]

def until(wanted):
    end = time.monotonic() + 120
    while not all(row in rows() for row in wanted):
        assert query.query.isActive, query.query.exception()
        assert time.monotonic() < end, rows()
        time.sleep(0.1)

first = [(0, "hello", 1), (1, "world", 1)]
until(first)
topic.fill(enumerate(["hello", "world", "hello", "moon"]), new_partition=True)
aborted = [(-1, "aborted", 2)] if isolation == "read_uncommitted" else []  # behind the lines, so maybe in a later batch
until([*first, (2, "hello", 2), (3, "moon", 1), *aborted])
query.query.stop()
print(json.dumps({"rows": rows(), "ends": topic.ends()}))
topic.destroy()
topic.close()
"""


@pytest.mark.variant
@pytest.mark.slow
@pytest.mark.parametrize("isolation", variant_but(["read_committed"], ["read_committed", "read_uncommitted"]))
def test_a_partition_that_appears_between_two_batches_is_read(
    isolation: str, kafka_address: str, tmp_path: Path
) -> None:
    """The query runs on; and what a writer aborted is read at read_uncommitted, which shows that it is there."""
    command = [sys.executable, "-c", GROWING, str(tmp_path / "run"), isolation]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=300, check=True)
    told = json.loads(done.stdout)
    rows = [tuple(row) for row in told["rows"]]
    aborted = [row for row in rows if row[1] == "aborted"]
    assert {(2, "hello", 2), (3, "moon", 1)} <= set(rows)
    assert len(aborted) == (2 if isolation == "read_uncommitted" else 0)
    assert len(rows) - len(aborted) == 4
    assert told["ends"].keys() == {"0", "1"}


@pytest.mark.slow
def test_an_input_that_was_cut_off_is_refused(kafka_address: str, tmp_path: Path) -> None:
    topic = InputTopic(tmp_path)
    (tmp_path / "homes").write_text('{"writing": true}')
    with pytest.raises(InvalidInput, match="start the run again"):
        topic.fill([(0, "hello")])


def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABKIT_KAFKA", "127.0.0.1:9")


def no_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = "-DproxySet=true -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=9 -Dhttps.proxyHost=127.0.0.1"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"{nowhere} -Dhttps.proxyPort=9")


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [(nobody_listens, "the Kafka broker does not answer"), (no_jars, "Spark's Kafka source is not installed")],
)
def test_what_is_missing_is_said_before_anything_is_made(
    missing: Callable[[pytest.MonkeyPatch], None],
    sentence: str,
    kafka_address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    missing(monkeypatch)
    with pytest.raises(ServiceUnavailable, match=sentence):
        prepare(plan(job="kafka"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_connectors_jars_are_checked_like_all_others(java: Java, tmp_path: Path) -> None:
    try:
        folder = CONNECTOR.find(java)
    except ServiceUnavailable as missing:
        pytest.skip(str(missing))
    assert CONNECTOR.sums().keys() == {path.name for path in folder.glob("*.jar")}
    assert {f"{name}-{version}.jar" for _, name, version in CONNECTOR.packages} == CONNECTOR.sums().keys()
