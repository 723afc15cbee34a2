"""Questions: their data and what is refused of it, what is noted of an answer, and what is shown beside what came."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from labkit import lab
from labkit.core.errors import InvalidInput
from labkit.core.verdict import Guarantee
from labkit.teach.exercises import progress
from labkit.teach.questions import asking, notes
from labkit.teach.questions.card import Answer
from labkit.teach.questions.question import Kind, Question, find, load, questions

CHOICE = Question(
    "00-sample",
    Kind.CHOICE,
    "How many rows?",
    ("6",),
    "Nothing on disk said so.",
    options=("0", "3", "6"),
    replies={"3": "Three were there before."},
)
NUMBER = Question("00-count", Kind.NUMBER, "How many?", ("6",), "Three and three.")
SEVERAL = Question(
    "00-durable",
    Kind.SEVERAL,
    "Which survive?",
    ("a log", "a table"),
    "Both are files.",
    options=("a log", "memory", "a table"),
)
SENTENCES = Question(
    "00-verdict",
    Kind.CHOICE,
    "What comes?",
    ("rows come twice",),
    "The batch ran twice.",
    options=("rows come twice", "rows are missing"),
    means={"no_duplicate": "rows come twice", "no_loss": "rows are missing"},
)
MADE = {each.name: each for each in (CHOICE, NUMBER, SEVERAL, SENTENCES)}
TOML = """\
[rows]
kind = "choice"
text = "How many rows?"
options = ["0", "3", "6"]
right = "6"
because = "Nothing on disk said so."
[rows.if]
"3" = "Three were there before."
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder and a kernel's memory of their own, and questions that no notebook asks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "_kept", {})
    monkeypatch.setattr(progress, "_unwritten", set())
    monkeypatch.setattr(asking, "_open_questions", {})
    monkeypatch.setattr(asking, "find", MADE.__getitem__)
    monkeypatch.setattr(asking, "questions", lambda: MADE)
    monkeypatch.delenv(notes.UNATTENDED, raising=False)


def say(question: Question, *said: str, why: str = "") -> asking.OpenQuestion:
    """What the browser sends when a learner has answered."""
    asked = asking._open_questions.setdefault(question.name, asking.OpenQuestion(question))
    asked.handle({"said": list(said), "why": why})
    return asked


def new_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_kept", {})
    monkeypatch.setattr(asking, "_open_questions", {})


def in_file() -> dict:
    return json.loads(Path(progress.NAME).read_text())


# The data


def test_the_course_can_be_read_and_keeps_its_own_rules():
    for name, question in questions().items():
        assert question.text.endswith("?"), name
        assert question.because.endswith("."), name
        assert all(each.endswith(".") for each in question.replies.values()), name
        assert not set(question.replies) & set(question.right), name


def test_a_file_gives_its_questions(tmp_path: Path):
    (tmp_path / "09b.toml").write_text(TOML)
    (question,) = load(tmp_path).values()
    assert question.name == "09b-rows"
    assert question.notebook == "09b"
    assert question.right == ("6",)
    assert question.replies == {"3": "Three were there before."}


