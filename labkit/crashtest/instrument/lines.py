"""Traces the lines of the user's project that are about to be executed, in the threads of one call of the sink.

So a point can lie beside a statement whose library writes where no instrument sees it. Tracing uses `sys.settrace`,
which every Python has; code outside of the project runs untraced, but for one question for each function call. This
module must not decide what is done at a line.
"""

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from labkit.crashtest.project import Project, counts

Tracer = Callable[[FrameType, str, Any], Any]


class LineTracer:
    """Traces one call, from `start` to `stop`, which one thread calls; threads begun meanwhile are traced, too."""

    def __init__(self, project: Project, passed: Callable[[FrameType], None]) -> None:
        """`passed` is called before each line, in the thread that executes it."""
        self._project, self._passed = project, passed
        self._over = False

    def start(self) -> None:
        """Begins the trace with the next function call."""
        # The first is for threads that begin from now on, the second for this one.
        threading.settrace(self._called)
        sys.settrace(self._called)

    def stop(self) -> None:
        """Ends the trace, also in threads that outlive the call."""
        # Nobody can take the trace function from a thread that outlives the call, so
        # the function itself has to know.
        self._over = True
        sys.settrace(None)
        threading.settrace(None)

    def _called(self, frame: FrameType, _event: str, _argument: Any) -> Tracer | None:
        if self._over:
            return None
        file, project = frame.f_code.co_filename, self._project
        ours = file == project.file or counts(file, project.folders, project.more)
        imported = frame.f_code.co_name == "<module>"
        return self._executed if ours and not imported else None

    def _executed(self, frame: FrameType, event: str, _argument: Any) -> Tracer | None:
        if self._over:
            return None
        if event == "line":
            self._passed(frame)
        return self._executed
