"""A driver's own end of its supervision: it reports events, takes orders, and ends its session without a supervisor.

This module must not know what the driver runs, and kills nothing but the driver's own session.
"""

import json
import os
import queue
import signal
import sys
from typing import Any

from labkit.host.processes.sessions import session_members


def report(event: str, **details: Any) -> None:
    """One event for the supervisor."""
    sys.stdout.write(json.dumps({"event": event, **details}) + "\n")
    sys.stdout.flush()


orders: "queue.SimpleQueue[dict[str, Any]]" = queue.SimpleQueue()
"""What the runner handed down on standard input, one JSON object a line."""


def die_with_supervisor() -> None:
    """When the supervisor's end of standard input closes, nobody is left who could kill this session: do it."""
    for order in sys.stdin.buffer:
        orders.put(json.loads(order))
    own, session = os.getpid(), os.getsid(0)
    while others := [pid for pid in session_members(session) if pid != own]:
        for pid in others:
            _kill(pid)
    _kill(own)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
