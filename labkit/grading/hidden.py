"""Draws the hidden variants of each exercise from a seed. They decide grades, and learners never see them.

Hidden variants differ from public ones in everything that an answer could have memorized: participants, words, batch
sizes, numbers of faults, and the rule that a broken system violates. Every draw has each kind of fault in at least one
variant. Predictions and choices among statements only count participation, so their one variant is the public one.

A grade must be repeatable, so a seed must always give the same variants. That is why nobody may change the order of the
draws; a test compares the variants with the digests in `tests/grading/hidden.json`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

from labkit.sim.models.snapshot.state import ends
from labkit.teach.exercises import capstone, releases, repairs
from labkit.teach.exercises.changes import (
    MOST_WORDS,
    WITHOUT_HYPHEN,
    glued_rows,
    large_counts,
    many_rows,
    pair_alike,
    words_alike,
)
from labkit.teach.exercises.commitment import FOUR
from labkit.teach.exercises.confused import COMPOSED, PAIRS_ALIKE, WORDS_ALIKE, counts_apart
from labkit.teach.exercises.contract import Kind, Variant
from labkit.teach.exercises.contract import variant as v
from labkit.teach.exercises.delivery import MOST
from labkit.teach.exercises.fence import LARGE, MOST_RECORDS, alike_as_floats, long_request, where_remainders_begin_anew
from labkit.teach.exercises.kafka import logs_alike, long_logs, longest_logs
from labkit.teach.exercises.kills import NOTHING
from labkit.teach.exercises.own_sink.axes import OLDER, QUERY, STOPPED
from labkit.teach.exercises.prices import job
from labkit.teach.exercises.registry import find
from labkit.teach.exercises.relay import MOST_OPEN, MOST_REFUSED, orders_alike, rows_alike
from labkit.teach.exercises.side_effects import CALLS_ALIKE, SAME_CHECKSUM
from labkit.teach.exercises.sinks import CONFUSED_WORDS, LARGEST_BATCH, LONGEST_LIST
from labkit.teach.exercises.snapshots import LARGEST, LIMIT, WEIGHED, crowd, exchanged, inside

T = TypeVar("T")
Parameters = dict[str, object]
System = tuple[str, Parameters]
"""A system to simulate: its name, and the parameters of its simulator."""

WORDS = (
    *("hello-world-hello", "world-hello-hello", "hello-hello-world", "stream-table-stream", "table-stream-stream"),
    *("spark-spark-flink", "flink-spark-flink"),
)
"""Inputs of three words, two of which are equal."""
TOGETHER = ("hello-hello-world", "world-hello-hello", "spark-spark-flink", "stream-table-table")
"""Inputs whose equal words are in the same batch, whether a batch has two or three words."""
THREE_WORDS = ("hello-world-stream", "spark-table-hello", "flink-world-table")
"""Inputs of three different words, each written by a different one of three tasks."""
ALIKE = ("stream-spark-stream-spark-stream", "hello-hi-hello-hello-hi", "world-word-world-word-wall")
"""Inputs of five words with the same initial, in which some words are repeated."""
MANY_WORDS = (
    *("hello", "Hello", "hell", "world", "word", "stream", "streams", "spark", "Spark", "flink", "table", "tables"),
    *("checkpoint", "checkpointed", "a", "A", "a ", *COMPOSED),
)
"""Words that differ only in case, the last letters or the Unicode normal form, so that an answer may confuse them."""
SHORT = ("hello-hello", "hello-world", "world-world")
PAIRS = ("hello-hello", "hello-world", "world-hello")
ORDERS = ("A", "B", "1", "10", "01", "100")
"""Names of customers' orders that are easily confused, such as 1 and 10."""
BATCHES = ("world-hello", "stream-table", "spark-spark")
"""Inputs of two words."""
_DRAWN_AS = {"10b-prefix": "10-prefix"}
"""The old names of exercises that were renamed. The name is part of the seed, so the old one keeps their variants."""


class Chance(Random):
    """A random generator, seeded by the caller. Its method `pick` draws one of its arguments."""

    def pick(self, *options: T) -> T:
        """Return one of `options`, drawn at random."""
        return self.choice(options)


def variants(exercise_name: str, seed: int) -> list[Variant]:
    """Return the hidden variants of an exercise, drawn with this seed.

    Predictions and choices among statements have no hidden variants, so their public ones are returned. Raises
    `InvalidInput` for an unknown exercise.
    """
    exercise = find(exercise_name)
    if exercise.kind in (Kind.PREDICT, Kind.EXPLAIN):
        return list(exercise.public)
    return list(_DRAW[exercise_name](Chance(f"{_DRAWN_AS.get(exercise_name, exercise_name)} {seed}")))


def _systems(c: Chance, good: Sequence[System], bad: Sequence[System]) -> Iterator[Variant]:
    """Yield three variants, each with one system of `good` and about a third of the systems of `bad`.

    Each system of `bad` is in exactly one variant.
    """
    mixed = c.sample(bad, len(bad))
    for place, name in enumerate(("first", "second", "third")):
        yield v(f"{name} systems", good=(good[place % len(good)],), bad=tuple(mixed[place::3]))


def _assembled(system: Parameters, name: str = "put together", **parts: object) -> Variant:
    return v(name, assembled=((name, system, parts),))


APART = (
    *(64_000, 65_535, 65_536, 97_000, 98_304, 90_000, 99_700, 99_900, 97_873, 89_789, 94_054, 55_440, 90_063),
    *(96_937, 94_001, 98_477, 85_241, 91_670, 93_304, 88_818, 95_139, 99_991),
)
"""Differences between numbers that have equal remainders by one of many divisors below 100,000, such as 97 or 1,024."""
SAME_NUMBER = (
    *(((1, 7, 18), (2, 3, 21)), ((0, 6, 17), (1, 2, 20)), ((2, 14, 36), (4, 6, 42)), ((0, 12, 34), (2, 4, 40))),
    ((0, 11, 29), (4, 5, 31)),
    ((0, 4, 9, 23, 27, 41, 46, 50), (1, 2, 11, 20, 30, 39, 48, 49)),
    *(((2, 213), (22, 13)), ((1, 123), (11, 23)), ((3, 345), (33, 45)), ((7, 711), (77, 11))),
)
"""Pairs of groups of numbers with equal products or sums of powers, or with the same digits when written together."""


def _cut(c: Chance) -> Iterator[Variant]:
    two: Parameters = {"processes": 2, "transfers": c.pick(2, 3), "crashes": 0}
    three: Parameters = {"processes": 3, "transfers": 1, "crashes": 0}
    stop: Parameters = {**two, "algorithm": "stop_the_world"}
    good = [("markers", two), ("markers, three processes", three), ("the world stops", stop)]
    bad = [
        ("naive copies", {**two, "algorithm": "naive"}),
        ("channels are not saved", {**c.pick(two, three), "broken": "forget_channels"}),
        ("late markers", {**two, "broken": "late_markers"}),
        ("copies while money is under way", {**stop, "broken": "forget_drain"}),
        ("who is paused goes on", {**stop, "broken": "forget_pause"}),
    ]
    yield from _systems(c, good, bad)
    # Three transfers to one of four processes, and three from this process, which has received the money before.
    middle, *others = c.sample(range(4), 4)
    channel = {tuple(pair): number for number, pair in enumerate(ends(4))}
    inward, outward = (
        [channel[pair] for pair in zip(*each, strict=True)] for each in ((others, [middle] * 3), ([middle] * 3, others))
    )
    four: Parameters = {"processes": 4, "transfers": 3, "crashes": 0}
    yield _assembled(four, "to one process", any=inward[:1], usual=inward[1:])
    yield _assembled(four, "from one process", any=outward[:1], usual=outward[1:], done=inward[:1])
    # Numbers with equal sums, and numbers that also have equal sums of squares and an equal XOR.
    two_each = c.pick(((0, 11), (5, 6)), ((3, 8), (1, 10)), ((2, 9), (4, 7)))
    four_each = ((0, 3, 5, 6), (1, 2, 4, 7))
    for first, second in (two_each, four_each):
        gone, come = c.sample((first, second), 2)
        done = c.sample(sorted({*range(12)} - {*gone, *come}), 2)
        yield _assembled(four, f"{len(gone)} gone and as many come", gone=gone, come=come, done=done)
    twice, *done = c.sample(range(12), 3)
    yield _assembled(four, "one has come twice", twice=[twice], done=done)
    mixed = c.sample(range(12), 12)
    yield _assembled(four, "many transfers", any=mixed[:1], all_done=mixed[1:6], all_saved=mixed[6:])
    systems = [(four, exchanged((low,), (low + apart,))) for apart in APART for low in (c.randrange(LIMIT - apart),)]
    systems += [(four, exchanged((low,), c.sample(range(LIMIT), 1))) for low in c.sample(range(LIMIT), 3)]
    systems += [(four, exchanged(gone, came)) for gone, came in (c.sample(pair, 2) for pair in SAME_NUMBER)]
    yield v("swapped numbers", assembled=tuple(("swapped numbers", *system) for system in systems))
    parts = inside(c.randrange(2, 100), c.randrange(1, 10))
    yield v("numbers in others", assembled=(*(("numbers in others", four, each) for each in parts), *WEIGHED))
    size = c.randrange(1_020, 1_090)
    crowds = [
        (four, crowd(size, "done", c.randrange(400, 600), 1)),
        (four, crowd(size, "saved", size - c.randrange(1, 9), 1)),
        (four, crowd(size, c.pick("done", "saved"), c.randrange(5, 90))),
        (four, crowd(size, "saved")),
    ]
    # Of the largest snapshots, only those of the public variant, because some right answers need a second for each.
    yield v("a busy bank", assembled=(*(("a busy bank", *system) for system in crowds), *LARGEST))


