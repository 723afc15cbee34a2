"""The choices for one crash: a sink, a store that can carry it, an order of commits and a failpoint.

The parts of a choice always fit together: if one part changes, parts that no longer fit are replaced by parts
that do. The parts are the options that have a place in the crash panel (`Part`).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.core.options import check_option_names
from labkit.core.words import nearest
from labkit.runs.scenario import Scenario, plan
from labkit.runs.scenario.options import Crashes, Option, Part, options_of


def parts(of: type[Scenario] = Scenario) -> dict[str, tuple[Part, Option[Any]]]:
    """Return every part of a choice by its name, each before the parts that depend on it, and free text last."""
    pairs = [(each.part, each) for each in options_of(of) if each.part is not None]
    pairs.sort(key=lambda pair: pair[0].offers is None)
    return {part.name or each.keyword: (part, each) for part, each in pairs}


PARTS = tuple(parts())
"""The names of all parts of a choice, in order."""


@dataclass(frozen=True)
class Choice:
    """One crash that can be run. Use `choose` to make one, because it checks the parts."""

    words: Mapping[str, str]
    """The chosen word of each part; an empty word means the default."""
    names: Mapping[str, list[str]] = field(compare=False)
    """The words that each part could have if the parts before it stay; parts of free text are missing."""

    def __getitem__(self, part: str) -> str:
        return self.words[part]

    def change(self, part: str, word: str) -> "Choice":
        """Return the choice with one part changed, and replace parts that no longer fit by parts that do.

        Raises `InvalidInput` for an unknown part or word.
        """
        _check("part", part, list(self.words))
        if part in self.names:
            _check(part, word, self.names[part])
        return _fitting({**self.words, part: word.strip()})

    def scenario(self) -> Scenario:
        """Return the scenario of this choice, with a crash at the failpoint in the first batch. Raises
        `InvalidInput`.
        """
        return plan(**{option.keyword: word for option, word in self._typed()})

    def call(self) -> str:
        """Return the call of `lab.crash` that runs this choice, as Python code."""
        crash, options = "", []
        for option, word in self._typed():
            text = json.dumps(word, ensure_ascii=False)
            if isinstance(option.kind, Crashes):
                crash = text
            else:
                options.append(f"{option.keyword}={text}")
        return f"lab.crash({', '.join([crash, *options])})"

    def _typed(self) -> Iterator[tuple[Option[Any], object]]:
        """Yield every option that differs from its default, with its word."""
        for name, (_, option) in parts().items():
            word = option.kind.word_of(self.words[name])
            if word:
                yield option, word


def choose(**words: object) -> Choice:
    """Return a choice from words by part; each missing part gets its first word that fits. Raises `InvalidInput`."""
    wanted = {name: str(word) for name, word in words.items() if word is not None}
    check_option_names(wanted, list(PARTS))
    chosen = _fitting(wanted)
    decisive, *_ = PARTS
    for name, word in wanted.items():
        if name == decisive:
            _check(name, word, chosen.names[name])
        elif word not in chosen.names.get(name, [word]):
            raise InvalidInput(
                f"{name} {word!r}: not possible with {chosen[decisive]}; choose one of {', '.join(chosen.names[name])}."
            )
    return chosen


def _fitting(wanted: Mapping[str, str]) -> Choice:
    """Return a choice that takes each requested word if it fits the parts before it, else the default, else the
    first word that fits.
    """
    scenario = Scenario()
    words, names = {}, {}
    for name, (part, option) in parts().items():
        word = wanted.get(name, "")
        if part.offers is not None:
            names[name] = offered = [str(each) for each in part.offers(scenario)]
            default = part.first or str(option.to_plain(Scenario()))
            fitting = [each for each in (word, default) if each in offered]
            # The requested word, else the default, else any word that fits. There is always one, because every sink has
            # a store.
            word = [*fitting, *offered][0]
            chosen: dict[str, Any] = {option.attribute: option.read(option.kind.word_of(word))}
            scenario = replace(scenario, **chosen)
        words[name] = word
    return Choice(words, names)


def _check(name: str, word: str, names: list[str]) -> None:
    if word not in names:
        raise InvalidInput(f"{name} {word!r}: unknown; {nearest(word, names)}")
