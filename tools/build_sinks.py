"""Write the tables of sample sinks and pipelines in the documentation from `data`; `--check` only compares."""

import argparse
import sys
import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from labkit.core.words import markdown_table

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "samples.md"
STALE = f"{PAGE.relative_to(ROOT)} is out of step with data: run python tools/build_sinks.py"
SINKS = ROOT / "data" / "sinks"
PIPELINES = ROOT / "data" / "pipelines"
WHO = "written by tools/build_sinks.py from data"
END = "<!-- end -->"


def expected(folder: Path = SINKS) -> dict[str, dict[str, Any]]:
    """Return what is expected of each sample in a folder, by file name without suffix."""
    result: dict[str, dict[str, Any]] = tomllib.loads((folder / "expected.toml").read_text(encoding="utf-8"))
    return result


def table(folder: Path) -> str:
    """Return a Markdown table with a row for each sample in a folder of `data`: `sinks` or `pipelines`."""
    files = {path.stem: path.name for path in folder.iterdir() if path.suffix != ".toml"}
    rows = [(folder.name[:-1], "what it does", "guarantee", "violated", "pattern")]
    for name, each in expected(folder).items():
        link = f"[{name}](../../data/{folder.name}/{files[name]})"
        rows.append((link, each["does"], each["guarantee"], ", ".join(each["axes"]), each["pattern"]))
    return markdown_table(rows) + "\n"


def between(text: str, begin: str, content: str, end: str) -> str:
    """Return a text with the part between two marks replaced by `content`."""
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{content}\n{end}{after}"


def with_parts(text: str, parts: Mapping[str, Callable[[], str]], who: str, end: str) -> str:
    """Return a page with new content for each part; a mark made of the part's name and `who` precedes the part."""
    for name, part in parts.items():
        text = between(text, f"<!-- {name}: {who} -->\n", part(), end)
    return text


def page(text: str) -> str:
    """Return the text of the page with new tables."""
    return with_parts(text, {"sinks": partial(table, SINKS), "pipelines": partial(table, PIPELINES)}, WHO, END)


def keep_in_step(path: Path, made: Callable[[str], str], stale: str, about: str | None) -> int:
    """Write a page as `made` makes it, or with --check compare it and print `stale`; return 1 if it differs."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--check", action="store_true", help="only compare")
    known = path.read_text(encoding="utf-8")
    result = made(known)
    if parser.parse_args().check:
        if result != known:
            print(stale)
        return int(result != known)
    path.write_text(result, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(keep_in_step(PAGE, page, STALE, __doc__))
