"""The exercises of notebook 01: the state after a killed job, and a chain that is only as good as its weakest link."""

from labkit.sim import chains
from labkit.teach.exercises.constants import Chosen, Prediction, Settings
from labkit.teach.exercises.contract import Plain, Variant, by, variant
from labkit.teach.study import simulate


def _killed_in_a_write(_variant: Variant) -> tuple[dict[str, Plain], str | None]:
    walk = simulate("sink.mid_write", sink="append")
    return {"lost": list(walk.verdict.lost), "duplicate": list(walk.verdict.duplicate)}, str(walk.trace)


PREDICTION = Prediction("predicted_01", {"lost": list, "duplicate": list}, _killed_in_a_write)


def _chain(chosen: Chosen, variant: Variant) -> dict[str, object]:
    chain = chains.chain(chosen["source"], chosen["engine"], chosen["sink"])
    return chain.parameters() | dict(variant.parameters)


LINKS = Settings(
    "links",
    "pipeline",
    {"source": tuple(chains.SOURCES), "engine": tuple(chains.ENGINES), "sink": chains.SINKS},
    ("no_loss", "no_duplicate", "no_regression", "no_orphan", "ends"),
    _chain,
)


JUDGES = {
    "01-predict": by(PREDICTION.judge, variant("append, sink.mid_write")),
    "01-links": by(LINKS.judge, variant("four records, one crash", crashes=1)),
}
