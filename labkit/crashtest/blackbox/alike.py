"""Find the crash points that leave equal files, so that one run serves all of them.

A restart depends on nothing but the files and what was sent to servers. So if the files before two system calls of one
start are equal, and nothing was sent between the two, a crash before the one call is as good as a crash
before the other. A rollback journal of SQLite, for example, grows by many writes before it restores anything.
"""

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise

from labkit.crashtest.blackbox.effects import Effect
from labkit.crashtest.blackbox.points import EXIT, Point
from labkit.crashtest.blackbox.states import Comparison, State
from labkit.host.syscalls.calls import CallKind


def alike(
    places: Iterable[Point], effects: Sequence[Effect], states: Mapping[str, State], immaterial: Container[str] = ()
) -> dict[str, Hashable]:
    """Return a value for each crash point whose files are known; points with equal values leave equal files.

    `states` has the files before each of `effects`, by the effect's name. Files in `immaterial` (masked paths) are not
    compared. A crash within a write gets a value only if the whole write leaves the files equal, since then every part
    of the write does so, too. The point at the command's end has none.
    """
    comparison, sent = Comparison(), 0
    values: dict[str, Hashable] = {}
    for each in effects:
        if each.name in states:
            state = states[each.name]
            values[each.name] = sent, comparison.key(state, immaterial), comparison.order(state, immaterial)
        sent += each.kind is CallKind.SEND
    following = {one.name: other.name for one, other in pairwise(effects)}
    known = [place for place in places if place.name != EXIT and place.effect in values]
    return {
        place.name: values[place.effect]
        for place in known
        if not place.cut or values[place.effect] == values.get(following.get(place.effect, ""))
    }
