"""Declare an option of a command once, as a dataclass field that carries all facts about the option.

labkit derives the command line, the arguments in Python, the keys of a project's file and of JSON, the printed command
and the error messages from the fields of a subclass of `Options`. Runs, crash tests and gradings declare their options
this way; parameters of simulators use the same kinds of values.
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
"""The largest number of characters of a wrong value that an error message repeats."""


@dataclass(frozen=True)
class Need:
    """A condition under which an option may be used, and the error message (`otherwise`) for a violation.

    In the message, `{option}` is the option's name, `{written}` the option as typed, and `{chosen}` the settings.
    """

    met: Callable[[Any], bool]
    otherwise: str


@dataclass(frozen=True)
class Part:
    """One field of a form in which a person chooses settings, such as a notebook's crash panel."""

    label: str
    offers: Callable[[Any], Sequence[str]] | None = None
    """Returns the values to choose from, given settings with the options before this one; None for free text."""
    name: str = ""
    """The name of this field if it differs from the option's name."""
    first: str = ""
    """The initial choice in the form if it differs from the option's default."""


@dataclass(frozen=True, kw_only=True)
class Option(Generic[ValueT]):
    """The declaration of one option: type, default, help, and names in Python, on the command line and in JSON."""

    attribute: str = ""
    """The name of the settings object's attribute that stores the value."""
    kind: Kind[ValueT]
    help: str
    default: ValueT | None
    keyword: str = ""
    """The option's name as a Python argument, and elsewhere by default; if empty, the attribute's name."""
    usual: Callable[[Any], ValueT] | None = None
    """A function that computes the default from the other settings; None if the default is fixed."""
    needs: Sequence[Need] = ()
    check: Callable[[Any], object] | None = None
    """A function that raises `InvalidInput` if the value contradicts other options; None if there is no such check."""
    always: bool = False
    """Whether the printed command contains the option even at its default."""
    flag_name: str = ""
    """The option's name on the command line, if it is not `keyword`."""
    json: str = ""
    """The option's name in JSON and in a project's file, if it is not `keyword`."""
    in_every_json: bool = False
    """Whether a JSON file without the option is refused; if not, files that are older than the option can be read."""
    in_project: bool = True
    """Whether a project's file may set the option."""
    argument: str = ""
    """The name in the help if the option is a positional argument; empty for an option with a flag."""
    required: bool = False
    """Whether a command line must contain the option."""
    names_subject: bool = False
    """Whether the option names the subject under test, on the command line or in the project's file."""
    instead_of: Collection[str] = ()
    """Keywords of the options that this one replaces: if a user types it, labkit ignores those in a project's file."""
    part: Part | None = None
    """The option's field in a form; None if the form does not offer the option."""

    @property
    def parameter(self) -> str:
        """Return the option's name as the command-line parser stores it, with underscores."""
        return self.flag_name or self.keyword

    @property
    def flag(self) -> str:
        """Return the option as users type it on the command line, such as `--keep-store`, without a value."""
        return self.argument or f"--{self.parameter.replace('_', '-')}"

    @property
    def json_name(self) -> str:
        """Return the option's name in JSON and in a project's configuration file."""
        return self.json or self.keyword

    @property
    def default_word(self) -> Word:
        """Return the default as users type it; None if there is no such text, or if other options decide it."""
        return None if self.usual else self.to_word(self.default)

    def value_in(self, settings: object) -> ValueT | None:
        return cast("ValueT | None", getattr(settings, self.attribute))

    def read(self, word: object, place: str = "") -> ValueT | None:
        """Return the option's checked value for `word`, which a user typed, or the default if `word` is None.

        Raises `InvalidInput` for a wrong value. The message begins with `place`, which says where the value was found.
        If `place` is empty, the message begins with the option's flag.
        """
        if word is None:
            return self.default
        try:
            return self.kind.read(word)
        except Unfit as remedy:
            value = str(word if remedy.word is None else remedy.word)[:_SHOWN]
            if remedy.word is None and isinstance(word, str) and self.kind.annotation is not str:
                value = f'"{value}"'  # a text instead of another type
            raise InvalidInput(f"{place or self.flag} {value}: {remedy}") from None

    def to_word(self, value: ValueT | None) -> Word:
        """Return a value of this option in the form in which users type it, or None if users cannot type the value."""
        return None if value is None else self.kind.word(value)

    def to_plain(self, settings: object) -> Plain:
        """Return the JSON form of the value that this option has in `settings`."""
        value = self.value_in(settings)
        return None if value is None else self.kind.plain(value)

    def is_usual(self, settings: object) -> bool:
        """Return whether this option has its default value in `settings`."""
        usual = self.usual(settings) if self.usual else self.default
        return self.value_in(settings) == usual

    def refuse_misuse(self, settings: object) -> None:
        """Raise `InvalidInput` if the option may not be used in these settings, or contradicts another option."""
        if not self.is_usual(settings):
            written = " ".join(self.typed(settings, quoted=False)) or self.flag
            for need in self.needs:
                if not need.met(settings):
                    message = need.otherwise.format(option=self.flag, written=written, chosen=settings)
                    raise InvalidInput(message)
        if self.check is not None:
            self.check(settings)

    def typed(self, settings: object, *, quoted: bool = True) -> list[str]:
        """Return the command-line words that set the option to its value; if `quoted`, they are quoted for a shell."""
        word = self.to_word(self.value_in(settings))
        if word is None or word is False:
            return []
        if word is True:
            return [self.flag]
        before = "" if self.argument else f"{self.flag} "
        words = map(str, word if isinstance(word, list) else [word])
        return [f"{before}{shlex.quote(each) if quoted else each}" for each in words]