@pytest.mark.parametrize(
    ("old", "new", "refusal"),
    [
        ('"choice"', '"chioce"', "[rows]: Invalid enum value 'chioce' - at `$.kind`; correct it."),
        ('kind = "choice"\n', "", "[rows]: Object missing required field `kind`"),
        ('text = "How many rows?"', "text = 3", "[rows]: Expected `str`, got `int` - at `$.text`"),
        ('text = "How many rows?"', 'text = " "', "at `$.text`"),
        ("because", "becuase", "[rows]: unknown key 'becuase'; did you mean 'because'?"),
        ("[rows.if]", "[rows.fi]", "[rows]: unknown key 'fi'; did you mean 'if'?"),
        ('right = "6"', 'right = "7"', "right names '7', which is not an option"),
        ('right = "6"', "right = 6", "right names 6, which is not an option"),
        ('right = "6"', "right = true", "got `bool` - at `$.right`"),
        ('right = "6"\n', "", "missing required field `right`"),
        ('["0", "3", "6"]', '["6"]', "at least two different options are needed"),
        ('["0", "3", "6"]', '["a", "6", "A"]', "at least two different options are needed"),
        ('["0", "3", "6"]', '["6", "All is lost."]', "at `$.options["),
        ('["0", "3", "6"]', '["6", " 3"]', "at `$.options["),
        ('["0", "3", "6"]', f'["6", "{81 * "x"}"]', "at `$.options["),
        ('["0", "3", "6"]', '[3, "6"]', "at `$.options["),
        ('"3" =', '"4" =', "[if] names '4', which is not an option"),
        ('"Three were there before."', '""', "at `$.if[...]`"),
        ("[rows]", "[Rows]", "[Rows]: the name has other characters"),
        ("[rows]", "[rows", "00.toml cannot be read as a file of questions: Expected"),
        ('kind = "choice"', 'kind = "number"', "a number has no options"),
        ('right = "6"', "right = []", "right does not fit the kind"),
        ('kind = "choice"', 'kind = "several"', "right does not fit the kind"),
        (TOML, TOML.replace("choice", "several").replace('"6"\nb', '["6"]\nb'), "only a choice has [if] sentences"),
        ("[rows.if]", "[rows.means]", "means names 'Three were there before.', which"),
        (TOML, "rows = 3\n", "[rows]: Expected `object`, got `int`"),
        (TOML, "".join(TOML.replace("rows", each) for each in "abcd"), "4 questions"),
    ],
)
def test_bad_data_gets_one_sentence_with_its_place(tmp_path: Path, old, new, refusal):
    assert old in TOML
    (tmp_path / "00.toml").write_text(TOML.replace(old, new))
    with pytest.raises(InvalidInput, match=re.escape(refusal)) as raised:
        load(tmp_path)
    assert str(raised.value).startswith("00.toml")
    assert "\n" not in str(raised.value)


def test_a_file_of_another_name_is_refused(tmp_path: Path):
    (tmp_path / "rows.toml").write_text(TOML)
    with pytest.raises(InvalidInput, match=r"rows\.toml: .* rename it"):
        load(tmp_path)


def test_an_unknown_question_gets_the_nearest_name(monkeypatch):
    monkeypatch.undo()
    for verb in (lab.ask, lab.answer):
        with pytest.raises(InvalidInput, match=r"'00-row'; did you mean '00-rows'\?"):
            verb("00-row")
    with pytest.raises(InvalidInput, match=r'02-dedup is an exercise, not a question: lab\.check\("02-dedup"\) checks'):
        lab.ask("02-dedup")


@pytest.mark.parametrize("name", [5, ["x"], {"x": 1}])
@pytest.mark.parametrize(
    ("verb", "example"),
    [
        (lab.ask, 'lab.ask("00-rows")'),
        (lab.answer, 'lab.answer("00-rows"'),
        (lab.check, 'lab.check("05-recovery")'),
        (lab.hint, 'lab.hint("05-recovery")'),
        (lab.reset, 'lab.reset("00-rows"'),
        (lab.progress, 'lab.progress("05")'),
        (lab.word, 'lab.word("offset")'),
        (lab.code, 'lab.code("append")'),
    ],
)
def test_a_name_that_is_no_text_gets_a_sentence(monkeypatch, verb, example, name):
    monkeypatch.setattr(asking, "find", find)
    with pytest.raises(InvalidInput, match=re.escape(f"quotation marks, as in {example}")):
        verb(name)


# What is said, and what is measured


@pytest.mark.parametrize(
    ("question", "given", "refusal"),
    [
        (CHOICE, [], "Choose an option first"),
        (CHOICE, ["7"], "options of this question have changed"),
        (CHOICE, ["3", "6"], "options of this question have changed"),
        (CHOICE, None, "Choose an option first"),
        (NUMBER, ["six"], "Write a number first"),
        (NUMBER, [""], "Write a number first"),
        (NUMBER, ["nan"], "Write a number first"),
        (NUMBER, ["1e999"], "Write a number first"),
        (NUMBER, ["9" * 50], "Write a number first"),
        (SEVERAL, [], "Choose an option first"),
    ],
)
def test_what_cannot_be_a_prediction_gets_a_sentence_and_is_not_noted(question, given, refusal):
    asked = asking.OpenQuestion(question)
    asked.handle({"said": given})
    assert refusal in asked.form.shown["notice"]
    assert not Path(progress.NAME).exists()


