"""The parameters and states of the simulator `barriers`: tasks, checkpoints, channels, and the visible rows.

A channel is a `bytes` object with one byte for each item: a record (its position in the input), a barrier (`BARRIER`
plus the id of its checkpoint), or `END`. The state of a task is a multiset of records, and so are the visible rows; a
multiset is one number, whose octal digit r says how often it contains record r.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.sim.model import Durable, Volatile, Word, from_fields
from labkit.sim.parameters import Choice, Parameter, Values, Whole, Words

BARRIER = 128
"""The byte of a barrier in a channel is this value plus the id of its checkpoint; the byte of a record is smaller."""

ENDED = 255
"""The last byte of a channel, which marks the end of the input. It counts as a barrier of every later checkpoint."""

END = bytes((ENDED,))

DIGIT = 3
"""The number of bits of an octal digit, which counts one record in a multiset of records."""


def once(record: int) -> int:
    """Return a multiset with only this record, encoded as a number whose octal digit r counts record r."""
    return 1 << DIGIT * record


def times(counts: int, record: int) -> int:
    """Return how many times the multiset `counts` (a number whose octal digit r counts record r) contains `record`."""
    return counts >> DIGIT * record & 7


def records_in(counts: int) -> Iterator[int]:
    """Yield the records of the multiset that `counts` encodes, the lowest first, each as often as it is contained."""
    for record in range(counts.bit_length()):
        for _ in range(times(counts, record)):
            yield record


def taking(item: int) -> str:
    """Return the name of the action with which a task takes this item (record, barrier or end) from a channel."""
    if item < BARRIER:
        return "process"
    return "take_end" if item == ENDED else "take_barrier"


def total(queue: bytes) -> int:
    """Return all records in the channel `queue` as a multiset: a number whose octal digit r counts record r."""
    return sum(once(item) for item in queue if item < BARRIER)


class Source(NamedTuple):
    """The state of a task that reads a log: the next offset (`position`) and the last barrier it sent (`epoch`)."""

    position: Volatile[int] = 0
    epoch: Volatile[int] = 0
    ended: Volatile[bool] = False


class Operator(NamedTuple):
    """The state of a task that has inputs: a task that counts words, or the sink.

    `inputs` are the channels that the task reads, and `at` has the newest barrier that arrived in each channel. `done`
    is the newest checkpoint for which the task has copied its state. `state` is the multiset of records that the task
    has counted or written. `sealed` is used only by the sink: it is the value of `state` when it was last copied.
    Records that the sink has added since then are in its open transaction.
    """

    inputs: Volatile[tuple[bytes, ...]] = ()
    at: Volatile[bytes] = b""
    done: Volatile[int] = 0
    state: Volatile[int] = 0
    sealed: Volatile[int] = 0


MISSING = -1
"""The value of an offset or a state that a checkpoint does not contain."""


class Checkpoint(NamedTuple):
    """One checkpoint: the next offset of each source, the state of each other task, and the records in flight.

    `taken` are the tasks that have copied their state, and `acked` the tasks whose copy is stored and acknowledged;
    each is a number with one bit for each task. `flight` has the records in each channel; it is empty if checkpoints do
    not save records in flight.
    """

    id: int
    taken: int
    acked: int
    offsets: tuple[int, ...]
    states: tuple[int, ...]
    flight: tuple[bytes, ...] = ()


class Coordinator(NamedTuple):
    """The state of the process that triggers checkpoints and stores the complete ones.

    `pause` is the number of task steps that must pass before the process may trigger the next checkpoint.
    """

    triggered: Durable[int] = 0
    completed: Durable[tuple[Checkpoint, ...]] = ()
    running: Volatile[bool] = False
    pending: Volatile[tuple[Checkpoint, ...]] = ()
    pause: Volatile[int] = 0


class Faults(NamedTuple):
    """How many more crashes, expired checkpoints and cancellations of the job may happen in a run."""

    crashes: int
    expiries: int
    cancels: int


Prepared = tuple[tuple[int, int], ...]
"""The transactions that the sink has prepared to commit, each with the id of its checkpoint and a multiset of rows."""


class State(NamedTuple):
    """The state of a simulated job and its environment.

    A channel is part of the task that reads it, as in a real engine, so a crash of the job loses what the channels
    contain. `visible` are the rows that readers see, `prepared` the transactions that wait for their commit, and
    `faults` says how many faults of each kind may still happen.
    """

    coordinator: Coordinator
    sources: tuple[Source, ...]
    operators: tuple[Operator, ...]
    visible: int
    prepared: Prepared
    faults: Faults


as_state = from_fields(State)


def live(at: bytes) -> bytes:
    """Return the bytes of `at` for the channels that have not ended.

    `at` has one byte for each input channel of a task: the id of the checkpoint whose barrier arrived last, or `ENDED`.
    """
    return at.replace(END, b"")


class Mode(Word):
    """How a task with several inputs treats the barriers of checkpoints."""

    ALIGNED = "aligned"
    """A channel whose barrier has arrived is blocked until the barriers of all channels have arrived."""
    AT_LEAST_ONCE = "at_least_once"
    """The task counts the barriers and blocks no channel."""
    UNALIGNED = "unaligned"
    """The task copies its state at the first barrier, which overtakes records; the checkpoint saves these."""


class Copying(Word):
    """When the copy of a task's state is stored and acknowledged: at once or later."""

    INSTANT = "instant"
    """The copy is stored in the same step in which the task makes it."""
    BACKGROUND = "background"
    """The copy is stored in a later step, while the task goes on."""
    STANDING = "standing"
    """The copy is stored in a later step, and the task stops until then."""


