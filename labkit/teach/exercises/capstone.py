"""Exercises of notebooks 14 and 14b: eight sinks to be judged, a learner's own sinks, and a report for a person to
read.
"""

from collections.abc import Mapping
from functools import partial

from labkit.core.judge import Guarantee
from labkit.teach.exercises import kills
from labkit.teach.exercises.asking import Unusable
from labkit.teach.exercises.constants import Text, named_values
from labkit.teach.exercises.contract import Answer, Exercise, Finding, Kind, Level, Variant
from labkit.teach.exercises.own_sink import axes
from labkit.teach.exercises.own_sink.axes import judge_axis
from labkit.teach.exercises.own_sink.trials import Row

NOTEBOOK = "14_capstone"
NO_COMMIT = "14b_files_and_writers"
EIGHT: Mapping[str, Guarantee] = {
    "a": Guarantee.AT_LEAST_ONCE,
    "b": Guarantee.AT_LEAST_ONCE,
    "c": Guarantee.EXACTLY_ONCE,
    "d": Guarantee.AT_MOST_ONCE,
    "e": Guarantee.EXACTLY_ONCE,
    "f": Guarantee.AT_MOST_ONCE,
    "g": Guarantee.NONE,
    "h": Guarantee.EXACTLY_ONCE,
}
"""What the eight sinks of the notebook guarantee. It was written down before they were measured; a test measures them.
"""


def judge_eight(answer: Answer, _variant: Variant) -> Finding:
    """How many of the eight guarantees are right, and not which: who knows one wrong one looks at all once more."""
    known = tuple(each.value for each in Guarantee if each != Guarantee.UNKNOWN)
    try:
        said = named_values("guarantees", answer.value(), dict.fromkeys(EIGHT, known))
    except Unusable as error:
        return Finding(False, str(error))
    right = sum(said[letter] == each for letter, each in EIGHT.items())
    if right == len(EIGHT):
        return Finding(True, "All eight are as they were measured.")
    return Finding(False, f"{right} of {len(EIGHT)} are as they were measured.")


def rows(*batches: str) -> list[list[Row]]:
    """Batches from words such as `pen:2 book:1`: an item and an amount a row, numbered from 1."""
    made: list[list[Row]] = []
    number = 0
    for batch in batches:
        made.append([])
        for word in batch.split():
            item, _, amount = word.partition(":")
            number += 1
            made[-1].append({"id": number, "item": item, "amount": int(amount)})
    return made


def moved(batches: list[list[Row]], by: int) -> list[list[Row]]:
    """The rows under larger numbers, as another query has them."""
    return [[row | {"id": int(str(row["id"])) + by} for row in batch] for batch in batches]


PUBLIC = moved(rows("pen:2 book:1 pen:2", "lamp:1 pen:2", "book:1 cup:3"), 100)
OTHERS = rows("pen:2 ink:1", "lamp:1 pen:2", "cup:3")
"""The second query has smaller numbers: who keeps the largest one for all queries loses its rows."""
QUERIES = (("orders", "orders1"), ("orders-1", "orders"), ("queryX2", "query_2"))
"""Two queries whose names, or names and numbers of batches, are easily taken for each other."""
MANY = 12
"""Batches, so that their numbers have one digit and two."""
ITEMS = ("pen", "O'Brien", 'size-"L"', "7", "naïve")
"""What is easily mistaken: quotes of both kinds, a number that is text, a letter beyond ASCII."""

TABLE = ((axes.CRASH, 2), (axes.READER, 2), (axes.SECOND, 2), (axes.OLDER, 1), (axes.QUERY, 1))
FOLDER = ((axes.CRASH, 2), (axes.READER, 2), (axes.SECOND, 1), (axes.LEFT, 1), (axes.OLDER, 1), (axes.QUERY, 1))
WRITERS = ((axes.CRASH, 1), (axes.STOPPED, 3), (axes.QUERY, 1))
"""The axes of each exercise, and their points."""


EPOCHS = ([5], [1])
"""Of the writers of two queries: each query has writers of its own, and an older epoch in the other is no older writer.
"""


def public(parts: tuple[tuple[str, int], ...], epochs: tuple[list[int], list[int]] = ([], [])) -> tuple[Variant, ...]:
    """A visible variant for each axis. `epochs`: what a sink is told before the name of either query."""
    return tuple(
        Variant(
            axis,
            (
                ("axis", axis),
                ("batches", PUBLIC),
                ("query", [*epochs[0], "orders"]),
                ("others", OTHERS),
                ("other", [*epochs[1], "refunds"]),
            ),
        )
        for axis, _ in parts
    )