def _atomic(c: Chance) -> Iterator[Variant]:
    two: Parameters = {"participants": 2, "losses": 0, "crashes": 1}
    three: Parameters = {"participants": 3, "losses": 0, "crashes": 0}
    good = [("two", two), ("three", three), ("a lost message", {**two, "crashes": c.pick(0, 1), "losses": 1})]
    bad = [
        ("early commit, three", {**three, "broken": "early"}),
        ("aborts alone", {**c.pick(two, three), "broken": "heuristic"}),
        ("yes not logged", {**two, "broken": "forget_vote"}),
        ("decision not logged", {**two, "broken": "forget_decision", "losses": 1}),
    ]
    logs: list[Sequence[str]] = [(), ("prepared",), ("prepared", "commit"), ("prepared", "abort")]
    logs.append(c.pick(("abort_alone",), ("prepared", "abort_alone")))
    logs = c.sample(logs, len(logs))
    yield from _systems(c, good, bad)
    yield _assembled(three, logs=logs)
    ended = [("commit",), ("prepared", "commit")], [("abort",), ("prepared", "abort"), ("prepared", "abort_alone")]
    chosen = [c.pick((), ("prepared",)), *map(c.choice, ended)]
    yield _assembled(FOUR, "four logs put together", logs=c.sample(chosen, 3))


def _jump(c: Chance) -> Iterator[Variant]:
    words = c.pick(*WORDS[:3])
    good: list[System] = [
        ("two_phase", {"words": c.pick("world-world-hello", "spark-spark-flink", "table-table-stream")}),
        ("append, each word once", {"words": c.pick("hello-world", "stream-table"), "strategy": "append"}),
        ("batch_marker", {"words": c.pick(*WORDS), "strategy": "batch_marker"}),
    ]
    bad: list[System] = [
        ("append", {"words": c.pick(*TOGETHER), "strategy": "append"}),
        ("idempotent", {"words": words, "strategy": "idempotent", "store": "sqlite", "crashes": c.pick(1, 2)}),
        ("wal", {"words": c.pick(*TOGETHER), "strategy": "wal"}),
        ("one word", {"words": c.pick("hello-hello", "table-table-table"), "strategy": "append"}),
    ]
    one, other = c.sample(("hello", "stream", "spark", "table"), 2)
    between = c.pick(5, 6)
    yield from _systems(c, good, bad)
    yield _assembled({"words": "-".join([one] * 4 + [other] * 3)}, between=between)
    first, second = c.pick((one, one.title()), (f"{other}s", other), ("checkpoint", "checkpointed"), (one, f"{one} "))
    many, counts = "-".join([first] * 130 + [second] * 131), [0, 7, 8, 98, 99, 100, 129]
    yield _assembled({"words": one}, "many counts", input=many, between=0, long=c.randrange(20, 40), counts=counts)
    # A rule that looks back over only some hundred rows fails here, as does one that compares only first letters.
    far = "-".join([one] * 12 + [other] * 12)
    yield _assembled({"words": one}, "far apart", input=far, between=0, long=c.randrange(260, 300), counts=[3, 9])
    long = one * c.randrange(15, 20)
    words = "-".join([f"{long}s"] * 12 + [f"{long}t"] * 13)
    yield _assembled({"words": one}, "words that differ at the end", input=words, between=0, counts=[5, 11])
    for name, parts in CONFUSED_WORDS:
        yield _assembled({"words": one}, f"a pair: {name}", **parts)
    yield v("what only looks equal", word=c.pick("stream", "gateway", "importance"), large=c.randrange(10**17, 10**18))
    yield v("a reader for days", rows=c.randrange(2_050, 2_250))


def _long_input(c: Chance) -> tuple[str, ...]:
    """Return about 600 words, some of which collide if an answer joins a word and its count without a separator.

    For example, *a1* counted once and *a* counted 11 times both give *a11*.
    """
    letter = c.choice("abcde")
    glued = [f"{letter}1", c.choice(("windowedagg", "checkpoints")), *[letter] * 10]
    return (*glued, *c.choices((*MANY_WORDS, letter, f"{letter}1", f"{letter}-1", "word "), k=590))


def _orphans(c: Chance) -> Iterator[Variant]:
    """Yield variants (test cases) of the exercise `08-finish`: finish the prepared transactions of one job.

    The transactions' names are similar, or contain quotes or numbers of several digits. Some belong to other jobs.
    """
    name, quoted = c.pick("sum_1", "week_2", "top_5"), c.pick("o'clock", "today's", "x'y")
    nine, first = c.pick(9, 99), c.randrange(3)
    after = first + 1
    digits = (f"{name}/{nine}/0", f"{name}/{nine}/1", f"{name}/{nine + 1}/0")
    alike = (
        *(f"{name}/{first}/0", f"{name}/{after}/0", f"{name}0/{first}/0"),
        *(f"{name.replace('_', 'x')}/{first}/0", f"{name}-old/{after}/0"),
        *(f"{name.title()}/{after}/0", f"{name} /{first}/0", f" {name}/{after}/0"),
    )
    by_hand = (f"{quoted}/{first}/{c.randrange(4)}", f"{quoted}/{after}/0", "by hand", "transfer-south")
    two, elsewhere = (f"{name}/5/0", f"{name}/6/1"), (f"{name}/5/2", f"{name}/6/0")
    none = (f"{name}/0/0", f"{name}/0/1", f"{name}s/0/0")
    yield v("decided and undecided", job=name, decided=nine, prepared=digits)
    yield v("jobs with names alike", job=name, decided=first, prepared=alike)
    yield v("a quote in the name, and people's names", job=quoted, decided=first, prepared=by_hand)
    yield v("another database", job=name, decided=5, prepared=two, elsewhere=elsewhere)
    yield v("nothing was decided", job=name, decided=-1, prepared=none)
    # Characters with a meaning in SQL patterns or quotes, and a batch before the last decided one.
    signs, decided = c.pick("a.b 5% $$", "a.b+$$ 1%"), c.randrange(3, 9)
    others = (signs.replace(".", "x"), signs.replace("%", " of"), signs.replace("$$", "$"))
    own = tuple(f"{signs}/{batch}/0" for batch in (decided - 1, decided, decided + 1))
    theirs = tuple(f"{other}/{decided}/0" for other in others)
    yield v("signs in the name", job=signs, decided=decided, prepared=(*own, *theirs))


def _visible(c: Chance) -> Iterator[Variant]:
    """Yield variants (test cases) of `09-visible`: which rows of a transactional log does a reader see?"""
    one, two = c.sample(("x", "slow", "quick", "t1", "sink-0"), 2)
    names, plain = (one, two, "late"), ("plain", "")
    begun = (("write", one), (c.pick("commit", "abort"), one), plain)
    again = (*begun, ("write", two), ("write", one), (c.pick("commit", "abort"), one), plain)
    drawn = [again, (*again, ("commit", two)), (*again, ("abort", two), ("write", one))]
    for _ in range(20):
        log: list[tuple[str, str]] = []
        for _ in range(c.randrange(6, 12)):
            open_ = [name for name in names if {whose: what for what, whose in log}.get(name) == "write"]
            ended = [(what, name) for name in open_ for what in ("commit", "abort")]
            log.append(c.choice([plain, *(("write", name) for name in names), *ended, *ended]))
        drawn.append(tuple(log))
    yield v("one writer", names=(one,), length=5)
    yield v("two writers", names=(two, one), length=4)
    yield v("long logs", names=(one,), length=1, logs=tuple(drawn))
    alike = c.sample(("transaction-12", "transaction-21", "Transaction-12", "transaction-12 ", "21-transaction"), 5)
    begins = [("write", name) for name in alike]
    longer: list[tuple[tuple[str, str], ...]] = []
    for _ in range(12):
        ends = [(c.pick("commit", "abort"), name) for name in alike]
        first = [*[plain] * 12, *begins]
        longer.append((*first, *[plain] * 100, *c.sample(ends, c.randrange(3, 6)), plain))
        other = "abort" if ends[0][0] == "commit" else "commit"
        once_more = [("write", alike[0]), plain, (other, alike[0]), *[plain] * 9]
        longer.append((*first, *c.sample(ends, 5), *[plain] * 80, *once_more))
    yield v("longer logs, names alike", names=(one,), length=1, logs=tuple(longer))
    undone, done = (f"{'transaction-' * 6}{number}" for number in c.sample(range(10), 2))
    finished = (("write", undone), ("write", done), ("abort", undone), plain, ("commit", done), plain)
    yield v("long names alike", names=(one,), length=1, logs=(finished, (*finished[:3], plain)))
    undone, done = c.sample(COMPOSED, 2)
    finished = (("write", undone), ("write", done), ("abort", undone), plain, ("commit", done), plain)
    yield v("names composed in two ways", names=(one,), length=1, logs=(finished, (*finished[:3], plain)))
    both = [pair for each in PAIRS_ALIKE for pair in (each, each[::-1])]
    lasting = long_logs(c.randrange(1_010, 1_090))
    yield v("confused names, a week", names=(one,), length=1, logs=(*logs_alike(both), *lasting))
    yield v("logs of some weeks", names=(one,), length=1, logs=tuple(longest_logs(c.randrange(10, 90)))[1:])


