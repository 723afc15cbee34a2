"""The verdicts on real engines that notebook 11b shows are those of data/pipelines/engines/verdicts.jsonl."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHOWN = {
    "DBOS, appends to a file": "dbos_step",
    "DBOS, is a transaction in the application's database": "dbos_transaction",
    "LangGraph, always resumed, appends to a file": "langgraph_sqlite_always",
    "LangGraph, resumed if `get_state().next` is not empty, appends to a file": "langgraph_sqlite_if_next",
    "Prefect, default cache policy, appends to a file": "prefect_default",
}
"""The lines of the notebook's table, without versions, and their pipelines."""
WORDS = {"lost": "lost", "twice": "duplicate"}
LINE = re.compile(r"# \| (\w+) (\d\S*\d)(, [^|]+)? \| ([^|]+) \| ([^|]+) \|")


def test_the_table_of_real_engines_repeats_the_recorded_verdicts() -> None:
    lines = (ROOT / "data" / "pipelines" / "engines" / "verdicts.jsonl").read_text().splitlines()
    verdicts = {verdict["name"]: verdict for verdict in map(json.loads, lines)}
    text = (ROOT / "notebooks" / "src" / "11b_workflows.py").read_text()
    shown = LINE.findall(text)
    assert [f"{engine}{how}, {step}" for engine, _, how, step, _ in shown] == list(SHOWN)
    for engine, version, how, step, result in shown:
        verdict = verdicts[SHOWN[f"{engine}{how}, {step}"]]
        assert verdict["versions"][0] == f"{engine.lower()} {version}"
        assert f"recorded on {verdict['day']}" in text
        assert {WORDS[word] for word in WORDS if word in result} == set(verdict["violated"])
        assert ("once" in result) == (verdict["guarantee"] == "exactly-once")
