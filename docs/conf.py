# ruff: noqa: INP001  # Sphinx reads this file; it is no package
"""Settings of the documentation site: `make docs` builds the pages of this folder and the notebooks with Sphinx.

The source folder is the root of the repository, so that a link between two pages is the same file on the site, on a
code host and on disk. Nothing is fetched from another host, neither while building nor while reading.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import jupytext  # noqa: E402  # these need the path above
from docutils import nodes  # noqa: E402
from docutils.parsers.rst import Directive  # noqa: E402
from sphinx.application import Sphinx  # noqa: E402

import labkit  # noqa: E402

project = "labkit"
author = "the labkit contributors"
copyright = author  # noqa: A001  # Sphinx's name for it
release = version = labkit.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
source_suffix = {".md": "markdown", ".ipynb": "markdown"}
include_patterns = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "docs/**.md",
    "notebooks/*.ipynb",
    "data/pipelines/engines/README.md",
    "data/reports/**.md",
]
exclude_patterns = [
    ".*",
    "build",
    "dist",
    "checked",
    "runs",
    "bench",
    "labkit",
    "tests",
    "tools",
    "docker",
    "notebooks/src",
]
nitpicky = False
highlight_language = "text"
language = "en"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
# A notebook's headings begin at level two, and some pages quote what a tool prints.
suppress_warnings = ["myst.header"]

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
default_role = "code"
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"labkit {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_baseurl = ""


TRIED = ("docs/index", "docs/reference/simulators", "docs/design/simulators", "docs/design/models")
"""The pages that link to the simulators' live pages, if `make site` has written those."""


def prepared(_app: Sphinx, page: str, source: list[str]) -> None:
    """Turn a notebook's JSON into Markdown, and drop diagrams that only a script of another host could draw."""
    source[0] = re.sub(r"^```mermaid\n.*?^```\n", "", source[0], flags=re.MULTILINE | re.DOTALL)
    if page.startswith("notebooks/"):
        source[0] = notebook_to_markdown(page, source[0])
    if page in TRIED and (ROOT / "build" / "site" / "simulators").is_dir():
        title, _, rest = source[0].partition("\n")
        address = "../" * page.count("/") + "course/simulators/index.html"
        source[0] = (
            f'{title}\n\n<p><a href="{address}">Try the simulators on this site</a>: no installation</p>\n{rest}'
        )


def notebook_to_markdown(page: str, text: str) -> str:
    """Text and code of a learner's notebook, without outputs, and a link to its page of `make site` if there is one."""
    notebook = jupytext.reads(text, fmt="ipynb")
    notebook.metadata.clear()
    markdown = re.sub(r"^```python tags=.*$", "```python", jupytext.writes(notebook, fmt="md"), flags=re.MULTILINE)
    name = page.removeprefix("notebooks/")
    if not (ROOT / "build" / "site" / f"{name}.html").exists():
        return markdown
    links = f'<a href="../course/{name}.html">This notebook with its outputs and pictures</a>'
    if (ROOT / "build" / "site" / "lite").is_dir():
        links += f' · <a href="../course/lite/lab/index.html?path={name}.ipynb">Run it in this browser</a>'
    # jupytext writes its own settings before the heading.
    return re.sub(r"^# .*$", lambda heading: f"{heading[0]}\n\n<p>{links}</p>", markdown, count=1, flags=re.MULTILINE)


def level_of_captions(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    """Give the headings of the navigation their level, which a screen reader needs and Sphinx leaves out."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


class Verb(Directive):
    """Show the options of one verb of the command line, as the installed `labkit` declares them."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The verb's usage and a definition list of its arguments and options."""
        from verbs import described  # loads the whole command line

        usage, text, entries = described(self.arguments[0])
        purpose = [nodes.paragraph("", paragraph) for paragraph in text.split("\n\n")]
        listed = nodes.definition_list(classes=["options"])
        for name, meaning in entries:
            term = nodes.term("", "", nodes.literal("", name))
            listed += nodes.definition_list_item("", term, nodes.definition("", nodes.paragraph("", meaning)))
        return [nodes.literal_block(usage, usage, language="text"), *purpose, listed]


def setup(app: Sphinx) -> dict[str, Any]:
    """Sphinx calls this when it loads the settings."""
    app.connect("source-read", prepared)
    app.connect("html-page-context", level_of_captions, priority=900)  # after the theme, which makes the tree
    app.add_directive("verb", Verb)
    return {"parallel_read_safe": True}
