"""The kinds of values that an option can have: how each is typed, checked, and written as JSON.

A *word* is what a person types or what Python passes for an option (`"wal"`, `3`, `True`); the *value* is what the
settings keep (`Strategy.WAL`). Kinds know no option by its name: whoever reads a word adds the place where it stands.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from types import UnionType
from typing import Any, Generic, TypeVar

from labkit.core.words import nearest

Plain = str | int | float | bool | Sequence[str] | None
"""A value as it stands in JSON or TOML."""

Word = Any
"""A value as it is typed: a text, a number, a bool, a path or a list of texts. None: nothing is typed."""

ValueT = TypeVar("ValueT")
NameT = TypeVar("NameT", bound=StrEnum)


class Unfit(Exception):
    """A word that an option cannot have. The message is the remedy; `word` the part that is wrong, if not all of it."""

    def __init__(self, remedy: str, word: object = None) -> None:
        super().__init__(remedy)
        self.word = word


class Kind(ABC, Generic[ValueT]):
    """How the values of one option are read and written."""

    annotation: Any = str
    """The type into which the command line turns a word."""
    accepts: UnionType | None = None
    """The types that Python may pass, where there are more."""
    metavar: str | None = None
    """The name of the word in the help, where the annotation does not say enough."""
    unmatched = "write a text."
    """The remedy for a word of another type."""

    @abstractmethod
    def read(self, word: object) -> ValueT:
        """The value that a word stands for. Raises `Unfit`."""

    def of_text(self, text: str) -> object:
        """The word that a text on a command line stands for."""
        return text

    def word(self, value: ValueT) -> Word:
        """The word that gives a value; None where no word does."""
        return value

    def plain(self, value: ValueT) -> Plain:
        """The value in JSON."""
        word: Plain = self.word(value)
        return word

    def word_of(self, plain: object) -> object:
        """The word for a value that was read from JSON; it is checked when it is read as a word."""
        return plain


class Text(Kind[str]):
    """Any text, or a text of one form."""

    def __init__(self, form: str = "(?s).*", complaint: str = "write a text.", metavar: str | None = None) -> None:
        self._form, self.unmatched, self.metavar = re.compile(form), complaint, metavar

    def read(self, word: object) -> str:
        """The text itself."""
        if not isinstance(word, str) or not self._form.fullmatch(word):
            raise Unfit(self.unmatched)
        return word


class Checked(Kind[str]):
    """A text that a function checks. The function returns the text to keep, and raises `Unfit`."""

    def __init__(self, check: Callable[[str], str], metavar: str | None = None) -> None:
        self._check, self.metavar = check, metavar

    def read(self, word: object) -> str:
        """The text that the function returns."""
        if not isinstance(word, str):
            raise Unfit(self.unmatched)
        return self._check(word)


class Key(Kind[str]):
    """A key of a registry, or one of several words."""

    def __init__(self, registry: Mapping[str, object] | Sequence[str], metavar: str | None = None) -> None:
        self.names, self.metavar = list(registry), metavar

    def read(self, word: object) -> str:
        """The key itself."""
        return one_of(word, self.names)


class Name(Kind[NameT]):
    """One member of an enumeration, by its value."""

    def __init__(self, members: type[NameT], unsaid: NameT | None = None, metavar: str | None = None) -> None:
        self._members, self._unsaid, self.metavar = members, unsaid, metavar
        self.names = [each.value for each in members if each is not unsaid]

    def read(self, word: object) -> NameT:
        """The member of that name."""
        return self._members(one_of(word, self.names))

    def word(self, value: NameT) -> Word:
        """The member's name; none for the member that nobody can type."""
        return None if value is self._unsaid else value.value

    def plain(self, value: NameT) -> Plain:
        """The member's name, also of the member that nobody can type."""
        return value.value

    def word_of(self, plain: object) -> object:
        """The member's name, if it can be typed."""
        return None if plain == self._unsaid else plain


