"""Defines `labkit explore`, which visits every schedule of a simulator, or random ones, to find violated claims."""

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import psutil
import typer
from rich.console import Console

from labkit.cli.common import Json, parameter, typed_options
from labkit.cli.tables import show, table
from labkit.core.errors import InvalidInput
from labkit.core.kinds import Amount, Many, Number, Switch, Text
from labkit.core.options import Need, Options, option, options_of, with_arguments
from labkit.search import without_collector
from labkit.search.cores import on_cores
from labkit.sim.explore import Exploration, Progress, Violation, walk
from labkit.sim.explore import explore as explore_alone
from labkit.sim.model import Model
from labkit.sim.models import MODELS
from labkit.sim.symmetry import Quotient
from labkit.sim.trace import make

_MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Search(Options):
    """The options of `labkit explore`: the simulator, and the limits of the search or of random runs."""

    VERB = "labkit explore"

    model: str = option(Text(), "", f"{', '.join(list(MODELS)[:-1])} or {list(MODELS)[-1]}.", argument="model")
    settings: tuple[str, ...] = option(
        Many(Text(metavar="NAME=VALUE")),
        (),
        "A parameter of the model, as in participants=3; may be repeated.",
        flag_name="set",
    )
    max_states: int = option(Number(1), 1_000_000, "Stop after this many states.")
    seconds: float = option(Amount(0, above=True), 300.0, "Stop after this many seconds.")
    megabytes: int = option(Number(1), 4_000, "Stop when all processes of the search together use this much memory.")
    walks: int = option(
        Number(0),
        0,
        "Instead of a search, make this many random runs (walks) of the simulator.",
        needs=[
            Need(
                lambda search: not search.symmetry,
                "--symmetry and --walks exclude each other: a random walk does not count states; leave one of the "
                "two out.",
            )
        ],
    )
    steps: int = option(Number(1, 10_000), 500, "The largest number of steps of a walk.")
    seed: int = option(Number(), 1, "The seed of the walks; the same seed gives the same walks.")
    cores: int = option(Number(), 1, "Search with this many processes; the result does not depend on their number.")
    master: str | None = option(
        Text(metavar="URL"),
        None,
        "Search with Spark tasks and keep the states in files, for searches that need too much memory: "
        "local[4] or spark://HOST:PORT.",
        needs=[
            Need(
                lambda search: search.cores == 1,
                "--cores and --master exclude each other: the master's URL already sets how many tasks run at "
                "once; leave one of the two out.",
            )
        ],
    )
    symmetry: bool = option(
        Switch(),
        default=False,
        help="Count states as one if they become equal when interchangeable processes swap names.",
    )

    def made(self) -> Model[Any]:
        """Return the simulator to search. Raises `InvalidInput` if none is named, or if a parameter is wrong."""
        if not self.model:
            raise InvalidInput(f"no simulator is named; choose one of {', '.join(MODELS)}.")
        return make(self.model, parse_settings(self.settings))


def explore(context: typer.Context, *, as_json: Json = False, **words: object) -> int:
    """Visit every schedule of a simulator, and report claims that do not hold, each with a shortest violating trace.

    Exit codes: 0 all claims hold; 1 a claim does not hold; 2 no claim failed, but the search did not visit every state.
    """
    search = Search.plan(typed_options(context, options_of(Search), words))
    return run_walks(search, as_json=as_json) if search.walks else run_explore(search, as_json=as_json)


explore = with_arguments(explore, [parameter(each) for each in options_of(Search)])


def parse_settings(texts: Sequence[str]) -> dict[str, str]:
    """Return a simulator's parameters as a dict, such as {"participants": "3"} for the text `participants=3`.

    Raises `InvalidInput` for a text of another form, or if a parameter is set twice.
    """
    parameters: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InvalidInput(f"--set {text[:60]}: write it as name=value, as in --set participants=3.")
        if name in parameters:
            raise InvalidInput(f"--set {text[:60]}: {name} is set twice; leave one of them out.")
        parameters[name] = value
    return parameters


