"""Replaces paths of the grading machine in texts that a learner reads, such as error messages of the learner's code.

A sandbox has Python and the lab at their real paths, and each process in it may read the table of mounts. This module
only keeps paths out of ordinary messages and pages: a learner's code can still encode a path and so smuggle it out.
"""

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from labkit.grading.tasks import Setting

HIDDEN = "\N{HORIZONTAL ELLIPSIS}"
"""The character that replaces the beginning of a path or a line of the table of mounts."""
_MOUNTS = re.compile(
    # /proc/self/mountinfo, /proc/self/mountstats and /proc/self/mounts; a message may spell a line's end as \n.
    # A match begins only where a number or word does, because otherwise a long word would take quadratic time.
    r"(?<!\d)\d+ \d+ \d+:\d+ /[^\\\n]*|device \S+ mounted on /[^\\\n]*|"
    r"(?<![^\s\\])[^\s\\]+ /[^\s\\]* [\w.]+ r[wo],[^\\\n]*"
)


def private_paths(setting: Setting) -> list[str]:
    """Return the paths on the grading machine that learners must not see, the longest first."""
    place = setting.place
    named = [setting.out, setting.lab, Path.home(), *([setting.course] if setting.course else [])]
    named += map(Path, (place.root, sys.prefix, sys.base_prefix, *place.masked))
    paths = {path for each in named for path in (each, each.resolve())}
    # Paths in /usr, and those with a single folder, are the same on many machines, so they tell nothing.
    private = {str(path) for path in paths if len(path.parts) > 2 and path.parts[1] not in {"usr", "proc", "dev"}}
    return sorted(private | {"/root"}, key=len, reverse=True)


def without_paths(words: str, private: Iterable[str]) -> str:
    """Return the text with private paths, and all lines copied from Linux's mount table, replaced by `HIDDEN`."""
    shown = _MOUNTS.sub(HIDDEN, words)
    for path in private:
        shown = re.sub(re.escape(path) + r"(?!\w)", HIDDEN, shown)
    return shown
