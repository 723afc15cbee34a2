"""The hidden variants, from which grades come: drawn anew from the seed of a grading run, never given to a learner.

Hidden variants differ from public ones in what an answer could have learnt by heart: participants, words, batch sizes,
budgets of faults, and which rule of a system is left out. Whatever is drawn, each kind of fault comes in at least one
variant. Predictions and choices among statements are participation items: their one variant is the public one. This
module must not judge, and must not be in what learners get.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from labkit.sim.models.snapshot.parts import ends
from labkit.teach.exercises.capstone import EPOCHS, FOLDER, ITEMS, MANY, QUERIES, TABLE, WRITERS, moved, rows
from labkit.teach.exercises.contract import Kind, Variant
from labkit.teach.exercises.own_sink.axes import OLDER, QUERY
from labkit.teach.exercises.prices import job
from labkit.teach.exercises.registry import find

Drawn = Sequence[tuple[str, Mapping[str, object]]]
"""Names and parameters of variants."""
System = tuple[str, dict[str, object]]
"""A simulator's configuration, by name."""

WORDS = (
    "hello-world-hello",
    "world-hello-hello",
    "hello-hello-world",
    "stream-table-stream",
    "table-stream-stream",
    "spark-spark-flink",
    "flink-spark-flink",
)
"""Three words, two of which are equal."""
TOGETHER = ("hello-hello-world", "world-hello-hello", "spark-spark-flink", "stream-table-table")
"""Three words whose equal ones share one batch of two, or one of three."""
THREE_WORDS = ("hello-world-stream", "spark-table-hello", "flink-world-table")
"""Three different words, which three tasks write."""
ALIKE = ("stream-spark-stream-spark-stream", "hello-hi-hello-hello-hi", "world-word-world-word-wall")
"""Five words with the same initial, of which some come again."""


def variants(exercise_name: str, seed: int) -> list[Variant]:
    """The hidden variants of an exercise: at least three, or the public one of a participation item.

    Raises `InvalidInput` for an unknown exercise.
    """
    exercise = find(exercise_name)
    if exercise.kind in (Kind.PREDICT, Kind.EXPLAIN):
        return list(exercise.public)
    drawn = _DRAW[exercise_name](Random(f"{exercise_name} {seed}"))
    return [Variant(name, tuple(parameters.items())) for name, parameters in drawn]


def _dedup(chance: Random) -> Drawn:
    return (
        ("a loss and crashes", {"records": 1, "drops": 1, "duplicates": 0, "crashes": chance.choice((1, 2))}),
        ("doubled, and a crash", {"records": 2, "drops": 0, "duplicates": chance.choice((1, 2)), "crashes": 1}),
        (
            "two under way, one overtakes",
            {"records": 2, "window": 2, "duplicates": 0, "reorders": chance.choice((0, 1)), "crashes": 0, "drops": 1},
        ),
        ("a late answer", {"records": 1, "delays": 1, "duplicates": chance.choice((0, 1)), "drops": 1, "crashes": 1}),
    )


def _alignment(chance: Random) -> Drawn:
    short = chance.choice(("hello-hello", "hello-world", "world-world"))
    return (
        ("two sources and a crash", {"sources": 2, "counts": 1, "words": short, "crashes": 1}),
        (
            "one source is longer",
            {"sources": 2, "counts": 1, "words": chance.choice(WORDS), "crashes": 0, "checkpoints": 1},
        ),
        ("three sources", {"sources": 3, "counts": 1, "words": short, "crashes": 0, "sink": "append"}),
        ("many inputs", {"inputs": chance.choice((4, 5))}),
    )


def _recovery(chance: Random) -> Drawn:
    return (
        ("two participants", {"participants": 2, "crashes": 1, "losses": chance.choice((0, 1))}),
        ("two crashes", {"participants": 2, "crashes": 2, "losses": 0}),
        ("one participant", {"participants": 1, "crashes": chance.choice((2, 3)), "losses": chance.choice((1, 2))}),
    )


def _key(chance: Random) -> Drawn:
    return (
        ("a crash", {"words": chance.choice(TOGETHER), "crashes": chance.choice((1, 2))}),
        ("batches", {"words": chance.choice(WORDS), "records_per_batch": chance.choice((1, 2)), "crashes": 2}),
        (
            "the folder is deleted",
            {"words": chance.choice(TOGETHER), "records_per_batch": 1, "crashes": 1, "deletions": 1},
        ),
        ("alike", {"words": chance.choice(ALIKE), "crashes": chance.choice((0, 1))}),
    )


