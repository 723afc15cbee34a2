"""What the tests of several stores share: children to be killed, and a place to which nobody may write."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from labkit.stores import open_store

Killed = Callable[..., list[str]]


@pytest.fixture(autouse=True)
def reachable(every_store: None) -> None:
    """Every store of the registry can be opened."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "somewhere" / "store"


@pytest.fixture
def store(kind: str, place: Path) -> Iterator[Any]:
    with closing(open_store(kind, place)) as opened:
        yield opened


PRELUDE = """
import sys
from pathlib import Path
from labkit.core.records import Observation
from labkit.stores import open_store
from labkit.stores.contract import Handle

store = open_store(sys.argv[1], Path(sys.argv[2]))
first = int(sys.argv[3])
handle = Handle("q", 0, 0, 1, 1)

def row(offset):
    return Observation(offset, f"key {offset}", offset * 10, 0, 1)

def park():
    print("parked", flush=True)
    sys.stdin.read()
"""


@contextmanager
def child(code: str, kind: str, place: Path, first: int = 0) -> Iterator[subprocess.Popen[str]]:
    """A process that has opened the store and runs the code. It is killed at the latest when the block is left."""
    command = [sys.executable, "-c", PRELUDE + code, kind, str(place), str(first)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def killed() -> Killed:
    """Runs code in a child until it has printed a line that says `parked`, then kills it. Gives the lines before."""

    def run(code: str, kind: str, place: Path) -> list[str]:
        with child(code, kind, place) as process:
            lines = []
            for line in process.stdout:
                if line == "parked\n":
                    break
                lines.append(line)
            os.kill(process.pid, signal.SIGKILL)
            assert process.wait(timeout=30) == -signal.SIGKILL
            return lines

    return run


@pytest.fixture
def together() -> Callable[[str, str, Path, int], None]:
    """Runs the same code in several children at once, which all start when all are ready, to their end."""

    def run(code: str, kind: str, place: Path, children: int) -> None:
        gate = "print('ready', flush=True); sys.stdin.readline()\n"
        started = [child(gate + code, kind, place, first=number) for number in range(children)]
        processes = [one.__enter__() for one in started]
        try:
            for process in processes:
                assert process.stdout.readline() == "ready\n"
            for process in processes:
                process.stdin.write("go\n")
                process.stdin.flush()
            assert [process.wait(timeout=60) for process in processes] == [0] * children
        finally:
            for one in started:
                one.__exit__(None, None, None)

    return run


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that everybody can reach, which pytest's own is not, nor a temporary folder inside a private one."""
    places = map(Path, (tempfile.gettempdir(), "/tmp", "/var/tmp"))
    reached = next(place for place in places if all(over.stat().st_mode & 0o001 for over in (place, *place.parents)))
    with tempfile.TemporaryDirectory(dir=reached) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def forbidden() -> Callable[[Path], AbstractContextManager[None]]:
    """Makes a folder and its files read-only for a block. Root could write anyway, so it is somebody else meanwhile."""

    @contextmanager
    def block(folder: Path) -> Iterator[None]:
        for path in folder.iterdir():
            path.chmod(0o444)
        folder.chmod(0o555)
        is_root = os.geteuid() == 0
        if is_root:
            os.seteuid(65534)
        try:
            yield
        finally:
            if is_root:
                os.seteuid(0)
            folder.chmod(0o755)

    return block
