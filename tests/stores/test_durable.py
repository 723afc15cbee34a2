"""Files that are replaced whole, and lines that are whole or not there."""

import errno
import os
from contextlib import closing
from pathlib import Path

import pytest

from labkit.core.errors import InvalidInput, JobFailed
from labkit.host import durable


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def append(path: Path, *lines: bytes) -> None:
    descriptor = durable.open_for_append(path)
    for line in lines:
        durable.append_line(descriptor, line)
    durable.sync_and_close(descriptor)


def content(path: Path) -> list[bytes]:
    return [line for _, line in durable.read_lines(path)]


@pytest.mark.parametrize(("new", "stored"), [("é\n", "é\n".encode()), (b"\0\xff", b"\0\xff"), ("", b"")])
def test_replace_gives_the_file_its_new_content(tmp_path: Path, new: str | bytes, stored: bytes) -> None:
    path = tmp_path / "file.json"
    path.write_text("old")
    durable.replace(path, new)
    assert path.read_bytes() == stored
    assert list(tmp_path.iterdir()) == [path]


def test_a_replace_that_fails_leaves_the_old_content_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.json"
    durable.replace(path, "old")

    def fail(descriptor: int) -> None:
        assert os.fstat(descriptor).st_size == 3
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="broken"):
        durable.replace(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_synced_before_it_is_named_and_its_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = []
    fsync, rename = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda one: (order.append("sync"), fsync(one)))
    monkeypatch.setattr(Path, "replace", lambda *paths: (order.append("rename"), rename(*paths)))
    durable.replace(tmp_path / "file.json", "new")
    assert order == ["sync", "rename", "sync"]


def test_temporary_names_are_recognised_and_never_the_same(tmp_path: Path) -> None:
    names = [durable.temporary(tmp_path / "file.json") for _ in range(3)]
    assert len(set(names)) == 3
    assert all(durable.is_temporary(name) and name.parent == tmp_path for name in names)
    assert not any(str(os.getpid() + 1) in name.name for name in names)
    assert not durable.is_temporary(tmp_path / "file.json")


def test_make_folder_makes_what_is_missing(tmp_path: Path) -> None:
    for _ in range(2):
        durable.make_folder(tmp_path / "a" / "b")
        assert (tmp_path / "a" / "b").is_dir()


def test_lines_come_back(log: Path) -> None:
    append(log, b"a", b"", b"b")
    append(log, b"c")
    assert list(durable.read_lines(log)) == [(1, b"a"), (2, b""), (3, b"b"), (4, b"c")]
    assert content(log.with_name("none")) == []


@pytest.mark.parametrize("torn", [b'{"offset":', b"{}", b"\xc3"])
def test_a_torn_line_is_skipped_and_does_not_stick_to_the_next(log: Path, torn: bytes) -> None:
    append(log, b"whole")
    with log.open("ab") as file:
        file.write(torn)
    assert content(log) == [b"whole"]
    append(log, b"next", b"more")
    assert content(log) == [b"whole", b"next", b"more"]


def test_a_line_is_one_write(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[bytes] = []
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, line: (writes.append(line), write(descriptor, line))[1])
    append(log, b"a" * 100_000)
    assert [len(line) for line in writes] == [100_001]


def test_a_line_that_found_no_room_is_an_error_and_torn(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, line: write(descriptor, line[:3]))
    with pytest.raises(OSError, match="No space left"):
        append(log, b"abcdef")
    monkeypatch.undo()
    append(log, b"next")
    assert content(log) == [b"next"]


@pytest.mark.parametrize(
    ("number", "error", "remedy"),
    [
        (errno.ENOSPC, JobFailed, "free some space"),
        (errno.EROFS, InvalidInput, "choose a place"),
        (errno.ENOTDIR, InvalidInput, "move it away"),
        (errno.EIO, JobFailed, "check the disk"),
    ],
)
def test_an_error_of_the_system_becomes_a_sentence(
    tmp_path: Path, number: int, error: type[Exception], remedy: str
) -> None:
    with pytest.raises(error, match=f"{tmp_path}: .*{remedy}.*\\.$"), durable.explained(tmp_path):
        raise OSError(number, os.strerror(number))


def test_a_full_disk(tmp_path: Path) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    descriptor = os.open(tmp_path / "full", os.O_RDWR)
    with (
        closing(os.fdopen(descriptor, "rb", buffering=0)),
        pytest.raises(JobFailed, match="full"),
        durable.explained(tmp_path),
    ):
        durable.append_line(descriptor, b"row")