def _confirmation(chance: Random) -> Drawn:
    return (
        ("two batches", {"words": chance.choice(WORDS), "records_per_batch": 2, "crashes": chance.choice((1, 2))}),
        ("three batches", {"words": chance.choice(WORDS), "records_per_batch": 1, "crashes": 1}),
        ("one batch", {"words": chance.choice(TOGETHER), "records_per_batch": 3, "crashes": chance.choice((1, 2))}),
    )


def _resolution(chance: Random) -> Drawn:
    words = chance.choice(WORDS)
    return (
        ("a crash", {"words": words, "records_per_batch": chance.choice((2, 3)), "crashes": chance.choice((1, 2))}),
        ("a lost notification", {"words": words, "records_per_batch": 2, "crashes": 1, "lost_notices": 1}),
        ("a checkpoint expires", {"words": words, "records_per_batch": 2, "crashes": 1, "lapses": 1}),
        ("three tasks in a batch", {"words": chance.choice(THREE_WORDS), "records_per_batch": 3, "crashes": 1}),
        (
            "a second attempt",
            {
                "words": chance.choice(("world-hello", "stream-table", "spark-spark")),
                "records_per_batch": 1,
                "crashes": 1,
                "retries": chance.choice((1, 2)),
            },
        ),
    )


def _systems(chance: Random, good: Sequence[System], bad: Sequence[System]) -> Drawn:
    """Three variants; each broken system is in one of them, in an order that is drawn."""
    mixed = chance.sample(list(bad), len(bad))
    names = ("first", "second", "third")
    return [
        (f"{name} systems", {"good": (good[place % len(good)],), "bad": tuple(mixed[place::3])})
        for place, name in enumerate(names)
    ]


def _assembled(system: Mapping[str, object], **parts: object) -> Drawn:
    """A variant with states that are put together from parts."""
    return [("put together", {"assembled": (("put together", system, parts),)})]


def _cut(chance: Random) -> Drawn:
    two: dict[str, object] = {"processes": 2, "transfers": chance.choice((2, 3)), "crashes": 0}
    three: dict[str, object] = {"processes": 3, "transfers": 1, "crashes": 0}
    stop = "stop_the_world"
    good: list[System] = [
        ("markers", two),
        ("markers, three processes", three),
        ("the world stops", {**two, "algorithm": stop}),
    ]
    bad: list[System] = [
        ("naive copies", {**two, "algorithm": "naive"}),
        ("channels are not saved", {**chance.choice((two, three)), "broken": "forget_channels"}),
        ("late markers", {**two, "broken": "late_markers"}),
        ("copies while money is under way", {**two, "algorithm": stop, "broken": "forget_drain"}),
        ("who is paused goes on", {**two, "algorithm": stop, "broken": "forget_pause"}),
    ]
    return [*_systems(chance, good, bad), *_stars(chance)]


def _stars(chance: Random) -> Drawn:
    """Three transfers to one of four processes; and three from one process, which received the money before."""
    middle, *others = chance.sample(range(4), 4)
    channel = {tuple(pair): number for number, pair in enumerate(ends(4))}
    inward = [channel[other, middle] for other in others]
    outward = [channel[middle, other] for other in others]
    four: dict[str, object] = {"processes": 4, "transfers": 3, "crashes": 0}
    parts = (
        ("to one process", {"any": inward[:1], "usual": inward[1:]}),
        ("from one process", {"any": outward[:1], "usual": outward[1:], "done": inward[:1]}),
    )
    return [(name, {"assembled": ((name, four, each),)}) for name, each in parts]


