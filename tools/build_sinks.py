"""The table of sinks in docs: `python tools/build_sinks.py` writes it from data/sinks, `--check` compares."""

import argparse
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "is_my_sink_exactly_once.md"
SINKS = ROOT / "data" / "sinks"
BEGIN = (
    "<!-- sinks: written by tools/build_sinks.py from data/sinks/expected.toml -->\n"
)
END = "<!-- end of sinks -->"


def expected() -> dict[str, dict[str, Any]]:
    """What is expected of each sink, by the name of its file."""
    found: dict[str, dict[str, Any]] = tomllib.loads(
        (SINKS / "expected.toml").read_text(encoding="utf-8")
    )
    return found


def table() -> str:
    """A row a sink, in Markdown."""
    rows = [
        "| sink | what it does | guarantee | violated | pattern |",
        "|---|---|---|---|---|",
    ]
    for name, each in expected().items():
        link = f"[{name}](../data/sinks/{name}.py)"
        rows.append(
            f"| {link} | {each['does']} | {each['guarantee']} | {', '.join(each['axes'])} | {each['pattern']} |"
        )
    return "\n".join(rows) + "\n"


def page(text: str) -> str:
    """The page with the table as it should be."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main() -> int:
    """Writes the page, or only looks at it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    text = PAGE.read_text(encoding="utf-8")
    if parser.parse_args().check:
        if text != page(text):
            print(f"{PAGE.name} is out of step: python tools/build_sinks.py")
            return 1
        return 0
    PAGE.write_text(page(text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
