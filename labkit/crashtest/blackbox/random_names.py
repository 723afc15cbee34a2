"""Find the parts of file names that chance decides, by comparing two runs without a crash.

`labkit.crashtest.blackbox.effects.mask` knows the shapes of ids, times and usual temporary names. A program may choose
others, such as `.tmp-k3x_9ab1` from `tempfile.mkstemp(prefix=".tmp-")`; two runs show them.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from labkit.crashtest.blackbox.effects import Effect, mask
from labkit.host.syscalls.calls import CallKind

_NAMELESS = frozenset({CallKind.SEND, CallKind.LINE, CallKind.EXIT})
_PLACEHOLDER = re.compile(r"<[a-z]+>")
_TOKEN = re.compile(r"\w{6,}", re.ASCII)
_MIXED = re.compile(r"[A-Za-z]\d|\d[A-Za-z]")
CHEAP_SECONDS = 2.0
"""A run that takes less is repeated on weaker evidence of random names."""
_LENGTHS = (6, 8, 10, 12, 16, 22, 24, 32)
"""Usual lengths of random parts; a shorter difference is only a part of one, as some characters may agree by chance."""


class RandomName(NamedTuple):
    """The names in one folder that differ only in a random part of a certain length."""

    folder: str
    """The masked path of the folder, below the watched folder; empty for the watched folder itself."""
    prefix: str
    length: int
    suffix: str

    def masked(self, folder: str, name: str) -> str | None:
        """Return `name` with a placeholder for its random part; None if the folder or the fixed parts do not match."""
        fixed = len(self.prefix) + len(self.suffix)
        if folder != self.folder or len(name) != fixed + self.length:
            return None
        part = name[len(self.prefix) : len(name) - len(self.suffix)]
        is_one = name.startswith(self.prefix) and name.endswith(self.suffix) and _TOKEN.fullmatch(part)
        return f"{self.prefix}<x>{self.suffix}" if is_one else None


def mask_random(path: str, names: Sequence[RandomName]) -> str:
    """Return a path in which placeholders replace the random parts of `names`, and nothing else."""
    if not names:
        return path
    parts, folder = [], ""
    for part in path.split("/"):
        found = (each.masked(folder, part) for each in names)
        parts.append(next((each for each in found if each is not None), part))
        folder = _below(folder, parts[-1])
    return "/".join(parts)


def _below(folder: str, name: str) -> str:
    """Return the masked path of a file, from the masked path of its folder and its own name."""
    return f"{folder}/{mask(name, entries=False)}".lstrip("/")


def may_be_random(effects: Sequence[Effect], seconds: float) -> bool:
    """Return whether a second run without a crash is worthwhile, because a name may have a random part.

    A word of letters and digits in a name may be random. If the run took only a few `seconds`, the same is assumed of
    the long name of a file that is renamed or removed, because this may be a temporary file.
    """
    for each in effects:
        if each.kind not in _NAMELESS:
            is_temporary = each.kind in (CallKind.RENAME, CallKind.UNLINK) and seconds < CHEAP_SECONDS
            names = f"{each.where}/{mask(each.call.path.rpartition('/')[2])}"
            tokens = _TOKEN.findall(_PLACEHOLDER.sub("/", names))
            if any(is_temporary or _MIXED.search(token) for token in tokens):
                return True
    return False


def random_names(first: Sequence[Effect], second: Sequence[Effect]) -> tuple[RandomName, ...]:
    """Return the names with random parts that two runs show; () if the runs made other calls, or equal names."""
    if [each.kind for each in first] != [each.kind for each in second]:
        return ()
    found: dict[RandomName, None] = {}
    for one, other in zip(first, second, strict=True):
        if one.kind not in _NAMELESS:
            found.update(dict.fromkeys(_differing(one.file, other.file)))
    return tuple(found)


def _differing(one: str, other: str) -> Iterator[RandomName]:
    folder = ""
    for mine, theirs in zip(one.split("/"), other.split("/"), strict=False):
        masked = mine
        if _below(folder, mine) != _below(folder, theirs):
            name = _random_name(folder, mine, theirs)
            if name is None:
                return
            yield name
            masked = name.masked(folder, mine) or mine
        folder = _below(folder, masked)


def _random_name(folder: str, one: str, other: str) -> RandomName | None:
    """Return the pattern that both names match; None if they differ in more than one word, or in length."""
    if len(one) != len(other):
        return None
    places = [place for place, (mine, theirs) in enumerate(zip(one, other, strict=True)) if mine != theirs]
    begin, end = places[0], places[-1] + 1
    word = next((each for each in _TOKEN.finditer(one) if each.start() <= begin and end <= each.end()), None)
    if word is None or _TOKEN.fullmatch(other, word.start(), word.end()) is None:
        return None
    length = next((each for each in _LENGTHS if end - begin <= each <= len(word[0])), len(word[0]))
    # A fixed part of the word is more often before the random one than after it.
    end = min(begin + length, word.end())
    begin = end - length
    return RandomName(folder, one[:begin], length, one[end:])
