"""Two reports of a crash test: what one says that the other did not, and the action that comments on a pull request."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from labkit.core.errors import InvalidInput
from labkit.crashtest.comparison import Change, Comparison, read_report

ROOT = Path(__file__).parents[2]
ACTION = ROOT / ".github" / "actions" / "crashtest" / "action.yml"


def run(name: str, guarantee: str = "exactly-once", **more: str) -> dict[str, Any]:
    usual = {"group": "crash", "because": f"{guarantee}, because of {name}", "unknown": "", "stuck": ""}
    return {"id": name, "title": f"before {name}", "guarantee": guarantee, **usual, **more}


def report(
    *runs: dict[str, Any], strength: str = "sampled", at_best: str = "exactly-once", **more: Any
) -> dict[str, Any]:
    usual = {
        "subject": "sh job.sh",
        "guarantee": f"{strength} {at_best}",
        "claim": {"strength": strength, "at_best": at_best},
        "axes": {"lost": "not seen", "duplicate": "not seen"},
        "conditions": {},
        "coverage": {"found": 9, "tried": 3, "directed": 0, "directed_tried": 0, "hit": 3},
        "runs": list(runs),
        "command": "labkit crashtest",
        "why": None,
        "other": "ignored",
    }
    return usual | more


RIGHT = report(run("a"), run("b"))
DOUBLES = report(
    run("a", "at-least-once"),
    run("b"),
    strength="refuted",
    at_best="at-least-once",
    axes={"lost": "not seen", "duplicate": "violated"},
    why="a `crash` | does\nharm",
)
WHOLE = report(run("a"), run("b"), strength="complete")
WHOLE_DOUBLES = DOUBLES | {"claim": {"strength": "complete", "at_best": "at-least-once"}}
WHOLE_NONE = DOUBLES | {"claim": {"strength": "complete", "at_best": "none"}}
FEWER = RIGHT | {"coverage": {"found": 9, "tried": 2, "directed": 0, "directed_tried": 0}}
FEWER_DIRECTED = RIGHT | {"coverage": {"found": 9, "tried": 3, "directed": 7, "directed_tried": 5}}
DIRECTED = RIGHT | {"coverage": {"found": 9, "tried": 3, "directed": 7, "directed_tried": 7}}
SMALLER = RIGHT | {"coverage": {"found": 2, "tried": 2, "directed": 5, "directed_tried": 5}}
UNKNOWN = report(run("a", "unknown", unknown="nobody saw it"), strength="unknown", at_best="exactly-once")


def under(at_best: str, weakest: str | None = None) -> dict[str, Any]:
    """A report of which the runs with full disks have this guarantee."""
    return RIGHT | {"faults": {"enospc": {"claim": f"claims {at_best}", "at_best": at_best, "weakest": weakest}}}


def compared(folder: Path, *reports: dict[str, Any]) -> Comparison:
    read = []
    for number, each in enumerate(reports):
        path = folder / f"{number}.json"
        path.write_text(json.dumps(each))
        read.append(read_report(path))
    return Comparison(read[0], read[1]) if len(read) == 2 else Comparison(None, read[0])


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (RIGHT, RIGHT, Change.NOT_WEAKER),
        (RIGHT, DOUBLES, Change.WEAKER),
        (DOUBLES, RIGHT, Change.NOT_WEAKER),
        (DOUBLES, DOUBLES, Change.NOT_WEAKER),
        (RIGHT, UNKNOWN, Change.UNKNOWN),
        (UNKNOWN, UNKNOWN, Change.NOT_WEAKER),
        (UNKNOWN, DOUBLES, Change.WEAKER),
        (DOUBLES, UNKNOWN, Change.UNKNOWN),
        (WHOLE, WHOLE, Change.NOT_WEAKER),
        (WHOLE, RIGHT, Change.UNKNOWN),
        (WHOLE, DOUBLES, Change.WEAKER),
        (RIGHT, WHOLE, Change.NOT_WEAKER),
        (WHOLE_DOUBLES, DOUBLES, Change.UNKNOWN),
        (WHOLE_NONE, RIGHT, Change.NOT_WEAKER),
        (RIGHT, FEWER, Change.UNKNOWN),
        (FEWER, RIGHT, Change.NOT_WEAKER),
        (FEWER, DOUBLES, Change.WEAKER),
        (DIRECTED, FEWER_DIRECTED, Change.UNKNOWN),
        (DIRECTED, SMALLER, Change.NOT_WEAKER),
        (RIGHT, RIGHT | {"axes": {"lost": "not seen", "duplicate": "not seen", "stuck": "violated"}}, Change.WEAKER),
        (under("exactly-once"), under("exactly-once"), Change.NOT_WEAKER),
        (under("exactly-once"), under("at-least-once", "e1"), Change.WEAKER),
        (under("exactly-once"), under("exactly-once", "stuck"), Change.WEAKER),
        (under("at-least-once", "e1"), under("at-least-once", "e2"), Change.NOT_WEAKER),
        (under("at-least-once", "e1"), under("at-most-once", "e1"), Change.WEAKER),
        (under("at-least-once", "e1"), under("exactly-once"), Change.NOT_WEAKER),
        (under("unknown"), under("at-least-once", "e1"), Change.WEAKER),
        (under("exactly-once"), under("unknown"), Change.UNKNOWN),
        (under("exactly-once"), RIGHT, Change.UNKNOWN),
        (RIGHT, under("at-least-once", "e1"), Change.WEAKER),
        (RIGHT, under("exactly-once"), Change.NOT_WEAKER),
    ],
)
def test_weaker_is_what_claims_less_or_breaks_more(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any], change: Change
) -> None:
    assert compared(tmp_path, before, after).change is change


def test_two_samples_do_not_show_that_nothing_is_weaker(tmp_path: Path) -> None:
    headlines = [compared(tmp_path, each, each).markdown().partition("\n")[0] for each in (RIGHT, WHOLE)]
    assert [each.partition(": ")[2] for each in headlines] == ["nothing weaker was seen", "not weaker than before"]


def test_the_runs_that_differ_are_named(tmp_path: Path) -> None:
    text = compared(tmp_path, RIGHT, DOUBLES).markdown()
    assert "| duplicate | not seen | **violated** |" in text
    assert "lost" not in text
    assert "**Harmful now, and not seen to be before:** 1 run(s)\n\n- `a`: at-least-once" in text
    assert "a 'crash' \\| does harm" in text


def test_a_claim_about_a_fault_that_differs_is_shown(tmp_path: Path) -> None:
    text = compared(tmp_path, under("exactly-once"), under("at-least-once", "e1")).markdown()
    assert "| fault enospc | claims exactly-once | claims at-least-once |" in text
    assert "fault" not in compared(tmp_path, under("exactly-once"), under("exactly-once")).markdown()


def test_what_was_not_tried_now_is_not_said_to_be_harmless(tmp_path: Path) -> None:
    others = report(run("b"), run("c"))
    assert "**Harmful before, and not tried now:** 1 run(s)" in compared(tmp_path, DOUBLES, others).markdown()
    assert "**Harmful before, and not now:** 1 run(s)" in compared(tmp_path, DOUBLES, RIGHT).markdown()
    assert "not tried now" in compared(tmp_path, DOUBLES, UNKNOWN).markdown()


def test_a_condition_is_no_harm(tmp_path: Path) -> None:
    two = run("two_instances", "at-least-once", group="condition")
    after = report(run("a"), run("b"), two, conditions={"two_instances": "at-least-once"})
    comparison = compared(tmp_path, RIGHT, after)
    assert comparison.change is Change.NOT_WEAKER
    assert "| condition two_instances | not tested | at-least-once |" in comparison.markdown()
    assert "Harmful" not in comparison.markdown()


def test_one_report_says_what_it_says(tmp_path: Path) -> None:
    text = compared(tmp_path, DOUBLES).markdown()
    assert text.startswith("### Crash test of `sh job.sh`: refuted at-least-once\n\nThere is no earlier report")
    assert "**Harmful:** 1 run(s)" in text


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"subject": 1}', b"\xff", b"not json"])
def test_what_is_no_report_is_refused_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"report\.json: this is not a report of a crash test"):
        read_report(path)


def test_a_report_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_report(tmp_path / "report.json")


# The action


ARGUMENTS = "--command 'sh job.sh' --reader rows.py:read --watch store --quick --expect not-refuted"
GH = """#!/bin/sh
printf '%s\\n' "$@" >"$ASKED"
"""


class Runner:
    """Runs the steps of the action as a runner would: in one checkout, with its expressions filled in."""

    def __init__(self, place: Path, checkout: Path, base: str) -> None:
        self.place, self.checkout, self.base = place, checkout, base
        self.output = place / "output"
        self.values: dict[str, str] = {
            "inputs.arguments": ARGUMENTS,
            "inputs.folder": ".",
            "inputs.token": "secret",
            "runner.temp": str(place),
            "github.event.pull_request.base.sha": base,
            "github.event.pull_request.number": "7",
        }

    def run(self, step: dict[str, Any]) -> int:
        programs = self.place / "programs"
        programs.mkdir(exist_ok=True)
        labkit = f'#!/bin/sh\nexec {sys.executable} -m labkit "$@"\n'
        for name, text in {"gh": GH, "labkit": labkit}.items():
            (programs / name).write_text(text)
            (programs / name).chmod(stat.S_IRWXU)
        environment = {name: self._filled(value) for name, value in step["env"].items()}
        more = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_STEP_SUMMARY": str(self.place / "summary.md"),
            "GITHUB_WORKSPACE": str(self.checkout),
            "ASKED": str(self.place / "asked"),
        }
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(words, cwd=self.checkout, env={**os.environ, **environment, **more}, check=False)
        for line in self.output.read_text().splitlines() if self.output.exists() else ():
            name, _, value = line.partition("=")
            self.values[f"steps.test.outputs.{name}"] = value
        return done.returncode

    def _filled(self, text: str) -> str:
        return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: self.values[found[1]], text)


ROWS = """
import json, shutil
from pathlib import Path
def read():
    return [line for path in sorted(Path("store").glob("[a-z]*")) for line in path.read_text().splitlines()]
