"""Real Spark, real SIGKILL: every wrong sink is caught with the right diagnosis, and every right one passes.

What each must show was written down before it was run, in data/sinks/expected.toml.
"""

import os
import runpy
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from build_sinks import PAGE, SINKS, STALE, expected, page
from choosing import variant_but
from sinks import differences, new_topic, report_on

from labkit.crashtest.verdict import AXES

IN_SHORT = ("right_marker", "right_wal_marker", "wrong_unflushed")
"""Two right sinks, and a wrong one that writes to a server; the others are variants."""


def kinds() -> list[str]:
    """The first sink of each pattern, and one with each server; `make sinks` tests the others, too.

    A large batch and its parts are tried in test_kernel.py.
    """
    first = {sample["pattern"]: name for name, sample in reversed(expected().items())}
    del first["parts commit separately"]
    served = {sample["needs"]: name for name, sample in reversed(expected().items()) if "needs" in sample}
    return list(dict.fromkeys([*first.values(), *served.values(), *IN_SHORT]))


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)  # names of files begin in the working folder
    monkeypatch.setenv("SINK_STORE", str(tmp_path / "data" / "store"))
    return tmp_path / "data" / "store"


@pytest.fixture
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The server that a sink needs, if it needs one."""
    needs = expected()[request.getfixturevalue("name")].get("needs")
    if needs == "postgres":
        monkeypatch.setenv("SINK_POSTGRES", request.getfixturevalue("postgres"))
    if needs == "kafka":
        broker = request.getfixturevalue("kafka")
        monkeypatch.setenv("SINK_KAFKA", broker.status().address)
        monkeypatch.setenv("SINK_TOPIC", new_topic(broker.status().address))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", variant_but(IN_SHORT, kinds()))
@pytest.mark.usefixtures("server", "nothing_is_left")
def test_a_sink_is_what_was_expected_of_it(name: str, tmp_path: Path) -> None:
    report = report_on(name, tmp_path)
    print(report.text())
    assert differences(name, report) == []


def test_a_listener_and_the_next_call_may_finish_the_same_batch(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert {path.stem for path in SINKS.glob("*.py")} == set(expected()), "each sink has an entry in expected.toml"
    text = PAGE.read_text(encoding="utf-8")
    if page(text) != text:
        pytest.fail(STALE, pytrace=False)


def test_every_axis_has_a_sink_that_violates_only_it() -> None:
    alone = {each["axes"][0] for each in expected().values() if len(each["axes"]) == 1}
    assert alone == set(AXES) - {"unexpected"}
