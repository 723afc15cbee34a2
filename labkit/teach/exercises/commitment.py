"""Exercises of notebook 05: a participant that comes back, atomicity as an invariant, and who has to wait."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from labkit.sim.model import Action, Model
from labkit.sim.models.two_phase_commit.parts import Entry, Participant
from labkit.sim.trace import make
from labkit.teach.exercises.asking import Asker, Unusable, shown
from labkit.teach.exercises.closing import ClosedModel
from labkit.teach.exercises.constants import Statements
from labkit.teach.exercises.contract import Answer, Exercise, Finding, Kind, Level, Variant
from labkit.teach.exercises.invariants import Watch
from labkit.teach.exercises.searching import search

NOTEBOOK = "05_two_phase_commit"
RETURNS = {"abort": "return_abort", "commit": "return_commit", "wait": "return_wait"}


def _returns(ask: Asker, open_model: Any, state: Any, action: Action) -> bool:
    """Whether a participant comes back as the learner's function says."""
    question = open_model.question(state, action)
    answer = ask(*question)
    if not isinstance(answer, str) or answer not in RETURNS:
        raise Unusable(f'{ask.call(*question)} returned {shown(answer)}; return "abort", "commit" or "wait".')
    return action.name == RETURNS[answer]


def judge_recovery(answer: Answer, variant: Variant) -> Finding:
    """Every schedule of two-phase commit with crashes of anybody and lost messages."""
    open_model: Any = make("recovery_drill", dict(variant.parameters))
    return search(answer, "recover", lambda ask: ClosedModel(open_model, ask, _returns), "nobody_blocked")


def _logs(_model: Model[Any], state: Any) -> tuple[Any, ...]:
    """The participants' logs, as lists of words."""
    return ([list(map(str, participant.log)) for participant in state.participants],)


def _any_logs(model: Model[Any], said: Mapping[str, Any]) -> Iterator[Any]:
    """Every combination of these logs, one for each participant."""
    state = model.initial()
    logs = [tuple(map(Entry, log)) for log in said["logs"]]
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
"""The logs that a participant can have, in good systems or in broken ones."""
WATCH = Watch("atomic", "two_phase_commit", "atomic", _logs, _any_logs)
TWO: dict[str, object] = {"participants": 2, "losses": 0}
THREE: dict[str, object] = {"participants": 3, "crashes": 0, "losses": 0}

STATEMENTS = Statements(
    "blocked_answer",
    {
        "a": "Answer 1 tells the outcome, and a decision is the same for all. But answer 3 tells one, too.",
        "b": "After 1 the decision is known: commit. After 3 nobody can ever decide to commit, "
        "since one yes is missing: "
        "participant 0 may abort. After 2 both are in doubt (two_phase_commit.coordinator_gone).",
        "c": "After 2 there are two yeses, and still no decision that anybody knows of: the "
        "coordinator may have aborted "
        "after a long silence. Whoever acts now acts alone (two_phase_commit.aborts_alone).",
        "d": "Whoever knows the outcome may tell it. The coordinator's log is where it is made, not "
        "the only place where it "
        "is known.",
    },
    "b",
)

EXERCISES = (
    Exercise(
        name="05-recovery",
        notebook=NOTEBOOK,
        title="a participant comes back",
        kind=Kind.COMPLETE,
        level=Level.MEDIUM,
        points=4,
        answer="recover",
        task="recover(log) says what a participant does that starts again and finds this log: abort, commit or wait.",
        hints=(
            "Which of the logs that a participant can have leaves it a choice of its own?",
            "Its newest entry is the last. Before its yes it may abort alone; after its yes it has promised.",
            "There are three cases: nothing was written, the last entry is a promise, the last entry is an outcome.",
        ),
        lines=5,
        public=(
            Variant("two participants, one crash, one lost message", (("participants", 2), ("crashes", 1))),
            Variant("two participants, two crashes", (("participants", 2), ("crashes", 2), ("losses", 0))),
        ),
        judge=judge_recovery,
        withheld=("labkit.sim.models.two_phase_commit.model",),
    ),
    Exercise(
        name="05-atomic",
        notebook=NOTEBOOK,
        title="all or nothing, as a property",
        kind=Kind.INVARIANT,
        level=Level.MEDIUM,
        points=3,
        answer="atomic",
        task="atomic(logs) says of the participants' logs whether the transfer is still in one piece.",
        hints=(
            "It must hold in every state of a good system, also when one has committed and others have not yet.",
            "Which two entries must never be in two logs at the same time?",
            'An abort that a participant decides alone is written as "abort_alone".',
        ),
        lines=4,
        public=(
            Variant(
                "two participants",
                (
                    ("good", (("all rules kept", TWO),)),
                    (
                        "bad",
                        (
                            ("the yes is not logged", {**TWO, "broken": "forget_vote"}),
                            ("who is in doubt aborts alone", {**TWO, "broken": "heuristic"}),
                        ),
                    ),
                ),
            ),
            Variant(
                "three participants",
                (
                    ("good", (("all rules kept", THREE),)),
                    ("bad", (("commit before all votes", {**THREE, "broken": "early"}),)),
                ),
            ),
            Variant("any two logs", (("assembled", (("any two logs", TWO, {"logs": LOGS}),)),)),
        ),
        judge=WATCH.judge,
        withheld=("labkit.sim.models.two_phase_commit.parts",),
    ),
    Exercise(
        name="05-blocked",
        notebook=NOTEBOOK,
        title="ask the neighbour",
        kind=Kind.EXPLAIN,
        level=Level.MEDIUM,
        points=1,
        answer="blocked_answer",
        task="A participant has voted yes, the coordinator is dead, and another participant answers "
        "instead. After which "
        "answers may the first one stop waiting?",
        hints=(
            "What could the coordinator have decided before it died, in each case?",
            "What does a commit need from everybody?",
        ),
        lines=1,
        public=(Variant("statements"),),
        judge=STATEMENTS.judge,
    ),
)
