"""Sends a judge's questions as JSON over a socket to a learner's answer: a function or a value in a sandbox.

A question is a call of the function with some arguments. A reply fails if it is late, too large, not JSON, not a plain
value, or not the same as the earlier reply to the same question. Questions that a judge announces are sent together in
one message, because waiting for each reply would take most of the time. The replies are examined one by one.
"""

import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from labkit.core.errors import MissingSolution
from labkit.grading.order import Patience
from labkit.grading.sandbox.inside.frames import FrameError, Receiver, TooLate, send
from labkit.grading.sandbox.inside.serving import MOST_QUESTION
from labkit.teach.exercises.contract import AnswerFailed, NotPlain, Plain, plain

VALUE = b'{"do":"value"}'
"""The message that asks for the value of an answer that is a constant, not a function."""
_HEAD = 64
"""The number of bytes that a message with several questions reserves for its first line."""
AGAIN = 16
"""About how many questions are repeated after a judge has accepted an answer, to check that no reply changes."""
FEW, OFTEN = 8, 60
"""If there were at most `FEW` questions, each is repeated `OFTEN` times, to notice a function that counts its calls."""
AFTER_RESTART = 64
"""About how many questions are repeated in a second process, to check that the replies are the same there."""


class Unanswered(AnswerFailed):
    """Raised for an invalid reply. Learners get only `kind`, a fixed text; the message may contain hidden values."""

    def __init__(self, reason: str, kind: str) -> None:
        super().__init__(reason)
        self.kind = kind


NO_VALUE = "is not made of numbers, text, True, False, None, lists and dicts alone"
RAISED = "raised an error"
"""The text that learners read about an error of their code; the error's own message may contain a hidden value."""
NAMED = (
    *("AttributeError", "IndexError", "KeyError", "MemoryError", "NameError", "OverflowError", "RecursionError"),
    *("TypeError", "ValueError", "ZeroDivisionError"),
)
"""The types of errors of the learner's code that a feedback page names, after `RAISED`.

The list is short and fixed, because code that sees a hidden question could choose the type of its error to tell the
learner something about the question. With so few types, that code can tell no more than by choosing one of several
wrong answers.
"""
NO_PLAIN_VALUE = "no plain value"
"""The `kind` of failure that a sandbox reports if the answer is not plain data such as numbers, texts and lists."""


class _Reply(msgspec.Struct):
    at: int | None = None
    """The number of the question, if it was asked together with others."""
    plain: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    missing: bool = False
    failed: str | None = None
    kind: str = ""
    """The kind of failure, as the sandbox names it."""


