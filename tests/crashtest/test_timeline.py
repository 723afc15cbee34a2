"""The timeline names the signal by which a job was stopped."""

import signal
from types import SimpleNamespace

import pytest

from labkit.crashtest import sink_timeline


@pytest.mark.parametrize("number_of_sigstop", [19, 17])
@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_stopped_job_is_told_from_a_killed_one_whatever_number_the_system_gives_sigstop(
    monkeypatch: pytest.MonkeyPatch, number_of_sigstop: int, is_stopped: bool
) -> None:
    """It is 19 on Linux and 17 on macOS, where 19 is SIGCONT."""
    monkeypatch.setattr(signal, "SIGSTOP", number_of_sigstop)
    number = number_of_sigstop if is_stopped else signal.SIGKILL
    crash = {"at": 1.0, "point": "sink.mid_write", "signal": int(number)}
    (line,) = sink_timeline._crashes(SimpleNamespace(crashes=[crash]))
    assert line.text.startswith("SIGSTOP" if is_stopped else "SIGKILL")