class OmittedRule(Word):
    """The rule that the simulator leaves out of the checkpoint protocol, to show why the rule is needed."""

    NOTHING = "nothing"
    FORGET_TO_BLOCK = "forget_to_block"
    FIRST_BARRIER = "first_barrier"
    SKIP_CHANNEL_STATE = "skip_channel_state"
    SINK_OFFSET = "sink_offset"
    SINK_ACK = "sink_ack"
    ANNOUNCE_FIRST = "announce_first"
    ABORT_EXPIRED = "abort_expired"
    OLDER_CHECKPOINT = "older_checkpoint"


PARAMETERS: dict[str, Parameter] = {
    "mode": Choice(
        "What happens at barriers: a task waits for the barriers of all channels (aligned), it waits for none "
        "(at_least_once), or barriers overtake records (unaligned).",
        Mode.ALIGNED.value,
        tuple(each.value for each in Mode),
    ),
    "words": Words("The input, one word a record, dealt to the sources in turn.", "hello-hello-world"),
    "sources": Whole("Sources, each with a log and offsets of its own.", 2, 1, 3),
    "counts": Whole("Tasks that count words; a word always goes to the same one.", 2, 1, 3),
    "sink": Choice(
        "What the sink does: two_phase (rows are visible when their checkpoint is complete), or append (at once).",
        "two_phase",
        ("two_phase", "append"),
    ),
    "checkpoints": Whole("How many checkpoints are triggered before the end of the input.", 1, 0, 4),
    "concurrent": Whole("How many checkpoints may be pending at once.", 1, 1, 3),
    "min_pause": Whole("Steps of the tasks between a completion and the next trigger.", 0, 0, 9),
    "copying": Choice(
        "When a copy is stored: at once (instant), in the background, or while its task is standing still.",
        Copying.INSTANT.value,
        tuple(each.value for each in Copying),
    ),
    "retained": Whole("How many complete checkpoints are kept.", 1, 1, 3),
    "crashes": Whole("How many crashes there may be.", 1, 0, 3),
    "expiries": Whole("How many pending checkpoints may expire.", 0, 0, 3),
    "cancels": Whole("How often somebody may cancel the job and start it again.", 0, 0, 1),
    "retention": Choice("Whether a cancelled job's checkpoints are deleted or kept.", "delete", ("delete", "keep")),
    "broken": Choice(
        "Which rule is left out: forget_to_block (aligned, but no channel is blocked), first_barrier (a task copies "
        "its state at the first barrier and saves nothing in flight), skip_channel_state (unaligned, but nothing in "
        "flight is saved), sink_offset (no barriers: all states at one moment, and the offsets after the sink's last "
        "rows), sink_ack (a checkpoint is complete when the sink has acknowledged), announce_first (it is announced "
        "before it is stored), abort_expired (an expired checkpoint's transaction is aborted), older_checkpoint (a "
        "restart uses an older checkpoint than the latest).",
        OmittedRule.NOTHING.value,
        tuple(each.value for each in OmittedRule),
    ),
}


class Rules(NamedTuple):
    """The rules that say when a task copies its state, and what happens to a channel after a barrier has arrived."""

    at_first: bool
    """Whether a task copies its state at the first barrier of a checkpoint."""
    aligns: bool
    """Whether a task copies its state when the barriers of all inputs have arrived."""
    blocks: bool
    """Whether a task stops reading an input whose barrier has arrived."""
    overtakes: bool
    """Whether a barrier overtakes the records before it in a channel."""
    saves: bool
    """Whether a checkpoint saves the records in channels that a barrier has overtaken."""


