"""Defines `labkit replay`, which steps through one run of a simulator, or lists the scenarios (named example runs)."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from labkit.cli.common import Json
from labkit.cli.explore import print_violations
from labkit.cli.tables import show, table
from labkit.cli.trace_file import read_trace
from labkit.core.judge import Verdict
from labkit.sim.explore import Violation, violations
from labkit.sim.readers import reader_account
from labkit.sim.scenarios import every, facts, find, say
from labkit.sim.trace import Replay, Trace, blueprint, parse
from labkit.sim.trace import replay as walk


def replay(
    trace: Annotated[
        str | None,
        typer.Argument(help="A trace, a file with one, or the name of a scenario; without it, list the scenarios."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Print one run of a simulator, one line per step. Exit 1 if it violates a claim."""
    if trace is None:
        return _list_scenarios(as_json)
    walked = walk(read(trace))
    broken = violations(walked)
    watch_for = None if "~" in trace or _is_file(trace) else find(trace).watch_for
    if as_json:
        print(json.dumps(_plain(walked, broken, watch_for)))
    else:
        _print_replay(walked, broken, watch_for)
    return int(bool(broken))


def read(text: str) -> Trace:
    """Return the trace that `text` is, or that the file or scenario of this name has. Raises `InvalidInput`."""
    if "~" in text:
        return parse(text)
    if _is_file(text):
        return read_trace(Path(text))
    return find(text).trace


def _is_file(text: str) -> bool:
    return text.endswith(".json") or "/" in text or (len(text) < 200 and Path(text).is_file())


def _outcome(walked: Replay) -> dict[str, Any]:
    """Return the simulator's result for the whole run as plain data."""
    return {name: fact.to_json() if isinstance(fact, Verdict) else fact for name, fact in facts(walked).items()}


def _account(walked: Replay) -> dict[str, object]:
    """Return which anomalies, such as duplicates, the run's reader saw; empty for a simulator without a reader."""
    account = reader_account(blueprint(walked.model.name), walked)
    return {} if account is None else account.to_json()


def _plain(walked: Replay, broken: Sequence[Violation], watch_for: str | None) -> dict[str, Any]:
    model = walked.model
    steps = [
        {"action": str(action), "sentence": sentence, "state": model.text(state)}
        for action, sentence, state in zip(walked.actions, walked.sentences(), walked.states[1:], strict=True)
    ]
    return {
        **walked.trace.to_json(),
        "trace": str(walked.trace),
        "watch_for": watch_for,
        "start": model.text(walked.states[0]),
        "steps": steps,
        "violations": [violation.to_json() for violation in broken],
        **_outcome(walked),
        **_account(walked),
    }


def _print_replay(walked: Replay, broken: Sequence[Violation], watch_for: str | None) -> None:
    print(blueprint(walked.model.name).sentence)
    if watch_for:
        print(f"Watch for: {watch_for}")
    print()
    for line in walked.lines():
        print(line)
    print_violations(broken)
    for name, fact in facts(walked).items():
        print(f"\n{say(name, fact)}")
    account = reader_account(blueprint(walked.model.name), walked)
    for name, text in account.lines() if account else ():
        print(f"{name:<21} {text}")
    print(f"\nlabkit replay {walked.trace}")


def _list_scenarios(as_json: bool) -> int:
    scenarios = every()
    if as_json:
        print(json.dumps({"scenarios": {name: scenario.watch_for for name, scenario in scenarios.items()}}))
        return 0
    rows = table("scenario", "watch for")
    for name, scenario in scenarios.items():
        rows.add_row(name, scenario.watch_for)
    show(rows)
    print(
        "\nlabkit replay NAME prints one of them step by step; leave out the simulator's name if only one "
        "simulator has a scenario of that name."
    )
    return 0
