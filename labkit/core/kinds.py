"""The kinds of option values, such as numbers and names: how users type a value, how it is checked and stored as JSON.

A *word* is what a user types, on the command line or in Python (`"wal"`, `3`, `True`); the *value* is what the settings
store (`Strategy.WAL`). A kind does not know the option's name, so its caller adds the name to an error.
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
"""A value in JSON or TOML."""

Word = Any
"""What a user types for a value: text, number, bool, path or a list of texts. None if the user typed nothing."""

ValueT = TypeVar("ValueT")
NameT = TypeVar("NameT", bound=StrEnum)


class Unfit(Exception):
    """Raised for a value that an option cannot have; the message says what to write instead.

    `word` is the wrong part of the value, or None if the whole value is wrong.
    """

    def __init__(self, remedy: str, word: object = None) -> None:
        super().__init__(remedy)
        self.word = word


class Kind(ABC, Generic[ValueT]):
    """Base class of the types of options. A type parses, checks and formats the values of an option."""

    annotation: Any = str
    """The type to which the command line converts the text that a user typed."""
    accepts: UnionType | None = None
    """Types that a Python caller may pass, other than `annotation`."""
    metavar: str | None = None
    """The placeholder for the value in the help text; None if the type says enough."""
    unmatched = "write text."
    """The instruction that an error shows for a value of the wrong type."""

    @abstractmethod
    def read(self, word: object) -> ValueT:
        """Convert what a user typed to a value, such as `"wal"` to `Strategy.WAL`. Raises `Unfit` if that fails."""

    def of_text(self, text: str) -> object:
        """Convert an option's text from the command line to the type that `read` expects."""
        return text

    def word(self, value: ValueT) -> Word:
        """Return a value as users type it, such as `"wal"` for `Strategy.WAL`, or None if users cannot type it."""
        return value

    def plain(self, value: ValueT) -> Plain:
        """Return an option's value in the form for JSON."""
        word: Plain = self.word(value)
        return word

    def word_of(self, plain: object) -> object:
        """Convert a value's JSON form `plain` to the form in which users type the value; `read` checks it later."""
        return plain


class Text(Kind[str]):
    """The type of an option whose value is text. If `form` is given, the text must match this regular expression."""

    def __init__(self, form: str = "(?s).*", complaint: str = "write text.", metavar: str | None = None) -> None:
        self._form, self.unmatched, self.metavar = re.compile(form), complaint, metavar

    def read(self, word: object) -> str:
        if not isinstance(word, str) or not self._form.fullmatch(word):
            raise Unfit(self.unmatched)
        return word


class Checked(Kind[str]):
    """The type of an option whose text a function checks. The function returns the value to store or raises `Unfit`."""

    def __init__(self, check: Callable[[str], str], metavar: str | None = None) -> None:
        self._check, self.metavar = check, metavar

    def read(self, word: object) -> str:
        if not isinstance(word, str):
            raise Unfit(self.unmatched)
        return self._check(word)


class Key(Kind[str]):
    """The type of an option whose value is one of a fixed set of names."""

    def __init__(self, registry: Mapping[str, object] | Sequence[str], metavar: str | None = None) -> None:
        self.names, self.metavar = list(registry), metavar

    def read(self, word: object) -> str:
        return one_of(word, self.names)


class Name(Kind[NameT]):
    """The type of an option whose value is a member of an enumeration; users type the member's value, such as `wal`.

    `unsaid` is a member that users cannot type.
    """

    def __init__(self, members: type[NameT], unsaid: NameT | None = None, metavar: str | None = None) -> None:
        self._members, self._unsaid, self.metavar = members, unsaid, metavar
        self.names = [each.value for each in members if each is not unsaid]

    def read(self, word: object) -> NameT:
        return self._members(one_of(word, self.names))

    def word(self, value: NameT) -> Word:
        """Return the text that users type for a member of the enumeration, or None if users cannot type the member."""
        return None if value is self._unsaid else value.value

    def plain(self, value: NameT) -> Plain:
        """Return the JSON value of a member of the enumeration, also of the one that users cannot type."""
        return value.value

    def word_of(self, plain: object) -> object:
        """Return the text that users type for the member with the JSON value `plain`; None if users cannot type it."""
        return None if plain == self._unsaid else plain


