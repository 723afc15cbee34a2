"""Read the questions of the course from TOML files, and refuse an invalid file with one sentence.

Predictions and results both become tuples of texts (`Answers`), so that they can be compared.
"""

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from numbers import Number
from typing import Annotated, Any

import msgspec

from labkit.core.errors import InvalidInput
from labkit.core.words import name_in, nearest

Answers = tuple[str, ...]
"""A prediction or a result: a number as text, or the chosen options in the order of the question."""

MOST = 3
"""The largest number of questions in one notebook."""
LONGEST_OPTION = 80
LONGEST_NUMBER = 40

CHOOSE = 'Choose an option first, or press "show me without one".'
WRITE = "Write a number first, such as 6 or 0.5."
"""The message for a learner whose prediction is not a number."""

_NOT_SEVERAL = (str, bytes, bytearray, Mapping)
"""Types of a measured value that are iterable but count as one value; `measured` refuses all of them but `str`."""
_FILE = re.compile(r"\d\d[a-z]?")
_NAME = re.compile(r"[a-z][a-z-]*")


class Kind(StrEnum):
    """How a question is answered: by one option, by several options, or by a number."""

    CHOICE = "choice"
    NUMBER = "number"
    SEVERAL = "several"


@dataclass(frozen=True)
class Question:
    """A question to a learner, who predicts the result of a run.

    `right` is the right answer, and `because` explains it. `means` maps a measured value, as text, to the option that
    is the right answer for this value.
    """

    name: str
    kind: Kind
    text: str
    right: Answers
    because: str
    options: Answers = ()
    unit: str = ""
    means: Mapping[str, str] = field(default_factory=dict)
    replies: Mapping[str, str] = field(default_factory=dict)
    """The sentence shown to learners who predicted a wrong option, by option."""

    @property
    def notebook(self) -> str:
        """The number of the question's notebook, such as `09b`."""
        return self.name.partition("-")[0]

    def parse(self, value: object) -> Answers:
        """Return a learner's input (a list of options, or a number) as a tuple of texts.

        Raises `InvalidInput` if the question does not allow this input.
        """
        if self.kind is Kind.NUMBER:
            return (_number(value[0] if isinstance(value, list) and value else value),)
        chosen = [str(each) for each in value] if isinstance(value, list) else []
        if not chosen:
            raise InvalidInput(CHOOSE)
        words = tuple(option for option in self.options if option in chosen)
        if set(chosen) - set(words) or (self.kind is Kind.CHOICE and len(words) > 1):
            raise InvalidInput(
                "The options of this question have changed since the form was shown; choose one of the new ones."
            )
        return words

    def measured(self, value: object) -> Answers:
        """Convert a value that a run measured to a tuple of texts, which can be compared with a prediction.

        Returns the right answer if `value` is None. Raises `InvalidInput` unless `value` is a number, a text, a truth
        value, or several of these.
        """
        if value is None:
            return self.right
        several = isinstance(value, Iterable) and not isinstance(value, _NOT_SEVERAL)
        members = list(value) if isinstance(value, Iterable) and several else [value]
        if not all(isinstance(each, str | Number) for each in members):
            raise InvalidInput(
                f'lab.answer("{self.name}", ...): the result is not a number, a text, or a list of these; pass a value '
                "that the run measured, such as outcome.verdict.rows."
            )
        words = {self._one(each) for each in members} or {"nothing"}
        others = sorted(words - set(self.options))
        return (*(option for option in self.options if option in words), *others)

    def _one(self, value: object) -> str:
        if self.kind is Kind.NUMBER:
            with suppress(InvalidInput):
                return _number(value)
        plain = plainly(value)
        by_text = {option.lower(): option for option in self.options}
        return self.means.get(plain) or by_text.get(plain.lower(), plain)


