"""Which class-data archive a JVM is pointed at: the one that fits, whole, and the user's own; else none."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from labkit.host import class_data
from labkit.host.class_data import archive_path, cache_folder, find_archive, seal
from labkit.host.java import Java


@pytest.fixture
def fake_java(tmp_path: Path) -> Java:
    path = tmp_path / "jdk" / "java"
    path.parent.mkdir()
    path.touch()
    return Java(path, 17, "PATH", "17.0.15")


@pytest.fixture
def made(fake_java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive that is in order."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = archive_path(fake_java)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"classes")
    path.chmod(0o600)
    seal(path)
    return path


def test_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/home/learner")
    assert cache_folder({"XDG_CACHE_HOME": "/cache"}) == Path("/cache/labkit")
    assert cache_folder({}) == cache_folder({"XDG_CACHE_HOME": "relative"}) == Path("/home/learner/.cache/labkit")


def test_without_a_home_there_is_no_cache(fake_java: Java, monkeypatch: pytest.MonkeyPatch):
    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nobody)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() is None
    assert find_archive(fake_java) is None


def test_an_archive_in_order_is_found(fake_java: Java, made: Path):
    assert find_archive(fake_java) == made
    assert sorted(path.suffix for path in made.parent.iterdir()) == [".jsa", ".seal"]


def truncate(path: Path) -> None:
    os.truncate(path, 3)


def overwrite(path: Path) -> None:
    before = path.stat()
    path.write_bytes(b"CLASSES")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


def unseal(path: Path) -> None:
    path.with_suffix(".seal").unlink()


def garble_the_seal(path: Path) -> None:
    path.with_suffix(".seal").write_bytes(b"\xff\xff")


def open_to_all(path: Path) -> None:
    path.chmod(0o666)


def link(path: Path) -> None:
    path.rename(path.with_suffix(".other"))
    path.symlink_to(path.with_suffix(".other"))


def remove(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("spoil", [truncate, overwrite, unseal, garble_the_seal, open_to_all, link, remove])
def test_one_that_is_damaged_or_in_other_hands_is_not(spoil, fake_java: Java, made: Path):
    spoil(made)
    assert find_archive(fake_java) is None


def test_somebody_elses_is_not(fake_java: Java, made: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: made.stat().st_uid + 1)
    assert find_archive(fake_java) is None


def test_another_java_has_another_archive(fake_java: Java, made: Path, tmp_path: Path):
    assert find_archive(replace(fake_java, release="17.0.16")) is None
    other = tmp_path / "other"
    other.touch()
    assert find_archive(replace(fake_java, path=other)) is None


def test_another_pyspark_or_jar_has_another_archive(
    fake_java: Java, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch:
        patch.setattr(class_data, "version", lambda _: "4.3.0")
        assert find_archive(fake_java) is None
    jars = tmp_path / "jars"
    jars.mkdir()
    monkeypatch.setattr(class_data, "spark_jars", lambda: jars)
    (jars / "spark.jar").write_bytes(b"1")
    before = archive_path(fake_java)
    (jars / "spark.jar").write_bytes(b"22")
    assert archive_path(fake_java) != before
