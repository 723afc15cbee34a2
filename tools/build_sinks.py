"""Write the tables of sample sinks and pipelines in the documentation from `data`; `--check` only compares."""

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
    """Return what is expected of each sample in a folder, by file name without suffix."""
    result: dict[str, dict[str, Any]] = tomllib.loads((folder / "expected.toml").read_text(encoding="utf-8"))
    return result


def table() -> str:
    """Return a Markdown table with a row for each sample sink."""
    rows = ["| sink | what it does | guarantee | violated | pattern |", "|---|---|---|---|---|"]
    for name, each in expected().items():
        link = f"[{name}](../../data/sinks/{name}.py)"
        rows.append(
            f"| {link} | {each['does']} | {each['guarantee']} | {', '.join(each['axes'])} | {each['pattern']} |"
        )
    return "\n".join(rows) + "\n"


def pipelines() -> str:
    """Return a Markdown table with a row for each sample pipeline."""
    files = {path.stem: path.name for path in PIPELINES.iterdir() if path.is_file()}
    rows = ["| pipeline | what it does | guarantee | violated | pattern |", "|---|---|---|---|---|"]
    for name, each in expected(PIPELINES).items():
        link = f"[{name}](../../data/pipelines/{files[name]})"
        rows.append(
            f"| {link} | {each['does']} | {each['guarantee']} | {', '.join(each['axes'])} | {each['pattern']} |"
        )
    return "\n".join(rows) + "\n"


def between(text: str, begin: str, content: str, end: str) -> str:
    """Return a text with the part between two marks replaced by `content`."""
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{content}\n{end}{after}"


def page(text: str) -> str:
    """Return the text of the page with new tables."""
    text = between(text, BEGIN, table(), END)
    return between(text, BEGIN_PIPELINES, pipelines(), END_PIPELINES)


def main() -> int:
    """Write the page, or with --check compare it; return 1 if it differs."""
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
