"""The exercises on a sink's demands on its store: which of `DEMANDS` a store breaks, and the first as a property."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from labkit.sim.model import Model
from labkit.sim.models.pipeline.model import Pipeline
from labkit.sim.models.pipeline.state import Handle, Status, Transaction, VisibleRow
from labkit.teach.exercises.asking import Asker, Unusable, shown
from labkit.teach.exercises.contract import Finding, Plain, Variant, by, variant
from labkit.teach.exercises.invariants import Watch
from labkit.teach.exercises.searching import Cases

SHOWS, ENDS = ("committed", "everything"), ("anybody", "its session")
AGAIN = ("nothing", "error", "next")
DEMANDS = {
    1: "Nothing is visible before the commit.",
    2: "A transaction may stay open for a whole interval.",
    3: "A pre-committed transaction stays until it is ended, also across a restart.",
    4: "Another process can end it.",
    5: "A second commit changes nothing.",
}
Store = dict[str, Plain]
Job = dict[str, int]


def really_broken(store: Mapping[str, Any], job: Job) -> list[int]:
    """Return the keys in `DEMANDS` (1 to 5) of those requirements that a store does not meet for a job.

    `store` describes a store's transactions, and `job` has the interval and duration of checkpoints and the downtime.
    """
    kept = {
        1: store["shows"] == "committed",
        2: store["open"] is None or store["open"] > job["interval"],
        3: store["sealed"] is None or store["sealed"] > job["checkpoint"] + job["downtime"],
        4: store["ends"] == "anybody",
        5: store["again"] == "nothing",
    }
    return [number for number, is_kept in kept.items() if not is_kept]


def _stores(variant: Variant) -> Iterator[tuple[Store, Job]]:
    """Yield pairs of a store and a job; the first store meets every demand.

    The job has the times in the variant. The stores' time limits are just below, just above or far from its needs.
    """
    job: Job = {name: int(variant[name]) for name in ("interval", "checkpoint", "downtime")}
    needed = job["downtime"] + job["checkpoint"]
    longer = max(job["downtime"], job["checkpoint"])
    open_for = (None, job["interval"] + 1, job["interval"], job["interval"] - 1, 0)
    sealed = (None, needed + 1, job["checkpoint"] + 1, longer + 1, needed, 1, 0)
    names = ("shows", "open", "sealed", "ends", "again")
    for values in product(SHOWS, open_for, sealed, ENDS, AGAIN):
        yield dict(zip(names, values, strict=True)), job


def _wrong(ask: Asker, case: tuple[Store, Job]) -> Finding | None:
    store, job = case
    answer, right = ask(store, dict(job)), really_broken(store, job)
    if type(answer) is not list or any(type(each) is not int for each in answer):
        raise Unusable(
            f"{ask.call(store, dict(job))} returned {shown(answer)}; return a list of the numbers (1 to 5) of the "
            "demands that the store does not meet."
        )
    if answer == right:
        return None
    statement = ask.with_answer(store, dict(job))
    differing = sorted({each for each in answer if type(each) is int} ^ set(right))
    if not differing:
        message = f"{statement}: list each demand once, in ascending order."
        general = "A demand occurs twice, or the demands are not in order."
        return Finding(False, message, statement, str(right), general=general)
    first = differing[0]
    verb = "breaks" if first in right else "keeps"
    sentence = DEMANDS.get(first, "There is no such demand.")
    message = f"{statement}, and this store {verb} demand {first} for this job: {sentence}"
    general = f"One of the answers is wrong about this demand: {sentence}"
    return Finding(False, message, statement, str(right), general=general)


BROKEN = Cases("broken", _stores, _wrong, "It is right about {} stores")


def _read(model: Model[Any], state: Any) -> tuple[Any, ...]:
    """Return the arguments of the learner's function: rows `[offset, transaction]`, and each transaction's status."""
    del model
    names = [str(each.handle) for each in state.transactions]
    read = [
        [row.offset, names[row.transaction] if row.transaction >= 0 else ""] for row in state.seen if row.offset >= 0
    ]
    ends = {name: str(each.status) for name, each in zip(names, state.transactions, strict=True)}
    return read, ends


def _readings(model: Model[Any], parts: Mapping[str, Any]) -> Iterator[Any]:
    """Yield simulator states with transactions of every status and with rows of these transactions and of none."""
    assert isinstance(model, Pipeline)
    state, records = model.initial(), len(model.settings.words)
    handles = [Handle(0, 0, number, 1) for number in range(parts.get("transactions", 0))]
    handles += [Handle(0, 0, 0, incarnation, attempt) for incarnation, attempt in parts.get("handles", ())]
    for stands in product(Status, repeat=len(handles)):
        transactions = tuple(Transaction(handle, status, ()) for handle, status in zip(handles, stands, strict=True))
        for count in range(parts["rows"] + 1):
            for read in product(range(-1, len(handles)), repeat=count):
                seen = tuple(VisibleRow(place % records, 0, 1, of) for place, of in enumerate(read))
                yield state._replace(seen=seen, transactions=transactions)
        for place in range(parts.get("long", 0)):
            of = [0 if each == place else len(handles) - 1 for each in range(parts["long"])]
            seen = tuple(VisibleRow(each % records, 0, 1, one) for each, one in enumerate(of))
            yield state._replace(seen=seen, transactions=transactions)


WATCH = Watch("clean", "pipeline", "no_aborted_read", _read, _readings)
OPEN_TABLE: dict[str, object] = {"store": "sqlite", "reader": "table"}

JUDGES = {
    "09b-demands": by(
        BROKEN.judge,
        variant("a short interval", interval=10, checkpoint=2, downtime=30),
        variant("a long interval, never down", interval=60, checkpoint=5, downtime=0),
        variant("very long times", interval=2_000_000, checkpoint=500_000, downtime=1_000_000),
    ),
    "08-early": by(
        WATCH.judge,
        variant("no harm", good=(("hidden rows", {}), ("an open table, and no crash", {**OPEN_TABLE, "crashes": 0}))),
        variant("any two transactions", assembled=(("any two", {}, {"transactions": 2, "rows": 2}),)),
        variant("names alike", assembled=(("names alike", {}, {"handles": ((1, 0), (12, 0), (1, 2)), "rows": 2}),)),
        variant("an open table", bad=(("an open table", {**OPEN_TABLE, "words": "hello-world"}),)),
        variant("many rows", assembled=(("many rows", {}, {"transactions": 2, "rows": 0, "long": 105}),)),
    ),
}
