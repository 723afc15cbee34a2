"""Defines `labkit bisect`, which crash-tests a pipeline with several versions of a package.

Each version gets its own environment and its own `labkit crashtest` as a child process.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer
from packaging.requirements import InvalidRequirement, Requirement

from labkit.cli.common import Json, parameter, typed_options
from labkit.core.errors import InvalidInput, JobFailed, ServiceUnavailable
from labkit.core.kinds import Checked, Many, Switch, Unfit
from labkit.core.options import Options, option, options_of, with_arguments
from labkit.crashtest.bisection import Answer, Range, Trial, bounds, chosen, next_to_try, trial_of
from labkit.crashtest.blackbox.settings import PipelineSettings
from labkit.crashtest.options import Demand
from labkit.host import durable
from labkit.host.environments import NotInstalled, environment_with
from labkit.host.path_kinds import AnyPath
from labkit.host.processes import ENDS_WITH_PARENT
from labkit.host.processes.own_python import own_python
from labkit.host.releases import releases

PYTHON = "{python}"
"""The placeholder in a pipeline's commands that stands for the Python of the environment under test."""
_COMMANDS = ("pipeline", "read_command", "feed", "reset", "more")
"""The fields of `PipelineSettings` that contain commands, in which `{python}` is replaced."""
_REFUSED, _UNWATCHABLE = 64, 69
_REPORTED = (0, 1, 2)
"""The exit codes of a crash test that has printed a report."""
_SAYS = "labkit: "
"""The beginning of the line in which a labkit command reports its error."""
_END_SECONDS = 60.0


def _package(text: str) -> str:
    try:
        named = Requirement(text)
    except InvalidRequirement:
        named = None
    if named is None or named.specifier or named.url or named.marker:
        raise Unfit("this is not the name of a package; write one without a version, as in --package dlt.")
    return text


def _requirement(text: str) -> str:
    try:
        Requirement(text)
    except InvalidRequirement:
        raise Unfit("this is not a valid pip requirement; use a form such as duckdb==1.4.1.") from None
    return text


def _range(text: str) -> str:
    """Return the text unchanged if it is a range of versions, such as `1.0..1.4`. Raises `Unfit` otherwise."""
    bounds(text)
    return text


@dataclass(frozen=True)
class Question(Options):
    """The options of `labkit bisect` that select the package and the versions to test."""

    VERB = "labkit bisect"

    package: str = option(
        Checked(_package, "NAME"), "", "The package on pip's index whose versions are tried.", required=True
    )
    versions: str = option(
        Checked(_range, "FIRST..LAST"), "", "The first and the last version; either may be left out. Default: all."
    )
    requirements: tuple[str, ...] = option(
        Many(Checked(_requirement, "REQUIREMENT")),
        (),
        "Another package that the pipeline needs, such as duckdb==1.4.1; may be repeated.",
        keyword="requirement",
    )
    every: bool = option(Switch(), default=False, help="Test every version. Default: halve the range.", keyword="all")
    out: Path | None = option(
        AnyPath("DIR"), None, "A new folder for the report of each version, as labkit crashtest --out writes it."
    )


def bisect(context: typer.Context, *, as_json: Json = False, **words: object) -> int:
    """Crash-test a pipeline with several versions of a package, and say which version changed its guarantee.

    labkit installs each version with uv or pip into its own environment in the cache; {python} in the commands stands
    for that environment's Python. It tests the oldest and the newest version first, then halves the range. Every option
    of `labkit crashtest` for a pipeline is allowed. With --expect the command finds the version at which the pipeline
    begins, or ceases, to give the expected guarantee.

    Exit codes: 0 a definite answer; 1 the newest version is weaker than expected; 2 no answer, or only a range of
    versions; 64 bad input; 69 no package index can be reached, or system calls cannot be watched here.
    """
    question = Question.plan(typed_options(context, options_of(Question), words))
    settings = PipelineSettings.plan(typed_options(context, options_of(PipelineSettings), words))
    demand = Demand.plan(typed_options(context, options_of(Demand), words))
    if not any(PYTHON in getattr(settings, name) for name in _COMMANDS):
        raise InvalidInput(
            "--command: {python} is missing, so every version would run the same program; write {python} where the "
            "command starts Python."
        )
    if question.out is not None and question.out.exists():
        raise InvalidInput(f"{question.out}: this folder already exists; name a new one with --out.")
    name = Requirement(question.package).name
    published = releases(name)
    range_ = chosen(published.versions, question.versions, published.yanked)
    notes = () if published.knows_yanked else (f"The index did not say which versions of {name} are yanked.",)
    if question.out is not None:
        with durable.explained(question.out):
            durable.make_folder(question.out)
    trials: dict[int, Trial] = {}
    positions = len(range_.versions)
    print(f"{name}: {positions} versions, {range_.versions[0]} to {range_.versions[-1]}", file=sys.stderr)
    while (position := _next(question, range_, trials)) is not None:
        version = range_.versions[position]
        trials[position] = trial = _trial(question, settings, demand, version, published.days.get(version, ""))
        if not as_json:
            result = f"not tried: {trial.not_tried}" if trial.not_tried else trial.words
            point = f"  [{trial.point}]" if trial.point else ""
            print(f"{trial.version:<10} {trial.day or '-':<10}  {result}{point}", flush=True)
        _refuse_both_ends(trials, positions)
    answer = Answer(name, range_, trials, notes)
    print(json.dumps(answer.to_json()) if as_json else "\n".join(["", *answer.sentences()]), flush=True)
    return answer.code(demand.expect or "")


