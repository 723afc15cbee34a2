"""Exercises of notebook 04: alignment of barriers, what a checkpoint holds, and settings that survive."""

from typing import Any

from labkit.sim.model import Action
from labkit.sim.open_models.alignment import OpenAlignment
from labkit.sim.trace import make
from labkit.teach.exercises.asking import Asker, Unusable, shown
from labkit.teach.exercises.closing import ClosedModel
from labkit.teach.exercises.constants import Chosen, Prediction, Settings
from labkit.teach.exercises.contract import (
    Answer,
    Exercise,
    Finding,
    Kind,
    Level,
    Plain,
    Variant,
)
from labkit.teach.exercises.searching import search
from labkit.teach.study import replay

NOTEBOOK = "04_barriers"


def _aligns(ask: Asker, open_model: OpenAlignment, state: Any, action: Action) -> bool:
    """Whether a task reads this channel, or copies, as the learner's function says; it copies before it reads on."""
    question = open_model.question(state, action)
    assert question is not None
    inputs, came, _ = question
    said = ask(*question)
    if type(said) is not dict or set(said) != {"read", "copy"}:
        raise Unusable(
            f'{ask.call(*question)} returned {shown(said)}; return a dict with the keys "read" and "copy".'
        )
    reads, copies = said["read"], said["copy"]
    if type(copies) is not bool or type(reads) is not list:
        raise Unusable(
            f'{ask.told(*question)}: "read" must be a list of inputs, and "copy" True or False.'
        )
    if any(type(each) is not int or not 0 <= each < inputs for each in reads):
        raise Unusable(
            f'{ask.told(*question)}: "read" may hold the inputs 0 to {inputs - 1}.'
        )
    if copies and came:
        return action.name == "snapshot"
    return action.name != "snapshot" and open_model.into(action) in reads


def judge_alignment(answer: Answer, variant: Variant) -> Finding:
    """Every schedule of a job with checkpoints and crashes."""
    open_model: Any = make("alignment_drill", dict(variant.parameters))
    return search(
        answer, "align", lambda ask: ClosedModel(open_model, ask, _aligns), "ends"
    )


def _job(chosen: Chosen, variant: Variant) -> dict[str, object]:
    return chosen | dict(variant.parameters)


SETTINGS = Settings(
    "job_settings",
    "barriers",
    {
        "mode": ("aligned", "at_least_once", "unaligned"),
        "sink": ("append", "two_phase"),
        "retention": ("delete", "keep"),
    },
    ("no_loss", "no_duplicate", "counted_once", "exact", "ends"),
    _job,
)


def _third(_variant: Variant) -> tuple[dict[str, Plain], str | None]:
    walk = replay("barriers.crash_at_the_third")
    stored = walk.until("crash")
    offsets = stored.facts["checkpoint_offsets"]
    assert isinstance(offsets, list)
    return {
        "offset": offsets[0],
        "counts": str(stored.facts["checkpoint_counts"]),
    }, str(walk.trace)


PREDICTION = Prediction("predicted_04", {"offset": int, "counts": str}, _third)

EXERCISES = (
    Exercise(
        name="04-predict",
        notebook=NOTEBOOK,
        title="what the checkpoint holds",
        kind=Kind.PREDICT,
        level=Level.EASY,
        points=1,
        answer="predicted_04",
        task="hello, world, hello; a checkpoint completes after two records, and the job dies at the third. Which is "
        "the next offset in the checkpoint, and which counts does it hold?",
        hints=(
            "An offset in a checkpoint is the next one to read.",
            'Counts are written as "hello=1 world=1".',
        ),
        lines=1,
        public=(Variant("barriers.crash_at_the_third"),),
        judge=PREDICTION.judge,
    ),
    Exercise(
        name="04-align",
        notebook=NOTEBOOK,
        title="wait for the last barrier",
        kind=Kind.COMPLETE,
        level=Level.HARD,
        points=5,
        answer="align",
        task="align(inputs, came, ended) says which inputs a task may read now, and whether it copies its state.",
        hints=(
            "What is in the copy, if the task reads on from an input whose barrier has come?",
            "It copies when no input is left from which a barrier is still to come. One that has ended brings none.",
            "Where no barrier has come, everything may be read and nothing is copied.",
        ),
        lines=3,
        public=(
            Variant(
                "two sources, one count",
                (
                    ("sources", 2),
                    ("counts", 1),
                    ("words", "hello-hello"),
                    ("crashes", 1),
                ),
            ),
            Variant(
                "one source longer than the other",
                (
                    ("sources", 2),
                    ("counts", 1),
                    ("words", "hello-hello-hello"),
                    ("crashes", 0),
                ),
            ),
        ),
        judge=judge_alignment,
        withheld=(
            "labkit.sim.models.barriers.operators",
            "labkit.sim.models.barriers.schedule",
        ),
    ),
    Exercise(
        name="04-settings",
        notebook=NOTEBOOK,
        title="cancelled on Friday, started on Monday",
        kind=Kind.CONFIGURE,
        level=Level.MEDIUM,
        points=2,
        answer="job_settings",
        task="Choose mode, sink and what becomes of a cancelled job's checkpoints, so that every row comes out exactly "
        "once although the job may die once and may be cancelled once and started again.",
        hints=(
            "What does a job start from whose checkpoints were deleted?",
            "Which sink can take back what its checkpoint did not decide?",
        ),
        lines=1,
        public=(
            Variant(
                "a crash and a cancellation",
                (
                    ("words", "hello-hello"),
                    ("sources", 2),
                    ("counts", 1),
                    ("crashes", 1),
                    ("cancels", 1),
                ),
            ),
        ),
        judge=SETTINGS.judge,
    ),
)
