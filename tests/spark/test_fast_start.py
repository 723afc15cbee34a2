"""A real crash with every faster start switched off: the same verdict, by Spark's own daemon and without a zygote."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from labkit.core.judge import Guarantee
from labkit.host.fast_start import NONE, VARIABLE
from labkit.host.processes.events import AnyEvent, Parked
from labkit.runs.lifecycle import finish
from labkit.runs.run import prepare
from labkit.runs.scenario import plan
from labkit.spark.session import PROFILES

pytestmark = pytest.mark.spark


def test_without_forks_only_the_labs_own_daemon_is_left_out() -> None:
    small, crashtest = (
        PROFILES[name].without_forks() for name in ("small", "crashtest")
    )
    daemon = "spark.python.daemon.module"
    assert daemon in PROFILES["small"].configuration
    assert daemon not in small.configuration
    assert crashtest.configuration == PROFILES["crashtest"].configuration
    assert not small.forks
    assert not crashtest.forks


def of_the_run(others: list[psutil.Process]) -> Iterator[psutil.Process]:
    """The processes below this one that were neither there before the run nor belong to what was."""
    for child in psutil.Process().children():
        if child not in others:
            yield child
            with suppress(psutil.NoSuchProcess):  # it may have ended meanwhile
                yield from child.children(recursive=True)


@pytest.mark.slow
def test_a_crash_without_any_faster_start_gets_the_same_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, NONE)
    commands: list[str] = []
    # Servers and JupyterLab of other tests may live in this process, too, and may start something meanwhile.
    others = psutil.Process().children()

    def note_processes(event: AnyEvent) -> None:
        if isinstance(event, Parked):
            for process in of_the_run(others):
                try:
                    commands.append(" ".join(process.cmdline()))
                except psutil.Error:
                    continue

    scenario = plan(sink="two_phase", store="files", crashes=["sink.after_pre_commit"])
    outcome = finish(prepare(scenario, tmp_path / "run"), note_processes)
    assert outcome.verdict.guarantee is Guarantee.EXACTLY_ONCE
    assert [crash["signal"] for crash in outcome.record.crashes] == [9]
    at_work = "\n".join(commands)
    assert "-m pyspark.daemon" in at_work
    assert "labkit.spark.fast" not in at_work
    assert "SharedArchiveFile" not in at_work
