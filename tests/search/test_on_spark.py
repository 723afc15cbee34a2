"""A search as Spark's tasks: the counts of one core, shortest traces, and an executor's death that costs nothing."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
from searches import SEARCHES
from waiting import until

from labkit.core.errors import InvalidInput
from labkit.host.durable import own_folder
from labkit.search import on_spark
from labkit.search.files import Files
from labkit.search.on_spark import PREFIX, Levels, _Search, explore_on_spark
from labkit.sim.explore import MAX_STATES, Exploration, Progress, explore, go_on, violations
from labkit.sim.model import Action, Model, Mood, Property
from labkit.sim.symmetry import Quotient
from labkit.sim.trace import make, replay


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    yield
    assert list(tmp_path.iterdir()) == []


def assert_as_many(found: Exploration, alone: Exploration) -> None:
    """The counts are those of one core, and each trace is as short."""
    for name in (*("unique_states", "generated_states", "depth", "never_reached"), "exhausted"):
        assert getattr(found, name) == getattr(alone, name)
    assert {each.property: len(each.trace.actions) for each in found.violations} == {
        each.property: len(each.trace.actions) for each in alone.violations
    }


def assert_same(found: Exploration, alone: Exploration) -> None:
    """As many states and steps as on one core, and each trace shows what it claims to show."""
    assert_as_many(found, alone)
    for each in found.violations:
        assert each.property in {one.property for one in violations(replay(each.trace))}


def levels(model: Model[Any], folder: Path, parts: int = 5, kind: type[Levels] = Levels) -> Levels:
    """A search all of whose work this process does, so that there is no Spark."""
    values, is_quotient = tuple(model.values.items()), isinstance(model, Quotient)
    search = _Search(Files(str(folder)), model.name, values, is_quotient, parts)
    return kind(model, search, None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(on_spark, "STATES_A_TASK", 1_000_000)
    with own_folder(tmp_path, PREFIX) as own:
        yield own


@pytest.mark.parametrize("name", [name for name in SEARCHES if name not in {"pipeline, wal", "kafka_log"}])
def test_parts_and_levels_hold_what_one_core_finds(name: str, folder: Path):
    model = make(*SEARCHES[name])
    found = levels(model, folder).explore(MAX_STATES, go_on)
    assert_same(found, explore(model))


@pytest.mark.parametrize("name", ["2pc, early", "2pc, heuristic"])
def test_classes_of_states_are_those_of_one_core(name: str, folder: Path):
    model = Quotient(make(*SEARCHES[name]))
    found = levels(model, folder).explore(MAX_STATES, go_on)
    assert_as_many(found, explore(model))
    assert_same(model.in_full(found), model.in_full(explore(model)))


class Cells(NamedTuple):
    """The state of `Wide`."""

    cells: tuple[int, ...] = (0,) * 30


class Wide(Model[Cells]):
    """Two walkers who each count up 15 cells, one after the other: 30 cells of 3 bits are more than a machine's word.

    Nearly every level brings a value that no cell had before, so numbers grow from one byte to twelve.
    """

    name, version, row = "wide", 1, "cells"

    def initial(self) -> Cells:
        return Cells()

    def actions(self, state: Cells) -> list[Action]:
        return [Action("walk", which) for which in (0, 1) if state.cells[15 * which + 14] < 4]

    def apply(self, state: Cells, action: Action) -> Cells:
        cells = [*state.cells]
        own = range(15 * action.which, 15 * action.which + 15)
        cells[next(place for place in own if cells[place] < 4)] += 1
        return Cells(tuple(cells))

    def properties(self) -> list[Property[Cells]]:
        return [
            Property("low", Mood.ALWAYS, "", lambda state: not state.cells[20], str),
            Property("ends", Mood.EVENTUALLY, "", lambda state: False, str),
            Property("meet", Mood.SOMETIMES, "", lambda state: {*state.cells} == {4}, str),
            Property("never", Mood.SOMETIMES, "", lambda state: False, str),
        ]

    def text(self, state: Cells) -> str:
        return str(state)

    def sentence(self, action: Action) -> str:
        return str(action)


def test_numbers_may_grow_beyond_a_word(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(on_spark, "make", lambda _name, _values: Wide({}))
    search = levels(Wide({}), folder)
    found = search.explore(MAX_STATES, go_on)
    assert_as_many(found, explore(Wide({})))
    assert (found.unique_states, found.depth) == (61 * 61, 120)
    assert {each.property: len(each.trace.actions) for each in found.violations} == {"low": 21, "ends": 120}
    widths = [search.search.files.load("level", level, 0)["state"].itemsize for level in range(120)]
    assert widths == sorted(widths)
    assert (widths[0], widths[-1]) == (1, 12)


class Twice(Levels):
    """A search all of whose tasks run twice, as after an executor's death."""

    def _run(self, work: Any, parts: Any, states: int) -> Any:
        told = super()._run(work, parts, states)
        written = self.contents()
        again = super()._run(work, parts, states)
        assert (again, self.contents()) == (told, written)
        return again

    def contents(self) -> dict[str, bytes]:
        folder = Path(self.search.files.folder)
        return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_task_that_runs_twice_writes_the_same_files(folder: Path):
    model = make("two_phase_commit", {"participants": 1, "crashes": 2})
    found = levels(model, folder, 3, Twice).explore(MAX_STATES, go_on)
    assert_same(found, explore(model))