def run_explore(options: Search, *, as_json: bool) -> int:
    """Search a simulator's states; return 0 if all claims hold, 1 if one does not, 2 if the search is incomplete."""
    full_model = options.made()
    model = Quotient(full_model) if options.symmetry else full_model
    begun = time.perf_counter()
    limit = _Limit(begun + options.seconds, options.megabytes * _MEGABYTE)
    # The search forks its processes first: a fork is not safe once the thread that shows progress runs.
    with _searching(model, options.cores, options.master) as search, _shown(quiet=as_json) as tell:

        def keep_going(progress: Progress) -> bool:
            tell(progress)
            return limit.allows()

        with without_collector():
            exploration = search(max_states=options.max_states, keep_going=keep_going)
    if isinstance(model, Quotient):
        exploration = model.in_full(exploration)
    took = time.perf_counter() - begun
    if as_json:
        plain = {**exploration.to_json(), "stopped": limit.reason or exploration.stopped}
        if options.symmetry:
            plain["symmetry"] = True
        print(json.dumps({**plain, "seconds": round(took, 3)}))
    else:
        states = "classes of states" if options.symmetry else "unique states"
        _print_result(exploration, limit.reason or exploration.stopped, took, states)
    if exploration.violations or (exploration.exhausted and exploration.never_reached):
        return 1
    return 0 if exploration.exhausted else 2


class _Limit:
    """The limits on time and memory of a search. `reason` says which limit was reached; it is empty if none was."""

    def __init__(self, end: float, memory: int) -> None:
        self._end, self._memory, self._process = end, memory, psutil.Process()
        self.reason = ""

    def allows(self) -> bool:
        if time.perf_counter() > self._end:
            self.reason = "the time was up (--seconds)"
        elif self._used() > self._memory:
            self.reason = "the memory was used up (--megabytes)"
        return not self.reason

    def _used(self) -> int:
        used = 0
        for process in (self._process, *self._process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                used += process.memory_info().rss
        return used


@contextmanager
def _searching(model: Model[Any], cores: int, master: str | None) -> Iterator[Callable[..., Exploration]]:
    """Yield a function that searches a model: on Spark if `master` is given, else in `cores` processes."""
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
    """Yield a function that shows the progress of a search; it shows nothing if `quiet`, or without a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda _progress: None
        return
    with console.status("exploring") as status:
        yield lambda progress: status.update(
            f"{progress.unique:,} states, {progress.generated:,} steps, depth {progress.depth}"
        )


def _print_result(exploration: Exploration, stopped: str, took: float, states: str) -> None:
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
        print("\nNo claim is violated" + ("." if exploration.exhausted else " in the states that were visited."))


def print_violations(violations: Sequence[Violation]) -> None:
    """Print each claim that does not hold, with a command that replays a run in which the claim is violated."""
    for violation in violations:
        steps = len(violation.trace.actions)
        print(f"\nVIOLATED {violation.property}, {steps} steps: {violation.because}")
        print(f"  labkit replay {violation.trace}")


def run_walks(options: Search, *, as_json: bool) -> int:
    """Print the claims that random runs violate. Return 1 if there are any, otherwise 2: random runs prove nothing."""
    model, walks, steps, seed = options.made(), options.walks, options.steps, options.seed
    first: dict[str, Violation] = {}
    for number in range(walks):
        _, violations = walk(model, random.Random(seed + number).randrange, steps)
        for violation in violations:
            first.setdefault(violation.property, violation)
    violated = list(first.values())
    if as_json:
        plain = {"model": model.name, "parameters": dict(model.values), "walks": walks, "steps": steps, "seed": seed}
        print(json.dumps({**plain, "violations": [violation.to_json() for violation in violated]}))
    else:
        print(f"{walks} walks of at most {steps} steps, seed {seed}: {len(violated) or 'no'} claims violated.")
        print_violations(violated)
    return 1 if violated else 2
