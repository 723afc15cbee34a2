"""The lab's own exercises through the whole grader: the reference gets full marks, an untouched copy none."""

from pathlib import Path

import batches
import pytest

from labkit.grading import records
from labkit.grading.course import load
from labkit.grading.release import solved

COURSE = load(None)
NOTEBOOKS = sorted({exercise.notebook for exercise in COURSE.exercises.values()})
WITH_SPARK = {exercise.notebook for exercise in COURSE.exercises.values() if exercise.needs_spark}


def graded(folder: Path, texts: dict[str, str]) -> dict[str, records.Record]:
    for notebook, text in texts.items():
        path = folder / "in" / "ada" / f"{notebook}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert batches.graded(folder, course=None).failed == 0
    assert len(list((folder / "out" / "records").iterdir())) == len(texts)
    return {notebook: batches.record_of(folder / "out", "ada", notebook) for notebook in texts}


def check_full(folder: Path, notebooks: list[str]) -> None:
    found = graded(folder, {name: solved(COURSE.released(name)) for name in notebooks})
    assert sorted(found) == notebooks
    for notebook, record in found.items():
        for item in record.items:
            exercise = COURSE.exercises[item.name]
            expected = (None, "by hand") if exercise.by_hand else (exercise.points, "right")
            assert (item.points, item.status) == expected, (notebook, item)
            if exercise.kind in {"complete", "configure", "invariant"}:
                # Elsewhere a crash is simulated in thousandths; on Spark one run takes seconds.
                assert item.hidden[1] >= (1 if exercise.needs_spark else 3), item


@pytest.mark.slow
def test_the_reference_gets_full_marks(tmp_path: Path) -> None:
    check_full(tmp_path, [name for name in NOTEBOOKS if name not in WITH_SPARK])


@pytest.mark.slow
@pytest.mark.spark
def test_the_reference_gets_full_marks_on_spark(java: object, tmp_path: Path) -> None:
    assert WITH_SPARK
    check_full(tmp_path, sorted(WITH_SPARK))


@pytest.mark.slow
def test_a_copy_that_nobody_touched_gets_nothing(tmp_path: Path) -> None:
    found = graded(tmp_path, {name: COURSE.released(name).read_text() for name in NOTEBOOKS})
    assert sorted(found) == NOTEBOOKS
    items = [item for record in found.values() for item in record.items]
    assert len(items) == len(COURSE.exercises)
    assert {(item.points, item.status) for item in items} == {(0, "not attempted")}
    assert all("The notebook contains no answer." in record.notes for record in found.values())
