"""Provides `pytest --crashtest`: one test for each crash point of a sink, next to a project's other tests.

    pytest --crashtest sink.py:write_batch [--crashtest-quick]

Without a name, `[tool.labkit.crashtest]` in pyproject.toml names the sink or pipeline and the expected guarantee
(not-refuted by default). The last test compares that guarantee with the claim of all runs together. Every option of
`labkit crashtest` is available as `--crashtest-OPTION`. Two runs take place while pytest collects tests, because they
show the crash points: one without a crash, and one with a crash at the end. Without `--crashtest` the plugin imports
nothing heavy.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_origin

import pytest

if TYPE_CHECKING:
    from labkit.core.judge import Guarantee
    from labkit.core.options import Option
    from labkit.crashtest.blackbox.campaign import Campaign
    from labkit.crashtest.claim import Goal
    from labkit.crashtest.ledger import Job
    from labkit.crashtest.options import Demand
    from labkit.crashtest.verdict import Result

_FROM_PROJECT = "pyproject.toml"
_CLAIM = "guarantee"
"""The name of the test that compares the claim of all runs together."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register a pytest option for each option of `labkit crashtest`."""
    from labkit.crashtest.configured import OPTIONS

    group = parser.getgroup("labkit", "crash-testing a streaming sink or pipeline")
    group.addoption(
        "--crashtest",
        nargs="?",
        const=_FROM_PROJECT,
        metavar="FILE:NAME",
        help="kill a job at every crash point of this sink, or of the sink or pipeline that pyproject.toml names",
    )
    for each in OPTIONS.values():
        if not each.argument:
            group.addoption(_flag(each), **_taken(each), default=None, help=each.help.replace("%", "%%"))


def _flag(option: "Option[Any]") -> str:
    return f"--crashtest-{option.flag.removeprefix('--')}"


def _taken(option: "Option[Any]") -> dict[str, Any]:
    taken, many = option.kind.annotation, get_origin(option.kind.annotation) is list
    if taken is bool:
        return {"action": "store_true"}
    form = {"type": taken} if taken in (int, float) else {}
    return form | {"action": "append" if many else "store", "metavar": option.kind.metavar or option.parameter.upper()}


