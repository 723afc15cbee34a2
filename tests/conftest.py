"""What every test may rely on: nothing that it starts survives it, and in CI nothing is skipped.

Set LABKIT_REQUIRE=all where everything must be there: a skip is then a failure that names what was missing.
"""

import os
import signal
import time
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import psutil
import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from labkit.core.errors import ServiceUnavailable
from labkit.host import addresses
from labkit.host.doctor import find_chromium
from labkit.host.java import Java, find_java
from labkit.host.servers.kafka import KafkaService
from labkit.host.servers.tethered import tethered_postgres
from labkit.host.syscalls.support import supported
from labkit.teach.exercises import orphans

MARKER = "LABKIT_TEST_SESSION"
EXEC_SECONDS = 0.2
"""How long a process that has just been started may have no environment yet: while Linux executes its program."""
GRACE_SECONDS = 5.0
"""A PySpark daemon needs a moment to notice that its driver is gone."""

# How long an example takes says nothing on a machine that does other work. Examples are always the same, so that no
# change is red for one that happened to be drawn that day; every night `--hypothesis-profile=drawn` draws others.
settings.register_profile("drawn", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("the same", settings.get_profile("drawn"), derandomize=True)
settings.load_profile("the same")

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Playwright

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


@pytest.fixture(scope="session")
def java() -> Java:
    """A Java for tests that start one."""
    try:
        return find_java()
    except ServiceUnavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def watched_calls() -> None:
    """A kernel that lets one process watch another's system calls, for tests that do."""
    if why := supported():
        pytest.skip(why)


@pytest.fixture(scope="session")
def kafka(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaService]:
    """A broker for all tests of this process; it would end with the process even if that were killed."""
    broker = KafkaService(tmp_path_factory.mktemp("kafka"), tethered=True)
    try:
        broker.up()
    except ServiceUnavailable as missing:
        pytest.skip(str(missing))
    yield broker
    broker.down()


@pytest.fixture(scope="module")
def kafka_address(kafka: KafkaService) -> Iterator[str]:
    """Where that broker is, also for what the tests of one module share."""
    address = kafka.status().address
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(addresses.KAFKA, address)
        yield address


@pytest.fixture
def every_store(request: pytest.FixtureRequest, postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The servers of every store, for tests that open one: PostgreSQL, and Kafka when a parameter names it."""
    callspec = getattr(request.node, "callspec", None)
    params = {} if callspec is None else callspec.params
    asked = [params.get("kind"), params.get("store"), getattr(params.get("cell"), "store", None)]
    if "kafka" in asked:
        monkeypatch.setenv(addresses.KAFKA, request.getfixturevalue("kafka").status().address)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL of this test process, whatever it dies of, for every store of that kind that a test opens."""
    with tethered_postgres("--no-sync", "-c", "wal_level=logical") as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv(addresses.POSTGRES, server.address)
        yield server.address


@pytest.fixture(scope="session", autouse=True)
def _server_of_a_judge() -> Iterator[None]:
    """Ends the PostgreSQL on which 08-finish is judged, if any test has started it."""
    yield
    orphans.end()


@pytest.fixture(scope="session")
def chromium() -> Path:
    """A browser for tests that drive one."""
    found = find_chromium()
    if found is None:
        pytest.skip("No chromium on PATH: install the system's chromium package.")
    return found


@pytest.fixture(scope="session")
def playwright(chromium: Path) -> Iterator["Playwright"]:
    """Playwright, of which a process can have only one at a time."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def chrome(playwright: "Playwright", chromium: Path) -> Iterator["Browser"]:
    """The system's Chromium without a profile, so that nothing is in its cache."""
    browser = playwright.chromium.launch(
        executable_path=chromium, args=["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    )
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def browser(
    playwright: "Playwright", chromium: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator["BrowserContext"]:
    """The system's Chromium, headless, with a profile of its own and nothing that calls home."""
    quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
    context = playwright.chromium.launch_persistent_context(
        tmp_path_factory.mktemp("chromium"),
        executable_path=chromium,
        args=[*quiet, "--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])],
    )
    # A page is waited for as long as a machine may be busy with other tests.
    context.set_default_timeout(240_000)
    yield context
    context.close()


def pytest_configure(config: pytest.Config) -> None:
    """Give this process's children a mark. Workers of pytest-xdist are marked by their parent and mark anew."""
    # A shell starts what it runs in the background with SIGINT ignored, and every program that a test starts and
    # interrupts would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.pluginmanager.register(KernelsOfTheirOwn())
    os.environ[MARKER] = uuid.uuid4().hex


LONG = ("tests/spark/test_matrix.py", "tests/grading/", "checked/", "tests/jupyter/", "tests/notebooks/", "tests/spark")
"""What takes longest, first: `make test` hands whole modules to its processes, and the last one must be short."""

APART = (
    "tests/jupyter/test_course.py",
    "tests/crashtest/test_commands.py",
    "tests/pipelines/test_engines.py",
    "tests/crashtest/test_sinks.py",
    "tests/crashtest/test_streams.py",
    "tests/crashtest/test_campaign.py",
    "tests/crashtest/test_pipelines.py",
    "tests/crashtest/test_pipeline_commands.py",
)
"""Modules whose tests share nothing: they are handed out one by one, behind everything else and the longest first.

A process has two tests in hand at most, so the short ones at the end let all processes end at about the same time.
"""


def place(item: pytest.Item) -> int:
    """Where a test comes: in the order of `LONG`, then all others, then in the order of `APART`."""
    prefixes = (*APART, *LONG, "")
    found = next(index for index, prefix in enumerate(prefixes) if item.nodeid.startswith(prefix))
    return found + len(prefixes) if found < len(APART) else found


TOGETHER = "tests/jupyter/"
"""Modules whose quick tests one process gets, since they share one JupyterLab and one browser."""


class ModulesAndSingleTests(LoadScopeScheduling):
    """Hands whole modules to the processes, since their tests share runs; of the modules `APART`, test by test."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(APART):
            return nodeid
        if nodeid.startswith(TOGETHER) and self.config.getoption("markexpr") == "not slow":
            return TOGETHER
        return str(super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling | None:
    """The scheduler above where `--dist loadscope` is asked for."""
    if config.getoption("dist") != "loadscope":
        return None
    return ModulesAndSingleTests(config, log)


@pytest.hookimpl(tryfirst=True)  # before `-m "not slow"` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests; mark the cells that nbval collects: a notebook says itself, in its metadata, that it is slow.

    A test with the mark `spark` needs Java, and gets that fixture before all others, since those may start Spark.
    """
    items.sort(key=place)
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("spark"):
            item.fixturenames.insert(0, "java")
        notebook = getattr(item.parent, "nb", None)
        if notebook is not None:
            item.add_marker(pytest.mark.notebook)
            if notebook.metadata.get("labkit", {}).get("slow"):
                item.add_marker(pytest.mark.slow)


class KernelsOfTheirOwn:
    """A notebook's kernel starts its own servers: those of this process's tests are not what its cells may kill.

    A plugin, since pytest asks the hooks of this file only about what lies below its folder.
    """

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            if getattr(item.parent, "nb", None) is not None:
                for variable in (addresses.POSTGRES, addresses.KAFKA):
                    patch.delenv(variable, raising=False)
            return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure where nothing may be missing."""
    return forbid_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Do the same for a module that skips itself as a whole."""
    return forbid_skip((yield))


def forbid_skip(report: Report) -> Report:
    """The report, as a failure if it is a skip and LABKIT_REQUIRE=all. A test that is expected to fail stays that."""
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("LABKIT_REQUIRE") == "all":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"LABKIT_REQUIRE=all forbids a skip. {reason}"
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Iterator[None]:
    """After the last test and all its fixtures: fail if a process that any test started is still there."""
    result = yield
    if nextitem is None and (left := survivors(os.environ[MARKER])):
        pytest.fail("These processes outlived the tests that started them:\n" + "\n".join(left), pytrace=False)
    return result


def survivors(mark: str) -> list[str]:
    """Which processes carry the mark after a moment of grace: who they are and which test started them. Ends them."""
    end = time.monotonic() + EXEC_SECONDS
    while not (found := marked(mark)) and time.monotonic() < end:
        time.sleep(0.02)
    _, alive = psutil.wait_procs(found, timeout=GRACE_SECONDS)
    told = []
    for process in alive:
        try:
            command, test = (" ".join(process.cmdline())[:160], process.environ().get("PYTEST_CURRENT_TEST", "?"))
            process.kill()
        except psutil.Error:  # gone, after all
            continue
        told.append(f"{process.pid}: {command} (started during {test})")
    return told


def marked(mark: str) -> list[psutil.Process]:
    """Every process, other than this one, that was started with the mark in its environment."""
    return [process for process in psutil.process_iter() if process.pid != os.getpid() and carries(process, mark)]


def carries(process: psutil.Process, mark: str) -> bool:
    """Whether a process was started with the mark; a zombie or somebody else's process was not."""
    try:
        return process.environ().get(MARKER) == mark
    except (psutil.Error, OSError):
        return False