def _timeout(c: Chance) -> Iterator[Variant]:
    for each in (
        c.pick((2, 1, 0, 1), (2, 1, 0, 2), (1, 1, 0, 2)),
        c.pick((1, 1, 2, 0), (2, 1, 1, 0), (3, 1, 1, 0)),
        c.pick((1, 3, 0, 0), (2, 3, 0, 0), (1, 2, 0, 0)),
        c.pick((1, 2, 1, 0), (2, 2, 1, 0), (2, 1, 2, 0)),
        (1, 1, 1, c.pick(1, 2)),
    ):
        interval, checkpoint, tolerated, downtime = each
        name = ", ".join(map(str, each))
        yield v(name, interval=interval, checkpoint=checkpoint, tolerated=tolerated, downtime=downtime)
    short, long, lost, down = c.randrange(5, 20), c.randrange(25, 60), c.pick(2, 3), c.randrange(20, 90)
    most = (short, long, lost, down)
    jobs = ((*most[:3], 0, 0), (long, short, 0, down, 0), (*most, 0), (long, short, lost, down, 0))
    yield v("longer times", jobs=jobs)
    pause = c.randrange(30, 50)
    paused = ((short, long, 0, 0, pause), (4 * long, short, lost, 0, c.randrange(1, 20)), (*most, pause))
    yield v("a pause", jobs=paused)
    large = c.randrange(3, 9) * 100 + c.randrange(10)
    alone = (
        *((5, 2, 1, large, 0), (5, 2, c.pick(3, 4), large, 0), (5, large, 0, 3, 0), (10, 20, 110 + large % 10, 5, 0)),
        *((5, 2, 0, 1, large), (5, 2, large + 1_000, 3, 0), (5, 2, 1, 2**60 + 1, 0), (2**60 + 1, 2, 0, large, 0)),
        (5, 2, 0, 1, 10**7 + large),
    )
    yield v("one time is very long", jobs=alone)


def _demands(c: Chance) -> Iterator[Variant]:
    for limits in (
        (c.randrange(4, 9), c.randrange(1, 4), c.randrange(10, 30)),
        (c.randrange(40, 90), c.randrange(5, 9), 0),
        (c.randrange(2, 4), c.randrange(30, 60), c.randrange(2, 9)),
        (c.randrange(210, 290), c.randrange(110, 120), 130 + c.randrange(50)),
        (c.randrange(10**9, 10**10), c.randrange(10**6, 10**7), c.randrange(10**8, 10**9)),
    ):
        named = dict(zip(("interval", "checkpoint", "downtime"), limits, strict=True))
        yield v(", ".join(f"{name} {ticks}" for name, ticks in named.items()), **named)


def _early(c: Chance) -> Iterator[Variant]:
    table: Parameters = {"store": "sqlite", "reader": "table"}
    good: list[System] = [
        ("hidden rows", {"words": c.pick(*WORDS)}),
        ("append", {"words": c.pick(*WORDS[:3]), "strategy": "append"}),
        ("an open table, and no crash", {**table, "crashes": 0}),
    ]
    words = c.pick("hello", "stream-table")
    small = {"words": c.pick("hello-world", "spark-spark"), "records_per_batch": 1}
    bad = [("an open table", {**table, "words": words}), ("an open table, small batches", {**table, **small})]
    count = c.pick(3, 4)
    yield from _systems(c, good, bad)
    yield _assembled({"words": c.pick(*WORDS)}, transactions=2, rows=count)
    # One name is the beginning of each of the others.
    alike = ((first := c.randrange(1, 9), 0), (10 * first + c.randrange(10), 0), (first, c.randrange(1, 9)))
    yield _assembled({"words": c.pick(*WORDS)}, "names alike", handles=alike, rows=2)
    yield v("names of every kind", named=c.pick("stream", "gateway", "importance"))
    yield v("a long night", reads=c.randrange(2_050, 2_250))


def _damaged(c: Chance) -> Iterator[Variant]:
    """Yield variants (test cases) of `14c-damaged`: damaged tables. Together they have every kind of damage."""
    kinds = ("lost", "twice", "item", "more", "less")
    for size in c.sample((3, 5, 8, 10), 2):
        numbers = tuple(range(4 * size))
        one, two = c.sample(numbers[:size], 2)
        alone = [((kind, c.choice(numbers)),) for kind in kinds]
        edges = [((c.pick(*kinds), size),), ((c.pick(*kinds), 2 * size - 1),)]
        hidden = [(("lost", one), ("twice", two)), (("more", one), ("less", two)), (("ghost", 7 * size),)]
        many = [tuple((c.pick(*kinds), number) for number in c.sample(numbers, 3)) for _ in range(6)]
        emptied = tuple(("lost", number) for number in range(size, 2 * size))
        whole = tuple(("lost", number) for number in numbers)
        copies = [(("twice", c.choice(numbers)),) * more for more in (2, 3, 4)]
        ends = (("lost", 0), ("twice", numbers[-1]))
        exchanged = (("exchanged", size * c.randrange(4) + c.randrange(size - 1)),)
        damage = ((), *alone, *edges, *hidden, *many, emptied, whole, *copies, ends, exchanged)
        yield v(f"ranges of {size}", orders=numbers, size=size, damage=damage)
    small = tuple(c.sample(range(1, 40), 8))
    slight = [((kind, c.choice(small)),) for kind in ("blank", "glued", "minus")]
    yield v("slight changes", orders=tuple(sorted(small)), size=c.pick(3, 7), damage=slight)
    size = c.pick(6, 12)
    first, far = c.randrange(2), c.randrange(5, 9) * size
    orders = (first, first + 2, size + 1, size + 2, far, far + 3, 3 * far)
    gaps = (
        (("ghost", first + 3),),
        (("lost", size + 1), ("lost", far)),
        (("lost", 3 * far),),
        (("ghost", far - 1), ("item", far)),
        (("twice", first), ("twice", 3 * far)),
    )
    yield v("gaps in the numbers", orders=orders, size=size, damage=gaps)
    size = 111 + c.randrange(8)
    few = [place * size + number for place in range(20) for number in (1, 5)]
    orders = tuple(sorted({*few, *range(4 * size + 20, 4 * size + 40)}))
    sparse = (
        ((c.pick("item", "more"), 4 * size + c.randrange(28, 31)),),
        tuple((c.pick("lost", "twice"), place * size + 1) for place in (*range(0, 20, 2), 19)),
        (("lost", 15 * size + 1), ("lost", 15 * size + 5)),
        (("early ghost", (25 + c.randrange(9)) * size),),
    )
    yield v("many ranges", orders=orders, size=size, damage=sparse)
    one = c.randrange(1, 9)
    ones = (
        (("lost", one),),
        (("ghost", one + 1),),
        (("lost", one), ("ghost", one + 2)),
        (("ghost", one + 1), ("ghost", one + 2), ("ghost", one + 4)),
    )
    yield v("ranges of one", orders=(0, one, 10 + one), size=1, damage=ones)
    nothing = ((), (("ghost", c.randrange(5)),), (("ghost", 5 * size), ("early ghost", 2 * size)))
    yield v("nothing in the source", orders=(), size=size, damage=nothing)
    large = 10**6 + c.randrange(1_000)
    changes = ((("twice", large),), (("lost", large + 1),))
    yield v("large numbers", orders=(large, large + 1), size=1_000, damage=changes)
    word, size = c.pick("lamps", "dishes", "gloves"), c.randrange(2, 6)
    alike = list(repairs.contents_alike(word, c.randrange(10**17, 10**18)))
    yield v("contents that are alike", size=size, changed=repairs.calls_with(c.sample(alike, len(alike)), size))
    little, known = c.randrange(1, 4), (9, word, 5)
    parts = (((None, (little, word, 0)),), (((little, word, 0), None),), ((None, (little, "", 5)), ((0, "", 0), None)))
    yield v("rows of little", size=4, changed=tuple((*part, (known, known)) for part in parts))
    size = c.randrange(230, 300)
    yield v("as many rows as possible", size=size, changed=(repairs.ends_changed(c.randrange(size)),))
    last = ((None, (repairs.LARGEST_ID, word, c.randrange(9))),)
    yield v("the largest numbers", size=repairs.LARGEST_SIZE, changed=(*repairs.numbers_exchanged(word), last))


