"""What notebooks call to see a walk: `show` for one that is over, `explorer` for one that they steer."""

from itertools import islice
from typing import TYPE_CHECKING

from labkit.core.errors import InvalidInput
from labkit.host.logs import read_log
from labkit.runs.scenario import Scenario
from labkit.sim.models.pipeline.scenarios import crashed, first_crash, is_modelled
from labkit.sim.scenarios import find
from labkit.sim.trace import Trace, make
from labkit.spark.options import Job, Keep
from labkit.view.session import Session, session
from labkit.view.stepper import Pair, Player

if TYPE_CHECKING:
    from labkit.view.live import Explorer

MOST_WORDS = 8
"""Records of the longest input that the simulated pipeline takes."""


def show(what: str | Trace, beside: str | Trace | None = None) -> Player | Pair:
    """A named scenario (`pipeline.jump_back`) or a trace, to be stepped through; with `beside` two, compared.

    Raises `InvalidInput` for an unknown scenario or text that is no trace, `InvalidAction` for a trace that does not
    replay.
    """
    first = _player(what)
    return first if beside is None else Pair(first, _player(beside))


def _player(what: str | Trace) -> Player:
    if isinstance(what, Trace):
        return Player(what)
    if "~" in what:
        return Player(Trace.parse(what))
    found = find(what)
    return Player(found.trace, found.watch_for)


def at_failpoint(scenario: Scenario) -> Player:
    """The scenario of a real run in the simulator, opened where its first failpoint has been reached.

    Raises `InvalidInput` for what the simulator does not model: another job, store or batch size, a longer input.
    """
    words = list(islice(read_log(scenario.input), MOST_WORDS + 1)) if scenario.job is Job.RUNNING else []
    if not words or not is_modelled(scenario.store) or scenario.checkpoint is Keep.DELETED:
        raise InvalidInput("The simulator does not model this job, store or checkpoint; it has the job running.")
    if not len(words) <= min(MOST_WORDS, scenario.records_per_batch):
        raise InvalidInput(f"The simulator has one batch of at most {MOST_WORDS} records; this input is longer.")
    if not scenario.crashes:
        raise InvalidInput("Nothing crashes in this scenario; name a failpoint.")
    walk = crashed(scenario.strategy, scenario.order, scenario.store, scenario.crashes, words)
    step, point = first_crash(walk), scenario.crashes[0].point
    return Player(
        walk.trace, f"{point} is reached in step {step - 1}. {point.sentence} Step {step} is the crash.", step - 1
    )


def explorer(what: str, **parameters: object) -> "Explorer":
    """A model by name, with parameters, or a scenario or a trace to begin with, whose next action a learner chooses.

    Raises `InvalidInput` for an unknown name or parameter.
    """
    from labkit.view.live import Explorer

    if not parameters:
        return Explorer(session(what))
    if "~" in what or "." in what:
        raise InvalidInput(f"{what[:40]!r} has parameters of its own; name a model alone to choose them.")
    return Explorer(Session(Trace.of(make(what, parameters), ())))
