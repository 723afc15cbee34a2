"""The files store: what lies in its folder, and what it says about a folder that it cannot use."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path

import pytest
from store_refusals import READING, WRITING, assert_refused
from store_rows import HANDLE, prepare, row

from labkit.core.errors import InvalidInput, JobFailed
from labkit.stores.files import FilesStore, encode

Forbidden = Callable[[Path], AbstractContextManager[None]]
ROW = row(3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "files"


@pytest.fixture
def store(folder: Path) -> Iterator[FilesStore]:
    with closing(FilesStore(folder)) as opened:
        yield opened


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_row_is_a_line_of_json(store: FilesStore, folder: Path) -> None:
    store.append(ROW)
    line = (folder / "appended.jsonl").read_text()
    assert line.endswith("\n")
    assert json.loads(line) == {"offset": 3, "key": "hello", "value": 30, "batch": 0, "attempt": 1}


def test_a_transaction_moves_through_the_folders(store: FilesStore, folder: Path) -> None:
    transaction = store.begin(HANDLE)
    assert tree(folder) == [f"staging/{HANDLE}.open"]
    transaction.prepare()
    assert tree(folder) == [f"staging/{HANDLE}.prepared"]
    store.commit(HANDLE)
    assert tree(folder) == [f"committed/00000001-{HANDLE}.jsonl"]


def test_numbers_are_the_order_of_visibility_and_never_repeat(store: FilesStore, folder: Path) -> None:
    handles = [HANDLE._replace(batch=batch) for batch in (9, 10, 2)]
    for handle in handles:
        prepare(store, handle, 3)
    for handle in handles:
        store.commit(handle)
    with store.transaction(HANDLE) as write:
        write(ROW)
    assert tree(folder) == [
        f"committed/{number:08}-{handle}.jsonl" for number, handle in enumerate([*handles, HANDLE], 1)
    ]


def test_a_number_is_above_the_largest_and_not_the_count(store: FilesStore, folder: Path) -> None:
    for batch in range(3):
        prepare(store, HANDLE._replace(batch=batch), 3)
        store.commit(HANDLE._replace(batch=batch))
    next((folder / "committed").glob("00000001-*")).unlink()
    prepare(store, HANDLE._replace(batch=3), 3)
    store.commit(HANDLE._replace(batch=3))
    assert [name[10:18] for name in tree(folder)] == ["00000002", "00000003", "00000004"]


def test_rows_are_synced_before_they_are_promised(store: FilesStore, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync, synced = os.fsync, []
    monkeypatch.setattr(os, "fsync", lambda one: (synced.append(os.fstat(one).st_size), fsync(one)))
    transaction = store.begin(HANDLE)
    transaction.write(ROW)
    synced.clear()
    transaction.prepare()
    assert synced[0] == len(encode(ROW)) + 1
    assert len(synced) == 2  # the file, then its folder


def test_files_are_named_by_one_process_at_a_time(
    store: FilesStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, renamed = Path.rename, []

    def checked(path: Path, target: Path) -> Path:
        descriptor = os.open(folder / "staging", os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)
        renamed.append(target.suffix)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", checked)
    prepare(store, HANDLE, 3)
    store.commit(HANDLE)
    with store.transaction(HANDLE._replace(batch=1)):
        pass
    assert renamed == [".prepared", ".jsonl", ".jsonl"]


def test_an_aborted_or_failed_transaction_leaves_no_file(store: FilesStore, folder: Path) -> None:
    store.begin(HANDLE)
    prepare(store, HANDLE._replace(batch=1), 3)
    store.abort(HANDLE)
    store.abort(HANDLE._replace(batch=1))
    with pytest.raises(ZeroDivisionError), store.transaction(HANDLE):
        raise ZeroDivisionError
    assert tree(folder) == []


def test_a_new_writer_of_a_batch_removes_what_a_dead_one_left(
    store: FilesStore, folder: Path, killed: Callable[[str, str, Path], list[str]]
) -> None:
    killed("with store.transaction(handle) as write: write(row(0)); park()", "files", folder)
    assert tree(folder) == [f"staging/{HANDLE}.atomic"]
    again = HANDLE._replace(incarnation=2)
    with store.transaction(again) as write:
        write(ROW)
    assert tree(folder) == [f"committed/00000001-{again}.jsonl"]


def test_a_writer_that_was_replaced_cannot_commit(store: FilesStore, folder: Path) -> None:
    again = HANDLE._replace(incarnation=2)
    with ExitStack() as newer, pytest.raises(JobFailed, match=f"{HANDLE} cannot continue"), store.transaction(HANDLE):
        newer.enter_context(store.transaction(again))
    assert tree(folder) == [f"committed/00000001-{again}.jsonl"]


def test_a_writer_cannot_commit_a_batch_that_was_committed_meanwhile(store: FilesStore, folder: Path) -> None:
    again = HANDLE._replace(incarnation=2)
    with pytest.raises(JobFailed, match="committed already"), store.transaction(HANDLE), store.transaction(again):
        pass
    assert tree(folder) == [f"committed/00000001-{again}.jsonl"]


def test_a_torn_last_line_is_skipped_and_does_not_stick_to_the_next(store: FilesStore, folder: Path) -> None:
    store.append(ROW)
    with (folder / "appended.jsonl").open("a") as file:
        file.write('{"offset":4,"key":"wor')
    assert list(store.history()) == [ROW]
    store.append(ROW)
    assert list(store.history()) == [ROW, ROW]
    with closing(FilesStore(folder)) as other:
        other.append(ROW)
        assert list(other.history()) == [ROW, ROW, ROW]


def test_names_that_are_not_the_stores_are_left_alone(store: FilesStore, folder: Path) -> None:
    prepare(store, HANDLE, 3)
    store.commit(HANDLE)
    for name in ("committed/notes.jsonl", "committed/.00000002-x.jsonl.1-1.tmp", "staging/README"):
        (folder / name).write_text("not a row\n")
    assert list(store.history()) == [ROW]
    assert list(store.hidden()) == store.prepared("q") == []


@pytest.mark.parametrize(
    "line",
    [b"hello", b"", b"\xff\xfe", b"[]", b'{"offset": 1}', b'{"offset":"1","key":"","value":1,"batch":0,"attempt":1}'],
)
def test_a_damaged_line_is_named(store: FilesStore, folder: Path, line: bytes) -> None:
    store.append(ROW)
    with (folder / "appended.jsonl").open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(
        InvalidInput, match=r"appended\.jsonl, line 2: this row is damaged .*restore the file, or delete"
    ):
        list(store.history())


def test_a_file_in_place_of_the_folder_is_refused(folder: Path) -> None:
    folder.write_text("a file")
    assert_refused(lambda: FilesStore(folder), rf"^{folder}.*move it away\.$", *READING, *WRITING)
    assert folder.read_text() == "a file"


def test_a_folder_in_place_of_the_append_file_is_refused(store: FilesStore, folder: Path) -> None:
    (folder / "appended.jsonl").mkdir(parents=True)
    assert_refused(lambda: store, r"appended\.jsonl: .*move it away\.$", READING[0], WRITING[0])


def test_a_folder_that_may_not_be_written_is_refused(public: Path, forbidden: Forbidden) -> None:
    with forbidden(public):
        words = rf"^{public}/files: no permission .*choose a place"
        assert_refused(lambda: FilesStore(public / "files"), words, *WRITING)
        assert list(FilesStore(public / "files").history()) == []


def test_a_store_that_may_not_be_written_can_be_read(public: Path, forbidden: Forbidden) -> None:
    with closing(FilesStore(public)) as store:
        store.append(ROW)
    with forbidden(public):
        assert list(FilesStore(public).history()) == [ROW]
        assert_refused(lambda: FilesStore(public), "no permission", *WRITING)


def test_a_full_disk_fails_the_job(folder: Path) -> None:
    folder.mkdir()
    store = FilesStore(folder)
    (folder / "appended.jsonl").symlink_to("/dev/full")
    with pytest.raises(JobFailed, match="the disk is full; free some space"):
        store.append(ROW)
    with pytest.raises(JobFailed, match="the system refused access"):
        store.close()  # a device cannot be synced
