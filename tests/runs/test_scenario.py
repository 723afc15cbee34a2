"""An option of a run is said once: whoever adds a field finds it everywhere, and what runs already have stays
readable.
"""

import inspect
import json
import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from labkit import lab
from labkit.cli.run import run_of
from labkit.core.errors import InvalidInput
from labkit.core.kinds import Name
from labkit.core.options import Part, option, options_of
from labkit.runs.choices import parts
from labkit.runs.crash import takes_options
from labkit.runs.scenario import Scenario, plan
from labkit.runs.scenario.checks import after_crash


class Mood(StrEnum):
    CALM = "calm"
    ANGRY = "angry"


@dataclass(frozen=True)
class Moody(Scenario):
    """A scenario with one option more, as somebody would add it."""

    killer_mood: Mood = option(
        Name(Mood),
        Mood.CALM,
        "How whoever kills feels about it.",
        needs=[after_crash("nobody is killed otherwise")],
        part=Part("mood", lambda _: list(Mood)),
    )


ANGRY = {"sink": "wal", "crashes": ["sink.mid_write@0"], "killer_mood": "angry"}


def on_the_command_line(*words: str | Path) -> Result:
    verb = typer.Typer(rich_markup_mode=None)
    verb.command()(run_of(Moody))
    return CliRunner().invoke(verb, [str(word) for word in words])


def test_a_new_option_is_on_the_command_line() -> None:
    said = " ".join(on_the_command_line("--help").output.split())
    assert "--killer-mood <str> How whoever kills feels about it." in said
    assert "[default: calm]" in said


def test_a_new_option_of_the_command_line_reaches_the_scenario() -> None:
    refused = on_the_command_line("--killer-mood", "angy").exception
    assert isinstance(refused, InvalidInput)
    assert str(refused) == "--killer-mood angy: unknown; did you mean 'angry'?"


def test_a_new_option_is_refused_with_resume(tmp_path: Path) -> None:
    refused = on_the_command_line("--resume", tmp_path, "--killer-mood", "calm")
    assert str(refused.exception).startswith("--killer-mood with --resume: ")


def test_a_new_option_is_an_argument_in_python() -> None:
    @takes_options("crashes", of=Moody)
    def crash(at: str = "", *, standby: bool = False, **options: object) -> None:
        """Kills."""

    assert next(iter(inspect.signature(crash).parameters)) == "at"
    assert inspect.signature(crash).parameters["killer_mood"].default == "calm"
    assert "killer_mood: How whoever kills feels about it." in (crash.__doc__ or "")


def test_a_new_option_is_in_json_and_in_the_command() -> None:
    angry = Moody.plan(ANGRY)
    assert angry.killer_mood is Mood.ANGRY
    assert angry.to_json()["killer_mood"] == "angry"
    assert Moody.from_json(json.loads(json.dumps(angry.to_json()))) == angry
    assert angry.command().endswith(" --killer-mood angry")
    assert "mood" not in Moody.plan(ANGRY | {"killer_mood": None}).command()


def test_a_new_option_applies_where_it_says() -> None:
    with pytest.raises(InvalidInput) as refused:
        Moody.plan({"killer_mood": "angry"})
    assert str(refused.value) == "--killer-mood angry: nobody is killed otherwise; name one with --crash."


def test_a_new_option_has_its_place_in_the_panel() -> None:
    part, _ = parts(Moody)["killer_mood"]
    assert part.label == "mood"


def test_a_run_from_before_the_option_is_still_read() -> None:
    old = Scenario.plan({"sink": "wal"})
    assert Moody.from_json(old.to_json()).killer_mood is Mood.CALM


OLDEST = {
    "job": "totals",
    "input": "/somewhere/words.txt",
    "sink": "two_phase",
    "store": "sqlite",
    "order": "decision",
    "crashes": ["sink.mid_commit@0", "recovery.mid_resolve"],
    "records_per_batch": 5,
    "state": "rocksdb",
    "checkpoint": "deleted",
    "query": "counts_1",
    "later_records_per_batch": None,
}
"""The options that the configuration of every run has, since the first one."""


