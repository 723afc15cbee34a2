"""Defines `labkit replay`, which steps through one run of a simulator, or lists the scenarios (named example runs)."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from labkit.cli.common import Json
from labkit.cli.explore import print_violations
from labkit.cli.tables import show, table
from labkit.core.errors import InvalidInput
from labkit.core.judge import Verdict
from labkit.sim.explore import Violation, violations
from labkit.sim.readers import reader_account
from labkit.sim.scenarios import every, facts, find, say
from labkit.sim.trace import MAX_TEXT, Replay, Trace, blueprint, parse, trace_from_json
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
    """Return the trace that `text` contains, or that of the file or scenario that `text` names.

    Raises `InvalidInput` if there is none.
    """
    if "~" in text:
        return parse(text)
    if _is_file(text):
        return read_trace(Path(text))
    return find(text).trace


def _is_file(text: str) -> bool:
    return text.endswith(".json") or "/" in text or (len(text) < 200 and Path(text).is_file())


def _plain(walked: Replay, broken: Sequence[Violation], watch_for: str | None) -> dict[str, Any]:
    model, account = walked.model, reader_account(blueprint(walked.model.name), walked)
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
        **{name: fact.to_json() if isinstance(fact, Verdict) else fact for name, fact in facts(walked).items()},
        **(account.to_json() if account else {}),
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


class TraceFile(msgspec.Struct, forbid_unknown_fields=True):
    """The content of a JSON file with a trace (the actions of one simulated run), as `Trace.to_json` returns it."""

    model: str
    version: int
    parameters: dict[str, int | bool | str]
    actions: list[str]


def read_trace(path: Path) -> Trace:
    """Return the trace in a file, which contains JSON or text. Raises `InvalidInput` if it contains no trace."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_TEXT + 1)
    except OSError as error:
        raise InvalidInput(
            f"{path}: this file cannot be read ({error.strerror}); name a file that contains a trace."
        ) from None
    if len(raw) > MAX_TEXT:
        raise InvalidInput(f"{path}: this file has more than {MAX_TEXT} bytes; shorten the trace to fewer steps.")
    try:
        return _trace(raw)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None


def _trace(raw: bytes) -> Trace:
    try:
        if not raw.lstrip().startswith(b"{"):
            return parse(raw.decode("utf-8"))
        plain = msgspec.json.decode(raw, type=TraceFile)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"this is not a complete trace ({error}); save it again.") from None
    return trace_from_json(plain.model, plain.version, plain.parameters, plain.actions)
