"""What an option of a run is: one field of a dataclass, which carries all that other places have to say of it.

The command line, `lab.crash`, the crash panel, JSON, the printed command and every refusal are derived from these
fields. This module must not know any option by its name.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from labkit.core.errors import InvalidInput
from labkit.core.words import nearest
from labkit.runs.scenario.kinds import Kind, Plain, ValueT, Word

if TYPE_CHECKING:
    from labkit.runs.scenario.scenario import Scenario

DefaultT = TypeVar("DefaultT")
_KEY = "option"


@dataclass(frozen=True)
class Need:
    """A condition under which an option applies: a scenario that uses it without meeting the need is refused.

    `otherwise` is the sentence of the refusal. In it `{option}` stands for the option's name, `{written}` for the
    option as it was typed, and `{scenario}` for the scenario.
    """

    met: Callable[["Scenario"], bool]
    otherwise: str


@dataclass(frozen=True)
class Part:
    """The place of an option in the crash panel."""

    label: str
    offers: Callable[["Scenario"], Sequence[str]] | None = None
    """The words that fit to the parts before this one; None: free text."""
    name: str = ""
    """The part's name, where it is not the option's."""
    first: str = ""
    """What is chosen to begin with, where that is not the option's default."""


@dataclass(frozen=True)
class Option(Generic[ValueT]):
    """Everything that is said of one option. `keyword` is its name in Python and in the printed command."""

    attribute: str
    """The scenario's attribute."""
    keyword: str
    """The argument of `plan`, of `lab.crash`, and the name in JSON where `json` is empty."""
    kind: Kind[ValueT]
    help: str
    default: ValueT | None
    usual: Callable[["Scenario"], ValueT] | None
    """The default where that depends on other options."""
    needs: tuple[Need, ...]
    check: Callable[["Scenario"], None] | None
    """Refuses what does not go together with other options. Raises `InvalidInput`."""
    always: bool
    """Whether the printed command says it even where it has its default."""
    in_every_folder: bool
    """Whether the configuration of every run has it; of an option that came later, old ones say nothing."""
    flag_name: str
    json: str
    part: Part | None

    @property
    def parameter(self) -> str:
        """The name of the command line's parameter."""
        return self.flag_name or self.keyword

    @property
    def flag(self) -> str:
        """The option as it is typed, without its value."""
        return f"--{self.parameter.replace('_', '-')}"

    @property
    def json_name(self) -> str:
        """The name in JSON."""
        return self.json or self.keyword

    @property
    def default_word(self) -> Word:
        """What is typed for the default; None where nothing is, or where it depends on other options."""
        return None if self.usual else self.to_word(self.default)

    def value_in(self, scenario: "Scenario") -> ValueT | None:
        """The value that a scenario has."""
        return cast("ValueT | None", getattr(scenario, self.attribute))

    def read(self, word: object) -> ValueT | None:
        """The value of a word; the default for None. Raises `InvalidInput`."""
        return self.default if word is None else self.kind.read(self.flag, word)

    def to_word(self, value: ValueT | None) -> Word:
        """What has to be typed for a value; None where nothing has to be."""
        return None if value is None else self.kind.word(value)

    def to_plain(self, scenario: "Scenario") -> Plain:
        """The scenario's value in JSON."""
        value = self.value_in(scenario)
        return None if value is None else self.kind.plain(value)

    def is_usual(self, scenario: "Scenario") -> bool:
        """Whether the scenario has the value that nobody has to type."""
        usual = self.usual(scenario) if self.usual else self.default
        return self.value_in(scenario) == usual

    def refuse_misuse(self, scenario: "Scenario") -> None:
        """Raises `InvalidInput` where the option does not apply, or does not go together with others."""
        if not self.is_usual(scenario):
            written = " ".join(self.typed(scenario, quoted=False)) or self.flag
            for need in self.needs:
                if not need.met(scenario):
                    raise InvalidInput(need.otherwise.format(option=self.flag, written=written, scenario=scenario))
        if self.check is not None:
            self.check(scenario)

    def typed(self, scenario: "Scenario", *, quoted: bool = True) -> list[str]:
        """The words of a command line that give the scenario's value."""
        word = self.to_word(self.value_in(scenario))
        if word is None or word is False:
            return []
        if word is True:
            return [self.flag]
        words = word if isinstance(word, list) else [str(word)]
        return [f"{self.flag} {shlex.quote(each) if quoted else each}" for each in words]


def option(
    kind: Kind[ValueT],
    default: DefaultT,
    help: str,
    *,
    keyword: str = "",
    usual: Callable[["Scenario"], ValueT] | None = None,
    needs: Sequence[Need] = (),
    check: Callable[["Scenario"], None] | None = None,
    always: bool = False,
    in_every_folder: bool = False,
    flag_name: str = "",
    json: str = "",
    part: Part | None = None,
) -> DefaultT:
    """A field that is an option. See `Option` for what the arguments mean."""

    def named(attribute: str) -> Option[ValueT]:
        return Option(
            attribute, keyword or attribute, kind, help, cast("ValueT | None", default),
            usual, tuple(needs), check, always, in_every_folder, flag_name, json, part,
        )  # fmt: skip

    return field(default=default, metadata={_KEY: named})


def options_of(scenario: type["Scenario"]) -> tuple[Option[Any], ...]:
    """The options of a kind of scenario, in the order of its fields."""
    return tuple(each.metadata[_KEY](each.name) for each in fields(scenario))


def check_known(words: Mapping[str, object], names: list[str]) -> None:
    """Refuses an option that is none, as Python refuses an argument. Raises `TypeError`."""
    for word in words:
        if word not in names:
            raise TypeError(f"there is no option {word!r}; {nearest(word, names)}")
