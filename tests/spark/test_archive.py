"""The class-data archive on a real JVM: made whole or not at all, and really used afterwards.

Everything else that starts Spark does so with the archive that `make archive` has made; here others are made.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from labkit.core.errors import ServiceUnavailable
from labkit.host.class_data import find_archive
from labkit.host.java import Java
from labkit.spark.fast import archive
from labkit.spark.fast.archive import make_archive, write_archive

pytestmark = pytest.mark.spark

RUN = """
import sys
from pathlib import Path
from labkit.spark.session import start_session
from labkit.spark.fast.warm import warm_up
from labkit.spark.options import Job
scratch = Path(sys.argv[1])
spark = start_session("local[8]", scratch, 3, sys.stdout.buffer, sys.argv[2])
warm_up(spark, Job(sys.argv[3]), scratch)
spark.stop()
"""
TRACE = "-Xlog:class+load:file={file}"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache with an archive that was made in it, by two makers at once."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        with ThreadPoolExecutor() as pool:
            makers = [pool.submit(make_archive) for _ in range(2)]
        assert len({maker.result() for maker in makers}) == 1
        yield folder / "labkit"


def from_archive(folder: Path, profile: str, job: str) -> float:
    """The share of Spark's own classes that one session takes from the archive and not from a jar."""
    loaded = folder / "classes.log"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(folder / "scratch"), profile, job],
        env=dict(os.environ, JDK_JAVA_OPTIONS=TRACE.format(file=loaded)),
        stdout=subprocess.DEVNULL,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0
    lines = [line for line in loaded.read_text().splitlines() if " org.apache.spark." in line]
    taken = sum("source: shared objects file" in line for line in lines)
    read = sum("source: file:" in line for line in lines)  # all others are made at run time, as lambdas are
    assert taken + read > 1000
    return taken / (taken + read)


@pytest.mark.slow
@pytest.mark.variant  # every run of the tests starts Spark with an archive that `make archive` has made
@pytest.mark.parametrize(("profile", "job"), [("small", "running"), ("bulk", "totals")])
def test_every_profile_takes_nearly_all_classes_from_it(profile: str, job: str, cache: Path, tmp_path: Path):
    assert from_archive(tmp_path / "with", profile, job) > 0.9


@pytest.mark.slow
@pytest.mark.variant
def test_two_makers_at_once_leave_one_whole_archive(cache: Path, java: Java):
    found = find_archive(java)
    assert {path.name for path in cache.iterdir()} == {"archive.lock", found.name, found.with_suffix(".seal").name}


def fake_record(content: bytes):
    return lambda _java, _scratch, unfinished: unfinished.write_bytes(content)


def test_what_java_cannot_use_is_not_put_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(archive, "_record", fake_record(b"no classes"))
    with pytest.raises(ServiceUnavailable, match="Java cannot use the archive"):
        write_archive(tmp_path)
    assert [path.name for path in (tmp_path / "labkit").iterdir()] == ["archive.lock"]


def test_the_next_maker_removes_what_a_killed_one_left(java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(archive, "_record", fake_record(b"classes"))
    monkeypatch.setattr(archive, "_check", lambda *_: None)
    (tmp_path / "labkit").mkdir()
    (tmp_path / "labkit" / "classes-0.part").write_bytes(b"half")
    write_archive(tmp_path)
    found = find_archive(java)
    assert found.read_bytes() == b"classes"
    assert not list((tmp_path / "labkit").glob("*.part"))
    monkeypatch.setattr(archive, "_record", fake_record(b"other classes"))
    write_archive(tmp_path)
    assert find_archive(java) == found
    assert found.read_bytes() == b"classes"


def test_a_cache_that_cannot_be_written_is_said_in_one_sentence(
    java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "file").write_text("a file where the cache should be; unlike a mode bit, it stops root too")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ServiceUnavailable, match=r"No class-data archive could be made .*everything works without"):
        make_archive()
    assert find_archive(java) is None
