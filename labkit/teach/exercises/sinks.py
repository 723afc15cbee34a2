"""The exercises of notebook 06: keys, the second confirmation, recovery of transactions, and values that jump back.

A key is judged by the table that an upserting sink fills with it. The run does not depend on the key, so the schedules
are those of the simulator, and the judge of real runs compares the final table with the expected records. Some wrong
keys (truncated, lower-cased, joined without separator) collide only in an input that is too long for a search, so
labkit also asks for the keys of single records.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import combinations, product
from random import Random
from string import ascii_lowercase
from typing import Any

from labkit.core.failpoints import FailPoint
from labkit.core.judge import Verdict, judge
from labkit.core.records import History, Observation, Reading, Record, word_counts
from labkit.core.words import sentence
from labkit.sim.explore import explore
from labkit.sim.model import Model, Mood, Property
from labkit.sim.models.pipeline.claims import is_over
from labkit.sim.models.pipeline.model import Pipeline
from labkit.sim.models.pipeline.scenarios import Cue, play
from labkit.sim.models.pipeline.state import State, VisibleRow
from labkit.sim.trace import make
from labkit.teach.exercises.asking import Asker, Unusable, a_list, shown
from labkit.teach.exercises.confused import COMPOSED, SAME_DIGITS, numbers_alike, texts_alike
from labkit.teach.exercises.constants import Prediction
from labkit.teach.exercises.contract import Answer, Finding, Plain, Variant, by, variant
from labkit.teach.exercises.invariants import ObservedModel, Told, Watch, wrong_told
from labkit.teach.exercises.keys_alike import too_short
from labkit.teach.exercises.searching import (
    MAX_STATES,
    Cases,
    Drill,
    ask_each,
    by_parameter,
    remembered,
    steady,
    unusable,
)
from labkit.teach.results import Walk

SAME_CHECKSUM = (1_401_558_561_589, 7_014_945_064_510)
"""Offsets whose decimal digits have the same CRC-32."""
SAME_CHECKSUM_HANDLES = (
    ("q0-b3444821019-p5-i3", "q0-b6054944040-p3-i3"),
    ("q0-b2497505273-p0-i6", "q0-b8813915846-p1-i7"),
)
"""Pairs of handles with the same CRC-32; batch 4,000,000,000 is between the batches of the two handles."""
SENTENCE = "In the end the table holds one row for every record."


class Table:
    """The table that a sink fills by upserts with the learner's keys, and a cache of the verdicts on its rows."""

    def __init__(self, ask: Asker, words: tuple[str, ...]) -> None:
        self.ask, self.expected = ask, list(word_counts(words))
        self.verdict = cache(self._verdict)

    def row(self, seen: VisibleRow) -> dict[str, Plain]:
        """Return a row as the dict that the learner's function receives."""
        record = self.expected[seen.offset]
        return {
            "offset": record.offset,
            "word": record.key,
            "count": record.value,
            "batch": seen.batch,
            "attempt": seen.incarnation,
        }

    def key(self, seen: VisibleRow) -> str:
        """Call the learner's function with a row, and return the key as JSON. Raises `Unusable` for an invalid key."""
        return usable_key(self.ask, self.row(seen))

    def _verdict(self, seen: tuple[VisibleRow, ...]) -> Verdict:
        table = {self.key(row): row for row in seen if row.offset >= 0}
        rows = (
            Observation(*Record(*self.expected[row.offset]), row.batch, row.incarnation)
            for row in sorted(table.values(), key=lambda row: (row.incarnation, row.offset))
        )
        return judge(self.expected, History([*rows, Reading("end")]))

    def because(self, state: State) -> str:
        """Return a sentence on a row that another row overwrote, or that is in the table twice, with the rows' keys."""
        rows = [row for row in state.seen if row.offset >= 0]
        verdict = self.verdict(state.seen)
        if verdict.lost:
            lost = next(row for row in rows[::-1] if row.offset == verdict.lost[0])
            over = next(
                row for row in rows[rows.index(lost) :] if row.offset != lost.offset and self.key(row) == self.key(lost)
            )
            return (
                f"the row of offset {lost.offset} is gone: the row of offset {over.offset} has the same key "
                f"{shown(self.ask(self.row(lost)))} and took its place."
            )
        offset = verdict.duplicate[0]
        keys = dict.fromkeys(self.key(row) for row in rows if row.offset == offset)
        return f"the row of offset {offset} is in the table {len(keys)} times, under the keys {' and '.join(keys)}."


