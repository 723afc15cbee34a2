"""`pytest --crashtest`: one test for each crash point of a sink, beside a project's other tests.

    pytest --crashtest sink.py:write_batch [--crashtest-quick]

Without a name, `[tool.labkit.crashtest]` in pyproject.toml says which sink or pipeline, and which guarantee is expected
(exactly-once by default). The run without a crash is made while tests are collected, since it shows the points.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from labkit.core.judge import Guarantee
    from labkit.crashtest.jobs import Job
    from labkit.crashtest.verdict import Result

_FROM_PROJECT = "pyproject.toml"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of the plugin."""
    group = parser.getgroup("labkit", "crash-testing a streaming sink")
    group.addoption(
        "--crashtest",
        nargs="?",
        const=_FROM_PROJECT,
        metavar="FILE:NAME",
        help="kill a job at every point of this sink",
    )
    group.addoption("--crashtest-quick", action="store_true", help="only the points that matter most")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the tests if `--crashtest` is given. Raises `UsageError` together with pytest-xdist."""
    if config.getoption("--crashtest") is None:
        return
    if getattr(config.option, "numprocesses", None) or hasattr(config, "workerinput"):
        raise pytest.UsageError("--crashtest runs one job at a time; leave -n out.")
    config.pluginmanager.register(CrashTests(config), "labkit-crashtests")


class Tests(Protocol):
    """The test of a sink or of a pipeline, run by run."""

    @property
    def results(self) -> list["Result"]:
        """The results of the runs so far."""

    def healthy(self) -> "Result":
        """The run without a crash, which comes first."""

    def jobs(self) -> list["Job"]:
        """The jobs that are known after the run without a crash."""

    def second_crashes(self) -> list["Job"]:
        """The jobs that are known after the runs of `jobs`."""

    def large_jobs(self) -> Iterator["Job"]:
        """The jobs with more rows than the others."""

    def run(self, job: "Job") -> "Result":
        """Makes the run of one job."""


def _campaign(table: dict[str, Any], subject: str | None, *, quick: bool) -> AbstractContextManager[Tests]:
    """The campaign of what the command line names, or else the project."""
    if subject is None and "command" in table:
        from labkit.crashtest.blackbox.campaign import pipeline_campaign
        from labkit.crashtest.configured import pipeline

        return pipeline_campaign(pipeline(table, quick=quick))
    from labkit.crashtest.campaign import campaign
    from labkit.crashtest.configured import combined

    return campaign(combined(table, subject, quick=quick))


class CrashTests:
    """The tests of one sink or pipeline, for one session of pytest."""

    def __init__(self, config: pytest.Config) -> None:
        self._config, self._stack = config, ExitStack()

    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Makes the run without a crash, and adds a test for each point that it shows."""
        from labkit.core.errors import LabError
        from labkit.core.judge import Guarantee
        from labkit.crashtest.configured import check_axes, configured, guarantee_named

        table = configured(Path(self._config.rootpath) / "pyproject.toml")
        named = self._config.getoption("--crashtest")
        try:
            quick = bool(self._config.getoption("--crashtest-quick"))
            subject = None if named == _FROM_PROJECT else named
            expected = guarantee_named(table.get("expect")) or Guarantee.EXACTLY_ONCE
            check_axes(table.get("also", []))
            running = self._stack.enter_context(_campaign(table, subject, quick=quick))
            first = running.healthy()
        except LabError as error:
            raise pytest.UsageError(f"--crashtest: {error}") from None
        items += self._tests(session, running, first, expected, tuple(table.get("also", [])))

    @staticmethod
    def _tests(
        session: pytest.Session, running: "Tests", first: "Result", expected: "Guarantee", also: tuple[str, ...]
    ) -> list[pytest.Item]:
        def item(name: str, run: Callable[[], list["Result"]]) -> pytest.Item:
            return CrashTest.from_parent(session, name=f"crashtest[{name}]", run=run, expected=expected, also=also)

        doubts = [each for each in running.results if each is not first]
        tests = [item("healthy", lambda: [first]), item("seeing", lambda: doubts)]
        tests += [item(job.id, partial(lambda each: [running.run(each)], job)) for job in running.jobs()]
        pairs = item("second-crashes", lambda: [running.run(job) for job in running.second_crashes()])
        large = item("large-batch", lambda: [running.run(job) for job in running.large_jobs()])
        return [*tests, pairs, large]

    def pytest_sessionfinish(self) -> None:
        """Ends every process of the test."""
        self._stack.close()


class CrashTest(pytest.Item):
    """One run, or all runs of one kind, compared with the expected guarantee."""

    def __init__(
        self, *, run: Callable[[], list["Result"]], expected: "Guarantee", also: tuple[str, ...], **more: Any
    ) -> None:
        super().__init__(**more)
        self._run, self._expected, self._also = run, expected, also

    def runtest(self) -> None:
        """Makes the run. A condition that does not hold is shown as a skip: it is no part of the guarantee."""
        from labkit.crashtest.report import weaker
        from labkit.crashtest.verdict import Group

        for result in self._run():
            if result.unknown:
                raise Weaker(result, f"unknown: {result.unknown}")
            reason = weaker(result, self._expected, self._also)
            if reason:
                raise Weaker(result, reason)
            if result.group is Group.CONDITION and result.violated:
                pytest.skip(f"a condition of the guarantee: {result.title}: {result.because}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The reason and the timeline, without a traceback."""
        if isinstance(excinfo.value, Weaker):
            return excinfo.value.text()
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """The place of the test in pytest's report."""
        return self.path, None, self.name


class Weaker(Exception):
    """A run that is weaker than expected, or proves nothing."""

    def __init__(self, result: "Result", said: str) -> None:
        super().__init__(said)
        self.result, self.said = result, said

    def text(self) -> str:
        """The run's title, the reason and the timeline, for a person."""
        story = "\n".join(f"  {line}" for line in self.result.story)
        return f"{self.result.title}\n{self.said}\n\n{story}"
