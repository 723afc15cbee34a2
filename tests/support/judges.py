"""One verdict from both judges, which must not differ in anything, and what tests of them need."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from labkit.core.errors import InvalidInput
from labkit.core.judge import Verdict, judge
from labkit.core.records import History, Record
from labkit.core.verdict import LISTS


def judge_by_both(expected: Iterable[Record], history: History) -> Verdict:
    """The verdict, or the `InvalidInput`, of the defining judge after the large one has given the same."""
    records, events, hidden = list(expected), list(history.events), list(history.hidden)
    said: list[Verdict | InvalidInput] = []
    for large in (0, len(records) + len(events) + 1):
        asked = replace(history, events=iter(events), hidden=iter(hidden))
        try:
            said.append(judge(iter(records), asked, large=large))
        except InvalidInput as error:
            said.append(error)
    if isinstance(said[1], InvalidInput):
        assert repr(said[0]) == repr(said[1])
        raise said[1]
    assert isinstance(said[0], Verdict)
    assert said[0] == said[1]
    assert json.dumps(said[0].to_json()) == json.dumps(said[1].to_json())
    return said[1]


def counted(words: Iterable[str]) -> list[Record]:
    """What the word count emits for some words."""
    counts: dict[str, int] = defaultdict(int)
    expected = []
    for offset, word in enumerate(words):
        counts[word] += 1
        expected.append(Record(offset, word, counts[word]))
    return expected


def anomalies(verdict: Verdict) -> dict[str, list[int]]:
    """The anomalies that are there, as lists of offsets."""
    return {name: list(getattr(verdict, name)) for name in LISTS if getattr(verdict, name)}
