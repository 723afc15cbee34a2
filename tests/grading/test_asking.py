"""Asking an answer that may lie, hang or break off: every such thing is one failed answer and never a hang."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from labkit.core.errors import MissingSolution
from labkit.grading import explaining
from labkit.grading.asking import RemoteAnswer
from labkit.grading.marking import _in_words, mark
from labkit.grading.order import Patience
from labkit.grading.sandbox.inside.frames import FrameError, receive, send
from labkit.teach.exercises.contract import AnswerFailed, Exercise, Finding, Kind, Level, Variant

PATIENCE = Patience(call_seconds=0.5, item_seconds=3, calls=50, value_bytes=1000, total_bytes=5000)
Other = Callable[[socket.socket, bytes], None]
Together = Callable[[socket.socket, int, list[bytes]], None]
"""The other side of several questions in one message: a function of the connection, the first number, the questions."""


class Numbered(socket.socket):
    """A connection that adds the number of its question to a reply that is a JSON object."""

    number = 0

    def sendall(self, data: bytes, *_: int) -> None:  # type: ignore[override]  # socket also takes other buffers and flags
        payload = data[4:].replace(b"{", f'{{"at": {self.number}, '.encode(), 1) if data[4:5] == b"{" else data[4:]
        super().sendall(len(payload).to_bytes(4, "big") + payload)


@pytest.fixture
def ask() -> Iterator[Callable[..., RemoteAnswer]]:
    """An answer whose other side is a function of the connection and the question, and maybe one for several."""
    connections: list[socket.socket] = []

    def start(other: Other, together: Together | None = None, patience: Patience = PATIENCE) -> RemoteAnswer:
        mine, theirs = socket.socketpair()
        numbered = Numbered(fileno=theirs.dup().detach())
        connections.extend((mine, theirs, numbered))

        def serve() -> None:
            try:
                while True:
                    head, *questions = receive(theirs, 1 << 20).split(b"\n")
                    if not questions:
                        other(theirs, head)
                    elif together:
                        together(theirs, json.loads(head)["first"], questions)
                    else:
                        for numbered.number, question in enumerate(questions, json.loads(head)["first"]):
                            other(numbered, question)
            except (FrameError, OSError):
                pass

        threading.Thread(target=serve, daemon=True).start()
        return RemoteAnswer(mine, time.monotonic() + 60, patience)

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
    reply: str, value: object, ask: Callable[..., RemoteAnswer]
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
def test_anything_else_is_a_failed_answer(reply: str, ask: Callable[..., RemoteAnswer]) -> None:
    with pytest.raises(AnswerFailed):
        ask(says(reply)).value()


def test_not_attempted_is_said(ask: Callable[..., RemoteAnswer]) -> None:
    with pytest.raises(MissingSolution):
        ask(says('{"missing": true}')).call(1)


def test_too_large_too_late_too_slow_and_gone(ask: Callable[..., RemoteAnswer]) -> None:
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


def test_all_answers_together_have_limits(ask: Callable[..., RemoteAnswer]) -> None:
    many = ask(says('{"plain": 1}'))
    with pytest.raises(AnswerFailed, match="at most 50 calls"):
        call_often(many)
    large = ask(says('{"plain": "' + "x" * 900 + '"}'))
    with pytest.raises(AnswerFailed, match="return values together are larger"):
        call_often(large)


def call_often(answer: RemoteAnswer) -> None:
    for number in range(100):
        answer.call(number)


def test_a_question_is_asked_once_and_its_answer_cannot_be_changed(ask: Callable[..., RemoteAnswer]) -> None:
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


def test_another_answer_to_the_same_question_fails(ask: Callable[..., RemoteAnswer]) -> None:
    answer = ask(counting())
    answer.call(1)
    with pytest.raises(AnswerFailed, match="two different answers"):
        answer.call(1)
    answer = ask(counting())
    answer.call(1)
    with pytest.raises(AnswerFailed, match="two different answers"):
        answer.repeat()


def test_a_few_questions_are_repeated_often(ask: Callable[..., RemoteAnswer]) -> None:
    """A function that counts its calls answers otherwise only after a while."""
    asked = [0]

    def together(connection: socket.socket, first: int, questions: list[bytes]) -> None:
        for number, question in enumerate(questions, first):
            asked[0] += argument(question) == 2
            reply(connection, number, min(argument(question), 20 // max(asked[0], 1)))

    answer = ask(doubled, together)
    assert outcomes(answer, [1, 2]) == [1, 2]
    with pytest.raises(AnswerFailed, match="two different answers"):
        answer.repeat()
    assert asked == [11]


def reply(connection: socket.socket, number: int, value: object) -> None:
    send(connection, json.dumps({"at": number, "plain": value}).encode())


def argument(question: bytes) -> int:
    number: int = json.loads(question)["arguments"][0]
    return number


def doubled(connection: socket.socket, question: bytes) -> None:
    send(connection, json.dumps({"plain": 2 * argument(question)}).encode())


def outcomes(answer: RemoteAnswer, numbers: Sequence[int]) -> list[object]:
    """What each call returns after all were announced, or the words of its error."""
    answer.expect([number] for number in numbers)
    found: list[object] = []
    for number in numbers:
        try:
            found.append(answer.call(number))
        except AnswerFailed as error:
            found.append(str(error))
    return found


GONE = "it did not answer a question: the connection is closed"
LATE = "it did not answer a question: no answer arrived in time"
OTHER = "it sent a reply to another question"


def test_questions_that_were_announced_are_asked_in_one_message(ask: Callable[..., RemoteAnswer]) -> None:
    messages: list[int] = []

    def together(connection: socket.socket, first: int, questions: list[bytes]) -> None:
        messages.append(len(questions))
        for number, question in enumerate(questions, first):
            reply(connection, number, 2 * argument(question))

    answer = ask(doubled, together)
    answer.call(2)
    assert outcomes(answer, [*range(8), 3]) == [0, 2, 4, 6, 8, 10, 12, 14, 6]
    assert messages == [7]  # without the 2, whose reply is known
    assert answer.calls == 8 + 2  # two questions were repeated
    assert outcomes(answer, range(20, 25)) == [40, 42, 44, 46, 48]
    answer.repeat()
    assert messages == [7, 5, 13]
    # What is asked between them comes behind them, and gets its own reply.
    answer.expect([[30], [31]])
    assert [answer.call(each) for each in (99, 31, 30)] == [198, 62, 60]


def sent_by(replies: Callable[[int, list[int]], list[tuple[int, int]]]) -> Together:
    """The other side that sends these numbers and values for the first number and the arguments."""

    def together(connection: socket.socket, first: int, questions: list[bytes]) -> None:
        for number, value in replies(first, [*map(argument, questions)]):
            reply(connection, number, value)

    return together


@pytest.mark.parametrize(
    ("replies", "expected"),
    [
        # One too many, at once or for a question that comes later: it answers no other question.
        (lambda n, a: [(n, 2 * a[0]), (n, 0), *((n + k, 2 * a[k]) for k in (1, 2, 3))], [2, OTHER, OTHER, OTHER]),
        (lambda n, a: [*((n + k, 2 * a[k]) for k in range(4)), (n, 0)], [2, 4, 6, 8]),
        # Too few: what was answered counts.
        (lambda n, a: [(n + k, 2 * a[k]) for k in range(2)], [2, 4, LATE, LATE]),
        # Another order, although each number has its right value.
        (lambda n, a: [(n + k, 2 * a[k]) for k in (0, 2, 1, 3)], [2, OTHER, OTHER, OTHER]),
        # Numbers of another message, or of none.
        (lambda n, a: [(k - 4, 2 * a[k]) for k in range(4)], [OTHER, OTHER, OTHER, OTHER]),
    ],
    ids=["too many", "too many at the end", "too few", "another order", "other numbers"],
)
def test_a_reply_answers_only_the_question_of_its_number(
    ask: Callable[..., RemoteAnswer], replies: Callable[[int, list[int]], list[tuple[int, int]]], expected: list[object]
) -> None:
    answer = ask(doubled, sent_by(replies))
    assert outcomes(answer, range(1, 5)) == expected
    if 8 in expected:  # what came too much is no reply to the next question either, asked alone or with others
        assert outcomes(answer, [7]) == [OTHER]
        answer = ask(doubled, sent_by(replies))
        assert outcomes(answer, range(1, 5)) == expected
        assert outcomes(answer, range(5, 9)) == [OTHER] * 4


@pytest.mark.parametrize(
    ("end", "reason", "shown"),
    [
        (lambda connection: time.sleep(5), LATE, "took too long"),
        (lambda connection: connection.shutdown(socket.SHUT_RDWR), GONE, "ended its process"),
        (lambda connection: connection.sendall(b"\xff\xff\xff\xff"), "at most 1,000 are allowed", "ended its process"),
        (lambda connection: send(connection, b"nonsense"), "not the expected JSON", "broke the connection"),
    ],
    ids=["hangs", "ends", "too large", "no JSON"],
)
def test_an_end_in_the_middle_costs_only_what_was_not_answered(
    ask: Callable[..., RemoteAnswer], end: Callable[[socket.socket], None], reason: str, shown: str
) -> None:
    def together(connection: socket.socket, first: int, questions: list[bytes]) -> None:
        for number, question in enumerate(questions, first):
            if argument(question) == 3:
                end(connection)
            reply(connection, number, 2 * argument(question))

    def judge(answer: RemoteAnswer, variant: Variant) -> Finding:
        answer.expect([[n] for n in range(1, 6)])
        for n in range(1, 6):
            if answer.call(n) != (0 if n == variant["wrong"] else 2 * n):
                return Finding(passed=False, message=f"{n} is wrong.")
        return Finding(passed=True, message="")

    # A wrong reply before the end is judged as if nothing had come after it, and nobody waits for the rest.
    patient = replace(PATIENCE, call_seconds=30, item_seconds=60)
    begun = time.monotonic()
    item = mark(exercise(judge, Variant("v", (("wrong", 2),))), ask(doubled, together, patient), ())
    assert (item.status, item.reason, item.questions) == ("wrong", "2 is wrong.", 2)
    assert time.monotonic() - begun < patient.call_seconds
    item = mark(exercise(judge, Variant("v", (("wrong", 0),))), ask(doubled, together), ())
    assert (item.status, item.questions) == ("failed", 3)
    assert reason in item.reason
    assert shown in item.shown


def test_a_long_question_waits_for_the_replies_to_announced_ones(ask: Callable[..., RemoteAnswer]) -> None:
    # More than both sides can send before the other one reads.
    long = ask(says('{"plain": "' + "x" * 50_000 + '"}'), patience=Patience(call_seconds=2))
    long.expect([[number] for number in range(20)])
    assert len(str(long.call("y" * 500_000))) == 50_000
    assert len(str(long.call(19))) == 50_000


def test_announced_questions_have_the_limits_of_others(ask: Callable[..., RemoteAnswer]) -> None:
    begun = time.monotonic()
    patience = replace(PATIENCE, call_seconds=5, item_seconds=2)
    slow = ask(lambda connection, question: (time.sleep(0.3), doubled(connection, question))[1], patience=patience)
    found = outcomes(slow, range(20))
    answered = found.index(LATE)  # each is in time, but together they take too long
    assert 1 <= answered <= 6
    assert found == [*range(0, 2 * answered, 2), *[LATE] * (20 - answered)]
    assert time.monotonic() - begun < patience.item_seconds + patience.call_seconds
    seen: list[int] = []
    counted = ask(lambda connection, question: (seen.append(argument(question)), doubled(connection, question))[1])
    assert "at most 50 calls" in str(outcomes(counted, range(60))[50])
    assert seen == [*range(50)]
    large = ask(says('{"plain": "' + "x" * 900 + '"}'))
    assert [str(each)[:10] for each in outcomes(large, range(7))] == ["x" * 10] * 5 + ["its return"] * 2


def exercise(judge: Callable[..., Finding], *public: Variant) -> Exercise:
    return Exercise(
        name="01-x", notebook="01_x", title="", kind=Kind.COMPLETE, level=Level.EASY, points=3, answer="x", task="",
        hints=("", ""), lines=1, public=public, judge=judge,
    )  # fmt: skip


def judged_by_value(answer: RemoteAnswer, variant: Variant) -> Finding:
    right = answer.call(variant["n"]) == 1
    return Finding(passed=right, message="" if right else "It is not one.")


VARIANTS = [Variant(f"v{n}", (("n", n),)) for n in range(4)]


def test_points_come_only_with_every_variant(ask: Callable[..., RemoteAnswer]) -> None:
    one = exercise(judged_by_value, VARIANTS[0])
    item = mark(one, ask(says('{"plain": 1}')), VARIANTS[1:])
    assert (item.points, item.status, item.public, item.hidden) == (3, "right", (1, 1), (3, 3))

    def last_is_wrong(connection: socket.socket, question: bytes) -> None:
        send(connection, b'{"plain": 1}' if b"3" not in question else b'{"plain": 2}')

    item = mark(one, ask(last_is_wrong), VARIANTS[1:])
    assert (item.points, item.status, item.public, item.hidden) == (0, "wrong", (1, 1), (2, 3))
    assert item.reason == "It is not one."


def test_an_error_that_the_second_public_variant_causes_is_explained(ask: Callable[..., RemoteAnswer]) -> None:
    def fails_for_one(connection: socket.socket, question: bytes) -> None:
        failed = b'{"failed": "x raised KeyError: 1", "kind": "KeyError"}'
        send(connection, failed if b"1" in question else b'{"plain": 1}')

    error = explaining._first_error(exercise(judged_by_value, *VARIANTS[:3]), ask(fails_for_one))
    assert error == "x raised KeyError: 1"


def test_a_state_that_no_judge_asks_for_is_noticed(ask: Callable[..., RemoteAnswer]) -> None:
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


def test_of_a_hidden_variant_a_learner_reads_nothing_of_the_question(ask: Callable[..., RemoteAnswer]) -> None:
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
        ('{"failed": "double of 42: ValueError", "kind": "ValueError"}', "The answer raised an error (ValueError)."),
        ('{"failed": "double of 42: MemoryError", "kind": "MemoryError"}', "The answer raised an error (MemoryError)."),
        # A type of the learner's own can have any name.
        ('{"failed": "double raised N42: 42", "kind": "N42"}', "The answer raised an error."),
        (
            '{"failed": "double contains bytes 42", "kind": "no plain value"}',
            "The answer is not made of numbers, text, True, False, None, lists and dicts alone.",
        ),
        ('{"failed": "42", "kind": "42 is hidden"}', "The answer raised an error."),
    ],
)
def test_a_learner_reads_what_kind_of_failure_it_was_in_the_graders_words(
    ask: Callable[..., RemoteAnswer], reply: str, shown: str
) -> None:
    item = mark(exercise(judged_by_value, VARIANTS[0]), ask(says(reply)), ())
    assert (item.points, item.status, item.shown) == (0, "failed", shown)
    assert "42" in item.reason
