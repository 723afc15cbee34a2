"""Compare the writes of several stream processors in one step, and kill each before it records that the step is done.

A step is one batch, checkpoint or transaction of an engine; at its end the engine records that the step is done. The
writes come from recordings that are shipped with labkit. Only the Kafka clients are really killed, because they need
nothing but a broker. For the other engines, and where no broker can be started, labkit shows recorded results.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from labkit.core.arguments import takes
from labkit.core.errors import InvalidInput, JobFailed, ServiceUnavailable
from labkit.core.words import nearest
from labkit.crashtest.blackbox.standing import standing
from labkit.crashtest.blackbox.writes import AtomicWrite, Orders, meaning
from labkit.host.syscalls.support import supported
from labkit.sim.writes import Write
from labkit.teach.engine_pipelines import Pipeline, kept, pipelines
from labkit.view.card import BAD, Cell, Html, Shown, Tabled, para
from labkit.view.lanes import Lane, Stage, picture, text


class Engine(NamedTuple):
    """A stream processor in the comparison of `lab.engines`, with a pipeline whose writes were recorded earlier."""

    pipeline: str
    name: str
    place: str
    """The write right before which the pipeline is killed.

    The write belongs to the second step. If the rows and the record that the step is done are separate writes, the kill
    comes between them.
    """
    rows: int
    """The number of rows that a reader found after that kill and a restart (data/pipelines/engines/README.md)."""
    own: tuple[tuple[str, str], ...] = ()
    """Pairs of a pattern and a meaning, for writes whose meaning the recording alone does not reveal.

    `cells.toml` has the same pairs.
    """
    ends: str | None = None
    """The name of the write that ends a step, for pipelines whose step consists of one write."""


_COMMITS, _ENDS = "rename checkpoint/commits/<n> #2", "send <kafka> EndTxn #2"
ENGINES = {
    "spark": Engine("spark_append_parquet", "Spark, foreachBatch appends", _COMMITS, 12),
    "delta": Engine(
        "delta_txn", "Spark, Delta with txnVersion", _COMMITS, 9, (("rename */_delta_log/<n>.json", "visible+marker"),)
    ),
    "flink": Engine("flink_file_sink", "Flink, file sink", "rename output/part-<uuid>-0-3 #1", 9),
    "consumer": Engine("kafka_consumer", "Kafka, offsets afterwards", "send <kafka> OffsetCommit #2", 12),
    "transaction": Engine("kafka_transactions", "Kafka, offsets in transaction", _ENDS, 9, ends="send * EndTxn"),
}  # fmt: skip
"""The stream processors of the comparison, by the short names that `lab.engines` accepts."""

WRITE_NAMES = {
    Write.PLAN: "plan",
    Write.STATE: "state",
    Write.STAGED: "rows, unseen",
    Write.VISIBLE: "rows",
    Write.MARKER: "batch id",
    Write.DECISION: "done",
    Write.NOTICE: "offsets",
    Write.CLEAN: "cleaning",
}
"""The label of each kind of write in the picture."""
DUE = 9
"""The number of rows that each pipeline should produce."""


def _orders_of(engine: Engine) -> Orders:
    own = [meaning(*each) for each in engine.own]
    orders = standing(kept(engine.pipeline).effects, own, engine.ends).orders
    assert orders is not None, "tests read every recording"
    return orders


def _lane(engine: Engine, under: str, *, killed: bool, verdict: str = "") -> Lane:
    orders = _orders_of(engine)
    at = orders.place(engine.place)
    writes = orders.steps[1]
    return Lane(
        engine.name, under, [stage(each) for each in writes], at[1] if killed and at is not None else -1, verdict
    )


def stage(write: AtomicWrite) -> Stage:
    """Return the box in an engine's picture for writes that take effect together, such as rows and offsets."""
    decides = bool({Write.DECISION, Write.NOTICE} & set(write.writes))
    # A checkpoint is both the state and the decision; the picture shows only the decision.
    phrases = [WRITE_NAMES[each] for each in write.writes if each is not Write.STATE]
    by = write.effects[-1].rpartition(" #")[0].partition(" ")[2]
    by = by.replace("<kafka> ", "").replace("<uuid>", "*").replace("<n>", "N")
    for folder in ("checkpoint/", "output/", "*/"):
        by = by.removeprefix(folder)
    return Stage(" + ".join(phrases), by, decides, Write.VISIBLE in write.writes)


class Engines(Shown):
    """A picture of the writes that each engine makes in one step (a batch or a checkpoint).

    The writes come from recorded runs that are shipped with labkit. With `killed`, the picture also marks the write
    before which `lab.kill_engines` kills the engine.
    """

    title = "One step of each engine, from left to right"

    def __init__(self, names: Sequence[str] = (), *, killed: bool = False) -> None:
        self.names = [*(names or ENGINES)]
        self.lanes = [
            _lane(ENGINES[name], f"recorded: {kept(ENGINES[name].pipeline).versions[0]}", killed=killed)
            for name in self.names
        ]

    def __str__(self) -> str:
        return text(self.lanes)

    def html(self) -> str:
        """Return the picture as SVG, with one row for each engine."""
        return picture(self.lanes, self.title)


