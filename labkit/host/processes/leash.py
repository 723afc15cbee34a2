"""Starts a server in a session of its own; on a leash, it ends when whoever started it ends, however that dies.

    python -m labkit.host.processes.leash tied|free LOG COMMAND...

Tells the server's process id. `free`: this process ends at once, and the server belongs to nobody. `tied`: the whole
session of the server ends with the asking process (labkit.host.processes.tether). This module must not know what the
server is.
"""

import json
import os
import subprocess
import sys

from labkit.host.processes.sessions import empty_session
from labkit.host.processes.tether import hold

_END_SECONDS = 30.0


def main(mode: str, log: str, *command: str) -> None:
    """Starts the command with its output appended to the log."""
    with open(log, "ab") as output:  # noqa: PTH123 - this process imports as little as it can
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    told = {"pid": server.pid}
    if mode == "free":
        server.returncode = (
            0  # it is nobody's child from now on, so there is nothing to wait for
        )
        os.write(1, f"{json.dumps(told)}\n".encode())
        return

    def end() -> None:
        empty_session(server.pid, _END_SECONDS)
        server.wait()

    hold(lambda: told, end)


if __name__ == "__main__":
    main(*sys.argv[1:])
