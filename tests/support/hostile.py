"""The hostile submissions in `tests/grading/hostile`: cells after `# %%`, below lines that say what they attack."""

import re
from dataclasses import dataclass
from pathlib import Path

from submitted import RIGHT, marked

FOLDER = Path(__file__).parent.parent / "grading" / "hostile"


@dataclass(frozen=True)
class Hostile:
    """A submission that is after points, or after the grader."""

    name: str
    attacks: tuple[str, ...]
    keeps: tuple[str, ...]
    """Exercises that it answers honestly, and that must not suffer."""
    slow: bool
    cells: tuple[str, ...]


def read(path: Path) -> Hostile:
    """One of the files. What it does not answer itself is answered right."""
    head, *cells = (part.strip() for part in path.read_text(encoding="utf-8").split("# %%\n"))
    said = dict(re.findall(r"# (attacks|keeps|slow): ?(.*)", head))
    own = {found for cell in cells for found in re.findall(r"^# exercise (\S+)", cell, re.MULTILINE)}
    others = [marked(name, source) for name, source in RIGHT.items() if name not in own]
    attacks, keeps = (tuple(said.get(name, "").split()) for name in ("attacks", "keeps"))
    return Hostile(path.stem, attacks, keeps, "slow" in said, (*cells, *others))


ALL = [read(path) for path in sorted(FOLDER.glob("*.py"))]
