"""What the doctor finds on a good machine, and what it says about each thing that can be missing."""

import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from labkit.core.errors import ServiceUnavailable
from labkit.crashtest.configured import OPTIONS
from labkit.host import doctor
from labkit.host.doctor import Finding, examine, exit_code
from labkit.host.java import Java


@pytest.fixture(autouse=True)
def fake_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about the report, not about this machine's Java."""
    monkeypatch.setattr(doctor, "find_java", lambda: Java(Path("/jdk/bin/java"), 17, "JAVA_HOME", "17.0.15"))


def finding(name: str, folder: Path) -> Finding:
    """The one finding of that name."""
    (found,) = (each for each in examine(folder) if each.name == name)
    return found


def test_this_machine_can_run_the_lab(tmp_path: Path) -> None:
    findings = examine(tmp_path)
    assert [each for each in findings if each.required and not each.ok] == []
    assert exit_code(findings) == 0
    assert list(tmp_path.iterdir()) == []


def test_what_is_ok_has_no_remedy_and_what_is_not_has_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    for each in examine(tmp_path):
        assert each.detail
        assert bool(each.remedy) is not each.ok


def test_java_is_told_with_version_and_place(tmp_path: Path) -> None:
    assert finding("Java", tmp_path).detail == "17.0.15 (JAVA_HOME: /jdk/bin/java)"


def fails(name: str, folder: Path, said: str) -> None:
    """The finding is not ok, says this, knows a remedy, and makes the exit code 69 if it is required."""
    found = finding(name, folder)
    assert not found.ok
    assert found.remedy
    assert said in found.detail
    assert exit_code([found]) == (69 if found.required else 0)


def raises(error: Exception) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


LACKING: dict[str, tuple[object, str, object, str]] = {
    "Python": (sys, "version_info", (3, 10, 4, "final", 0), "3.10.4"),
    "Java": (doctor, "find_java", raises(ServiceUnavailable("No Java 17 or newer.")), "No Java 17 or newer."),
    "PySpark": (doctor, "version", raises(PackageNotFoundError("pyspark")), "not installed"),
    "memory": (psutil, "virtual_memory", lambda: SimpleNamespace(available=900_000_000), "0.9 GB"),
    "disk": (shutil, "disk_usage", lambda _: SimpleNamespace(free=100_000_000), "0.1 GB"),
    "loopback ports": (socket.socket, "bind", raises(PermissionError(13, "Permission denied")), "Permission denied"),
    "Chromium": (shutil, "which", lambda *_, **__: None, "not on PATH"),
}
"""What can be missing: what then has which other value here, and what the doctor says of it."""


@pytest.mark.parametrize("name", LACKING)
def test_what_is_missing_is_told_with_a_remedy(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    *other, said = LACKING[name]
    monkeypatch.setattr(*other)
    fails(name, tmp_path, said)


@pytest.mark.parametrize(("read", "ok"), [("3.5.6", False), ("4.2.0", True), ("4.3.0.dev1", True), ("4.10.0", False)])
def test_a_pyspark_of_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: str, ok: bool) -> None:
    monkeypatch.setattr(doctor, "version", lambda _: read)
    assert finding("PySpark", tmp_path).ok is ok


def test_a_runs_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where the folder should be; unlike a mode bit, it stops root too")
    fails("runs folder", tmp_path, "runs")


def test_a_temporary_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "gone"))
    fails("temporary folder", tmp_path, "gone")


def test_system_calls_that_cannot_be_watched_are_told_and_hinder_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "supported", lambda: "This container forbids seccomp.")
    found = finding("system calls", tmp_path)
    assert (found.ok, found.required) == (False, False)
    assert found.detail == "This container forbids seccomp"
    assert "labkit effects" in found.remedy


def test_no_remedy_names_an_option_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "supported", lambda: "this kernel is too old.")
    flags = {each.flag for each in OPTIONS.values()}
    named = re.findall(r"--[a-z-]+", finding("system calls", tmp_path).remedy)
    assert set(named) <= flags
    assert named
