"""What there is to choose for a crash: sinks, the stores that can carry each, its orders and its failpoints.

A choice always fits together: whoever changes one part of it gets the nearest whole that exists. The parts are the
options that have a place in the panel (`Part`).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.core.options import check_known
from labkit.core.words import nearest
from labkit.runs.scenario import Scenario, plan
from labkit.runs.scenario.options import Crashes, Option, Part, options_of


def parts(of: type[Scenario] = Scenario) -> dict[str, tuple[Part, Option[Any]]]:
    """Every part of a choice by its name: in the order in which a choice narrows the next, and free text last."""
    pairs = [(each.part, each) for each in options_of(of) if each.part is not None]
    pairs.sort(key=lambda pair: pair[0].offers is None)
    return {part.name or each.keyword: (part, each) for part, each in pairs}


PARTS = tuple(parts())
"""What can be chosen."""


@dataclass(frozen=True)
class Choice:
    """One crash that can be run. Made by `choose`, which checks it."""

    words: Mapping[str, str]
    """What is chosen, by part; empty: the default."""
    names: Mapping[str, list[str]] = field(compare=False)
    """What each part could be instead, as long as the parts before it stay; free text has none."""

    def __getitem__(self, part: str) -> str:
        return self.words[part]

    def change(self, part: str, word: str) -> "Choice":
        """The choice with one part changed, and what no longer fits replaced by what does.

        Raises `InvalidInput` for an unknown part or word.
        """
        _check("part", part, list(self.words))
        if part in self.names:
            _check(part, word, self.names[part])
        return _fitting({**self.words, part: word.strip()})

    def scenario(self) -> Scenario:
        """What is run: killed at the failpoint in the first batch. Raises `InvalidInput`."""
        return plan(**{option.keyword: word for option, word in self._typed()})

    def call(self) -> str:
        """The call of `lab.crash` that runs this choice."""
        crash, options = "", []
        for option, word in self._typed():
            text = json.dumps(word, ensure_ascii=False)
            if isinstance(option.kind, Crashes):
                crash = text
            else:
                options.append(f"{option.keyword}={text}")
        return f"lab.crash({', '.join([crash, *options])})"

    def _typed(self) -> Iterator[tuple[Option[Any], object]]:
        """Every option that has to be typed, with its word."""
        for name, (_, option) in parts().items():
            word = option.kind.word_of(self.words[name])
            if word:
                yield option, word


def choose(**words: object) -> Choice:
    """A choice from what a person wrote, by part; what is left out is the first that fits. Raises `InvalidInput`."""
    wanted = {name: str(word) for name, word in words.items() if word is not None}
    check_known(wanted, list(PARTS))
    chosen = _fitting(wanted)
    decisive, *_ = PARTS
    for name, word in wanted.items():
        if name == decisive:
            _check(name, word, chosen.names[name])
        elif word not in chosen.names.get(name, [word]):
            raise InvalidInput(
                f"{name} {word!r}: {chosen[decisive]} has none of that name; "
                f"choose one of {', '.join(chosen.names[name])}."
            )
    return chosen


def _fitting(wanted: Mapping[str, str]) -> Choice:
    """The words that are wanted where they fit to the parts before them, else the default, else the first that fits."""
    scenario = Scenario()
    words, names = {}, {}
    for name, (part, option) in parts().items():
        word = wanted.get(name, "")
        if part.offers is not None:
            names[name] = offered = [str(each) for each in part.offers(scenario)]
            default = part.first or str(option.to_plain(Scenario()))
            fitting = [each for each in (word, default) if each in offered]
            # What the person wanted, else the default, else whatever fits: there is
            # always something, since every sink has a store.
            word = [*fitting, *offered][0]
            chosen: dict[str, Any] = {option.attribute: option.read(option.kind.word_of(word))}
            scenario = replace(scenario, **chosen)
        words[name] = word
    return Choice(words, names)


def _check(name: str, word: str, names: list[str]) -> None:
    if word not in names:
        raise InvalidInput(f"{name} {word!r}: unknown; {nearest(word, names)}")
