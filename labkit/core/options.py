"""One way to declare an option: a field of a dataclass, which carries everything that other places say of it.

The command line, Python's arguments, a project's file, JSON, the printed command and every refusal are derived from
the fields of a class of `Options`. Options of runs, crash tests and gradings are declared so; parameters of
simulators use the same kinds of values. This module knows no option by its name.
"""

import inspect
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from inspect import Parameter
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

from labkit.core.errors import InvalidInput
from labkit.core.kinds import Kind, Plain, Unfit, ValueT, Word
from labkit.core.words import nearest

DefaultT = TypeVar("DefaultT")
FunctionT = TypeVar("FunctionT", bound=Callable[..., object])
_KEY = "option"
_SHOWN = 80
"""Characters of a wrong word that its refusal repeats."""


@dataclass(frozen=True)
class Need:
    """A condition under which an option applies: settings that use it without meeting the need are refused.

    `otherwise` is the sentence of the refusal. In it `{option}` stands for the option's name, `{written}` for the
    option as it was typed, and `{chosen}` for all settings.
    """

    met: Callable[[Any], bool]
    otherwise: str


@dataclass(frozen=True, kw_only=True)
class Option(Generic[ValueT]):
    """Everything that is said of one option. `keyword` is its name in Python."""

    attribute: str = ""
    """The attribute of the settings."""
    kind: Kind[ValueT]
    help: str
    default: ValueT | None
    keyword: str = ""
    """The argument in Python, and the name elsewhere unless another one is given; empty: the attribute."""
    usual: Callable[[Any], ValueT] | None = None
    """The default where that depends on other options."""
    needs: Sequence[Need] = ()
    check: Callable[[Any], object] | None = None
    """Refuses what does not go together with other options. Raises `InvalidInput`."""
    always: bool = False
    """Whether the printed command has it even at its default."""
    flag_name: str = ""
    """The name on the command line, where it is another one."""
    json: str = ""
    """The name in JSON and in a project's file, where it is another one."""
    in_every_json: bool = False
    """Whether every file has it; files from before an option came lack it."""
    in_project: bool = True
    """Whether a project's file may set it."""
    argument: str = ""
    """The name in the help of an argument by position; empty: an option with a flag."""
    required: bool = False
    """Whether a command line must have it."""
    names_subject: bool = False
    """Whether it says what the command is about: the command line names that anew, or the project's file does."""
    instead_of: Collection[str] = ()
    """Keywords of the options that it replaces: on a command line it displaces theirs in a project's file."""

    @property
    def parameter(self) -> str:
        """The name of the command line's parameter."""
        return self.flag_name or self.keyword

    @property
    def flag(self) -> str:
        """The option as it is typed, without its value."""
        return self.argument or f"--{self.parameter.replace('_', '-')}"

    @property
    def json_name(self) -> str:
        """The name in JSON."""
        return self.json or self.keyword

    @property
    def default_word(self) -> Word:
        """The word for the default; None where there is none, or where it depends on other options."""
        return None if self.usual else self.to_word(self.default)

    def value_in(self, settings: object) -> ValueT | None:
        """The value that settings have."""
        return cast("ValueT | None", getattr(settings, self.attribute))

    def read(self, word: object, place: str = "") -> ValueT | None:
        """The value of a word; the default for None. Raises `InvalidInput`, which begins with the word's place."""
        if word is None:
            return self.default
        try:
            return self.kind.read(word)
        except Unfit as refused:
            shown = str(word if refused.word is None else refused.word)[:_SHOWN]
            if refused.word is None and isinstance(word, str) and self.kind.annotation is not str:
                shown = f'"{shown}"'  # a text where another type is due
            raise InvalidInput(f"{place or self.flag} {shown}: {refused}") from None

    def to_word(self, value: ValueT | None) -> Word:
        """The word that gives a value; None where there is none."""
        return None if value is None else self.kind.word(value)

    def to_plain(self, settings: object) -> Plain:
        """The settings' value in JSON."""
        value = self.value_in(settings)
        return None if value is None else self.kind.plain(value)

    def is_usual(self, settings: object) -> bool:
        """Whether the settings have the value that nobody has to type."""
        usual = self.usual(settings) if self.usual else self.default
        return self.value_in(settings) == usual

    def refuse_misuse(self, settings: object) -> None:
        """Raises `InvalidInput` where the option does not apply, or does not go together with others."""
        if not self.is_usual(settings):
            written = " ".join(self.typed(settings, quoted=False)) or self.flag
            for need in self.needs:
                if not need.met(settings):
                    raise InvalidInput(need.otherwise.format(option=self.flag, written=written, chosen=settings))
        if self.check is not None:
            self.check(settings)

    def typed(self, settings: object, *, quoted: bool = True) -> list[str]:
        """The words of a command line that give the settings' value."""
        word = self.to_word(self.value_in(settings))
        if word is None or word is False:
            return []
        if word is True:
            return [self.flag]
        before = "" if self.argument else f"{self.flag} "
        words = map(str, word if isinstance(word, list) else [word])
        return [f"{before}{shlex.quote(each) if quoted else each}" for each in words]


