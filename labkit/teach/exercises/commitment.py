"""The exercises of notebook 05: recovery of a participant, atomicity as an invariant, and processes that must wait."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from labkit.sim.model import Action, Model
from labkit.sim.models.two_phase_commit.state import Entry, Participant
from labkit.teach.exercises.asking import Asker
from labkit.teach.exercises.closing import ClosedModel
from labkit.teach.exercises.contract import by, variant
from labkit.teach.exercises.invariants import Watch
from labkit.teach.exercises.searching import Drill

RETURNS = {"abort": "return_abort", "commit": "return_commit", "wait": "return_wait"}


def _returns(ask: Asker, open_model: Any, state: Any, action: Action) -> bool:
    question = open_model.question(state, action)
    answer = ask(*question)
    if not isinstance(answer, str) or answer not in RETURNS:
        raise ask.unusable('"abort", "commit" or "wait"', *question)
    return action.name == RETURNS[answer]


RECOVERY = Drill(
    "recover", "recovery_drill", lambda open_model, ask: ClosedModel(open_model, ask, _returns), "nobody_blocked"
)


def _any_logs(model: Model[Any], parts: Mapping[str, Any]) -> Iterator[Any]:
    state = model.initial()
    logs = [tuple(map(Entry, log)) for log in parts["logs"]]
    for chosen in product(logs, repeat=len(state.participants)):
        yield state._replace(participants=tuple(Participant(log) for log in chosen))


LOGS = (
    (),
    ("prepared",),
    ("abort",),
    ("abort_alone",),
    ("commit",),
    ("prepared", "commit"),
    ("prepared", "abort"),
    ("prepared", "abort_alone"),
)
"""The logs that a participant can have, in correct systems or in broken ones."""
WATCH = Watch(
    "atomic",
    "two_phase_commit",
    "atomic",
    lambda _model, state: ([list(map(str, participant.log)) for participant in state.participants],),
    _any_logs,
)
TWO: dict[str, object] = {"participants": 2, "losses": 0}
THREE: dict[str, object] = {"participants": 3, "crashes": 0, "losses": 0}
FOUR: dict[str, object] = {**THREE, "participants": 4}
"""A system with the largest number of participants, as the task says."""

JUDGES = {
    "05-recovery": by(
        RECOVERY.judge,
        variant("two participants, one crash, one lost message", participants=2, crashes=1),
        variant("two participants, two crashes", participants=2, crashes=2, losses=0),
    ),
    "05-atomic": by(
        WATCH.judge,
        variant(
            "two participants",
            good=(("all rules kept", TWO),),
            bad=(
                ("the yes is not logged", {**TWO, "broken": "forget_vote"}),
                ("who is in doubt aborts alone", {**TWO, "broken": "heuristic"}),
            ),
        ),
        variant(
            "three participants",
            good=(("all rules kept", THREE),),
            bad=(("commit before all votes", {**THREE, "broken": "early"}),),
        ),
        variant("any two logs", assembled=(("any two logs", TWO, {"logs": LOGS}),)),
        variant("four participants", assembled=(("any four logs", FOUR, {"logs": ((), *LOGS[5:7])}),)),
    ),
}
