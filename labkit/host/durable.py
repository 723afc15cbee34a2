"""Files that hold their old content or their new one, whatever dies in between; and lines that are whole or not there.

SIGKILL loses nothing that the kernel was handed; fsync is for the loss of power. This module must not know what it
writes. Only `explained` turns an `OSError` into a sentence; everything else here lets it pass.
"""

import errno
import fcntl
import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from labkit.core.errors import InvalidInput, JobFailed, LabError

_TEMPORARY = re.compile(r"\..+\.\d+-\d+\.tmp")
_TORN = b" <- torn\n"
"""What ends a line that its dead writer did not end; no line of JSON ends like this."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
_MISPLACED = (errno.ENOTDIR, errno.EISDIR, errno.EEXIST)

_serial = itertools.count()


def temporary(path: Path) -> Path:
    """A name beside `path` that no other writer uses, in this process or another: `.NAME.PID-SERIAL.tmp`."""
    return path.with_name(f".{path.name}.{os.getpid()}-{next(_serial)}.tmp")


def is_temporary(path: Path) -> bool:
    """Whether `temporary` made this name: a file that counts for nothing once its writer is dead."""
    return _TEMPORARY.fullmatch(path.name) is not None


def replace(path: Path, content: bytes | str) -> None:
    """Gives the file this content, all of it or none; text is UTF-8. When this returns, it survives a loss of power.

    Of several writers at once the last one wins. Raises `OSError`, and then leaves no temporary file behind.
    """
    draft = temporary(path)
    try:
        with draft.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            # Content first, then the name: a rename that reaches the disk before the
            # content would leave an empty file after a loss of power.
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        # Behind this block nothing is left to be taken back: the name is in place, and
        # may only be lost to a loss of power.
        raise
    sync_folder(path.parent)


def make_folder(path: Path) -> None:
    """Makes the folder and those above it that are missing; that it is there survives a loss of power."""
    if path.is_dir():
        return
    # From the top down, each synced in the folder above it: a folder whose own name is
    # lost takes all that is in it along.
    make_folder(path.parent)
    # Another process may make it between the look and here, and that is as good.
    path.mkdir(exist_ok=True)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Makes the names in a folder durable: what was created, renamed or removed in it. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Holds the folder's lock between processes and threads; the death of its holder releases it.

    Raises `BlockingIOError` where somebody else holds the lock, if this is not to wait.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # The folder itself is locked, so no lock file is left behind, and the kernel
        # releases the lock of a process that was killed.
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)


@contextmanager
def own_folder(place: Path, prefix: str) -> Iterator[Path]:
    """A folder in a place, for a block; those of processes that were killed go. Whoever holds a folder's lock lives."""
    # Under one lock for all here: between the making of a folder and its own lock
    # another process would sweep it away as that of a dead one.
    with locked(place):
        for left in place.glob(f"{prefix}*"):
            with suppress(OSError), locked(left, wait=False):
                shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        held = ExitStack()
        held.enter_context(locked(folder))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        held.close()


def open_for_append(path: Path) -> int:
    """A descriptor for `append_line`; the file is made if it is missing. The caller closes it."""
    # To be read, too: `append_line` looks at the last byte.
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    sync_folder(path.parent)
    return descriptor


def sync_and_close(descriptor: int) -> None:
    """Makes what was appended survive a loss of power, and closes the descriptor even if that fails."""
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def append_line(descriptor: int, line: bytes) -> None:
    """Adds a line, or several, by one write, so that lines of several processes never mix; no line end at the end.

    Survives the death of the process, not a loss of power: there is no fsync here. A line that a dead writer left
    unfinished is ended as torn first. Raises `OSError`, also when only a part of the line found room.
    """
    # A writer that died in the middle of its line left no line break; without an end
    # the new line would be glued to it.
    content = (_TORN if _ends_torn(descriptor) else b"") + line + b"\n"
    # On a disk that is nearly full the kernel writes what still fits, and says how much
    # that was.
    if os.write(descriptor, content) != len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _ends_torn(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Number (from 1) and content of every line that was written whole. A file that is not there has none."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        for number, line in enumerate(file, start=1):
            if line.endswith(b"\n") and not line.endswith(_TORN):
                yield number, line[:-1]


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns an `OSError` of the block into one sentence about `path`.

    Raises `InvalidInput` where the user chose a place that cannot be used, `JobFailed` where the place gave out.
    """
    try:
        yield
    except OSError as error:
        raise _explanation(path, error) from error


def _explanation(path: Path, error: OSError) -> LabError:
    place = error.filename or path
    if error.errno in _FULL:
        return JobFailed(f"{path}: the disk is full; free some space and run again.")
    if error.errno == errno.EFBIG:
        return JobFailed(f"{place}: files may not grow so large here; raise the limit (ulimit -f) and run again.")
    if error.errno in _REFUSED:
        return InvalidInput(f"{place}: no permission ({error.strerror}); choose a place that you may write to.")
    if error.errno in _MISPLACED:
        return InvalidInput(f"{place}: a file where a folder belongs, or a folder where a file does; move it away.")
    return JobFailed(f"{place}: the system refused the file ({error.strerror}); look at the disk and run again.")
