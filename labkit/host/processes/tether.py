"""Something that ends with the process that asked for it, even if that is killed by SIGKILL.

    with watched("labkit.host.servers.tethered", "kafka") as told: ...      the asking process
    hold(begin, end)                                                the watcher, `python -m` that module

A watcher, in a session of its own, begins something, says where it is, and then waits at a pipe whose other end only
the asking process holds. The kernel closes that end whatever the process dies of; then the watcher ends what it began.
This module must not know what that is, and whoever uses it must not keep anything there that anybody wants later.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from labkit.core.errors import LabError, ServiceUnavailable


@contextmanager
def watched(module: str, *arguments: str) -> Iterator[dict[str, Any]]:
    """What a watcher began, for a block; what it told, and its process id as `watcher`.

    Raises `ServiceUnavailable` with the watcher's reason when it could not begin.
    """
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as watcher:
        assert watcher.stdin is not None
        assert watcher.stdout is not None
        try:
            told = json.loads(
                watcher.stdout.readline()
                or '{"because": "Its watcher died while it began."}'
            )
            if "because" in told:
                raise ServiceUnavailable(told["because"])
            yield {**told, "watcher": watcher.pid}
        finally:
            watcher.stdin.close()


def hold(begin: Callable[[], Mapping[str, object]], end: Callable[[], object]) -> None:
    """Begins, tells, and ends when the pipe closes, or at once when it could not begin."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a Ctrl-C is for whoever asked
    try:
        try:
            told = dict(begin())
        except (LabError, OSError) as error:
            told = {"because": str(error)}
        with suppress(BrokenPipeError):
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()
        sys.stdin.buffer.read()
    finally:
        end()
