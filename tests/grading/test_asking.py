"""Asking an answer that may lie, hang or break off: every such thing is one failed answer and never a hang."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from labkit.core.errors import MissingSolution
from labkit.grading.asking import RemoteAnswer
from labkit.grading.marking import _in_words, mark
from labkit.grading.order import Patience
from labkit.grading.sandbox.inside.frames import FrameError, receive, send
from labkit.teach.exercises.contract import AnswerFailed, Exercise, Finding, Kind, Level, Variant

PATIENCE = Patience(call_seconds=0.5, item_seconds=3, calls=50, value_bytes=1000, total_bytes=5000)
Other = Callable[[socket.socket, bytes], None]


@pytest.fixture
def ask() -> Iterator[Callable[[Other], RemoteAnswer]]:
    """An answer whose other side is a function of the connection and the question."""
    connections: list[socket.socket] = []

    def start(other: Other) -> RemoteAnswer:
        mine, theirs = socket.socketpair()
        connections.extend((mine, theirs))

        def serve() -> None:
            try:
                while True:
                    other(theirs, receive(theirs, 1 << 20))
            except (FrameError, OSError):
                pass

        threading.Thread(target=serve, daemon=True).start()
        return RemoteAnswer(mine, time.monotonic() + 60, PATIENCE)

    yield start
    for connection in connections:
        connection.close()


def says(text: str) -> Other:
    return lambda connection, question: send(connection, text.encode())


@pytest.mark.parametrize(
    ("reply", "value"),
    [('{"plain": 3}', 3), ('{"plain": null}', None), ('{"plain": {"a": [1.5, true]}}', {"a": [1.5, True]})],
)
def test_a_plain_value_comes_back_with_its_exact_type(
    reply: str, value: object, ask: Callable[[Other], RemoteAnswer]
) -> None:
    got = ask(says(reply)).value()
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(
    "reply",
    [
        *("", "{}", "[]", "nonsense", '{"plain": NaN}', '{"plain": 1e999}', '{"plain": Infinity}', '{"plain": 1'),
        *('{"passed": true}', '{"points": 2}', '{"plain": "\\ud800"}', '{"failed": "it says so"}'),
        *('{"plain":' + "[" * 400 + "]" * 400 + "}", '{"missing": 1}', '{"plain": 1} {"plain": 2}'),
    ],
)
def test_anything_else_is_a_failed_answer(reply: str, ask: Callable[[Other], RemoteAnswer]) -> None:
    with pytest.raises(AnswerFailed):
        ask(says(reply)).value()


def test_not_attempted_is_said(ask: Callable[[Other], RemoteAnswer]) -> None:
    with pytest.raises(MissingSolution):
        ask(says('{"missing": true}')).call(1)


def test_too_large_too_late_too_slow_and_gone(ask: Callable[[Other], RemoteAnswer]) -> None:
    def trickle(connection: socket.socket, question: bytes) -> None:
        connection.sendall((1000).to_bytes(4, "big"))
        for _ in range(1000):
            connection.sendall(b" ")
            time.sleep(0.01)

    others: list[Other] = [
        says('{"plain": "' + "x" * 2000 + '"}'),
        lambda connection, question: connection.sendall(b"\xff\xff\xff\xff"),
        lambda connection, question: time.sleep(5),
        trickle,
        lambda connection, question: connection.shutdown(socket.SHUT_RDWR),
    ]
    for other in others:
        answer = ask(other)
        with pytest.raises(AnswerFailed):
            answer.call(1)
        with pytest.raises(AnswerFailed):  # and it stays so, without another wait
            answer.call(2)
        assert answer.calls == 1


def test_all_answers_together_have_limits(ask: Callable[[Other], RemoteAnswer]) -> None:
    many = ask(says('{"plain": 1}'))
    with pytest.raises(AnswerFailed, match="more than 50 questions"):
        call_often(many)
    large = ask(says('{"plain": "' + "x" * 900 + '"}'))
    with pytest.raises(AnswerFailed, match="together are too large"):
        call_often(large)


def call_often(answer: RemoteAnswer) -> None:
    for number in range(100):
        answer.call(number)


def test_a_question_is_asked_once_and_its_answer_cannot_be_changed(ask: Callable[[Other], RemoteAnswer]) -> None:
    answer = ask(says('{"plain": [1]}'))
    first = answer.call({"a": 1})
    assert isinstance(first, list)
    first.append(2)
    assert answer.call({"a": 1}) == [1]
    assert answer.calls == 2  # the first repeated question is compared
    for _ in range(20):
        answer.call({"a": 1})
    assert answer.calls == 6  # and the 2nd, 4th, 8th and 16th


def counting() -> Other:
    asked = [0]

    def other(connection: socket.socket, question: bytes) -> None:
        asked[0] += 1
        send(connection, json.dumps({"plain": asked[0]}).encode())

    return other


def test_another_answer_to_the_same_question_fails(ask: Callable[[Other], RemoteAnswer]) -> None:
    answer = ask(counting())
    answer.call(1)
    with pytest.raises(AnswerFailed, match="two different answers"):
        answer.call(1)
    answer = ask(counting())
    answer.call(1)
    with pytest.raises(AnswerFailed, match="two different answers"):
        answer.repeat()


def exercise(judge: Callable[..., Finding], *public: Variant) -> Exercise:
    return Exercise(
        name="01-x", notebook="01_x", title="", kind=Kind.COMPLETE, level=Level.EASY, points=3, answer="x", task="",
        hints=("", ""), lines=1, public=public, judge=judge,
    )  # fmt: skip


def judged_by_value(answer: RemoteAnswer, variant: Variant) -> Finding:
    right = answer.call(variant["n"]) == 1
    return Finding(passed=right, message="" if right else "It is not one.")


VARIANTS = [Variant(f"v{n}", (("n", n),)) for n in range(4)]


def test_points_come_only_with_every_variant(ask: Callable[[Other], RemoteAnswer]) -> None:
    one = exercise(judged_by_value, VARIANTS[0])
    item = mark(one, ask(says('{"plain": 1}')), VARIANTS[1:])
    assert (item.points, item.status, item.public, item.hidden) == (3, "right", (1, 1), (3, 3))

    def last_is_wrong(connection: socket.socket, question: bytes) -> None:
        send(connection, b'{"plain": 1}' if b"3" not in question else b'{"plain": 2}')

    item = mark(one, ask(last_is_wrong), VARIANTS[1:])
    assert (item.points, item.status, item.public, item.hidden) == (0, "wrong", (1, 1), (2, 3))
    assert item.reason == "It is not one."


def test_a_state_that_no_judge_asks_for_is_noticed(ask: Callable[[Other], RemoteAnswer]) -> None:
    def wears_out(
        connection: socket.socket,
        question: bytes,
        asked: list[int] = [0],  # noqa: B006  # one list for all calls is the point: it counts them
    ) -> None:
        asked[0] += 1
        send(connection, b'{"plain": 1}' if asked[0] <= 4 else b'{"plain": 2}')

    item = mark(exercise(judged_by_value, VARIANTS[0]), ask(wears_out), VARIANTS[1:])
    assert (item.points, item.status) == (0, "failed")
    assert "two different answers" in item.reason


def test_of_a_hidden_variant_a_learner_reads_nothing_of_the_question(ask: Callable[[Other], RemoteAnswer]) -> None:
    def judge(answer: RemoteAnswer, variant: Variant) -> Finding:
        return Finding(variant["n"] < 2, f"n is {variant['n']}", "seen", "wanted", general=variant["told"])

    told = [Variant(f"v{n}", (("n", n), ("told", "It is too large." if n == 2 else ""))) for n in (1, 2, 3)]
    assert mark(exercise(judge, told[0]), ask(says("{}")), told[1:2]).shown == "It is too large."
    assert "hidden variant" in mark(exercise(judge, told[0]), ask(says("{}")), told[2:]).shown
    item = mark(exercise(judge, told[1]), ask(says("{}")), ())
    assert item.shown == "n is 2 Observed: seen Expected: wanted"
    twice = Finding(
        passed=False, message="Record 0 is lost.", observed="record 0 is lost", expected="record 0 is there"
    )
    assert _in_words(twice) == "Record 0 is lost. Expected: record 0 is there"


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        ('{"failed": "double raised ValueError: 42", "kind": "ValueError"}', "The answer raised an error."),
        (
            '{"failed": "double contains bytes 42", "kind": "no plain value"}',
            "The answer is not made of numbers, text, True, False, None, lists and dicts alone.",
        ),
        ('{"failed": "42", "kind": "42 is hidden"}', "The answer raised an error."),
    ],
)
def test_a_learner_reads_what_kind_of_failure_it_was_in_the_graders_words(
    ask: Callable[[Other], RemoteAnswer], reply: str, shown: str
) -> None:
    item = mark(exercise(judged_by_value, VARIANTS[0]), ask(says(reply)), ())
    assert (item.points, item.status, item.shown) == (0, "failed", shown)
    assert "42" in item.reason
