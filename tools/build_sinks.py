"""The tables of sinks and pipelines in docs: `python tools/build_sinks.py` writes them from data, `--check`
compares.
"""

import argparse
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "samples.md"
STALE = f"{PAGE.relative_to(ROOT)} is out of step with data: run python tools/build_sinks.py"
SINKS = ROOT / "data" / "sinks"
BEGIN = "<!-- sinks: written by tools/build_sinks.py from data/sinks/expected.toml -->\n"
END = "<!-- end of sinks -->"
PIPELINES = ROOT / "data" / "pipelines"
BEGIN_PIPELINES = "<!-- pipelines: written by tools/build_sinks.py from data/pipelines/expected.toml -->\n"
END_PIPELINES = "<!-- end of pipelines -->"


def expected(folder: Path = SINKS) -> dict[str, dict[str, Any]]:
    """What is expected of each sample of a folder, by the name of its file."""
    result: dict[str, dict[str, Any]] = tomllib.loads((folder / "expected.toml").read_text(encoding="utf-8"))
    return result


def table() -> str:
    """A row a sink, in Markdown."""
    rows = ["| sink | what it does | guarantee | violated | pattern |", "|---|---|---|---|---|"]
    for name, each in expected().items():
        link = f"[{name}](../../data/sinks/{name}.py)"
        rows.append(
            f"| {link} | {each['does']} | {each['guarantee']} | {', '.join(each['axes'])} | {each['pattern']} |"
        )
    return "\n".join(rows) + "\n"


def pipelines() -> str:
    """A row a pipeline, in Markdown."""
    files = {path.stem: path.name for path in PIPELINES.iterdir() if path.is_file()}
    rows = ["| pipeline | what it does | guarantee | violated | pattern |", "|---|---|---|---|---|"]
    for name, each in expected(PIPELINES).items():
        link = f"[{name}](../../data/pipelines/{files[name]})"
        rows.append(
            f"| {link} | {each['does']} | {each['guarantee']} | {', '.join(each['axes'])} | {each['pattern']} |"
        )
    return "\n".join(rows) + "\n"


def between(text: str, begin: str, content: str, end: str) -> str:
    """The text with other content between two marks."""
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{content}\n{end}{after}"


def page(text: str) -> str:
    """The page with the tables as they should be."""
    text = between(text, BEGIN, table(), END)
    return between(text, BEGIN_PIPELINES, pipelines(), END_PIPELINES)


def main() -> int:
    """Writes the page, or only looks at it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    text = PAGE.read_text(encoding="utf-8")
    if parser.parse_args().check:
        if text != page(text):
            print(STALE)
            return 1
        return 0
    PAGE.write_text(page(text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