@pytest.mark.parametrize(
    ("question", "found", "came"),
    [
        (CHOICE, 6, ("6",)),
        (CHOICE, "6", ("6",)),
        (CHOICE, 6.0, ("6",)),
        (CHOICE, 7, ("7",)),
        (CHOICE, None, ("6",)),
        (NUMBER, 6, ("6",)),
        (NUMBER, 0.5, ("0.5",)),
        (NUMBER, "unknown", ("unknown",)),
        (SEVERAL, {"a table", "a log"}, ("a log", "a table")),
        (SEVERAL, ["a queue", "a log"], ("a log", "a queue")),
        (SEVERAL, [], ("nothing",)),
        (SEVERAL, {"a table": 1, "a log": 2}.keys(), ("a log", "a table")),
        (SEVERAL, (each for each in ("a queue", "a log")), ("a log", "a queue")),
        (CHOICE, True, ("yes",)),
        (NUMBER, [6.0], ("6",)),
        (SENTENCES, "no_loss", ("rows are missing",)),
        (SENTENCES, "Rows come twice", ("rows come twice",)),
        (SENTENCES, Guarantee.NONE, ("none",)),
    ],
)
def test_what_a_run_measures_is_said_as_a_prediction_would_say_it(question, found, came):
    assert question.measured(found) == came


@pytest.mark.parametrize("found", [object(), {"a log": 1}, [None], [["a log"]], b"6", lambda: 6, {"a": 1}.items()])
@pytest.mark.parametrize("question", [CHOICE, NUMBER, SEVERAL])
def test_what_is_no_measurement_is_refused_and_not_noted(question, found):
    say(question, question.right[0])
    noted = Path(progress.NAME).read_text()
    with pytest.raises(InvalidInput, match=r"pass a value .* as outcome\.v"):
        lab.answer(question.name, found)
    assert Path(progress.NAME).read_text() == noted


def test_one_number_can_be_said_in_many_ways():
    for said in ("6", " 6.0 ", "+6", "6e0"):
        assert NUMBER.parse([said]) == ("6",)


# The card


def test_without_a_prediction_the_card_says_what_came_and_why():
    assert str(lab.answer("00-sample", 6)) == "It was 6.\nNothing on disk said so."
    assert not Path(progress.NAME).exists()


def test_a_prediction_stands_beside_what_came(capsys):
    say(CHOICE, "3", why="the rows are there")
    assert str(lab.answer("00-sample", 6)).splitlines() == [
        "You said 3. It was 6.",
        "Nothing on disk said so.",
        "Three were there before.",
    ]
    assert in_file()["00-sample"] == {
        "question": "How many rows?",
        "predicted": ["3"],
        "why": "the rows are there",
        "state": "other",
        "came": ["6"],
    }
    say(SEVERAL, "a table", "a log")
    card = lab.answer("00-durable", ["a table", "a log"])
    assert str(card).startswith("You said: a log, a table. It was: a log, a table.")
    assert card.agrees


def test_a_run_that_came_out_differently_says_so():
    say(CHOICE, "3")
    text = str(lab.answer("00-sample", 4))
    assert text.startswith("You said 3. It was 4.\nThis run came out differently")
    assert "The expected result is 6. Nothing on disk said so." in text
    assert "Three were there" not in text