bisect = with_arguments(
    bisect, [parameter(each) for of in (Question, PipelineSettings, Demand) for each in options_of(of)]
)


def _next(question: Question, range_: Range, trials: dict[int, Trial]) -> int | None:
    """Return the index of the version to crash-test next, or None if no further test is needed."""
    count = len(range_.versions)
    if question.every:
        return next((each for each in range(count) if each not in trials), None)
    return next_to_try(count, {position: each.side for position, each in trials.items()})


def _refuse_both_ends(trials: dict[int, Trial], count: int) -> None:
    ends = [trials[each] for each in {0, count - 1} if each in trials]
    if len(trials) == len(ends) == len({0, count - 1}) and all(each.refused for each in ends):
        reason = ends[-1].not_tried
        raise InvalidInput(f"--versions: neither the oldest nor the newest version could be tested: {reason}")


def _trial(question: Question, settings: PipelineSettings, demand: Demand, version: str, day: str) -> Trial:
    """Crash-test the pipeline with one version of the package, released on `day` (empty if unknown).

    Raises `ServiceUnavailable` if this machine cannot run the test.
    """
    print(f"{question.package} {version}", file=sys.stderr)
    requirements = [f"{question.package}=={version}", *question.requirements]
    try:
        python, packages = environment_with(requirements, f"{Requirement(question.package).name}-{version}")
    except NotInstalled as error:
        return Trial(version, day, not_tried=str(error))
    words = shlex.split(_crashtest(settings, demand, python))[1:]
    if question.out is not None:
        words += ["--out", str(question.out / version)]
    code, output, complaint = _run(words)
    if code == _UNWATCHABLE:
        raise ServiceUnavailable(complaint)
    if code not in _REPORTED:
        reason = complaint or f"the crash test ended with exit code {code}"
        return Trial(version, day, not_tried=reason, refused=code == _REFUSED, packages=tuple(packages))
    try:
        report: dict[str, Any] = json.loads(output)
    except ValueError:
        command = f"labkit {shlex.join(words)}"
        raise JobFailed(f"The crash test of {version} printed no report; to see why, run {command}.") from None
    return replace(trial_of(version, day, report, code, demand.expect or ""), packages=tuple(packages))


def _crashtest(settings: PipelineSettings, demand: Demand, python: Path) -> str:
    """Return the command line of a crash test in which the pipeline runs with the interpreter `python`."""
    word = shlex.quote(str(python))
    filled = {name: getattr(settings, name).replace(PYTHON, word) for name in _COMMANDS}
    return f"{replace(settings, **filled).command()} {demand.command()} --json"


def _run(words: list[str]) -> tuple[int, str, str]:
    """Run a labkit command and print its progress; return its exit code, its output, and its error message."""
    complaint = ""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        # In a process session of its own, so that Ctrl-C reaches it only once, through this process.
        with subprocess.Popen(
            own_python("-m", "labkit", *words),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, ENDS_WITH_PARENT: "1"},
            start_new_session=True,
        ) as child:
            assert child.stderr is not None
            try:
                for line in child.stderr:
                    if line.startswith(_SAYS):
                        complaint = line.removeprefix(_SAYS).strip()
                    else:
                        print(f"  {line}", end="", file=sys.stderr, flush=True)
                code = child.wait()
            except BaseException:
                child.send_signal(signal.SIGTERM)
                child.communicate(timeout=_END_SECONDS)
                raise
        output.seek(0)
        return code, output.read(), complaint
