"""A zygote: a process that has imported slow modules and forks each Python process that Spark needs for a query.

For every query, Spark starts new Python processes: the runners of its source and of transformWithState
(StreamingPythonRunner), and the daemons that fork its workers (PythonWorkerFactory). Each would import for half a
second. Here Spark starts `launcher.py` instead, which passes its environment and its standard streams to the zygote.
The zygote forks, and the child runs the module as `python -m` would, with the hash seed that Spark would set.

Switch: `zygote` in LABKIT_FAST. On a busy machine a restart took 29 s from SIGKILL to the commit, and 50 s without.

The zygote is in the driver's process session, so it is killed together with the driver; it also ends when the pipe from
the driver closes.
"""

import gc
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from labkit.host.processes.own_python import own_python
from labkit.spark.fast.daemon import EVERY_WORKER, STATEFUL
from labkit.spark.jvm import own_interpreter

RUNNERS = (
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.streaming.transform_with_state_driver_worker",
)
DAEMONS = ("pyspark.daemon", "labkit.spark.fast.daemon")
FORKED = (*RUNNERS, *DAEMONS)
"""The modules that a zygote runs in a fork of itself; the launcher runs every other module in a plain interpreter."""

LONGEST = 100
"""The greatest length of the path of the zygote's socket, in bytes; the kernel allows 108."""

SOCKET = "LABKIT_ZYGOTE"
"""The environment variable that contains the path of the zygote's socket."""


def interpreter(scratch: Path) -> dict[str, str]:
    """Start a zygote: a process that has imported slow modules and forks itself for each Python process of Spark.

    Returns the environment variables that make a JVM start its Python processes through the zygote. If the path
    `scratch` is too long for a socket, the function starts nothing and returns an empty dict.
    """
    place = scratch / "zygote"
    if len(os.fsencode(place)) > LONGEST:
        return {}
    program = own_interpreter(scratch, [sys.executable, "-IS", str(Path(__file__).with_name("launcher.py"))])
    # The socket of an earlier process in this folder would make the bind fail, although nobody listens there any more.
    place.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        # Bound here and inherited by the zygote, so that a request can already wait while the zygote imports.
        listener.bind(str(place))
        listener.listen(64)
        command = own_python("-m", "labkit.spark.fast.zygote", str(listener.fileno()))
        pipe, kept = subprocess.PIPE, [listener.fileno()]
        seeded = {"PYTHONHASHSEED": "0", **os.environ}  # Spark sets the same seed for every worker
        process = subprocess.Popen(command, stdin=pipe, pass_fds=kept, cwd=scratch, env=seeded)
    _kept.append(process)
    settings = {SOCKET: str(place), "LABKIT_PYTHON": sys.executable, "LABKIT_FORKED": " ".join(FORKED)}
    return settings | program


_kept: list["subprocess.Popen[bytes]"] = []
"""The zygotes that this process has started. Each ends when its standard input closes, that is with this process."""


def serve(listener: socket.socket) -> None:
    """Fork a child process for every connection to the listener, until standard input closes."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks for a child's exit code
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        selector.register(sys.stdin.buffer, selectors.EVENT_READ)
        while True:
            if any(key.fileobj is not listener for key, _ in selector.select()):
                return
            connection, _ = listener.accept()
            if os.fork() == 0:
                # Otherwise a child that outlives the zygote would keep the socket open, and nobody would answer.
                listener.close()
                _become(connection)
            # The launcher waits until this connection closes, so only the child may hold it.
            connection.close()


def _become(connection: socket.socket) -> None:
    """In a forked child, run the Python module that a request on the connection names, then end the process."""
    # While SIGCHLD is ignored, a program cannot get the exit codes of its own children.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as request:
        words, environment, folder = json.loads(request.read())
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # Cleared first, because the zygote's variables may be those of another query.
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = words
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()  # otherwise a forked child would repeat its parent's random numbers
    code = 0
    try:
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # The inherited exit handlers and buffers belong to the zygote, so no child may run or flush them again.
        os._exit(code & 0xFF)


if __name__ == "__main__":
    for name in (*EVERY_WORKER, *STATEFUL, *RUNNERS, "pyspark.daemon"):
        import_module(name)
    # Hides imported objects from the garbage collector, so that a child's first collection does not copy their pages.
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
