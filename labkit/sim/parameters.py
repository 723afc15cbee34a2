"""Parameters of simulators: what may be set, to which values, and what is said about a value that may not.

A value is a whole number, a switch, or a word; from a command line it comes as text, from a trace as either.
This module must not know any model.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.core.words import nearest

Value = int | bool | str
Values = Mapping[str, Value]

_MAX_TEXT = 200
"""Characters of the longest value that is looked at."""


@dataclass(frozen=True)
class Parameter(ABC):
    """One thing to choose: what it means, and what it is when nobody chooses."""

    meaning: str
    default: Any

    def check(self, name: str, choice: object) -> Value:
        """The value that was given, as text or as itself. Raises `InvalidInput` that names what is possible."""
        text = str(choice).lower() if isinstance(choice, bool) else str(choice)
        value = self.read(text) if len(text) <= _MAX_TEXT else None
        if value is None:
            raise InvalidInput(f"{name}={text[:40]}: {self.remedy(text[:40])}")
        return value

    @abstractmethod
    def read(self, text: str) -> Value | None:
        """The value that a text means; None where it means none."""

    @abstractmethod
    def remedy(self, text: str) -> str:
        """What to write in place of a text that means no value."""


@dataclass(frozen=True)
class Whole(Parameter):
    """A whole number within a range."""

    least: int
    most: int

    def read(self, text: str) -> int | None:
        """Decimal digits, without a sign."""
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else -1
        return number if self.least <= number <= self.most else None

    def remedy(self, text: str) -> str:
        """The range."""
        return f"choose a whole number from {self.least} to {self.most}."


@dataclass(frozen=True)
class Switch(Parameter):
    """True or false."""

    def read(self, text: str) -> bool | None:
        """`true` or `false`."""
        return {"true": True, "false": False}.get(text.lower())

    def remedy(self, text: str) -> str:
        """The two words."""
        return "choose true or false."


@dataclass(frozen=True)
class Choice(Parameter):
    """One word of several."""

    options: tuple[str, ...]

    def read(self, text: str) -> str | None:
        """One of the options."""
        return text if text in self.options else None

    def remedy(self, text: str) -> str:
        """The nearest option, or all."""
        return nearest(text, list(self.options))


_WORDS = re.compile(r"[a-z]{1,12}(-[a-z]{1,12}){0,7}")


@dataclass(frozen=True)
class Words(Parameter):
    """A short input: words with a hyphen between them."""

    def read(self, text: str) -> str | None:
        """One to eight words of small letters."""
        return text if _WORDS.fullmatch(text) else None

    def remedy(self, text: str) -> str:
        """The form."""
        return "write 1 to 8 words of small letters with a hyphen between them, as in hello-world-hello."


def settle(model: str, parameters: Mapping[str, Parameter], wanted: Mapping[str, object]) -> Values:
    """Every parameter with its value, chosen or default. Raises `InvalidInput` for an unknown name or a bad value."""
    for name in wanted:
        if name not in parameters:
            raise InvalidInput(f"{model} has no parameter {name[:40]!r}; {nearest(name[:40], list(parameters))}")
    return {
        name: parameter.check(name, wanted[name]) if name in wanted else parameter.default
        for name, parameter in parameters.items()
    }


def chosen(parameters: Mapping[str, Parameter], values: Values) -> dict[str, Value]:
    """Only the values that differ from their defaults, in the order of the parameters."""
    return {name: values[name] for name, parameter in parameters.items() if values[name] != parameter.default}
