"""A sink in a plain job that is killed at its system calls: what the JVM does is cut, too."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from crashtest_processes import left_over

from labkit.core.errors import InvalidInput
from labkit.core.judge import Guarantee
from labkit.crashtest.harness.plain_job import PlainJob, reset
from labkit.crashtest.jobs import Job
from labkit.crashtest.kernel import as_pipeline, kernel_campaign
from labkit.crashtest.settings import settings
from labkit.crashtest.subject import Adapter
from labkit.crashtest.verdict import Group
from labkit.host.processes import wire

JOB = """
import json, shutil
from pathlib import Path
STORE = Path("store")
def start(stream):
    return stream.writeStream.format("json").option("path", str(STORE))
def read():
    return [json.loads(line) for path in sorted(STORE.glob("part-*.json")) for line in path.read_text().splitlines()]
def reset():
    shutil.rmtree(STORE, ignore_errors=True)
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "job.py").write_text(JOB)
    return folder / "job.py"


def test_the_job_is_written_down_and_repeated_by_the_user_s_own_words(file: Path, tmp_path: Path) -> None:
    wanted = settings(f"{file}:start", eyes="kernel", watch=(str(tmp_path / "elsewhere"),), batches=2)
    made = as_pipeline(wanted, Adapter.STREAM, ("/a.jar",), tmp_path / "place")
    job = wire.decode((tmp_path / "place" / "job.json").read_bytes(), PlainJob)
    assert (job.file, job.name, job.jars) == (str(file), "start", ["/a.jar"])
    assert len(list((tmp_path / "place" / "input").iterdir())) == 4
    assert made.watched == (file.parent, tmp_path / "elsewhere", job.checkpoint)
    assert str(made.subject) == "job.py:start"
    assert made.command("rename a #1") == (
        f"labkit crashtest {file}:start --watch {tmp_path / 'elsewhere'} --only 'rename a #1' --batches 2 --eyes kernel"
    )


@pytest.mark.parametrize(
    ("more", "sentence"),
    [({"eyes": "kernels"}, "did you mean 'kernel'"), ({"watch": (".",)}, "--watch belongs to --eyes kernel")],
)
def test_eyes_are_known_by_name(file: Path, more: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        settings(f"{file}:start", **more)  # type: ignore[arg-type]  # options by name, as the callee takes them
    assert sentence in str(refused.value)


@pytest.mark.usefixtures("java")
def test_a_store_that_nobody_empties_is_refused(file: Path) -> None:
    file.write_text(JOB.partition("def reset")[0])
    wanted = settings(f"{file}:start", eyes="kernel")
    with pytest.raises(InvalidInput, match="write a function reset"), kernel_campaign(wanted):
        pass


def test_a_reset_leaves_neither_store_nor_checkpoint(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    job = PlainJob(str(file), "start", Adapter.STREAM, str(tmp_path), None, {}, {}, [], str(file))
    left = [job.checkpoint, tmp_path / "scratch-1", Path("store"), job.input]
    for folder in left:
        folder.mkdir()
    reset(job)
    assert [folder.exists() for folder in left] == [False, False, False, True]
    sys.modules.pop("job", None)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("java")
def test_a_sink_in_the_jvm_is_cut_at_its_own_renames(file: Path, tmp_path: Path) -> None:
    """Killed before the sink's own log is renamed: its files are there, and come again under other names."""
    wanted = settings(f"{file}:start", eyes="kernel", batches=2, seconds=900)
    with kernel_campaign(wanted, tmp_path / "out") as running:
        assert running.healthy().guarantee is Guarantee.EXACTLY_ONCE
        assert [each.id for each in running.ledger.results] == ["healthy"]
        names = list(running.points)
        print(json.dumps(names, indent=1))
        log = next(name for name in names if "_spark_metadata" in name and name.startswith("rename"))
        done = next(name for name in names if "commits/" in name and name.startswith("rename"))
        twice = running.run(Job(log, log, Group.CRASH))
        once = running.run(Job(done, done, Group.CRASH))
    print(twice.because, once.because)
    assert not twice.unknown
    assert "duplicate" in twice.violated
    assert not once.unknown
    assert once.guarantee is Guarantee.EXACTLY_ONCE
    assert left_over() == []
    shutil.rmtree(file.parent / "store", ignore_errors=True)
