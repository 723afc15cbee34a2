"""Build the notebooks as pages: `make site` runs every notebook and writes build/site, which also works offline.

A page asks no other host for anything: nbconvert's scripts for mathematics, widgets and diagrams are left out, pictures
and players are inside the page. Served by any web server, every player is live: the reader chooses what happens next,
and Python in the page answers (`live_pages`). Opened from a file, it shows only its first run. Notebooks that start
Spark take about four minutes together; `--stored NN_topic` takes such a one from its checked copy instead, with the
outputs that its source states and without its players. The folder is deleted first.
"""

import argparse
import os
import re
import shutil
import sys
from html import escape
from pathlib import Path
from unittest.mock import patch

import build_notebooks
import lite_site
import live_pages
import nbformat
import recordings
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode, v4
from reading import tags
from traitlets.config import Config

from labkit.core.errors import ServiceUnavailable
from labkit.teach.questions.asking import OpenQuestion
from labkit.teach.questions.card import Answer
from labkit.teach.questions.notes import UNATTENDED
from labkit.teach.questions.question import find
from labkit.view.question import page_of

ROOT = Path(__file__).parent.parent
TEMPLATES = Path(__file__).parent / "site"
CELL_SECONDS = 600
STORED = "The outputs on this page are the ones that the notebook claims; run it to see the rest."
FRONT = (
    '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>labkit</title>'
    '<meta http-equiv="refresh" content="0; url=simulators/">'
)
"""The index page of a site without the notebooks' pages."""
ASKING = re.compile(r'lab\.(ask|answer)\("([^"]+)"')
LINK = re.compile(r'(href="(?:\./)?\d\d[a-z]?_\w+)\.ipynb')