def declared(option: Option[Any], default: DefaultT) -> DefaultT:
    """A field of a dataclass that is an option."""
    return field(default=default, metadata={_KEY: option})


def option(kind: Kind[ValueT], default: DefaultT, help: str, **more: Any) -> DefaultT:
    """A field that is an option. `more` are attributes of `Option`, which says what they mean."""
    return declared(Option(kind=kind, help=help, default=cast("ValueT | None", default), **more), default)


def options_of(settings: type) -> tuple[Option[Any], ...]:
    """The options of a class of settings, in the order of its fields."""
    named = ((each.name, each.metadata[_KEY]) for each in fields(settings) if _KEY in each.metadata)
    return tuple(replace(each, attribute=name, keyword=each.keyword or name) for name, each in named)


@dataclass(frozen=True)
class Options:
    """Settings whose fields are options; fields that are none need a default. Plain data, which JSON can keep."""

    VERB: ClassVar[str] = ""
    """The command line before the options, for the printed command."""

    def command(self) -> str:
        """The one command line, quoted for a shell, that gives these settings."""
        options = sorted(options_of(type(self)), key=lambda each: not each.names_subject)
        said = (each.typed(self) for each in options if each.always or not each.is_usual(self))
        return " ".join([self.VERB, *(word for words in said for word in words)])

    def to_json(self) -> dict[str, Plain]:
        """The settings as plain data."""
        return {each.json_name: each.to_plain(self) for each in options_of(type(self))}

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Self:
        """The settings that `to_json` gave; checked again. Raises `InvalidInput`, or `KeyError` for damaged ones."""
        words = {}
        for each in options_of(cls):
            if each.in_every_json or each.json_name in data:
                plain = data[each.json_name]
                words[each.keyword] = None if plain is None else each.kind.word_of(plain)
        return cls.plan(words)

    @classmethod
    def plan(cls, words: Mapping[str, object], **others: Any) -> Self:
        """Settings from what a person typed, by keyword; None, or nothing, means the default.

        `others` are the fields that are no options. Raises `InvalidInput` for a word or a combination that cannot be,
        `TypeError` for an option that is unknown.
        """
        options = options_of(cls)
        check_known(words, [each.keyword for each in options])
        values: dict[str, Any] = {each.attribute: each.read(words.get(each.keyword)) for each in options}
        chosen = cls(**values, **others)
        defaults: dict[str, Any] = {
            each.attribute: each.usual(chosen)
            for each in options
            if each.usual is not None and words.get(each.keyword) is None
        }
        settings = replace(chosen, **defaults)
        for each in options:
            each.refuse_misuse(settings)
        return settings


def check_known(words: Mapping[str, object], names: list[str]) -> None:
    """Refuses an option that is none, as Python refuses an argument. Raises `TypeError`."""
    for word in words:
        if word not in names:
            raise TypeError(f"there is no option {word!r}; {nearest(word, names)}")


def with_arguments(function: FunctionT, arguments: list[Parameter]) -> FunctionT:
    """Gives a function with `**words` a signature that names the words, before its other arguments by keyword."""
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
    first = [each for each in own if each.kind is not Parameter.KEYWORD_ONLY]
    named = signature.replace(parameters=[*first, *arguments, *own[len(first) :]])
    function.__signature__ = named  # type: ignore[attr-defined]  # any function may carry one
    return function
