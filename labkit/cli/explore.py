"""`labkit explore` and `labkit replay`: every schedule of a simulator, and one of them step by step.

Clock, memory and progress are here, outside the pure core; the search itself is `labkit.sim.explore`.
"""

import gc
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console

from labkit.cli.tables import show, table
from labkit.cli.trace_file import read_trace
from labkit.core.errors import InvalidInput
from labkit.core.judge import Verdict
from labkit.sim.explore import (
    Exploration,
    Progress,
    Violation,
    explore,
    violations,
    walk,
)
from labkit.sim.scenarios import every, facts, find, say
from labkit.sim.trace import Replay, Trace, blueprint, make, replay

_MEGABYTE = 1_000_000


def parse_settings(texts: Sequence[str]) -> dict[str, str]:
    """`name=value`, several times. Raises `InvalidInput` for another form and for a name that is there twice."""
    given: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InvalidInput(
                f"--set {text[:60]}: write name=value, as in --set participants=3."
            )
        if name in given:
            raise InvalidInput(
                f"--set {text[:60]}: {name} is set twice; leave one of them out."
            )
        given[name] = value
    return given


def run_explore(
    name: str | None,
    given: dict[str, str],
    *,
    max_states: int,
    seconds: float,
    megabytes: int,
    as_json: bool,
) -> int:
    """Explores one configuration. 0: all claims hold; 1: one does not; 2: nothing is wrong, but not all was seen."""
    if name is None:
        raise InvalidInput(f"which simulator? {_models()}")
    if max_states < 1 or seconds <= 0 or megabytes < 1:
        raise InvalidInput(
            "--max-states, --seconds and --megabytes must be more than 0."
        )
    model = make(name, given)
    begun = time.perf_counter()
    limit = _Limit(begun + seconds, megabytes * _MEGABYTE)
    with _shown(quiet=as_json) as tell:

        def keep_going(progress: Progress) -> bool:
            tell(progress)
            return limit.allows()

        with without_collector():
            found = explore(model, max_states=max_states, keep_going=keep_going)
    took = time.perf_counter() - begun
    if as_json:
        print(
            json.dumps(
                {
                    **found.to_json(),
                    "stopped": limit.reason or found.stopped,
                    "seconds": round(took, 3),
                }
            )
        )
    else:
        _print_found(found, limit.reason or found.stopped, took)
    return _code(found)


def _models() -> str:
    from labkit.sim import MODELS

    return f"choose one of {', '.join(MODELS)}."


def _code(found: Exploration) -> int:
    if found.violations or (found.exhausted and found.never_reached):
        return 1
    return 0 if found.exhausted else 2


class _Limit:
    """Time and memory of one search; remembers which of them ended it."""

    def __init__(self, end: float, memory: int) -> None:
        self._end, self._memory, self._process = end, memory, psutil.Process()
        self.reason = ""

    def allows(self) -> bool:
        """Whether neither limit is reached."""
        if time.perf_counter() > self._end:
            self.reason = "the time was up (--seconds)"
        elif self._process.memory_info().rss > self._memory:
            self.reason = "the memory was used up (--megabytes)"
        return not self.reason


@contextmanager
def without_collector() -> Iterator[None]:
    """No search for cycles in memory: states are tuples and make none, and there are millions of them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _shown(*, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """Shows how far a search has come, on standard error, where that is a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda _progress: None
        return
    with console.status("exploring") as status:
        yield lambda progress: status.update(
            f"{progress.unique:,} states, {progress.generated:,} steps, depth {progress.depth}"
        )


def _print_found(found: Exploration, stopped: str, took: float) -> None:
    exhausted = "yes" if found.exhausted else f"no: {stopped}"
    rows = table("", "")
    for label, value in (
        ("model", found.model),
        (
            "parameters",
            " ".join(f"{name}={value}" for name, value in found.parameters.items()),
        ),
        ("unique states", f"{found.unique_states:,}"),
        ("generated states", f"{found.generated_states:,}"),
        ("depth", str(found.depth)),
        ("seconds", f"{took:.2f}"),
        ("exhausted", exhausted),
        ("never reached", ", ".join(found.never_reached) or "-"),
    ):
        rows.add_row(label, value)
    show(rows)
    _print_violations(found.violations)
    if not found.violations:
        print(
            "\nNo property is violated"
            + ("." if found.exhausted else " in what was seen.")
        )