def usable_key(ask: Asker, row: dict[str, Plain]) -> str:
    """Return the key of a row as JSON. Raises `Unusable` unless it is a number, a text, or a list of these."""
    key = ask(row)
    parts = key if type(key) is list else [key]
    if not parts or any(type(part) not in (int, str) for part in parts):
        raise Unusable(f"{ask.with_answer(row)}: a key must be a number, a text, or a list of these.")
    return json.dumps(key)


_LONG = "hello" * 60
CONFUSED = ("1x", *["x"] * 11, " x", "two  words", "two words", "two-words", "plumless", "buckeroo", "listen", "silent")
CONFUSED += (f"{_LONG}s", f"{_LONG}t", "\u65e5\u672c", "\u4e2d\u56fd", "")
"""Words that a key confuses if it puts the count before the word, strips, cuts, hashes or simplifies the word."""


def judge_long_input(answer: Answer, variant: Variant) -> Finding:
    """Check that a key function gives different records different keys, in an input too long to simulate.

    The input begins with the variant's words, the words in `CONFUSED`, and many similar words. After these, one word
    is repeated, up to offsets near the variant's parameter `large`. Keys that are a hash must be long enough (see
    `too_short`). If a later run repeats a record, the record must keep its key.
    """
    ask, before = Asker(answer, "key"), dict[str, dict[str, Plain]]()
    texts, keys = list[str](), dict[str, tuple[dict[str, Plain], str]]()

    def wrong(row: dict[str, Plain]) -> Finding | None:
        key = usable_key(ask, row)
        first = keys.setdefault(str(row["offset"]), (row, key))
        if first[1] != key:
            message = f"{ask.with_answer(first[0])} and {ask.with_answer(row)}: one record has two keys in two runs."
            general = "In a long input a record has another key if it runs again, in another batch."
            return Finding(False, message, "a record with two keys", "one key for each record", general=general)
        if first[0] is not row:
            return None
        other = before.setdefault(key, row)
        if (other["offset"], other["word"]) != (row["offset"], row["word"]):
            message = f"{ask.call(other)} and {ask.with_answer(row)}: two different records have the same key."
            general = "In a long input two different records have the same key."
            return Finding(False, message, "two records with one key", "a key for each record", general=general)
        answered = ask(row)
        texts.append(" ".join(map(str, answered)) if type(answered) is list else str(answered))
        return None

    rows = ask.announced(_with_later_runs(_long_input(variant["words"], variant["large"])), lambda row: [row])
    finding = ask_each(ask, rows, wrong, "Each of {} records of a long input has its own key")
    general = "The key is a hash or a number of too few bits: one record takes the place of another."
    return (too_short(ask, texts, "records", general) or finding) if finding.passed else finding


def _with_later_runs(rows: Iterable[dict[str, Plain]]) -> Iterator[dict[str, Plain]]:
    """Yield the rows, and after some of them a copy with the batch and attempt numbers of another run.

    A copy follows the last row, and every row whose offset, word or count has a length that no earlier row has.
    """
    sizes, row = set[tuple[str, int]](), dict[str, Plain]()
    for row in rows:
        yield row
        offset, word, count = row["offset"], row["word"], row["count"]
        assert isinstance(offset, int)
        assert isinstance(word, str)
        assert isinstance(count, int)
        size = {("offset", offset.bit_length()), ("word", len(word)), ("count", count.bit_length())}
        if not size <= sizes:
            sizes |= size
            yield {**row, "batch": 3, "attempt": 2}
    yield {**row, "batch": 0, "attempt": 3}


