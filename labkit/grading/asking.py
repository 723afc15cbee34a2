"""Sends a judge's questions as JSON over a socket to a learner's answer, a function or a value in a sandbox.

A reply fails if it is late, too large, not JSON, not a plain value, or differs from the earlier reply to the same
question.
"""

import socket
import time
from collections.abc import Callable, Mapping

import msgspec

from labkit.core.errors import MissingSolution
from labkit.grading.order import Patience
from labkit.grading.sandbox.inside.frames import FrameError, receive, send
from labkit.grading.sandbox.inside.serving import MOST_QUESTION
from labkit.teach.exercises.contract import AnswerFailed, NotPlain, Plain, plain

VALUE = b'{"do":"value"}'
"""The question for the value of an answer that is a constant, not a function."""
AGAIN = 16
"""About how many questions are repeated after a judge has accepted an answer, to check that the replies stay the same.
"""
AFTER_RESTART = 64
"""About how many questions are repeated in a second process, to check that the replies are the same there."""


class Unanswered(AnswerFailed):
    """The error that a learner's function or value gave no valid reply to a question.

    `kind` names the failure in the grader's own words, so it cannot reveal a hidden value.
    """

    def __init__(self, reason: str, kind: str) -> None:
        super().__init__(reason)
        self.kind = kind


NO_VALUE = "is not made of numbers, text, True, False, None, lists and dicts alone"
RAISED = "raised an error"
"""The text that learners read about an error of their code; the error's own message may contain a hidden value."""
NO_PLAIN_VALUE = "no plain value"
"""The `kind` of failure that a sandbox reports if the answer is not plain data such as numbers, texts and lists."""


class _Reply(msgspec.Struct):
    plain: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    missing: bool = False
    failed: str | None = None
    kind: str = ""
    """The kind of failure, as the sandbox names it."""


class RemoteAnswer:
    """A learner's answer in a sandbox, which a judge can question over a socket.

    After `deadline`, a time of `time.monotonic`, every question fails.
    """

    def __init__(self, connection: socket.socket, deadline: float, patience: Patience | None = None) -> None:
        self._connection, self._patience = connection, patience or Patience()
        self._deadline, self._begun = deadline, time.monotonic()
        self.replies: dict[bytes, bytes] = {}
        """Every different question so far with its reply, both as JSON."""
        self._received = 0
        self._repeated = 0
        self.calls = 0
        self.waited = 0.0
        """The seconds that the sandbox has needed for its answers so far."""
        self.lost: str | None = None
        """The reason why no further question can be asked, or None while questions are possible."""

    def value(self) -> Plain:
        """Return the value of the learner's answer, a constant. Raises `MissingSolution` or `AnswerFailed`."""
        return self._answer(VALUE)

    def call(self, *arguments: Plain) -> Plain:
        """Return the value of the learner's function for these arguments. Raises `MissingSolution` or
        `AnswerFailed`.
        """
        return self._answer(msgspec.json.encode({"arguments": arguments}))

    def step(self, kind: str, exchanges: Plain, arguments: Plain) -> Plain:
        """Return the next request of the learner's sink to its store, given its requests so far with the store's
        results.

        Raises `MissingSolution` or `AnswerFailed`.
        """
        return self._answer(msgspec.json.encode({"steps": [kind, exchanges, arguments]}))

    def greet(self) -> bool:
        """Return whether the process that holds the learner's answer replies at all."""
        try:
            return _plain(self._ask(b'{"hello":true}')) is True
        except (AnswerFailed, MissingSolution):
            return False

    def repeat(self) -> None:
        """Ask some of the earlier questions again. Raises `AnswerFailed` if a reply now differs."""
        step = max(1, len(self.replies) // AGAIN)
        for question in list(self.replies)[::step]:
            self._compare(question)

    def repeat_after_restart(self, replies: Mapping[bytes, bytes], same: Callable[[Plain, Plain], bool]) -> None:
        """Repeat some questions that another process with the same notebook has answered, and compare the replies.

        `replies` maps each question to the earlier reply, both as JSON; `same` decides whether two decoded replies are
        equal. Raises `AnswerFailed` if one differs, as it does if the answer depends on Python's `hash` of a text.
        """
        for question in list(replies)[:: max(1, len(replies) // AFTER_RESTART)]:
            if not same(_plain(self._ask(question)), _plain(replies[question])):
                raise Unanswered(
                    "the answer to the same question changed in another process; Python's hash(), the order of a set "
                    "and random values change with every restart",
                    "gave another answer after a restart",
                )

    def _answer(self, question: bytes) -> Plain:
        if time.monotonic() > self._begun + self._patience.search_seconds:
            raise Unanswered("testing the answer took too long", "made the search too long")
        if question in self.replies:
            self._repeated += 1
            # Only the 1st, 2nd, 4th, 8th ... repeated question is asked again, since each costs a round trip.
            if self._repeated & (self._repeated - 1) == 0:
                self._compare(question)
        else:
            self.replies[question] = self._ask(question)
        # Decoded again each time, so that no judge can change the stored reply, which is plain.
        value: Plain = msgspec.json.decode(self.replies[question])
        return value

    def _compare(self, question: bytes) -> None:
        if self._ask(question) != self.replies[question]:
            raise Unanswered(
                "there were two different answers to the same question; an answer must depend on its arguments only",
                "gave two different answers to the same question",
            )

    def _ask(self, question: bytes) -> bytes:
        """Send a question and return the reply as canonical JSON. Raises `MissingSolution` or `AnswerFailed`."""
        patience = self._patience
        if self.lost is not None:
            raise Unanswered(self.lost, "ended its process or broke the connection")
        if len(question) > MOST_QUESTION or self.calls >= patience.calls:
            raise Unanswered(
                f"the judge had to ask more than {patience.calls:,} questions", "needed too many questions"
            )
        self.calls += 1
        begun = time.monotonic()
        # The time that the judge itself needs does not count against the learner.
        judged = begun - self._begun - self.waited
        left = min(patience.call_seconds, patience.item_seconds - self.waited, self._deadline + judged - begun)
        try:
            send(self._connection, question, begun + left)
            raw = receive(self._connection, patience.value_bytes, begun + left)
        except FrameError as error:
            self.lost = f"it did not answer a question: {error}"
            kind = "took too long" if "in time" in str(error) else "ended its process or broke the connection"
            raise Unanswered(self.lost, kind) from None
        finally:
            self.waited += time.monotonic() - begun
        self._received += len(raw)
        if self._received > patience.total_bytes:
            raise Unanswered("the replies together are too large", "returned too much data")
        return _reply(raw)


def _reply(raw: bytes) -> bytes:
    try:
        reply = msgspec.json.decode(raw, type=_Reply)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise Unanswered("the reply is not in the expected format", "broke the connection to the judge") from None
    if reply.missing:
        raise MissingSolution("not attempted")
    if isinstance(reply.plain, msgspec.UnsetType):
        # One of two fixed texts: what the learner's process says of itself could hold a hidden value.
        kind = NO_VALUE if reply.kind == NO_PLAIN_VALUE else RAISED
        raise Unanswered((reply.failed or "it returned nothing")[:500], kind)
    return msgspec.json.encode(_plain(bytes(reply.plain)), order="sorted")


def _plain(raw: bytes) -> Plain:
    try:
        value: Plain = plain(msgspec.json.decode(raw))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError):
        raise Unanswered("the reply is not plain JSON", NO_VALUE) from None
    except NotPlain as error:
        raise Unanswered(f"it {error}", NO_VALUE) from None
    return value