def option(kind: Kind[ValueT], default: DefaultT, help: str, **more: Any) -> DefaultT:
    """Return a dataclass field that declares an option; `more` sets further attributes of `Option`."""
    declared = Option(kind=kind, help=help, default=cast("ValueT | None", default), **more)
    return field(default=default, metadata={_KEY: declared})


def options_of(settings: type) -> tuple[Option[Any], ...]:
    """Return the options that the class `settings` declares, in the order of its fields."""
    named = ((each.name, each.metadata[_KEY]) for each in fields(settings) if _KEY in each.metadata)
    return tuple(replace(each, attribute=name, keyword=each.keyword or name) for name, each in named)


@dataclass(frozen=True)
class Options:
    """Base class of a command's settings: a dataclass of options. A field that is no option must have a default."""

    VERB: ClassVar[str] = ""
    """The beginning of the printed command, before its options."""

    def command(self) -> str:
        """Return the command line, quoted for a shell, that leads to these settings."""
        options = sorted(options_of(type(self)), key=lambda each: not each.names_subject)
        parts = (each.typed(self) for each in options if each.always or not each.is_usual(self))
        return " ".join([self.VERB, *(word for words in parts for word in words)])

    def to_json(self) -> dict[str, Plain]:
        """Return the settings as plain data for JSON."""
        return {each.json_name: each.to_plain(self) for each in options_of(type(self))}

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Self:
        """Return the settings that `to_json` encoded. Raises `InvalidInput` or, if a value is missing, `KeyError`."""
        words = {}
        for each in options_of(cls):
            if each.in_every_json or each.json_name in data:
                plain = data[each.json_name]
                words[each.keyword] = None if plain is None else each.kind.word_of(plain)
        return cls.plan(words)

    @classmethod
    def plan(cls, words: Mapping[str, object], **others: Any) -> Self:
        """Return settings from the values that a user typed: `words` is a dict from option name to value.

        An option that is missing or None gets its default. `others` sets the fields that are not options. Raises
        `InvalidInput` for an invalid value or combination, and `TypeError` for an unknown option.
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
    """Raise `TypeError`, with a suggestion, if a key of `words` is not one of `names`, the names of the options."""
    for word in words:
        if word not in names:
            raise TypeError(f"there is no option {word!r}; {nearest(word, names)}")


def with_arguments(function: FunctionT, arguments: list[Parameter]) -> FunctionT:
    """Return `function`, but with `arguments` in place of `**words` in the signature that documentation shows."""
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
    first = [each for each in own if each.kind is not Parameter.KEYWORD_ONLY]
    named = signature.replace(parameters=[*first, *arguments, *own[len(first) :]])
    function.__signature__ = named  # type: ignore[attr-defined]  # any function may carry one
    return function
