"""Define the options of a run on top of `labkit.core.options`: a list of crashes, and a field in the crash panel."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from labkit.core import options
from labkit.core.failpoints import Crash, parse_crash
from labkit.core.kinds import Kind, Unfit, ValueT, Word

if TYPE_CHECKING:
    from labkit.runs.scenario.scenario import Scenario

DefaultT = TypeVar("DefaultT")


@dataclass(frozen=True)
class Part:
    """One field of the crash panel, a notebook's form for one crash: its label, and the values that it offers."""

    label: str
    offers: Callable[["Scenario"], Sequence[str]] | None = None
    """Returns the values to choose from, given a scenario with the options before this one; None for free text."""
    name: str = ""
    """The name of this field if it differs from the option's name."""
    first: str = ""
    """The initial choice in the panel if it differs from the option's default."""


@dataclass(frozen=True, kw_only=True)
class Option(options.Option[ValueT]):
    """One option of `labkit run` and `lab.crash`; `part` is its field in the notebook's crash panel, or None."""

    part: Part | None = None


def option(kind: Kind[ValueT], default: DefaultT, help: str, **more: Any) -> DefaultT:
    """Declare a field of the class `Scenario` as an option of a run; `more` are further attributes of the `Option`."""
    return options.declared(Option(kind=kind, help=help, default=cast("ValueT | None", default), **more), default)


def options_of(scenario: type["Scenario"]) -> tuple[Option[Any], ...]:
    """Return all options that a scenario class declares, in the order of its fields."""
    return cast("tuple[Option[Any], ...]", options.options_of(scenario))


class Crashes(Kind[tuple[Crash, ...]]):
    """The type of the option `crashes`: a list of failpoints; the nth driver is killed at the nth failpoint."""

    annotation = list[str]
    accepts = list[str] | str
    metavar = "POINT[@BATCH]"

    def read(self, word: object) -> tuple[Crash, ...]:
        """Return the crashes that `word` names: a text `POINT` or `POINT@BATCH`, or a list of such texts.

        Raises `Unfit` for another kind of value, and `InvalidInput` for an unknown failpoint or a wrong batch.
        """
        words = [word] if isinstance(word, str) else word
        if not isinstance(words, Iterable):
            raise Unfit("write POINT or POINT@BATCH.")
        return tuple(parse_crash(str(each)) for each in words)

    def word(self, value: tuple[Crash, ...]) -> Word:
        return [str(crash) for crash in value]
