"""Compare results in one table: runs and simulations by their verdicts, searches by the violated properties."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from labkit.core.errors import InvalidInput
from labkit.core.moments import spoken
from labkit.core.verdict import Guarantee
from labkit.core.words import nearest
from labkit.runs.outcome import Outcome
from labkit.sim.scenarios import Fact
from labkit.teach.results import Search, Walk
from labkit.teach.server_outcomes import CopyOutcome, RebalanceOutcome, ShopOutcome
from labkit.view import verdict_parts
from labkit.view.card import BAD, Cell, Tabled

Result: TypeAlias = Outcome | Walk | Search | CopyOutcome | ShopOutcome | RebalanceOutcome
"""The results that `lab.compare` accepts: runs, simulated runs, searches, and experiments on a real server."""

BY_NAME = "lab.compare() needs results by name, as in lab.compare(append=outcome, two_phase=second)."


class Comparison(Tabled):
    """A table with one row for each result: the verdict of a run, or the properties that some schedule violates."""

    title = "Side by side"

    def __init__(self, named: Mapping[str, Result], facts: Sequence[str] = ()) -> None:
        self.named = dict(named)
        self.rows: dict[str, Mapping[str, str]] = {
            name: {**_facts_of(each, facts), **_compared(each)} for name, each in named.items()
        }

    @property
    def columns(self) -> list[str]:
        """The names of all columns, without repetition, in the order in which the rows first use them."""
        return list(dict.fromkeys(name for row in self.rows.values() for name in row))

    def _head(self) -> Sequence[str]:
        return "", *self.columns

    def _rows(self) -> Iterable[Sequence[str | Cell]]:
        for name, row in self.rows.items():
            yield spoken(name), *(self._cell(name, column, row.get(column, "-")) for column in self.columns)

    def _cell(self, name: str, column: str, text: str) -> str | Cell:
        if column == "guarantee":
            guarantee = _guarantee(self.named[name])
            return Cell(text, verdict_parts.tone(guarantee)) if guarantee is not None else text
        is_bad = column in {"lost", "twice", "jumps back"} and text not in {"0", "-"}
        return Cell(text, BAD) if is_bad or (column == "broken" and text != "nothing") else text


def _guarantee(result: Result) -> Guarantee | None:
    try:
        return result.guarantee if isinstance(result, Search) else result.verdict.guarantee
    except InvalidInput:
        return None


def _facts_of(result: Result, facts: Sequence[str]) -> Mapping[str, str]:
    if not facts:
        return {}
    facts_by_name: Mapping[str, Fact] = getattr(result, "facts", {})
    if missing := [name for name in facts if name not in facts_by_name]:
        raise InvalidInput(
            f"lab.compare(): `facts` names {missing[0][:40]!r}, but not every run has a value of this name; "
            f"{nearest(missing[0][:40], list(facts_by_name))}"
            if facts_by_name
            else "lab.compare(): only simulated runs have values for `facts`; omit it, or compare only such runs."
        )
    return {name.replace("_", " "): _short(facts_by_name[name]) for name in facts}


def _short(fact: Fact) -> str:
    if isinstance(fact, list):
        return ", ".join(map(str, fact))
    return "-" if fact is None else str(fact)


def _compared(result: Result) -> Mapping[str, str]:
    guarantee = _guarantee(result)
    if isinstance(result, Search):
        states = f"{result.states:,}" if result.exhausted else f"{result.states:,}, not all"
        facts = {} if guarantee is None else {"guarantee": verdict_parts.word(guarantee)}
        return facts | {"states": states, "broken": result.broken}
    if guarantee is None and isinstance(result, Walk):
        return {"broken": ", ".join(result.violated) or "nothing"}
    return verdict_parts.in_columns(result.verdict)


def compare(*results: Mapping[str, Result], facts: Sequence[str] | str = (), **named: Result) -> Comparison:
    """Return a table that compares results side by side, as in `lab.compare(append=outcome, two_phase=second)`.

    Pass a dict if the names contain spaces. `facts` names measured values of simulated runs, each of which becomes a
    column (`facts=["counts"]`). Raises `InvalidInput` if there is no result, if a result has no name, if a value is
    not the result of a run or a search, or if a run lacks one of the facts.
    """
    chosen = {**_by_name(results), **named}
    if not chosen:
        raise InvalidInput(BY_NAME)
    for name, each in chosen.items():
        if not isinstance(each, Result):
            raise InvalidInput(
                f"lab.compare(): {name[:40]} is not a result of a run or a search; pass a result of "
                "lab.crash or lab.explore."
            )
    return Comparison(chosen, _facts(facts))


def _by_name(results: Sequence[object]) -> Mapping[str, Any]:
    rows = results[0] if results else {}
    if len(results) > 1 or not isinstance(rows, Mapping) or not all(isinstance(name, str) for name in rows):
        raise InvalidInput(BY_NAME)
    return rows


def _facts(value: object) -> Sequence[str]:
    facts = [value] if isinstance(value, str) else value
    if not isinstance(facts, list | tuple) or not all(isinstance(each, str) for each in facts):
        raise InvalidInput('lab.compare(): facts must be a list of names, as in facts=["counts"].')
    return facts