@dataclass(frozen=True)
class Settings:
    """The parameters of a simulated job, converted to their types, and the layout of the job that follows from them.

    The sources get the records in turn. If there are n sources, record r has the offset `r // n` in source `r % n`.
    """

    rules: Rules
    mode: Mode
    words: tuple[str, ...]
    sources: int
    counts: int
    transactional: bool
    checkpoints: int
    concurrent: int
    min_pause: int
    copying: Copying
    retained: int
    faults: Faults
    keeps_cancelled: bool
    broken: OmittedRule

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Return the number of records of each source."""
        return tuple(len(range(source, len(self.words), self.sources)) for source in range(self.sources))

    @cached_property
    def readers(self) -> tuple[int, ...]:
        """Return for each record the number of the task that counts its word; the words go to the tasks in turn."""
        order = list(dict.fromkeys(self.words))
        return tuple(order.index(word) % self.counts for word in self.words)

    def record(self, source: int, offset: int) -> int:
        """Return the id of the record at an offset of a source."""
        return offset * self.sources + source

    def share(self, source: int, count: int, start: int = 0, end: int = 1_000) -> int:
        """Return the records of a source at offsets [start, end) for the counting task `count`, as a multiset."""
        return sum(
            once(record)
            for record in range(source, len(self.words), self.sources)
            if self.readers[record] == count and start <= record // self.sources < end
        )

    def all_for(self, count: int) -> int:
        """Return the multiset of all records that the counting task number `count` should receive."""
        return sum(once(record) for record, reader in enumerate(self.readers) if reader == count)

    @property
    def tasks(self) -> int:
        """Return the number of tasks. They are numbered in this order: sources, counting tasks, the sink."""
        return self.sources + self.counts + 1

    @cached_property
    def channels(self) -> tuple[tuple[int, int], ...]:
        """Return each channel as a pair: the index of the receiving task, and the channel's index among its inputs.

        Task indices begin with 0 at the first counting task; the sink has the last index. Its channels come last.
        """
        into_counts = [(count, source) for count in range(self.counts) for source in range(self.sources)]
        return (*into_counts, *((self.counts, count) for count in range(self.counts)))

    def named(self, record: int) -> str:
        """Return a record as text: its offset, its source and its word."""
        return f"offset {record // self.sources} of source {record % self.sources} ({self.words[record]})"

    def totals(self, counts: int) -> str:
        """Return the count of each word in a multiset of records, such as "hello=2 world=1"; "-" if it is empty.

        `counts` is the multiset, encoded as a number whose octal digit r counts record r.
        """
        counted = Counter(self.words[record] for record in records_in(counts))
        return " ".join(f"{word}={counted[word]}" for word in dict.fromkeys(self.words) if counted[word]) or "-"

    def task(self, number: int) -> str:
        """Return the name of a task from its number."""
        if number < self.sources:
            return f"source {number}"
        count = number - self.sources
        return f"count {count}" if count < self.counts else "the sink"


_NEEDS = {
    OmittedRule.FORGET_TO_BLOCK: ("mode", "aligned"),
    OmittedRule.FIRST_BARRIER: ("mode", "aligned"),
    OmittedRule.SINK_OFFSET: ("mode", "aligned"),
    OmittedRule.SKIP_CHANNEL_STATE: ("mode", "unaligned"),
    OmittedRule.SINK_ACK: ("copying", "background"),
    OmittedRule.ANNOUNCE_FIRST: ("sink", "two_phase"),
    OmittedRule.ABORT_EXPIRED: ("sink", "two_phase"),
}


def settings(values: Values) -> Settings:
    """Convert parameter values to `Settings`. Raises `InvalidInput` if two of the values exclude each other."""
    mode, broken = Mode(str(values["mode"])), OmittedRule(str(values["broken"]))
    concurrent, min_pause = int(values["concurrent"]), int(values["min_pause"])
    if concurrent > 1 and mode is Mode.UNALIGNED:
        raise InvalidInput(f"concurrent={concurrent}: unaligned checkpoints may not overlap; set concurrent=1.")
    if concurrent > 1 and min_pause:
        raise InvalidInput(
            f"concurrent={concurrent}: with a minimum pause, checkpoints may not overlap; set concurrent=1."
        )
    name, needed = _NEEDS.get(broken, ("mode", mode.value))
    if values[name] != needed:
        raise InvalidInput(
            f"broken={broken} leaves out a rule that exists only with {name}={needed}, but {name}={values[name]} is "
            f"set; set {name}={needed}."
        )
    first = broken is OmittedRule.FIRST_BARRIER
    unaligned, aligned = mode is Mode.UNALIGNED, mode is Mode.ALIGNED
    return Settings(
        rules=Rules(
            at_first=unaligned or first,
            aligns=aligned,
            blocks=aligned and not first and broken is not OmittedRule.FORGET_TO_BLOCK,
            overtakes=unaligned,
            saves=unaligned and broken is not OmittedRule.SKIP_CHANNEL_STATE,
        ),
        mode=mode,
        words=tuple(str(values["words"]).split("-")),
        sources=int(values["sources"]),
        counts=int(values["counts"]),
        transactional=values["sink"] == "two_phase",
        checkpoints=int(values["checkpoints"]),
        concurrent=concurrent,
        min_pause=min_pause,
        copying=Copying(str(values["copying"])),
        retained=max(int(values["retained"]), 2 if broken is OmittedRule.OLDER_CHECKPOINT else 1),
        faults=Faults(int(values["crashes"]), int(values["expiries"]), int(values["cancels"])),
        keeps_cancelled=values["retention"] == "keep",
        broken=broken,
    )
