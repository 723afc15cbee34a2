"""Turns of real runs: so many at a time, in the order of arrival, and given back by whoever dies."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from waiting import until

from labkit.core.errors import InvalidInput
from labkit.crashtest.campaigns import campaign_of
from labkit.crashtest.settings import settings
from labkit.host.turns import FOLDER, VARIABLE, Rank, Turns, turn, turns
from labkit.runs.conduct import conduct
from labkit.runs.prepare import prepare
from labkit.runs.scenario import plan

HOLDS = """
import os, sys, time
from labkit.host.turns import turn
os.umask(0o077)
os.setuid(int(sys.argv[1]))
with turn(print):
    print("has it", flush=True)
    time.sleep(1000)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of one turn at a time."""
    monkeypatch.setenv(VARIABLE, f"1:{tmp_path}/turns")
    return tmp_path / "turns"


def refuses(ahead: int) -> None:
    raise AssertionError(f"{ahead} come first")


class Waiter:
    """A thread that waits for its turn, and then notes its name."""

    def __init__(self, name: str, had: list[str], rank: Rank = Rank.RUN) -> None:
        self.ahead: list[int] = []

        def run() -> None:
            with turn(self.ahead.append, rank):
                had.append(name)

        self.thread = threading.Thread(target=run)
        self.thread.start()
        until(lambda: bool(self.ahead), f"{name} waits")


@contextmanager
def other_process(user: int = os.getuid(), says: str = "has it") -> Iterator["subprocess.Popen[str]"]:
    """Another process that has the turn, or waits for it and says how many come first."""
    command = [sys.executable, "-P", "-c", HOLDS, str(user)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == f"{says}\n"
            yield process
        finally:
            process.kill()


def test_turns_are_had_in_the_order_of_arrival_and_preparations_last(folder: Path) -> None:
    had: list[str] = []
    with turn(refuses):
        waiters = [
            Waiter("prepares", had, Rank.PREPARATION), Waiter("first", had), Waiter("second", had)
        ]  # fmt: skip
        assert [each.ahead[0] for each in waiters] == [1, 1, 2]
        assert had == []
    for each in waiters:
        each.thread.join(20)
    assert had == ["first", "second", "prepares"]
    assert list(folder.iterdir()) == []


def test_as_many_as_are_allowed_have_a_turn_at_a_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, f"2:{folder}")
    with turn(refuses), turn(refuses), pytest.raises(AssertionError, match="1 come first"), turn(refuses):
        pass
    assert list(folder.iterdir()) == []


def test_a_process_that_is_killed_gives_its_turn_back(folder: Path) -> None:
    with other_process() as holder:
        waiter = Waiter("next", had := [])
        holder.kill()
        waiter.thread.join(20)
        assert had == ["next"]
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start the process of another user")
def test_users_wait_for_each_other_whatever_their_umask(monkeypatch: pytest.MonkeyPatch) -> None:
    # Beside the usual folder, and not below one that only root may enter, as TMPDIR may be.
    place = Path(tempfile.mkdtemp(prefix="labkit-turns-", dir=FOLDER.parent))
    try:
        place.chmod(0o755)
        monkeypatch.setenv(VARIABLE, f"1:{place}/turns")
        with turn(refuses):
            pass
        with other_process(user=65534) as holder:
            with pytest.raises(AssertionError, match="1 come first"), turn(refuses):
                pass
            holder.kill()
            holder.wait()
            with turn(refuses):
                pass
        with other_process(), other_process(user=65534, says="1"):
            pass
    finally:
        shutil.rmtree(place)


def test_others_may_look_at_a_ticket_whatever_the_umask_is(folder: Path) -> None:
    before = os.umask(0o077)
    try:
        with turn(refuses):
            (ticket,) = folder.iterdir()
            assert (stat.S_IMODE(ticket.stat().st_mode), stat.S_IMODE(folder.stat().st_mode)) == (0o444, 0o1777)
    finally:
        os.umask(before)


def test_a_run_waits_for_its_turn_and_may_be_cancelled_meanwhile(folder: Path, tmp_path: Path) -> None:
    events: list[object] = []

    class Cancelled(Exception):
        pass

    def beat() -> None:
        if events:
            raise Cancelled

    with turn(refuses), pytest.raises(Cancelled):
        conduct([prepare(plan(), tmp_path / "run")], tmp_path / "scratch", events.append, heartbeat=beat)
    assert [str(each) for each in events] == ["Waits(ahead=1)"]
    assert list(folder.iterdir()) == []


def test_the_crash_test_of_a_sink_waits_before_it_starts_a_session(folder: Path, tmp_path: Path) -> None:
    said: list[str] = []

    def tell(_what: str, text: str) -> None:
        said.append(text)
        raise KeyboardInterrupt

    wanted = settings("data/sinks/right_marker.py:write_batch", reader="data/sinks/right_marker.py:read")
    with turn(refuses), pytest.raises(KeyboardInterrupt), campaign_of(wanted, tmp_path / "out", tell):
        pass
    assert said == ["waiting for a turn on this machine: 1 run(s) come first"]
    assert list(folder.iterdir()) == []


def test_without_the_variable_nobody_waits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    with turn(refuses), turn(refuses):
        assert not folder.exists()


@pytest.mark.parametrize("text", ["0", "two", "-1", "2:turns", "1000", "2:"])
def test_another_form_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(InvalidInput, match=rf"LABKIT_TURNS={text}: .*write how many runs.*LABKIT_TURNS=2:/srv/turns"):
        turns()


def test_the_folder_has_a_default() -> None:
    assert turns({VARIABLE: " 3 "}) == Turns(3)


@pytest.mark.parametrize("kind", ["link", "file", "missing"])
def test_a_folder_that_cannot_be_used_is_refused(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "link":
        folder.symlink_to("/")
    elif kind == "file":
        folder.touch()
    else:
        monkeypatch.setenv(VARIABLE, f"1:{folder}/a/b")
    with (
        pytest.raises(InvalidInput, match=r"cannot be used .*name a folder that every user may write to"),
        turn(refuses),
    ):
        pass
