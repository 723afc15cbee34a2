"""What models that are told a second time share: states as dictionaries, copied and searched as plainly as possible.

It shares nothing with `labkit.sim` and is slow. What both reach must be the same.
"""

from collections import deque


def reach(initial: dict, successors) -> dict[tuple, dict]:
    """Every state that can be reached, by its hashable form."""
    seen = {freeze(initial): initial}
    waiting = deque([initial])
    while waiting:
        for state in successors(waiting.popleft()):
            if (name := freeze(state)) not in seen:
                seen[name] = state
                waiting.append(state)
    return seen


def freeze(value):
    """The same, but hashable."""
    if isinstance(value, dict):
        return tuple((name, freeze(value[name])) for name in sorted(value))
    if isinstance(value, (list, tuple)):
        return tuple(map(freeze, value))
    if isinstance(value, (set, frozenset)):
        return frozenset(map(freeze, value))
    return value


def clone(value):
    """A copy that shares nothing which can change."""
    if isinstance(value, dict):
        return {name: clone(part) for name, part in value.items()}
    if isinstance(value, list):
        return [clone(part) for part in value]
    return set(value) if isinstance(value, set) else value
