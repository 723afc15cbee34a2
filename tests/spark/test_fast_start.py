"""A real crash with every faster start switched off: the same verdict, by Spark's own daemon and without a zygote."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import psutil
import pytest

from labkit.core.judge import Guarantee
from labkit.host.fast_start import NONE, VARIABLE
from labkit.runs.crash import finish
from labkit.runs.prepare import prepare
from labkit.runs.scenario import plan
from labkit.spark.jvm import PROFILES

pytestmark = pytest.mark.spark


def test_without_forks_only_the_labs_own_daemon_is_left_out() -> None:
    small, crashtest = (PROFILES[name].without_forks() for name in ("small", "crashtest"))
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


@contextmanager
def commands_of_a_run() -> Iterator[set[str]]:
    """The commands of all processes that a run starts within the block; complete behind it.

    Servers and JupyterLab of other tests may live below this process, too. A worker of Spark may live for a moment
    only, so somebody looks all the time.
    """
    others, commands, is_over = psutil.Process().children(), set[str](), Event()

    def look() -> None:
        while not is_over.wait(0.02):
            for process in of_the_run(others):
                with suppress(psutil.Error):
                    commands.add(" ".join(process.cmdline()))

    looking = Thread(target=look)
    looking.start()
    try:
        yield commands
    finally:
        is_over.set()
        looking.join()


@pytest.mark.slow
@pytest.mark.variant
def test_a_crash_without_any_faster_start_gets_the_same_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, NONE)
    scenario = plan(sink="two_phase", store="files", crashes=["sink.after_pre_commit"])
    with commands_of_a_run() as commands:
        outcome = finish(prepare(scenario, tmp_path / "run"), lambda _event: None)
    assert outcome.verdict.guarantee is Guarantee.EXACTLY_ONCE
    assert [crash["signal"] for crash in outcome.record.crashes] == [9]
    at_work = "\n".join(commands)
    assert "-m pyspark.daemon" in at_work
    assert "labkit.spark.fast" not in at_work
    assert "SharedArchiveFile" not in at_work
