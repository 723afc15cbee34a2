"""Submissions that are after points, the grader or each other: none gets what it attacks, and nobody else suffers."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import batches
import hostile
import psutil
import pytest
import submitted

from labkit.grading.course import load
from labkit.grading.gradebook import write_book
from labkit.grading.order import Patience
from labkit.grading.records import Record
from labkit.grading.sandbox.inside.jobs import Limits
from labkit.grading.scoring import Policy

GOOD = ("ada", "grace")
LIMITS = Limits(cell_seconds=3, total_seconds=40, total_memory=1500 * 1024**2)
PATIENCE = Patience(call_seconds=2, item_seconds=10)
WAS_HERE = Path("/tmp/labkit-was-here")
SECRET = "LABKIT_TEST_SECRET"


class Graded:
    """A batch of hostile submissions with good ones between them, and what it left."""

    def __init__(self, folder: Path, attackers: Sequence[hostile.Hostile]) -> None:
        self.out = folder / "out"
        for one in attackers:
            submitted.hand_in(folder / "in", one.name, one.cells)
        for student in GOOD:
            submitted.hand_in(folder / "in", student, submitted.answers())
        self.done = batches.graded(folder, bounds=LIMITS, patience=PATIENCE, cell_seconds=3, total_seconds=40)
        write_book(self.out, load(submitted.COURSE), Policy())
        self.left = {process for process in psutil.process_iter() if _is_of(process, self.out)}

    def record(self, student: str) -> Record:
        return batches.record_of(self.out, student)

    def points(self, student: str) -> dict[str, int | None]:
        return {item.name: item.points for item in self.record(student).items}


def _is_of(process: psutil.Process, out: Path) -> bool:
    """Whether a process is one of the batch: a worker of this test, or one that imports the batch's copy of the lab."""
    try:
        worker = process.ppid() == os.getpid() and "labkit.grading.worker" in process.cmdline()
        return worker or process.environ().get("PYTHONPATH", "").startswith(str(out))
    except psutil.Error:
        return False


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["quick", "slow"])
def graded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graded]:
    os.environ[SECRET] = "hidden"
    attackers = [one for one in hostile.ALL if one.slow == request.param]
    WAS_HERE.unlink(missing_ok=True)
    graded = Graded(tmp_path_factory.mktemp("hostile"), attackers)
    graded.attackers = attackers
    yield graded
    del os.environ[SECRET]


def test_every_hostile_file_says_what_it_attacks() -> None:
    assert len(hostile.ALL) >= 30
    for one in hostile.ALL:
        assert one.attacks or one.keeps, one.name
        assert {*one.attacks, *one.keeps} <= set(submitted.ALL), one.name


def test_what_is_attacked_scores_nothing(graded: Graded) -> None:
    won = {one.name: [name for name in one.attacks if graded.points(one.name)[name] != 0] for one in graded.attackers}
    assert {name: items for name, items in won.items() if items} == {}


def test_every_zero_has_its_reason(graded: Graded) -> None:
    silent = [
        (one.name, item.name)
        for one in graded.attackers
        for item in graded.record(one.name).items
        if item.points == 0 and not item.reason
    ]
    assert silent == []


def test_what_is_answered_honestly_beside_an_attack_keeps_its_points(graded: Graded) -> None:
    lost = {
        one.name: [(name, graded.record(one.name)) for name in one.keeps if graded.points(one.name)[name] != 2]
        for one in graded.attackers
    }
    assert {name: items for name, items in lost.items() if items} == {}


def test_a_process_that_ends_within_a_message_loses_only_what_it_has_not_answered(graded: Graded) -> None:
    if graded.attackers[0].slow:
        return
    [item] = [each for each in graded.record("leaves_questions_out").items if each.name == "01-double"]
    assert (item.status, item.public, item.reason) == (
        "failed",
        (1, 1),
        "double: it did not answer a question: the connection is closed",
    )
    assert item.questions == 1 + 2 + 3  # the greeting, the public variant, and up to the fifth call


def test_nobody_else_suffers(graded: Graded) -> None:
    assert graded.done.failed == 0
    for student in GOOD:
        assert graded.points(student) == {"01-double": 2, "01-dedup": 2, "01-setting": 2, "01-why": None}


def test_nothing_is_left_behind(graded: Graded) -> None:
    assert graded.left == set()
    assert not WAS_HERE.exists()
    assert sorted(path.name for path in graded.out.iterdir()) == [
        *("alike.html", "by_hand", "executed", "feedback", "grades.csv", "grading.json", "records", "summary.html")
    ]
    assert "labkit" not in Path("/proc/self/mounts").read_text()


def test_feedback_shows_no_hidden_value_and_no_trick(graded: Graded) -> None:
    hidden = {
        value
        for one in graded.attackers
        for item in graded.record(one.name).items
        for variant in item.variants
        if variant.hidden
        for value in variant.parameters.values()
    }
    for page in (graded.out / "feedback").iterdir():
        text = page.read_text()
        said = re.sub(r"<pre>.*?</pre>", "", text, flags=re.DOTALL)  # their own code
        said = said.replace("name &#39;leaked&#39; is not defined", "")  # and their names
        assert "leak" not in said.replace("leaks_what_it_is_asked", "")
        assert "hidden-" not in text
        assert not [value for value in hidden if len(value) > 3 and value in text]


def test_no_executed_notebook_and_no_text_holds_what_was_asked(graded: Graded) -> None:
    for path in (graded.out / "executed").iterdir():
        assert "asked 1" not in path.read_text(), path
    for one in graded.attackers:
        for item in graded.record(one.name).items:
            assert "I was asked" not in (item.written or ""), one.name