def _atomic(chance: Random) -> Drawn:
    two: dict[str, object] = {"participants": 2, "losses": 0, "crashes": 1}
    three: dict[str, object] = {"participants": 3, "losses": 0, "crashes": 0}
    good: list[System] = [
        ("two", two),
        ("three", three),
        ("a lost message", {**two, "crashes": chance.choice((0, 1)), "losses": 1}),
    ]
    bad: list[System] = [
        ("early commit, three", {**three, "broken": "early"}),
        ("aborts alone", {**chance.choice((two, three)), "broken": "heuristic"}),
        ("yes not logged", {**two, "broken": "forget_vote"}),
        ("decision not logged", {**two, "broken": "forget_decision", "losses": 1}),
    ]
    logs = [(), ("prepared",), ("prepared", "commit"), ("prepared", "abort")]
    logs.append(chance.choice((("abort_alone",), ("prepared", "abort_alone"))))
    logs = chance.sample(logs, len(logs))
    return [*_systems(chance, good, bad), *_assembled(three, logs=logs)]


def _jump(chance: Random) -> Drawn:
    words = chance.choice(WORDS[:3])
    good: list[System] = [
        ("two_phase", {"words": chance.choice(("world-world-hello", "spark-spark-flink", "table-table-stream"))}),
        ("append, each word once", {"words": chance.choice(("hello-world", "stream-table")), "strategy": "append"}),
        ("batch_marker", {"words": chance.choice(WORDS), "strategy": "batch_marker"}),
    ]
    bad: list[System] = [
        ("append", {"words": chance.choice(TOGETHER), "strategy": "append"}),
        ("idempotent", {"words": words, "strategy": "idempotent", "store": "sqlite", "crashes": chance.choice((1, 2))}),
        ("wal", {"words": chance.choice(TOGETHER), "strategy": "wal"}),
        ("one word", {"words": chance.choice(("hello-hello", "table-table-table")), "strategy": "append"}),
    ]
    one, other = chance.sample(("hello", "stream", "spark", "table"), 2)
    seen = {"words": f"{'-'.join([one] * 4)}-{'-'.join([other] * 3)}"}
    between = chance.choice((5, 6))
    return [*_systems(chance, good, bad), *_assembled(seen, between=between)]


def _links(chance: Random) -> Drawn:
    return (
        ("two batches", {"words": f"{chance.choice(TOGETHER)}-hello", "records_per_batch": 3, "crashes": 1}),
        ("one batch, two crashes", {"words": chance.choice(TOGETHER), "records_per_batch": 4, "crashes": 2}),
        ("small batches", {"words": chance.choice(WORDS), "records_per_batch": chance.choice((1, 2)), "crashes": 1}),
    )


def _chain(chance: Random) -> Drawn:
    return (
        ("a loss, a crash", {"processes": 3, "records": chance.choice((1, 2)), "duplicates": 0}),
        ("two crashes", {"processes": 3, "records": 1, "crashes": 2, "drops": chance.choice((0, 1)), "duplicates": 0}),
        ("four processes", {"processes": 4, "records": 1, "duplicates": 0, "drops": chance.choice((0, 1))}),
    )


def _job(chance: Random) -> Drawn:
    words = ("hello-hello", "hello-world", "world-hello")
    return (
        ("cancelled", {"words": chance.choice(words), "sources": 2, "counts": 1, "crashes": 0, "cancels": 1}),
        ("a crash besides", {"words": chance.choice(words), "sources": 2, "counts": 1, "crashes": 1, "cancels": 1}),
        ("one source", {"words": chance.choice(WORDS), "sources": 1, "counts": 1, "crashes": 1, "cancels": 1}),
    )


def _sink(chance: Random) -> Drawn:
    """One run with all words in one batch, since it costs a real job.

    In smaller batches no value of an idempotent sink jumps back, and what fails there fails in this run, too.
    """
    return (("batch 0", {"point": "sink.after_commit", "batch": 0, "records_per_batch": chance.randrange(3, 1_000)}),)