def _print_violations(violations: Sequence[Violation]) -> None:
    for violation in violations:
        steps = len(violation.trace.actions)
        print(f"\nVIOLATED {violation.property}, {steps} steps: {violation.because}")
        print(f"  labkit replay {violation.trace}")


def run_walks(
    name: str | None,
    given: dict[str, str],
    *,
    walks: int,
    steps: int,
    seed: int,
    as_json: bool,
) -> int:
    """Seeded random schedules, for what is too large to be explored. 1: something is violated; 2: nothing was seen."""
    if name is None:
        raise InvalidInput(f"which simulator? {_models()}")
    if walks < 1 or not 1 <= steps <= 10_000:
        raise InvalidInput("--walks must be at least 1, and --steps from 1 to 10000.")
    model = make(name, given)
    first: dict[str, Violation] = {}
    for number in range(walks):
        _, violations = walk(model, random.Random(seed + number).randrange, steps)
        for violation in violations:
            first.setdefault(violation.property, violation)
    found = list(first.values())
    if as_json:
        plain = {
            "model": name,
            "parameters": dict(model.values),
            "walks": walks,
            "steps": steps,
            "seed": seed,
        }
        print(
            json.dumps(
                {**plain, "violations": [violation.to_json() for violation in found]}
            )
        )
    else:
        print(
            f"{walks} walks of at most {steps} steps, seed {seed}: {len(found) or 'no'} properties violated."
        )
        _print_violations(found)
    return 1 if found else 2


def read(text: str) -> Trace:
    """A trace from its text, from a file, or from a named scenario. Raises `InvalidInput`."""
    if "~" in text:
        return Trace.parse(text)
    if _is_file(text):
        return read_trace(Path(text))
    return find(text).trace


def _is_file(text: str) -> bool:
    return (
        text.endswith(".json")
        or "/" in text
        or (len(text) < 200 and Path(text).is_file())
    )


def run_replay(text: str | None, as_json: bool) -> int:
    """Steps through a trace. 1: a claim about all states is violated on the way or at the end."""
    if text is None:
        return _list_scenarios(as_json)
    trace = read(text)
    walked = replay(trace)
    broken = violations(walked)
    watch_for = None if "~" in text or _is_file(text) else find(text).watch_for
    if as_json:
        print(json.dumps(_plain(walked, broken, watch_for)))
    else:
        _print_replay(walked, broken, watch_for)
    return int(bool(broken))


def _outcome(walked: Replay) -> dict[str, Any]:
    """What a model has to say of a whole walk, as plain data."""
    return {
        name: fact.to_json() if isinstance(fact, Verdict) else fact
        for name, fact in facts(walked).items()
    }


def _plain(
    walked: Replay, broken: Sequence[Violation], watch_for: str | None
) -> dict[str, Any]:
    model = walked.model
    steps = [
        {"action": str(action), "sentence": said, "state": model.text(state)}
        for action, said, state in zip(
            walked.actions, walked.told(), walked.states[1:], strict=True
        )
    ]
    return {
        **walked.trace.to_json(),
        "trace": str(walked.trace),
        "watch_for": watch_for,
        "start": model.text(walked.states[0]),
        "steps": steps,
        "violations": [violation.to_json() for violation in broken],
        **_outcome(walked),
    }


def _print_replay(
    walked: Replay, broken: Sequence[Violation], watch_for: str | None
) -> None:
    print(blueprint(walked.model.name).sentence)
    if watch_for:
        print(f"Watch for: {watch_for}")
    print()
    for line in walked.lines():
        print(line)
    _print_violations(broken)
    for name, fact in facts(walked).items():
        print(f"\n{say(name, fact)}")
    print(f"\nlabkit replay {walked.trace}")


def _list_scenarios(as_json: bool) -> int:
    known = every()
    if as_json:
        print(
            json.dumps(
                {"scenarios": {name: found.watch_for for name, found in known.items()}}
            )
        )
        return 0
    rows = table("scenario", "watch for")
    for name, found in known.items():
        rows.add_row(name, found.watch_for)
    show(rows)
    print(
        "\nlabkit replay NAME steps through one of them; without the model's name where only one model has it."
    )
    return 0
