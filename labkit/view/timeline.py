"""What an outside reader could have seen over time, as text. It must not judge: it shows the events as they are."""

from collections.abc import Iterable

from labkit.records import Observation, Reading

LONGEST = 60
"""Events that are shown on one line before the middle is left out."""


def timeline(events: Iterable[Observation | Reading]) -> str:
    """One line: `hello=1 hello=2 | crash 1 | hello=1 ...`, in the order of visibility."""
    words = [f"| {event.moment} |" if isinstance(event, Reading) else _seen(event) for event in events]
    if len(words) > LONGEST:
        left = len(words) - LONGEST
        words = [*words[: LONGEST // 2], f"... {left} more ...", *words[-LONGEST // 2 :]]
    return " ".join(words).removesuffix(" | end |").removeprefix("| end |") or "nothing"


def by_key(events: Iterable[Observation | Reading]) -> dict[str, list[tuple[str, int | None]]]:
    """For every key the values in the order in which they could be seen; a moment of reading has no value."""
    tracks: dict[str, list[tuple[str, int | None]]] = {}
    moments: list[tuple[str, int | None]] = []
    for event in events:
        if isinstance(event, Reading):
            moments.append((event.moment, None))
            for track in tracks.values():
                track.append((event.moment, None))
        else:
            tracks.setdefault(event.key, list(moments)).append((f"attempt {event.attempt}", event.value))
    return dict(sorted(tracks.items()))


def _seen(event: Observation) -> str:
    return f"{event.key}={event.value}"
