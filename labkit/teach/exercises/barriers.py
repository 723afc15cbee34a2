"""The exercises of notebook 04: aligned barriers, the content of a checkpoint, and settings that survive crashes."""

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import Any, NamedTuple

from labkit.sim.model import Action
from labkit.sim.models.barriers import play
from labkit.sim.models.barriers.model import Barriers
from labkit.sim.models.barriers.operators import is_blocked, take
from labkit.sim.models.barriers.state import BARRIER, ENDED, Operator
from labkit.sim.open_models.alignment import OpenAlignment
from labkit.sim.trace import make
from labkit.teach.exercises.asking import Asker, Unusable
from labkit.teach.exercises.closing import ClosedModel
from labkit.teach.exercises.constants import Prediction, Settings
from labkit.teach.exercises.contract import Finding, Plain, Variant, by, truth, variant
from labkit.teach.exercises.searching import Cases, Drill, by_parameter
from labkit.teach.results import Walk


def _aligns(ask: Asker, open_model: OpenAlignment, state: Any, action: Action) -> bool:
    question = open_model.question(state, action)
    assert question is not None
    _, at_barrier, _ = question
    reads, copies = _decided(ask, *question)
    if copies and at_barrier:
        return action.name == "snapshot"
    return action.name != "snapshot" and open_model.input_of(action) in reads


def _decided(ask: Asker, inputs: int, at_barrier: list[int], ended: list[int]) -> tuple[list[int], bool]:
    """Return which inputs the learner's rule would read, and whether it would copy the task's state.

    Barriers have arrived on the inputs `at_barrier`, and the inputs `ended` are finished.
    """
    question = inputs, list[Plain](at_barrier), list[Plain](ended)
    answer = ask(*question)
    if type(answer) is not dict or set(answer) != {"read", "copy"}:
        raise ask.unusable('a dict with the keys "read" and "copy"', *question)
    reads, copies = answer["read"], truth(answer["copy"])
    if copies is None or type(reads) is not list:
        raise Unusable(f'{ask.with_answer(*question)}: "read" must be a list of inputs, and "copy" True or False.')
    read = [each for each in reads if type(each) is int and 0 <= each < inputs]
    if len(read) != len(reads):
        raise Unusable(f'{ask.with_answer(*question)}: "read" may contain only the inputs 0 to {inputs - 1}.')
    return read, copies


FEW = 5
"""The largest number of inputs for which all combinations of the inputs' states are tested."""
BOTH = -1
"""The state of an input whose barrier has arrived and which has ended since."""


class Waiting(NamedTuple):
    """One test of a learner's rule for aligned checkpoints: the state of a task's inputs, and the right decision.

    Barriers have arrived on the inputs `at_barrier`, and the inputs `ended` are finished. The right decision is that
    the task must not read the inputs `blocked`, and must copy its state if `copies` is true.
    """

    inputs: int
    """The number of inputs."""
    at_barrier: list[int]
    ended: list[int]
    blocked: list[int]
    copies: bool


def _waiting(variant: Variant) -> Iterator[Waiting]:
    """Yield tests of a learner's rule, for one task whose inputs are in different states.

    The right decision in each test is that of the simulator `barriers`.
    """
    inputs: int = variant["inputs"]
    model = make("barriers", {})
    assert isinstance(model, Barriers)
    rules = model.settings.rules
    states = (0, 1, ENDED, BOTH)
    for facts in product(states, repeat=inputs) if inputs <= FEW else _nearly_alike(states, inputs):
        at_barrier = [place for place, number in enumerate(facts) if number in (1, BOTH)]
        ended = [place for place, number in enumerate(facts) if number in (ENDED, BOTH)]
        at = [1 if number == BOTH else number for number in facts]
        operator, copies = Operator((b"",) * inputs, bytes(at), 0, 0, 0), False
        if at_barrier:
            last = at_barrier[-1]
            queues = (bytes((BARRIER + 1,)) * (place == last) for place in range(inputs))
            before = Operator(tuple(queues), bytes((*at[:last], 0, *at[last + 1 :])), 0, 0, 0)
            taken = take(rules, before, last, is_sink=False)
            operator, copies = taken.operator, taken.copied == 1
        blocked = [each for each in range(inputs) if each not in ended and is_blocked(rules, operator, each)]
        yield Waiting(inputs, at_barrier, ended, blocked, copies)