def _orphans(chance: Random) -> Drawn:
    """Names that are easily mixed up, batches of one and of two digits, a quote, another database, names of no job."""
    job = chance.choice(("sum_1", "week_2", "top_5"))
    quoted = chance.choice(("o'clock", "today's", "x'y"))
    nine = chance.choice((9, 99))
    first = chance.randrange(3)
    return (
        (
            "decided and undecided",
            {"job": job, "decided": nine, "prepared": (f"{job}/{nine}/0", f"{job}/{nine}/1", f"{job}/{nine + 1}/0")},
        ),
        (
            "jobs with names alike",
            {
                "job": job,
                "decided": first,
                "prepared": (
                    f"{job}/{first}/0",
                    f"{job}/{first + 1}/0",
                    f"{job}0/{first}/0",
                    f"{job.replace('_', 'x')}/{first}/0",
                    f"{job}-old/{first + 1}/0",
                ),
            },
        ),
        (
            "a quote in the name, and people's names",
            {
                "job": quoted,
                "decided": first,
                "prepared": (
                    f"{quoted}/{first}/{chance.randrange(4)}",
                    f"{quoted}/{first + 1}/0",
                    "by hand",
                    "transfer-south",
                ),
            },
        ),
        (
            "another database",
            {
                "job": job,
                "decided": 5,
                "prepared": (f"{job}/5/0", f"{job}/6/1"),
                "elsewhere": (f"{job}/5/2", f"{job}/6/0"),
            },
        ),
        ("nothing was decided", {"job": job, "decided": -1, "prepared": (f"{job}/0/0", f"{job}/0/1", f"{job}s/0/0")}),
    )


def _visible(chance: Random) -> Drawn:
    """Every short log under other names, and long logs in which names recur after both kinds of markers."""
    one, two = chance.sample(("x", "slow", "quick", "t1", "sink-0"), 2)
    names = (one, two, "late")
    again = (
        ("write", one),
        (chance.choice(("commit", "abort")), one),
        ("plain", ""),
        ("write", two),
        ("write", one),
        (chance.choice(("commit", "abort")), one),
        ("plain", ""),
    )
    drawn = [again, (*again, ("commit", two)), (*again, ("abort", two), ("write", one))]
    for _ in range(20):
        log: list[tuple[str, str]] = []
        for _ in range(chance.randrange(6, 12)):
            open_ = [name for name in names if _last(log, name) == "write"]
            choices = [("plain", ""), *(("write", name) for name in names)]
            choices += [(what, name) for name in open_ for what in ("commit", "abort")] * 2
            log.append(chance.choice(choices))
        drawn.append(tuple(log))
    return (
        ("one writer", {"names": (one,), "length": 5}),
        ("two writers", {"names": (two, one), "length": 4}),
        ("long logs", {"names": (one,), "length": 1, "logs": tuple(drawn)}),
    )


def _last(log: Sequence[tuple[str, str]], name: str) -> str:
    return next((what for what, whose in reversed(log) if whose == name), "")


def _timeout(chance: Random) -> Drawn:
    names = ("interval", "checkpoint", "tolerated", "downtime")
    drawn = (
        chance.choice(((2, 1, 0, 1), (2, 1, 0, 2), (1, 1, 0, 2))),
        chance.choice(((1, 1, 2, 0), (2, 1, 1, 0), (3, 1, 1, 0))),
        chance.choice(((1, 3, 0, 0), (2, 3, 0, 0), (1, 2, 0, 0))),
        chance.choice(((1, 2, 1, 0), (2, 2, 1, 0), (2, 1, 2, 0))),
        (1, 1, 1, chance.choice((1, 2))),
    )
    small = [(", ".join(map(str, each)), dict(zip(names, each, strict=True))) for each in drawn]
    short, long = (chance.randrange(5, 20), chance.randrange(25, 60))
    tolerated, downtime = chance.choice((2, 3)), chance.randrange(20, 90)
    jobs = (
        (short, long, tolerated, 0, 0),
        (long, short, 0, downtime, 0),
        (short, long, tolerated, downtime, 0),
        (long, short, tolerated, downtime, 0),
    )
    pause = chance.randrange(30, 50)
    paused = (
        (short, long, 0, 0, pause),
        (4 * long, short, tolerated, 0, chance.randrange(1, 20)),
        (short, long, tolerated, downtime, pause),
    )
    return [*small, ("longer times", {"jobs": jobs}), ("a pause", {"jobs": paused})]


def _demands(chance: Random) -> Drawn:
    limits = [
        (interval, checkpoint, downtime)
        for interval, checkpoint, downtime in (
            (chance.randrange(4, 9), chance.randrange(1, 4), chance.randrange(10, 30)),
            (chance.randrange(40, 90), chance.randrange(5, 9), 0),
            (chance.randrange(2, 4), chance.randrange(30, 60), chance.randrange(2, 9)),
        )
    ]
    return [
        (
            f"interval {interval}, checkpoint {checkpoint}, downtime {downtime}",
            {"interval": interval, "checkpoint": checkpoint, "downtime": downtime},
        )
        for interval, checkpoint, downtime in limits
    ]


