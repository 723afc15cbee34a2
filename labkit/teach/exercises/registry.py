"""Every exercise by its name: one module a notebook, one line here to register it."""

from labkit.core.errors import InvalidInput
from labkit.core.words import name_in, nearest
from labkit.teach.exercises import (
    barriers,
    capstone,
    changes,
    commitment,
    crashes,
    delivery,
    demands,
    engines,
    guarantees,
    kafka,
    postgres,
    prices,
    side_effects,
    sinks,
    snapshots,
    timeouts,
)
from labkit.teach.exercises.contract import Exercise
from labkit.teach.exercises.moved import now

__all__ = ["EXERCISES", "find"]

EXERCISES: dict[str, Exercise] = {
    exercise.name: exercise
    for module in (
        guarantees,
        delivery,
        snapshots,
        barriers,
        commitment,
        sinks,
        crashes,
        postgres,
        kafka,
        timeouts,
        demands,
        changes,
        side_effects,
        engines,
        prices,
        capstone,
    )
    for exercise in module.EXERCISES
}


def find(name: str) -> Exercise:
    """The exercise of this name, or of the name that it had before. Raises `InvalidInput` with the nearest one."""
    name = now(name_in(name, 'lab.check("05-recovery")'), EXERCISES)
    if name not in EXERCISES:
        raise InvalidInput(f"there is no exercise {name[:40]!r}; {nearest(name[:40], list(EXERCISES))}")
    return EXERCISES[name]
