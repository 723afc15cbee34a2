"""One way to declare an option: a dataclass field that carries everything other places need to know about it.

The command line, Python's arguments, a project's file, JSON, the printed command and every refusal follow from
the fields of a class of `Options`. Runs, crash tests and gradings declare their options this way; parameters of
simulators use the same kinds of values.
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
"""The number of characters of a wrong value that its refusal repeats."""


@dataclass(frozen=True)
class Need:
    """A condition for an option: settings that use the option without meeting the condition are refused.

    `otherwise` is the refusal's sentence, in which `{option}` is the option's name, `{written}` the option as
    typed, and `{chosen}` all settings.
    """

    met: Callable[[Any], bool]
    otherwise: str


@dataclass(frozen=True, kw_only=True)
class Option(Generic[ValueT]):
    """The declaration of one option. `keyword` is its name in Python."""

    attribute: str = ""
    """The attribute of the settings object."""
    kind: Kind[ValueT]
    help: str
    default: ValueT | None
    keyword: str = ""
    """The name in Python, which other forms use by default; if empty, the attribute's name."""
    usual: Callable[[Any], ValueT] | None = None
    """Computes the default if it depends on other options."""
    needs: Sequence[Need] = ()
    check: Callable[[Any], object] | None = None
    """Checks the value against other options. Raises `InvalidInput`."""
    always: bool = False
    """Whether the printed command contains the option even at its default."""
    flag_name: str = ""
    """The name on the command line, if it differs."""
    json: str = ""
    """The name in JSON and in a project's file, if it differs."""
    in_every_json: bool = False
    """Whether every JSON file contains the option; files written before the option existed lack it."""
    in_project: bool = True
    """Whether a project's file may set the option."""
    argument: str = ""
    """The name in the help if the option is a positional argument; empty for an option with a flag."""
    required: bool = False
    """Whether a command line must contain the option."""
    names_subject: bool = False
    """Whether the option names the subject under test, on the command line or in the project's file."""
    instead_of: Collection[str] = ()
    """Keywords of options that this one replaces: if it is typed, theirs in a project's file do not apply."""

    @property
    def parameter(self) -> str:
        """Return the name of the command line's parameter."""
        return self.flag_name or self.keyword

    @property
    def flag(self) -> str:
        """Return the flag as a user types it, without a value."""
        return self.argument or f"--{self.parameter.replace('_', '-')}"

    @property
    def json_name(self) -> str:
        """Return the name in JSON."""
        return self.json or self.keyword

    @property
    def default_word(self) -> Word:
        """Return the default in its typed form; None if there is none or it depends on other options."""
        return None if self.usual else self.to_word(self.default)

    def value_in(self, settings: object) -> ValueT | None:
        """Return the value of this option in the settings."""
        return cast("ValueT | None", getattr(settings, self.attribute))

    def read(self, word: object, place: str = "") -> ValueT | None:
        """Parse a typed value, or return the default for None. Raises `InvalidInput`, which begins with `place`."""
        if word is None:
            return self.default
        try:
            return self.kind.read(word)
        except Unfit as refused:
            shown = str(word if refused.word is None else refused.word)[:_SHOWN]
            if refused.word is None and isinstance(word, str) and self.kind.annotation is not str:
                shown = f'"{shown}"'  # a text instead of another type
            raise InvalidInput(f"{place or self.flag} {shown}: {refused}") from None

    def to_word(self, value: ValueT | None) -> Word:
        """Return the typed form of a value; None if it has none."""
        return None if value is None else self.kind.word(value)

    def to_plain(self, settings: object) -> Plain:
        """Return the settings' value for JSON."""
        value = self.value_in(settings)
        return None if value is None else self.kind.plain(value)

    def is_usual(self, settings: object) -> bool:
        """Return whether the settings have the value that applies if nobody types the option."""
        usual = self.usual(settings) if self.usual else self.default
        return self.value_in(settings) == usual

    def refuse_misuse(self, settings: object) -> None:
        """Raise `InvalidInput` if the option does not apply to these settings, or contradicts other options."""
        if not self.is_usual(settings):
            written = " ".join(self.typed(settings, quoted=False)) or self.flag
            for need in self.needs:
                if not need.met(settings):
                    raise InvalidInput(need.otherwise.format(option=self.flag, written=written, chosen=settings))
        if self.check is not None:
            self.check(settings)

    def typed(self, settings: object, *, quoted: bool = True) -> list[str]:
        """Return the words of a command line that give the settings' value."""
        word = self.to_word(self.value_in(settings))
        if word is None or word is False:
            return []
        if word is True:
            return [self.flag]
        before = "" if self.argument else f"{self.flag} "
        words = map(str, word if isinstance(word, list) else [word])
        return [f"{before}{shlex.quote(each) if quoted else each}" for each in words]


