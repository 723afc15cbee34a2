"""A value is the same answer, or none for the same reason, in the notebook's check and behind the grader's
connection.
"""

import json
import socket
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from itertools import count
from typing import NamedTuple

import numpy as np
import pytest

from labkit.core.errors import MissingSolution
from labkit.grading.asking import RemoteAnswer
from labkit.grading.sandbox.inside import serving
from labkit.grading.sandbox.inside.frames import FrameError, receive, send
from labkit.teach.exercises.contract import DEEPEST, LARGEST, MOST_CHARACTERS, Answer, AnswerFailed, Plain
from labkit.teach.exercises.namespace import InNotebook


class Sly(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class Pair(NamedTuple):
    number: int
    name: str


class Color(StrEnum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


class Odd(Enum):
    BYTES = b""


class Raising(Enum):
    ONE = 1

    @property
    def value(self) -> float:
        return 1 / 0


class Liar:
    @property
    def __class__(self) -> type:  # type: ignore[override]  # the lie that is tried: it is no tuple
        return tuple


def nested(levels: int) -> Plain:
    value: Plain = 1
    for _ in range(levels):
        value = [value]
    return value


def endless() -> list[object]:
    value: list[object] = []
    value.append(value)
    return value


def wide_and_deep() -> list[object]:
    """Few objects, which read one by one would be 10 ** 19 values."""
    value: list[object] = [1] * 10
    for _ in range(DEEPEST - 2):
        value = [value] * 10
    return value


ANSWERS = {
    "none": None,
    "true": True,
    "one": 1,
    "a fraction": 2.5,
    "minus zero": -0.0,
    "no text": "",
    "text": "naïve 🙂 \x00",
    "an empty list": [],
    "an empty dict": {},
    "a dict of none": {"a": None},
    "a list of none": [None, None],
    "the largest number": LARGEST - 1,
    "the smallest number": 1 - LARGEST,
    "as deep as may be": nested(DEEPEST),
    "as long as may be": "x" * (MOST_CHARACTERS - 2),
    "many values": [0] * 19_000,
    "anything": {"a": [1, 2.5, "x", None, True], "b": {"": {}}},
}
MISSING = {"the stub": ..., "a stub of a list": [..., ...], "a stub of a dict": {"a": ..., "b": {"c": ...}}}
REFUSED = {
    "a part of a dict": ({"a": None, "b": ...}, "still contains"),
    "a part of a list": ([..., [[], ...]], "still contains"),
    "2**63": (LARGEST, "more than 64 bits"),
    "2**70": (2**70, "more than 64 bits"),
    "a number of many digits": ([[10**5000]], "more than 64 bits"),
    "no number": (float("nan"), "JSON cannot represent"),
    "infinity": ([float("-inf")], "JSON cannot represent"),
    "a set": ([{1}], "a set, which has no order"),
    "a frozen set": (frozenset("a"), "a set, which has no order"),
    "a decimal": (Decimal(1), "type Decimal"),
    "too many values of NumPy": (np.zeros(MOST_CHARACTERS + 1), "type ndarray"),
    "a member of an enum that is no answer": (Odd.BYTES, "type bytes"),
    "a liar about its class": (Liar(), "type Liar"),
    "an enum whose value raises": (Raising.ONE, "ZeroDivisionError"),
    "a generator within": ([iter([1])], "type list_iterator"),
    "a tuple of stubs and more": ((..., 1), "still contains"),
    "bytes": (b"", "type bytes"),
    "an object": (object(), "type object"),
    "a class": (Sly, "type type"),
    "a key that is a number": ({1: 2}, "keys must be text"),
    "not valid Unicode": ("\ud800", "not valid Unicode"),
    "not valid Unicode as key": ({"\udfff": 1}, "not valid Unicode"),
    "too deep": (nested(DEEPEST + 1), f"more than {DEEPEST} levels"),
    "25 deep": (nested(25), f"more than {DEEPEST} levels"),
    "without end": (endless(), f"more than {DEEPEST} levels"),
    "too long": ("x" * (MOST_CHARACTERS - 1), "too large"),
    "too many": ([0] * 21_000, "too large"),
    "too many characters once written": ("🙂" * 5_001, "too large"),
    "wide and deep": (wide_and_deep(), "too large"),
}
CLOTHES = {
    "a subclass": (Sly(3), 3),
    "a subclass within": ({"a": Sly(1)}, {"a": 1}),
    "a tuple": ((1, (2, ())), [1, [2, []]]),
    "a named tuple": (Pair(1, "b"), [1, "b"]),
    "a member of an enum": ([Color.RED, Color.RED], ["red", "red"]),
    "a member of a whole enum": ({"n": Number.ONE}, {"n": 1}),
    "a key of an enum": ({Color.RED: 1}, {"red": 1}),
    "a counter": (Counter("aab"), {"a": 2, "b": 1}),
    "a truth of NumPy": (np.bool_(True), True),
    "numbers of NumPy": ([np.int64(3), np.float64(0.5), np.float32(0.5), np.str_("x")], [3, 0.5, 0.5, "x"]),
    "an array": (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    "a default dict": (defaultdict(list, {"a": [1]}), {"a": [1]}),
}
"""Right values of another type, and what they count as."""
LAZY: dict[str, Callable[[], object]] = {
    "a generator": lambda: (each * 2 for each in range(3)),
    "a map": lambda: map(abs, [0, -2, 4]),
    "a range": lambda: range(0, 6, 2),
    "keys": {0: 1, 2: 1, 4: 1}.keys,
}
Side = Callable[[object], Answer]


@pytest.fixture(params=["in the notebook", "behind the grader's connection"])
def side(request: pytest.FixtureRequest) -> Iterator[Side]:
    """What makes an `Answer` of a value that the name `it` stands for."""
    if request.param == "in the notebook":
        yield lambda value: InNotebook("it", {"it": value})
        return
    mine, theirs = socket.socketpair()
    names: dict[str, object] = {}

    def serve() -> None:
        try:
            while True:
                question = json.loads(receive(theirs, serving.MOST_QUESTION))
                reply = serving._reply(names, "it", question)
                send(theirs, json.dumps(reply).encode())
        except (FrameError, OSError):
            pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()

    def asked(value: object) -> RemoteAnswer:
        names["it"] = value
        return RemoteAnswer(mine, time.monotonic() + 60)

    yield asked
    mine.close()
    theirs.close()
    thread.join(10)


@pytest.mark.parametrize("case", ANSWERS)
def test_what_json_can_carry_is_an_answer(side: Side, case: str) -> None:
    value = ANSWERS[case]
    for got in (side(value).value(), side(lambda _: value).call(1)):
        assert repr(got) == repr(value)


@pytest.mark.parametrize("case", CLOTHES)
def test_a_right_value_of_another_type_counts(side: Side, case: str) -> None:
    value, counts_as = CLOTHES[case]
    for got in (side(value).value(), side(lambda _: value).call(1)):
        assert repr(got) == repr(counts_as)


@pytest.mark.parametrize("case", LAZY)
def test_what_a_function_returns_item_by_item_counts_as_a_list(side: Side, case: str) -> None:
    assert side(lambda _: LAZY[case]()).call(1) == [0, 2, 4]
    assert side(lambda _: LAZY[case]()).call(1) == [0, 2, 4]


def test_a_generator_that_fails_or_never_ends_has_failed(side: Side) -> None:
    with pytest.raises(AnswerFailed, match="ZeroDivisionError"):
        side(lambda count: (1 // each for each in range(count))).call(1)
    with pytest.raises(AnswerFailed, match="too large"):
        side(lambda _: count()).call(1)
    with pytest.raises(AnswerFailed, match="type generator"):
        side(each for each in "ab").value()


@pytest.mark.parametrize("case", MISSING)
def test_what_holds_nothing_else_than_a_stub_does_was_not_attempted(side: Side, case: str) -> None:
    value = MISSING[case]
    with pytest.raises(MissingSolution):
        side(value).value()
    with pytest.raises(MissingSolution):
        side(lambda _: value).call(1)


@pytest.mark.parametrize("case", REFUSED)
def test_anything_else_is_refused_by_one_sentence(side: Side, case: str) -> None:
    value, why = REFUSED[case]
    for ask in (side(value).value, lambda: side(lambda _: value).call(1)):
        with pytest.raises(AnswerFailed, match=why) as refusal:
            ask()
        assert len(str(refusal.value)) < 200
        assert "\n" not in str(refusal.value)


def says_missing(_: int) -> None:
    raise MissingSolution("not yet")


def is_not_implemented(_: int) -> None:
    raise NotImplementedError


def leaves(_: int) -> None:
    raise SystemExit(0)


@pytest.mark.parametrize("function", [..., says_missing, is_not_implemented])
def test_a_function_that_is_not_written_was_not_attempted(side: Side, function: object) -> None:
    with pytest.raises(MissingSolution):
        side(function).call(1)


def test_a_function_that_leaves_has_failed(side: Side) -> None:
    with pytest.raises(AnswerFailed, match="SystemExit"):
        side(leaves).call(1)
