"""The exercises of notebook 11: the price at a record's own time, and a key for a call to an outside service."""

from collections.abc import Iterator, Sequence
from itertools import permutations, product

from labkit.teach.exercises.asking import Asker, Unusable, shown
from labkit.teach.exercises.contract import Answer, Finding, Plain, Variant, by, variant
from labkit.teach.exercises.searching import Cases, steady, unusable

FEW = 4
"""The largest number of later prices that are announced in every order."""
Version = list[int]
"""The time from which a price applies, and the price."""
LOSES = "Two different calls have one key: the service drops the second."
DOUBLES = "One call has two keys: after a crash the service does it twice."


def _prices(variant: Variant) -> Iterator[tuple[list[Version], int, list[Version]]]:
    """Yield a list of prices that may be announced, a time around a change of price, and the list of all prices."""
    versions = [list(each) for each in variant["versions"]]
    moments = (begin + step for step in (1, -1, 0) for begin, _ in versions)
    yield from product(_announced(versions), [at for at in moments if at >= 0], [versions])


def _announced(versions: Sequence[Version]) -> Iterator[list[Version]]:
    """Yield lists with the first price and any selection of the later prices, in any order.

    With more than `FEW` later prices, yield only three lists: all prices in order, with the later ones reversed, and
    with some of them before the first.
    """
    first, *later = versions
    if len(later) > FEW:
        yield from ([first, *later], [first, *later[::-1]], [*later[3:], first, *later[:3]])
        return
    for count in range(len(later) + 1):
        for some in permutations(later, count):
            yield [first, *some]


def _wrong_price(ask: Asker, case: tuple[list[Version], int, list[Version]]) -> Finding | None:
    """Return the failed result for a wrong price, or None; lists that lack a price valid at the time are skipped."""
    announced, at, versions = case
    if any(begin <= at and [begin, price] not in announced for begin, price in versions):
        return None
    arguments: tuple[Plain, Plain] = ({"at": at}, [list(each) for each in announced])
    answer = ask(*arguments)
    if type(answer) is not int:
        raise Unusable(f"{ask.call(*arguments)} returned {shown(answer)}; return a price from the list.")
    begin, right = max(each for each in announced if each[0] <= at)
    if answer == right:
        return None
    statement = ask.with_answer(*arguments)
    message = f"{statement}. At {at} the price was {right}: it begins at {begin}."
    general = "For one of the orders the answer is not the price at the order's own time."
    return Finding(False, message, statement, str(right), general=general)


PRICE = Cases("price", _prices, _wrong_price, "It is right in {} cases, and a replay changes no price")
VOLATILE = ("batch", "attempt", "task", "now", "price")
"""The fields of a call that may differ when the same call is repeated after a crash."""
SAME = ("topic", "partition", "offset", "call")
"""The fields that identify a call to an outside service."""


def judge_key(answer: Answer, variant: Variant) -> Finding:
    """Check a learner's function that gives calls to an outside service idempotency keys.

    A call that is repeated after a crash must keep its key, and different calls must have different keys.
    """
    ask = Asker(answer, "key_of_call")
    calls: dict[str, dict[str, Plain]] = {}
    identities: dict[str, tuple[Plain, ...]] = {}
    try:
        for row in _calls(variant):
            key = ask(row)
            if type(key) is not str:
                raise Unusable(f"{ask.call(row)} returned {shown(key)}; a key must be text.")
            identity = tuple(row[name] for name in SAME)
            if key in identities and identities[key] != identity:
                return _collide(ask, calls[key], row)
            calls.setdefault(key, row)
            identities[key] = identity
        if finding := _split_call(ask, calls, identities):
            return finding
    except Unusable as error:
        return unusable(ask.name, error)
    return steady(ask, f"Each of {len(calls)} calls has one key, which no other call has")


def _calls(variant: Variant) -> Iterator[dict[str, Plain]]:
    """Yield every call to the outside service and, if the variant has `again`, its repetitions after a crash."""
    usual: dict[str, Plain] = {"batch": 3, "attempt": 1, "task": 0, "now": 700, "price": 10}
    topics, partitions = variant["topics"], variant["partitions"]
    for again in (None, *(VOLATILE if "again" in dict(variant.parameters) else ())):
        other = usual if again is None else usual | {again: variant["again"]}
        for topic, partition, offset, call in product(topics, partitions, variant["offsets"], variant["calls"]):
            yield {"topic": topic, "partition": partition, "offset": offset, "call": call, **other}


def _collide(ask: Asker, one: dict[str, Plain], two: dict[str, Plain]) -> Finding:
    differ = ", ".join(name for name in SAME if one[name] != two[name])
    statement = ask.with_answer(two)
    named = ", ".join(f"{name} {one[name]!r}" for name in SAME)
    message = f"{statement}, and so did the call of {named}; they differ in: {differ}. {LOSES}"
    return Finding(False, message, statement, "a key of its own", general=LOSES)


def _split_call(
    ask: Asker, calls: dict[str, dict[str, Plain]], identities: dict[str, tuple[Plain, ...]]
) -> Finding | None:
    """Return the failed result for the first call that got two keys, or None.

    Both mappings are by idempotency key: `calls` has the first call that got it, and `identities` what identifies that
    call.
    """
    first: dict[tuple[Plain, ...], str] = {}
    for key, identity in identities.items():
        before = first.setdefault(identity, key)
        if before != key:
            statement = ask.with_answer(calls[key])
            changed = next(name for name in VOLATILE if calls[key][name] != calls[before][name])
            message = f"{statement}, and {shown(before)} before, with another {changed}. {DOUBLES}"
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
        variant("prices that last", versions=((0, 10), (9_000, 12), (4_000_000, 8))),
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
        variant("many offsets", topics=("orders",), partitions=(0,), offsets=tuple(range(1_500)), calls=("charge",)),
    ),
}
