"""Tests whether this machine offers a level of isolation: builds a sandbox and starts Python in it.

    python -m labkit.grading.sandbox.inside.probe CONNECTION JOB

It sends `works` or the error over CONNECTION, the file descriptor of an open socket. It never runs a learner's code.
"""

import os
import socket
import sys

import msgspec

from labkit.grading.sandbox.inside import confine
from labkit.grading.sandbox.inside.frames import send
from labkit.grading.sandbox.inside.jobs import Job
from labkit.host.processes.own_python import own_python

_TRIED = "import labkit.core.errors, ipykernel, zmq, os; os.write(1, b'works')"


def main(number: str, job: str) -> int:
    """In a child process, build the sandbox of `job` (JSON); send `works` or an error over a socket.

    `number` is the socket's file descriptor.
    """
    connection = socket.socket(fileno=int(number))
    pid = os.fork()  # a process with threads may not leave its user namespace
    if pid == 0:
        send(connection, _tried(msgspec.json.decode(job, type=Job)).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    return 0


def _tried(job: Job) -> str:
    """Build the sandbox and start Python in it; return `works` or an error message."""
    reader, writer = os.pipe()
    try:
        confine.separate(job)
    except OSError as error:
        return str(error)
    pid = os.fork()
    if pid == 0:
        try:
            confine.confine(job)
            os.write(writer, _python(job.environment).encode())
        except OSError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    return os.read(reader, 4096).decode(errors="replace")


def _python(environment: dict[str, str]) -> str:
    """Start Python in this sandbox; return `works` or an error message."""
    import subprocess

    try:
        process = subprocess.run(
            own_python("-c", _TRIED), env=environment, capture_output=True, timeout=50, cwd="/", check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"Python does not start in the sandbox: {error}"
    if process.stdout == b"works":
        return "works"
    lines = process.stderr.decode(errors="replace").strip().splitlines()
    return f"Python does not start in the sandbox: {lines[-1] if lines else process.returncode}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