def _early(chance: Random) -> Drawn:
    table: dict[str, object] = {"store": "sqlite", "reader": "table"}
    good: list[System] = [
        ("hidden rows", {"words": chance.choice(WORDS)}),
        ("append", {"words": chance.choice(WORDS[:3]), "strategy": "append"}),
        ("an open table, and no crash", {**table, "crashes": 0}),
    ]
    bad: list[System] = [
        ("an open table", {**table, "words": chance.choice(("hello", "stream-table"))}),
        (
            "an open table, small batches",
            {**table, "words": chance.choice(("hello-world", "spark-spark")), "records_per_batch": 1},
        ),
    ]
    rows = {"transactions": 2, "rows": chance.choice((3, 4))}
    return [*_systems(chance, good, bad), *_assembled({"words": chance.choice(WORDS)}, **rows)]


def _messages(chance: Random) -> Drawn:
    """Counts with and without 0, of one and of more digits, so that neither a falsy nor a long one is special."""
    words = ("hello", "world", "stream", "x")
    return [
        (name, {"words": tuple(chance.sample(words, 2)), "counts": counts})
        for name, counts in (
            ("small counts", (1, 2, chance.choice((3, 4)))),
            ("with a count of none", (0, chance.randrange(1, 9))),
            ("large counts", (chance.randrange(10, 99), chance.randrange(100, 999))),
        )
    ]


def _apply(chance: Random) -> Drawn:
    quiet: dict[str, object] = {"crashes": 0, "words": chance.choice(WORDS)}
    low = chance.randrange(1, 9)
    return (
        ("retractions, one is lost or comes twice", {"systems": ({**quiet, "losses": 1}, {**quiet, "repeats": 1})}),
        (
            "a query that dies and sends again",
            {"systems": ({**quiet, "query_crashes": 1}, {**quiet, "encoding": "upsert", "query_crashes": 1})},
        ),
        (
            "rows that leave the result",
            {
                "systems": (
                    {**quiet, "encoding": "upsert", "at_most": 1, "swaps": 1},
                    {**quiet, "at_most": chance.choice((1, 2)), "losses": 1},
                )
            },
        ),
        (
            "tables of up to three rows",
            {
                "tables": {
                    "words": tuple(chance.sample(("hello", "world", "hi", "wall"), 3)),
                    "counts": (low, low + chance.choice((1, 10))),
                    "rows": 3,
                }
            },
        ),
    )


def _prefix(chance: Random) -> Drawn:
    quiet: dict[str, object] = {"crashes": 0, "words": chance.choice(WORDS)}
    upsert: dict[str, object] = {**quiet, "encoding": "upsert"}
    good: list[System] = [
        ("retractions", {**quiet, "words": chance.choice(THREE_WORDS)}),
        ("upserts", {**upsert, "crashes": 1}),
        ("the query sends upserts again", {**upsert, "query_crashes": 1}),
    ]
    bad: list[System] = [
        ("one is lost", {**quiet, "losses": 1}),
        ("the query sends retractions again", {**quiet, "query_crashes": 1}),
        ("the query forgets", {**upsert, "expiries": 1}),
        ("an upsert comes late", {**upsert, "swaps": 1}),
    ]
    parts = {"others": ("other",), "counts": (1, 2), "rows": 2, "twice": True}
    return [
        *_systems(chance, good, bad),
        *_assembled({"words": chance.choice(WORDS)}, **parts),
        *_assembled({"words": "hello-world"}, **parts),
    ]


def _prices(chance: Random) -> Drawn:
    drawn = []
    for edits in (1, 2, 3):
        begins = sorted(chance.sample(range(3, 40), edits))
        prices = chance.sample(range(5, 30), edits + 1)
        versions = tuple(zip((0, *begins), prices, strict=True))
        drawn.append((f"edited at {begins}", {"versions": versions}))
    # Dearer, then cheaper again: neither the largest nor the smallest price is the newest.
    begin = chance.randrange(4, 9)
    versions = ((0, 20), (begin, 30), (begin + 3, 10), (begin + 7, 25))
    return [*drawn, (f"up and down from {begin}", {"versions": versions})]


