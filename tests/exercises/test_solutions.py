"""The stub scores nothing, the reference solution everything: publicly, and by hidden variants of several seeds."""

import tomllib
from functools import cache
from pathlib import Path

import build_notebooks
import nbformat
import pytest
from exercise_sources import ROOT, all_sources, run

from labkit.core.errors import MissingSolution
from labkit.grading.hidden import variants
from labkit.teach.exercises import check
from labkit.teach.exercises.check import judged
from labkit.teach.exercises.contract import Kind
from labkit.teach.exercises.namespace import InNotebook
from labkit.teach.exercises.registry import EXERCISES

SEEDS = range(5)
SOURCES = all_sources()
ON_SPARK = {name for name, exercise in EXERCISES.items() if exercise.needs_spark}
QUICK = [name for name in EXERCISES if name not in ON_SPARK]


def test_the_notebooks_and_the_registry_name_the_same_exercises():
    assert set(SOURCES) == set(EXERCISES)
    for source in build_notebooks.sources(ROOT):
        asked = list(build_notebooks.exercises(source))
        assert asked == [each.name for each in EXERCISES.values() if each.notebook == source.stem]


@pytest.mark.parametrize("name", EXERCISES)
def test_a_stub_is_not_attempted(name: str):
    stub, _ = SOURCES[name]
    assert judged(EXERCISES[name], run(stub)) is None
    answer = InNotebook(EXERCISES[name].answer, run(stub))
    for variant in variants(name, 0):
        with pytest.raises(MissingSolution):
            EXERCISES[name].judge(answer, variant)


FIRST, OTHERS = SEEDS[:1], SEEDS[1:3]


MORE = [pytest.mark.slow, pytest.mark.variant]


@pytest.mark.parametrize(
    ("name", "seeds"),
    [
        *((name, FIRST) for name in QUICK if not EXERCISES[name].axes),
        *(pytest.param(name, OTHERS, marks=MORE) for name in QUICK if not EXERCISES[name].axes),
        # A sink of one's own is killed some hundred times for each seed.
        *(pytest.param(name, FIRST, marks=pytest.mark.slow) for name in QUICK if EXERCISES[name].axes),
    ],
    ids=str,
)
def test_a_solution_passes_every_public_and_hidden_variant(name: str, seeds: range):
    exercise, (_, solution) = EXERCISES[name], SOURCES[name]
    found = judged(exercise, run(solution))
    assert found is not None
    assert [each.passed for each in found] == [True] * len(exercise.public), found[-1].message
    answer = InNotebook(exercise.answer, run(solution))
    for seed in seeds:
        for variant in variants(name, seed):
            finding = exercise.judge(answer, variant)
            assert finding.passed, (seed, variant.name, finding.message)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", sorted(ON_SPARK))
def test_a_solution_survives_on_real_spark_and_a_wrong_one_does_not(name: str, java: object):
    exercise, (_, solution) = EXERCISES[name], SOURCES[name]
    answer = InNotebook(exercise.answer, run(solution))
    for variant in [*exercise.public, variants(name, 1)[-1]]:
        finding = exercise.judge(answer, variant)
        assert finding.passed, (variant.name, finding.message)
    said = []
    for sink, store, order in (("idempotent", "sqlite", None), ("two_phase", "files", "engine")):
        wrong = {exercise.answer: {"sink": sink, "store": store, "order": order}}
        [finding] = judged(exercise, wrong) or []
        assert not finding.passed
        said.append(finding.message)
    assert "jump back" in said[0]
    assert "at-least-once" in said[1]


def test_variants_are_the_same_for_the_same_seed_and_differ_between_seeds():
    for name, exercise in EXERCISES.items():
        drawn = [variants(name, seed) for seed in range(20)]
        assert drawn == [variants(name, seed) for seed in range(20)]
        if exercise.kind in (Kind.PREDICT, Kind.EXPLAIN):
            assert drawn[0] == list(exercise.public)
            continue
        # A real job for each would cost a class of 300 an hour.
        fewest = 1 if exercise.needs_spark else 3
        assert all(len(each) >= fewest for each in drawn), name
        assert len({str(each) for each in drawn}) > 1, name
        assert all(variant not in exercise.public for each in drawn for variant in each)


