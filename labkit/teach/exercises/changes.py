"""The exercises of notebooks 10 and 10b: messages about a changed count, and the table that a receiver builds of them.

In 10b, learners write the property that this table equals the result of a batch query.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, combinations_with_replacement, permutations, product
from operator import itemgetter
from typing import Any, NamedTuple
from zlib import crc32

from labkit.sim.explore import reachable
from labkit.sim.model import Model
from labkit.sim.models.changelog.model import Changelog
from labkit.sim.models.changelog.query import batch
from labkit.sim.models.changelog.state import Consumer, Kind, Message, Row, Table, applied, visible
from labkit.sim.trace import make
from labkit.teach.exercises.asking import SHOWN, Asker, shown
from labkit.teach.exercises.confused import COMPOSED, LONGEST_WORD, MOST_ROWS, PAIRS_ALIKE, counts_apart
from labkit.teach.exercises.contract import Finding, Plain, Variant, by, variant
from labkit.teach.exercises.invariants import Watch, trace_to
from labkit.teach.exercises.searching import MAX_STATES, Cases

WAYS = ("append", "retract", "upsert")
REFUSED = "refused"
ROWS_IN_EVERY_ORDER = 3
"""The largest number of rows of a table that the judge tests with its rows in every order; three rows have 6 orders."""
Change = tuple[str, str, int | None, int | None]
"""A changelog encoding from `WAYS`, a word, and its count in the table before and after; None if it has no row."""


# The messages of a change.


def really_sent(way: str, word: str, before: int | None, after: int | None) -> list[Plain] | str:
    """Return the messages by which a query announces a changed count in the encoding `way`.

    The result is "refused" if this encoding has no message for such a change. A count of None means that the query has
    no row for the word.
    """
    if after == before:
        return []
    match way:
        case "upsert" if after is None:
            return [["x", word, before]]
        case "upsert":
            return [["=", word, after]]
        case "append" if before is not None:
            return REFUSED
    taken = [("-", before), ("+", after)]
    return [[sign, word, count] for sign, count in taken if count is not None]


def _changes(variant: Variant) -> Iterator[Change]:
    """Yield changes of a word's count, each with an encoding; the variant's parameters choose the changes.

    `words` and `counts` choose all changes of these words from one of these counts, or from no row, to any of them.
    `pairs` lists changes of the word *hello*, each as the count before and the count after. `groups` lists groups of
    similar words, and each word gets the same four changes, for example from no row to the count 2.
    """
    chosen = dict(variant.parameters)
    for way, (before, after) in product(WAYS, chosen.get("pairs", ())):
        yield way, "hello", before, after
    for word in dict.fromkeys(chain.from_iterable(chosen.get("groups", ()))):
        yield from (("append", word, None, 2), ("retract", word, 2, 3))
        yield from (("upsert", word, 2, 3), ("upsert", word, 2, None))
    if "counts" in chosen:
        counts = (None, *chosen["counts"])
        yield from product(WAYS, chosen["words"], counts, counts)


def _wrong_messages(ask: Asker, change: Change) -> Finding | None:
    answer, right = ask(*change), really_sent(*change)
    if type(answer) is not list and answer != REFUSED:
        raise ask.unusable('a list of messages, or "refused"', *change)
    if answer == right:
        return None
    way, _, before, after = change
    statement = ask.with_answer(*change)
    general = f'The messages are wrong for {_kind(before, after)}, in the encoding "{way}".'
    message = f"{statement}; {_why(way, before, after)} The right answer is {shown(right)}."
    return Finding(False, message, statement, shown(right), general=general)


def _kind(before: int | None, after: int | None) -> str:
    if after == before:
        return "a count that stays the same"
    if before is None:
        return "a new row"
    return "a row that disappears" if after is None else "a row that changes"


def _why(way: str, before: int | None, after: int | None) -> str:
    if after == before:
        return "nothing has changed, so there is no message."
    if before is None:
        return "the row is new, and one message adds it."
    if way == WAYS[0]:
        return "an append-only stream cannot take a row back."
    if way == WAYS[-1]:
        return "one message names the key and says what happens to its row."
    return "the old row is taken back first, and then the new one is added, if there is one."


MESSAGES = Cases("messages", _changes, _wrong_messages, "It is right about {} changes")

# What a receiver makes of them.


class _Case(NamedTuple):
    """A table, a message to apply to it, and the simulator's state before the message.

    The state is None if the table does not come from a simulation.
    """

    table: Table
    message: Message
    state: Any = None

    @property
    def question(self) -> tuple[Plain, Plain]:
        """The arguments with which the learner's function is called."""
        kind, word, count, _ = self.message
        return _rows(self.table), [str(kind), word, count]