def test_the_oldest_configuration_is_read() -> None:
    scenario = Scenario.from_json(OLDEST)
    assert {name: scenario.to_json()[name] for name in OLDEST} == OLDEST
    assert (scenario.partitions, scenario.between.value) == (3, "nothing")
    assert scenario.command() == (
        "labkit run --sink two_phase --store sqlite --job totals --order decision --input /somewhere/words.txt "
        "--crash sink.mid_commit@0 --crash recovery.mid_resolve --records-per-batch 5 --delete-checkpoint "
        "--state rocksdb --query counts_1"
    )


@pytest.mark.parametrize("name", OLDEST)
def test_a_damaged_configuration_is_not_completed(name: str) -> None:
    with pytest.raises(KeyError):
        Scenario.from_json({key: OLDEST[key] for key in OLDEST if key != name})


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"sink": "wal", "order": "engine", "crashes": ["sink.mid_commit"]},
        {"job": "totals", "state": "rocksdb", "input": Path("a file.txt")},
        {"crashes": "sink.mid_write", "partitions": 4, "later_partitions": 3},
        {"master": "local-cluster[3,2,700]", "query": "q", "records_per_batch": 7},
        {"job": "kafka", "between": "falsify-group", "crashes": ["sink.mid_write"]},
        {"crashes": ["sink.mid_write@0"], "delete_checkpoint": True},
        {"master": "local-cluster[2,2,1024]", "victim": "executor", "crashes": ["sink.mid_write@0"]},
        {
            "job": "kafka",
            "between": "falsify-group",
            "crashes": ["sink.mid_commit@0"],
            "sink": "wal",
            "commit_group": True,
        },
        {"job": "shop", "between": "edit-prices", "crashes": "sink.after_pre_commit"},
        {"sink": "two_phase", "store": "kafka", "between": "expire", "crashes": ["engine.after_commit_log@0"]},
    ],
)
def test_json_and_the_command_give_the_scenario_back(words: dict[str, object]) -> None:
    scenario = plan(**words)
    assert Scenario.from_json(json.loads(json.dumps(scenario.to_json()))) == scenario
    chosen: list[Scenario] = []

    class Noted(Scenario):
        @classmethod
        def plan(cls, words):
            chosen.append(Scenario.plan(words))
            raise InvalidInput("enough")

    verb = typer.Typer()
    verb.command()(run_of(Noted))
    CliRunner().invoke(verb, shlex.split(scenario.command())[2:])
    assert chosen == [scenario]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ({"job": "shop", "crashes": "sink.after_pre_commit"}, "shop-append-files-sink.after_pre_commit-0"),
        (
            {
                "sink": "two_phase",
                "master": "local-cluster[2,2,1024]",
                "victim": "executor",
                "crashes": "sink.mid_write",
            },
            "two_phase-files-decision-executor-sink.mid_write-0",
        ),
    ],
)
def test_a_run_has_a_name_that_says_what_it_is(words: dict[str, object], name: str) -> None:
    assert plan(**words).name == name


def test_the_crash_of_notebooks_names_every_option() -> None:
    signature = inspect.signature(lab.crash)
    named = [each.keyword for each in options_of(Scenario)]
    named.remove("crashes")
    assert list(signature.parameters) == ["at", *named, "folder", "standby", "tell"]
    assert signature.parameters["partitions"].default == 3
    for name in named:
        assert f"\n    {name}: " in (lab.crash.__doc__ or "")


def test_an_option_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="'snik'; did you mean 'sink'"):
        lab.crash(snik="wal")
    with pytest.raises(InvalidInput, match=r"--partitions 4\.0: write a whole number"):
        plan(partitions=4.0)
