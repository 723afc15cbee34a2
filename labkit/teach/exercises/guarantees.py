"""The exercises of notebook 01: the state after a killed job, and a chain that is only as good as its weakest link."""

from labkit.sim import chains
from labkit.teach.exercises.constants import Prediction, Settings
from labkit.teach.exercises.contract import by, variant
from labkit.teach.study import simulate

PREDICTION = Prediction(
    "predicted_01",
    lambda: simulate("sink.mid_write", sink="append"),
    {"lost": lambda walk: walk.verdict.lost, "duplicate": lambda walk: walk.verdict.duplicate},
)
LINKS = Settings(
    "links",
    "pipeline",
    {"source": tuple(chains.SOURCES), "engine": tuple(chains.ENGINES), "sink": chains.SINKS},
    ("no_loss", "no_duplicate", "no_regression", "no_orphan", "ends"),
    lambda chosen: chains.chain(chosen["source"], chosen["engine"], chosen["sink"]).parameters(),
)

JUDGES = {
    "01-predict": by(PREDICTION.judge, variant("append, sink.mid_write")),
    "01-links": by(LINKS.judge, variant("four records, one crash", crashes=1)),
}