@takes('lab.engines("spark", "flink")')
def engines(*names: str, killed: bool = False) -> Engines:
    """Return a picture of the writes that each engine makes in one step (a batch or a checkpoint).

    The writes come from recorded runs that are shipped with labkit. The names are `"spark"`, `"delta"` (Spark with a
    Delta table), `"flink"`, `"consumer"` and `"transaction"` (two Kafka clients); without names, the picture shows all.
    With `killed=True` it marks the write before which `kill_engines` kills each engine. Raises `InvalidInput` for an
    unknown name.
    """
    return Engines(_checked(names), killed=killed)


class Kill(NamedTuple):
    """The result for one engine that was killed and restarted: the rows found after the restart, and the guarantee."""

    name: str
    rows: int
    guarantee: str
    because: str
    """The reason why a recorded result is shown; empty if the engine was killed here."""

    @property
    def twice(self) -> int:
        """The number of rows that a reader found beyond the expected number; negative if rows are missing."""
        return self.rows - DUE


class Kills(Tabled):
    """The results of `kill_engines`, one for each engine: the rows that a reader found after kill and restart.

    The results of some engines may come from recorded runs.
    """

    title = "Killed after writing rows, before recording the step as done, and started again"

    def __init__(self, kills: Sequence[Kill]) -> None:
        self.kills = kills
        self.lanes = [_lane(ENGINES[each.name], _how(each), killed=True, verdict=each.guarantee) for each in kills]

    @property
    def doubled(self) -> list[str]:
        """The short names of the engines that wrote some rows twice."""
        return [each.name for each in self.kills if each.guarantee == "at-least-once"]

    def _head(self) -> Sequence[str]:
        return "", "rows", "guarantee left", "source"

    def _rows(self) -> Iterable[Sequence[str | Cell]]:
        for each in self.kills:
            left = Cell(each.guarantee, BAD if each.guarantee != "exactly-once" else "")
            yield ENGINES[each.name].name, f"{each.rows} of {DUE}", left, _how(each)

    def _parts(self) -> Iterable[str]:
        why = dict.fromkeys(each.because for each in self.kills if each.because)
        notes = (para(each, kind="lkc-under") for each in why)
        return [Html(picture(self.lanes, self.title)), *super()._parts(), *notes]


def _how(kill: Kill) -> str:
    return "recorded" if kill.because else "killed here, signal 9"


RECORDED = (
    "Recorded, not run here: Flink and Delta must be downloaded first, and a plain Spark job takes a minute. "
    "In a clone of labkit's repository, python tools/pipelines.py NAME runs them."
)


@takes('lab.kill_engines("consumer", "transaction")')
def kill_engines(*names: str) -> Kills:
    """Kill engines after they wrote rows but before they recorded the step as done; restart them and count the rows.

    A step is a batch or a checkpoint. The names are those of `engines`; without names, all are tested. Only
    `"consumer"` and `"transaction"`, which are plain Kafka clients, are killed on this machine, with a private broker.
    For the other engines, or if no broker can be started, the returned card shows the result of a recorded run and says
    so. Raises `InvalidInput` for an unknown name.
    """
    chosen, all_pipelines = _checked(names), pipelines()
    tested = {name: all_pipelines[ENGINES[name].pipeline] for name in chosen}
    kills = {name: Kill(name, ENGINES[name].rows, each.guarantee, RECORDED) for name, each in tested.items()}
    if live := {name: each for name, each in tested.items() if each.needs}:  # a broker, which only Kafka clients need
        try:
            kills |= _killed(live)
        except (ServiceUnavailable, JobFailed) as error:
            kills |= {name: kills[name]._replace(because=f"Recorded, not run here: {error}") for name in live}
    return Kills([kills[name] for name in chosen])


def _killed(live: Mapping[str, Pipeline]) -> dict[str, Kill]:
    if why := supported():
        raise ServiceUnavailable(why)
    from labkit.teach.engine_kills import broker, kill

    kills = {}
    with broker() as variables:
        for name, pipeline in live.items():
            verdict = kill(pipeline, ENGINES[name].place, variables)
            kills[name] = Kill(name, verdict.rows, verdict.guarantee.value, "")
    return kills


def _checked(names: Sequence[str]) -> list[str]:
    for name in names:
        if name not in ENGINES:
            raise InvalidInput(f"there is no engine {name[:40]!r}; {nearest(name[:40], list(ENGINES))}")
    return [*(names or ENGINES)]