class Number(Kind[int]):
    """The type of an option whose value is a whole number within bounds."""

    annotation = int

    def __init__(
        self, least: float = -math.inf, most: int | None = None, complaint: str = "", metavar: str | None = None
    ) -> None:
        self.least, self.most, self.metavar = least, math.inf if most is None else most, metavar
        self._range = complaint or f"choose a whole number from {least}{'' if most is None else f' to {most}'}."
        self.unmatched = self._range if most is not None and not complaint else "write a whole number."

    def of_text(self, text: str) -> object:
        """Convert unsigned decimal digits to a number, and leave any other text as it is."""
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else text

    def read(self, word: object) -> int:
        if not isinstance(word, int) or isinstance(word, bool):
            raise Unfit(self.unmatched)
        if not self.least <= word <= self.most:
            raise Unfit(self._range)
        return word


class Amount(Kind[float]):
    """The type of an option whose value is a number within bounds, such as a number of seconds."""

    annotation = float
    unmatched = "write a number."

    def __init__(self, least: float, most: float = math.inf, complaint: str = "", *, above: bool = False) -> None:
        self._least, self._most, self._above = least, most, above
        self._range = complaint or f"must be {'more than' if above else 'at least'} {least:g}."

    def read(self, word: object) -> float:
        if not isinstance(word, int | float) or isinstance(word, bool) or not math.isfinite(word):
            raise Unfit(self.unmatched)
        if not self._least <= word <= self._most or (self._above and word == self._least):
            raise Unfit(self._range)
        return float(word)


class Switch(Kind[bool]):
    """The type of an option that is true or false. On the command line it is a flag without a value."""

    annotation = bool
    unmatched = "choose true or false."

    def of_text(self, text: str) -> object:
        """Convert `true` and `false` to a bool, and leave any other text as it is."""
        return {"true": True, "false": False}.get(text.lower(), text)

    def read(self, word: object) -> bool:
        if not isinstance(word, bool):
            raise Unfit(self.unmatched)
        return word


class NamedSwitch(Kind[NameT]):
    """The type of a two-valued option. It is a flag on the command line; in settings and JSON each value has a name."""

    annotation = bool

    def __init__(self, off: NameT, on: NameT) -> None:
        self._off, self._on = off, on

    def read(self, word: object) -> NameT:
        return self._on if Switch().read(word) else self._off

    def word(self, value: NameT) -> Word:
        """Return True for the value that the option's flag selects, and False for the other value."""
        return value is self._on

    def plain(self, value: NameT) -> Plain:
        """Return the name by which JSON stores a value of this option."""
        return value.value

    def word_of(self, plain: object) -> object:
        """Convert the JSON name `plain` of a value to True if the option's flag selects this value, otherwise False."""
        return plain == self._on


class Many(Kind[tuple[ValueT, ...]]):
    """The type of an option with several values: repeated on the command line, a list in Python, JSON and TOML."""

    annotation = list[str]

    def __init__(self, kind: Kind[ValueT], separator: str = "") -> None:
        """Store the items' type. With a `separator`, a text may hold several items, and duplicates are dropped."""
        self._kind, self._separator, self.metavar = kind, separator, kind.metavar
        self.annotation = list[kind.annotation]  # type: ignore[name-defined]  # for the option parser alone

    def read(self, word: object) -> tuple[ValueT, ...]:
        if not isinstance(word, list | tuple):
            example = f'["{word}"]' if isinstance(word, str) else '["a", "b"]'
            raise Unfit(f"write a list, as in {example}.")
        words = list(word)
        if self._separator and all(isinstance(each, str) for each in words):
            parts = (part.strip() for each in words for part in each.split(self._separator))
            words = list(dict.fromkeys(parts))
        return tuple(map(self._one, words))

    def _one(self, word: object) -> ValueT:
        try:
            return self._kind.read(word)
        except Unfit as refused:
            raise Unfit(str(refused), word if refused.word is None else refused.word) from None

    def word(self, value: tuple[ValueT, ...]) -> Word:
        return [self._kind.word(each) for each in value]

    def plain(self, value: tuple[ValueT, ...]) -> Plain:
        return [str(self._kind.plain(each)) for each in value]


def one_of(word: object, names: list[str]) -> str:
    """Return `word` if it is in `names`. Otherwise raise `Unfit`, whose message suggests one of the names."""
    if not isinstance(word, str) or word not in names:
        raise Unfit(f"unknown; {nearest(str(word)[:40], names)}")
    return word