def _calls(chance: Random) -> Drawn:
    digit = chance.randrange(1, 9)
    glued = (digit, 11 * digit, 111 * digit)
    kinds = ("charge", "refund", "mail", "parcel")
    names = ("orders", "returns", "clicks", "gifts")
    return [
        (
            f"partitions and offsets of the digit {digit}",
            {
                "topics": tuple(chance.sample(names, 2)),
                "partitions": glued[:2],
                "offsets": glued,
                "calls": tuple(chance.sample(kinds, 2)),
                "again": chance.randrange(4, 9),
            },
        ),
        (
            "names that end in a digit",
            {
                "topics": (f"orders{digit}", "orders"),
                "partitions": (0, int(f"{digit}0")),
                "offsets": (0, chance.randrange(20, 90)),
                "calls": tuple(chance.sample(kinds, 3)),
                "again": chance.randrange(4, 9),
            },
        ),
        (
            "one topic, one partition",
            {
                "topics": (chance.choice(names),),
                "partitions": (chance.randrange(4),),
                "offsets": tuple(range(chance.randrange(4, 12))),
                "calls": ("charge",),
                "again": chance.randrange(4, 9),
            },
        ),
    ]


def _order(chance: Random) -> Drawn:
    drawn = [
        (f"{rows}, quiet: {quiet}", {"rows": rows, "quiet": quiet})
        for rows in ("added", "replaced", "together")
        for quiet in (False, True)
    ]
    chance.shuffle(drawn)
    return drawn


def _restart(chance: Random) -> Drawn:
    return [
        (f"{engine} from {first}", {"engine": engine, "first": first})
        for engine in ("spark", "flink")
        for first in (chance.randrange(1, 6), chance.randrange(7, 10), 97 + chance.randrange(3))
    ]


def _waits(chance: Random) -> Drawn:
    """Intervals and times of a commit that are short and long beside each other."""
    some = [(chance.randrange(3, 30, 2), chance.randrange(1, 9)) for _ in range(2)]
    slow = (chance.choice((1, 3)), chance.randrange(5, 20))
    fast = (chance.choice((0.5, 5)), 0.25)
    return (
        ("whole seconds", {"cases": [some]}),
        ("a slow store behind a fast one", {"cases": [(fast, slow)]}),
        ("a fast store behind a slow one", {"cases": [(slow, fast), (slow, slow)]}),
    )


def _requests(chance: Random) -> Drawn:
    """Sinks of one to three rows; in each variant the marker stands elsewhere."""
    rows = ["ROW"] * chance.randrange(1, 4)
    together = [*rows, "MARK"]
    chance.shuffle(together)
    more = ["ROW"] * chance.randrange(1, 3)
    kept = ["BEGIN", *rows, "COMMIT"]
    return (
        ("no marker", {"cases": [["ROW"], kept, ["BEGIN", *together, "COMMIT"]]}),
        (
            "one commit for both",
            {"cases": [["LOOK", "BEGIN", *together, "COMMIT"], ["BEGIN", "LOOK", *together, "COMMIT"]]},
        ),
        ("a marker behind or first", {"cases": [["LOOK", *kept, "MARK"], ["LOOK", "MARK", "ROW"]]}),
        (
            "a marker between rows",
            {"cases": [["LOOK", "ROW", "MARK", "ROW"], ["LOOK", *kept, "MARK", "BEGIN", *more, "COMMIT"]]},
        ),
        (
            "rows before the look",
            {"cases": [[*rows, "LOOK", "MARK", *more], ["BEGIN", *rows, "LOOK", *more, "MARK", "COMMIT"]]},
        ),
        (
            "two transactions",
            {
                "cases": [
                    ["LOOK", *kept, "BEGIN", *more, "MARK", "COMMIT"],
                    ["LOOK", "BEGIN", *together, "COMMIT", "BEGIN", *more, "COMMIT"],
                ]
            },
        ),
    )