class Texts(HTMLParser):
    """The tags and the attributes of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.given: dict[str, str | None] = {}
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.given |= dict(attrs)


def test_hostile_text_stays_text_in_card_and_form():
    evil = '</script><script>alert("1")</script><img src=x>'
    made = Question("00-x", Kind.CHOICE, evil, (evil,), evil, (evil, "b"), evil, {}, {"b": evil})
    card = Texts(Answer(made, ("b",), ("b",)).html())
    assert set(card.tags) == {"div", "style", "p"}
    assert json.loads(card.given["data-lines"])["came"] == ["b"]
    form = asking.OpenQuestion(made).form._repr_mimebundle_()
    html = (form[0] if isinstance(form, tuple) else form)["text/html"]
    assert Texts(html).tags.count("script") == 2
    assert "img" not in Texts(html).tags


def test_the_form_knows_nothing_of_the_answer():
    told = json.dumps(asking.OpenQuestion(CHOICE).form.shown)
    assert "Nothing on disk" not in told
    assert "Three were there" not in told
    assert "right" not in told.replace(json.dumps(asking.WORDS), "")


def test_a_page_finds_every_sentence_in_the_card():
    lines = json.loads(Texts(Answer(CHOICE, ("6",)).html()).given["data-lines"])
    for said in CHOICE.options:
        card = Answer(CHOICE, ("6",), (said,))
        assert lines["heads"][said] == card.lines[0]
        assert lines["replies"].get(said, "") == "".join(card.lines[2:])
    number = json.loads(Texts(Answer(NUMBER, ("6",)).html()).given["data-lines"])
    assert number["other"].replace("{}", "5") == Answer(NUMBER, ("6",), ("5",)).lines[0]
    assert len(Answer(CHOICE, ("6",)).html()) < 50_000


# A second visit


def test_a_prediction_can_be_changed_until_the_answer_was_shown(monkeypatch):
    say(CHOICE, "3")
    new_kernel(monkeypatch)
    again = asking.OpenQuestion(CHOICE)
    assert again.form.shown["said"] == ["3"]
    assert again.form.shown["notice"].startswith("Noted: 3. You can change it")
    asking._open_questions[CHOICE.name] = again
    say(CHOICE, "6")
    lab.answer("00-sample", 6)
    assert again.form.shown["closed"]
    say(CHOICE, "0")
    assert "can no longer change" in again.form.shown["notice"]
    assert in_file()["00-sample"]["predicted"] == ["6"]
    new_kernel(monkeypatch)
    assert asking.OpenQuestion(CHOICE).form.shown["closed"]
    assert str(lab.answer("00-sample", 6)).startswith("You said 6. It was 6.")


def test_a_prediction_that_comes_after_the_answer_is_none():
    asked = asking.OpenQuestion(CHOICE)
    asking._open_questions[CHOICE.name] = asked
    lab.answer("00-sample", 6)
    say(CHOICE, "6")
    assert "shown before your prediction arrived" in asked.form.shown["notice"]
    assert not Path(progress.NAME).exists()


def test_to_see_it_without_a_prediction_is_noted_and_may_be_changed():
    asked = asking.OpenQuestion(CHOICE)
    asking._open_questions[CHOICE.name] = asked
    asked.handle({"skip": True})
    assert in_file()["00-sample"]["state"] == "skipped"
    say(CHOICE, "3")
    assert in_file()["00-sample"]["state"] == "noted"
    asked.handle({"skip": True})
    assert str(lab.answer("00-sample", 6)).startswith("It was 6.")
    assert in_file()["00-sample"]["state"] == "skipped"


def test_what_came_first_stays_noted_when_the_run_is_changed():
    say(CHOICE, "3")
    lab.answer("00-sample", 6)
    assert str(lab.answer("00-sample", 4)).startswith("You said 3. It was 4.")
    assert in_file()["00-sample"]["came"] == ["6"]


def test_where_nobody_predicts_nothing_noted_counts(monkeypatch):
    say(CHOICE, "3")
    monkeypatch.setenv(notes.UNATTENDED, "1")
    assert str(lab.answer("00-sample", 6)) == "It was 6.\nNothing on disk said so."
    assert asking.OpenQuestion(CHOICE).form.shown["said"] is None
    monkeypatch.setenv(notes.UNATTENDED, "0")
    assert str(lab.answer("00-sample", 6)).startswith("You said 3.")


def test_outside_a_notebook_nothing_is_shown(capsys):
    assert lab.ask("00-sample") is None
    assert capsys.readouterr().out == ""
    assert asking._open_questions == {}


# What is kept


def test_progress_lists_predictions_beside_exercises(capsys):
    say(CHOICE, "3")
    say(NUMBER, "6")
    say(SEVERAL, "memory")
    asking.OpenQuestion(SENTENCES).handle({"skip": True})
    lab.answer("00-sample", 6)
    lab.answer("00-count", 6)
    lab.progress("00")
    said = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["00-sample", "3", "6", "other"] in said
    assert ["00-count", "6", "6", "right"] in said
    assert ["00-durable", "memory", "-", "noted"] in said
    assert ["00-verdict", "-", "-", "skipped"] in said
    assert said[-1] == ["total", "1", "right,", "1", "other,", "1", "skipped"]
    lab.progress("01")
    assert "00-sample" not in capsys.readouterr().out


def test_a_prediction_can_be_dropped(capsys):
    say(CHOICE, "3")
    lab.answer("00-sample", 6)
    lab.reset("00-sample")
    assert 'lab.reset("00-sample", confirm=True)' in capsys.readouterr().out
    assert "00-sample" in in_file()
    lab.reset("00-sample", confirm=True)
    assert "00-sample" not in in_file()
    assert asking.OpenQuestion(CHOICE).form.shown["closed"] is False


DAMAGED = {
    "no JSON": b'{"05-recovery": {"state": "done"',
    "no text": b"\xff\xfe\x00",
    "a list": b"[1]",
    "without end": b"[" * 100_000,
    "too large": b" " * (progress.LARGEST + 1),
    "in part": b'{"05-recovery": {"state": "done", "points": 4}, "06-key": [1]}',
}


@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_put_aside_and_nothing_is_lost(damaged: bytes, capsys):
    path = Path(progress.NAME)
    path.write_bytes(damaged)
    lab.progress()
    say(CHOICE, "3")
    assert in_file()["00-sample"]["predicted"] == ["3"]
    assert Path(f"{progress.NAME}.damaged-1").read_bytes() == damaged
    assert ("05-recovery" in in_file()) == damaged.startswith(b'{"05-recovery": {"state": "done", ')
    path.write_bytes(damaged)
    say(NUMBER, "6")
    assert Path(f"{progress.NAME}.damaged-2").read_bytes() == damaged
    assert "00-count" in in_file()
    assert min(each.name for each in Path().iterdir()) == progress.NAME


@pytest.mark.parametrize(
    "note",
    [
        {"predicted": "3", "state": "noted"},
        {"predicted": [7], "came": 6},
        {"predicted": None, "why": [1], "state": 3},
        {"hints": "many", "points": None},
    ],
)
def test_a_note_that_is_none_is_as_none(note: dict, capsys):
    Path(progress.NAME).write_text(json.dumps({"00-sample": note, "05-recovery": note}))
    assert asking.OpenQuestion(CHOICE).form.shown["said"] is None
    assert str(lab.answer("00-sample", 6)).startswith("It was 6.")
    lab.progress()
    lab.hint("05-recovery")


def test_a_folder_that_cannot_be_written_to_keeps_it_for_this_kernel(monkeypatch):
    say(NUMBER, "5")
    before = Path(progress.NAME).read_text()

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("read-only")

    with monkeypatch.context() as patch:
        # Not by the folder's mode: whoever may do everything, as in a container, would write nevertheless.
        patch.setattr(Path, "write_text", refuse)
        patch.setattr(Path, "unlink", refuse)
        say(CHOICE, "3")
        assert str(lab.answer("00-sample", 6)).startswith("You said 3. It was 6.")
        assert str(lab.answer("00-count", 6)).startswith("You said 5. It was 6.")
        assert Path(progress.NAME).read_text() == before
    say(SEVERAL, "memory")
    assert set(in_file()) == {"00-sample", "00-count", "00-durable"}


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path, monkeypatch):
    """Really nothing can be written there, whoever asks; the mode of a folder does not keep root out."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    say(CHOICE, "3")
    assert str(lab.answer("00-sample", 6)).startswith("You said 3. It was 6.")
    monkeypatch.chdir(tmp_path)


def test_two_notebooks_note_beside_each_other():
    say(CHOICE, "3")
    there = in_file() | {"05-recovery": {"state": "done", "points": 4}}
    Path(progress.NAME).write_text(json.dumps(there))
    say(NUMBER, "6")
    assert set(in_file()) == {"00-sample", "00-count", "05-recovery"}
