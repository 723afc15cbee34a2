"""`labkit explore`: visit every schedule of a simulator, or many random ones.

Clock, memory and progress are handled here, outside of the pure core; `labkit.sim.explore` searches in one
process, and `labkit.search` in several.
"""

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Annotated, Any

import psutil
import typer
from rich.console import Console

from labkit.cli.common import Json
from labkit.cli.tables import show, table
from labkit.core.errors import InvalidInput
from labkit.search.collector import without_collector
from labkit.search.cores import on_cores
from labkit.sim.explore import Exploration, Progress, Violation, walk
from labkit.sim.explore import explore as explore_alone
from labkit.sim.model import Model
from labkit.sim.models import MODELS
from labkit.sim.symmetry import Quotient
from labkit.sim.trace import make

_MEGABYTE = 1_000_000

Search = Callable[..., Exploration]
"""A search of one model, called with `max_states` and `keep_going`."""


def explore(
    model: Annotated[str | None, typer.Argument(help=f"{', '.join(list(MODELS)[:-1])} or {list(MODELS)[-1]}.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A parameter of the model, as in participants=3; may be repeated."
        ),
    ] = None,
    max_states: Annotated[int, typer.Option(help="Stop after this many states.")] = 1_000_000,
    seconds: Annotated[float, typer.Option(help="Stop after this many seconds.")] = 300.0,
    megabytes: Annotated[
        int, typer.Option(help="Stop when all processes of the search together use this much memory.")
    ] = 4_000,
    walks: Annotated[int, typer.Option(help="Take this many random walks instead of a search.")] = 0,
    steps: Annotated[int, typer.Option(help="The largest number of steps of a walk.")] = 500,
    seed: Annotated[int, typer.Option(help="The seed of the walks; the same seed gives the same walks.")] = 1,
    cores: Annotated[int, typer.Option(help="Search with this many processes; the answer is the same.")] = 1,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Search with Spark tasks and keep the states in files, for searches that need too much memory: "
            "local[4] or spark://HOST:PORT.",
        ),
    ] = None,
    symmetry: Annotated[
        bool,
        typer.Option(
            "--symmetry",
            help="Count two states as one if they differ only in which of several equal processes is which.",
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Visit every schedule of a simulator and report the claims that do not hold, each with a shortest trace.

    Exit 0 all claims hold, 1 one does not, 2 nothing is wrong but not everything was visited.
    """
    parameters = parse_settings(settings or [])
    if walks:
        if symmetry:
            raise InvalidInput(
                "--symmetry and --walks exclude each other: a random walk does not count states; leave one "
                "of the two out."
            )
        return run_walks(model, parameters, walks=walks, steps=steps, seed=seed, as_json=as_json)
    return run_explore(
        model,
        parameters,
        max_states=max_states,
        seconds=seconds,
        megabytes=megabytes,
        cores=cores,
        master=master,
        symmetry=symmetry,
        as_json=as_json,
    )


def parse_settings(texts: Sequence[str]) -> dict[str, str]:
    """Parse repeated `name=value` options. Raises `InvalidInput` for another form and for a repeated name."""
    parameters: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InvalidInput(f"--set {text[:60]}: write name=value, as in --set participants=3.")
        if name in parameters:
            raise InvalidInput(f"--set {text[:60]}: {name} is set twice; leave one of them out.")
        parameters[name] = value
    return parameters


def run_explore(
    name: str | None,
    parameters: dict[str, str],
    *,
    max_states: int,
    seconds: float,
    megabytes: int,
    as_json: bool,
    cores: int = 1,
    master: str | None = None,
    symmetry: bool = False,
) -> int:
    """Explore one configuration and return 0 if all claims hold, 1 if one does not, 2 if the search was incomplete."""
    if name is None:
        raise InvalidInput(f"which simulator? {_models()}")
    if max_states < 1 or seconds <= 0 or megabytes < 1:
        raise InvalidInput("--max-states, --seconds and --megabytes must be more than 0.")
    if master is not None and cores != 1:
        raise InvalidInput(
            "--cores and --master exclude each other: the master's URL already sets how many tasks run at "
            "once; leave one of the two out."
        )
    full_model = make(name, parameters)
    model = Quotient(full_model) if symmetry else full_model
    begun = time.perf_counter()
    limit = _Limit(begun + seconds, megabytes * _MEGABYTE)
    # Processes are forked first: what shows the progress is a thread, and no fork may come after one.
    with _searching(model, cores, master) as search, _shown(quiet=as_json) as tell:

        def keep_going(progress: Progress) -> bool:
            tell(progress)
            return limit.allows()

        with without_collector():
            exploration = search(max_states=max_states, keep_going=keep_going)
    if isinstance(model, Quotient):
        exploration = model.in_full(exploration)
    took = time.perf_counter() - begun
    if as_json:
        print(
            json.dumps(
                {
                    **exploration.to_json(),
                    "stopped": limit.reason or exploration.stopped,
                    **({"symmetry": True} if symmetry else {}),
                    "seconds": round(took, 3),
                }
            )
        )
    else:
        states = "classes of states" if symmetry else "unique states"
        _print_found(exploration, limit.reason or exploration.stopped, took, states)
    return _code(exploration)


def _models() -> str:
    return f"choose one of {', '.join(MODELS)}."


def _code(exploration: Exploration) -> int:
    if exploration.violations or (exploration.exhausted and exploration.never_reached):
        return 1
    return 0 if exploration.exhausted else 2


class _Limit:
    """The limits on time and memory of one search; it remembers which of them ended the search."""

    def __init__(self, end: float, memory: int) -> None:
        self._end, self._memory, self._process = end, memory, psutil.Process()
        self.reason = ""

    def allows(self) -> bool:
        """Return whether neither limit is reached."""
        if time.perf_counter() > self._end:
            self.reason = "the time was up (--seconds)"
        elif self._used() > self._memory:
            self.reason = "the memory was used up (--megabytes)"
        return not self.reason

    def _used(self) -> int:
        """Return the memory of this process and its descendants in bytes, without those that have just ended."""
        used = 0
        for process in (self._process, *self._process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                used += process.memory_info().rss
        return used


@contextmanager
def _searching(model: Model[Any], cores: int, master: str | None) -> Iterator[Search]:
    """Provide the search of a model in one process, in several, or on Spark. Raises `InvalidInput`."""
    if master is not None:
        from labkit.search.on_spark import explore_on_spark

        yield partial(explore_on_spark, model, master)
        return
    if cores == 1:
        yield partial(explore_alone, model)
        return
    with on_cores(model, cores) as shared:
        yield shared.explore


@contextmanager
def _shown(*, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """Show the progress of a search on standard error if that is a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda _progress: None
        return
    with console.status("exploring") as status:
        yield lambda progress: status.update(
            f"{progress.unique:,} states, {progress.generated:,} steps, depth {progress.depth}"
        )


def _print_found(exploration: Exploration, stopped: str, took: float, states: str) -> None:
    exhausted = "yes" if exploration.exhausted else f"no: {stopped}"
    rows = table("", "")
    for label, value in (
        ("model", exploration.model),
        ("parameters", " ".join(f"{name}={value}" for name, value in exploration.parameters.items())),
        (states, f"{exploration.unique_states:,}"),
        ("generated states", f"{exploration.generated_states:,}"),
        ("depth", str(exploration.depth)),
        ("seconds", f"{took:.2f}"),
        ("exhausted", exhausted),
        ("never reached", ", ".join(exploration.never_reached) or "-"),
    ):
        rows.add_row(label, value)
    show(rows)
    print_violations(exploration.violations)
    if not exploration.violations:
        print("\nNo property is violated" + ("." if exploration.exhausted else " in what was seen."))


def print_violations(violations: Sequence[Violation]) -> None:
    """Print each claim that does not hold, with the command that replays its trace."""
    for violation in violations:
        steps = len(violation.trace.actions)
        print(f"\nVIOLATED {violation.property}, {steps} steps: {violation.because}")
        print(f"  labkit replay {violation.trace}")


def run_walks(name: str | None, parameters: dict[str, str], *, walks: int, steps: int, seed: int, as_json: bool) -> int:
    """Run seeded random schedules of a model that is too large to explore. Returns 1 for a violation, 2 if none
    was seen.
    """
    if name is None:
        raise InvalidInput(f"which simulator? {_models()}")
    if walks < 1 or not 1 <= steps <= 10_000:
        raise InvalidInput("--walks must be at least 1, and --steps from 1 to 10000.")
    model = make(name, parameters)
    first: dict[str, Violation] = {}
    for number in range(walks):
        _, violations = walk(model, random.Random(seed + number).randrange, steps)
        for violation in violations:
            first.setdefault(violation.property, violation)
    violated = list(first.values())
    if as_json:
        plain = {"model": name, "parameters": dict(model.values), "walks": walks, "steps": steps, "seed": seed}
        print(json.dumps({**plain, "violations": [violation.to_json() for violation in violated]}))
    else:
        print(f"{walks} walks of at most {steps} steps, seed {seed}: {len(violated) or 'no'} properties violated.")
        print_violations(violated)
    return 1 if violated else 2
