"""Traces the source lines of the user's project that are about to be executed during one call of the sink.

With these, a crash point can lie next to a statement whose library writes in a way that no wrapper records. Tracing
uses `sys.settrace`; code outside of the project pays only for one check at each function call.
"""

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from labkit.crashtest.project import Project, counts

Tracer = Callable[[FrameType, str, Any], Any]


class LineTracer:
    """Traces the source lines of one call of the sink, from `start` to `stop`, also in threads that begin meanwhile."""

    def __init__(self, project: Project, passed: Callable[[FrameType], None]) -> None:
        """Prepare the trace; `passed` is called before each line of the project, in the thread that
        executes the line.
        """
        self._project, self._passed = project, passed
        self._over = False

    def start(self) -> None:
        """Begin to trace in this thread, from its next function call on, and in all threads that begin later."""
        # The first is for threads that begin from now on, the second for this one.
        threading.settrace(self._called)
        sys.settrace(self._called)

    def stop(self) -> None:
        """End the trace in this thread, and in threads that outlive the call of the sink."""
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
