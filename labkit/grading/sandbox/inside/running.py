"""Executes one prepared notebook with papermill and reports its progress to the grader.

The messages are `{"cell": n}` when a cell starts, and at the end `{"ended": ...}`: `done` with the executed notebook,
or why the run ended early: `timeout`, `dead` (the kernel died), `output` (too much of it) or `failed`.
"""

import json
import os
import signal
import socket
from types import FrameType
from typing import Any, NoReturn

import nbformat
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill import execute_notebook
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines

from labkit.grading.sandbox.inside.frames import FrameError, receive, send
from labkit.grading.sandbox.inside.jobs import Limits
from labkit.grading.sandbox.inside.kernels import Waiting, manager_class

ENGINE = "labkit"
MOST_NOTEBOOK = 32 * 1024**2


class Telling:
    """Reports the progress of a notebook's execution to the grader over a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.cell = -1
        self.notebook: Any = None
        """The notebook under execution."""
        self.executed = ""
        """The executed notebook as JSON, without its last cell (`serving.CELL`); empty until that cell starts."""

    def starts(self, cell: object, cell_index: int) -> None:
        """Report that a cell starts. Before the last cell, which the grader has added, set the attribute `executed`."""
        self.cell = cell_index
        if cell is self.notebook.cells[-1]:
            answered = {**self.notebook, "cells": self.notebook.cells[:-1]}
            self.executed = nbformat.writes(nbformat.from_dict(answered))
        self.tell({"cell": cell_index})

    def tell(self, message: dict[str, object]) -> None:
        """Send a message to the grader; end this process if the grader has closed the connection."""
        try:
            send(self.connection, json.dumps(message).encode())
        except FrameError:
            os._exit(1)

    def end(self, how: str, **details: object) -> NoReturn:
        """Send the grader the last message, which says how the execution ended, and end this process."""
        self.tell({"ended": how, "at": self.cell, **details})
        os._exit(0)


def run(telling: Telling, waiting: Waiting, limits: Limits) -> NoReturn:
    """Receive a notebook from the grader, execute it with the forked kernel, and end this process."""

    class Client(PapermillNotebookClient):  # type: ignore[misc]  # papermill has no types
        """Papermill's client with a limit on the cells' output. After the last cell it ends the process it runs in."""

        shown = 0

        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            # A message of this type repeats the cell's source, which does not count as output.
            echoed = len(cell["source"]) if msg["header"].get("msg_type") == "execute_input" else 0
            self.shown += max(0, _size(msg["content"]) - echoed)
            if self.shown > limits.output:
                telling.end("output")
            return super().process_message(msg, cell, cell_index)

        def papermill_execute_cells(self) -> None:
            last = len(self.nb.cells) - 1
            telling.notebook = self.nb
            self.on_cell_start = telling.starts
            self.timeout_func = lambda cell: None if cell is self.nb.cells[last] else limits.cell_seconds
            try:
                super().papermill_execute_cells()
            # Reported at once, because Jupyter needs some time to end a kernel that does not answer.
            except CellTimeoutError:
                telling.end("timeout")
            except DeadKernelError:
                telling.end("dead")
            self.nb_man.notebook_complete()
            telling.end("done", executed=telling.executed)

    class Engine(NBClientEngine):  # type: ignore[misc]  # papermill has no types
        """Papermill's engine, which executes a notebook with `Client` and the forked kernel."""

        @classmethod
        def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **_: Any) -> None:
            manager = manager_class(waiting)
            Client(nb_man, kernel_manager_class=manager, kernel_name=kernel_name, allow_errors=True).execute()

    def look_at_kernel(_number: int, _frame: FrameType | None) -> None:
        if waiting.poll() is not None:
            telling.end("dead")

    # Noticed at once this way, because Jupyter's client looks for a dead kernel only once a second.
    signal.signal(signal.SIGCHLD, look_at_kernel)
    try:
        notebook = nbformat.from_dict(json.loads(receive(telling.connection, MOST_NOTEBOOK)))
        papermill_engines.register(ENGINE, Engine)
        execute_notebook(
            notebook, None, engine_name=ENGINE, kernel_name="python3", progress_bar=False, autosave_cell_every=0
        )
    # Any error must be reported to the grader, and this process must end.
    except BaseException as error:
        telling.end("failed", because=f"{type(error).__name__}: {error}"[:500])
    telling.end("failed", because="papermill returned, but the run did not report its end")


def _size(content: object) -> int:
    """Return roughly how many characters the content of a kernel's message displays."""
    if isinstance(content, str):
        return len(content)
    if isinstance(content, dict):
        return sum(_size(part) for part in content.values())
    if isinstance(content, list):
        return sum(_size(part) for part in content)
    return 8
