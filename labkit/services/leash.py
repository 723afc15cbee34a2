"""Starts a server in a session of its own; on a leash, it ends when whoever started it ends, however that dies.

    python -m labkit.services.leash tied|free LOG COMMAND...

Prints the server's process id. `free`: this process ends at once, and the server belongs to nobody. `tied`: it waits
until its standard input is closed, which the kernel does for a process that was killed, and then kills the server.
This module must not know what the server is.
"""

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress

_POLL = 0.2


def main(mode: str, log: str, *command: str) -> int:
    """Starts the command with its output appended to the log."""
    with open(log, "ab") as output:  # noqa: PTH123 - this process imports as little as it can
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a Ctrl-C is for whoever holds the leash; the server must not inherit it
    os.write(1, f"{server.pid}\n".encode())
    if mode == "free":
        server.returncode = 0  # it is nobody's child from now on, so there is nothing to wait for
        return 0
    os.close(1)
    return _hold(server)


def _hold(server: "subprocess.Popen[bytes]") -> int:
    """Waits for the end of the input or of the server; the server's session is empty afterwards."""
    while server.poll() is None:
        if select.select([0], [], [], _POLL)[0] and not os.read(0, 1):
            break
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    return server.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) and 1)