class Number(Kind[int]):
    """A whole number within bounds."""

    annotation = int

    def __init__(
        self, least: float = -math.inf, most: int | None = None, complaint: str = "", metavar: str | None = None
    ) -> None:
        self._least, self._most, self.metavar = least, math.inf if most is None else most, metavar
        self._range = complaint or f"choose a whole number from {least}{'' if most is None else f' to {most}'}."
        self.unmatched = self._range if most is not None and not complaint else "write a whole number."

    def of_text(self, text: str) -> object:
        """The number that decimal digits without a sign stand for; any other text stays one."""
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else text

    def read(self, word: object) -> int:
        """The number itself."""
        if not isinstance(word, int) or isinstance(word, bool):
            raise Unfit(self.unmatched)
        if not self._least <= word <= self._most:
            raise Unfit(self._range)
        return word


class Amount(Kind[float]):
    """A number within bounds, such as seconds."""

    annotation = float
    unmatched = "write a number."

    def __init__(self, least: float, most: float = math.inf, complaint: str = "", *, above: bool = False) -> None:
        self._least, self._most, self._above = least, most, above
        self._range = complaint or f"must be {'more than' if above else 'at least'} {least:g}."

    def read(self, word: object) -> float:
        """The number itself."""
        if not isinstance(word, int | float) or isinstance(word, bool) or not math.isfinite(word):
            raise Unfit(self.unmatched)
        if not self._least <= word <= self._most or (self._above and word == self._least):
            raise Unfit(self._range)
        return float(word)


class Switch(Kind[bool]):
    """A flag: it is there or not."""

    annotation = bool
    unmatched = "choose true or false."

    def of_text(self, text: str) -> object:
        """The bool that `true` or `false` stands for; any other text stays one."""
        return {"true": True, "false": False}.get(text.lower(), text)

    def read(self, word: object) -> bool:
        """Whether the flag is set."""
        if not isinstance(word, bool):
            raise Unfit(self.unmatched)
        return word


class NamedSwitch(Kind[NameT]):
    """A flag whose two positions have names, which JSON uses."""

    annotation = bool

    def __init__(self, off: NameT, on: NameT) -> None:
        self._off, self._on = off, on

    def read(self, word: object) -> NameT:
        """The name of the flag's position."""
        return self._on if Switch().read(word) else self._off

    def word(self, value: NameT) -> Word:
        """Whether the flag is set."""
        return value is self._on

    def plain(self, value: NameT) -> Plain:
        """The name of the flag's position."""
        return value.value

    def word_of(self, plain: object) -> object:
        """Whether the flag is set."""
        return plain == self._on


class Many(Kind[tuple[ValueT, ...]]):
    """Several values of one kind: the option may be repeated, and is a list in Python, JSON and TOML."""

    annotation = list[str]

    def __init__(self, kind: Kind[ValueT], separator: str = "") -> None:
        """With a separator a word may hold several values, and a value that is named twice counts once."""
        self._kind, self._separator, self.metavar = kind, separator, kind.metavar
        self.annotation = list[kind.annotation]  # type: ignore[name-defined]  # for the option parser alone

    def read(self, word: object) -> tuple[ValueT, ...]:
        """The values, each checked."""
        if not isinstance(word, list | tuple):
            raise Unfit(f'write a list, as in ["{word}"].' if isinstance(word, str) else "write a list of texts.")
        words = list(word)
        if self._separator and all(isinstance(each, str) for each in words):
            parts = (part.strip() for each in words for part in each.split(self._separator))
            words = list(dict.fromkeys(part for part in parts if part))
        return tuple(map(self._one, words))

    def _one(self, word: object) -> ValueT:
        try:
            return self._kind.read(word)
        except Unfit as refused:
            raise Unfit(str(refused), word if refused.word is None else refused.word) from None

    def word(self, value: tuple[ValueT, ...]) -> Word:
        """The words of the values."""
        return [self._kind.word(each) for each in value]

    def plain(self, value: tuple[ValueT, ...]) -> Plain:
        """The values in JSON."""
        return [str(self._kind.plain(each)) for each in value]


def one_of(word: object, names: list[str]) -> str:
    """The word, if it is one of the names. Raises `Unfit`."""
    if not isinstance(word, str) or word not in names:
        raise Unfit(f"unknown; {nearest(str(word)[:40], names)}")
    return word
