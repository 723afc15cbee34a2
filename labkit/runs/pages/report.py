"""The page that a run leaves for a person: one file, no script, opens offline.

Everything on it comes from the run's own files. It must not judge: a value is marked as gone back where the judge's
witnesses say so.
"""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from labkit.core.failpoints import FailPoint
from labkit.host import durable
from labkit.runs.run import Run, history, result
from labkit.view.timeline import Step, by_key

MOST_KEYS = 20
MOST_STEPS = 40


def write_report(runs: Sequence[Run], path: Path, title: str, lead: str) -> None:
    """One page for one run or several that have been judged."""
    environment = Environment(
        loader=PackageLoader("labkit.runs.pages", "."),
        autoescape=True,
        undefined=StrictUndefined,
    )
    template = environment.get_template("report.html.jinja")
    durable.replace(
        path, template.render(title=title, lead=lead, runs=[shown(run) for run in runs])
    )


def label(run: Run) -> str:
    """The sink as a person names it."""
    scenario = run.scenario
    order = f", {scenario.order} order" if scenario.order.value != "none" else ""
    return f"{scenario.strategy} on {scenario.store}{order}"


def shown(run: Run) -> dict[str, Any]:
    """What a template shows of a run that has been judged."""
    found = result(run)
    tracks = list(by_key(history(run).events).items())[:MOST_KEYS]
    final = (
        list(islice(run.verdict.final.items(), MOST_KEYS + 1)) if run.verdict else []
    )
    crashes = [
        {"recovery": [], **crash, "sentence": FailPoint(crash["point"]).sentence}
        for crash in run.crashes
    ]
    return {
        "sink": label(run),
        "killed": ", ".join(str(crash) for crash in run.scenario.crashes) or "nowhere",
        "result": found,
        "tracks": [(key, _steps(run, track)) for key, track in tracks],
        "final": ", ".join(f"{key} = {value}" for key, value in final[:MOST_KEYS])
        or "nothing",
        "more": len(final) > MOST_KEYS,
        "crashes": crashes,
        "folder": run.folder.path.name,
    }


def _steps(run: Run, track: Sequence[Step]) -> list[dict[str, Any]]:
    assert run.verdict is not None
    went_back = {
        (case.offset, case.attempt)
        for case in run.verdict.witnesses.get("regression", ())
    }
    return [
        {
            "label": step.label,
            "value": step.value,
            "back": (step.offset, step.attempt) in went_back,
        }
        for step in track[:MOST_STEPS]
    ]
