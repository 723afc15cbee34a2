"""What notebooks call to see a walk: `show` for one that is over, `explorer` for one that they steer."""

from typing import TYPE_CHECKING

from labkit.core.asked import takes
from labkit.core.errors import InvalidInput
from labkit.sim.scenarios import find
from labkit.sim.trace import Trace, make, parse
from labkit.view.session import Session, session
from labkit.view.stepper import Pair, Player

if TYPE_CHECKING:
    from labkit.view.live import Explorer


@takes('lab.show("pipeline.jump_back")')
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
        return Player(parse(what))
    scenario = find(what)
    return Player(scenario.trace, scenario.watch_for)


@takes('lab.explorer("two_phase_commit")')
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
