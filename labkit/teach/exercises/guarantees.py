"""Exercises of notebook 01: what a killed job leaves, a chain that holds, and what its weakest link decides."""

from labkit.sim import chains
from labkit.teach.exercises.constants import Chosen, Prediction, Settings, Statements
from labkit.teach.exercises.contract import Exercise, Kind, Level, Plain, Variant
from labkit.teach.study import simulate

NOTEBOOK = "01_guarantees"


def _killed_in_a_write(_variant: Variant) -> tuple[dict[str, Plain], str | None]:
    walk = simulate("sink.mid_write", sink="append")
    return {"lost": list(walk.verdict.lost), "duplicate": list(walk.verdict.duplicate)}, str(walk.trace)


PREDICTION = Prediction("predicted_01", {"lost": list, "duplicate": list}, _killed_in_a_write)


def _chain(chosen: Chosen, variant: Variant) -> dict[str, object]:
    found = chains.chain(chosen["source"], chosen["engine"], chosen["sink"])
    return found.parameters() | dict(variant.parameters)


LINKS = Settings(
    "links",
    "pipeline",
    {"source": tuple(chains.SOURCES), "engine": tuple(chains.ENGINES), "sink": chains.SINKS},
    ("no_loss", "no_duplicate", "no_regression", "no_orphan", "ends"),
    _chain,
)

STATEMENTS = Statements(
    "weakest_answer",
    {
        "a": "At-most-once and at-least-once are not steps of one ladder: a source that loses and a sink that doubles "
        "together give no guarantee at all (pipeline.lost_and_doubled).",
        "b": "A source that gives every record once cannot be repaired by any sink: what was read before the crash and "
        "not written is gone (pipeline.forgetful_source).",
        "c": "A sink can raise the level: behind a source that replays, an idempotent sink turns at-least-once into "
        "exactly-once in the end. So the chain can be better than its engine alone.",
        "d": "The engine's word is about its own state. What a reader sees depends on what the sink does when a batch "
        "runs again.",
    },
    "c",
)

EXERCISES = (
    Exercise(
        name="01-predict",
        notebook=NOTEBOOK,
        title="killed in the middle of a write",
        kind=Kind.PREDICT,
        level=Level.EASY,
        points=1,
        answer="predicted_01",
        task="append, with hello (offset 0), world (1), hello (2) in one batch; the job is killed when the rows of "
        "offsets 1 and 0 are out. Which offsets are lost, which come twice?",
        hints=(
            "The batch had been planned and not finished: what does the restarted job do with it?",
            "A row that is out cannot be taken back by this sink.",
        ),
        lines=1,
        public=(Variant("append, sink.mid_write"),),
        judge=PREDICTION.judge,
    ),
    Exercise(
        name="01-links",
        notebook=NOTEBOOK,
        title="a chain that holds",
        kind=Kind.CONFIGURE,
        level=Level.EASY,
        points=2,
        answer="links",
        task="Choose source, engine and sink so that every record comes out exactly once and no value is seen to jump "
        "back, with a crash at any step.",
        hints=(
            "lab.chains() shows every chain; which squares say exactly-once, and do not say that a value jumps back?",
            "The source must be one that can be read again, and the sink must not show a row before its batch is safe.",
        ),
        lines=1,
        public=(Variant("four records, one crash", (("crashes", 1),)),),
        judge=LINKS.judge,
    ),
    Exercise(
        name="01-weakest",
        notebook=NOTEBOOK,
        title="the weakest link",
        kind=Kind.EXPLAIN,
        level=Level.EASY,
        points=1,
        answer="weakest_answer",
        task='"The guarantee of a chain is that of its weakest link." What shows that this is not the whole truth?',
        hints=(
            "Look for a chain that is better than one of its links.",
            "What does an idempotent sink make of a batch that runs again?",
        ),
        lines=1,
        public=(Variant("statements"),),
        judge=STATEMENTS.judge,
    ),
)