def declared(option: Option[Any], default: DefaultT) -> DefaultT:
    """Return a dataclass field that carries an option."""
    return field(default=default, metadata={_KEY: option})


def option(kind: Kind[ValueT], default: DefaultT, help: str, **more: Any) -> DefaultT:
    """Return a dataclass field for an option; `more` sets further attributes of `Option`."""
    return declared(Option(kind=kind, help=help, default=cast("ValueT | None", default), **more), default)


def options_of(settings: type) -> tuple[Option[Any], ...]:
    """Return the options of a settings class in the order of its fields."""
    named = ((each.name, each.metadata[_KEY]) for each in fields(settings) if _KEY in each.metadata)
    return tuple(replace(each, attribute=name, keyword=each.keyword or name) for name, each in named)


@dataclass(frozen=True)
class Options:
    """Settings whose fields are options, as plain data that JSON can hold; all other fields need a default."""

    VERB: ClassVar[str] = ""
    """The beginning of the printed command, before its options."""

    def command(self) -> str:
        """Return the command line, quoted for a shell, that produces these settings."""
        options = sorted(options_of(type(self)), key=lambda each: not each.names_subject)
        parts = (each.typed(self) for each in options if each.always or not each.is_usual(self))
        return " ".join([self.VERB, *(word for words in parts for word in words)])

    def to_json(self) -> dict[str, Plain]:
        """Return the settings as plain data."""
        return {each.json_name: each.to_plain(self) for each in options_of(type(self))}

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Self:
        """Return the settings that `to_json` encoded, after checking them. Raises `InvalidInput`, or `KeyError`
        for damaged data.
        """
        words = {}
        for each in options_of(cls):
            if each.in_every_json or each.json_name in data:
                plain = data[each.json_name]
                words[each.keyword] = None if plain is None else each.kind.word_of(plain)
        return cls.plan(words)

    @classmethod
    def plan(cls, words: Mapping[str, object], **others: Any) -> Self:
        """Return settings from typed values by keyword; None, or a missing keyword, means the default.

        `others` sets the fields that are no options. Raises `InvalidInput` for an invalid value or combination,
        and `TypeError` for an unknown option.
        """
        options = options_of(cls)
        check_option_names(words, [each.keyword for each in options])
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


def check_option_names(words: Mapping[str, object], names: list[str]) -> None:
    """Raise `TypeError` for an unknown option, as Python does for an unknown argument."""
    for word in words:
        if word not in names:
            raise TypeError(f"there is no option {word!r}; {nearest(word, names)}")


def with_arguments(function: FunctionT, arguments: list[Parameter]) -> FunctionT:
    """Give a function with `**words` a signature that lists these parameters before its other keyword arguments."""
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
    first = [each for each in own if each.kind is not Parameter.KEYWORD_ONLY]
    named = signature.replace(parameters=[*first, *arguments, *own[len(first) :]])
    function.__signature__ = named  # type: ignore[attr-defined]  # any function may carry one
    return function
