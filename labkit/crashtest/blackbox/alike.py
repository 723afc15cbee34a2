"""Find the crash points that leave equal files, so that one run serves all of them.

A restart depends on nothing but the files and what was sent to servers. So if the files before two system calls of one
start are equal, and nothing was sent between the two, a crash before the one call is as good as a crash before the
other. In the test of a Spark sink, whose runs take seconds, logs of SQLite are equal if SQLite would restore the same
from them: a rollback journal grows by many writes before it restores anything.
"""

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise

from labkit.crashtest.blackbox.effects import Effect
from labkit.crashtest.blackbox.points import EXIT, Point
from labkit.crashtest.blackbox.states import State, is_compared
from labkit.host.syscalls.calls import CallKind

_UNSEEN = (CallKind.SEND, CallKind.ATTRIBUTES)
"""The kinds of calls of which the files may not show what they did: a message, or a time that the program sets."""


def alike(
    places: Iterable[Point], effects: Sequence[Effect], states: Mapping[str, State], immaterial: Container[str] = ()
) -> dict[str, Hashable]:
    """Return a value for each crash point whose files are known; points with equal values leave equal files.

    `states` maps the name of each call in `effects` to the state of the files before it. Files in `immaterial` (masked
    paths) are not compared. Some points get no value: the command's end; points within a write, unless the whole write
    changes no compared file; and points where the files may have been read too early, because another thread made the
    call before the point and this call seems to have changed no file.
    """
    values: dict[str, Hashable] = {}
    unseen = 0
    for before, each in zip([None, *effects], effects, strict=False):
        if before is not None and before.kind in _UNSEEN:
            unseen += 1
        if each.name in states and _is_settled(before, each, states):
            values[each.name] = unseen, _files(states[each.name], immaterial)
    following = {one.name: other.name for one, other in pairwise(effects)}
    known = [place for place in places if place.name != EXIT and place.effect in values]
    return {
        place.name: values[place.effect]
        for place in known
        if not place.cut or values[place.effect] == values.get(following.get(place.effect, ""))
    }


def _is_settled(before: Effect | None, effect: Effect, states: Mapping[str, State]) -> bool:
    """Return whether the files before `effect` are those that the call before it has left."""
    if before is None or before.kind is CallKind.SYNC or before.call.pid == effect.call.pid:
        return True
    return before.name in states and _changes(states[before.name]) != _changes(states[effect.name])


def _changes(state: State) -> Hashable:
    return frozenset((path, change._replace(written=0)) for path, change in state.items())


def _files(state: State, immaterial: Container[str]) -> Hashable:
    """Return the changes of all compared files, and the order in which the files were last written.

    Contents are compared exactly, including ids and times: within one start, nothing makes them differ by chance.
    """
    compared = {path: change for path, change in state.items() if is_compared(path, immaterial)}
    written = sorted((change.written, path) for path, change in compared.items() if change.written)
    return _changes(compared), tuple(path for _, path in written)