def plainly(value: object) -> str:
    """Return a value as text for learners: `yes` or `no` for a truth value, and `2` for 2.0."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _number(value: object) -> str:
    text = str(value).strip()
    try:
        number = float(text) if len(text) <= LONGEST_NUMBER else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInput(WRITE)
    return plainly(number)


def find(name: str) -> Question:
    """Return the question of this name, such as `00-rows`. Raises `InvalidInput` for an unknown name."""
    by_name = questions()
    if name_in(name, 'lab.ask("00-rows")') not in by_name:
        raise InvalidInput(f"there is no question {name[:40]!r}; {nearest(name[:40], list(by_name))}")
    return by_name[name]


@cache
def questions() -> dict[str, Question]:
    """Return all questions of the course, as a dict by name. Raises `InvalidInput` if a file is invalid."""
    return load(files("labkit.teach.questions"))


def load(folder: Traversable) -> dict[str, Question]:
    """Return the questions in a folder's TOML files as a dict from name to question.

    Raises `InvalidInput` if a file is invalid; the message names the file, the question and the remedy.
    """
    questions: dict[str, Question] = {}
    data = (each for each in folder.iterdir() if each.name.endswith(".toml"))
    for file in sorted(data, key=lambda each: each.name):
        questions |= _of_file(file)
    return questions


def _of_file(file: Traversable) -> dict[str, Question]:
    stem = file.name.removesuffix(".toml")
    if not _FILE.fullmatch(stem):
        raise InvalidInput(
            f"{file.name}: a file of questions must be named after the number of its notebook, such as 00.toml "
            "or 09b.toml; rename it."
        )
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file.name} cannot be read as a file of questions: {error}; correct the file.") from None
    if len(tables) > MOST:
        raise InvalidInput(
            f"{file.name}: this file has {len(tables)} questions, and a notebook may have at most {MOST}; remove some."
        )
    return {f"{stem}-{key}": _read(f"{stem}-{key}", f"{file.name}, [{key}]", table) for key, table in tables.items()}


_Text = Annotated[str, msgspec.Meta(pattern=r"\S")]
_Option = Annotated[str, msgspec.Meta(max_length=LONGEST_OPTION, pattern=r"^(\S.*)?[^\s.]\Z")]
"""An option: a short text without blanks at its edges, and without a full stop."""


class _Table(msgspec.Struct):
    """One table of a TOML file of questions, which describes one question."""

    kind: Kind
    text: _Text
    right: int | float | str | list[str]
    because: _Text
    options: list[_Option] = []
    unit: str = ""
    means: dict[str, _Text] = {}
    replies: dict[str, _Text] = msgspec.field(name="if", default_factory=dict)

    def fault(self) -> str:
        """Return a contradiction between fields of this question, with a remedy, as text; empty if there is none."""
        is_number, is_list = self.kind is Kind.NUMBER, isinstance(self.right, list)
        if is_number and (self.options or not isinstance(self.right, int | float)):
            return "a number has no options; remove options, and write the number, as in right = 6"
        if not is_number and len({each.lower() for each in self.options}) < max(2, len(self.options)):
            return "at least two different options are needed; write options = [...]"
        if is_list is not (self.kind is Kind.SEVERAL) or not (is_number or self.right):
            return "right does not fit the kind; write one option for a choice, and a list of options for several"
        if self.replies and self.kind is not Kind.CHOICE:
            return "only a choice has [if] sentences; remove them"
        named = {"right": [] if is_number else self.wanted(), "[if]": self.replies, "means": self.means.values()}
        for key, values in named.items():
            if unknown := [each for each in values if each not in self.options]:
                return f"{key} names {unknown[0]!r}, which is not an option; write one of the options"
        return ""

    def wanted(self) -> list[Any]:
        return self.right if isinstance(self.right, list) else [self.right]


def _read(name: str, place: str, table: object) -> Question:
    """Return a table's question. Raises `InvalidInput`, with a message that names the `place`, for an invalid table."""
    keys = [each.encode_name for each in msgspec.structs.fields(_Table)]
    if isinstance(table, dict) and (unknown := [key for key in table if key not in keys]):
        raise InvalidInput(f"{place}: unknown key {unknown[0][:40]!r}; {nearest(unknown[0][:40], keys)}")
    try:
        read = msgspec.convert(table, _Table)
        fault = read.fault()
    except msgspec.ValidationError as error:
        fault = f"{error}; correct it"
    if not _NAME.fullmatch(name.partition("-")[2]):
        fault = "the name has other characters than a-z and -; rename it"
    if fault:
        raise InvalidInput(f"{place}: {fault}.")
    right = (plainly(read.right),) if read.kind is Kind.NUMBER else None
    return Question(
        name=name,
        kind=read.kind,
        text=_on_one_line(read.text),
        right=right or tuple(option for option in read.options if option in read.wanted()),
        because=_on_one_line(read.because),
        options=tuple(read.options),
        unit=_on_one_line(read.unit),
        means={measured: _on_one_line(each) for measured, each in read.means.items()},
        replies={option: _on_one_line(each) for option, each in read.replies.items()},
    )


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
