"""Real Spark, real SIGKILL: every wrong sink is caught with the right diagnosis, and every right one passes.

What each must show was written down before it was run, in data/sinks/expected.toml.
"""

import json
import os
import runpy
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from build_sinks import PAGE, SINKS, expected, page
from crashtest_processes import left_over
from thinning import fast_and_one_in

from labkit.core.judge import Outcome
from labkit.crashtest.campaign import crash_test
from labkit.crashtest.report import Report
from labkit.crashtest.verdict import AXES

FAST = ("wrong_marker_after",)
"""Those that every run of the tests has; the others are slow."""

WHOLE = ("wrong_partitions", "right_marker")
"""Those of which everything is run that `--quick` runs, with what shows enough among it."""


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SINK_STORE", str(tmp_path / "store"))
    return tmp_path / "store"


@pytest.fixture
def server(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The server that a sink needs, if it needs one."""
    needs = expected()[request.getfixturevalue("name")].get("needs")
    if needs == "postgres":
        monkeypatch.setenv("SINK_POSTGRES", request.getfixturevalue("postgres"))
    if needs == "kafka":
        broker = request.getfixturevalue("kafka")
        monkeypatch.setenv("SINK_KAFKA", broker.status().address)
        monkeypatch.setenv("SINK_TOPIC", new_topic(broker.status().address))


def new_topic(address: str) -> str:
    """A topic with one partition: the broker makes none by itself."""
    from kafka.admin import KafkaAdminClient, NewTopic

    name = f"crashtest-{os.getpid()}-{time.time_ns()}"
    admin = KafkaAdminClient(bootstrap_servers=address)
    admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1)])
    admin.close()
    return name


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    yield
    assert left_over() == []


def violated(report: Report) -> set[str]:
    return {
        axis
        for axis, outcome in report.summary.axes.items()
        if outcome is Outcome.VIOLATED
    }


def check(name: str, report: Report) -> None:
    """Compares a report with what was expected of the sink."""
    print(report.text())
    wanted = expected()[name]
    unknown = {each.id: each.unknown for each in report.summary.unknown()}
    assert wanted.get("seeing", "") in unknown.pop("seeing", "")
    assert unknown == {}
    assert report.summary.guarantee == wanted["guarantee"]
    assert violated(report) - set(wanted.get("sometimes", ())) == set(wanted["axes"])
    assert (report.diagnosis.code if report.diagnosis else "") == wanted["pattern"]
    assert report.summary.coverage.hit == report.summary.coverage.planned


def written(count: int, path: Path) -> Path:
    """A file with so many rows, as `--rows` takes it."""
    rows = ({"id": one, "key": f"k{one}", "amount": one} for one in range(count))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.spark
@pytest.mark.parametrize(
    "name",
    fast_and_one_in(
        4, [name for name in expected() if name not in WHOLE], FAST, first=3
    ),
)
@pytest.mark.usefixtures("java", "server")
def test_a_sink_is_what_was_expected_of_it(name: str, tmp_path: Path) -> None:
    wanted = expected()[name]
    sink, only = f"{SINKS / name}.py:{wanted['name']}", tuple(wanted["shown_by"])
    rows = (
        written(wanted["rows"], tmp_path / "rows.jsonl") if "rows" in wanted else None
    )
    report = crash_test(
        sink, quick=True, only=only, rows=rows, folder=tmp_path / "out", seconds=900
    )
    check(name, report)


@pytest.mark.slow
@pytest.mark.longest  # notebook 14 makes a whole quick test, too
@pytest.mark.spark
@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.usefixtures("java")
def test_a_whole_quick_test_says_the_same(name: str, tmp_path: Path) -> None:
    report = crash_test(
        f"{SINKS / name}.py:{expected()[name]['name']}",
        quick=True,
        folder=tmp_path / "out",
        seconds=900,
    )
    check(name, report)
    assert {"other_rows", "stopped_driver"} == set(report.summary.conditions)
    assert report.summary.coverage.planned >= 12


def test_a_listener_and_the_next_call_may_finish_the_same_batch(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes second finds nothing left to do, and no transaction that is busy."""
    monkeypatch.setenv("SINK_POSTGRES", postgres)
    sink = runpy.run_path(str(SINKS / "right_two_phase.py"))
    query = f"{os.getpid()}-{time.time_ns()}"

    def finish(decided: int) -> None:
        with sink["connect"]() as db:
            sink["finish"](db, query, decided, abort=False)

    with ThreadPoolExecutor(4) as pool:
        for batch in range(20):
            with sink["connect"]() as db:
                db.execute("BEGIN")
                db.execute(sink["INSERT"], (batch, "k", 1))
                db.execute(f"PREPARE TRANSACTION 'orders-{query}-{batch}'")
            assert list(pool.map(finish, [batch] * 4)) == [None] * 4
    sink["reset"]()


def test_every_sink_is_in_the_table_and_the_page_in_step() -> None:
    assert {path.stem for path in SINKS.glob("*.py")} == set(expected())
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text


def test_every_axis_has_a_sink_that_violates_only_it() -> None:
    alone = {each["axes"][0] for each in expected().values() if len(each["axes"]) == 1}
    assert alone == set(AXES) - {"unexpected"}