def _fence(c: Chance) -> Iterator[Variant]:
    """Yield variants (test cases) of `09c-fence`: topics with gaps, consumer groups whose generations skip numbers."""
    for name, owners, batch in (("two owners", 2, 3), ("three owners", 3, 2)):
        generations = tuple(sorted(c.sample(range(1, 15), owners)))
        topic = tuple(sorted(c.sample(range(c.randrange(2), 12), 4)))
        yield v(name, topic=topic, generations=generations, batch=batch)
    first = 10**6 + c.randrange(1_000)
    yield v("the first records are deleted", topic=(first, first + 1, first + 3), generations=(3, 12), batch=2)
    many = tuple(range(40 + c.randrange(9), 75))
    sparse = tuple(sorted(c.sample(range(100, 1_000), 30)))
    middle = sparse[c.randrange(10, 20)]
    large = 10**9 + c.randrange(1_000)
    requests = (
        (0, 0, 1, many),
        (4, many[20], 4, many),
        (4, many[20] + 1, 4, many),
        (4, many[-1], 5, many),
        (4, many[-1] + 1, 5, many),
        (4, many[3], 3, many),
        (9, middle, 9, sparse),
        (9, middle + 1, 10, sparse),
        (10, middle, 9, sparse),
        (9, middle, 100, ()),
        (100, middle, 99, ()),
        (large, 5, large, (3, 5, 8)),
        (large, 5, large + 1, (3, 4)),
        (large, 5, large - 1, (5,)),
        (2, large, 2, (large - 1, large, large + 1)),
        (2, large, 3, (large + 2,)),
        # Offsets that are equal as floating-point numbers.
        (2, 2**60 + 1, 2, (2**60, 2**60 + 1)),
        *alike_as_floats(2**53 + 4 * c.randrange(1_000)),
        *LARGE,
        (0, 0, 1, (0,)),
        (0, 0, 1, (0, 1)),
        *where_remainders_begin_anew(),
        long_request(first, c.randrange(300, 900), 1_100),
        long_request(c.randrange(99), MOST_RECORDS - 1),
    )
    yield v("long requests and large numbers", requests=requests)


def _runner(c: Chance) -> Iterator[Variant]:
    """Yield variants (test cases) of `11b-runner`: kills, lost answers, expired keys, new versions, similar names."""
    names = ("charge", "mail", "book", "charge now", "Charge")
    keeps, hours = c.randrange(5, 90), c.randrange(1, 5)
    late = c.randrange(1_001, 9_999)
    edge = (hours, keeps - hours - 1, keeps - hours, keeps - 1, keeps)
    yield v("two crashes", steps=(c.pick(*names),), keeps=keeps, crashes=2, downtimes=edge, hour=late)
    late_or_not = (0, keeps - 1, keeps)
    yield v("a lost answer", steps=(c.pick(*names),), keeps=keeps, crashes=1, losses=1, downtimes=late_or_not)
    yield v("two lost answers", steps=(c.pick(*names),), keeps=c.randrange(1, 9), losses=2, crashes=1)
    yield v("no keys", steps=(c.pick(*names),), keeps=0, crashes=2, losses=1, downtimes=(0, c.randrange(9, 99)))
    yield v("two steps", steps=tuple(c.sample(names, 2)), keeps=c.pick(0, keeps), crashes=2)
    empty: list[object] = c.sample((0, False, "", None, [], {}), 4)
    some: list[object] = [c.randrange(2, 9), [None], [0, [1]], {"done": None}, "started", 10 ** c.randrange(9, 15)]
    yield v("results of every kind", steps=("book",) * 10, results=(*empty, *some), crashes=1)
    one, two, three = c.sample(names, 3)
    yield v("an inserted step", steps=(one, two), then=(one, three, two), crashes=1)
    yield v("an exchanged step", steps=(one, two, one), then=(one, two, three), crashes=2, keeps=c.pick(0, 24))
    yield v("a step of the same name", steps=(one, two), then=(one, one, two), crashes=1)
    for old, new in (("charge", "Charge"), ("Charge", "charge")):
        yield v("names that differ in a letter", steps=(old, one), then=(new, one), crashes=1, keeps=0)
    yield v("names with the same beginning", steps=("charge now", "mail"), then=("charge not", "mail"), crashes=1)
    yield v("names with the same end", steps=("charge now", "mail"), then=("recharge now", "mail"), crashes=1)
    yield v("names and blanks", steps=("charge", "mail"), then=("charge ", "mail"), crashes=1)
    yield v("blanks and names", steps=(" charge", "mail"), then=("charge", "mail"), crashes=1)
    for composed in (COMPOSED, COMPOSED[::-1]):
        yield v("names composed in two ways", steps=composed[:1], then=composed[1:2], crashes=1)
    # Runs and numbers that are equal when they are written one after the other, cut, or in lower case.
    day = c.randrange(1, 9)
    alike = (f"run {day}", f"run {day}1", f"run {day}1 ", f"Run {day}", f"{day}", f"1{day}", f"{day}1", *COMPOSED)
    yield v("runs alike", runs=alike, steps=("mail",) * 12)
    long = f"a run of the agent for the orders of the north, number {c.randrange(10, 90)}"
    yield v("long runs alike", runs=(long, f"{long}1", f"{long[:-1]}x", f"b{long[1:]}"), steps=("mail",) * 2)
    yield v("runs with the same checksum", runs=c.pick(*SAME_CHECKSUM))
    yield v("many steps", steps=("mail",) * c.randrange(11, 14), crashes=1, keeps=c.pick(0, 24))
    years = 10 ** c.randrange(4, 7)
    yield v("a key for years", steps=(c.pick(*names),), keeps=years, crashes=2, downtimes=(years - 1, years, 1))
    far = c.randrange(301, 999)
    yield v("far into a run", firsts=(far, far + 100, far + 1_000), crashes=1)
    # The age of a key counts from the start of its own step, not of the run or of the process.
    later = (keeps - 1, 1)
    two_steps = tuple(c.sample(names, 2))
    yield v("steps at different hours", steps=two_steps, keeps=keeps, crashes=2, downtimes=later, hour=9)
    yield v("steps of one name", steps=two_steps[:1] * 2, keeps=keeps, crashes=2, downtimes=later, hour=9)
    still = (keeps - 1, keeps, 1)
    yield v("a pause", steps=(c.pick(*names),), keeps=keeps, losses=1, crashes=1, stalls=2, downtimes=still, hour=late)
    yield v("a pause without keys", steps=(c.pick(*names),), keeps=0, losses=1, crashes=1, stalls=1, downtimes=still)
    far = c.randrange(20, 90)
    yield v("a new version far into a run", firsts=(far,), steps=(one, two), then=(one, three), crashes=1)
    words = ("week", "pack", "note", "claim", "refund")
    yield v("parts that run into one another", probe=(*c.sample(words, 2), c.randrange(1_000, 9_990)))
    yield from _misread(c, one, two)


def _misread(c: Chance, one: str, two: str) -> Iterator[Variant]:
    """Yield variants (test cases) of `11b-runner`: names such as *done*, a word of the journal, or over ten steps."""
    kinds = (*c.sample(("done", "started"), 2), c.pick("undone", "abandoned", "restarted", "not done", "start"))
    values: tuple[object, ...] = (*c.sample(("done", "started", 0, 1, 2), 5), *kinds)
    wrongly = {"results": tuple(values), "crashes": 1, "hour": c.randrange(3)}
    yield v("names that look like kinds", runs=kinds[:1], steps=kinds, then=(kinds[1], kinds[0], "send"), **wrongly)
    yield v("a name and a kind", runs=(kinds[1],), steps=(one, *kinds[:2]), then=(kinds[1], one), **wrongly)
    yield v("a number of two digits", steps=(*(one,) * 10, two), crashes=1, keeps=c.pick(0, 24))
    yield v("a kind and a name", runs=(one,), steps=(kinds[0], two), then=(one, two), keeps=0, **wrongly)


