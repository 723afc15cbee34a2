"""Describe in one sentence how a schedule breaks a design: between which writes the process dies, and the result."""

from labkit.sim.model import Action
from labkit.sim.models.orders.model import Orders
from labkit.sim.trace import replay
from labkit.sim.walk import Replay, Trace
from labkit.sim.writes import Write

OUTCOMES = {
    "no_loss": "rows are lost",
    "no_duplicate": "rows are there twice",
    "no_unexpected": "values are wrong",
    "no_regression": "a reader sees a value go back",
    "no_fractured_read": "a reader sees part of a step",
    "no_aborted_read": "a reader sees a row that is taken back",
}
"""For each property (claim), the words for what happens if it is violated."""

_DONE = {
    "take": "taking its input",
    "show": "a row of its output",
    "skip": "leaving out its output",
    "restart": "its restart",
    "undo": "taking output back",
    "unanswered": "output without an answer",
    "expire": "the abort of its prepared output",
    "lapse": "the end of its lease",
    "defer": "leaving out a note",
    "refused": "a refused write",
    Write.PLAN: "its plan",
    Write.STATE: "its state",
    Write.STAGED: "its staged output",
    Write.VISIBLE: "its output",
    Write.MARKER: "its marker",
    Write.DECISION: "its decision",
    Write.NOTICE: "its notice",
    Write.CLEAN: "the removal of its staged output",
}
"""For each action, the words for it, as in "after its plan and before a row of its output"."""

_FAULTS = {
    "unanswered": "the answer to visible output is lost",
    "expire": "the store aborts prepared output",
    "lapse": "the lease of a step's rows ends",
    "defer": "a note in the log is left out",
}
"""For each fault other than a crash, the words for what happens."""


def killing(claim: str, trace: Trace) -> str:
    """Return a sentence that says when the process dies in a run that violates `claim`, and what readers then see."""
    walk = replay(trace)
    deaths = [_death(walk, place) for place, action in enumerate(walk.actions) if action.name == "crash"]
    faults = [_FAULTS[action.name] for action in walk.actions if action.name in _FAULTS]
    if not deaths and not faults:
        return f"Without any crash {OUTCOMES[claim]}."
    events = list(dict.fromkeys(faults))
    if deaths:
        events.append(f"the process dies {', and again '.join(deaths)}")
    sentence = ", and ".join(events)
    return f"{sentence[0].upper()}{sentence[1:]}: {OUTCOMES[claim]}."


def _death(walk: Replay, place: int) -> str:
    state, model = walk.states[place], walk.model
    before = f"after {_DONE[walk.actions[place - 1].name]}" if place else "at the beginning"
    job = state.process.job
    enabled = [each for each in model.actions(state) if each.name != "crash"]
    if not enabled:
        return f"{before}, when all is done"
    follows = enabled[0]
    if follows.name in ("undo", "refused"):
        return f"{before} and before {_DONE[follows.name]}"
    if follows.name == "take":
        return f"{before} and before step {job.step} takes its input"
    return f"{before} and before {_description(model, follows)} in step {job.step}"


def _description(model: object, action: Action) -> str:
    assert isinstance(model, Orders)
    if action.name in ("show", "skip"):
        return _DONE[action.name]
    joined = next(each for each in model.design.steps if action.name in each)
    return " with ".join(_DONE[each] for each in joined)
