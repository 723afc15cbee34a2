"""Whether somebody has read a file is known from the kernel, and where it is not known it counts as read."""

import sys
from pathlib import Path

import pytest

from labkit.host import file_reads
from labkit.host.file_reads import FileReads

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


def test_a_file_that_is_only_written_is_told_from_one_that_is_read(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    log, read = tmp_path / "inner" / "log", tmp_path / "read"
    with FileReads([tmp_path]) as reads:
        for path in (log, read):
            path.write_text("1")
            with path.open("a") as more:
                more.write("2")
        assert reads.is_only_written(log)
        assert reads.is_only_written(read)
        read.read_text()
        assert not reads.is_only_written(read)
        assert reads.is_only_written(log)


def test_a_file_that_somebody_has_open_may_be_read_through_memory(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with FileReads([tmp_path]) as reads:
        log.write_text("1")
        with log.open("rb"):
            assert not reads.is_only_written(log)
        assert not reads.is_only_written(log)


def test_a_folder_that_came_later_is_not_known(tmp_path: Path) -> None:
    with FileReads([tmp_path]) as reads:
        (tmp_path / "later").mkdir()
        (tmp_path / "later" / "log").write_text("1")
        assert not reads.is_only_written(tmp_path / "later" / "log")


def test_in_very_many_folders_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_reads, "MOST_FOLDERS", 0)
    with FileReads([tmp_path]) as reads:
        (tmp_path / "log").write_text("1")
        assert not reads.is_only_written(tmp_path / "log")


def test_what_the_kernel_could_not_tell_any_more_counts_as_read(tmp_path: Path) -> None:
    with FileReads([tmp_path]) as reads:
        (tmp_path / "log").write_text("1")
        reads._count(file_reads._HEAD.pack(-1, file_reads.IN_Q_OVERFLOW, 0, 0))
        assert not reads.is_only_written(tmp_path / "log")