def _relay(c: Chance) -> Iterator[Variant]:
    names = c.sample(ORDERS, 3)

    def rows(*orders: int) -> tuple[tuple[int, str], ...]:
        ids = c.sample(range(1, 1_000), len(orders))
        return tuple(zip(ids, (names[order] for order in orders), strict=True))

    yield v("two crashes", rows=rows(*c.pick((0, 0, 1, 0), (0, 1, 0, 0), (0, 0, 0, 1))), first=c.pick(1, 2), crashes=2)
    yield v("two refused messages", rows=rows(0, 1, *c.sample((0, 1, 2), 3)), refusals=2)
    yield v("a crash and a refused message", rows=rows(0, 1, *c.sample((0, 1), 2)), first=2, crashes=1, refusals=1)
    # Long names that differ in the case of a letter, a blank, the first or the last letters.
    long = f"North order {c.randrange(10, 90)} "
    alike = (long.lower(), long.strip(), f"S{long[1:]}", f"{long}x")
    names = [long, *c.sample(alike, 2)]
    yield v("names alike", rows=rows(0, 1, 2, 0), refusals=1)
    # The ids and names of an outbox that has been in use for years.
    many = [(1_000_000 + number, c.pick(*ORDERS)) for number in c.sample(range(1_000), 18)]
    yield v("many rows", rows=tuple(many), first=c.pick(16, 17, 18), crashes=1)
    names = [f"order {number}" for number in c.sample(range(100), 14)]
    yield v("an outage", rows=rows(*range(14), 0), outage=c.randrange(11, 14))
    names = [*c.sample(COMPOSED, 2), c.pick(*ORDERS)]
    yield v("names composed in two ways", rows=rows(0, 1, 2, 0), refusals=1)
    one, two = c.sample(range(1, 10), 2)
    glued = tuple(zip((one, two, int(f"{one}{two}")), c.sample(ORDERS, 3), strict=True))
    numbers = c.sample(range(1_000, 9_000), 30)
    yield v("a long outage", rows=rows_alike(numbers), outage=2 * len(PAIRS_ALIKE))
    size = MOST_OPEN - 1
    later = (*((size - place, names[2]) for place in range(size)), (size + c.randrange(1, 9), c.choice(MANY_WORDS)))
    yield v("a long queue", rows=later, held=(0,))
    yield v("a long life", rows=later, sent=MOST_OPEN)
    some = c.randrange(MOST_REFUSED - 9, MOST_REFUSED)
    yield v("a long list", rows=tuple(enumerate(map(str, range(some + 1)))), held=tuple(range(some)))
    yield v("nothing to do in a long list", rows=tuple(enumerate(map(str, range(some)))), held=tuple(range(some)))
    yield v("every kind of name", outboxes=tuple(orders_alike(WORDS_ALIKE, c.randrange(100))))
    yield v("an id of 0", rows=((one, "A"), (0, "A"), (two, "B")), refusals=1)
    yield v("an id that is two others one after the other", rows=glued)
    yield v("an id that is two refused ones one after the other", rows=glued, refusals=2)


def _releases(c: Chance) -> Iterator[Variant]:
    """Yield variants (test cases) of `12b-review`: releases with other column names, or with two changes at once."""
    names = c.sample(("item", "city", "shop", "colour", "day"), 3)
    numbers = c.sample(("amount", "weight", "price", "number"), 3)
    functions = [c.pick("sum", "max", "min") for _ in numbers]
    settings = {"shuffle partitions": c.pick(2, 8, 200), "state store": "HDFS"}
    base, changes = releases.places(c.randrange(1, 9), c.pick(2, 3), settings)
    for name, state, own in releases.queries(names, numbers, functions):
        cases = releases.common_cases(changes, own)
        for _ in range(20):
            both = {**c.choice([*changes, *own]), **c.choice([*changes, *own])}
            cases.append((both, c.choice(releases.SINKS), c.choice((False, True))))
        yield v(name, old={**base, **state}, cases=tuple(cases))
    # Only the last letters of these names differ.
    alike = [f"{name}(a_very_long_name_of_a_column)" for name in ("sum", "max")]
    state = {"keys": ((names[0], "string"),), "values": ((alike[0], "bigint", True),)}
    cases = releases.with_every_sink([*changes, {"values": ((alike[1], "bigint", True),)}])
    yield v("names that end alike", old={**base, **state}, cases=tuple(cases))
    yield from _wide_releases(c, base)


def _wide_releases(c: Chance, base: Parameters) -> Iterator[Variant]:
    """Yield variants (test cases) of `12b-review`: many columns, or names or types that differ in one character."""
    yield releases.many_columns(base, c.randrange(9, 20))
    yield from releases.longest_texts(base, c.pick("price < 9 or ", "item = 'x' or ", "day > 1, "))
    name = f" The Longest Name of All {COMPOSED[c.randrange(2)]} {COMPOSED[1]} "
    pair = tuple((f"{name}{COMPOSED[1]}", f"struct<a:{kind},b:bigint>") for kind in ("int", "string"))
    alike = {**base, "checkpoint": f"{name}1 ", "table": f"{name}2 ", "filter": f"amount = {name}"}
    alike |= {"keys": pair[:1], "values": ((f"{name}3 ", "decimal(10,2)", True),)}
    changes: list[releases.Changes] = [
        {},
        *releases.changes_to("checkpoint", f"{name}3 "),
        *releases.changes_to("table", f"{name}3 "),
        *releases.changes_to("filter", f"amount = {name}a", f"amount = {name.lower()}"),
        *releases.changes_to("keys", pair[1:], ((f"{name}4", pair[0][1]),)),
        *releases.changes_to(
            "values",
            *(((f"{name}{place} ", kind, True),) for place, kind in ((3, "decimal(12,2)"), (4, "decimal(10,2)"))),
        ),
    ]
    cases = [(change, sink, late) for change in changes for sink in releases.SINKS for late in (False, True)]
    yield v("long names", old=alike, cases=tuple(cases))


def _messages(c: Chance) -> Iterator[Variant]:
    """Yield variants (test cases) of `10-messages`, with word counts of 0 and of several digits."""
    words = ("hello", "world", "stream", "x")
    some, none, large = (1, 2, c.pick(3, 4)), (0, c.randrange(1, 9)), (c.randrange(10, 99), c.randrange(300, 9_999))
    for name, counts in (("small counts", some), ("with a count of none", none), ("large counts", large)):
        yield v(name, words=tuple(c.sample(words, 2)), counts=counts)
    yield v("counts alike", pairs=counts_apart(c.randrange(100)))
    yield v("words alike", groups=WORDS_ALIKE)


def _apply(c: Chance) -> Iterator[Variant]:
    quiet: Parameters = {"crashes": 0, "words": c.pick(*WORDS)}
    low = c.randrange(1, 9)
    upsert, dies = {**quiet, "encoding": "upsert"}, {"query_crashes": 1}
    yield v("retractions, one is lost or comes twice", systems=({**quiet, "losses": 1}, {**quiet, "repeats": 1}))
    yield v("a query that dies and sends again", systems=({**quiet, **dies}, {**upsert, **dies}))
    leave = ({**upsert, "at_most": 1, "swaps": 1}, {**quiet, "at_most": c.pick(1, 2), "losses": 1})
    yield v("rows that leave the result", systems=leave)
    words = tuple(c.sample(("hello", "world", "hi", "wall"), 3))
    yield v("tables of up to three rows", tables={"words": words, "counts": (low, low + c.pick(1, 10)), "rows": 3})
    alike = ("checkpoint-1", "checkpoint-2", "Checkpoint-1", "1-checkpoint")
    yield v("names of checkpoints", tables={"words": alike, "counts": (low, low + 100), "rows": 1})
    yield v("every kind of word", tables={"groups": WORDS_ALIKE})
    yield v("counts alike", tables={"pairs": counts_apart(c.randrange(100))})
    yield v("a count of none", tables={"words": words[:2], "counts": (0, low), "rows": 1})
    yield v("the longest tables", tables={"many": c.choice(words)})
    # If word and count are joined to one text, *a* with 11 is like *a1* with 1; long words look alike if they are cut.
    letter, digit = c.choice("abcde"), c.randrange(1, 9)
    glued = {"words": (letter, f"{letter}{digit}"), "counts": (digit, 11 * digit), "rows": 2}
    yield v("a word that ends in a digit", tables=glued)
    yield v("words composed in two ways", tables={"words": COMPOSED, "counts": (low, low + 1), "rows": 2})
    longer = tuple(f"{words[0] * 15}{letter}" for letter in "st")
    yield v("words that differ at the end", tables={"words": longer, "counts": (low, low + 1), "rows": 2})


