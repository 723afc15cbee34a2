"""Pipelines of real engines: the table is whole, and what was expected of each is what the crash test says.

What each must show was written down before it was first crashed, in data/pipelines/engines/engines.toml. Pipelines that
need an environment of their own are run by hand (`make pipelines`): it has to be fetched and installed first.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from choosing import variant_but
from pipeline_environments import ENVIRONMENTS, environment_folder, jar_sets
from pipeline_runs import Prepared, expected_rows, prepared, spark_settings
from pipelines import fits, measured

from labkit.core.errors import InvalidInput
from labkit.core.judge import Guarantee
from labkit.crashtest.engines import ENGINES, pipelines
from labkit.host.syscalls.support import supported

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
    weak = {"at-least-once": {"duplicate"}, "at-most-once": {"lost"}}
    assert set(each.axes) == weak.get(each.guarantee, set())


@pytest.mark.parametrize("name", pipelines())
def test_whatever_a_pipeline_names_is_there(name: str, tmp_path: Path) -> None:
    each = pipelines()[name]
    sets = jar_sets()
    assert set(each.jars) <= set(sets)
    for environment in {each.environment, each.read_environment} - {"project"}:
        assert environment_folder(environment).name.startswith(environment)
    for jars in each.jars:
        there = {f"{package[1]}-{package[2]}.jar" for package in sets[jars].packages}
        assert set(sets[jars].sums()) == there
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


HERE = ("spark_file_sink_plain", "kafka_consumer")
"""A right and a wrong pipeline for which nothing has to be installed: Spark's own file sink, and Kafka without Spark.

The first one takes minutes and is a variant; `make pipelines` tests the others, too.
"""


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("java")
@pytest.mark.parametrize("name", variant_but(["kafka_consumer"], HERE))
def test_a_pipeline_is_what_was_expected_of_it(name: str) -> None:
    if why := supported():
        pytest.skip(why)
    pipeline = pipelines()[name]
    with prepared(pipeline) as chosen:
        points = list(map(chosen.named, pipeline.shown_by))
        report = chosen.report(chosen.telling())
    runs = {run["id"]: run["unknown"] for run in report["runs"]}
    assert {point: runs[point] for point in points if runs[point]} == {}
    assert fits(pipeline, report), measured(pipeline, report, 0)


def report(guarantee: str, *violated: str) -> dict[str, Any]:
    axes = dict.fromkeys(violated, "violated")
    return {"claim": {"strength": "complete", "at_best": guarantee}, "axes": axes}


def test_a_report_fits_only_what_was_expected() -> None:
    append = pipelines()["spark_append_parquet"]
    assert fits(append, report("at-least-once", "duplicate", "aborted_read"))
    assert not fits(append, report("unknown", "duplicate"))
    assert not fits(append, report("exactly-once"))
    assert not fits(append, report("at-least-once", "duplicate", "stuck"))
    assert not fits(append, report("at-most-once", "lost"))
