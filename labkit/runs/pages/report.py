"""Write the report of a run: one HTML file that opens offline and without scripts, made from the run's record alone."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.core.failpoints import FailPoint
from labkit.core.verdict import Verdict
from labkit.core.words import sentence
from labkit.host import durable
from labkit.runs.record import RunRecord
from labkit.view.timeline import Step, by_key

if TYPE_CHECKING:
    from jinja2 import Template

MOST_KEYS = 20
MOST_STEPS = 40


def write_report(records: Sequence[RunRecord], path: Path, title: str, lead: str) -> None:
    """Write an HTML report about one or more runs to `path`; `lead` introduces the page."""
    page = template("report.html.jinja").render(title=title, lead=lead, runs=[shown(record) for record in records])
    durable.replace(path, page)


def template(name: str) -> "Template":
    """Return the Jinja template `name` in this package; a variable that is undefined in it raises an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("labkit.runs.pages", ".")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template(name)


def shown(record: RunRecord) -> dict[str, Any]:
    """Return the variables for the Jinja template of a page about this run, as a dict from name to value."""
    tracks = by_key(record.events, MOST_KEYS, MOST_STEPS).items()
    final = list(islice(record.verdict.final.items(), MOST_KEYS + 1))
    crashes = [{"recovery": [], **crash, "sentence": FailPoint(crash["point"]).sentence} for crash in record.crashes]
    planned = ", ".join(str(crash) for crash in record.scenario.crashes)
    return {
        "sink": record.scenario.label,
        "killed": planned or "nowhere",
        "result": record.to_json(),
        "beside_verdict": [sentence(text) for _, text in record.verdict_notes()],
        "tracks": [(key, _steps(record.verdict, track)) for key, track in tracks],
        "final": ", ".join(f"{key} = {value}" for key, value in final[:MOST_KEYS]) or "nothing",
        "more": len(final) > MOST_KEYS,
        "crashes": crashes,
        "folder": record.folder.path.name,
    }


def _steps(verdict: Verdict, track: Sequence[Step]) -> list[dict[str, Any]]:
    went_back = {(case.offset, case.incarnation) for case in verdict.witnesses.get("regression", ())}
    return [
        {"label": step.label, "value": step.value, "back": (step.offset, step.incarnation) in went_back}
        for step in track
    ]