def _rows(table: Table) -> list[Plain]:
    return [[row.key, row.value] for row in table for _ in range(row.times)]


@cache
def _met(parameters: str) -> tuple[_Case, ...]:
    """Return all cases (a table, and a message to apply to it) that occur in runs of the simulator `changelog`.

    `parameters` is the simulator's configuration as JSON text.
    """
    model = make("changelog", json.loads(parameters))
    assert isinstance(model, Changelog)
    cases: dict[str, _Case] = {}
    for state in reachable(model, max_states=MAX_STATES):
        if any(each.name == "apply" for each in model.actions(state)):
            message = state.topic[state.consumer.position]
            case = _Case(state.consumer.table, message, state)
            cases.setdefault(json.dumps(case.question), case)
    return tuple(cases.values())


def _put_together(parts: Mapping[str, Any]) -> Iterator[_Case]:
    """Yield cases (a table, and a message to apply to it) that are put together without a run of the simulator.

    The keys of `parts` choose the cases. With `words`, `counts` and `rows`, these are all tables of up to `rows` rows
    with these words and counts, and messages about such rows. `groups` lists groups of similar words, and `pairs` pairs
    of similar counts: here the message has a word or a count that is similar to one in the table. With `many` (a word),
    the tables have the largest size, and all their words begin with this word.
    """
    yield from _of_words_alike(parts.get("groups", ()))
    for first, second in chain.from_iterable((pair, pair[::-1]) for pair in parts.get("pairs", ())):
        for kind in (Kind.RETRACT, Kind.UPSERT):
            yield _Case((Row("hello", first),), Message(kind, "hello", second, 0))
    if "many" in parts:
        yield from _longest(parts["many"])
    if "words" not in parts:
        return
    rows = [Row(word, count) for word, count in product(parts["words"], parts["counts"])]
    for number in range(parts["rows"] + 1):
        for chosen in combinations_with_replacement(rows, number):
            table = tuple(row._replace(times=chosen.count(row)) for row in dict.fromkeys(chosen))
            keys = [row.key for row in chosen]
            for kind, row in product(Kind, rows):
                if kind in (Kind.ADD, Kind.RETRACT) or len(set(keys)) == len(keys):
                    yield _Case(table, Message(kind, row.key, row.value, 0))


def _of_words_alike(groups: Iterable[Sequence[str]]) -> Iterator[_Case]:
    for words in groups:
        table = tuple(Row(word, 1) for word in words)
        for place, word in enumerate(words):
            for rows in (table[:place] + table[place + 1 :], table):
                yield from (_Case(rows, Message(kind, word, 1, 0)) for kind in (Kind.RETRACT, Kind.UPSERT, Kind.DELETE))


