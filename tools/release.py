"""Check a release before it is published: the tag, the package's version, CITATION.cff, and the changelog must agree.

`python tools/release.py v0.2.0` exits 1 and names each disagreement; `--notes FILE` writes the changelog's section.
"""

import argparse
import re
import sys
from pathlib import Path

import yaml

import labkit

ROOT = Path(__file__).parent.parent
SECTION = r"^## {version} \((\d{{4}}-\d\d-\d\d)\)\n(.*?)(?=^## |\Z)"


def notes(version: str, changelog: str) -> str | None:
    """Return the changelog's section of a version, without its heading; None if there is none with a date."""
    match = re.search(SECTION.format(version=re.escape(version)), changelog, re.MULTILINE | re.DOTALL)
    return match[2].strip() + "\n" if match else None


def disagreements(tag: str, root: Path = ROOT) -> list[str]:
    """Return a sentence for each reason why a tag cannot be released."""
    version = tag.removeprefix("v")
    problems = []
    if tag != f"v{version}":
        problems.append(f"The tag {tag} should be v{version}.")
    if labkit.__version__ != version:
        problems.append(f"labkit.__version__ is {labkit.__version__}, the tag {tag}.")
    cited = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))["version"]
    if cited != version:
        problems.append(f"CITATION.cff names version {cited}, the tag {tag}.")
    if notes(version, (root / "CHANGELOG.md").read_text(encoding="utf-8")) is None:
        problems.append(f"CHANGELOG.md has no section '## {version} (YEAR-MONTH-DAY)'.")
    return problems


def main() -> int:
    """Print the disagreements and return 1, or write the release notes if asked and return 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tag")
    parser.add_argument("--notes", type=Path, help="write the changelog's section to this file")
    chosen = parser.parse_args()
    problems = disagreements(chosen.tag)
    print("\n".join(problems) or f"{chosen.tag} can be released.")
    if problems:
        return 1
    if chosen.notes:
        changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        chosen.notes.write_text(notes(chosen.tag.removeprefix("v"), changelog) or "", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
