"""Two exercises on what a transactional sink requires of its store.

In one, learners tell which of five requirements (`DEMANDS`) a store does not meet. In the other they write the first
requirement, that nothing is visible before the commit, as a property.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import permutations, product
from typing import Any

from labkit.sim.model import Model
from labkit.sim.models.pipeline.model import Pipeline
from labkit.sim.models.pipeline.state import Handle, Status, Transaction, VisibleRow
from labkit.teach.exercises.asking import Asker, shown
from labkit.teach.exercises.confused import texts_alike
from labkit.teach.exercises.contract import Finding, Plain, Variant, by, variant
from labkit.teach.exercises.invariants import Told, Watch, wrong_told
from labkit.teach.exercises.searching import Cases, by_parameter

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
    """Return the numbers (keys of `DEMANDS`) of the demands that a store does not meet for a job."""
    kept = {
        1: store["shows"] == "committed",
        2: store["open"] is None or store["open"] > job["interval"],
        3: store["sealed"] is None or store["sealed"] > job["checkpoint"] + job["downtime"],
        4: store["ends"] == "anybody",
        5: store["again"] == "nothing",
    }
    return [number for number, is_kept in kept.items() if not is_kept]


_GOOD: Store = {"shows": "committed", "open": None, "sealed": None, "ends": "anybody", "again": "nothing"}
_LIMITS: tuple[tuple[str, Sequence[int], Job], ...] = (
    ("open", (9, 50, 2**32 + 5, 10**15), {"interval": 100}),
    ("open", (2**60 - 1, 2**60, 2**60 + 1), {"interval": 2**60}),
    ("sealed", (9, 30, 2**32 + 5, 10**15), {"checkpoint": 40, "downtime": 60}),
    ("sealed", (2**60 - 1, 2**60, 2**60 + 1), {"checkpoint": 1, "downtime": 2**60 - 1}),
)
"""Limits and times that an answer confuses if it compares them as text, rounds them, or cuts them to 32 bits."""


def _stores(variant: Variant) -> Iterator[tuple[Store, Job]]:
    """Yield pairs of a store and the job that uses it; the first store meets every demand.

    The first pairs have stores with every combination of properties. Most of their time limits are equal to a time of
    the job, to a sum of two, or longer or shorter by 1. The last pairs have the limits and times of `_LIMITS`.
    """
    job: Job = {name: int(variant[name]) for name in ("interval", "checkpoint", "downtime")}
    needed = job["downtime"] + job["checkpoint"]
    longer = max(job["downtime"], job["checkpoint"])
    open_for = (None, job["interval"] + 1, job["interval"], job["interval"] - 1, 0)
    sealed = (None, needed + 1, job["checkpoint"] + 1, longer + 1, needed, 1, 0)
    names = ("shows", "open", "sealed", "ends", "again")
    for values in product(SHOWS, open_for, sealed, ENDS, AGAIN):
        yield dict(zip(names, values, strict=True)), job
    for name, limits, times in _LIMITS:
        for limit in limits:
            yield {**_GOOD, name: limit}, {**job, **times}


def _wrong(ask: Asker, case: tuple[Store, Job]) -> Finding | None:
    store, job = case
    answer, right = ask(store, dict(job)), really_broken(store, job)
    if type(answer) is not list or any(type(each) is not int for each in answer):
        wanted = "a list of the numbers (1 to 5) of the demands that the store does not meet"
        raise ask.unusable(wanted, store, dict(job))
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
    """Return a list of the rows read, and a dict from the name of each transaction to its status.

    A row is `[offset, transaction]`; the transaction's name is empty for a row outside of any transaction.
    """
    del model
    names = [str(each.handle) for each in state.transactions]
    read = [
        [row.offset, names[row.transaction] if row.transaction >= 0 else ""] for row in state.seen if row.offset >= 0
    ]
    ends = {name: str(each.status) for name, each in zip(names, state.transactions, strict=True)}
    return read, ends


def _readings(model: Model[Any], parts: Mapping[str, Any]) -> Iterator[Any]:
    """Yield states of the model with every combination of the transactions' statuses and of the rows a reader has read.

    `parts["rows"]` is the largest number of rows read. There are `parts["transactions"]` transactions (none if the key
    is missing), and one more for each pair (incarnation, attempt) in `parts["handles"]`.
    """
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


WATCH = Watch("clean", "pipeline", "no_aborted_read", _read, _readings)


def _names_alike(variant: Variant) -> Iterator[Told]:
    """Yield test cases with transactions whose names are similar; some of them are aborted."""
    for group in texts_alike(variant["named"]):
        # Any two names have positions that differ in some bit, so in some case only one of the two is aborted.
        for bit, side in product(range((len(group) - 1).bit_length()), (0, 1)):
            aborted = [name for place, name in enumerate(group) if (place >> bit) & 1 == side]
            pairs = permutations(group, 2) if len(group) > 2 else ()
            yield _read_of(group, aborted, (_read_of(pair, [each]) for pair in pairs for each in pair))
        stands: dict[str, Plain] = {name: "aborted" if place == 0 else "open" for place, name in enumerate(group)}
        for before, after in (([], []), ([group[1], ""], []), ([], ["", group[1]])):
            rows: list[Plain] = [[1_000, name] for name in (*before, group[0], *after)]
            yield Told((rows, stands), False, f"a row was read of {shown(group[0])}, which is aborted")


def _read_of(names: Sequence[str], aborted: Sequence[str], simpler: Iterable[Told] = ()) -> Told:
    """Return a right case: the reader has read one row of each transaction in `names`, except those in `aborted`.

    `simpler` are smaller cases; if the learner's answer is wrong in one of these, that one is shown instead.
    """
    others = ("open", "prepared", "committed")
    ends: dict[str, Plain] = {
        name: "aborted" if name in aborted else others[place % 3] for place, name in enumerate(names)
    }
    read: list[Plain] = [[1_000 * place, name] for place, name in enumerate(names) if name not in aborted]
    return Told((read, ends), True, "no row was read of a transaction that is aborted", simpler)


def _many_reads(variant: Variant) -> Iterator[Told]:
    """Yield test cases with many rows and transactions, in which at most one row belongs to an aborted transaction."""
    count = variant["reads"]
    names = [f"q{number}-b0-p0-i1" for number in range(count)]
    committed: dict[str, Plain] = dict.fromkeys(names, "committed")
    some: list[Plain] = [[offset, ""] for offset in range(count)]
    for place, of in ((0, 0), (count - 1, 0), (0, count - 1), (count // 2, count // 2)):
        ends = {**committed, names[of]: "aborted"}
        read: list[Plain] = [*some[:place], [place, names[of]], *some[place + 1 :]]
        why = f"row {place + 1} of {count} was read of transaction {of + 1} of {count}, which is aborted"
        yield Told((read, ends), False, why, of_many="")
    several: list[Plain] = [[offset, name] for offset, name in enumerate(names[1:])]
    ends = {**committed, names[0]: "aborted"}
    yield Told((several, ends), True, "every row is of a committed one", of_many="")


_GENERAL = "With many rows or transactions, or with names that are nearly equal,"
_wrong_reads = partial(
    wrong_told,
    general={
        True: f"{_GENERAL} rows of an aborted transaction are accepted.",
        False: f"{_GENERAL} rows that harm nobody are rejected.",
    },
)
NAMES_ALIKE = Cases("clean", _names_alike, _wrong_reads, "It is right about {} readers, and names that are alike")
MANY_READS = Cases("clean", _many_reads, _wrong_reads, "It is right about {} readers of many rows")
OPEN_TABLE: dict[str, object] = {"store": "sqlite", "reader": "table"}

JUDGES = {
    "09b-demands": by(
        BROKEN.judge,
        variant("a short interval", interval=10, checkpoint=2, downtime=30),
        variant("a long interval, never down", interval=60, checkpoint=5, downtime=0),
        variant("very long times", interval=2_000_000, checkpoint=500_000, downtime=1_000_000),
    ),
    "08-early": by(
        by_parameter(WATCH.judge, reads=MANY_READS.judge, named=NAMES_ALIKE.judge),
        variant("no harm", good=(("hidden rows", {}), ("an open table, and no crash", {**OPEN_TABLE, "crashes": 0}))),
        variant("any two transactions", assembled=(("any two", {}, {"transactions": 2, "rows": 2}),)),
        variant("names alike", assembled=(("names alike", {}, {"handles": ((1, 0), (12, 0), (1, 2)), "rows": 2}),)),
        variant("an open table", bad=(("an open table", {**OPEN_TABLE, "words": "hello-world"}),)),
        variant("names of any kind", named="stream"),
        variant("many rows", reads=2_100),
    ),
}
