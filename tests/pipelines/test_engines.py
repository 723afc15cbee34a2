"""Pipelines of real systems: the table is whole, and what was expected of each is what the crash test says.

What each must show was written down before it was first crashed, in data/pipelines/engines/engines.toml. Pipelines that
need an environment of their own are run by hand (`make systems`): it has to be fetched and installed first. Their
recorded verdicts are compared here with what the table, the locks and the page say.
"""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import build_systems
import msgspec
import pytest
from choosing import variant_but
from pipeline_environments import ENVIRONMENTS, environment_folder, jar_sets
from pipeline_records import COUNTED, locked, masked, verdict, versions
from pipeline_runs import Prepared, expected_rows, prepared, spark_settings
from pipeline_verdicts import Verdict, chosen, not_run, verdicts
from pipelines import fits

from labkit.core.errors import InvalidInput
from labkit.core.judge import Guarantee
from labkit.teach.engine_pipelines import ENGINES, pipelines

TOOL = Path(__file__).parents[2] / "tools" / "pipelines.py"
READERS = {path.name for path in ENGINES.glob("read_*.py")}
SHARED = {"flink_job.py"}
"""What several pipelines import."""


def told(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(TOOL), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_pipeline_is_in_the_table_and_every_reader_is_used() -> None:
    programs = {path.name for path in ENGINES.glob("*.py")} - READERS - SHARED
    assert {each.program.name for each in pipelines().values()} == programs
    assert {each.reader for each in pipelines().values()} == READERS


@pytest.mark.parametrize("name", pipelines())
def test_what_is_expected_of_a_pipeline_is_a_verdict(name: str) -> None:
    each = pipelines()[name]
    assert each.guarantee in {guarantee.value for guarantee in Guarantee}
    weak = {"at-least-once": {"duplicate"}, "at-most-once": {"lost"}, "none": {"lost", "duplicate"}}
    assert set(each.axes) - {"stuck"} == weak.get(each.guarantee, set())
    assert bool(each.change) is bool(each.axes)
    assert bool(each.promise) is each.source.startswith("https://")
    assert each.why or not each.predicted
    assert set(each.packages) <= set(locked(each.environment))


@pytest.mark.parametrize("name", pipelines())
def test_whatever_a_pipeline_names_is_there(name: str, tmp_path: Path) -> None:
    each = pipelines()[name]
    sets = jar_sets()
    assert set(each.jars) <= set(sets)
    for environment in {each.environment, each.read_environment} - {"project"}:
        assert environment_folder(environment).name.startswith(environment)
    for jars in each.jars:
        there = {f"{package[1]}-{package[2]}.jar" for package in sets[jars].packages}
        assert there <= set(sets[jars].sums())
        assert sets[jars].transitive or set(sets[jars].sums()) == there
    settings = spark_settings(tmp_path, tmp_path, [Path("delta-spark_4.2.jar")])
    assert "DeltaSparkSessionExtension" in settings


def test_the_rows_of_the_input_are_the_rows_that_should_come_out() -> None:
    lines = [line for path in sorted((ENGINES / "orders").iterdir()) for line in path.read_text().splitlines()]
    assert lines == (ENGINES / "expected.jsonl").read_text().splitlines()
    assert len({row["id"] for row in expected_rows()}) == len(lines) == 9


def test_every_lock_holds_a_sum_for_each_package() -> None:
    for lock in ENVIRONMENTS.glob("*.lock"):
        packages = lock.read_text().replace("\\\n", "").splitlines()
        assert all("--hash=sha256:" in line for line in packages if "==" in line)


def test_an_environment_without_a_lock_is_refused() -> None:
    with pytest.raises(InvalidInput, match="There is no environment spark12"):
        environment_folder("spark12")


def test_an_unknown_pipeline_is_refused_in_one_sentence() -> None:
    done = told("spark_apend")
    assert done.returncode == 64
    assert done.stderr.startswith("There is no pipeline spark_apend; choose one of spark_")
    assert len(done.stderr.splitlines()) == 1


def test_without_a_name_the_pipelines_are_listed() -> None:
    done = told()
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(pipelines())


@pytest.mark.parametrize("name", pipelines())
def test_every_pipeline_names_a_place_where_a_kill_tells_most(name: str) -> None:
    assert pipelines()[name].shown_by


def test_the_address_of_the_broker_has_a_name_that_lasts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KAFKA", "127.0.0.1:9092")
    chosen = Prepared(pipelines()["flink_kafka_sink"], "true", "", tmp_path)
    assert [*map(chosen.named, chosen.telling())] == ["--only=send 127.0.0.1:9092 EndTxn #2"]


def test_the_address_of_postgres_has_a_name_that_lasts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PGHOST", str(tmp_path))
    chosen = Prepared(pipelines()["langgraph_postgres_if_next"], "true", "", tmp_path)
    assert chosen.named("send <postgres> Bind #30") == f"send unix:{tmp_path.resolve()}/.s.PGSQL.5432 Bind #30"


TRIED = ("spark_file_sink_plain", "kafka_consumer", "bytewax_file_sink")
"""Pipelines that a test really kills: Spark's own file sink, Kafka without Spark, and a small system.

All but Kafka are variants: the first one takes minutes, the last one is installed first. `make systems` tests the rest.
"""


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("watched_calls")
@pytest.mark.parametrize("name", variant_but(["kafka_consumer"], TRIED))
def test_a_pipeline_is_what_was_expected_of_it(name: str) -> None:
    pipeline = pipelines()[name]
    with prepared(pipeline) as ready:
        points = list(map(ready.named, pipeline.shown_by))
        words = ready.telling()
        report = ready.report(words)
    runs = {run["id"]: run["unknown"] for run in report["runs"]}
    assert {point: runs[point] for point in points if runs[point]} == {}
    record = verdict(pipeline, report, words, 0)
    assert fits(pipeline, record), record


# The recorded verdicts.


def recorded(name: str, **changed: object) -> Verdict:
    return msgspec.structs.replace(verdicts()[name], **changed)


def test_a_verdict_fits_only_what_was_expected() -> None:
    append, right = pipelines()["dlt_append"], recorded("dlt_append")
    assert fits(append, right)
    assert not fits(append, recorded("dlt_append", guarantee="unknown"))
    assert not fits(append, recorded("dlt_append", violated=["duplicate"]))
    assert not fits(append, recorded("dlt_append", guarantee="exactly-once", violated=[]))
    assert not fits(replace(append, guarantee="at-most-once", axes=("lost",)), right)


def test_a_record_says_of_a_report_what_the_report_says() -> None:
    claim = {"strength": "refuted", "at_best": "at-least-once"}
    axes = {"lost": "not seen", "duplicate": "violated", "stuck": "unknown", "aborted_read": "violated"}
    weakest = {"title": "before send 127.0.0.1:40123 OffsetCommit #2", "because": "twice"}
    runs = [{"unknown": ""}, {"unknown": "not reached"}]
    coverage = {"found": 9, "tried": 2}
    rest = {"guarantee": "not exactly-once, at best at-least-once", "runs": runs, "coverage": coverage}
    report = {"claim": claim, "axes": axes, "weakest": weakest, **rest}
    record = verdict(pipelines()["kafka_consumer"], report, ["--only=send 127.0.0.1:40123 OffsetCommit #2"], 3.4)
    assert (record.guarantee, record.violated, record.unknown) == ("at-least-once", ["duplicate"], 1)
    assert record.weakest == "before send <kafka> OffsetCommit #2"
    assert record.options == ["--only=send <kafka> OffsetCommit #2"]
    unknown = verdict(pipelines()["kafka_consumer"], report | {"claim": claim | {"strength": "unknown"}}, [], 0)
    assert unknown.guarantee == "unknown"


@pytest.mark.parametrize("name", verdicts())
def test_a_recorded_verdict_is_the_expected_one_of_the_versions_in_the_lock(name: str) -> None:
    """A changed lock makes this red until `tools/pipelines.py NAME --keep` has been run with the new versions."""
    record, pipeline = verdicts()[name], pipelines()[name]
    assert fits(pipeline, record)
    assert record.versions == versions(pipeline)
    assert record.tried or record.strength != "sampled"
    assert set(record.violated) <= set(COUNTED)
    assert bool(record.weakest) is bool(record.violated)
    assert masked(str(record)) == str(record)


def test_every_row_of_the_page_comes_from_a_record() -> None:
    text = build_systems.PAGE.read_text(encoding="utf-8")
    assert text == build_systems.page(text), build_systems.STALE
    by_hand = text.replace("| at best at-least-once (duplicate) |", "| not refuted |")
    assert by_hand != text == build_systems.page(by_hand)
    rows = [row for power_cut in (False, True) for row in build_systems.short(power_cut=power_cut).splitlines()[2:]]
    assert len(rows) == len(verdicts()) >= MOST_WANTED
    assert len({pipelines()[name].system for name in verdicts()}) >= SYSTEMS_WANTED
    assert set(not_run()).isdisjoint(each.system for each in pipelines().values())


MOST_WANTED = 40
"""The page shows at least so many verdicts."""
SYSTEMS_WANTED = 20
"""They are on at least so many systems."""


def test_of_rows_that_nobody_can_read_the_page_claims_nothing() -> None:
    stuck = recorded("pyiceberg_power_cut")
    assert (stuck.guarantee, stuck.violated) == ("unknown", ["stuck"])
    assert build_systems.claim(stuck) == stuck.claim == "stuck after a crash; of its rows: unknown"


def test_a_system_stands_for_all_its_pipelines() -> None:
    assert [each.name for each in chosen("dlt,kafka_consumer")] == ["dlt_append", "dlt_merge", "kafka_consumer"]
    assert [each.name for each in chosen("delta-lake")] == ["delta_append", "delta_txn", "delta_sink"]
    assert [each.name for each in chosen("all")] == list(pipelines())


def test_a_lock_names_no_address_of_an_index() -> None:
    for lock in ENVIRONMENTS.glob("*.lock"):
        assert "://" not in lock.read_text(encoding="utf-8")
