"""Writes files crash-safely: whenever a process dies, a file has its old content or its new one, and a line is complete
or absent.

SIGKILL loses nothing that the kernel has received; fsync protects against a power cut. `explained` turns an `OSError`
into a sentence for the user; all other functions raise it unchanged.
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
"""The mark that `append_line` adds to a line whose writer died before the end; no line of JSON ends like this."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
_MISPLACED = (errno.ENOTDIR, errno.EISDIR, errno.EEXIST)

_serial = itertools.count()


def temporary(path: Path) -> Path:
    """Return a name for a temporary file next to `path`: `.NAME.PID-SERIAL.tmp`, which no other process uses."""
    return path.with_name(f".{path.name}.{os.getpid()}-{next(_serial)}.tmp")


def is_temporary(path: Path) -> bool:
    """Return whether the file has a name of the form that `temporary` returns, such as `.rows.4711-1.tmp`.

    Such a file can be deleted once its writer is dead.
    """
    return _TEMPORARY.fullmatch(path.name) is not None


def replace(path: Path, content: bytes | str) -> None:
    """Replace the whole content of a file atomically, so that it survives a power cut; text is written as UTF-8.

    If writing fails, this raises `OSError`, the file keeps its old content, and no temporary file remains.
    """
    draft = temporary(path)
    try:
        with draft.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            # Content first: if only the rename reached the disk, a loss of power would leave an empty file.
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        # After this block nothing has to be undone, because the file has its final name.
        raise
    sync_folder(path.parent)


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents, and fsync all of them, so that the folders survive a power cut."""
    if path.is_dir():
        return
    # From the top down, each synced in its parent folder: if a folder's own name is lost, so is its whole content.
    make_folder(path.parent)
    # Another process may create it between the check and this line.
    path.mkdir(exist_ok=True)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Fsync a folder, so that a power cut does not undo the creation, renaming or removal of files in it.

    Raises `OSError`.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold an exclusive lock (flock) on a folder during a `with` block.

    The lock excludes other processes and other threads. If the process dies, the kernel releases the lock. Raises
    `BlockingIOError` if somebody else holds the lock and `wait` is false.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # The folder itself is locked, so no lock file remains.
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)


@contextmanager
def own_folder(place: Path, prefix: str) -> Iterator[Path]:
    """Create a temporary folder below `place` for a `with` block, lock it, and delete it afterwards.

    First delete all unlocked folders with this `prefix`, because they belonged to killed processes.
    """
    # Under the lock of `place`, because another process would delete the new folder before it is locked.
    with locked(place):
        for left in place.glob(f"{prefix}*"):
            with suppress(OSError), locked(left, wait=False):
                shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        stack = ExitStack()
        stack.enter_context(locked(folder))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        stack.close()


def open_for_append(path: Path) -> int:
    """Open a file for `append_line`, and create it if it is missing. Return its descriptor, which the caller closes."""
    # For reading as well, because `append_line` looks at the last byte.
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    sync_folder(path.parent)
    return descriptor


def sync_and_close(descriptor: int) -> None:
    """Fsync a file, so that appended lines survive a power cut; close the descriptor even if the fsync fails."""
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def append_line(descriptor: int, line: bytes) -> None:
    """Append `line` and a line break by a single write, so that lines of several processes never mix.

    `line` may also be several lines. There is no fsync: the lines survive the death of the process, but not a power
    cut. If a dead writer left an unfinished last line, this function first marks the end of that line, so that
    `read_lines` skips it. Raises `OSError`, also if only a part of the line fits on the disk.
    """
    # A writer that died in the middle of its line left no line break, so the new line would be appended to that line.
    size = os.fstat(descriptor).st_size
    is_torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
    content = (_TORN if is_torn else b"") + line + b"\n"
    # On a nearly full disk the kernel writes only a part, and returns its size.
    if os.write(descriptor, content) != len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (number, content) of each complete line of a file, with numbers from 1; nothing if there is no file.

    A line that a dead writer left unfinished is left out.
    """
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
    """Turn an `OSError` in the `with` block into an error of labkit, whose message names a file and a remedy.

    The message names `path` if the `OSError` names no file. Raises `InvalidInput` if the user should choose another
    path, for example because of a missing permission, and `JobFailed` for other problems, such as a full disk.
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
        return JobFailed(
            f"{place}: the file would exceed the size limit of this process; raise the limit (ulimit -f) and run again."
        )
    if error.errno in _REFUSED:
        return InvalidInput(f"{place}: no permission ({error.strerror}); choose a place that you may write to.")
    if error.errno in _MISPLACED:
        return InvalidInput(
            f"{place}: there is a file where a folder should be, or a folder where a file should be; move it away."
        )
    return JobFailed(
        f"{place}: the system refused access to the file ({error.strerror}); check the disk and run again."
    )
