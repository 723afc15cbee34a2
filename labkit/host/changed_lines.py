"""Find the source lines that have changed since a git revision, for `labkit crashtest --since`."""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from labkit.core.errors import InvalidInput

_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
"""The head of a hunk (changed section) in a diff: the first new line, and the number of new lines (1 if left out)."""

EVERY_LINE = range(1, 1 << 31)
"""The changed lines of a file that git does not track: every line."""


@dataclass(frozen=True)
class ChangedLines:
    """The source lines that differ from a git revision, as line numbers (from 1) for each absolute path of a file."""

    lines: Mapping[str, frozenset[int] | range]

    def include(self, file: str, line: int) -> bool:
        """Return whether this line has changed. A relative `file` matches every file whose path ends with it."""
        if file.startswith("/"):
            return line in self.lines.get(file, ())
        return any(path.endswith(f"/{file}") and line in lines for path, lines in self.lines.items())


def changed_since(revision: str, folder: Path) -> ChangedLines:
    """Return the lines that differ from a git revision, in the repository that contains `folder`.

    Changes count whether or not they are committed. Where lines were only removed, the lines before and after the gap
    count as changed. In an untracked file, all lines count as changed. Raises `InvalidInput` if the folder is in no
    repository, or if the repository has no such revision.
    """
    top = Path(_git(revision, folder, "rev-parse", "--show-toplevel").strip())
    base = _git(revision, folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    diff = _git(revision, folder, "diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-renames", base.strip())
    lines: dict[str, set[int]] = {}
    path = ""
    for line in diff.splitlines():
        if line.startswith("+++ "):
            path = str(top / line.removeprefix("+++ ").removeprefix("b/").rstrip("\t"))
        elif (hunk := _HUNK.match(line)) and path:
            first, count = int(hunk[1]), int(hunk[2] or 1)
            lines.setdefault(path, set()).update(range(first, first + count) if count else (first, first + 1))
    changed: dict[str, frozenset[int] | range] = {file: frozenset(numbers) for file, numbers in lines.items()}
    new = _git(revision, top, "ls-files", "--others", "--exclude-standard", "-z")
    changed.update((str(top / name), EVERY_LINE) for name in new.split("\0") if name)
    return ChangedLines(changed)


def _git(revision: str, folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "core.quotePath=false", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="surrogateescape", check=False)
    except FileNotFoundError:
        raise InvalidInput(f"--since {revision}: git is not installed; install it, or leave --since out.") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["there is no such revision"])[-1][:200]
        raise InvalidInput(
            f"--since {revision}: git cannot compare {folder} with this revision ({reason}); name another revision."
        )
    return done.stdout
