"""What a learner calls: check, hint, progress, reset; and how an answer is read where it was written."""

import contextlib
import json
import resource
import signal
import subprocess
import sys
from pathlib import Path

import build_notebooks
import pytest
from exercise_sources import all_sources, run

from labkit import lab
from labkit.core.errors import InvalidInput, MissingSolution
from labkit.teach.exercises import check as checking
from labkit.teach.exercises import delivery, progress
from labkit.teach.exercises import namespace as namespaces
from labkit.teach.exercises.contract import LARGEST, MOST_CHARACTERS, AnswerFailed, Kind, Level, plain
from labkit.teach.exercises.namespace import InNotebook
from labkit.teach.exercises.registry import EXERCISES
from labkit.teach.shipped import notebooks, of_course

SOURCES = all_sources()
LIMITED = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its own for what is noted."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "_kept", {})
    monkeypatch.setattr(progress, "_unwritten", set())


def call(code: str, cell: str = "") -> dict[str, object]:
    """Runs a learner's cell, and another one that calls the lab, in one notebook."""
    names: dict[str, object] = {"lab": lab, "__name__": "__main__"}
    exec(cell, names)
    exec(code, names)
    return names


def test_the_course_is_as_it_should_be():
    kinds = [exercise.kind for exercise in EXERCISES.values()]
    least = {Kind.PREDICT: 5, Kind.CONFIGURE: 4, Kind.COMPLETE: 6, Kind.INVARIANT: 3, Kind.EXPLAIN: 4}
    assert len(kinds) >= 24
    assert all(kinds.count(kind) >= count for kind, count in least.items())
    assert {exercise.level for exercise in EXERCISES.values()} == set(Level)
    asking = {exercise.notebook for exercise in EXERCISES.values()}
    assert asking == {path.stem for path in of_course(notebooks())} - {"00_start"}
    for name, exercise in EXERCISES.items():
        assert name == exercise.name
        assert name.startswith(exercise.notebook.partition("_")[0] + "-")
        assert len(exercise.hints) >= 2
        practice = exercise.kind is Kind.PREDICT or bool(exercise.statements)
        assert exercise.is_graded is not practice, name
        assert exercise.public
    assert [name for name, exercise in EXERCISES.items() if exercise.by_hand] == ["07-why", "14-report"]


def test_every_answer_has_a_name_of_its_own():
    answers = [exercise.answer for exercise in EXERCISES.values()]
    assert len(set(answers)) == len(answers)


def test_a_stub_is_called_not_attempted_and_nothing_is_noted(capsys):
    call('lab.check("05-recovery")', SOURCES["05-recovery"][0])
    assert capsys.readouterr().out == '05-recovery: not attempted (4 points); lab.hint("05-recovery") gives a hint.\n'
    call('lab.check("06-predict")')
    assert capsys.readouterr().out == "06-predict: not attempted (not graded); write it, and the run unlocks.\n"
    assert not Path(progress.NAME).exists()


def test_a_solution_passes_and_is_noted(capsys):
    call('lab.check("05-recovery"); lab.progress("05")', SOURCES["05-recovery"][1])
    said = capsys.readouterr().out
    assert "05-recovery, a participant comes back: 2 of 2 public checks passed." in said
    assert "05-recovery  complete   medium  done           4 of 4" in said
    assert "05-atomic    invariant  medium  not attempted  0 of 3" in said
    assert said.splitlines()[-1].endswith("4 of 7")


def test_a_wrong_answer_gets_observed_and_expected_and_its_counterexample_at_the_failing_step(capsys, monkeypatch):
    shown = []
    monkeypatch.setattr(checking, "_show", shown.append)
    call('lab.check("05-recovery")', 'def recover(log):\n    return "abort"\n')
    said = capsys.readouterr().out
    assert "check 1 of 2 failed" in said
    assert "On the way recover(['prepared']) answered 'abort'." in said
    assert "Expected: A participant that voted yes aborts only if that was decided." in said
    [finding] = shown
    assert finding.at == finding.trace.count(".") + 1 - finding.trace.partition("~~")[0].count(".")
    assert json.loads(Path(progress.NAME).read_text())["05-recovery"]["state"] == "not yet"


