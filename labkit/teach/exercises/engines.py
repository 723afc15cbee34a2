"""The exercises of notebook 12: the right order of writes for a given store, and the step at which a restart resumes.

A store is described by a dict: how it writes rows, whether it stages rows, and which writes it can combine.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import permutations, product
from typing import Any

from labkit.core.verdict import Guarantee
from labkit.sim.models.orders.state import World
from labkit.sim.orders.killing import killing
from labkit.sim.orders.outcomes import OrderResult, find
from labkit.sim.writes import AtomicSet, Design, Leftover, Output, Recovery, Start, Write, atomic, nonsense
from labkit.teach.exercises.asking import Asker, Unusable, a_list, shown
from labkit.teach.exercises.contract import Finding, Plain, Variant, by, variant
from labkit.teach.exercises.searching import Cases

OUTPUTS = {"added": Output.APPEND, "replaced": Output.UPSERT, "together": Output.TRANSACTION}
WRITES = {
    "plan": Write.PLAN,
    "staged": Write.STAGED,
    "rows": Write.VISIBLE,
    "marker": Write.MARKER,
    "done": Write.DECISION,
}
"""The kinds of write, by the names that exercise `12-order` and its picture use."""
Store = dict[str, Plain]
NO_ORDER = "no order is exactly-once with this store"


def stores(rows: str) -> Iterator[Store]:
    """Yield every kind of store that writes rows in one way: `"added"` or `"replaced"` one by one, or `"together"`.

    A store is a dict. `"stages"` tells whether it can keep rows that readers do not see yet. `"joins marker"` tells
    whether one write can contain both rows and the store's marker, which records the last step that it contains.
    `"joins done"` tells the same about rows and the engine's record that the step is done.
    """
    for stages, joins_marker, joins_done in product((False, True), repeat=3):
        yield {"rows": rows, "stages": stages, "joins marker": joins_marker, "joins done": joins_done}


def forbidden(steps: tuple[AtomicSet, ...], store: Mapping[str, Any]) -> str:
    """Return why a sink cannot write in the order `steps` to a `store`, as the end of a sentence; empty if it can."""
    writes = [write for each in steps for write in each]
    if len(set(writes)) < len(writes):
        return "a write occurs twice"
    needed = {Write.PLAN, Write.VISIBLE, Write.DECISION} - set(writes)
    if needed or steps[0] != (Write.PLAN,):
        return "the order must begin with plan alone, and it must contain rows and done"
    if Write.STAGED in writes and not store["stages"]:
        return "this store cannot stage rows without showing them"
    joined = next((set(each) for each in steps if len(each) > 1), set())
    allowed = {Write.VISIBLE} | {
        write
        for write, name in ((Write.MARKER, "joins marker"), (Write.DECISION, "joins done"))
        if store[name] and store["rows"] == "together"
    }
    several = sum(len(each) > 1 for each in steps) > 1
    if joined and (several or not joined <= allowed or Write.VISIBLE not in joined):
        return "this store cannot combine these writes into one"
    return nonsense(_design(steps, store))


def _design(steps: tuple[AtomicSet, ...], store: Mapping[str, Any]) -> Design:
    """Return the simulator's design of a sink that writes in the order `steps`.

    `store["rows"]` is the way in which the sink writes rows (see `stores`); the function ignores the rest of `store`.
    After a restart, the sink uses everything that it has written before, such as its marker or staged rows.
    """
    writes = [write for each in steps for write in each]
    place = {write: number for number, each in enumerate(steps) for write in each}
    leftover = Leftover.DROPPED
    if Write.STAGED in writes and place[Write.DECISION] < place[Write.VISIBLE]:
        leftover = Leftover.DECIDED
    recovery = Recovery(Start.DECISION, skips=Write.MARKER in writes, leftover=leftover)
    return Design(steps, OUTPUTS[str(store["rows"])], recovery)


@cache
def _searched(design: Design) -> OrderResult:
    return find(design, World.SAME)


def harm(steps: tuple[AtomicSet, ...], store: Mapping[str, Any], *, quiet: bool) -> str:
    """Return a sentence about a crash after which a sink loses or repeats rows; empty if no crash does this.

    The sink makes its writes in the order `steps`, and `store` is one of the dicts that `stores` yields. With `quiet`,
    the sentence may also be about a reader who sees wrong rows only for a while, for example half of a step's rows.
    """
    verdicts = _searched(_design(steps, store))
    if verdicts.guarantee is Guarantee.EXACTLY_ONCE and not (quiet and verdicts.witnesses):
        return ""
    claim, trace = next(iter(verdicts.witnesses.items()))
    return killing(claim, trace)


def _orders() -> Iterator[tuple[AtomicSet, ...]]:
    single_writes = {write: (write,) for write in WRITES.values()}
    rows, done = single_writes[Write.VISIBLE], single_writes[Write.DECISION]
    parts: list[list[AtomicSet]] = [
        [rows, done],
        [atomic((Write.VISIBLE, Write.DECISION))],
        [atomic((Write.VISIBLE, Write.MARKER)), done],
        [single_writes[Write.STAGED], rows, done],
    ]
    for part in parts:
        for order in permutations(part):
            yield (single_writes[Write.PLAN], *order)


def has_order(store: Mapping[str, Any], *, quiet: bool) -> bool:
    """Return whether some order of writes is exactly-once on `store`, which is one of the dicts that `stores` yields.

    With `quiet`, the order must also never show wrong rows to a reader, not even for a while.
    """
    return any(not forbidden(order, store) and not harm(order, store, quiet=quiet) for order in _orders())


def _stores(variant: Variant) -> Iterator[tuple[Store, bool]]:
    return product(stores(variant["rows"]), [bool(variant["quiet"])])


def _wrong_order(ask: Asker, case: tuple[Store, bool]) -> Finding | None:
    store, quiet = case
    answer = a_list(ask, ask(store, quiet), "writes, such as 'plan' and 'rows+marker'")
    statement = ask.with_answer(store, quiet)
    if not answer:
        if not has_order(store, quiet=quiet):
            return None
        why = "There is an order for this store."
        return Finding(False, f"{statement}. {why}", statement, "an order", general=why)
    steps = tuple(_set(ask, each) for each in answer)
    if not has_order(store, quiet=quiet):
        why = NO_ORDER.capitalize()
        reason = forbidden(steps, store) or harm(steps, store, quiet=quiet)
        return Finding(False, f"{statement}, and {NO_ORDER}: {reason}", statement, "[]", general=why)
    if reason := forbidden(steps, store):
        return Finding(False, f"{statement}: {reason}.", statement, "an order", general=reason)
    if reason := harm(steps, store, quiet=quiet):
        general = "With one of the stores a crash breaks the order."
        return Finding(False, f"{statement}. {reason}", statement, "exactly-once", general=general)
    return None


def _set(ask: Asker, text: Plain) -> AtomicSet:
    if not isinstance(text, str) or not text:
        raise Unusable(f"{ask.name} returned {shown(text)} in its list of writes; every write must be a string.")
    names = [each.strip() for each in text.split("+")]
    if unknown := [each for each in names if each not in WRITES]:
        raise Unusable(
            f"{ask.name} returned {shown(text)}: {shown(unknown[0])} is not a write; choose from {', '.join(WRITES)}."
        )
    return atomic(WRITES[each] for each in names)


ORDER = Cases("order", _stores, _wrong_order, "Every order was tested with crashes, rows {rows}")


def really_next(engine: str, left: list[str]) -> int:
    """Return the number of the step that an engine runs next after a crash; `left` are the names of the files on disk.

    Spark repeats a planned batch that has no commit. Flink continues after the newest checkpoint registered in `ha/`,
    where it registers a checkpoint only after writing the checkpoint's file `_metadata`
    (`CheckpointCoordinator.completePendingCheckpoint`, Flink 2).
    """
    folder = "offsets/" if engine == "spark" else "ha/"
    numbers = [int(each.removeprefix(folder)) for each in left if re.match(rf"{folder}\d", each)]
    if engine == "flink":
        return 1 + max(numbers, default=0)
    return max(numbers) + (f"commits/{max(numbers)}" in left) if numbers else 0


def _left(variant: Variant) -> Iterator[tuple[str, list[str]]]:
    """Yield pairs of an engine's name and a list of files that a crash can leave on disk.

    With the parameter `lists`, the variant lists the files itself. Without it, the files belong to steps that are
    numbered from the parameter `first` on. The first list is empty. With the parameter `kept`, one long list follows,
    whose newest step is `first` + `kept`. Without it, many short lists follow, which differ in the newest step's files.
    """
    engine = variant["engine"]
    if lists := dict(variant.parameters).get("lists"):
        yield from ((engine, list(each)) for each in lists)
        return
    first = variant["first"]
    yield engine, []
    if "kept" in dict(variant.parameters):
        files = _many_files(engine, first, first + variant["kept"])
        yield engine, files[len(files) // 2 :] + files[: len(files) // 2]  # the newest ones are in the middle
        return
    for newest in range(first, first + dict(variant.parameters).get("steps", 4)):
        for left in (_of_spark if engine == "spark" else _of_flink)(first, newest):
            yield engine, left
            yield engine, left[::-1]


def _many_files(engine: str, first: int, newest: int) -> list[str]:
    # Spark's newest batch has no commit yet.
    if engine == "flink":
        return [name for number in range(first, newest + 1) for name in (f"chk-{number}/_metadata", f"ha/{number}")]
    before = [f"{folder}/{number}" for number in range(first, newest) for folder in ("offsets", "commits")]
    return [*before, f"offsets/{newest}"]


def _of_spark(first: int, newest: int) -> Iterator[list[str]]:
    planned = _many_files("spark", first, newest)
    yield [*planned, f"commits/{newest}", f"offsets/.{newest + 1}.tmp"]
    yield planned
    yield [*planned, f"commits/.{newest}.tmp"]
    yield [*planned, f"commits/{newest}"]
    # Of an old batch, either the plan or the commit may be deleted first.
    for gone in (f"offsets/{first}", f"commits/{first}") if newest > first else ():
        yield [name for name in (*planned, f"commits/{newest}") if name != gone]
    yield [name for name in planned if name.startswith("offsets/")]


def _of_flink(first: int, newest: int) -> Iterator[list[str]]:
    complete = [f"chk-{newest}/_metadata", f"ha/{newest}"]
    yield complete
    yield [f"chk-{first}/_metadata", f"ha/{first}", *complete] if newest > first else complete
    yield [*complete, f"chk-{newest + 1}/state"]
    yield [*complete, f"chk-{newest + 1}/state", f"chk-{newest + 1}/._metadata.inprogress"]
    yield [*complete, f"chk-{newest + 1}/state", f"chk-{newest + 1}/_metadata"]
    yield [f"chk-{first}/._metadata.inprogress"]
    yield [f"chk-{first}/_metadata"]


def _wrong_step(ask: Asker, case: tuple[str, list[str]]) -> Finding | None:
    engine, left = case
    answer, right = ask(engine, list(left)), really_next(engine, left)
    if type(answer) is not int:
        raise ask.unusable("a number", engine, list(left))
    if answer == right:
        return None
    statement, general = ask.with_answer(engine, list(left)), "For one of the lists of files another step runs next."
    return Finding(False, f"{statement}; {engine} continues with {right}.", statement, str(right), general=general)


RESTART = Cases("next_step", _left, _wrong_step, "It is right about all files that crashes of {engine} leave")


def _orders_of(rows: str, *, quiet: bool) -> Variant:
    end = ", quietly" if quiet else ""
    return Variant(f"rows {rows}{end}", (("rows", rows), ("quiet", quiet)))


JUDGES = {
    "12-order": by(
        ORDER.judge,
        _orders_of("added", quiet=False),
        _orders_of("replaced", quiet=False),
        _orders_of("together", quiet=True),
        _orders_of("replaced", quiet=True),
    ),
    "12-restart": by(
        RESTART.judge,
        variant("Spark, a young job", engine="spark", first=0),
        variant("Flink, past checkpoint 9", engine="flink", first=8),
        variant("Spark, past batch 999", engine="spark", first=998),
        variant("Flink, an entry alone", engine="flink", lists=(("chk-9/_metadata", "ha/10", "chk-11/state"),)),
        variant("Spark, many files", engine="spark", first=7, kept=1_050),
        variant("Flink, many files", engine="flink", first=7, kept=1_050),
        variant("Spark, large numbers", engine="spark", first=2**62 + 1),
        variant("Flink, large numbers", engine="flink", first=2**62 + 1),
    ),
}
