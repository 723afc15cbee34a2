"""Answers the grader's questions with the values of the learner's names, in the last cell of a graded notebook.

A separate forked process serves each exercise, so a function that ends or damages its process affects no other
exercise. Only plain values leave the sandbox. A learner's code can replace this module, but thereby it only gives other
answers.
"""

import json
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from labkit.core.errors import MissingSolution
from labkit.grading.sandbox.inside.frames import FrameError, receive, send
from labkit.teach.exercises.contract import NotPlain, error_text, listed, plain
from labkit.teach.exercises.steps import step

CELL = "from labkit.grading.sandbox.inside import serving as _serving\n_serving.serve()"
"""The source of the last cell."""
KEEP = (
    "# A later cell of the notebook uses the name of this answer, so the answer is kept.\n"
    "from labkit.grading.sandbox.inside import serving as _serving\n_serving.keep({!r})"
)
"""The source of a cell that keeps an answer whose name a later cell rebinds; `format` inserts the name."""
MOST_QUESTION = 1 << 20

connections: list[tuple[str, socket.socket]] = []
"""By exercise, the answer's Python name and the connection for questions about it; set before the kernel starts."""
_kept: dict[str, Any] = {}
_MISSING = object()


def keep(name: str) -> None:
    """Store the current value of the learner's variable `name`, so that `serve` can answer questions about it."""
    _kept[name] = _names().get(name, _MISSING)


def _names() -> dict[str, Any]:
    # Imported here, because the grader's own processes import this module without needing IPython.
    from IPython import get_ipython

    names: dict[str, Any] = get_ipython().user_ns
    return names


def serve() -> None:
    """Answer the grader's questions, one exercise after the other, until the grader has closed every connection."""
    names = _names()
    for name, connection in connections:
        dead, alive = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(dead)
            _serve_one(names, name, connection)
        os.close(alive)
        _until_over(connection, dead)
        os.close(dead)
        connection.close()
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _until_over(connection: socket.socket, dead: int) -> None:
    """Wait until the grader has closed the connection, or the process that answers has ended.

    `dead` is the read end of a pipe. The process that answers holds the other end, so the pipe closes when it ends.
    """
    poll = select.poll()
    # Without POLLRDHUP (outside Linux) poll still reports a hang-up.
    poll.register(connection, getattr(select, "POLLRDHUP", 0))
    poll.register(dead, 0)
    poll.poll()


def _serve_one(names: dict[str, Any], name: str, connection: socket.socket) -> None:
    if name in _kept and (kept := _kept[name]) is not _MISSING:
        names[name] = kept
    elif name in _kept:
        names.pop(name, None)
    try:
        _silence()
        while True:
            # A message is one question, or a line with the number of the first question and a line for each question.
            head, *questions = receive(connection, MOST_QUESTION).split(b"\n")
            if not questions:
                send(connection, json.dumps(_reply(names, name, json.loads(head))).encode())
            # Each reply is sent before the next question is asked, because that question may end this process.
            for number, question in enumerate(questions, json.loads(head)["first"] if questions else 0):
                reply = {"at": number, **_reply(names, name, json.loads(question))}
                send(connection, json.dumps(reply).encode())
    except (FrameError, ValueError):
        pass  # the grader has closed the connection
    finally:
        os._exit(0)


def _silence() -> None:
    # A learner's function may print its arguments, which may be hidden values.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - it ends with the process


def _reply(names: Mapping[str, Any], name: str, question: dict[str, Any]) -> dict[str, Any]:
    try:
        if "hello" in question:
            return {"plain": True}
        if name not in names:
            return {"failed": f"{name} is not defined: its cell failed, or defines another name"}
        answer = names[name]
        arguments = question.get("arguments", question.get("steps"))
        if answer is not ... and arguments is not None:
            if not callable(answer):
                kind = type(answer).__name__[:60]
                raise NotPlain(f"is not a function, but of type {kind}")
            answer = step(answer, *arguments) if "steps" in question else listed(answer(*arguments))
        return {"plain": plain(answer)}
    except (NotImplementedError, MissingSolution):
        return {"missing": True}
    except NotPlain as error:
        return {"failed": f"{name} {error}", "kind": "no plain value"}
    except BaseException as error:  # every error of the learner's code is an answer, also SystemExit
        return {"failed": f"{name} raised {error_text(error)}", "kind": type(error).__name__[:60]}