def _prefix(c: Chance) -> Iterator[Variant]:
    quiet: Parameters = {"crashes": 0, "words": c.pick(*WORDS)}
    upsert: Parameters = {**quiet, "encoding": "upsert"}
    good: list[System] = [
        ("retractions", {**quiet, "words": c.pick(*THREE_WORDS)}),
        ("upserts", {**upsert, "crashes": 1}),
        ("the query sends upserts again", {**upsert, "query_crashes": 1}),
    ]
    bad: list[System] = [
        ("one is lost", {**quiet, "losses": 1}),
        ("the query sends retractions again", {**quiet, "query_crashes": 1}),
        ("the query forgets", {**upsert, "expiries": 1}),
        ("an upsert comes late", {**upsert, "swaps": 1}),
    ]
    yield from _systems(c, good, bad)
    for words in (c.pick(*WORDS), "hello-world"):
        yield _assembled({"words": words}, others=("other",), counts=(0, 1, 2), rows=2, twice=True)
    # With so many of this word, an answer that confuses upper and lower case counts wrongly, whatever is drawn.
    many = [*MANY_WORDS, *["Hello"] * 3, *c.sample(MANY_WORDS, 4), c.choice(MANY_WORDS)]
    parts = {"input": "-".join(c.sample(many, len(many))), "near": True, "after": (0, 1, 2, 5, 9, 14, 20, len(many))}
    yield _assembled({"words": "hello"}, "many words", **parts)
    # A word and its count may give the same text: *a11* for eleven times *a*, or *a1* and 1 for once *a1*.
    letter = c.pick(*"abcde")
    glued = "-".join([letter] * 11 + [f"{letter}1"])
    yield _assembled({"words": letter}, "a digit at the end", input=glued, others=(), counts=(1, 11), rows=2)
    yield v("pairs", assembled=tuple(("pairs", {"words": "hello"}, pair_alike(*pair)) for pair in WITHOUT_HYPHEN))
    one, two = sorted(c.sample("abcdefgh", 2))
    counts = [large_counts(number) for number in (c.randrange(110, 140), MOST_WORDS - 10)]
    for parts in (*counts, many_rows(c.randrange(190, 200)), glued_rows(one, two)):
        yield _assembled({"words": "hello"}, "a lot", **parts)
    # Rows of words that nearly equal the counted ones.
    first, second = c.sample(("hello", "world", "stream", "spark", "flink", "table"), 2)
    alike = (first, first.upper(), f"{first} {second}", f"{first}{second}" * 3, c.choice(COMPOSED))
    for number, word in enumerate(alike):
        others = (*words_alike(word), *(each for each in COMPOSED if word in COMPOSED and each != word))
        yield _assembled({"words": "hello"}, f"words alike {number}", input=word, others=others, counts=(1,), rows=2)


def _prices(c: Chance) -> Iterator[Variant]:
    for edits in (1, 2, 3):
        begins = sorted(c.sample(range(3, 40), edits))
        prices = c.sample(range(5, 30), edits + 1)
        yield v(f"edited at {begins}", versions=tuple(zip((0, *begins), prices, strict=True)))
    # The price rises and falls again, so neither the largest nor the smallest price is the newest.
    begin = c.randrange(4, 9)
    yield v(f"up and down from {begin}", versions=((0, 20), (begin, 30), (begin + 3, 10), (begin + 7, 25)))
    many = [(place * c.randrange(30, 40), 90 + price) for place, price in enumerate(c.sample(range(60), 12))]
    yield v("many edits", versions=tuple(many))
    lasting = ((0, 20), (c.randrange(2_000, 9_000), 30), (c.randrange(10**6, 10**7), 10))
    yield v("prices that last", versions=lasting)
    # Prices change one minute before a minute at which a remainder, such as the minute of the day, is 0.
    old = (*(minute - 1 for minute in (22_075_200, 10**8, 2**29)), 999_999_998, 999_999_999)
    yield v("round minutes", versions=tuple(zip((0, *old), c.sample(range(90), 6), strict=True)))
    price, late = c.randrange(10**10, 10**11), 2**32 * c.randrange(2_400_000, 2_600_000) + 5
    yield v("a price of old", versions=((0, price), (2**32 - 4, 0), (late, price), (late + 1, price + 1)))
    every, cheap = c.randrange(2, 9), c.randrange(1, 9)
    yield v("years of prices", versions=tuple((every * place, cheap + place) for place in range(1_050)))


def _calls(c: Chance) -> Iterator[Variant]:
    digit = c.randrange(1, 9)
    glued = (digit, 11 * digit, 111 * digit)
    kinds, names = ("charge", "refund", "mail", "parcel"), ("orders", "returns", "clicks", "gifts")

    def drawn(
        name: str, topics: Sequence[str], partitions: Sequence[int], offsets: Sequence[int], calls: int
    ) -> Variant:
        some = tuple(c.sample(kinds, calls)) if calls > 1 else kinds[:1]
        again = c.randrange(4, 9)
        return v(name, topics=topics, partitions=partitions, offsets=offsets, calls=some, again=again)

    yield drawn(f"partitions and offsets of the digit {digit}", tuple(c.sample(names, 2)), glued[:2], glued, 2)
    orders, tens = (f"orders{digit}", "orders"), (0, int(f"{digit}0"))
    yield drawn("names that end in a digit", orders, tens, (0, c.randrange(20, 90)), 3)
    topics, partitions = (c.choice(names),), (c.randrange(4),)
    yield drawn("one topic, one partition", topics, partitions, tuple(range(c.randrange(4, 12))), 1)
    # With one of these between the fields, a call's key is also that of another call: a-1, 2, 3, d and a, 1, 2, 3-d.
    one, two, three = c.sample("abcdefgh", 3)
    for mark in ("-", "_", "."):
        glued_topics = (one, f"{one}{mark}1", f"{one}{mark}{two}")
        glued_calls = (three, f"3{mark}{three}", f"{two}{mark}{three}")
        yield v(f"names with {mark}", topics=glued_topics, partitions=(1, 2, 3), offsets=(1, 2, 3), calls=glued_calls)
    alike = ("orders-of-the-North", "orders-of-the-north", "South-orders-of-the-week", "south-orders-of-the-week")
    similar = ("charge the customer now", "charge the customer Now", "charge ", " charge", "Refund it now")
    yield v("names alike", topics=alike, partitions=(0, 1), offsets=(0, 1), calls=(*similar, "refund it now"))
    single = (*CALLS_ALIKE, *(call for pair in SAME_CHECKSUM for call in pair))
    yield v("calls alike", topics=(c.choice(names),), partitions=(0,), offsets=(c.randrange(9),), calls=single)
    many = sorted({*range(200), *(base**power + step for base in (2, 10) for power in range(4, 13) for step in (0, 1))})
    for numbers in ({"partitions": (0,), "offsets": tuple(many)}, {"partitions": tuple(range(200)), "offsets": (0,)}):
        yield v("many numbers", topics=(c.choice(names),), calls=(c.choice(kinds),), **numbers)
    # Partition and offset must not be added up, and a long name or call must not be cut.
    large = tuple(sorted({0, *(base**power for base in (2, 10) for power in range(3, 19))}))
    long = c.choice(names) * 12
    yield v("large numbers", topics=(f"{long}1", f"{long}2"), partitions=(0, 1), offsets=large, calls=("mail",))
    asked = (f"{long} 1", f"{long} 2")
    yield v("long calls", topics=(c.choice(names),), partitions=(0,), offsets=(1,), calls=asked)
    yield v("confused calls", word=c.pick("stream", "gateway", "importance"), large=c.randrange(10**17, 10**18))


def _order(c: Chance) -> list[Variant]:
    drawn = [(rows, quiet) for rows in ("added", "replaced", "together") for quiet in (False, True)]
    c.shuffle(drawn)
    return [v(f"{rows}, quiet: {quiet}", rows=rows, quiet=quiet) for rows, quiet in drawn]


ROUND = (
    *(60, 100, 256, 1_000, 1_024, 1_440, 4_096, 10_000, 10_080, 32_768, 43_200, 65_536, 100_000, 525_600),
    *(10**6, 2**20, 10**7, 2**24, 10**8, 2**29, 10**9, 2**31, 2**32),
)
"""Numbers by which a careless rule divides, such as the minutes of a day."""


def _names_left(engine: str) -> tuple[tuple[str, ...], ...]:
    """Return lists of names of an engine's checkpoint files, for the exercise `12-restart`.

    The numbers in the names have one to several digits, such as `offsets/2345`.
    """
    plan, note = ("offsets/{}", "commits/{}") if engine == "spark" else ("ha/{}", "chk-{}/_metadata")
    lists = [[name.format(each) for each in (number, number - 1) for name in (plan, note)] for number in ROUND]
    lists += [[plan.format(number)] for number in (10, 2_345)]
    if engine == "spark":
        lists += [[plan.format(0)], [plan.format(0), note.format(0)]]
    return tuple(map(tuple, lists))


