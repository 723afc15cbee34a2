"""Start a server in its own session; a tethered server ends when the process that asked for it ends, even by SIGKILL.

    python -m labkit.host.processes.start_server tethered|detached LOG COMMAND...

It prints the server's process id. With `detached`, this process ends at once, and the server runs on without a parent.
With `tethered`, this process waits, and the server's whole session ends with the process that asked for it
(labkit.host.processes.tether).
"""

import subprocess
import sys
from typing import Literal

import msgspec

from labkit.host.processes import wire
from labkit.host.processes.sessions import empty_session
from labkit.host.processes.tether import serve_tethered

_END_SECONDS = 30.0

Mode = Literal["tethered", "detached"]


class ServerStarted(msgspec.Struct, frozen=True):
    """The line of JSON by which this program reports the process id of the server that it started."""

    pid: int


def main(mode: str, log: str, *command: str) -> None:
    """Start a server by `command`, with its output appended to the file `log`, and print the server's process id.

    If `mode` is "detached", return at once, and the server runs on. If it is "tethered", wait until the process that
    asked for the server ends, and then end the server.
    """
    with open(log, "ab") as output:  # noqa: PTH123 - this process imports as little as it can
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    started = ServerStarted(server.pid)
    if mode == "detached":
        server.returncode = 0  # so that Python does not warn about a child that still runs
        wire.write(1, wire.encode(started))
        return

    def end() -> None:
        empty_session(server.pid, _END_SECONDS)
        server.wait()

    serve_tethered(lambda: started, end)


if __name__ == "__main__":
    main(*sys.argv[1:])
