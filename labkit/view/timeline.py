"""What an outside reader could have seen over time, as text."""

from collections.abc import Iterable
from typing import NamedTuple

from labkit.core.records import Observation, Reading

LONGEST = 60
"""Events that are shown on one line before the middle is left out."""


def timeline(events: Iterable[Observation | Reading]) -> str:
    """One line: `hello=1 hello=2 | crash 1 | hello=1 ...`, in the order of visibility."""
    words = [f"| {event.moment} |" if isinstance(event, Reading) else _row(event) for event in events]
    if len(words) > LONGEST:
        left = len(words) - LONGEST
        words = [*words[: LONGEST // 2], f"... {left} more ...", *words[-LONGEST // 2 :]]
    return " ".join(words).removesuffix(" | end |").removeprefix("| end |") or "nothing"


class Step(NamedTuple):
    """One value of a key that could be seen, or, without a value, a moment at which the outside reader looked."""

    label: str
    value: int | None = None
    offset: int | None = None
    incarnation: int | None = None


def by_key(events: Iterable[Observation | Reading]) -> dict[str, list[Step]]:
    """For every key its steps in the order in which they could be seen."""
    tracks: dict[str, list[Step]] = {}
    moments: list[Step] = []
    for event in events:
        if isinstance(event, Reading):
            moments.append(Step(event.moment))
            for track in tracks.values():
                track.append(moments[-1])
        else:
            step = Step(
                f"offset {event.offset}, driver {event.incarnation}", event.value, event.offset, event.incarnation
            )
            tracks.setdefault(event.key, list(moments)).append(step)
    return dict(sorted(tracks.items()))


def _row(event: Observation) -> str:
    return f"{event.key}={event.value}"