def _waits(c: Chance) -> Iterator[Variant]:
    """Yield variants (test cases) of `13-wait`: how long do records wait in two jobs, one after the other?"""
    yield v("whole seconds", cases=[[(c.randrange(3, 30, 2), c.randrange(1, 9)) for _ in range(2)]])
    slow, fast = (c.pick(1, 3), c.randrange(5, 20)), (c.pick(0.5, 5), 0.25)
    yield v("a slow store behind a fast one", cases=[(fast, slow)])
    yield v("a fast store behind a slow one", cases=[(slow, fast), (slow, slow)])
    long = [(c.randrange(210, 290), c.randrange(110, 190)) for _ in range(2)]
    yield v("minutes", cases=[long])
    tenths = c.pick(0.2, 0.3, 0.4)
    short = (round(2 * tenths, 1), 0.1)
    yield v("less than a second", cases=[((tenths, 0.1), short), ((1.4, 0.1), (2, 0.1)), ((4, 0.5), (4, 0.5))])
    tiny, huge = c.pick(0.01, 0.02), c.randrange(400_000, 900_000)
    extremes = [((tiny, 0.002), (3 * tiny, 0.001)), ((huge, c.randrange(9, 90)), (0.5, 0.1))]
    extremes.append(((c.randrange(3, 7), 0), (2, 0)))
    yield v("milliseconds, weeks, no commits", cases=extremes)


def _requests(c: Chance) -> Iterator[Variant]:
    """Yield variants (test cases) of `14-kills`: sinks that mark a batch as done before, between or after its rows."""
    rows = ["ROW"] * c.randrange(1, 4)
    together = [*rows, "MARK"]
    c.shuffle(together)
    more = ["ROW"] * c.randrange(1, 3)
    kept, both = ["BEGIN", *rows, "COMMIT"], ["BEGIN", *together, "COMMIT"]
    yield v("no marker", cases=[["ROW"], kept, both])
    yield v("one commit for both", cases=[["LOOK", *both], ["BEGIN", "LOOK", *together, "COMMIT"]])
    yield v("a marker behind or first", cases=[["LOOK", *kept, "MARK"], ["LOOK", "MARK", "ROW"]])
    later = ["BEGIN", *more, "COMMIT"]
    yield v("a marker between rows", cases=[["LOOK", "ROW", "MARK", "ROW"], ["LOOK", *kept, "MARK", *later]])
    late = [[*rows, "LOOK", "MARK", *more], ["BEGIN", *rows, "LOOK", *more, "MARK", "COMMIT"]]
    yield v("rows before the look", cases=late)
    empty = ["BEGIN", "COMMIT"] * c.randrange(1, 3)
    held = ["BEGIN", "LOOK", *together, "COMMIT"]
    yield v("empty transactions", cases=[[*empty, *held], [*empty * 12, *held], [*empty, "LOOK", *both, *empty]])
    yield v("two transactions", cases=[["LOOK", *kept, "BEGIN", *more, "MARK", "COMMIT"], ["LOOK", *both, *later]])
    many = ["ROW"] * c.randrange(12, 16)
    yield v(
        "many rows",
        cases=[
            ["LOOK", "BEGIN", *many, "MARK", "COMMIT"],
            ["LOOK", *many, "MARK"],
            ["LOOK", "MARK", *many],
            ["BEGIN", *many, "COMMIT", "LOOK", "ROW", "MARK"],
            ["LOOK", "BEGIN", *many, "COMMIT", "MARK"],
            ["LOOK", "BEGIN", *many, "MARK", "COMMIT", "BEGIN", *many, "COMMIT"],
            ["LOOK", "MARK", "ROW", *["BEGIN", "COMMIT"] * 60],
            ["LOOK", "ROW", "BEGIN", *many, "MARK", "COMMIT"],
            # Row 12 is lost. In the joined text of all row numbers, a search for 12 finds 1 followed by 2.
            *(["LOOK", "BEGIN", *["ROW"] * size, "MARK", "COMMIT", "ROW"] for size in (11, 12, 105)),
            ["LOOK", "BEGIN", *["ROW"] * 105, "MARK", "COMMIT", "BEGIN", "COMMIT"],
            [*NOTHING, *c.pick(("ROW", "MARK"), ("MARK", "ROW"))],
        ],
    )