def test_only_levels_and_codes_are_left_of_all_files(folder: Path):
    levels(make("pipeline", {}), folder, 3).explore(MAX_STATES, go_on)
    kinds = {path.name.partition("-")[0] for path in folder.glob("*-*")}
    assert kinds == {"codes", "known", "level"}
    assert len([*folder.glob("known-*")]) == 3


def test_a_limit_ends_a_search_between_two_levels_and_all_states_are_looked_at(folder: Path):
    """The claim breaks first in the last level that is reached, which is not expanded any more."""
    model = make("two_phase_commit", {"broken": "early"})
    (broken,) = explore(model).violations
    depth = len(broken.trace.actions)
    heard: list[Progress] = []

    def keep_going(progress: Progress) -> bool:
        heard.append(progress)
        return progress.depth < depth

    found = levels(model, folder).explore(MAX_STATES, keep_going)
    assert (found.stopped, found.depth) == ("it was told to stop", depth)
    assert heard[-1] == (found.unique_states, found.generated_states, found.depth)
    assert [each.property for each in found.violations] == [broken.property]
    (other := folder / "other").mkdir()
    limited = levels(model, other).explore(found.unique_states, go_on)
    assert limited.to_json() == found.to_json() | {"stopped": f"{found.unique_states} states were reached"}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "given", "kind"),
    [
        ("two_phase_commit", {"broken": "early"}, Quotient),
        ("barriers", {"counts": 1, "words": "hello-world"}, lambda model: model),
    ],
)
def test_spark_counts_what_one_core_counts(
    model: str, given: dict[str, object], kind: Callable[[Model[Any]], Model[Any]], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(on_spark, "STATES_A_TASK", 20)
    whole = kind(make(model, given))
    alone = explore(whole)
    assert alone.exhausted
    assert_as_many(explore_on_spark(whole, "local[2]"), alone)


def is_executor(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):  # it may have ended meanwhile
        return "CoarseGrained" in " ".join(process.cmdline())
    return False


@pytest.mark.variant
@pytest.mark.spark
@pytest.mark.slow
def test_an_executor_that_is_killed_costs_no_state(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(on_spark, "STATES_A_TASK", 100)
    alone = explore(make("two_phase_commit", {"broken": "heuristic"}))
    killed: list[int] = []

    def kill(progress: Progress) -> bool:
        if progress.depth == 8:
            executors = list(filter(is_executor, psutil.Process().children(recursive=True)))
            killed.append(executors[0].pid)
            # While the next level's tasks run, and not between two levels.
            threading.Timer(0.3, executors[0].kill).start()
        return True

    found = explore_on_spark(
        make("two_phase_commit", {"broken": "heuristic"}), "local-cluster[2,1,512]", keep_going=kill
    )
    assert len(killed) == 1
    until(lambda: not psutil.pid_exists(killed[0]), "the executor's end", seconds=30)
    assert_same(found, alone)


def test_a_master_that_is_none_is_refused_before_anything_starts():
    with pytest.raises(InvalidInput, match=r"--master spork: .*write local"):
        explore_on_spark(make("two_phase_commit", {}), "spork")


def test_the_folder_of_a_killed_search_goes_and_that_of_a_living_one_stays(tmp_path: Path) -> None:
    left = tmp_path / f"{PREFIX}left"
    left.mkdir()
    (left / "codes-0").write_text("x")
    with own_folder(tmp_path, PREFIX) as first:
        assert not left.exists()
        with own_folder(tmp_path, PREFIX) as second:
            assert first.is_dir()
        assert not second.exists()
    assert list(tmp_path.iterdir()) == []