copies = cache(build_notebooks.build)


@cache
def given_away() -> dict[str, str]:
    """Everything that a learner gets: the built notebooks, and the package without the grader."""
    found = {}
    for path in sorted((ROOT / "labkit").rglob("*")):
        inside = path.relative_to(ROOT)
        if (
            path.is_file()
            and "__pycache__" not in path.parts
            and inside.parts[1] != "grading"
            and path.suffix != ".png"
        ):
            found[str(inside)] = path.read_text(encoding="utf-8", errors="replace")
    for source in build_notebooks.sources(ROOT):
        for copy in copies(source):
            cells = nbformat.reads(copy, as_version=4).cells
            found[f"{source.stem} {len(found)}"] = "\n".join(cell.source for cell in cells)
    return found


@pytest.mark.parametrize("name", EXERCISES)
def test_no_solution_is_given_away(name: str):
    stub, solution = SOURCES[name]
    telling = {line.strip() for line in solution.splitlines()} - {line.strip() for line in stub.splitlines()}
    telling = {line for line in telling if len(line) >= 16}
    assert telling
    for place, text in given_away().items():
        assert not [line for line in telling if line in text], place


def test_no_hidden_variant_is_given_away():
    drawn = {variant.name for name in EXERCISES for variant in variants(name, 3)}
    public = {variant.name for exercise in EXERCISES.values() for variant in exercise.public}
    hidden = {name for name in drawn - public if len(name) > 12}
    assert len(hidden) > 10
    for place, text in given_away().items():
        assert "labkit.grading.hidden" not in text, place
        assert not [name for name in hidden if f'"{name}"' in text], place


def test_the_instructors_copy_has_the_solution_in_place_of_the_stub():
    for source in build_notebooks.sources(ROOT):
        solved = build_notebooks.exercises(source)
        cells = nbformat.reads(build_notebooks.instructor(source), as_version=4).cells
        texts = [cell.source for cell in cells]
        for stub, solution in solved.values():
            assert solution in texts
            assert stub not in texts
        learner = nbformat.reads(copies(source)[0], as_version=4).cells
        assert len(cells) == len(learner)


OTHERS = tomllib.loads((ROOT / build_notebooks.OTHERS).read_text(encoding="utf-8"))


@pytest.mark.parametrize(("name", "title"), [(name, title) for name, each in OTHERS.items() for title in each])
def test_every_other_solution_passes_and_is_shown_beside_the_reference(name: str, title: str):
    exercise, names = EXERCISES[name], {}
    exec(OTHERS[name][title], names)
    answer = InNotebook(exercise.answer, names)
    for variant in exercise.public:
        finding = exercise.judge(answer, variant)
        assert finding.passed, (variant.name, finding.message)
    shown = check.solutions(name)
    assert list(shown) == ["A solution, with comments", *OTHERS[name]]
    assert shown[title] == OTHERS[name][title]
    assert SOURCES[name][1].endswith(shown["A solution, with comments"])


def test_the_solutions_in_the_package_are_those_of_the_notebooks():
    assert build_notebooks.solutions(ROOT) == (ROOT / build_notebooks.SOLUTIONS).read_text(encoding="utf-8")
    assert all(check.solutions(name) for name in EXERCISES)


def test_the_stubs_in_the_package_are_those_of_the_notebooks():
    assert build_notebooks.stubs(ROOT) == (ROOT / build_notebooks.STUBS).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ('# %% tags=["exercise"]\nx = ...\n', "must begin with '# exercise"),
        (
            '# %% tags=["exercise"]\n# exercise 05-blocked\nx = ...\n\n# %%\n1\n',
            "no solution follows the stub of 05-blocked",
        ),
        ('# %% tags=["exercise"]\n# exercise 05-x\nx = ...\n', "05-x has no text"),
        ('# %% tags=["solution"]\n# exercise 05-blocked\nx = 1\n', "does not follow its stub"),
    ],
)
def test_an_exercise_without_its_parts_is_not_built(tmp_path: Path, source: str, complaint: str):
    path = tmp_path / "05_x.py"
    path.write_text(source)
    with pytest.raises(build_notebooks.NotebookError, match=complaint):
        build_notebooks.build(path)