TEXT = Text("report_text")

EXERCISES = (
    Exercise(
        name="14-judge",
        notebook=NOTEBOOK,
        title="eight sinks",
        kind=Kind.EXPLAIN,
        level=Level.MEDIUM,
        points=4,
        answer="guarantees",
        task="Say of each of the eight sinks what it guarantees: exactly-once, at-least-once, at-most-once or none.",
        hints=(
            "Put a crash between every two statements that commit. Which rows come again, and which never come?",
            "A repeated batch may have its rows in another order, and a second query counts its batches from 0 again.",
        ),
        lines=4,
        public=(Variant("eight sinks"),),
        judge=judge_eight,
    ),
    Exercise(
        name="14-kills",
        notebook=NOTEBOOK,
        title="a crash test of your own",
        kind=Kind.COMPLETE,
        level=Level.MEDIUM,
        points=4,
        answer="guarantee",
        task="guarantee(requests) returns what a sink guarantees that makes these requests, over a "
        "kill at every place.",
        hints=(
            "Write a function that gives what is stored after some requests, and call it twice for each place.",
            "A place before each request, and one behind the last. What a transaction holds at a kill is gone.",
            "lost: in some end a row is missing. twice: in some end a row is there twice. Both: none.",
        ),
        lines=23,
        public=kills.PUBLIC,
        judge=kills.judge,
    ),
    Exercise(
        name="14-table",
        notebook=NOTEBOOK,
        title="a table that survives",
        kind=Kind.COMPLETE,
        level=Level.MEDIUM,
        points=sum(points for _, points in TABLE),
        answer="write_batch",
        task="Write a sink for a table of SQLite that is exactly-once at every crash, and shows no part of a batch.",
        hints=(
            "What tells the sink, after a restart, that a batch is in the table? It must be there when the rows are.",
            "Rows and a row (query, batch) between one BEGIN and one COMMIT; skip a batch whose row is there.",
        ),
        lines=9,
        public=public(TABLE),
        judge=partial(judge_axis, name="write_batch", kind="table"),
        axes=TABLE,
    ),
    Exercise(
        name="14-report",
        notebook=NOTEBOOK,
        title="what your sink guarantees",
        kind=Kind.EXPLAIN,
        level=Level.MEDIUM,
        points=4,
        answer="report_text",
        task="In about 200 words, for the person who pays for it: which guarantee your sink has, under which three "
        "conditions, what was measured, and one thing that it does not survive.",
        hints=(
            "The certificate says what was measured, and its last part what was not.",
            "Conditions: who repeats what after a restart, what the store promises, and who else writes.",
        ),
        lines=10,
        public=(Variant("a text"),),
        judge=TEXT.judge,
        by_hand=True,
    ),
    Exercise(
        name="14b-folder",
        notebook=NO_COMMIT,
        title="files and a manifest",
        kind=Kind.COMPLETE,
        level=Level.HARD,
        points=sum(points for _, points in FOLDER),
        answer="write_files",
        task="Write a sink for a folder: exactly-once for a reader who reads the files that manifest.json names.",
        hints=(
            "A file may be torn while it is written. Which call makes a whole file visible at once?",
            "Write the rows under a name of query and batch; write the new manifest under another name; rename it.",
        ),
        lines=8,
        public=public(FOLDER),
        judge=partial(judge_axis, name="write_files", kind="folder"),
        axes=FOLDER,
    ),
    Exercise(
        name="14b-writers",
        notebook=NO_COMMIT,
        title="a writer that comes back",
        kind=Kind.COMPLETE,
        level=Level.HARD,
        points=sum(points for _, points in WRITERS),
        answer="write_fenced",
        task="Write a sink that two writers may use one after the other: a writer with an older "
        "epoch writes nothing, and "
        'returns "fenced".',
        hints=(
            "Where is it written down which writer is the newest? When may that change between the look and the rows?",
            "Look at the epoch, raise it, look at the marker and insert between one BEGIN IMMEDIATE and one COMMIT.",
        ),
        lines=14,
        public=public(WRITERS, EPOCHS),
        judge=partial(judge_axis, name="write_fenced", kind="table"),
        axes=WRITERS,
    ),
)
