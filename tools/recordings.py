"""Record the cells that need real processes, for the notebooks in a browser (`labkit/teach/recordings.py`).

`make site` runs every notebook and stores it, with its outputs, in `build/recorded`. The code shows which cells need
real processes: they call a function in `REAL`, import a client or an engine, or use what such a cell has defined.
"""

import json
import platform
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import build_notebooks
import nbformat
from nbformat import NotebookNode
from reading import tags

from labkit import __version__
from labkit.host.servers.kafka_jars import VERSION as KAFKA
from labkit.teach.exercises.cells import SET_UP, bound, normal, used

FOLDER = Path("build", "recorded")
"""The folder of the executed notebooks, below the project's folder."""
REAL = {
    *("copy_topic", "count_effects", "crash", "crash_each", "crash_test", "doctor", "engines", "expected_wait"),
    *("kafka", "kill_engines", "matrix", "measure_rows", "measure_waits", "panel", "postgres", "save_sink"),
    *("rebalance", "seen_over_time", "shop", "spark", "stopped_writers", "ten_steps", "totals"),
    *("try_sink", "try_timeouts"),
}
"""The functions of `lab` that start processes, or draw with a library that the browser lacks."""
ON_KAFKA = {"copy_topic", "kill_engines", "rebalance", "shop", "stopped_writers", "ten_steps", "try_timeouts"}
"""The functions in `REAL` that use Kafka, although their names do not say so."""
IMPORTED = re.compile(
    r"^\s*(?:import|from) +(?:kafka|matplotlib|psycopg|pyspark|signal|subprocess)\b|\bos\.link\b", re.MULTILINE
)
CALLED = re.compile(r"\blab\.(\w+)")
LEARNERS = {"exercise", "check", "rules", "task"}
"""The tags of cells that learners fill in, or that judge what they have written."""
WIDGET = "application/vnd.jupyter.widget-view+json"


def keep(root: Path, name: str, notebook: NotebookNode) -> None:
    """Store a notebook that has just been run, with the date and the versions of what it uses."""
    code = "\n".join(str(cell.source) for cell in notebook.cells if cell.cell_type == "code")
    kafka = [f"Kafka {KAFKA}"] if "kafka" in code.lower() or ON_KAFKA & {*CALLED.findall(code)} else []
    spark = [f"Spark {version('pyspark')}"] if "spark" in code.lower() or REAL & {*CALLED.findall(code)} else []
    versions = [*spark, *kafka, f"Python {platform.python_version()}"]
    made = f"on {datetime.now(UTC):%Y-%m-%d} with labkit {__version__}, {', '.join(versions)}, {platform.system()}"
    kept = nbformat.from_dict({**notebook, "metadata": {**notebook.metadata, "recorded": made}})
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    nbformat.write(kept, root / FOLDER / f"{name}.ipynb")


def recordings(root: Path, notebooks: Iterable[Path]) -> dict[str, tuple[str, list[Any], list[str]]]:
    """Return the recording of every cell that needs real processes, by source: a description, outputs and questions.

    The description has date and versions, and is empty if the cell was not recorded or raised an error. The questions
    are those that the cell answers.
    """
    found = {}
    for path in notebooks:
        kept = root / FOLDER / path.name
        done = nbformat.read(kept, as_version=4) if kept.exists() else None
        made = done.metadata.get("recorded", "") if done else ""
        outputs = {normal(cell.source): cell.outputs for cell in done.cells if cell.cell_type == "code"} if done else {}
        for source in real(nbformat.read(path, as_version=4)):
            shown = outputs.get(source)
            whole = shown is not None and all(each["output_type"] != "error" for each in shown)
            plain = [each for output in shown or () if (each := _plain(output))] if whole else []
            found[source] = (made if whole else "", plain, build_notebooks.ANSWERED.findall(source))
    return found


def real(notebook: NotebookNode) -> Iterator[str]:
    """Yield the sources of the code cells that need real processes, as `normal` returns them."""
    results: set[str] = set()
    plain: set[str] = set()
    for cell in notebook.cells:
        if cell.cell_type != "code" or LEARNERS & tags(cell):
            continue
        source = str(cell.source)
        if REAL & {*CALLED.findall(source)} or IMPORTED.search(source) or results & used(source):
            # The cell may also change what it uses, such as a file, but it only reads the parameters.
            results |= (bound(source) | (used(source) & plain)) - {"lab"}
            yield normal(source)
        else:
            results -= bound(source)
            if not tags(cell) & SET_UP:
                plain |= bound(source)


def _plain(output: NotebookNode) -> dict[str, Any] | None:
    """Return an output that needs no kernel: without the widget, whose HTML remains. None if nothing is left."""
    if output["output_type"] == "stream":
        return {"output_type": "stream", "text": output["text"]} if output["name"] == "stdout" else None
    data = {kind: content for kind, content in output["data"].items() if kind != WIDGET}
    return {"output_type": "display_data", "data": json.loads(json.dumps(data))} if data else None
