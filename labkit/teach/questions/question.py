"""Read the questions of the course from their files; invalid data is refused with one sentence.

Predictions and results both become tuples of texts (`Answers`), so that they can be compared.
"""

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from numbers import Number
from typing import Any, NoReturn

from labkit.core.errors import InvalidInput
from labkit.core.words import name_in, nearest

Answers = tuple[str, ...]
"""A prediction or a result: a number as text, or the chosen options in the order of the question."""

MOST = 3
"""The largest number of questions in one notebook."""
LONGEST_OPTION = 80
LONGEST_NUMBER = 40

CHOOSE = "Choose an option first, or the button: show me without one."
WRITE = "Write a number first, such as 6 or 0.5."
"""The hint for a prediction that contains no number yet."""

_NOT_SEVERAL = (str, bytes, bytearray, Mapping)
"""Types of a measured value that are iterable but count as one value; those that are not text are then refused."""
_FILE = re.compile(r"\d\d[a-z]?")
_NAME = re.compile(r"[a-z][a-z-]*")
_KEYS = {"kind", "text", "options", "right", "unit", "because", "means", "if"}


class Kind(StrEnum):
    """How a question is answered: by one option, by several options, or by a number."""

    CHOICE = "choice"
    NUMBER = "number"
    SEVERAL = "several"


@dataclass(frozen=True)
class Question:
    """A question about a run: its text, its options and the right answer.

    `means` maps measured values to the options that they mean, and `because` explains the right answer.
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
        """Check a learner's input (a list of options, or a number) and return it as text.

        Raises `InvalidInput` with a message that says what to enter.
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
        """Convert a value that a run measured to the form of a prediction; for None, return the right answer.

        Raises `InvalidInput` for anything but a number, text, truth value, or several of those.
        """
        if value is None:
            return self.right
        several = isinstance(value, Iterable) and not isinstance(value, _NOT_SEVERAL)
        members = list(value) if isinstance(value, Iterable) and several else [value]
        if not all(isinstance(each, str | Number) for each in members):
            raise InvalidInput(
                f'lab.answer("{self.name}", ...): give the number or text that the run measured, as '
                "outcome.verdict.rows."
            )
        words = {self._one(each) for each in members} or {"nothing"}
        others = sorted(words - set(self.options))
        return (*(option for option in self.options if option in words), *others)

    def _one(self, value: object) -> str:
        if self.kind is Kind.NUMBER:
            return _measured_number(value)
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


def _measured_number(value: object) -> str:
    try:
        return _number(value)
    except InvalidInput:
        return plainly(value)


def find(name: str) -> Question:
    """Return the question of this name, such as `00-rows`. Raises `InvalidInput` for an unknown name."""
    by_name = questions()
    if name_in(name, 'lab.ask("00-rows")') not in by_name:
        raise InvalidInput(f"there is no question {name[:40]!r}; {nearest(name[:40], list(by_name))}")
    return by_name[name]


@cache
def questions() -> dict[str, Question]:
    """Return all questions of the course by name. Raises `InvalidInput` if a file of questions is invalid."""
    return load(files("labkit.teach.questions"))


