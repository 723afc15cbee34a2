"""The model `two_phase_commit` in the tests that all models share: rules that are left out or broken, and
large jobs.
"""

import pytest
from model_cases import Cases, Given, LeftOut, Patch, Restart, disable, replace_effect

from labkit.sim.models.two_phase_commit.model import TwoPhaseCommit
from labkit.sim.models.two_phase_commit.state import Coordinator, Message, Participant, Phase, State

BROKEN = [
    ({"broken": "heuristic"}, {"promise": 3, "atomic": 9}),
    ({"broken": "early"}, {"atomic": 7}),
    ({"broken": "forget_decision"}, {"final": 9, "promise": 13, "atomic": 14}),
    ({"broken": "forget_vote"}, {"promise": 4, "atomic": 10}),
    ({"coordinator_returns": False}, {"nobody_blocked": 5}),
]


def never_announce(patch: pytest.MonkeyPatch) -> None:
    disable(patch, TwoPhaseCommit, "announce")


def never_abort(patch: pytest.MonkeyPatch) -> Given:
    disable(patch, TwoPhaseCommit, "give_up", "abort_unasked", "refuse")
    return {"crashes": 0, "losses": 0}


def forget_to_log_the_end(patch: pytest.MonkeyPatch) -> Given:
    """A participant that is told to commit does so in memory only, and its crash brings the doubt back."""
    become = TwoPhaseCommit._become

    def unlogged(model: TwoPhaseCommit, state: State, which: int, participant: Participant) -> State:
        if participant.phase is Phase.COMMITTED:
            log = state.participants[which].log
            participant = Participant(log, Phase.COMMITTED)
        return become(model, state, which, participant)

    patch.setattr(TwoPhaseCommit, "_become", unlogged)
    return {"losses": 0}


def take_a_no_for_a_yes(patch: pytest.MonkeyPatch) -> Given:
    sound = TwoPhaseCommit._hear

    def hear(model: TwoPhaseCommit, state: State, which: int) -> State:
        if state.inward[which][0] is not Message.NO:
            return sound(model, state, which)
        yes = (*state.inward[:which], (Message.YES,), *state.inward[which + 1 :])
        return sound(model, state._replace(inward=yes), which)

    replace_effect(patch, TwoPhaseCommit, "hear", hear)
    return {"crashes": 0, "losses": 0}


MUTANTS: dict[Patch, set[str]] = {forget_to_log_the_end: {"nobody_blocked"}, take_a_no_for_a_yes: {"atomic"}}

KNOWN = [
    ({"textbook": True, "participants": 3}, 288, 10),
    ({"textbook": True, "participants": 5}, 8_832, 16),
    ({"participants": 2}, 5_332, 24),
    ({"participants": 3, "crashes": 0}, 11_739, 26),
]
"""The textbook has as many as are published; with failures the protocol is atomic and blocks nobody for ever."""

READS = {
    "two_phase_commit~1~losses.0~~start.read-0": (
        "2 read(0): Participant 0 reads its next message. coordinator waiting (log: -); participant 0 in_doubt (log: "
        "prepared; to it -, from it yes); participant 1 working (log: -; to it prepare, from it -); promised by 0, "
        "announced working; 1 crashes and 0 losses may follow."
    )
}

CASES = Cases(
    small=[{"losses": 0}, {"textbook": True, "participants": 3}, {"broken": "heuristic", "crashes": 0}],
    large=[{"participants": 3, "crashes": 2, "losses": 2}, {"textbook": True, "participants": 8}],
    walks=25,
    steps=400,
    left_out=[LeftOut(*each) for each in BROKEN],
    names=("participant", "coordinator"),
    mutants=MUTANTS,
    unreached={never_announce: ("all_commit",), never_abort: ("all_abort",)},
    max_states=20_000,
    known=KNOWN,
    reads=READS,
    durable={Coordinator: "log", Participant: "log"},
    crashes={"crash": "participants", "crash_coordinator": "coordinator"},
    outside="crashes",
    restarts={"restart": Restart("participants"), "restart_coordinator": Restart("coordinator")},
)