def test_a_counterexample_opens_in_the_player_without_the_learners_code(monkeypatch):
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    try:
        captured = []
        monkeypatch.setattr("IPython.display.display", captured.append)
        shell.user_ns["lab"] = lab
        shell.run_cell('def key(row):\n    return row["count"]\nlab.check("06-key")', store_history=True)
        [player] = captured
        assert player.at == len(player.story.actions)
        assert "text/html" in player._repr_mimebundle_()
    finally:
        InteractiveShell.clear_instance()


def test_an_unknown_exercise_gets_the_nearest_name():
    with pytest.raises(InvalidInput, match="did you mean '05-recovery'"):
        lab.check("05-recover")


def test_hints_come_one_after_the_other(capsys):
    for level in (1, 2, 3, 3):
        lab.hint("05-recovery")
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == level + 1
        assert lines[-1] == "A solution has about 5 lines."
        assert lines[0].startswith("Hint 1 of 3: ")


def test_a_reset_asks_first_and_gives_the_stub_back(capsys):
    names = call('lab.check("05-recovery")', SOURCES["05-recovery"][1])
    capsys.readouterr()
    exec('lab.reset("05-recovery")', names)
    assert 'run lab.reset("05-recovery", confirm=True)' in capsys.readouterr().out
    assert "recover" in names
    exec('lab.reset("05-recovery", confirm=True)', names)
    said = capsys.readouterr().out
    assert "recover" not in names
    assert "raise NotImplementedError" in said
    assert progress.of("05-recovery") == {}


def test_all_can_be_reset(capsys):
    names = call('lab.check("05-recovery")', SOURCES["05-recovery"][1] + "\nlinks = 1\n")
    exec("lab.reset()", names)
    assert "links" in names
    exec("lab.reset(confirm=True)", names)
    assert not {"links", "recover"} & set(names)
    assert f"all {len(EXERCISES)} exercises: your answer and progress are deleted." in capsys.readouterr().out


def test_a_first_prediction_is_kept_beside_the_outcome(capsys):
    call('lab.check("06-predict")', 'predicted_06 = {"lost": [0], "duplicate": []}')
    call('lab.check("06-predict")', SOURCES["06-predict"][1])
    said = capsys.readouterr().out
    assert "lost: you predicted [0], it was []" in said
    assert "Your first prediction stays on record: lost=[0], duplicate=[]." in said
    noted = progress.of("06-predict")
    assert (noted["predicted"], noted["came"]) == ("lost=[0], duplicate=[]", "lost=[], duplicate=[2, 3]")
    assert noted["points"] == 0


NUMBERS = """
def numbers(value):
    if callable(value):
        return lambda *arguments: numbers(value(*arguments))
    if isinstance(value, dict):
        return {key: numbers(each) for key, each in value.items()}
    return int(value) if isinstance(value, bool) else value
"""
"""A learner's code that turns True and False into 1 and 0."""


@pytest.mark.parametrize("name", ["05-atomic", "04-align", "02-chain"])
def test_one_and_zero_count_as_true_and_false(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As a property's answer, within a dict, and as a setting."""
    answer = EXERCISES[name].answer
    call(f'lab.check("{name}")', f"{SOURCES[name][1]}\n{NUMBERS}\n{answer} = numbers({answer})")
    assert progress.of(name)["state"] == "done", capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("06-predict", '{"lost": []}', "must be a dict with the keys lost, duplicate"),
        ("06-predict", '{"lost": [], "duplicate": True}', "must be of type list"),
        ("06-predict", '{"lost": [], "duplicate": ...}', "still contains '...'"),
        ("01-links", '{"source": "log", "engine": "spark", "sink": "wal"}', "choose from 'commit-then-log'"),
        ("01-weakest", '"e"', "choose from 'a', 'b', 'c', 'd'"),
        ("01-weakest", '"a"', "No. a)"),
        ("07-why", '"short"', "at least 40 characters"),
        ("04b-settings", '{"mode": "aligned", "sink": "append", "retention": "keep"}', "come out more than once"),
        ("02-chain", '{"retry": False, "dedup": "durable", "ids": "derived"}', "retry=false"),
        ("05-recovery", "1", "must be a function"),
    ],
)
def test_an_answer_of_the_wrong_form_gets_a_sentence(name, answer, said, capsys):
    call(f'lab.check("{name}")', f"{EXERCISES[name].answer} = {answer}")
    assert said in capsys.readouterr().out
    assert progress.of(name)["state"] == "not yet"