def _longest(word: str) -> Iterator[_Case]:
    """Yield cases with tables of about `MOST_ROWS` rows, whose words begin with `word`.

    The message is about a row at the beginning, in the middle or at the end, or about a row that the table lacks.
    """
    last = MOST_ROWS - 1
    table = tuple(Row(f"{word}{number}", number % 7) for number in range(MOST_ROWS))
    for kind, place in product((Kind.RETRACT, Kind.UPSERT, Kind.DELETE), (0, 1, last // 2, last - 1, last)):
        yield _Case(table, Message(kind, table[place].key, table[place].value, 0))
    yield _Case(table[:-1], Message(Kind.ADD, table[-1].key, 1, 0))
    yield _Case(table, Message(Kind.RETRACT, word, 1, 0))
    # Half of the rows have the same word, and the others are equal to one another.
    counted = (*(Row(word, number) for number in range(last // 2)), Row(f"{word}0", 7, MOST_ROWS - last // 2))
    for row in (counted[0], counted[-2], counted[-1]):
        yield _Case(counted, Message(Kind.RETRACT, row.key, row.value, 0))


def _applied(variant: Variant) -> Iterator[tuple[_Case, Mapping[str, object]]]:
    """Yield test cases (a table, and a message to apply to it), each with a configuration of the simulator.

    The variant's parameter `systems` lists configurations: all cases that occur in runs with them come first. The other
    cases are built without a run from the parameter `tables` (see `_put_together`), with an empty configuration.
    """
    chosen = dict(variant.parameters)
    for parameters in chosen.get("systems", ()):
        for case in _met(json.dumps(parameters)):
            yield case, parameters
    for case in _put_together(chosen["tables"]) if "tables" in chosen else ():
        yield case, {}


def _wrong_table(ask: Asker, met: tuple[_Case, Mapping[str, object]]) -> Finding | None:
    case, parameters = met
    answer = ask(*case.question)
    if type(answer) is not list or not all(type(row) is list for row in answer):
        raise ask.unusable("a list of rows [word, count]", *case.question)
    right = _rows(visible(applied(case.table, case.message, owes=False)))
    if sorted(map(repr, answer)) == sorted(map(repr, right)):  # several times faster than JSON
        return None
    statement, means = ask.with_answer(*case.question), MEANS[case.message.kind]
    message = f"{statement}; {means} {_difference(answer, right)}"
    general = f"One of the answers is wrong about this message: {means}"
    finding = Finding(False, message, statement, shown(right), general=general)
    if case.state is None:
        return finding
    trace = trace_to("changelog", json.dumps(parameters), case.state)
    return replace(finding, trace=str(trace), at=len(trace.actions))


def _difference(answer: list[Plain], right: list[Plain]) -> str:
    """Return a sentence with the right rows, or with the missing and the superfluous ones if that is too long."""
    if len(repr(right)) <= SHOWN:
        return f"The right rows are {shown(right)}."
    there, wanted = Counter(map(json.dumps, answer)), Counter(map(json.dumps, right))
    sentences = []
    for text, rows in (("missing", wanted - there), ("too many", there - wanted)):
        if some := [json.loads(row) for row in rows.elements()]:
            sentences.append(f"{len(some)} {text}: {shown(some)}.")
    return " ".join(sentences)


MEANS = {
    Kind.ADD: "+ adds one row, whatever else is there.",
    Kind.RETRACT: "- takes back one row with its word and its count; if there is none, nothing happens.",
    Kind.UPSERT: "= replaces the row of its word; if there is none, it adds one.",
    Kind.DELETE: "x deletes the row of its word, whatever the count is; if there is none, nothing happens.",
}

APPLY = Cases("apply", _applied, _wrong_table, "It is right about {} tables and messages")

# Equality with the batch query.


def _prefix(model: Model[Any], state: Any) -> tuple[Any, ...]:
    """Return what the learner's function gets in this state: the rows that readers see, and the input so far."""
    assert isinstance(model, Changelog)
    rows = _rows(visible(state.consumer.table))
    return rows, list(model.settings.words[: state.furthest])


def _tables(model: Model[Any], parts: Mapping[str, Any]) -> Iterator[Any]:
    """Yield states of the simulator that differ in the receiver's table; the keys of `parts` choose the tables.

    `tables` lists the tables themselves. `near` chooses the right tables, and all tables that differ from them in one
    row. Without these two keys, the tables are all tables of up to `rows` rows.
    """
    assert isinstance(model, Changelog)
    words, start = model.settings.words, model.initial()
    if "tables" in parts:
        for given in parts["tables"]:
            consumer = Consumer(tuple(sorted(Row(word, count) for word, count in given)), is_up=True)
            yield start._replace(consumer=consumer, furthest=len(words))
        return
    if "near" in parts:
        for furthest in parts.get("after", range(len(words) + 1)):
            for near in _near(batch(model.settings, furthest)):
                yield start._replace(consumer=Consumer(near, is_up=True), furthest=furthest)
        return
    rows = [Row(word, count) for word, count in product((*model.settings.keys, *parts["others"]), parts["counts"])]
    for number in range(parts["rows"] + 1):
        for table in product(rows, repeat=number):
            if len(set(table)) < len(table) and not parts.get("twice"):
                continue
            # The claim compares tables as the consumer keeps them: in order.
            counted = tuple(sorted(row._replace(times=table.count(row)) for row in dict.fromkeys(table)))
            for furthest in range(len(words) + 1):
                yield start._replace(consumer=Consumer(counted, is_up=True), furthest=furthest)


def _near(table: Table) -> Iterator[Table]:
    """Yield the table, and every table in which one row is missing, occurs twice, or has a count that is wrong by 1."""
    yield table
    for row in table:
        others = [each for each in table if each != row]
        yield tuple(others)
        for other in (row._replace(times=2), row._replace(value=row.value + 1), row._replace(value=row.value - 1)):
            yield tuple(sorted([*others, other]))


def _in_several_orders(
    question: tuple[Any, ...],
    is_kept: bool,  # noqa: FBT001  # as in `Arrange`
) -> Iterator[tuple[Any, ...]]:
    """Yield the arguments of the learner's function several times, each time with the table's rows in another order.

    `question` is a pair: the rows of the table, each a word and its count, and the words of the input. A table of up to
    `ROWS_IN_EVERY_ORDER` rows comes in every order. A longer table comes in six orders: its own, by count, by the
    word's place in the input, and the reverse of each. If the right answer for a longer table is False (`is_kept`),
    only one of the six orders is tested.
    """
    rows, words = question
    if len(rows) <= ROWS_IN_EVERY_ORDER:
        orders = [list(each) for each in permutations(rows)]
    else:
        by_count = sorted(rows, key=itemgetter(1))
        by_place = sorted(rows, key=lambda row: words.index(row[0]) if row[0] in words else len(words))
        orders = [rows, rows[::-1], by_count, by_count[::-1], by_place, by_place[::-1]]
        if not is_kept:
            orders = [orders[crc32(json.dumps(question).encode()) % len(orders)]]
    yield from ((each, words) for each in orders)


WATCH = Watch("right", "changelog", "equals_batch", _prefix, _tables, _in_several_orders)
QUIET: dict[str, object] = {"crashes": 0}
WITHOUT_HYPHEN = tuple(pair for pair in PAIRS_ALIKE if "-" not in "".join(pair))
"""The pairs of `PAIRS_ALIKE` that the input of a simulator can contain; a hyphen would be the end of a word there."""
TWICE: dict[str, object] = {**QUIET, "words": "hello-hello"}
THREE: dict[str, object] = {**QUIET, "words": "hello-hello-hello"}
UPSERT: dict[str, object] = {"encoding": "upsert"}
MOST_WORDS = 5_000
"""The largest number of words that are counted, as the task says."""
ELEVEN: dict[str, object] = {"input": "-".join("a" * 11), "others": ("a1",), "counts": (1, 11), "rows": 1}


def pair_alike(one: str, other: str) -> dict[str, object]:
    """Return an input that is the single word `one`, and three tables, of which only the first is right.

    The first table has a row for `one`, the second a row for the similar word `other`, and the third has both rows.
    """
    return {"input": one, "tables": [[[one, 1]], [[other, 1]], [[one, 1], [other, 1]]]}


def large_counts(number: int) -> dict[str, object]:
    """Return an input of `number` words *a* and ten *b*, with the right table and wrong ones.

    The wrong tables have a wrong count, or lack a row.
    """
    counts = [(number, 10), (number + 1, 10)]
    if number < 1_000:  # a long input takes longer
        counts += [(number + more, 10) for more in (-1, 100, 256, 1_000, 2**32)]
        counts += [(number, 9), (number, 0), (number - 10, 20)]
    tables: list[list[list[object]]] = [[["a", one], ["b", two]] for one, two in counts]
    return {"input": "-".join(["a"] * number + ["b"] * 10), "tables": [*tables, [["a", number]]]}


def many_rows(number: int) -> dict[str, object]:
    """Return an input of `number` words with four tables: the right one, and three that are wrong.

    Two of the wrong tables have a wrong count near the end; the third lacks the last row.
    """
    words = [f"word{place:04}" for place in range(number)]
    rows: list[list[object]] = [[word, 1] for word in words]
    wrong = [[*rows[:late], [words[late], 2], *rows[late + 1 :]] for late in (number - 12, number - 1)]
    return {"input": "-".join(words), "tables": [rows, *wrong, rows[:-1]]}


BETWEEN = ("|", ":", "=", "-", " ", ",", ";", "/", "_", "\n", "\t", ", ", "; ", ": ")
"""Texts that an answer may put between a word and its count, or between two rows."""


def glued_rows(one: str, other: str) -> dict[str, object]:
    """Return an input, its right table, and wrong tables whose only row looks, as text, like the two right rows."""
    marks = [(mark, between) for mark in ("", *BETWEEN) for between in ("", *BETWEEN)]
    tables: list[list[list[object]]] = [[[f"{one}{mark}1{between}{other}", 2]] for mark, between in marks]
    return {"input": f"{one}-{other}-{other}", "tables": [[[one, 1], [other, 2]], *tables]}


def words_alike(word: str) -> tuple[str, ...]:
    """Return words that differ from `word` in case, by one letter or in blanks, or that are a part of it."""
    others = (word.capitalize(), word.title(), word.upper(), word.lower(), f"{word} ", f" {word}", f"{word}s")
    inside = (word[:-1], word[:8], word.replace(" ", ""), word.replace(" ", "  "))
    return tuple(other for other in dict.fromkeys((*others, *inside)) if other != word)


JUDGES = {
    "10-messages": by(
        MESSAGES.judge,
        variant("hello, 1 and 2", words=("hello",), counts=(1, 2)),
        variant("two words", words=("world", "hi"), counts=(0, 3, 1_200)),
        variant("large counts", pairs=counts_apart(7)),
        variant("words of any kind", groups=(("Hello", *words_alike("hello"), *COMPOSED, "x" * LONGEST_WORD),)),
    ),
    "10-apply": by(
        APPLY.judge,
        variant("a retract stream, a message is lost", systems=({**THREE, "losses": 1},)),
        variant("a retract stream, a message comes twice", systems=({**THREE, "repeats": 1},)),
        variant("an upsert stream, a message overtakes", systems=({**QUIET, **UPSERT, "swaps": 1, "at_most": 1},)),
        variant("any three rows", tables={"words": ("hello", "world"), "counts": (1, 2), "rows": 3}),
        variant("a word that ends in a digit", tables={"words": ("a", "a1"), "counts": (1, 11), "rows": 2}),
        variant("a count of 0", tables={"words": ("hello", "hi"), "counts": (0, 1), "rows": 2}),
        variant("large counts", tables={"pairs": counts_apart(7)}),
        variant("words alike", tables={"groups": (("hello", *words_alike("hello")), COMPOSED)}),
        variant("long tables", tables={"many": "word"}),
    ),
    "10b-prefix": by(
        WATCH.judge,
        variant("nothing fails", good=(("retract stream", QUIET), ("upsert stream, the receiver dies", UPSERT))),
        variant(
            "the query forgets, or an upsert is lost",
            bad=(
                ("upserts of a query that forgets", {**TWICE, **UPSERT, "expiries": 1}),
                ("retractions of a query that forgets", {**TWICE, "expiries": 1}),
                ("an upsert is lost", {**QUIET, **UPSERT, "words": "hello-world", "losses": 1}),
            ),
        ),
        variant("any two rows", assembled=(("any two rows", QUIET, {"others": (), "counts": (1, 2), "rows": 2}),)),
        variant(
            "a retraction is lost, or comes again",
            bad=(
                ("a retraction is lost", {**THREE, "losses": 1}),
                ("the query dies and sends again", {**TWICE, "query_crashes": 1}),
            ),
        ),
        variant("a word that ends in a digit", assembled=(("any row, eleven words", QUIET, ELEVEN),)),
        variant(
            "words alike",
            assembled=(
                (
                    "one word, or one like it",
                    QUIET,
                    {"input": "hello", "others": words_alike("hello"), "counts": (1,), "rows": 1},
                ),
                (
                    "one word, or the same composed in another way",
                    QUIET,
                    {"input": COMPOSED[0], "others": COMPOSED[1:], "counts": (1,), "rows": 1},
                ),
            ),
        ),
        variant(
            "words that look or sort alike, or have the same checksum",
            assembled=tuple((f"{pair[0][:20]} or {pair[1][:20]}", QUIET, pair_alike(*pair)) for pair in WITHOUT_HYPHEN),
        ),
        variant(
            "large counts, and many rows",
            assembled=(
                ("a hundred words", QUIET, large_counts(130)),
                ("thousands of words", QUIET, large_counts(MOST_WORDS - 10)),
                ("many rows", QUIET, many_rows(MOST_ROWS)),
                ("two rows in one text", QUIET, glued_rows("x", "y")),
            ),
        ),
        variant("a count of 0", assembled=(("any row", QUIET, {"others": ("hi",), "counts": (0, 1), "rows": 1}),)),
    ),
}