def _longest(chance: Random) -> Drawn:
    """In each variant another limit counts; in the last one an interval of one second, and none at all."""
    commit, rate = chance.randrange(2, 9), chance.randrange(3, 20)
    wide, seconds = 9_000, chance.randrange(20, 90)
    spare = chance.randrange(1, rate)
    return (
        ("readers do not wait", {"cases": [job(seconds, commit, rate, wide, 600)]}),
        ("little is read again", {"cases": [job(wide, commit, rate, rate * seconds + spare, wide)]}),
        ("a short timeout", {"cases": [job(wide, commit, 1, wide, seconds)]}),
        (
            "just possible, and not",
            {
                "cases": [
                    job(commit + 1, commit, rate, wide, wide),
                    job(commit, commit, rate, wide, wide),
                    job(wide, commit, rate, rate - 1, wide),
                    job(wide, commit, rate, wide, commit + 2),
                    job(wide, commit, rate, wide, commit + 1),
                ]
            },
        ),
    )


def _best(chance: Random) -> Drawn:
    cost, hours = chance.choice((0.2, 0.7, 3)), chance.randrange(2, 30)
    return (
        ("hours between two crashes", {"cases": [(cost, 3_600 * hours)]}),
        ("minutes between two crashes", {"cases": [(cost, 60 * hours)]}),
        ("dear commits", {"cases": [(chance.randrange(20, 90), 86_400)]}),
    )


def _handed_over(chance: Random, parts: Sequence[str], epochs: tuple[list[int], list[int]] = ([], [])) -> Drawn:
    """For each axis of a learner's own sink other rows, of which two are alike but for their number.

    Few runs are made of an older checkpoint and of a second query, so these have many batches. All other axes have the
    same rows, since they look at the same runs.
    """
    drawn = []
    crashed = _one_draw(chance, 3, chance.choice(QUERIES), epochs)
    for axis in parts:
        if axis in (OLDER, QUERY):
            pairs = QUERIES if axis == QUERY else [chance.choice(QUERIES)]
            each_of = [_one_draw(chance, MANY, pair, epochs) for pair in pairs]
        else:
            each_of = [crashed]
        for parameters in each_of:
            query, other = parameters["query"][-1], parameters["other"][-1]
            named = f"drawn rows: {axis}, {query} and {other}"
            drawn.append((named, {"axis": axis, **parameters}))
    return drawn


def _one_draw(chance: Random, size: int, names: tuple[str, str], epochs: tuple[list[int], list[int]]) -> dict[str, Any]:
    """Batches of two queries with these names."""
    batches, others = (rows(*map(" ".join, _words(chance, each))) for each in (size, 3))
    return {
        "batches": moved(batches, 50 + chance.randrange(50)),
        "query": [*epochs[0], names[0]],
        "others": moved(others, chance.randrange(20)),
        "other": [*epochs[1], names[1]],
    }


def _words(chance: Random, batches: int) -> list[list[str]]:
    """Rows of each batch: every item, and in the first two batches two rows that are alike."""
    items = chance.sample(ITEMS, len(ITEMS))
    items += chance.choices(ITEMS, k=batches)
    words = [f"{item}:{chance.randrange(1, 4)}" for item in items]
    first, second, *others = words[:2], words[2:4], *([word] for word in words[4:])
    return [[*first, first[0]], [*second, second[0]], *others][:batches]


_DRAW: dict[str, Callable[[Random], Drawn]] = {
    "01-links": _links,
    "02-dedup": _dedup,
    "02-chain": _chain,
    "03-cut": _cut,
    "04-align": _alignment,
    "04-settings": _job,
    "05-recovery": _recovery,
    "05-atomic": _atomic,
    "06-key": _key,
    "06-wal": _confirmation,
    "06-recover": _resolution,
    "06-jump": _jump,
    "07-sink": _sink,
    "08-finish": _orphans,
    "09b-timeout": _timeout,
    "09c-demands": _demands,
    "09c-early": _early,
    "09-visible": _visible,
    "10-messages": _messages,
    "10-apply": _apply,
    "10-prefix": _prefix,
    "11-price": _prices,
    "11-call": _calls,
    "12-order": _order,
    "12-restart": _restart,
    "13-wait": _waits,
    "13-longest": _longest,
    "13-best": _best,
    "14-table": lambda chance: _handed_over(chance, TABLE),
    "14-kills": _requests,
    "14b-folder": lambda chance: _handed_over(chance, FOLDER),
    "14b-writers": lambda chance: _handed_over(chance, WRITERS, EPOCHS),
}
"""The function that draws the variants of each exercise that is judged by what it does; one line each."""