def test_a_text_is_kept_for_a_person(capsys):
    call('lab.check("07-why"); lab.progress("07")', SOURCES["07-why"][1])
    said = capsys.readouterr().out
    assert "kept for your instructor" in said
    assert "0 of 3" in said


def test_arguments_are_the_functions_own():
    given = [1, 2]
    answer = InNotebook("f", {"f": lambda some: some.append(3) or some})
    assert answer.call(given) == [1, 2, 3]
    assert given == [1, 2]


def test_a_function_that_does_not_end_is_stopped(monkeypatch):
    monkeypatch.setattr(namespaces, "SECONDS", 0.05)
    names = run(
        "def f():\n    while True:\n        try:\n            while True: pass\n        except Exception: pass\n"
    )
    with pytest.raises(AnswerFailed, match=r"f\(\) took longer"):
        InNotebook("f", names).call()


@LIMITED
def test_a_function_that_fills_the_memory_is_stopped(monkeypatch):
    """Without the limit it would need 8 GB, in a call that no signal interrupts."""
    monkeypatch.setattr(namespaces, "ROOM", 64 * 1024**2)
    monkeypatch.setattr(namespaces, "SECONDS", 60.0)  # on a busy machine, the memory fills slowly
    before = resource.getrlimit(resource.RLIMIT_AS)
    lists = InNotebook("f", {"f": lambda number: set(range(number)) and 1})
    with pytest.raises(AnswerFailed, match=r"f\(100000000\) raised MemoryError; .*labkit's own limit .* 1 GB "):
        lists.call(10**8)
    # The large number is after those that a message shows.
    with pytest.raises(AnswerFailed, match=r"f\(\[1000000, .*\.\.\.\) raised MemoryError; "):
        InNotebook("f", {"f": lambda numbers: set(range(numbers[-1])) and 1}).call([*range(10**6, 10**6 + 30), 10**8])
    assert lists.call(10) == 1
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_no_alarm_can_come_while_the_limit_of_memory_ends(monkeypatch):
    left = []

    @contextlib.contextmanager
    def limit():
        yield
        left.append(signal.getitimer(signal.ITIMER_REAL)[0])

    monkeypatch.setattr(namespaces, "memory_limit", limit)
    during = InNotebook("f", {"f": lambda _number: signal.getitimer(signal.ITIMER_REAL)[0] > 0})
    assert during.call(10**8) is True
    assert left == [0]


@pytest.mark.parametrize(("body", "shown"), [("1 / 0", "Odd"), ("'x' * 999", f"Odd: {'x' * 295}")])
def test_the_message_of_an_error_is_cut_and_is_empty_if_it_fails_itself(body: str, shown: str):
    names = run(f"class Odd(Exception):\n    def __str__(self):\n        return {body}\ndef f():\n    raise Odd\n")
    with pytest.raises(AnswerFailed) as raised:
        InNotebook("f", names).call()
    assert str(raised.value) == f"f() raised {shown}."


