"""The exercises of notebook 11: the price at a record's own time, and a key for a call to an outside service."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, permutations, product

from labkit.teach.exercises.asking import Asker, Unusable, shown
from labkit.teach.exercises.confused import SAME_DIGITS, SAME_TEXTS, numbers_alike, texts_alike
from labkit.teach.exercises.contract import Answer, Finding, Plain, Variant, by, variant
from labkit.teach.exercises.keys_alike import too_short
from labkit.teach.exercises.searching import Cases, steady, unusable

_MANY = 50
"""The number of prices above which the judge asks only about the two times from which the first and the last apply."""
FEW = 4
"""The largest number of prices after the first for which `_announced` yields every selection in every order."""
Version = list[int]
"""The time from which a price applies, and the price."""
USUAL: dict[str, Plain] = {"batch": 3, "attempt": 1, "task": 0, "now": 700, "price": 10}
_IN_TOPICS = (
    *(".", "_", "-", "", "0", "1", "x", "n", "p", "o", "on", "in", "at", "to", "and", "for", "call", "topic", "key"),
    *("".join(each) for size in (2, 3) for each in product("._-", repeat=size)),
    *(f"{mark}{word}{mark}" for mark in "_-." for word in ("on", "in", "at", "to", "and", "for", "call", "topic")),
)
"""Texts between the parts of a key that may also be in the name of a topic."""
_MOST_PARTITIONS = 2**31
"""Kafka numbers partitions in 31 bits."""
LOSES = "Two different calls have one key: the service drops the second."
DOUBLES = "One call has two keys: after a crash the service does it twice."


def _prices(variant: Variant) -> Iterator[tuple[list[Version], int, list[Version]]]:
    """Yield triples: the prices that the learner's function gets, the time of an order, and all prices.

    The variant's parameter `versions` lists all prices, each with the time from which it applies. The function gets the
    first price with a selection of the others (see `_announced`). Orders come one minute before, one minute after, and
    exactly when a price begins to apply. With more than `_MANY` prices, they come only when the first or the last does.
    """
    versions = [list(each) for each in variant["versions"]]
    asked, steps = (versions, (1, -1, 0)) if len(versions) <= _MANY else ([versions[0], versions[-1]], (0,))
    moments = (begin + step for step in steps for begin, _ in asked)
    yield from product(_announced(versions), [at for at in moments if at >= 0], [versions])


def _announced(versions: Sequence[Version]) -> Iterator[list[Version]]:
    """Yield lists of prices for the learner's function: the first price with a selection of the others.

    With at most `FEW` others, the lists are the first price followed by every selection of the others in every order,
    and one list in which the first price comes at the end. With more others, there are three lists with all prices.
    """
    first, *later = versions
    if len(later) > FEW:
        yield from ([first, *later], [first, *later[::-1]], [*later[3:], first, *later[:3]])
        return
    for count in range(len(later) + 1):
        for some in permutations(later, count):
            yield [first, *some]
    yield [*later, first]


def _wrong_price(ask: Asker, case: tuple[list[Version], int, list[Version]]) -> Finding | None:
    """Call the learner's function for one case, and return the failed result for a wrong price; None if it is right.

    `case` has the prices that the function gets, the time of an order, and all prices. If a price is missing that
    began to apply at this time or earlier, the function cannot know the answer: the result is None without a call.
    """
    announced, at, versions = case
    is_complete = len(announced) == len(versions)
    if not is_complete and any(begin <= at and [begin, price] not in announced for begin, price in versions):
        return None
    arguments: tuple[Plain, Plain] = ({"at": at}, [list(each) for each in announced])
    answer = ask(*arguments)
    if type(answer) is not int:
        raise ask.unusable("a price from the list", *arguments)
    begin, right = max(each for each in announced if each[0] <= at)
    if answer == right:
        return None
    statement = ask.with_answer(*arguments)
    message = f"{statement}. At {at} the price was {right}, which applies from {begin} on."
    general = "For one of the orders the answer is not the price at the order's own time."
    return Finding(False, message, statement, str(right), general=general)


PRICE = Cases("price", _prices, _wrong_price, "It is right in {} cases, and a replay changes no price")
VOLATILE = ("batch", "attempt", "task", "now", "price")
"""The fields of a call that may differ when the same call is repeated after a crash."""
SAME = ("topic", "partition", "offset", "call")
"""The fields that identify a call to an outside service."""


def judge_key(answer: Answer, variant: Variant) -> Finding:
    """Check a learner's idempotency keys: a call repeated after a crash keeps its key, which no other call may have.

    If the variant has the parameters `word` (a text) and `large` (a number), the calls contain texts and numbers that
    are similar to these two, so that a careless key confuses them.
    """
    ask = Asker(answer, "key_of_call")
    calls: dict[str, dict[str, Plain]] = {}
    is_alike = "large" in dict(variant.parameters)
    try:
        rows = _calls_alike(ask, variant["word"], variant["large"]) if is_alike else _calls(variant)
        for row in ask.announced(rows, lambda row: [row]):
            key = ask(row)
            if type(key) is not str:
                raise Unusable(f"{ask.call(row)} returned {shown(key)}; a key must be text.")
            if _identity(before := calls.setdefault(key, row)) != _identity(row):
                return _collide(ask, before, row)
        short = too_short(ask, [*calls], "calls", LOSES) if is_alike else None
        if finding := _split_call(ask, calls) or short:
            return finding
    except Unusable as error:
        return unusable(ask.name, error)
    return steady(ask, f"Each of {len(calls)} calls has one key, which no other call has")


def _identity(row: dict[str, Plain]) -> tuple[Plain, ...]:
    return tuple(row[name] for name in SAME)


def _calls(variant: Variant) -> Iterator[dict[str, Plain]]:
    """Yield every combination of topic, partition, offset and name as a call to the outside service.

    If the variant has the parameter `again`, each call also comes as a restarted job would repeat it.
    """
    topics, partitions = variant["topics"], variant["partitions"]
    for again in (None, *(VOLATILE if "again" in dict(variant.parameters) else ())):
        other = USUAL if again is None else USUAL | {again: variant["again"]}
        for topic, partition, offset, call in product(topics, partitions, variant["offsets"], variant["calls"]):
            yield {"topic": topic, "partition": partition, "offset": offset, "call": call, **other}


def _row(topic: str, partition: int, offset: int, call: str) -> dict[str, Plain]:
    return {"topic": topic, "partition": partition, "offset": offset, "call": call, **USUAL}


def _calls_alike(ask: Asker, word: str, large: int) -> Iterator[dict[str, Plain]]:
    """Yield different calls to which a learner's function gives equal keys if it makes a usual mistake.

    The calls have texts similar to `word` and numbers similar to `large`.
    """
    between = [*_between(ask, _row(word, 1, 2, f"{word} now"), (word, f"{word} now")), *_IN_TOPICS]
    for text in (*between, *(f"{each}1{each}2{each}" for each in _IN_TOPICS)):
        yield from (_row(word, 1, 2, f"{word}{text}{word}"), _row(f"{word}{text}{word}", 1, 2, word))
    numbers = (large, *numbers_alike(large), *chain.from_iterable(SAME_DIGITS))
    yield from (_row(word, 0, number, "mail") for number in numbers)
    partitions = [number for number in numbers if number < _MOST_PARTITIONS]
    partitions += [each + more for each in (1_234_567, 16_777_216, 1_234_567_890) for more in (0, 1)]
    partitions += [2**power for power in range(1, 31)]
    yield from (_row(word, partition, 7, "mail") for partition in partitions)
    yield from _glued_numbers(word)
    calls = ("", "charge", "refund", "mail", "call", *chain.from_iterable(texts_alike(word)))
    yield from (_row(word, 0, 5, call) for call in calls)
    yield from (_row(topic, 0, 5, "mail") for topic in _topics_alike(word))


def _glued_numbers(word: str) -> Iterator[dict[str, Plain]]:
    """Yield calls that get equal keys if a key joins its parts without separators, or is a sum such as 10 * a + b.

    For example, partition 1 and offset 11 give the same digits as partition 11 and offset 1, and 10 * partition +
    offset is the same for partition 0 and offset 10 as for partition 1 and offset 0.
    """
    for base, width in product((10, 16), range(1, 12)):
        yield from (_row(word, 1, base**width, "room"), _row(word, base + 1, 0, "room"))
        yield from (_row(word, 1, base**width + 1, "x"), _row(word, 1, base ** (width - 1), "1x"))
        yield _row(word, 1, base ** (width - 1), "0x")
    for base in (10, 16):
        yield from (_row(word, 2, *call) for call in ((base + 10, "x"), (1, "ax"), (1, "0x"), (10, "x")))
        yield from (_row(word, base + 1, 3, "mail"), _row(f"{word}1", 1, 3, "mail"), _row(f"1{word}", 1, 3, "mail"))
        yield from (_row(word, 1, base + 1, "mail"), _row(f"1{word}", 1, 1, "mail"))
    yield from (_row(word, int("1" * digits), int("1" * (10 - digits)), "room") for digits in range(1, 10))
    # A key may multiply one number and add the other, as in 1000 * partition + offset.
    rooms = (1, *(base**power for base in (2, 10) for power in range(1, 63) if base**power < 2**63))
    yield from (_row(word, 0, room, "room") for room in rooms)
    yield from (_row(word, room, 0, "room") for room in rooms if room < _MOST_PARTITIONS)


def _topics_alike(word: str) -> list[str]:
    """Return similar names of topics, up to 241 characters long (Kafka allows 249), which a careless key confuses."""
    long = (word * 250)[:240]
    names = [word, word.upper(), word.title(), word[::-1], f"{word}s", word[:-1], f"a{word}", "1", "01", "1.0", "1e0"]
    for mark in "._-":
        names += [f"{word}{mark}a", f"{word}{mark}b", f"a{mark}{word}", f"{word}{mark}"]
    names += [f"{long}a", f"{long}b", f"a{long}", f"b{long}", *(f"{long[:120]}{each}{long[120:]}" for each in "ab")]
    return list(dict.fromkeys([*names, *chain.from_iterable(SAME_TEXTS)]))


def _between(ask: Asker, row: dict[str, Plain], parts: tuple[str, str]) -> Iterator[str]:
    """Yield the text that a learner's key has between topic and call, if the name of a topic may contain this text.

    Such a key is ambiguous, because nobody can tell where the topic ends. `row` is a call to the outside service, and
    `ask` gets the learner's key for it. `parts` are the topic and the name of this call. Yields nothing if the key
    lacks one of the two.
    """
    key = ask(row)
    topic, call = parts
    if type(key) is str and call in key and topic in (rest := key.replace(call, "\0", 1)):
        one, other = sorted((rest.index(topic), rest.index("\0")))
        between = rest[one + len(topic) if one == rest.index(topic) else one + 1 : other]
        if re.fullmatch(r"[\w.-]{1,40}", between, re.ASCII):
            yield between


def _collide(ask: Asker, one: dict[str, Plain], two: dict[str, Plain]) -> Finding:
    differ = ", ".join(name for name in SAME if one[name] != two[name])
    statement = ask.with_answer(two)
    named = ", ".join(f"{name} {one[name]!r}" for name in SAME)
    message = f"{statement}, which is also the key of the call of {named}; they differ in: {differ}. {LOSES}"
    return Finding(False, message, statement, "a key of its own", general=LOSES)


def _split_call(ask: Asker, calls: dict[str, dict[str, Plain]]) -> Finding | None:
    """Return the failed result for the first call that got two different keys; None if every call kept its key.

    `calls` maps each key to the first call that got it.
    """
    first: dict[tuple[Plain, ...], str] = {}
    for key, call in calls.items():
        before = first.setdefault(_identity(call), key)
        if before != key:
            statement = ask.with_answer(call)
            changed = next(name for name in VOLATILE if call[name] != calls[before][name])
            message = f"{statement}, and {shown(before)} for the same call with another {changed}. {DOUBLES}"
            return Finding(False, message, statement, shown(before), general=DOUBLES)
    return None


LARGE = (0, *(10**power for power in range(3, 13)))
SAME_CHECKSUM = (
    *(("plumless", "buckeroo"), ("refund-aspjwwk", "refund-rnrsgud"), ("parcel mndenhb", "parcel arbiofd")),
    ("mail to ijtboqb", "mail to uegghkt"),
)
"""Pairs of calls with the same CRC-32; longer texts that differ only in such a pair also have the same one."""
CALLS_ALIKE = ("charge now", "charge-now", "caf\u00e9", "cafe\u0301")
"""Calls that become equal without their punctuation, or in a normal form of Unicode."""

JUDGES = {
    "11-price": by(
        PRICE.judge,
        variant("one edit", versions=((0, 10), (5, 11))),
        variant("announced early", versions=((0, 10), (4, 12), (9, 8), (15, 9))),
        variant("prices that last", versions=((0, 10), (8_639, 12), (4_000_000, 8))),
        variant(
            "large numbers, and a price that comes again",
            versions=((0, 98_765_432_101), (2**32 - 4, 0), (2**55 + 5, 98_765_432_101), (2**55 + 6, 98_765_432_102)),
        ),
        variant("many prices", versions=tuple((3 * place, 7 + place) for place in range(1_100))),
    ),
    "11-call": by(
        judge_key,
        variant(
            "two partitions",
            topics=("orders", "returns"),
            partitions=(1, 11),
            offsets=(1, 11, 111),
            calls=("charge", "mail"),
            again=4,
        ),
        variant(
            "names with hyphens",
            topics=("a", "a-1", "a-c"),
            partitions=(1, 2, 3),
            offsets=(1, 2, 3),
            calls=("d", "3-d", "c-d", "C-d"),
        ),
        variant("large offsets", topics=("orders",), partitions=(0, 1), offsets=LARGE, calls=("charge",)),
        variant("calls alike", topics=("orders",), partitions=(0,), offsets=(1,), calls=SAME_CHECKSUM[0] + CALLS_ALIKE),
        variant("many offsets", topics=("orders",), partitions=(0,), offsets=tuple(range(300)), calls=("charge",)),
        variant("numbers and texts alike", word="stream", large=987_654_321_012_345_678),
    ),
}