class RemoteAnswer:
    """A learner's answer in a sandbox. The judge asks it questions over a socket.

    Replies after `deadline`, in seconds of `time.monotonic`, do not count.
    """

    def __init__(self, connection: socket.socket, deadline: float, patience: Patience | None = None) -> None:
        self._connection, self._patience = connection, patience or Patience()
        self._receiver = Receiver(connection)
        self._deadline, self._begun = deadline, time.monotonic()
        self.replies: dict[bytes, bytes] = {}
        """Every different question so far with its reply, both as JSON."""
        self._under_way: dict[bytes, int | None] = {}
        """The questions without a reply yet, in the order in which they were sent, and the number of each."""
        self._arrived: dict[bytes, tuple[bytes | Unanswered, int | None]] = {}
        """Replies that no judge has asked for yet (JSON, or why there is none), each with its question's number."""
        self._numbered = 0
        self._received = 0
        self._repeated = 0
        self.calls = 0
        self.waited = 0.0
        """The seconds that the sandbox has needed for its answers so far."""
        self.lost: str | None = None
        """The reason why no further question can be asked, or None while questions are possible."""

    def value(self) -> Plain:
        """Return the learner's answer if it is a constant. Raises `MissingSolution` or `AnswerFailed`."""
        return self._answer(VALUE)

    def call(self, *arguments: Plain) -> Plain:
        """Return the result of the learner's function for `arguments`. Raises `MissingSolution` or `AnswerFailed`."""
        return self._answer(msgspec.json.encode({"arguments": arguments}))

    def step(self, kind: str, exchanges: Plain, arguments: Plain) -> Plain:
        """Run the learner's sink until its next request to the store; return the request, or how the sink ended.

        `kind` names the type of the store, and `exchanges` are the sink's earlier requests, each with the store's reply
        (see `labkit.teach.exercises.steps.step`). Raises `MissingSolution` or `AnswerFailed`.
        """
        return self._answer(msgspec.json.encode({"steps": [kind, exchanges, arguments]}))

    def expect(self, calls: Iterable[Sequence[Plain]]) -> None:
        """Send the judge's next calls in one message, so that the sandbox can work on them in advance.

        The learner's time limit counts only the time in which the judge waits for replies. This makes the wait shorter.
        """
        questions = dict.fromkeys(msgspec.json.encode({"arguments": arguments}) for arguments in calls)
        self._send_together(question for question in questions if question not in self.replies)

    def greet(self) -> bool:
        """Return whether the sandbox process that holds the learner's answer still replies."""
        try:
            return _plain(self._ask(b'{"hello":true}')) is True
        except (AnswerFailed, MissingSolution):
            return False

    def repeat(self) -> None:
        """Ask the learner's code some earlier questions again. Raises `AnswerFailed` if a reply has changed."""
        step = max(1, len(self.replies) // AGAIN)
        questions = list(self.replies)[::step]
        rounds = OFTEN if 1 < len(self.replies) <= FEW else 1
        rounds = min(rounds, (self._patience.calls - self.calls) // max(1, len(questions)))
        for number in range(max(1, rounds)):
            again = questions[::-1] if number % 2 else questions
            self._send_together(again)
            for question in again:
                self._compare(question)

    def repeat_after_restart(self, replies: Mapping[bytes, bytes], same: Callable[[Plain, Plain], bool]) -> None:
        """Ask some questions of an earlier run again. Raises `AnswerFailed` if a reply differs from the earlier one.

        `replies` maps questions to earlier replies, both as JSON, and `same` compares two replies. Replies often differ
        because of Python's `hash` of strings, which is different in every process.
        """
        questions = list(replies)[:: max(1, len(replies) // AFTER_RESTART)]
        self._send_together(questions)
        for question in questions:
            if not same(_plain(self._ask(question)), _plain(replies[question])):
                raise Unanswered(
                    "after a restart, the function answered the same question differently; let no answer depend on "
                    "Python's hash(), the order of a set, random values, or a variable that earlier calls changed",
                    "gave another answer after a restart",
                )

    def _answer(self, question: bytes) -> Plain:
        if time.monotonic() > self._begun + self._patience.search_seconds:
            raise Unanswered(
                f"testing the answer took more than {self._patience.search_seconds:g} s", "made its test run too long"
            )
        if question in self.replies:
            self._repeated += 1
            # Only the 1st, 2nd, 4th, 8th ... repeated question is asked again, since each costs a round trip.
            if self._repeated & (self._repeated - 1) == 0:
                self._compare(question)
        else:
            self.replies[question] = self._ask(question)
        # Decoded anew for each call, because the judge may change the value that it gets.
        value: Plain = msgspec.json.decode(self.replies[question])
        return value

    def _compare(self, question: bytes) -> None:
        if self._ask(question) != self.replies[question]:
            raise Unanswered(
                "there were two different answers to the same question: a second call with the same arguments had "
                "another result; let the result depend only on the arguments, and not on a variable that an earlier "
                "call changed",
                "gave two different answers to the same question",
            )

    def _ask(self, question: bytes) -> bytes:
        """Send a question to the learner's code; return the reply as canonical JSON."""
        patience = self._patience
        is_sent = question in self._under_way or question in self._arrived
        if self.lost is not None and not is_sent:
            raise Unanswered(self.lost, "ended its process or broke the connection")
        if len(question) > MOST_QUESTION or self.calls >= patience.calls:
            raise Unanswered(
                f"testing the answer needed too much: at most {patience.calls:,} calls are allowed, each with at most "
                f"{MOST_QUESTION:,} bytes of arguments",
                "needed too many questions",
            )
        self.calls += 1
        if not is_sent:
            self._empty()
            until = self._until()
            self._send({question: None}, question, until)
            self._receive_next(until)
        while question in self._under_way:
            self._receive_next(self._until())
        if question not in self._arrived:  # the connection was lost at an earlier question
            raise Unanswered(str(self.lost), "ended its process or broke the connection")
        raw, number = self._arrived.pop(question)
        if isinstance(raw, Unanswered):
            raise raw
        return self._reply(raw, number)

    def _send_together(self, questions: Iterable[bytes]) -> None:
        room = self._patience.calls - self.calls - len(self._under_way) - len(self._arrived)
        size, chosen = 0, list[bytes]()
        for question in questions:
            if question in self._under_way or question in self._arrived:
                continue
            size += len(question) + 1
            if len(chosen) >= room or size > MOST_QUESTION - _HEAD:
                break
            chosen.append(question)
        if len(chosen) < 2 or self.lost is not None:
            return
        self._empty()
        numbered = {question: number for number, question in enumerate(chosen, self._numbered)}
        message = b"\n".join([msgspec.json.encode({"first": self._numbered}), *chosen])
        self._numbered += len(chosen)
        self._send(numbered, message, self._until())

    def _until(self) -> float:
        """Return the deadline for the next reply, in seconds of `time.monotonic`."""
        now, patience = time.monotonic(), self._patience
        # The learner does not pay for the time that the judge itself needs.
        judged = now - self._begun - self.waited
        return now + min(patience.call_seconds, patience.item_seconds - self.waited, self._deadline + judged - now)

    def _empty(self) -> None:
        # Otherwise both sides could block forever while they send, because neither of them reads.
        while self._under_way:
            self._receive_next(self._until())

    def _send(self, questions: Mapping[bytes, int | None], message: bytes, until: float) -> None:
        if self.lost is not None:
            return
        self._under_way.update(questions)
        begun = time.monotonic()
        try:
            send(self._connection, message, until)
        except FrameError as error:
            self._lose(error)
        finally:
            self.waited += time.monotonic() - begun

    def _receive_next(self, until: float) -> None:
        if not self._under_way:
            return
        begun = time.monotonic()
        try:
            raw = self._receiver.receive(self._patience.value_bytes, until)
        except FrameError as error:
            self._lose(error)
            return
        finally:
            self.waited += time.monotonic() - begun
        question = next(iter(self._under_way))
        self._arrived[question] = raw, self._under_way.pop(question)

    def _lose(self, error: FrameError) -> None:
        self.lost = f"it did not answer a question: {error}"
        kind = "took too long" if isinstance(error, TooLate) else "ended its process or broke the connection"
        question = next(iter(self._under_way))
        self._arrived[question] = Unanswered(self.lost, kind), None
        self._under_way.clear()

    def _reply(self, raw: bytes, number: int | None) -> bytes:
        """Return the reply in a message from the sandbox. The message must repeat the `number` of the question."""
        self._received += len(raw)
        if self._received > self._patience.total_bytes:
            raise Unanswered(
                f"its return values together are larger than {self._patience.total_bytes:,} bytes",
                "returned too much data",
            )
        try:
            reply = msgspec.json.decode(raw, type=_Reply)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            raise Unanswered(
                "the process that runs the learner's code sent a message that is not the expected JSON",
                "broke the connection to the judge",
            ) from None
        if reply.at != number:
            self.lost = "it sent a reply to another question"
            self._under_way.clear()
            self._arrived.clear()
            raise Unanswered(self.lost, "broke the connection to the judge")
        if reply.missing:
            raise MissingSolution("not attempted")
        if isinstance(reply.plain, msgspec.UnsetType):
            # Only fixed texts, because the learner's process could put a hidden value into a text of its own.
            kind = f"{RAISED} ({reply.kind})" if reply.kind in NAMED else RAISED
            kind = NO_VALUE if reply.kind == NO_PLAIN_VALUE else kind
            reason = (reply.failed or "it returned nothing")[:500]
            raise Unanswered(reason, kind)
        return msgspec.json.encode(_plain(bytes(reply.plain)), order="sorted")


def _plain(raw: bytes) -> Plain:
    try:
        value: Plain = plain(msgspec.json.decode(raw))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError):
        raise Unanswered("the reply is not plain JSON", NO_VALUE) from None
    except NotPlain as error:
        raise Unanswered(f"it {error}", NO_VALUE) from None
    return value
