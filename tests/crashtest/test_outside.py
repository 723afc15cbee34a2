"""Files outside of the watched folders: each that lasts is named, and one that a later start uses is state.

Every program is a real one that is watched; whether its files are read is observed by the kernel.
"""

import os
import signal
import sys
import textwrap
from collections.abc import Collection
from pathlib import Path

import pytest
from pipeline_samples import copied, expected, options, report_on

from labkit.core.judge import Guarantee
from labkit.crashtest.blackbox import outside as module
from labkit.crashtest.blackbox.campaign import crash_test_pipeline, pipeline_campaign
from labkit.crashtest.blackbox.jobs import single_job
from labkit.crashtest.blackbox.outside import Changes, Elsewhere, Outside, Use
from labkit.crashtest.blackbox.settings import pipeline_settings
from labkit.crashtest.verdict import Group
from labkit.host.syscalls.calls import Answer, Call
from labkit.host.syscalls.watching import watch

pytestmark = pytest.mark.usefixtures("watched_calls")


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The folder of a job, with a watched one in it and one beside it that is not watched.

    It lies in a folder with a random name, as in CI: that makes no file in it a temporary one.
    """
    folder = tmp_path.resolve() / "tmp.yQM5ZAB5G7" / "job"
    (folder / "store").mkdir(parents=True)
    (folder.parent / "state").mkdir()
    return folder


def start(outside: Outside, job: Path, program: str, earlier: Collection[str] = (), status: int = 0) -> Changes:
    """One start of a program; `status` is minus the signal by which it kills itself."""
    changes = outside.changes()

    def decide(call: Call) -> Answer:
        changes(call)
        return Answer.GO_ON

    with outside.observed(changes, earlier):
        ended = watch(
            ["/bin/sh", "-ec", textwrap.dedent(program)],
            folder=job,
            environment=dict(os.environ),
            output=job.parent / "output",
            decide=decide,
        )
        changes.whole = ended.status == 0
    assert ended.status == status
    return changes


def outside_of(job: Path, *ignored: str) -> Outside:
    return Outside([job / "store"], ignored)


def states(outside: Outside, job: Path) -> dict[str, Use]:
    return {os.path.relpath(path, job): use for path, use in outside.states.items()}


KILL = f"kill -{int(signal.SIGKILL)} $$"


def test_a_marker_that_a_later_start_reads_is_state(job: Path) -> None:
    outside = outside_of(job)
    start(outside, job, "echo 1 > store/rows; echo part-1 > ../state/done")
    assert outside.named == {f"{job.parent}/state/done"}
    assert (outside.states, outside.doubt()) == ({}, "")
    start(outside, job, "read done < ../state/done")
    assert states(outside, job) == {"../state/done": Use.READ}
    assert f"{job.parent}/state/done" in outside.doubt()
    assert f"--watch {job.parent}/state " in outside.doubt()


@pytest.mark.parametrize(
    "again",
    [
        "echo part-2 >> ../state/done",
        "echo part-2 > ../state/done",
        "echo part-2 > ../state/new; mv ../state/new ../state/done",
        "rm ../state/done",
        "touch ../state/done",
        "chmod 600 ../state/done",
        "mv ../state/done store/done",
    ],
)
def test_a_file_that_a_later_start_changes_again_is_state(job: Path, again: str) -> None:
    outside = outside_of(job)
    start(outside, job, "echo part-1 > ../state/done")
    start(outside, job, again)
    assert states(outside, job) == {"../state/done": Use.CHANGED}


EXISTS = "if [ ! -e ../state/part-1 ]; then echo 1 >> store/rows; : > ../state/part-1; fi"


def test_a_name_of_which_only_the_existence_counts_is_state(job: Path) -> None:
    outside = outside_of(job)
    start(outside, job, EXISTS)
    (job.parent / "state" / "part-1").unlink()
    first = start(outside, job, f"{EXISTS}; {KILL}", status=-signal.SIGKILL)
    start(outside, job, EXISTS, earlier=first.made)
    assert states(outside, job) == {"../state/part-1": Use.LEFT_ALONE}


def test_a_name_that_no_later_start_can_know_is_only_a_note(job: Path) -> None:
    outside = outside_of(job)
    program = "mktemp ../state/job.XXXXXX; mktemp -d ../state/job.XXXXXX"
    start(outside, job, program)
    first = start(outside, job, f"{program}; {KILL}", status=-signal.SIGKILL)
    start(outside, job, program, earlier=first.made)
    assert outside.states == {}
    assert len(outside.named) == 4
    assert "also writes outside" in outside.notes()[0]
    assert f"{job.parent}/state/job." in outside.notes()[0]


def test_a_file_that_one_start_makes_and_removes_is_no_state_unless_a_later_one_reads_what_a_kill_left(
    job: Path,
) -> None:
    staged = "echo 1 > ../state/stage; {0} sort ../state/stage > store/rows; rm ../state/stage"
    outside = outside_of(job)
    start(outside, job, staged.format(""))
    assert (outside.named, outside.notes()) == (set(), [])
    start(outside, job, staged.format(f"{KILL};"), status=-signal.SIGKILL)
    start(outside, job, staged.format(""))
    assert outside.states == {}
    start(outside, job, staged.format(f"{KILL};"), status=-signal.SIGKILL)
    start(outside, job, f"if [ -e ../state/stage ]; then cat ../state/stage; fi; {staged.format('')}")
    assert states(outside, job) == {"../state/stage": Use.READ}


def test_what_is_ignored_or_no_file_or_a_cache_is_left_out(job: Path) -> None:
    outside = outside_of(job, "*.log", "ignored", "../state/no")
    (job / "module.py").write_text("")
    program = f"""
        echo x > ../state/a.log; mkdir ../state/ignored; echo x > /dev/null; echo x > store/rows
        {sys.executable} -c 'import sys; sys.dont_write_bytecode = False; sys.path.append("."); import module'
        mkdir -p ../state/.cache/fontconfig; echo x > ../state/.cache/fontconfig/a
        mkdir ../state/hsperfdata_me; echo x > ../state/hsperfdata_me/17
    """
    start(outside, job, program)
    assert (job / "__pycache__").exists()
    assert {os.path.relpath(each, job) for each in outside.named} <= {"../state/.cache", "../state/.cache/fontconfig"}


def test_what_lies_elsewhere_is_decided_by_its_path() -> None:
    elsewhere = Elsewhere([Path("/job/store")], ["~/ignored/*", "*.log", "logs/*.txt"])
    home = Path("~").expanduser()
    assert elsewhere("/job/marker")
    assert elsewhere("/dev/shm/marker")
    assert elsewhere("/job/store-2")
    for inside in (
        "/job/store/a",
        "/proc/1/comm",
        "/sys/a",
        "/dev/tty",
        f"{home}/ignored/a",
        "/a.log",
        "/a/logs/b.txt",
    ):
        assert not elsewhere(inside)


def test_a_folder_that_gets_another_name_takes_its_files_with_it(job: Path) -> None:
    outside = outside_of(job)
    start(outside, job, "mkdir ../state/.new; echo 1 > ../state/.new/a; mv ../state/.new ../state/batch-1")
    assert outside.named == {f"{job.parent}/state/batch-1/a"}
    start(outside, job, "cat ../state/batch-1/a")
    assert states(outside, job) == {"../state/batch-1/a": Use.READ}


def test_an_input_that_is_taken_away_is_state(job: Path) -> None:
    outside = outside_of(job)
    part = job.parent / "state" / "part-1"
    part.write_text("1\n")
    start(outside, job, "cat ../state/part-1 >> store/rows; rm ../state/part-1")
    assert outside.named == {str(part)}
    part.write_text("1\n")
    start(outside, job, "rm ../state/part-1")
    assert states(outside, job) == {"../state/part-1": Use.CHANGED}


def test_a_file_whose_use_cannot_be_observed_counts_as_read(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = outside_of(job)
    start(outside, job, "echo part-1 > ../state/done")
    monkeypatch.setattr(module, "MOST", 0)
    start(outside, job, "true")
    assert states(outside, job) == {"../state/done": Use.READ}


def test_a_copy_s_file_gets_the_name_that_the_user_knows(tmp_path: Path) -> None:
    here, there = Outside([], []), Outside([], [])
    there.states = {"/copies/1/job/a": Use.READ, "/copies/1/state/b": Use.CHANGED, "/var/c": Use.READ}
    here.add(there, Path("/copies/1/job"), tmp_path / "job")
    assert here.states == {f"{tmp_path}/job/a": Use.READ, f"{tmp_path}/state/b": Use.CHANGED, "/var/c": Use.READ}


# Whole tests.


@pytest.fixture
def place(nothing_is_left: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return copied(tmp_path, monkeypatch)


@pytest.mark.slow
def test_watching_the_folder_finds_what_the_marker_outside_hid(place: Path) -> None:
    watched = ["input", "store", str(place.parent / "state")]
    report = report_on("wrong_outside", watch=watched)
    assert report.summary.guarantee is Guarantee.AT_LEAST_ONCE
    assert not [each for each in report.summary.results if each.group is Group.SEEING]


@pytest.mark.slow
def test_a_state_that_is_ignored_leaves_the_guarantee_as_it_was_seen(place: Path) -> None:
    report = report_on("wrong_outside", only=["exit"], ignored=["*/state/*", "*/state"])
    assert place
    assert report.summary.guarantee is Guarantee.EXACTLY_ONCE
    assert not [note for note in report.notes if "also writes outside" in note]


@pytest.mark.slow
def test_the_runs_of_pytest_end_with_what_lies_outside(place: Path) -> None:
    settings = pipeline_settings(expected()["wrong_outside"]["command"], **options("wrong_outside"))
    assert place
    with pipeline_campaign(settings) as running:
        running.healthy()
        assert list(running.last_jobs()) == []
        running.run(single_job(running.points["exit"]))
        (job,) = running.last_jobs()
        result = running.run(job)
        assert (result.group, "state/done" in result.unknown) == (Group.SEEING, True)
        assert running.report().summary.guarantee is Guarantee.UNKNOWN


RING = """
import ctypes
from pathlib import Path
ctypes.CDLL(None).syscall(425, 1, ctypes.create_string_buffer(120))
for part in sorted(Path("input").iterdir()):
    if not Path("store", part.name).exists():
        Path("store/.new").write_text(part.read_text())
        Path("store/.new").rename(Path("store", part.name))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("ring", "guarantee"), [(True, Guarantee.UNKNOWN), (False, Guarantee.EXACTLY_ONCE)])
def test_a_pipeline_that_uses_io_uring_is_unknown(place: Path, ring: bool, guarantee: Guarantee) -> None:
    program = RING if ring else RING.replace("ctypes.CDLL", "# ")
    (place / "ring.py").write_text(program)
    more = options("right_rename") | {"reader": "rows.py:read_parts", "only": ["exit"]}
    report = crash_test_pipeline("python ring.py", **more)
    assert report.summary.guarantee is guarantee
    assert ["io_uring" in each.unknown for each in report.summary.unknown()] == [True] * ring
