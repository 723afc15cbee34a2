"""The exercises of notebook 09: a half visible transaction, and the offsets that a reader gets.

The simulator's own partition (`sim/models/kafka_log/state.py`) says which offsets a read_committed reader gets.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice

from labkit.sim.models.kafka_log.state import ABORT, COMMIT, PLAIN, Fate, Partition, Slot, fates, last_stable_offset
from labkit.teach.exercises.asking import Asker, a_list, shown
from labkit.teach.exercises.confused import PAIRS_ALIKE
from labkit.teach.exercises.constants import Prediction
from labkit.teach.exercises.contract import Finding, Plain, Variant, by, variant
from labkit.teach.exercises.searching import Cases
from labkit.teach.study import replay

Entry = tuple[str, str]
"""An entry of a log: an operation (write, plain, commit or abort) and the name of its transaction."""
Log = tuple[Entry, ...]
_MARKERS = {"commit": COMMIT, "abort": ABORT}


def _logs(variant: Variant) -> Iterator[Log]:
    """Yield every log of up to the variant's `length` entries, and then the logs that its parameter `logs` lists."""
    yield from logs_of(variant["names"], variant["length"])
    yield from map(tuple, dict(variant.parameters).get("logs", ()))


def logs_of(names: Sequence[str], length: int) -> Iterator[Log]:
    """Yield every Kafka log with 1 to `length` entries, short logs first.

    An entry belongs to one of the transactions `names`, or is a record without a transaction. A transaction gets a
    marker (commit or abort) only if it has written a record since its last marker.
    """
    level: list[Log] = [()]
    for _ in range(length):
        level = [(*log, entry) for log in level for entry in _next(log, names)]
        yield from level


def _next(log: Log, names: Sequence[str]) -> Iterator[Entry]:
    yield "plain", ""
    for name in names:
        yield "write", name
        of_name = [what for what, whose in log if whose == name]
        if of_name and of_name[-1] == "write":
            yield "commit", name
            yield "abort", name


@cache
def visible(log: Log) -> list[int]:
    """Return the offsets that a read_committed reader gets from a log. This is the right answer to the exercise."""
    numbers = {name: number for number, name in enumerate(sorted({name for _, name in log}))}
    partition: Partition = tuple(
        Slot(record=_MARKERS.get(what, place), name=PLAIN if what == "plain" else numbers[name], epoch=0)
        for place, (what, name) in enumerate(log)
    )
    fate_of = fates(partition)
    return [place for place in range(last_stable_offset(partition)) if fate_of[place] is Fate.COMMITTED]


def logs_alike(pairs: Sequence[tuple[str, str]]) -> Iterator[Log]:
    """Yield one log for each pair of similar names: the first name's transaction aborts, the second one's commits."""
    for undone, done in pairs:
        yield (("write", undone), ("write", done), ("abort", undone), ("plain", ""), ("commit", done), ("plain", ""))


def long_logs(entries: int) -> Iterator[Log]:
    """Yield two long logs: one with `entries` entries between a record and its marker, one with many transactions."""
    plain = [("plain", "")] * entries
    yield (("write", "a"), *plain, ("write", "b"), ("commit", "a"), ("plain", ""))
    yield tuple(each for end in ("commit", "abort", "commit") * 8 for each in (("write", "a"), (end, "a")))


MOST = 5_000
"""The largest number of entries in a log, as the task says."""


def longest_logs(first: int) -> Iterator[Log]:
    """Yield two logs of the largest length, whose last entries decide which records are visible, and a shorter log.

    The shorter log has many transactions that are open at the same time; their names are numbered from `first` on.
    """
    plain = [("plain", "")] * (MOST - 2)
    yield (*plain[3:], ("write", "a"), ("write", "b"), ("plain", ""), ("abort", "a"), ("commit", "b"))
    yield (("write", "a"), *plain, ("commit", "a"))
    names = [f"t{number}" for number in range(first, first + 130)]
    markers = zip(["commit", *["commit", "abort"] * 65], names[::-1], strict=False)
    yield (*(("write", name) for name in names), *markers)


def _wrong(ask: Asker, log: Log) -> Finding | None:
    entries: Plain = [list(entry) for entry in log]
    got = a_list(ask, ask(entries), "offsets")
    right = visible(log)
    if got == right:
        return None
    if more := list(islice((each for each in got if each not in right), 1)):
        fault = f"offset {more[0]} must not be there"
        general = "A reader gets a record that it must not get, or not yet."
    elif missing := list(islice((each for each in right if each not in got), 1)):
        fault = f"offset {missing[0]} is missing"
        general = "A reader misses a record that it could get."
    else:
        fault = general = "The offsets are in the wrong order, or some are repeated"
    expected = f"A reader at read_committed gets {shown(list[Plain](right))}."
    message = f"{ask.with_answer(entries)}: {fault}. {expected}"
    return Finding(False, message, ask.with_answer(entries), expected, general=general)


VISIBLE = Cases("visible", _logs, _wrong, "All of {} logs show a reader what they should")
PREDICTION = Prediction(
    "predicted_09",
    lambda: replay("kafka_log.half_visible"),
    {
        "records_while_down": lambda walk: walk.until("poll_committed(0)").verdict.rows,
        "records_in_the_end": lambda walk: walk.verdict.rows,
    },
)
JUDGES = {
    "09-predict": by(PREDICTION.judge, variant("kafka_log.half_visible")),
    "09-visible": by(
        VISIBLE.judge,
        variant("one writer", names=("a",), length=5),
        variant("two writers", names=("a", "b"), length=4),
        variant(
            "names alike, and long logs", names=("a",), length=1, logs=(*logs_alike(PAIRS_ALIKE), *long_logs(1_050))
        ),
        variant("the longest logs", names=("a",), length=1, logs=tuple(longest_logs(1))),
    ),
}