def reset():
    shutil.rmtree("store", ignore_errors=True)
    Path("store").mkdir()
"""
RENAMES = "for part in a b; do echo $part >store/.$part; mv store/.$part store/$part; done\n"
APPENDS = "for part in a b; do echo $part >>store/all; done\n"


def committed(folder: Path, message: str) -> str:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["add", "-A"], [*who, "commit", "-qm", message]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    said = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True)
    return said.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "code", "headline"),
    [(RENAMES, 1, "weaker than before"), (APPENDS, 1, "not weaker than before"), (None, 1, "at-least-once")],
    ids=["right before", "wrong before", "nothing before"],
)
def test_the_action_comments_what_a_pull_request_changes(
    tmp_path: Path, before: str | None, code: int, headline: str
) -> None:
    """Its steps in order, without the installation; the base is a commit of a repository whose origin is another."""
    origin, place = tmp_path / "origin", tmp_path / "place"
    origin.mkdir()
    place.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=origin, check=True)
    (origin / "README").write_text("a job\n")
    (origin / "store").mkdir()
    (origin / "store" / ".keep").touch()
    if before is not None:
        (origin / "rows.py").write_text(ROWS)
        (origin / "job.sh").write_text(before)
    base = committed(origin, "base")
    (origin / "rows.py").write_text(ROWS)
    (origin / "job.sh").write_text(APPENDS)
    (origin / "README").write_text("another job\n")
    committed(origin, "change")
    subprocess.run(["git", "clone", "-q", origin, tmp_path / "checkout"], check=True)
    runner = Runner(place, tmp_path / "checkout", base)
    install, test, compare, end = yaml.safe_load(ACTION.read_text())["runs"]["steps"]
    assert install["run"] == 'pip install --quiet "$PACKAGE"'
    assert [runner.run(test), runner.run(compare), runner.run(end)] == [0, 0, code]
    assert runner.values["steps.test.outputs.report"] == str(place / "after.json")
    comment = place / "comment.md"
    asked = ["pr", "comment", "7", "--body-file", str(comment), "--edit-last", "--create-if-none"]
    assert (place / "asked").read_text().splitlines() == asked
    assert comment.read_text() == (place / "summary.md").read_text()
    assert headline in comment.read_text().splitlines()[0]
    assert not (place / "base").exists()