def _command_line(config: pytest.Config) -> dict[str, Any]:
    from labkit.crashtest.configured import OPTIONS

    words = {each.keyword: config.getoption(_flag(each)) for each in OPTIONS.values() if not each.argument}
    named = config.getoption("--crashtest")
    return {name: word for name, word in words.items() if word is not None} | (
        {} if named == _FROM_PROJECT else {"subject": named}
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the crash test if `--crashtest` is given. Raises `UsageError` if pytest-xdist runs tests in parallel."""
    if config.getoption("--crashtest") is None:
        return
    if getattr(config.option, "numprocesses", None) or hasattr(config, "workerinput"):
        raise pytest.UsageError("--crashtest runs one job at a time, because all jobs share one store; leave -n out.")
    config.pluginmanager.register(CrashTests(config), "labkit-crashtests")


class CrashTests:
    """The plugin object that adds a crash test to a pytest session, with one pytest test for each of its runs."""

    def __init__(self, config: pytest.Config) -> None:
        self._config, self._stack = config, ExitStack()
        self._running: Campaign | None = None

    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Perform the first one or two runs, which show the crash points to try, and add pytest tests for all runs."""
        from labkit.core.errors import InvalidInput, LabError
        from labkit.crashtest.campaigns import campaign_of
        from labkit.crashtest.configured import configured, demanded, requested

        try:
            configuration = configured(Path(self._config.rootpath) / "pyproject.toml")
            options = _command_line(self._config)
            if int(options.get("parallel") or 1) > 1:
                raise InvalidInput("--crashtest-parallel: under pytest, runs come one after the other; leave it out.")
            demand = demanded(configuration, options)
            wanted = requested(configuration, options)
            running = self._stack.enter_context(campaign_of(wanted))
            made = [running.healthy()]
            made += [] if made[0].violated else running.crash_at_end()
            only = {name: running.named(name) for name in wanted.only}
        except LabError as error:
            raise pytest.UsageError(f"--crashtest: {error}") from None
        self._running = running
        items += self._tests(session, running, made, only, demand)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Mark the crash test as incomplete if pytest deselects some of the runs, for example because of `-k`."""
        runs = [each for each in items if isinstance(each, CrashTest) and each.name != f"crashtest[{_CLAIM}]"]
        if self._running is not None and runs:
            self._running.is_part = True

    @staticmethod
    def _tests(
        session: pytest.Session,
        running: "Campaign",
        made: "Sequence[Result]",
        only: "Mapping[str, Iterator[Job]]",
        demand: "Demand",
    ) -> list[pytest.Item]:
        from labkit.crashtest.claim import Goal

        goal, also = demand.expect or Goal.NOT_REFUTED, demand.also

        def item(name: str, compare: Callable[..., None], *values: object) -> pytest.Item:
            return CrashTest.from_parent(session, name=f"crashtest[{name}]", compare=partial(compare, *values))

        def results(name: str, made: Callable[[], list["Result"]]) -> pytest.Item:
            return item(name, _compare_runs, made, goal.guarantee, also)

        def runs(name: str, jobs: Callable[[], Iterable["Job"]]) -> pytest.Item:
            return results(name, lambda: running.run_all(jobs()))

        doubts = [each for each in running.results if each not in made]
        tests = [results(each.id, partial(list, [each])) for each in made]
        tests.append(results("seeing", lambda: doubts))
        jobs = running.jobs()
        running.plan(jobs)
        if only:
            tests += [runs(name, partial(iter, several)) for name, several in only.items()]
        else:
            tests += [runs(job.id, partial(iter, [job])) for job in jobs]
            tests.append(runs("second-crashes", lambda: running.allowed(running.second_crashes())))
            tests += [runs(job.id, partial(iter, [job])) for job in running.faults()]
            tests.append(runs("other-points", lambda: chain.from_iterable(running.rest())))
            tests += [runs(job.id, partial(iter, [job])) for job in running.outages()]
        tests.append(runs("last-runs", running.last_jobs))
        return [*tests, item(_CLAIM, _compare_claim, running, goal, also)]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the guarantee of the whole crash test at the end of pytest's output."""
        if self._running is not None and self._running.results:
            report = self._running.report()
            terminalreporter.section("labkit crashtest")
            terminalreporter.line(f"{report.settings.subject}: {report.words}; {report.summary.coverage}")

    def pytest_sessionfinish(self) -> None:
        """Kill every process of the crash test when pytest ends."""
        self._stack.close()


class CrashTest(pytest.Item):
    """One pytest test of the plugin: it checks some runs, or the final guarantee, against the user's demand."""

    def __init__(self, *, compare: Callable[[], None], **more: Any) -> None:
        super().__init__(**more)
        self._compare = compare

    def runtest(self) -> None:
        """Perform the runs, and fail if one is weaker than the user demands; the message shows that run's timeline."""
        self._compare()

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the location of the test for pytest's report: its file, no line, and its name."""
        return self.path, None, self.name


def _compare_runs(results: Callable[[], list["Result"]], expected: "Guarantee", also: tuple[str, ...]) -> None:
    """Perform runs; fail if one is weaker than `expected`, violates a property in `also`, or proves nothing.

    A run with a fault that no sink needs to withstand (`Group.CONDITION`) only shows on what condition the guarantee
    holds. If such a run violates a property, the test is skipped and does not fail.
    """
    from labkit.crashtest.report import weaker
    from labkit.crashtest.verdict import Group

    made = results()
    for result in made:
        reason = f"unknown: {result.unknown}" if result.unknown else weaker(result, expected, also)
        if reason and not result.skipped:
            story = "\n".join(f"  {line}" for line in result.story)
            pytest.fail(f"{result.title}\n{reason}\n\n{story}", pytrace=False)
    for result in made:
        if result.skipped:
            pytest.skip(result.unknown)
        if result.group is Group.CONDITION and result.violated:
            pytest.skip(f"a condition of the guarantee: {result.title}: {result.because}")


def _compare_claim(running: "Campaign", goal: "Goal", also: tuple[str, ...]) -> None:
    report = running.report()
    if report.reaches(goal, also) is not True:
        pytest.fail(f"expected {goal}, and the test says: {report.words}; {report.summary.coverage}", pytrace=False)
