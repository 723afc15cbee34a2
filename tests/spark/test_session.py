"""What a driver's JVM is started with; no JVM is started here."""

from pathlib import Path

import pytest

from labkit.host.java import Java
from labkit.spark import jvm
from labkit.spark.jvm import PROFILES, _command, every_run, use_archive

JAVA = Java(Path("/jdk/bin/java"), 17, "PATH", "17.0.15")
SHORT_LIVED = {"TieredStopAtLevel", "UseSerialGC", "Xmx1g"}
SMALL_ONLY = {*SHORT_LIVED, "NO_CODEGEN", "wholeStage", "labkit.spark.fast.daemon"}


def command(profile: str, scratch: Path) -> str:
    """The command, and the file of properties that it names."""
    words = _command(JAVA, scratch, PROFILES[profile], every_run("local[2]", scratch, 3))
    return " ".join([*words, Path(words[words.index("--properties-file") + 1]).read_text()])


@pytest.mark.parametrize(("profile", "has"), [("small", SMALL_ONLY), ("bulk", set()), ("cluster", SHORT_LIVED)])
def test_no_setting_of_spark_for_small_runs_is_among_those_for_bulk_or_a_cluster(
    profile: str, has: set[str], tmp_path: Path
):
    given = command(profile, tmp_path)
    assert {name for name in SMALL_ONLY if name in given} == has


def test_the_class_path_names_no_folder_of_the_run(tmp_path: Path):
    words = _command(JAVA, tmp_path, PROFILES["small"], every_run("local[2]", tmp_path, 3))
    assert str(tmp_path) not in words[words.index("-cp") + 1]


def test_an_archive_is_used_where_there_is_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jvm, "find_archive", lambda _: Path("/cache/classes.jsa"))
    assert use_archive(JAVA)[0] == "-XX:SharedArchiveFile=/cache/classes.jsa"
    monkeypatch.setattr(jvm, "find_archive", lambda _: None)
    assert use_archive(JAVA) == []
