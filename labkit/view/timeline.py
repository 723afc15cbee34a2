"""Write the values that an outside reader could have seen over time as text."""

import sys
from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from labkit.core.records import Observation, Reading

LONGEST = 60
"""The largest number of events on one line; of a longer run, the middle is left out."""


def timeline(events: Iterable[Observation | Reading]) -> str:
    """Return in one line of text the values that a reader could have seen, such as `a=1 a=2 | crash 1 | a=1`."""
    every = (f"| {event.moment} |" if isinstance(event, Reading) else f"{event.key}={event.value}" for event in events)
    words = list(islice(every, LONGEST))
    last, left = deque(words, maxlen=LONGEST // 2), 0
    for word in every:
        last.append(word)
        left += 1
    if left:
        words = [*words[: LONGEST // 2], f"... {left} more ...", *last]
    return " ".join(words).removesuffix(" | end |").removeprefix("| end |") or "nothing"


class Step(NamedTuple):
    """One step in the history of one key: a value became visible or, if `value` is None, a reader read all output."""

    label: str
    value: int | None = None
    offset: int | None = None
    incarnation: int | None = None


def by_key(
    events: Iterable[Observation | Reading], most_keys: int = sys.maxsize, most_steps: int = sys.maxsize
) -> dict[str, list[Step]]:
    """Return a dict from key to the history of this key, as a list of steps.

    Only the first `most_keys` keys in alphabetical order are included, each with its first `most_steps` steps.
    """
    tracks: dict[str, list[Step]] = {}
    moments: list[Step] = []
    last = ""
    for event in events:
        if isinstance(event, Reading):
            moments.append(Step(event.moment))
            for track in tracks.values():
                track.append(moments[-1])
            continue
        if event.key not in tracks:
            if len(tracks) == most_keys:
                if event.key > last:
                    continue
                del tracks[last]
            tracks[event.key] = list(moments)
            last = max(tracks) if len(tracks) == most_keys else ""
        track = tracks[event.key]
        if len(track) < most_steps:
            label = f"offset {event.offset}, driver {event.incarnation}"
            track.append(Step(label, event.value, event.offset, event.incarnation))
    return {key: track[:most_steps] for key, track in sorted(tracks.items())}
