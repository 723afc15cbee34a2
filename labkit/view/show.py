"""Show a run in a notebook: `show` for a finished run, `explorer` for one that the learner steers."""

from typing import TYPE_CHECKING

from labkit.core.arguments import takes
from labkit.core.errors import InvalidInput
from labkit.sim.scenarios import run_of
from labkit.sim.trace import Trace
from labkit.view.session import Session, session
from labkit.view.stepper import Pair, Player

if TYPE_CHECKING:
    from labkit.view.live import Explorer


@takes('lab.show("pipeline.jump_back")')
def show(what: str | Trace, beside: str | Trace | None = None) -> Player | Pair:
    """Return a player to step through a scenario (a named example run) or a trace; end a notebook cell with this call.

    With `beside`, two runs appear side by side, and their first difference is marked. Raises `InvalidInput` for an
    unknown run or a text that is no trace, and `InvalidAction` for a trace that cannot be replayed.
    """
    first = Player(*run_of(what))
    return first if beside is None else Pair(first, Player(*run_of(beside)))


@takes('lab.explorer("two_phase_commit")')
def explorer(what: str, **parameters: object) -> "Explorer":
    """Return a widget in which you choose each next action of a simulator; end a notebook cell with this call.

    Click a process or a message in the picture to let it fail, or choose a button below the picture. Next to the
    picture are inputs for the simulator's parameters. The button *all futures* shows, for each possible action, whether
    the run can go wrong after this action. The tasks above the picture are ticked when one of your steps fulfils them.

    `what` is the name of a simulator, which may be followed by parameters, or a scenario or a trace to start from.
    Raises `InvalidInput` for an unknown name or parameter.
    """
    from labkit.view.live import Explorer

    if not parameters:
        return Explorer(session(what))
    if "~" in what or "." in what:
        raise InvalidInput(
            f"{what[:40]!r} already fixes the simulator's parameters; to choose them yourself, name only the simulator."
        )
    return Explorer(Session.of(what, **parameters))
