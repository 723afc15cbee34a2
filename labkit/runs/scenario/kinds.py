"""The kinds of values that an option of a run can have: how a value is typed, checked, and written as JSON.

A *word* is what a person types or what Python passes for an option (`"wal"`, `3`, `True`); the *value* is what the
scenario keeps (`Strategy.WAL`). A kind must not know any option by its name.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from types import UnionType
from typing import Generic, TypeVar

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import Crash, parse_crash
from labkit.core.words import nearest

Plain = str | int | bool | list[str] | None
"""A value as it stands in JSON."""

Word = str | int | bool | Path | list[str] | None
"""A value as it is typed; None: nothing is typed."""

ValueT = TypeVar("ValueT")
NameT = TypeVar("NameT", bound=StrEnum)


class Kind(ABC, Generic[ValueT]):
    """How the values of one option are read and written."""

    annotation: type = str
    """What the command line turns a word into."""
    accepts: UnionType | None = None
    """What Python may pass, where that is more."""
    metavar: str | None = None
    """What the help writes for the word, where the annotation does not say enough."""

    @abstractmethod
    def read(self, option: str, word: object) -> ValueT:
        """The value that a word stands for. Raises `InvalidInput`, which begins with the option's name."""

    @abstractmethod
    def word(self, value: ValueT) -> Word:
        """What has to be typed for a value; None where nothing can be."""

    def plain(self, value: ValueT) -> Plain:
        """The value in JSON."""
        word = self.word(value)
        return str(word) if isinstance(word, Path) else word

    def word_of(self, plain: object) -> object:
        """The word for a value that was read from JSON; it is checked when it is read as a word."""
        return plain


class Name(Kind[NameT]):
    """One member of an enumeration, by its value."""

    def __init__(self, members: type[NameT], unsaid: NameT | None = None) -> None:
        self._members = members
        self._unsaid = unsaid
        self.names = [each.value for each in members if each is not unsaid]

    def read(self, option: str, word: object) -> NameT:
        """The member of that name."""
        return self._members(one_of(option, word, self.names))

    def word(self, value: NameT) -> Word:
        """The member's name; none for the member that says that there is nothing to choose."""
        return None if value is self._unsaid else value.value

    def plain(self, value: NameT) -> Plain:
        """The member's name, also of the member that nobody can type."""
        return value.value

    def word_of(self, plain: object) -> object:
        """The member's name, if it can be typed."""
        return None if plain == self._unsaid else plain


class Key(Kind[str]):
    """A key of a registry."""

    def __init__(self, registry: Mapping[str, object]) -> None:
        self.names = list(registry)

    def read(self, option: str, word: object) -> str:
        """The key itself."""
        return one_of(option, word, self.names)

    def word(self, value: str) -> Word:
        """The key itself."""
        return value


class Text(Kind[str]):
    """Any text, or a text of one form."""

    def __init__(self, form: str = ".*", complaint: str = "") -> None:
        self._form, self._complaint = re.compile(form), complaint

    def read(self, option: str, word: object) -> str:
        """The text itself."""
        if not isinstance(word, str) or not self._form.fullmatch(word):
            complaint = self._complaint or "write a text."
            raise InvalidInput(f"{option} {str(word)[:40]}: {complaint}")
        return word

    def word(self, value: str) -> Word:
        """The text itself."""
        return value


class Number(Kind[int]):
    """A whole number within bounds."""

    annotation = int

    def __init__(self, least: int, complaint: str, most: int | None = None) -> None:
        self._least, self._most, self._complaint = least, most, complaint

    def read(self, option: str, word: object) -> int:
        """The number itself."""
        if not isinstance(word, int) or isinstance(word, bool):
            raise InvalidInput(f"{option} {str(word)[:40]}: write a whole number.")
        if word < self._least or (self._most is not None and word > self._most):
            raise InvalidInput(f"{option} {word}: {self._complaint}")
        return word

    def word(self, value: int) -> Word:
        """The number itself."""
        return value


class Switch(Kind[bool]):
    """A flag: it is there or not."""

    annotation = bool

    def read(self, option: str, word: object) -> bool:
        """Whether the flag is set."""
        if not isinstance(word, bool):
            raise InvalidInput(f"{option} {str(word)[:40]}: write True or False.")
        return word

    def word(self, value: bool) -> Word:  # noqa: FBT001  # the value of a flag is a bool
        """Whether the flag is set."""
        return value


class NamedSwitch(Kind[NameT]):
    """A flag whose two positions have names, which JSON uses."""

    annotation = bool

    def __init__(self, off: NameT, on: NameT) -> None:
        self._off, self._on = off, on

    def read(self, option: str, word: object) -> NameT:
        """The name of the flag's position."""
        return self._on if Switch().read(option, word) else self._off

    def word(self, value: NameT) -> Word:
        """Whether the flag is set."""
        return value is self._on

    def plain(self, value: NameT) -> Plain:
        """The name of the flag's position."""
        return value.value

    def word_of(self, plain: object) -> object:
        """Whether the flag is set."""
        return plain == self._on


class InputFile(Kind[Path]):
    """The path of a file that is read later. What is in the file is checked elsewhere."""

    annotation = Path
    accepts = Path | str

    def read(self, option: str, word: object) -> Path:
        """The absolute path, so that the run can be repeated from anywhere."""
        if not isinstance(word, str | Path):
            raise InvalidInput(f"{option} {str(word)[:40]}: write a path.")
        return Path(word).absolute()

    def word(self, value: Path) -> Word:
        """The path itself."""
        return value


class Crashes(Kind[tuple[Crash, ...]]):
    """Planned crashes, the nth of which is for the nth driver."""

    annotation = list[str]
    accepts = list[str] | str
    metavar = "POINT[@BATCH]"

    def read(self, option: str, word: object) -> tuple[Crash, ...]:
        """Each crash from `POINT` or `POINT@BATCH`."""
        words = [word] if isinstance(word, str) else word
        if not isinstance(words, Iterable):
            raise InvalidInput(f"{option} {str(word)[:40]}: write POINT or POINT@BATCH.")
        return tuple(parse_crash(str(each)) for each in words)

    def word(self, value: tuple[Crash, ...]) -> Word:
        """The crashes as they are typed."""
        return [str(crash) for crash in value]


def one_of(option: str, word: object, names: list[str]) -> str:
    """The word, if it is one of the names. Raises `InvalidInput`."""
    if not isinstance(word, str) or word not in names:
        raise InvalidInput(f"{option} {word}: unknown; {nearest(str(word), names)}")
    return word