def load(folder: Traversable) -> dict[str, Question]:
    """Return all questions in a folder's TOML files, by name.

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
        raise InvalidInput(f"{file.name}: {error}; correct the file.") from None
    if len(tables) > MOST:
        raise InvalidInput(
            f"{file.name}: this file has {len(tables)} questions, and a notebook may have at most {MOST}; remove some."
        )
    return {f"{stem}-{key}": _Table(f"{stem}-{key}", file.name, key, table).question() for key, table in tables.items()}


class _Table:
    """One table of a TOML file of questions; `question` checks every key and returns a `Question`."""

    def __init__(self, name: str, file: str, key: str, table: object) -> None:
        self.name, self.place = name, f"{file}, [{key}]"
        if not _NAME.fullmatch(key):
            self.refuse("the name has other characters than a-z and -; rename it")
        if not isinstance(table, dict):
            self.refuse("a question is a table; write [name] above its lines")
        self.table: dict[str, Any] = table

    def refuse(self, why: str) -> NoReturn:
        raise InvalidInput(f"{self.place}: {why.removesuffix('.')}{'' if why.endswith('?') else '.'}")

    def question(self) -> Question:
        table = self.table
        if unknown := [key for key in table if key not in _KEYS]:
            self.refuse(f"unknown key {unknown[0]!r}; {nearest(unknown[0], sorted(_KEYS))}")
        kind = self.kind()
        options = self.options(kind)
        return Question(
            name=self.name,
            kind=kind,
            text=self.text("text"),
            right=self.right(kind, options),
            because=self.text("because"),
            options=options,
            unit=self.text("unit") if "unit" in table else "",
            means=self.means(options),
            replies=self.replies(kind, options),
        )

    def kind(self) -> Kind:
        kind = self.text("kind")
        if kind not in list(Kind):
            self.refuse(f"unknown kind {kind[:40]!r}; write {', '.join(Kind)}")
        return Kind(kind)

    def text(self, key: str) -> str:
        value = self.table.get(key)
        if not isinstance(value, str) or not value.strip():
            self.refuse(f'{key} is missing or no text; write {key} = "..."')
        return " ".join(value.split())

    def options(self, kind: Kind) -> Answers:
        value = self.table.get("options", [])
        if kind is Kind.NUMBER:
            if value:
                self.refuse("a number has no options; leave them out")
            return ()
        if not isinstance(value, list) or len(value) < 2:
            self.refuse("at least two options are needed; write options = [...]")
        if bad := [each for each in value if not self.is_option(each)]:
            self.refuse(
                f"the option {str(bad[0])[:40]!r} must be a text of at most {LONGEST_OPTION} characters "
                "without a full stop at its end"
            )
        if len(set(map(str.lower, value))) < len(value):
            self.refuse("two options are the same; leave one out")
        return tuple(value)

    @staticmethod
    def is_option(value: object) -> bool:
        return (
            isinstance(value, str)
            and 0 < len(value) <= LONGEST_OPTION
            and value == value.strip()
            and not value.endswith(".")
        )

    def right(self, kind: Kind, options: Answers) -> Answers:
        right = self.table.get("right")
        if kind is Kind.NUMBER:
            if isinstance(right, bool) or not isinstance(right, int | float):
                self.refuse("right is missing or no number; write right = 6")
            return (plainly(right),)
        wanted = right if kind is Kind.SEVERAL else [right]
        if not isinstance(wanted, list) or not wanted:
            self.refuse("right is missing; write the options that hold as a list")
        if unknown := [each for each in wanted if each not in options]:
            self.refuse(f"right is {unknown[0]!r}, which is no option; write one of them")
        return tuple(option for option in options if option in wanted)

    def replies(self, kind: Kind, options: Answers) -> dict[str, str]:
        value = self.table.get("if", {})
        if value and kind is not Kind.CHOICE:
            self.refuse("only a choice has [if] sentences; leave them out")
        return self.sentences("if", value, options)

    def means(self, options: Answers) -> dict[str, str]:
        value = self.table.get("means", {})
        meanings = self.sentences("means", value, None)
        if unknown := [each for each in meanings.values() if each not in options]:
            self.refuse(f"means names {unknown[0]!r}, which is no option")
        return meanings

    def sentences(self, key: str, value: object, names: Answers | None) -> dict[str, str]:
        if not isinstance(value, dict) or not all(isinstance(each, str) and each.strip() for each in value.values()):
            self.refuse(f"{key} must be a table of texts")
        if names is not None and (unknown := [each for each in value if each not in names]):
            self.refuse(f"[{key}] speaks of {unknown[0]!r}, which is no option")
        return {name: " ".join(each.split()) for name, each in value.items()}