def _longest(c: Chance) -> Iterator[Variant]:
    """Yield variants of `13-longest`, in which learners compute the longest commit interval within a job's limits.

    In each variant another limit decides. For some jobs, the answer is one second, or no interval at all.
    """
    commit, rate = c.randrange(2, 9), c.randrange(3, 20)
    wide, seconds = 9_000, c.randrange(20, 90)
    spare = c.randrange(1, rate)
    yield v("readers do not wait", cases=[job(seconds, commit, rate, wide, 600)])
    yield v("little is read again", cases=[job(wide, commit, rate, rate * seconds + spare, wide)])
    yield v("a short timeout", cases=[job(wide, commit, 1, wide, seconds)])
    last = [(commit + 1, wide, wide), (commit, wide, wide), (commit - 1, wide, wide), (wide, rate - 1, wide)]
    last += [(wide, wide, commit + 2), (wide, wide, commit + 1), (wide, wide, commit - 1)]
    cases = [job(latency, commit, rate, again, timeout) for latency, again, timeout in last]
    yield v("just possible, and not", cases=cases)
    commit, rate = c.randrange(120, 190), c.randrange(120, 190)
    limits = [(commit + 200, wide * rate, wide), (wide, 300 * rate, wide), (wide, wide * rate, commit + 201)]
    yield v("large numbers", cases=[job(latency, commit, rate, again, timeout) for latency, again, timeout in limits])
    days = c.randrange(100_000, 300_000)
    limits = [(days, days * rate, 2 * days), (days, days // 2 * rate, days), (2 * days, days * rate, days)]
    yield v("days", cases=[job(latency, commit, rate, again, timeout) for latency, again, timeout in limits])
    rate, seconds = 10**12 + c.randrange(1_000), 10 * c.randrange(120_000, 130_000) + c.randrange(1, 10)
    yield v("a flood of records", cases=[job(2_000_000, commit, rate, rate * (seconds + 1) - 1, 3_000_000)])


def _handed_over(c: Chance, parts: Sequence[str], epochs: tuple[list[int], list[int]] = ([], [])) -> Iterator[Variant]:
    """Yield variants in which two queries write to a learner's sink: at least one variant for each axis in `parts`.

    An axis is a property that is graded separately. `epochs` has a list for each query: the epoch (fencing number) of
    its writer, or nothing for an exercise without epochs.
    """
    crashed = _one_draw(c, 3, c.choice(capstone.QUERIES), epochs)
    many = capstone.numbered([[("pen", c.randrange(4)) for _ in range(capstone.MOST_ROWS)]])
    crashed["wide"] = capstone.moved(many, c.randrange(500))
    for axis in parts:
        each_of = [crashed]
        if axis in (OLDER, QUERY):
            pairs = capstone.QUERIES if axis == QUERY else [c.choice(capstone.QUERIES)]
            # Only the names of the first pair can be confused with batch numbers of two digits.
            sizes = [capstone.MANY, 3, 3] if axis == QUERY else [capstone.MANY]
            drawn = zip(sizes, pairs, strict=True)
            each_of = [_one_draw(c, size, pair, epochs) for size, pair in drawn]
        if axis == STOPPED:
            # A sink that cuts this name, folds its case or composes its letters finds no writer of the query.
            each_of = [crashed | {"query": [*epochs[0], " Sums per hour and Cafe\u0301 "]}]
        if axis == QUERY:
            name = c.pick("sums-per-hour-and-shop", "clicks-by-page-and-day")
            names = capstone.alike(name, "clicks-on-page", blanks=parts is not capstone.FOLDER)
            each_of[0]["alike"] = names
        for given in each_of:
            yield v(f"drawn rows: {axis}, {given['query'][-1]} and {given['other'][-1]}", axis=axis, **given)


def _one_draw(c: Chance, size: int, names: tuple[str, str], epochs: tuple[list[int], list[int]]) -> dict[str, Any]:
    """Return the parameters of a variant in which two queries write rows.

    The first query writes `size` batches, whose rows have large ids. The second query writes three batches, whose rows
    have ids from 0 on. `names` and `epochs` are pairs: one element for the first query, one for the second.
    """
    batches, others = (capstone.numbered(_contents(c, each)) for each in (size, 3))
    return {
        "batches": capstone.moved(batches, 900_000_000 + c.randrange(50)),
        "query": [*epochs[0], names[0]],
        "others": capstone.moved(others, -1),
        "other": [*epochs[1], names[1]],
    }


def _contents(c: Chance, batches: int) -> list[list[tuple[str, int]]]:
    """Return a list of pairs (item, amount) for each batch.

    Each of the first two batches contains one pair twice. If there are more than 3 batches, the last has ten pairs.
    """
    items = c.sample(capstone.ITEMS, len(capstone.ITEMS))
    items += c.choices(capstone.ITEMS, k=batches)
    amounts = [0, 10**9 - c.randrange(9), *(c.randrange(1, 4) for _ in items[2:])]
    pairs = list(zip(items, amounts, strict=True))
    first, second, *others = pairs[:2], pairs[2:4], *([pair] for pair in pairs[4:])
    drawn = [[*first, first[0]], [*second, second[0]], *others][:batches]
    return drawn if batches <= 3 else [*drawn[:-1], pairs[:10]]


_DRAW: Mapping[str, Callable[[Chance], Sequence[Variant] | Iterator[Variant]]] = {
    "01-links": lambda c: [
        v("two batches", words=f"{c.pick(*TOGETHER)}-hello", records_per_batch=3, crashes=1),
        v("one batch, two crashes", words=c.pick(*TOGETHER), records_per_batch=4, crashes=2),
        v("small batches", words=c.pick(*WORDS), records_per_batch=c.pick(1, 2), crashes=1),
    ],
    "02-dedup": lambda c: [
        v("a loss and crashes", records=1, drops=1, duplicates=0, crashes=c.pick(1, 2)),
        v("doubled, and a crash", records=2, drops=0, duplicates=c.pick(1, 2), crashes=1),
        v("two under way, one overtakes", records=2, window=2, duplicates=0, reorders=c.pick(0, 1), crashes=0, drops=1),
        v("a late answer", records=1, delays=1, duplicates=c.pick(0, 1), drops=1, crashes=1),
        v("many ids in the table", known=tuple(c.sample(range(3_000), c.randrange(130, 160)))),
        v("ids of many digits", large=c.randrange(10**17, 10**18)),
        v(
            "a table of some years",
            first=0,
            size=MOST,
            places=(0, c.randrange(-9, 0)),
            # These 32 new ids are there because a Bloom filter takes some new ids for known ones.
            fresh=tuple(c.randrange(10**17, 10**18) for _ in range(32)),
        ),
    ],
    "02-chain": lambda c: [
        v("a loss, a crash", processes=3, records=c.pick(1, 2), duplicates=0),
        v("two crashes", processes=3, records=1, crashes=2, drops=c.pick(0, 1), duplicates=0),
        v("four processes", processes=4, records=1, duplicates=0, drops=c.pick(0, 1)),
    ],
    "03-cut": _cut,
    "04-align": lambda c: [
        v("two sources and a crash", sources=2, counts=1, words=(short := c.pick(*SHORT)), crashes=1),
        v("one source is longer", sources=2, counts=1, words=c.pick(*WORDS), crashes=0, checkpoints=1),
        v("three sources", sources=3, counts=1, words=short, crashes=0, sink="append"),
        v("many inputs", inputs=c.pick(4, 5)),
        v("more inputs", inputs=c.randrange(110, 115)),
    ],
    "04b-settings": lambda c: [
        v("cancelled", words=c.pick(*PAIRS), sources=2, counts=1, crashes=0, cancels=1),
        v("a crash besides", words=c.pick(*PAIRS), sources=2, counts=1, crashes=1, cancels=1),
        v("one source", words=c.pick(*WORDS), sources=1, counts=1, crashes=1, cancels=1),
    ],
    "05-recovery": lambda c: [
        v("two participants", participants=2, crashes=1, losses=c.pick(0, 1)),
        v("two crashes", participants=2, crashes=2, losses=0),
        v("one participant", participants=1, crashes=c.pick(2, 3), losses=c.pick(1, 2)),
    ],
    "05-atomic": _atomic,
    "06-key": lambda c: [
        v("a crash", words=c.pick(*TOGETHER), crashes=c.pick(1, 2)),
        v("batches", words=c.pick(*WORDS), records_per_batch=c.pick(1, 2), crashes=2),
        v("the folder is deleted", words=c.pick(*TOGETHER), records_per_batch=1, crashes=1, deletions=1),
        v("alike", words=c.pick(*ALIKE), crashes=c.pick(0, 1)),
        v("a long input", words=_long_input(c), large=c.randrange(10**17, 10**18)),
    ],
    "06-wal": lambda c: [
        v("two batches", words=c.pick(*WORDS), records_per_batch=2, crashes=c.pick(1, 2)),
        v("three batches", words=c.pick(*WORDS), records_per_batch=1, crashes=1),
        v("one batch", words=c.pick(*TOGETHER), records_per_batch=3, crashes=c.pick(1, 2)),
        v("many batches", batch=c.randrange(101, 109), rows=c.randrange(12, 30)),
        v("a number that two others make", batch=c.pick(12, 23, 34, 45, 56), rows=c.randrange(1, 4)),
        v("a day of rows", batch=c.randrange(2, 9), rows=LARGEST_BATCH),
    ],
    "06-recover": lambda c: [
        v("a crash", words=(words := c.pick(*WORDS)), records_per_batch=c.pick(2, 3), crashes=c.pick(1, 2)),
        v("a lost notification", words=words, records_per_batch=2, crashes=1, lost_notices=1),
        v("a checkpoint expires", words=words, records_per_batch=2, crashes=1, lapses=1),
        v("three tasks in a batch", words=c.pick(*THREE_WORDS), records_per_batch=3, crashes=1),
        v("a second attempt", words=c.pick(*BATCHES), records_per_batch=1, crashes=1, retries=c.pick(1, 2)),
        v("many tasks", decided=c.randrange(101, 109), tasks=c.randrange(12, 20)),
        v("the next batch has another digit", decided=c.pick(9, 99, 999), tasks=c.randrange(3, 6)),
        v("years of votes", decided=c.randrange(2, 9), tasks=LONGEST_LIST),
    ],
    "06-jump": _jump,
    # One run with all words in one batch, because each run costs a real job. In smaller batches no value of an
    # idempotent sink jumps back, so an answer that fails there also fails in this run.
    "07-sink": lambda c: [v("batch 0", point="sink.after_commit", batch=0, records_per_batch=c.randrange(3, 1_000))],
    "08-early": _early,
    "08-finish": _orphans,
    "09-visible": _visible,
    "09b-timeout": _timeout,
    "09b-demands": _demands,
    "09c-fence": _fence,
    "09d-relay": _relay,
    "10-messages": _messages,
    "10-apply": _apply,
    "10b-prefix": _prefix,
    "11-price": _prices,
    "11-call": _calls,
    "11b-runner": _runner,
    "12-order": _order,
    "12b-review": _releases,
    "12-restart": lambda c: (
        [
            v(f"{engine} from {first}", engine=engine, first=first)
            for engine in ("spark", "flink")
            for first in (c.randrange(1, 6), c.randrange(7, 10), 97 + c.randrange(3))
        ]
        + [
            v(f"{engine}, many files", engine=engine, first=c.randrange(1, 6), steps=12)
            for engine in ("spark", "flink")
        ]
        + [v("flink, an old job", engine="flink", first=1_000_000 + c.randrange(9))]
        + [
            v(f"{engine}, {name}", engine=engine, first=first + c.randrange(90), **kept)
            for engine in ("spark", "flink")
            for name, first, kept in (("all files of a year", 1, {"kept": 1_050}), ("for ever", 2**62, {}))
        ]
        + [
            v(f"{engine}, past {10**power - 1}", engine=engine, first=10**power - c.randrange(1, 3), steps=3)
            for engine in ("spark", "flink")
            for power in (3, c.pick(4, 5), c.pick(6, 8))
        ]
        + [v(f"{engine}, names alone", engine=engine, lists=_names_left(engine)) for engine in ("spark", "flink")]
    ),
    "13-wait": _waits,
    "13-longest": _longest,
    "13-best": lambda c: [
        v("hours between two crashes", cases=[(cost := c.pick(0.2, 0.7, 3), 3_600 * (hours := c.randrange(2, 30)))]),
        v("minutes between two crashes", cases=[(cost, 60 * hours)]),
        v("seconds between two crashes", cases=[(cost / 1_000, hours)]),
        v("crashes soon after each other", cases=[(c.pick(1, 2), 10), (c.pick(3, 4), 30)]),
        v("rare crashes", cases=[(c.randrange(3_000, 4_000), c.randrange(25, 60) * 86_400)]),
        v("dear commits", cases=[(c.randrange(20, 90), 86_400), (c.randrange(210, 290), 86_400)]),
        v("moments and months", cases=[(0.000_01, c.pick(0.4, 0.6)), (0.002, 800), (300, c.randrange(10**6, 10**7))]),
    ],
    "14-table": lambda c: _handed_over(c, capstone.TABLE),
    "14-kills": _requests,
    "14b-folder": lambda c: _handed_over(c, capstone.FOLDER),
    "14b-writers": lambda c: _handed_over(c, capstone.WRITERS, capstone.EPOCHS),
    "14c-damaged": _damaged,
}
"""By exercise, the function that draws its hidden variants. Exercises that only count participation are not listed."""
