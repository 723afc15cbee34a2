"""Which real programs can go on while one of their threads is held: the order of the others is left to chance."""

import subprocess
import sys
from pathlib import Path

import pytest
from watched_programs import output_of, shell

from labkit.host.syscalls.calls import Answer, Call, CallKind
from labkit.host.syscalls.waiting import others_can_go_on

pytestmark = pytest.mark.usefixtures("watched_calls")

THREAD = (
    "import pathlib, threading, time; w = threading.Thread(target=pathlib.Path('made').touch, daemon=True); w.start(); "
)
POOL = (
    "import pathlib; from concurrent.futures import ThreadPoolExecutor as Pool\n"
    "with Pool(2) as pool: list(pool.map(lambda n: pathlib.Path(n).touch(), ['made']))"
)
SOCKET = (
    "import os, pathlib, socket, threading; a, b = socket.socketpair(); "
    "touch = lambda: (pathlib.Path('made').touch(), b.send(b'1')); "
    "threading.Thread(target=touch).start(); os.read(a.fileno(), 1)"
)
PROGRAMS = {
    "touch made; touch end": False,
    "(touch made); touch end": False,
    "touch made & wait; touch end": False,
    "echo 1 | (read line; touch made); touch end": False,
    "touch made & sleep 0.3; touch end": True,
    f'{sys.executable} -c "{THREAD}w.join()"': False,
    f'{sys.executable} -c "{THREAD}w.join(60)"': True,
    f'{sys.executable} -c "{THREAD}time.sleep(0.3)"': True,
    f'{sys.executable} -c "{POOL}"': False,
    f'{sys.executable} -c "{SOCKET}"': True,  # a server may send something
    f"{sys.executable} -c \"import subprocess; subprocess.run(['touch', 'made'])\"": False,
    f"{sys.executable} -c \"import subprocess; subprocess.run(['touch', 'made'], timeout=60)\"": True,
}


@pytest.mark.parametrize("command", PROGRAMS)
def test_others_can_go_on_only_if_they_do_not_wait_without_a_limit(command: str, place: Path) -> None:
    seen = []

    def decide(call: Call) -> Answer:
        if call.kind is CallKind.CREATE and call.path.endswith("/made"):
            seen.append(others_can_go_on(call.pid, call.process))
        return Answer.GO_ON

    ended, _ = shell(place, command, decide)
    assert ended.status == 0, output_of(place).read_text()
    assert seen == [PROGRAMS[command]]


def hold(call: Call) -> Answer:
    return Answer.HOLD if call.path.endswith("/made") else Answer.GO_ON


def test_a_call_that_is_held_happens_never_and_the_others_go_on(place: Path) -> None:
    def tick() -> Answer:
        return Answer.KILL if (place / "after").exists() else Answer.GO_ON

    ended, _ = shell(place, "touch made & touch before; touch after; sleep 60", hold, tick=tick)
    assert ended.held.path.endswith("/made")
    assert not (place / "made").exists()
    assert (place / "before").exists()
    assert ended.emptied.left == []
    assert subprocess.run(["pgrep", "-f", "touch made & touch before"], check=False).returncode == 1


def test_a_held_process_that_its_program_ends_was_not_held_at_the_kill(place: Path) -> None:
    ended, _ = shell(place, "touch made & sleep 0.2; kill -9 $!; wait $!; touch after", hold)
    assert ended.held is None
    assert ended.status == 0
    assert [each.name for each in place.iterdir()] == ["after"]
