"""Parameters of simulators: their meaning, default and allowed values, and the values chosen for them.

A value is a whole number, true or false, or a word. It may be given as text, as on a command line.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.core.kinds import Key, Kind, Number, Text, Unfit
from labkit.core.kinds import Switch as Flag
from labkit.core.words import nearest

Value = int | bool | str
Values = Mapping[str, Value]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a simulator: its meaning in words, its default, and the type of its values."""

    meaning: str
    default: Any
    kind: Kind[Any]

    def check(self, name: str, choice: object) -> Value:
        """Convert a value, which may be given as text, to the parameter's type, and return it.

        Raises `InvalidInput` for a value that is not allowed. The message has the parameter's `name` and the allowed
        values.
        """
        text = str(choice).lower() if isinstance(choice, bool) else str(choice)
        try:
            value: Value = self.kind.read(self.kind.of_text(text))
        except Unfit as refused:
            raise InvalidInput(f"{name}{f'={text[:40]}' if text else ''}: {refused}") from None
        return value


def Whole(meaning: str, default: int, least: int, most: int) -> Parameter:  # noqa: N802  # read as a type in tables
    """Return a parameter whose value is a whole number from `least` to `most`; `meaning` describes it in words."""
    return Parameter(meaning, default, Number(least, most))


def Switch(meaning: str, *, default: bool) -> Parameter:  # noqa: N802
    """Return a parameter that is true or false."""
    return Parameter(meaning, default, Flag())


def Choice(meaning: str, default: str, options: Sequence[str]) -> Parameter:  # noqa: N802
    """Return a parameter whose value is one of the words in `options`; `meaning` describes it in words."""
    return Parameter(meaning, default, Key(options))


def Words(meaning: str, default: str) -> Parameter:  # noqa: N802
    """Return a parameter for a short input: one to eight words of small letters, joined by hyphens."""
    form = "write 1 to 8 words of small letters with a hyphen between them, as in hello-world-hello."
    return Parameter(meaning, default, Text("[a-z]{1,12}(-[a-z]{1,12}){0,7}", form))


def settle(model: str, parameters: Mapping[str, Parameter], wanted: Mapping[str, object]) -> Values:
    """Return the value of every parameter of the simulator `model`: the one in `wanted`, or else the default.

    Raises `InvalidInput` for an unknown name or a value that is not allowed.
    """
    for name in wanted:
        if name not in parameters:
            raise InvalidInput(f"{model} has no parameter {name[:40]!r}; {nearest(name[:40], list(parameters))}")
    return {
        name: parameter.check(name, wanted[name]) if name in wanted else parameter.default
        for name, parameter in parameters.items()
    }


def chosen(parameters: Mapping[str, Parameter], values: Values) -> dict[str, Value]:
    """Return a dict of the parameters whose values differ from their defaults, in the order of `parameters`."""
    return {name: values[name] for name, parameter in parameters.items() if values[name] != parameter.default}
