"""The switch of what only makes starts faster: how LABKIT_FAST is read, and what the doctor says about it."""

from pathlib import Path

import pytest

from labkit.core.errors import InvalidInput
from labkit.host.doctor import examine
from labkit.host.fast_start import NAMES, OFF, VARIABLE, FastStart, fast_start
from labkit.host.java import Java
from labkit.host.servers.kafka import KafkaService


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("", FastStart()),
        ("none", OFF),
        ("zygote", FastStart(zygote=True, archive=False, warm=False)),
        ("archive", FastStart(zygote=False, archive=True, warm=False)),
        ("archive, zygote", FastStart(warm=False)),
        ("warm,archive,zygote", FastStart()),
    ],
)
def test_the_variable_names_what_is_allowed(text: str, allowed: FastStart) -> None:
    assert fast_start({VARIABLE: text}) == allowed
    assert fast_start({VARIABLE: str(allowed)}) == allowed


def test_everything_is_allowed_where_nothing_is_said() -> None:
    assert fast_start({}) == FastStart(**dict.fromkeys(NAMES, True))


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"=zygot: 'zygot' is .* mean 'zygote'\?"):
        fast_start({VARIABLE: "zygot"})


def test_the_doctor_shows_what_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    def shown() -> tuple[bool, str]:
        (finding,) = (each for each in examine() if each.name == "fast starts")
        assert not finding.required
        return finding.ok, finding.detail

    monkeypatch.setenv(VARIABLE, "archive")
    assert shown() == (True, "archive")
    monkeypatch.setenv(VARIABLE, "zygot")
    ok, detail = shown()
    assert not ok
    assert "'zygot' is not one of the ways to start Spark faster" in detail


def test_a_broker_neither_uses_nor_writes_an_archive_where_that_is_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java, jars = Java(Path(__file__), 17, "PATH", "17.0.15"), tmp_path
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    broker = KafkaService(tmp_path)
    monkeypatch.setenv(VARIABLE, "zygote")
    assert broker._archive(java, jars) == ([], "")
    monkeypatch.setenv(VARIABLE, "archive")
    assert broker._archive(java, jars)[0][0].startswith("-XX:ArchiveClassesAtExit=")