def run(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Execute a notebook, and return it with its outputs. Raises `CellExecutionError` if a cell fails."""
    done: NotebookNode = NotebookClient(
        notebook, timeout=CELL_SECONDS, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return done


def without_widgets(notebook: NotebookNode) -> NotebookNode:
    """Remove widgets from a notebook's outputs, because a page cannot show them, and return the notebook."""
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        for output in cell.outputs:
            output.get("data", {}).pop(recordings.WIDGET, None)
    return notebook


def asking(notebook: NotebookNode) -> NotebookNode:
    """Return a stored notebook with the forms of its questions and their answers added as outputs."""
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        for verb, name in ASKING.findall(cell.source):
            question = find(name)
            html = (
                page_of(OpenQuestion(question).form.shown) if verb == "ask" else Answer(question, question.right).html()
            )
            shown = [each for each in cell.outputs if verb == "ask"]
            cell.outputs = [*shown, v4.new_output("display_data", {"text/html": html})]
    return notebook


def exporter() -> HTMLExporter:
    """Return nbconvert's HTML exporter with the template in `tools/site`."""
    config = Config()
    config.HTMLExporter.template_name = "offline"
    config.HTMLExporter.extra_template_basedirs = [str(TEMPLATES)]
    config.HTMLExporter.exclude_anchor_links = True
    config.HTMLExporter.embed_images = True
    return HTMLExporter(config=config)


def page(notebook: NotebookNode, name: str, note: str = "", live: str = "", run_here: str = "") -> str:
    """Return a notebook as an HTML page, whose links to other notebooks lead to their pages.

    `live` is the address of the module that makes its players live, `run_here` that of the notebook in JupyterLite.
    """
    resources = {"metadata": {"name": name}, "note": note, "live": live, "run_here": run_here}
    notebook.metadata["title"] = title(notebook)
    notebook.cells = [cell for cell in notebook.cells if build_notebooks.CHECKED not in tags(cell)]
    html, _ = exporter().from_notebook_node(without_widgets(notebook), resources=resources)
    return str(LINK.sub(r"\1.html", html))


def title(notebook: NotebookNode) -> str:
    """Return the heading of a notebook's first cell, as plain text."""
    return plain(str(notebook.cells[0].source).partition("\n")[0].removeprefix("#").strip())


def lead(notebook: NotebookNode) -> str:
    """Return the first paragraph below a notebook's heading, as plain text."""
    paragraphs = [part.strip() for part in str(notebook.cells[0].source).split("\n\n")[1:]]
    return plain(" ".join(re.sub(r"(?m)^> ?", "", paragraphs[0]).split())) if paragraphs else ""


def plain(markdown: str) -> str:
    """Return a line of Markdown without links, emphasis and marks of code."""
    return re.sub(r"\[([^\]]+)\]\([^)]+\)|[*`]", r"\1", markdown)


def index(notebooks: dict[str, NotebookNode], *, can_run: bool) -> str:
    """Return the index page: a list of all pages, with a link to each notebook in the browser if `can_run`."""
    entries = "".join(
        f'<li><b>{name.partition("_")[0]}</b> <a href="{name}.html">{escape(title(each))}</a>'
        f"{_run_link(name) if can_run else ''}<p>{escape(lead(each))}</p></li>"
        for name, each in notebooks.items()
    )
    picture = (ROOT / "docs" / "jump_back.svg").read_text(encoding="utf-8")
    text = (TEMPLATES / "index.html").read_text(encoding="utf-8")
    text = text.replace("<!-- notebooks -->", entries).replace("<!-- picture -->", picture)
    return text if can_run else re.sub(r"<!-- lite -->.*?<!-- end of lite -->", "", text, flags=re.DOTALL)


def _run_link(name: str) -> str:
    return f' <a href="{lite_site.address(name)}">(run it in the browser)</a>'


def build(root: Path, out: Path, stored: set[str], archive: Path | None, lite: lite_site.Fetched | None) -> list[str]:
    """Write all pages; return a sentence for each failed notebook. `archive` and `lite` are None without downloads."""
    failed = []
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    live = simulators(out, archive)
    notebooks = {}
    for source in build_notebooks.sources(root):
        _, checked = build_notebooks.build(source)
        name, notebook, note = source.stem, nbformat.reads(checked, as_version=4), ""
        if name in stored:
            notebook, note = asking(notebook), STORED
        else:
            print(f"running {name}", flush=True)
            try:
                notebook = run(notebook, root / "notebooks")
                recordings.keep(root, name, notebook)
            except CellExecutionError as error:
                failed.append(f"{name}: a cell failed: {error.ename}: {error.evalue}")
                notebook = asking(nbformat.reads(checked, as_version=4))
                note = STORED
        run_here = lite_site.address(name) if lite else ""
        (out / f"{name}.html").write_text(page(notebook, name, note, live, run_here), encoding="utf-8")
        notebooks[name] = notebook
    (out / "index.html").write_text(index(notebooks, can_run=bool(lite)), encoding="utf-8")
    if lite:
        lite_site.write(out, live, root, lite)
    return failed


def simulators(out: Path, archive: Path | None) -> str:
    """Write only the simulators' pages; return the address of the module that makes players live, or an empty text."""
    shutil.rmtree(out / "simulators", ignore_errors=True)
    live = live_pages.write_assets(out, archive) if archive else ""
    live_pages.write_pages(out, live)
    return live


@patch.dict(os.environ, {UNATTENDED: "1"})  # the predictions stored on this machine stay out of the outputs
def main(arguments: list[str] | None = None) -> int:
    """Build the site; return 1 if a notebook could not be run, 69 if the players are not live, otherwise 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--stored", metavar="NN_topic", action="append", default=[], help="do not run this one; may be repeated"
    )
    parser.add_argument("--simulators", action="store_true", help="write only the simulators' pages (half a minute)")
    parser.add_argument(
        "--lite",
        action="store_true",
        help="write only the notebooks that a browser runs, and the simulators' pages (a minute)",
    )
    parser.add_argument(
        "--not-live",
        action="store_true",
        help="fetch nothing from a registry: the players only step, and there are no notebooks for a browser",
    )
    parser.add_argument("--out", type=Path, help="the folder to write; default: build/site")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    known = {source.stem for source in build_notebooks.sources(options.root)}
    if unknown := set(options.stored) - known:
        names, others = ", ".join(sorted(unknown)), ", ".join(sorted(known))
        print(f"--stored {names}: unknown; choose from {others}.", file=sys.stderr)
        return 64
    out = options.out or options.root / "build" / "site"
    archive, lite, missing = None, None, ""
    if not options.not_live:
        try:
            archive = live_pages.pyodide()
            lite = None if options.simulators else lite_site.fetched()
        except ServiceUnavailable as error:
            without = "no notebook runs in the browser" if archive else "the pages' players can only be stepped through"
            missing = f"{error}. Until then {without}.\n"
    failed = []
    if options.simulators or options.lite:
        live = simulators(out, archive)
        if lite:
            lite_site.write(out, live, options.root, lite)
        live_pages.remove_unused(out)
        if not (out / "index.html").exists():
            (out / "index.html").write_text(FRONT, encoding="utf-8")
        print(f"to choose what happens, serve {out} and open simulators/: python3 -m http.server -d {out}")
        if lite:
            print(f"to run the notebooks, open {lite_site.FOLDER}/ there")
    else:
        failed = build(options.root, out, set(options.stored), archive, lite)
        print(f"{len(known)} pages: open {out / 'index.html'}, or serve them: python3 -m http.server -d {out}")
    sys.stderr.writelines(f"{line}; its page shows what its source claims\n" for line in failed)
    sys.stderr.write(missing)
    return ServiceUnavailable.exit_code if missing else int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
