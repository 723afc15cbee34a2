"""Limits how many runs are under way at a time on a machine that several learners share: first come, first served.

LABKIT_TURNS=2 allows two at a time, for all users who share the queue's folder; without it no run waits. A turn is a
file that its process locks (flock), so a process that dies gives its turn back, even after SIGKILL. Sorted by name, the
files are in this order: runs that have their turn, then runs in the order of their arrival, then preparations, such as
drivers that are started in advance, which begin only while no run waits.
"""

import fcntl
import itertools
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from labkit.core.errors import InvalidInput

VARIABLE = "LABKIT_TURNS"
FOLDER = Path("/tmp/labkit-turns")  # noqa: S108  # for all users of the machine, and opened with care
_FORM = re.compile(r"([1-9][0-9]{0,2})(?::(/.+))?")
_POLL = 0.2
"""The seconds between two checks whether a waiting run may start."""
_serial = itertools.count()


class Rank(StrEnum):
    """The priority of a run in the queue, as the first character of its file's name; smaller characters go first."""

    HAS_TURN = "0"
    RUN = "1"
    PREPARATION = "2"
    """Work that makes a later run faster, such as starting a Spark driver in advance."""


@dataclass(frozen=True)
class Turns:
    """The limit on simultaneous runs that LABKIT_TURNS sets: how many runs, and the folder of the queue."""

    most: int
    folder: Path = FOLDER


def turns(environment: Mapping[str, str] | None = None) -> Turns | None:
    """Return the limit that LABKIT_TURNS sets, such as `2` or `2:/srv/turns`; None if it is not set.

    `environment` replaces `os.environ`. Raises `InvalidInput` if the variable has another form.
    """
    text = (os.environ if environment is None else environment).get(VARIABLE, "").strip()
    if not text:
        return None
    if not (form := _FORM.fullmatch(text)):
        raise InvalidInput(
            f"LABKIT_TURNS={text[:60]}: this limit on simultaneous runs is malformed; write how many runs may be under "
            "way at a time, from 1 to 999. A colon and a folder for their queue may follow, as in "
            "LABKIT_TURNS=2:/srv/turns."
        )
    return Turns(int(form[1]), Path(form[2]) if form[2] else FOLDER)


@contextmanager
def turn(waits: Callable[[int], None], rank: Rank = Rank.RUN) -> Iterator[None]:
    """Wait until LABKIT_TURNS allows another run on this machine. The run lasts as long as the `with` block.

    During the wait, `waits` is called several times a second with the number of runs that must end first. If `waits`
    raises an exception, the run leaves the queue. `rank` is the run's priority. Raises `InvalidInput` if LABKIT_TURNS
    is malformed or its folder cannot be used.
    """
    limit = turns()
    if limit is None:
        yield
        return
    try:
        ticket = _Ticket(limit, rank)
    except OSError as error:
        raise InvalidInput(
            f"LABKIT_TURNS: {limit.folder} cannot be used ({error.strerror}); name a folder that every user may write "
            f"to, as in LABKIT_TURNS={limit.most}:/srv/turns."
        ) from None
    try:
        while (ahead := ticket.take()) > 0:
            waits(ahead)
            time.sleep(_POLL)
        yield
    finally:
        ticket.give_back()


class _Ticket:
    """A run's place in the queue: a file that is locked. Raises `OSError` if the queue's folder cannot be used."""

    def __init__(self, limit: Turns, rank: Rank) -> None:
        self._most = limit.most
        with suppress(FileExistsError):
            limit.folder.mkdir()
            limit.folder.chmod(0o1777)
        # The monotonic clock is one for all processes of a machine, so names are in the order of arrival.
        self._name = f"{rank}-{time.monotonic_ns():020}-{os.getpid()}-{next(_serial)}"
        with ExitStack() as stack:
            # Never through a link, which another user could point at a folder of this process's user.
            self._queue = os.open(limit.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            stack.callback(os.close, self._queue)
            with self._gate():
                flags = os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                lock = os.open(self._name, flags, 0o444, dir_fd=self._queue)
                stack.callback(os.close, lock)
                os.fchmod(lock, 0o444)  # whatever the umask is, because other users have to check the lock
                fcntl.flock(lock, fcntl.LOCK_EX)
            self._opened = stack.pop_all()

    def give_back(self) -> None:
        with self._opened, suppress(OSError):
            os.unlink(self._name, dir_fd=self._queue)

    def take(self) -> int:
        """Start the run if LABKIT_TURNS allows it, and return 0; otherwise return how many runs must end first."""
        with self._gate():
            names = os.listdir(self._queue)  # noqa: PTH208  # of a folder that is only known by its descriptor
            ahead = sum(self._is_alive(name) for name in names if name < self._name)
            if ahead < self._most:
                taken = f"{Rank.HAS_TURN}{self._name[1:]}"
                os.rename(self._name, taken, src_dir_fd=self._queue, dst_dir_fd=self._queue)
                self._name = taken
            return max(ahead - self._most + 1, 0)

    @contextmanager
    def _gate(self) -> Iterator[None]:
        fcntl.flock(self._queue, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._queue, fcntl.LOCK_UN)

    def _is_alive(self, name: str) -> bool:
        """Return whether the process that queues with the file `name` is alive. If it is dead, delete the file."""
        if name[:1] not in {*Rank}:
            return False
        with suppress(OSError):
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._queue)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            finally:
                os.close(descriptor)
            os.unlink(name, dir_fd=self._queue)
        return False