@LIMITED
def test_a_fence_that_lists_all_stored_offsets_fails_the_check(monkeypatch):
    monkeypatch.setattr(namespaces, "ROOM", 64 * 1024**2)
    monkeypatch.setattr(namespaces, "SECONDS", 60.0)  # on a busy machine, the memory fills slowly
    names = run(
        "def admit(newest, following, generation, offsets):\n"
        "    if generation < newest:\n"
        "        return 'fenced'\n"
        "    stored = set(range(following))\n"
        "    new = [offset for offset in offsets if offset not in stored]\n"
        "    return [generation, new[-1] + 1 if new else following, new]\n"
    )
    found = checking.judged(EXERCISES["09c-fence"], names)
    assert found is not None
    assert [each.passed for each in found] == [True, True, False]
    assert "raised MemoryError; " in found[-1].message


@pytest.mark.parametrize("body", ["raise NotImplementedError", "return ..."])
def test_a_function_that_is_not_written_is_missing(body):
    with pytest.raises(MissingSolution):
        InNotebook("f", run(f"def f():\n    {body}\n")).call()


def test_a_folder_that_cannot_be_written_to_is_no_error(capsys, monkeypatch):
    monkeypatch.setattr(Path, "write_text", lambda *_, **__: (_ for _ in ()).throw(OSError("read-only")))
    lab.hint("05-recovery")
    lab.hint("05-recovery")
    assert "Hint 2 of 3" in capsys.readouterr().out


def test_a_damaged_note_is_as_none(capsys):
    Path(progress.NAME).write_text("[1]")
    lab.progress("05")
    assert "0 of 7" in capsys.readouterr().out


@pytest.mark.parametrize("value", [LARGEST - 1, "x" * (MOST_CHARACTERS - 2)], ids=["number", "text"])
def test_an_answer_of_no_sensible_size_is_no_fault_of_the_judge(value):
    class Huge:
        def call(self, *_):
            return value

        def expect(self, _):
            pass

        step = call

        def value(self):
            return value

    assert plain(value) == value  # a learner's own answer can be as large
    for exercise in EXERCISES.values():
        for variant in exercise.public:
            finding = exercise.judge(Huge(), variant)
            assert exercise.by_hand or not finding.passed
            assert len(finding.message) < 2_000


@pytest.mark.parametrize("name", EXERCISES)
def test_a_stub_is_answered_as_the_notebook_expects(name, capsys):
    """What the checked copies hold, also those that `make test` does not run."""
    source = Path(__file__).parent.parent.parent / "notebooks" / "src" / f"{EXERCISES[name].notebook}.py"
    call(f'lab.check("{name}")', SOURCES[name][0])
    said = "".join(f"# {line}\n" for line in capsys.readouterr().out.splitlines())
    assert f'lab.check("{name}")\n\n# %% [raw] tags=["expected"]\n{said}' in source.read_text(encoding="utf-8")


def test_a_list_without_end_is_refused(capsys):
    call('lab.check("02-dedup")', 'def receive(id, table, memory):\n    return ["remember"] * 51\n')
    assert "returned 51 steps, more than 50" in capsys.readouterr().out


def test_the_guide_lists_every_exercise():
    guide = Path(__file__).parents[2] / "docs" / "reference" / "exercises.md"
    assert build_notebooks.exercise_table() in guide.read_text(encoding="utf-8")


def test_a_check_loads_the_judge_and_the_simulator_of_its_own_exercise_only():
    code = """
import sys
from labkit.teach.exercises.check import check
def receive(id, table, memory): return ["output", "acknowledge"]
check("02-dedup")
print(*sorted(sys.modules), sep="\\n")
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "check 1 of 7 failed" in ran.stdout
    loaded = set(ran.stdout.splitlines())
    judges = {path.stem for path in Path(delivery.__file__).parent.glob("*.py") if "\nJUDGES = " in path.read_text()}
    assert {each for each in judges if f"labkit.teach.exercises.{each}" in loaded} == {"delivery"}
    assert len(judges) == 21
    assert "labkit.sim.models.delivery" in loaded
    assert not loaded & {"labkit.sim.models.kafka_log", "labkit.sim.models.barriers", "labkit.view.scenes.barriers"}
