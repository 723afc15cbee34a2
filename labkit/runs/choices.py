"""Keep the fields of the crash panel, a notebook's form for one crash, consistent: sink, store, failpoint and others.

The values always fit together: if the user changes one of them, the panel replaces those that no longer fit. The fields
are the options of a run that have a `Part`.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.core.options import Option, Part, check_option_names, options_of
from labkit.core.words import nearest
from labkit.runs.scenario import Scenario, plan
from labkit.runs.scenario.crashes import Crashes


def parts(of: type[Scenario] = Scenario) -> dict[str, tuple[Part, Option[Any]]]:
    """Return a dict from the name of each field of the crash panel (a form in a notebook) to the field and its option.

    `of` is the class that declares the options. In the dict, a field comes after all fields that restrict its values.
    """
    pairs = [(each.part, each) for each in options_of(of) if each.part is not None]
    pairs.sort(key=lambda pair: pair[0].offers is None)
    return {part.name or each.keyword: (part, each) for part, each in pairs}


PARTS = tuple(parts())
"""The names of the crash panel's fields (sink, store, order, failpoint and input), in the order of `parts`."""


@dataclass(frozen=True)
class Choice:
    """Values for all fields of the crash panel (a form in a notebook) that can be combined; `choose` creates it."""

    words: Mapping[str, str]
    """The value of each field as text; an empty text means the default."""
    names: Mapping[str, list[str]] = field(compare=False)
    """The values that each field may have, given those of the fields before it; fields for free text are missing."""

    def __getitem__(self, part: str) -> str:
        return self.words[part]

    def change(self, part: str, word: str) -> "Choice":
        """Return a copy with the value `word` in the field `part`. Raises `InvalidInput` if the field cannot have it.

        Other fields get new values if theirs do not fit any more.
        """
        _check("part", part, list(self.words))
        if part in self.names:
            _check(part, word, self.names[part])
        return _fitting({**self.words, part: word.strip()})

    def scenario(self) -> Scenario:
        """Return the scenario with a crash at the chosen failpoint.

        Raises `InvalidInput` if the chosen values do not fit each other.
        """
        return plan(**{option.keyword: word for option, word in self._typed()})

    def call(self) -> str:
        """Return the Python code, a call `lab.crash(...)`, that starts a run with the chosen values."""
        crash, options = "", []
        for option, word in self._typed():
            text = json.dumps(word, ensure_ascii=False)
            if isinstance(option.kind, Crashes):
                crash = text
            else:
                options.append(f"{option.keyword}={text}")
        return f"lab.crash({', '.join([crash, *options])})"

    def _typed(self) -> Iterator[tuple[Option[Any], object]]:
        for name, (_, option) in parts().items():
            word = option.kind.word_of(self.words[name])
            if word:
                yield option, word


def choose(**words: object) -> Choice:
    """Return a value for every field of the crash panel; `words` are wanted values, as in `sink="wal"`.

    Raises `InvalidInput` for an unknown field, or for a wanted value that does not fit the sink.
    """
    wanted = {name: str(word) for name, word in words.items() if word is not None}
    check_option_names(wanted, list(PARTS))
    chosen = _fitting(wanted)
    decisive, *_ = PARTS
    for name, word in wanted.items():
        if name == decisive:
            _check(name, word, chosen.names[name])
        elif word not in chosen.names.get(name, [word]):
            raise InvalidInput(
                f"{name} {word!r}: not possible with the {decisive} {chosen[decisive]}; choose one of "
                f"{', '.join(chosen.names[name])}."
            )
    return chosen


def _fitting(wanted: Mapping[str, str]) -> Choice:
    """Return a choice with a value for each field of the crash panel, in the order of the fields.

    A field gets the first of these values that fits the fields before it: the value in `wanted`, the field's default,
    and then all values that the field may have.
    """
    scenario = Scenario()
    words, names = {}, {}
    for name, (part, option) in parts().items():
        word = wanted.get(name, "")
        if part.offers is not None:
            names[name] = offered = [str(each) for each in part.offers(scenario)]
            default = part.first or str(option.to_plain(Scenario()))
            fitting = [each for each in (word, default) if each in offered]
            # There is always a word that fits, because every sink has a store.
            word = [*fitting, *offered][0]
            chosen: dict[str, Any] = {option.attribute: option.read(option.kind.word_of(word))}
            scenario = replace(scenario, **chosen)
        words[name] = word
    return Choice(words, names)


def _check(name: str, word: str, names: list[str]) -> None:
    if word not in names:
        raise InvalidInput(f"{name} {word!r}: unknown; {nearest(word, names)}")
