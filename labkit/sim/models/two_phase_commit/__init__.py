"""Two simulators of two-phase commit: one with presumed abort and faults, and Gray and Lamport's without faults."""

from collections.abc import Mapping

from labkit.sim.blueprint import Blueprint, Fact, play, scenarios_of
from labkit.sim.models.two_phase_commit.model import TwoPhaseCommit
from labkit.sim.models.two_phase_commit.state import blocked
from labkit.sim.models.two_phase_commit.textbook import Textbook
from labkit.sim.parameters import Values
from labkit.sim.tasks import tasks_of
from labkit.sim.walk import Replay


def build(values: Values) -> TwoPhaseCommit | Textbook:
    """Return a simulator of two-phase commit: Gray and Lamport's if `textbook` is true, otherwise one with faults."""
    return Textbook(values) if values["textbook"] else TwoPhaseCommit(values)


def facts(walk: Replay) -> Mapping[str, Fact]:
    """Return a dict with the number of steps for which each participant was blocked (`blocked_steps`).

    The dict is empty for the simulator with `textbook`, in which no participant is ever blocked.
    """
    if not isinstance(walk.model, TwoPhaseCommit):
        return {}
    return {"blocked_steps": list(blocked(walk.states))}


BLUEPRINT: Blueprint[TwoPhaseCommit | Textbook, str] = Blueprint(
    TwoPhaseCommit,
    "A coordinator asks participants to vote, decides, and tells them; processes may crash, and messages may get lost.",
    play,
    scenarios_of(__name__),
    facts,
    {"blocked_steps": "steps in doubt with locks held, by participant"},
    tasks=tasks_of(__name__),
    build=build,
)
