"""Kills a sandbox whose processes together use too much memory, too many processes or too many sockets.

The kernel's own limits are not enough, because they apply to each process separately.
"""

import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil

from labkit.grading.sandbox.inside.jobs import Limits

_EVERY = 0.25
_BUFFER = Path("/proc/sys/net/core/wmem_max")
_USUAL_BUFFER = 212_992
_FEWEST_SOCKETS = 128
"""The number of sockets that a sandbox may always have; a Jupyter kernel and its clients need about thirty."""
_HEADROOM = 8
"""The number of processes that the sandbox itself needs in addition to those of the learner."""


class Watch:
    """A context manager that kills all descendants of process `pid` if together they exceed a limit.

    The limits are checked four times a second. Afterwards `breach` is the exceeded limit, `processes` or `memory`, or
    None. Too many sockets count as `memory`, because their buffers take memory.
    """

    def __init__(self, pid: int, limits: Limits) -> None:
        self.breach: str | None = None
        self._root, self._limits = psutil.Process(pid), limits
        self._most_sockets = _most_sockets(limits)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._over.wait(_EVERY):
            with suppress(psutil.Error):
                children = self._root.children(recursive=True)
                self.breach = self.breach or self._look(children)
                if self.breach:
                    for child in children:
                        with suppress(psutil.Error):
                            child.kill()

    def _look(self, children: list[psutil.Process]) -> str | None:
        if len(children) > self._limits.processes + _HEADROOM:
            return "processes"
        # The memory of socket buffers belongs to no process, so a limit on the number of sockets limits it.
        if _sockets(child.pid for child in children) > self._most_sockets:
            return "memory"
        if sum(_resident(child) for child in children) <= self._limits.total_memory:
            return None
        # The quick sum counts a shared page once for each process, so only a slower, exact sum may end a run.
        return "memory" if sum(_own(child) for child in children) > self._limits.total_memory else None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def _resident(process: psutil.Process) -> int:
    with suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0


def _own(process: psutil.Process) -> int:
    with suppress(psutil.Error):
        memory = process.memory_full_info()
        return int(getattr(memory, "pss", memory.rss))
    return 0


def _most_sockets(limits: Limits) -> int:
    """Return how many sockets a sandbox may open, so that their buffers take at most a quarter of its memory."""
    buffer = _USUAL_BUFFER
    with suppress(OSError, ValueError):
        buffer = max(buffer, int(_BUFFER.read_text(encoding="ascii")))
    most = limits.total_memory // 4 // (2 * buffer)
    return max(_FEWEST_SOCKETS, min(limits.sockets, most))


def _sockets(pids: Iterable[int]) -> int:
    sockets = set()
    for pid in pids:
        folder = f"/proc/{pid}/fd"
        with suppress(OSError):
            for number in os.listdir(folder):  # noqa: PTH208 - some thousand names, four times a second
                with suppress(OSError):
                    target = os.readlink(f"{folder}/{number}")  # noqa: PTH115 - the same
                    if target.startswith("socket:"):
                        sockets.add(target)
    return len(sockets)
