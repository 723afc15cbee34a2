"""Designs of a processing step: which durable writes it makes, in which order, and what recovery does with them.

A design can describe Flink, Spark, an outbox or a write-ahead log. It can be written and parsed as text: `plan >
visible+marker > decision; transaction; from decision, skips marked`.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, TypeVar

from labkit.core.errors import InvalidInput
from labkit.core.words import nearest
from labkit.sim.model import Word

WordT = TypeVar("WordT", bound=Word)


class Write(Word):
    """The kinds of durable writes that a streaming job can make in one step, such as a batch."""

    PLAN = "plan"
    """The input that the step will take (Spark's `offsets/N`)."""
    STATE = "state"
    """The operator's state after the step, with its position in the input."""
    STAGED = "staged"
    """Output that no reader sees yet: a temporary file, a prepared transaction, or a sink's log."""
    VISIBLE = "visible"
    """Output that readers see."""
    MARKER = "marker"
    """The store's own record of the last step that it contains (a batch id, `txnVersion`, offsets in the store)."""
    DECISION = "decision"
    """The engine's record that the step is done (Spark's `commits/N`, Flink's `_metadata`)."""
    NOTICE = "notice"
    """A message to another system: offsets for a consumer group, or an acknowledgement to the source."""
    CLEAN = "clean"
    """The removal of the staged output."""


class Output(Word):
    """How the store adds the rows of a step: one by one, as upserts, or all in one transaction."""

    APPEND = "append"
    """Rows are added one by one; a repeated row appears twice."""
    UPSERT = "upsert"
    """Rows replace the row of their key, one by one."""
    TRANSACTION = "transaction"
    """All rows of a step are added at once, and other writes can become durable together with them."""


class Start(Word):
    """The durable record from which a job resumes after a restart."""

    BEGINNING = "beginning"
    """No record: the input is read from its beginning."""
    PLAN = "plan"
    """The last step that was planned runs again."""
    STATE = "state"
    """Recovery resumes with the step after the newest state."""
    MARKER = "marker"
    """Recovery resumes with the step after the one in the store's marker."""
    DECISION = "decision"
    """Recovery resumes with the step after the last one that is recorded as done."""
    NOTICE = "notice"
    """Recovery resumes with the step after the last notice to another system."""


class Leftover(Word):
    """What a restart does with staged output, which was written before a crash but is not yet visible to readers."""

    DROPPED = "drops staged"
    """Recovery drops staged output; a repeated step stages it again."""
    DECIDED = "finishes decided"
    """Recovery publishes staged output of steps that will not run again, and drops the rest."""
    ALL = "finishes staged"
    """Recovery publishes all staged output, and afterwards reads the record from which it resumes."""


UNDOES = "undoes undecided"
"""The text for the recovery rule that takes back visible output of steps that will run again."""


class Recovery(NamedTuple):
    """The rules of a restart: from which durable record the job resumes, and what happens to unfinished output."""

    start: Start = Start.BEGINNING
    newest: bool = False
    """Whether recovery uses the newest state, even if it belongs to a later step than the record of `start`."""
    skips: bool = False
    """Whether recovery skips the output of a step that the store's marker already contains."""
    leftover: Leftover = Leftover.DROPPED
    undoes: bool = False
    """Whether recovery takes back visible output of the steps that will run again, before it resumes."""

    def __str__(self) -> str:
        parts = [f"from {self.start}"]
        parts += ["newest state"] * self.newest + ["skips marked"] * self.skips
        if self.leftover is not Leftover.DROPPED:
            parts.append(self.leftover)
        parts += [UNDOES] * self.undoes
        return ", ".join(parts)


AtomicSet = tuple[Write, ...]
"""Writes that become durable together or not at all, listed in the order of `Write`."""

EXAMPLE = "plan > visible+marker > decision; transaction; from decision, skips marked"


class Design(NamedTuple):
    """The order in which a job makes its durable writes, with the kind of its output and its rules of recovery.

    Each item of `steps` is a set of writes that become durable together (an atomic set).
    """

    steps: tuple[AtomicSet, ...]
    output: Output
    recovery: Recovery

    @property
    def writes(self) -> frozenset[Write]:
        """Return all durable writes that a job of this design makes for a batch: the union of the sets in `steps`."""
        return writes_of(self.steps)

    @property
    def order(self) -> str:
        """Return the order of the writes as text, for example `plan > visible+marker`."""
        return order_text(self.steps)

    def place(self, write: Write) -> int:
        """Return the position in `steps` of the set that contains `write`; -1 if no set contains it."""
        return next((n for n, each in enumerate(self.steps) if write in each), -1)

    def __str__(self) -> str:
        return f"{self.order}; {self.output}; {self.recovery}"

    @classmethod
    def parse(cls, text: str) -> "Design":
        """Return the design in a text such as "plan > visible+marker > decision; transaction; from decision".

        The three parts of the text are writes, output and recovery; the last two may be omitted. Raises `InvalidInput`
        for any other text, and for a design that makes no sense.
        """
        if len(text) > 300:
            raise InvalidInput(
                f"the design has {len(text)} characters, more than 300; write its three parts as in {EXAMPLE!r}."
            )
        order, *rest = (part.strip() for part in text.split(";"))
        if len(rest) > 2:
            raise InvalidInput(
                f"{text[:60]!r} has more than three parts (writes; output; recovery); write it as in {EXAMPLE!r}."
            )
        steps = parse_order(order)
        output = word_of(Output, rest[0], "kind of output") if rest else usual_output(steps)
        recovery = parse_recovery(rest[1]) if len(rest) > 1 else usual_recovery(steps)
        design = cls(steps, output, recovery)
        reason = nonsense(design)
        if reason:
            raise InvalidInput(f"{text[:60]!r} is not a design: {reason}; change the writes or the recovery.")
        return design


def writes_of(steps: Iterable[AtomicSet]) -> frozenset[Write]:
    """Return the union of `steps`, each of which is a set of writes that become durable together."""
    return frozenset(write for each in steps for write in each)


def without(steps: Iterable[AtomicSet], left_out: Collection[Write]) -> tuple[AtomicSet, ...]:
    """Return these sets of writes without the writes in `left_out`, and without sets that become empty."""
    kept = (tuple(each for each in writes if each not in left_out) for writes in steps)
    return tuple(writes for writes in kept if writes)


def order_text(steps: Iterable[Iterable[Write]]) -> str:
    """Return an order of writes as text, such as `plan > visible+marker`; `+` joins simultaneous writes."""
    return " > ".join("+".join(each) for each in steps)


def word_of(kind: type[WordT], text: str, what: str) -> WordT:
    """Return the member of the enumeration `kind` that a text names.

    Raises `InvalidInput` if there is no such member; the message calls it `what`, such as "kind of output".
    """
    names = [each.value for each in kind]
    if text not in names:
        raise InvalidInput(f"there is no {what} {text[:40]!r}; {nearest(text[:40], names)}")
    return kind(text)


def atomic(writes: Iterable[Write]) -> AtomicSet:
    """Return a tuple of writes that become durable together, in the order of the enumeration `Write`."""
    return tuple(sorted(writes, key=list(Write).index))


def parse_order(text: str) -> tuple[AtomicSet, ...]:
    """Return the order of writes in a text such as `plan > visible+marker`. Raises `InvalidInput` for other text."""
    steps = []
    met: set[Write] = set()
    for part in text.split(">"):
        writes = [word_of(Write, each.strip(), "write") for each in part.split("+")]
        for write in writes:
            if write in met:
                raise InvalidInput(f"{text[:60]!r} has {write} twice; each write may occur only once in a step.")
            met.add(write)
        steps.append(atomic(writes))
    return tuple(steps)


def parse_recovery(text: str) -> Recovery:
    """Return the recovery rules in a text such as `from plan, skips marked`. Raises `InvalidInput` for other text."""
    recovery = Recovery()
    for part in (each.strip() for each in text.split(",")):
        if part.startswith("from "):
            start = word_of(Start, part.removeprefix("from "), "record to restart from")
            recovery = recovery._replace(start=start)
        elif part == "newest state":
            recovery = recovery._replace(newest=True)
        elif part == "skips marked":
            recovery = recovery._replace(skips=True)
        elif part == UNDOES:
            recovery = recovery._replace(undoes=True)
        elif part in list(Leftover):
            recovery = recovery._replace(leftover=Leftover(part))
        else:
            phrases = [*(f"from {each}" for each in Start), "newest state", "skips marked", *Leftover, UNDOES]
            raise InvalidInput(f"recovery: {part[:40]!r} is no known rule; {nearest(part[:40], phrases)}")
    return recovery


def usual_output(steps: Sequence[AtomicSet]) -> Output:
    """Return the default kind of output: how a design's rows become visible if its text does not say it.

    They become visible in a transaction if another write becomes durable together with them, and otherwise one by one.
    """
    joined = any(Write.VISIBLE in each and len(each) > 1 for each in steps)
    return Output.TRANSACTION if joined else Output.APPEND


READS = {
    Start.DECISION: Write.DECISION,
    Start.STATE: Write.STATE,
    Start.MARKER: Write.MARKER,
    Start.NOTICE: Write.NOTICE,
    Start.PLAN: Write.PLAN,
}
"""For each start of recovery, the write that it reads.

The order matters: by default, the recovery of a job starts from the first of these writes that the job makes.
"""


def usual_recovery(steps: Sequence[AtomicSet]) -> Recovery:
    """Return the default recovery rules for a job with these writes.

    A restart continues from the first write in `READS` (decision, state, and so on) that the job makes. If the job
    makes none of them, a restart begins with the first input row. The restart skips the output of steps that the
    store's marker contains, and publishes staged output of steps that will not run again.
    """
    writes = writes_of(steps)
    readable = (start for start, write in READS.items() if write in writes)
    start = next(readable, Start.BEGINNING)
    skips = Write.MARKER in writes and start is not Start.MARKER
    leftover = Leftover.DECIDED if Write.STAGED in writes else Leftover.DROPPED
    return Recovery(start, skips=skips, leftover=leftover)


def nonsense(design: Design) -> str:
    """Return a clause that says what is wrong with a design's writes or recovery; empty if the design makes sense."""
    writes, place, recovery = design.writes, design.place, design.recovery
    if Write.VISIBLE not in writes:
        return "no write makes output visible"
    if design.output is not Output.TRANSACTION and len(design.steps[place(Write.VISIBLE)]) > 1:
        return f"the output {design.output} writes rows one by one, so visible cannot be atomic with another write"
    if Write.STAGED in writes and place(Write.STAGED) >= place(Write.VISIBLE):
        return "staged must come before visible"
    if Write.CLEAN in writes and Write.STAGED not in writes:
        return "clean removes staged output, but nothing is staged"
    if Write.CLEAN in writes and place(Write.CLEAN) < place(Write.VISIBLE):
        return "clean would remove what visible still needs"
    return contradiction(recovery) or unwritten(writes, recovery)


def contradiction(recovery: Recovery) -> str:
    """Return a clause that says why two of these recovery rules exclude each other; an empty text if none do."""
    if recovery.undoes and (recovery.skips or recovery.leftover is not Leftover.DROPPED):
        return "recovery that undoes output can neither skip nor finish output"
    return ""


def unwritten(writes: frozenset[Write], recovery: Recovery) -> str:
    """Return a clause that names a record which recovery needs but no step writes; an empty text if there is none."""
    needed = READS.get(recovery.start)
    if needed is not None and needed not in writes:
        return f"recovery starts from {needed}, which is not written"
    if recovery.newest and Write.STATE not in writes:
        return "recovery takes the newest state, but no state is written"
    if recovery.skips and Write.MARKER not in writes:
        return "recovery skips marked steps, but no marker is written"
    if recovery.leftover is not Leftover.DROPPED and Write.STAGED not in writes:
        return f"recovery {recovery.leftover} output, but none is staged"
    return ""