def _long_input(words: Sequence[str], large: int) -> Iterator[dict[str, Plain]]:
    counts, last = Counter[str](), words[-1]
    ends = [text.format(last) for text in ("{}1", "1{}", "0{}", " {}", "a{}", "{}a", "{} 1", "{}-1", "{}0")]
    alike = [text for group in texts_alike("stream") for text in group]
    words = (*words[:-1], *CONFUSED, *alike, *ends, last)
    for offset, word in enumerate(words):
        counts[word] += 1
        yield {"offset": offset, "word": word, "count": counts[word], "batch": offset // 100, "attempt": 1}
    # The last word's count grows with the offset. Without a separator, a digit may belong to the word or to a number.
    before, begin = counts[last], len(words)
    powers = {base**power for base in (2, 10) for power in range(1, 13)}
    glued = {base**power + step for base in (8, 10, 16) for power in range(1, 15) for step in (0, 1, 10)}
    offsets = {*SAME_CHECKSUM, *(number for pair in SAME_DIGITS for number in pair), large, *numbers_alike(large)}
    later = {0, *powers, *(2**power for power in (16, 24, 32, 48, 62)), *(number - before - 1 for number in glued)}
    later |= {offset - begin for offset in offsets}
    for number in sorted(number for number in later if 0 <= number < 2**63 - begin):
        offset = begin + number
        row = {"offset": offset, "word": last, "count": before + 1 + number}
        yield {**row, "batch": offset // 100, "attempt": 1}
    # If a key joins count and word without a separator, a zero between them may belong to either.
    for count in (10**power for power in range(1, 13)):
        offset = 2**63 - 10**13 + count
        yield {"offset": offset, "word": f"0{last}", "count": count, "batch": offset // 100, "attempt": 1}


def judge_key(answer: Answer, variant: Variant) -> Finding:
    """Check a learner's key function in every schedule of a job with crashes and deleted checkpoints."""
    ask = Asker(answer, "key")
    model = make("pipeline", {"strategy": "append", **dict(variant.parameters)})
    table = Table(ask, tuple(str(model.values["words"]).split("-")))

    def holds(state: Any) -> bool:
        verdict = table.verdict(state.seen)
        return not verdict.lost and not verdict.duplicate

    claim = Property("one_row_each", Mood.ALWAYS, SENTENCE, holds, table.because, is_over)
    configuration = json.dumps([model.name, model.version, "key", dict(model.values)])
    try:
        finding = remembered(ask, configuration, lambda: _searched(ObservedModel(model, claim)))
    except Unusable as error:
        return unusable("key", error)
    assert finding is not None
    return steady(ask, finding.message) if finding.passed else finding


def _searched(model: ObservedModel) -> Finding:
    result = explore(model, max_states=MAX_STATES)
    if not result.violations:
        return Finding(True, f"In all {result.unique_states:,} states the table ends with one row for every record")
    first = result.violations[0]
    text = first.because
    general = "After some run the table does not hold one row for every record."
    message = sentence(text)
    return Finding(False, message, text, SENTENCE, str(first.trace), len(first.trace.actions), general)


def judge_confirmation(answer: Answer, variant: Variant) -> Finding:
    """Check a learner's function `commit`, a commit's second phase, in every schedule of a simulated job with crashes.

    After a crash between writing the rows and confirming the batch, even a right function repeats rows. So the first
    search allows repeated rows. The second search has no such crashes, and allows no repeated rows.
    """
    for in_window in (True, False):
        searched = Variant(variant.name, (*variant.parameters, ("crash_in_window", in_window)))
        finding = Drill("commit", "confirmation_drill").judge(answer, searched)
        if not finding.passed:
            break
    return finding


MANY = 1_000
"""The number of rows, handles or votes above which the judge leaves out some test cases that would take too long."""
LARGEST_BATCH, LONGEST_LIST, MOST_CONFIRMED = 3_500, 2_000, 5_000
"""The largest numbers of a batch's rows, of handles or votes in a list, and of confirmed batches, as the tasks say.

With more rows or handles, the steps of a right answer would be longer than an answer may be.
"""
LARGE: list[Plain] = [7, 2**32 + 7, 123_456_789_123_457, 2**53 + 1, 2**60 + 1]
"""Offsets that change if an answer stores them in 32 bits or as floating-point numbers."""
REMAINDERS = (
    *(97 * 10**8, 101 * 127 * 997 * 1_009, 2**20 * 3**5 * 7, 10_007 * 65_521 * 65_537, 99_991 * 100_003),
    *(10**6 + 3, 10**6 + 7, 10**9 + 7, 10**9 + 9, 998_244_353, 2**31 - 1, 2**32, 2**48, 2**61 - 1),
)
"""Multiples of usual divisors, such as 97, 1000 or 2**32: numbers that differ by one of them have equal remainders."""


def _many_batches(variant: Variant) -> Iterator[tuple[int, list[Plain], list[Plain]]]:
    """Yield arguments of the learner's `commit`: the number `batch`, the offsets of its rows, confirmed batches."""
    batch: int = variant["batch"]
    others: list[Plain] = [each for each in range(2 * batch) if each != batch]
    if variant["rows"] > MANY:
        # Also a confirmation at either end of a long list.
        offsets: list[Plain] = [*range(variant["rows"])]
        many = range(batch + 1, batch + 1 + MOST_CONFIRMED)
        yield batch, offsets, others
        yield from ((batch, offsets[:3], confirmed) for confirmed in ([*many], [batch, *many[1:]], [*many[1:], batch]))
        return
    offsets = [*range(1_000, 1_000 + variant["rows"])]
    yield batch, offsets, others
    # The offsets of a batch need not follow one another: a topic also has transaction markers.
    yield batch, offsets[::2], others
    yield batch, LARGE, others
    # Batches whose numbers are alike in text, as floating-point numbers, or after a division.
    yield batch, offsets, [10 * batch, int(f"1{batch}"), *(batch + difference for difference in REMAINDERS)]
    yield 2**60 + 1, offsets, [2**60, 2**60 + 2]
    for place in (0, 8, len(others) // 2, len(others)):
        yield batch, offsets, [*others[:place], batch, *others[place:]]


def _wrong_commit(ask: Asker, case: tuple[int, list[Plain], list[Plain]]) -> Finding | None:
    batch, rows, confirmed = case
    steps = a_list(ask, ask(batch, rows, confirmed), "steps")
    due: list[Plain] = [] if batch in confirmed else [["write", offset] for offset in rows]
    writes = [step for step in steps if step != ["confirm", batch]]
    is_whole = writes == due or sorted(map(str, writes)) == sorted(map(str, due))
    is_right = is_whole and writes == steps[: len(writes)]
    if is_right and (batch in confirmed or len(steps) > len(writes)):
        return None
    what = f"including batch {batch}, so nothing must be written" if batch in confirmed else f"but not batch {batch}"
    where = f"With {len(rows)} rows and {len(confirmed)} confirmed batches, {what}"
    message = f"{where}: commit({batch}, ...) answered {shown(steps)}."
    general = "With many rows or many confirmed batches the steps are wrong."
    return Finding(False, message, "the steps are wrong", "each row once, and then the confirmation", general=general)


def _many_tasks(variant: Variant) -> Iterator[tuple[int, list[Any], list[Any]]]:
    """Yield arguments of the learner's `recover_and_commit`: the last decided batch, votes, and open transactions."""
    decided, tasks = variant["decided"], variant["tasks"]
    if tasks > MANY:
        yield from _long_lists(decided, tasks)
        return
    last, following = ([f"q0-b{batch}-p{task}-i1" for task in range(tasks)] for batch in (decided, decided + 1))
    votes: list[Any] = [
        {"batch": batch, "handles": [*each]} for batch, each in ((decided, last), (decided + 1, following))
    ]
    attempts = [f"{handle}-a1" for handle in last]
    for found in ([*last, *attempts], [*following, *last], last[tasks // 2 :], attempts):
        yield decided, votes, [*found]
    twelfth: list[Any] = [f"{handle}2" for handle in last]
    yield decided, [{"batch": decided, "handles": twelfth}], [*last, *twelfth]
    restarted: list[Any] = [handle.replace("-i1", "-i2") for handle in following]
    yield decided, [votes[0], {"batch": decided + 1, "handles": restarted}], [*restarted, *last]
    expired: list[Any] = [{"batch": batch, "handles": [f"q0-b{batch}-p0-i1"]} for batch in range(decided - 9, decided)]
    open_ = [*(f"q0-b{batch}-p0-i1" for batch in range(decided - 9, decided)), *last, *following]
    for stored in ([*expired, *votes], [*votes[::-1], *expired[::-1]]):
        yield decided, stored, [*open_]
    yield from _large_numbers()


def _long_lists(decided: int, tasks: int) -> Iterator[tuple[int, list[Any], list[Any]]]:
    """Yield arguments of `recover_and_commit` in which one list is long.

    The long list has the votes, the open transactions, or the handles of one vote. The other lists are short, because
    an answer that compares all pairs would otherwise take too long. `decided` is the number of the last decided batch,
    and `tasks` is the largest length of a list.
    """
    last: list[Any] = [f"q0-b{decided}-p{task}-i1" for task in range(tasks)]
    few = [last[0], last[tasks // 2], last[-1]]
    yield decided, [{"batch": decided, "handles": last}], [*few, f"q0-b{decided + 1}-p0-i1"]
    for many in (tasks // 4, tasks):
        batches = range(decided + 1 - many, decided + 1) if decided > many else range(many)
        votes: list[Any] = [{"batch": batch, "handles": [f"q0-b{batch}-p0-i1"]} for batch in batches]
        open_ = [votes[place]["handles"][0] for place in (0, len(votes) // 2, -1)]
        yield batches[-1], votes, [*open_, f"q0-b{batches[-1]}-p1-i1"]
    yield decided, [{"batch": decided, "handles": [few[1]]}], last


def _large_numbers() -> Iterator[tuple[int, list[Any], list[Any]]]:
    """Yield arguments of `recover_and_commit` with large batch numbers, which a wrong answer confuses.

    The numbers, or the handles with these numbers, become equal if the learner's function cuts them, rounds them to
    floats, or compares only their checksums.
    """
    batch = 10**18
    one, next_one = f"q0-b{batch}-p0-i1", f"q0-b{batch + 1}-p0-i1"
    votes: list[Any] = [{"batch": batch, "handles": [one]}, {"batch": batch + 1, "handles": [next_one]}]
    yield batch, votes[:1], [f"q0-b{batch}-p0-i12", one]
    yield batch, votes, [one, next_one]
    for due, other in SAME_CHECKSUM_HANDLES:
        yield 4 * 10**9, [{"batch": int(due.split("-")[1][1:]), "handles": [due]}], [other, due]


def _wrong_recovery(ask: Asker, case: tuple[int, list[Any], list[Any]]) -> Finding | None:
    decided, votes, found = case
    steps = {str(step) for step in a_list(ask, ask(decided, votes, found), "steps")}
    due = {handle for vote in votes if vote["batch"] <= decided for handle in vote["handles"]}
    for handle in found:
        right, wrong, vote = ("commit", "abort", "a") if handle in due else ("abort", "commit", "no")
        # Steps for other handles are allowed: committing a transaction once more has no effect.
        if str([right, handle]) not in steps or str([wrong, handle]) in steps:
            why = f"it must {right} {handle}, because {vote} vote of a decided batch names it"
            message = f"{ask.call(decided, votes, found)}: {why}."
            general = "With many transactions some stay open, or end in the wrong way."
            return Finding(False, message, "a transaction is left open, or ends wrongly", why, general=general)
    return None


ONE_COMMIT = Cases("commit", _many_batches, _wrong_commit, "It is right about {} batches")
ONE_RECOVERY = Cases("recover_and_commit", _many_tasks, _wrong_recovery, "It is right about {} recoveries")


def _seen(model: Model[Any], state: Any) -> tuple[Any, ...]:
    """Return the argument of the learner's function: a list of the words and counts in the order a reader saw them."""
    assert isinstance(model, Pipeline)
    events = model.judge.history(state).events
    return ([[event.key, event.value] for event in events if isinstance(event, Observation)],)


def _sights(model: Model[Any], parts: Mapping[str, Any]) -> Iterator[Any]:
    """Yield states of the simulator in which a reader saw two rows of the input's first word.

    `parts["counts"]` has the offsets that these two rows may have; by default, all offsets of the first word. Between
    the two, the reader saw up to `parts["between"]` rows of other words, and after the second one at most one such row.
    With `parts["long"]`, there are further states, with exactly this number of rows between the two.
    """
    assert isinstance(model, Pipeline)
    words, state = model.settings.words, model.initial()
    number = words.count(words[0])
    counts = parts.get("counts", range(number))
    # The count of the other word never falls, so only the first word can jump back.
    numbers = [*range(parts["between"] + 1), *([parts["long"]] if "long" in parts else [])]
    others = [*range(number, len(words)), *[len(words) - 1] * numbers[-1]]
    for first, second, between, behind in product(counts, counts, numbers, (0, 1)):
        rows = others[: between + behind]
        seen = (first, *rows[:between], second, *rows[between:])
        looks = tuple(VisibleRow(offset, 0, 1) for offset in seen)
        yield state._replace(seen=looks)


WATCH = Watch("steady", "pipeline", "no_regression", _seen, _sights)


def _rows_alike(variant: Variant) -> Iterator[Told]:
    """Yield test cases whose rows have similar words or counts; in some of them a word's count becomes smaller.

    The words are similar to the variant's `word`, and the counts to its `large`.
    """
    yield Told(([],), True, "nobody has seen a row")
    for group in texts_alike(variant["word"]):
        why = "all these words differ"
        pairs = (Told(_falling(pair), True, why) for pair in combinations(group, 2))
        yield Told(_falling(group), True, why, pairs)
        others: list[Plain] = [[text, 3] for text in group if text != group[1]]
        yield Told(([[group[1], 2], *others, [group[1], 1]],), False, "the first word jumps back")
    for text in ("", " ", "0", "None", "-", "\0"):
        yield Told(([[text, 2], [text, 1]],), False, "this text is a word like any other")
        yield Told(_falling(["", text or "x"]), True, "the empty text is a word like any other")
        yield Told(_falling(["hello", text]), True, "these words differ")
    one, large = variant["word"], variant["large"]
    numbers = numbers_alike(large)
    for number in numbers:
        lower, upper = sorted((number, large))
        yield Told(([[one, upper], ["other", 1], [one, lower]],), False, f"{lower} is smaller than {upper}")
    yield Told(([[one, number] for number in sorted((large, *numbers))],), True, "the counts only grow")


def _falling(words: Sequence[str]) -> tuple[list[Plain]]:
    return ([[word, len(words) - place] for place, word in enumerate(words)],)


def _many_rows(variant: Variant) -> Iterator[Told]:
    """Yield test cases of many rows, in which the count of at most one word becomes smaller."""
    letters = Random(variant["rows"])
    words = list(dict.fromkeys("".join(letters.choices(ascii_lowercase, k=6)) for _ in range(variant["rows"])))
    (seen,), size = _falling(words), len(words)
    grown: list[Plain] = [[words[0], count] for count in range(1, size)]
    yield _long([*grown, [words[0], size - 2]], "the only word jumps back in the last row")
    yield _long(seen, "all words differ", is_kept=True)
    yield _long([*seen, [words[-1], 0]], "the newest of all words jumps back in the last row")
    yield _long([[words[0], 2], [words[0], 1], *seen[1:]], "the first word jumps back in row 2")
    yield _long([*seen, [words[0], size - 1]], "the first of all words jumps back in the last row")


def _long(rows: list[Plain], why: str, *, is_kept: bool = False) -> Told:
    return Told((rows,), is_kept, why, of_many=f" for {len(rows):,} rows")


_GENERAL = "With words or counts that are nearly equal, or in many rows,"
_wrong_sights = partial(
    wrong_told,
    general={True: f"{_GENERAL} a jump is accepted.", False: f"{_GENERAL} rows without a jump are rejected."},
)
ROWS_ALIKE = Cases("steady", _rows_alike, _wrong_sights, "It is right about {} readers, whose rows are nearly equal")
MANY_ROWS = Cases("steady", _many_rows, _wrong_sights, "It is right about {} readers of many rows")
WORDS: dict[str, object] = {"words": "hello-world-hello"}
SECOND_BATCH: dict[str, object] = {"strategy": "wal", "words": "hello-world-hello-world", "records_per_batch": 2}
A, B = "hello" * 14 + "s", "hello" * 14 + "t"
CONFUSED_WORDS: tuple[tuple[str, dict[str, object]], ...] = tuple(
    (name, {"input": f"{first}-{first}-{second}-{second}", "between": 0, "long": 2})
    for name, first, second in (
        ("the same letters in another order", "listen", "silent"),
        ("the same checksum", "plumless", "buckeroo"),
        ("letters that are not ASCII", "\u65e5\u672c", "\u4e2d\u56fd"),
        ("words with another first letter", f"a{A}", f"b{A}"),
        ("very long words alike", f"{A * 5}s", f"{A * 5}t"),
    )
)
"""Test cases by name, each with two different words that a rule confuses if it cuts, hashes or simplifies them."""
UPSERT: dict[str, object] = {"words": "hello-hello", "strategy": "idempotent", "store": "sqlite"}


def _second_batch() -> Walk:
    model = make("pipeline", SECOND_BATCH)
    assert isinstance(model, Pipeline)
    return Walk(play(model, (Cue(FailPoint.BEFORE_CONFIRM, batch=1),)))


PREDICTION = Prediction(
    "predicted_06",
    _second_batch,
    {"lost": lambda walk: walk.verdict.lost, "duplicate": lambda walk: walk.verdict.duplicate},
)

JUDGES = {
    "06-predict": by(PREDICTION.judge, variant("wal, sink.before_confirm of batch 1")),
    "06-key": by(
        by_parameter(judge_key, large=judge_long_input),
        variant("one crash", words="hello-world-hello", crashes=1),
        variant(
            "the checkpoint folder is deleted", words="hello-hello-world", records_per_batch=1, crashes=1, deletions=1
        ),
        variant("five records of words with one initial", words="spark-stream-spark-spark-stream", crashes=0),
        variant(
            "a long input",
            words=("a1", "x" * 11, *["a"] * 11, "x", "X", *COMPOSED, *["word"] * 120, "words", "word"),
            large=987_654_321_012_345_678,
        ),
    ),
    "06-wal": by(
        by_parameter(judge_confirmation, batch=ONE_COMMIT.judge),
        variant("two batches, one crash", words="hello-world-hello", records_per_batch=2),
        variant("one batch of three, two crashes", words="hello-hello-world", records_per_batch=3, crashes=2),
        variant("batch 12, after many others", batch=12, rows=3),
        variant("a batch of many rows", batch=3, rows=LARGEST_BATCH),
    ),
    "06-recover": by(
        by_parameter(Drill("recover_and_commit", "resolution_drill").judge, decided=ONE_RECOVERY.judge),
        variant("two batches, one crash", words="hello-world-hello", records_per_batch=2),
        variant(
            "a lost notification, two crashes", words="hello-world", records_per_batch=1, crashes=2, lost_notices=1
        ),
        variant("a task is tried twice, one crash", words="hello-world", records_per_batch=1, retries=1),
        variant("batch 9 is decided, and not batch 10", decided=9, tasks=3),
        variant("a batch of many tasks", decided=7, tasks=LONGEST_LIST),
    ),
    "06-jump": by(
        by_parameter(WATCH.judge, rows=MANY_ROWS.judge, large=ROWS_ALIKE.judge),
        variant(
            "one word at a time",
            good=(
                ("two_phase", WORDS),
                ("two_phase, two batches", {"words": "hello-hello-world", "records_per_batch": 2}),
                ("append, each word once", {"words": "hello-world", "strategy": "append"}),
            ),
            bad=(
                ("a driver that was thought dead wakes up", {**UPSERT, "crashes": 0, "zombies": 1}),
                ("append", {"words": "hello-hello", "strategy": "append"}),
            ),
        ),
        variant(
            "two words",
            good=(("batch_marker", {**WORDS, "strategy": "batch_marker"}),),
            bad=(("idempotent", {**UPSERT, **WORDS}), ("wal", {**WORDS, "strategy": "wal"})),
        ),
        variant(
            "rows of others between",
            assembled=(
                ("any two counts of hello", {"words": "hello-hello-hello-hello-world-world"}, {"between": 4}),
                ("hello and Hello", {"words": "hello"}, {"input": "hello-hello-Hello-Hello", "between": 0, "long": 20}),
                (
                    "one word, composed in two ways",
                    {"words": "hello"},
                    {"input": "-".join(sorted(COMPOSED * 2)), "between": 0},
                ),
                ("far apart", {"words": "hello"}, {"input": "hello-hello-world", "between": 0, "long": 260}),
                ("long words alike", {"words": "hello"}, {"input": f"{A}-{A}-{B}-{B}", "between": 1}),
                *((name, {"words": "hello"}, parts) for name, parts in CONFUSED_WORDS),
            ),
        ),
        variant("words and counts alike", word="stream", large=987_654_321_012_345_678),
        variant("many rows", rows=2_100),
    ),
}