def _nearly_alike(states: Sequence[int], inputs: int) -> Iterator[list[int]]:
    for common, *others in product(states, repeat=3):
        for places in permutations((0, 8, inputs - 1), 2):
            facts = [common] * inputs
            for place, other in zip(places, others, strict=True):
                facts[place] = other
            yield facts


def _wrong_decision(ask: Asker, case: Waiting) -> Finding | None:
    inputs, at_barrier, ended, blocked, copies = case
    read, copied = _decided(ask, inputs, at_barrier, ended)
    if copied and not copies:
        none = "no barrier has arrived" if not at_barrier else "a barrier has not arrived yet"
        wrong = f"it copies its state, although {none}"
    elif copies and not copied:
        wrong = "all barriers have arrived, but it does not copy its state"
    elif not copies and set(read) & set(blocked):
        wrong = "it keeps reading an input whose barrier has arrived"
    elif not copies and set(range(inputs)) - {*at_barrier, *ended, *read}:
        wrong = "it does not read an input whose barrier it waits for"
    else:
        return None
    statement = ask.with_answer(inputs, list[Plain](at_barrier), list[Plain](ended))
    right = "It reads the inputs whose barrier has not arrived, and copies its state when all have arrived."
    return Finding(False, f"{statement}: {wrong}.", wrong, right, general=f"With many inputs, {wrong}.")


DECISIONS = Cases("align", _waiting, _wrong_decision, "A task with {inputs} inputs waits for the last barrier")
"""The test of single decisions, for a task with so many inputs that a search of all schedules would take too long."""
ALIGNMENT = Drill("align", "alignment_drill", lambda open_model, ask: ClosedModel(open_model, ask, _aligns))

SETTINGS = Settings(
    "job_settings",
    "barriers",
    {
        "mode": ("aligned", "at_least_once", "unaligned"),
        "sink": ("append", "two_phase"),
        "retention": ("delete", "keep"),
    },
    ("no_loss", "no_duplicate", "counted_once", "exact", "ends"),
)

TWO_OFFSETS: dict[str, object] = {"words": "hello-world-world-hello-hello", "sources": 2, "counts": 1, "crashes": 0}
"""The parameters of a job in which source 0 reads hello, world, hello and source 1 reads world, hello."""
_BARRIERS_APART = "read(0) trigger inject(0) read(0) read(1) read(1) inject(1) settle"


def _apart() -> Walk:
    model = make("barriers", TWO_OFFSETS)
    assert isinstance(model, Barriers)
    return Walk(play(model, _BARRIERS_APART))


PREDICTION = Prediction(
    "predicted_04",
    _apart,
    {
        "offsets": lambda walk: walk.until("complete").facts["checkpoint_offsets"],
        "counts": lambda walk: str(walk.until("complete").facts["checkpoint_counts"]),
    },
)

JUDGES = {
    "04-predict": by(PREDICTION.judge, variant("two offsets")),
    "04-align": by(
        by_parameter(ALIGNMENT.judge, inputs=DECISIONS.judge),
        variant("two sources, one count", sources=2, counts=1, words="hello-hello", crashes=1),
        variant("one source longer than the other", sources=2, counts=1, words="hello-hello-hello", crashes=0),
        variant("a task with three inputs", inputs=3),
    ),
    "04b-settings": by(
        SETTINGS.judge,
        variant("a crash and a cancellation", words="hello-hello", sources=2, counts=1, crashes=1, cancels=1),
    ),
}
