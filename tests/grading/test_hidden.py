"""A seed gives the same hidden variants for good: a grade can be repeated after any change of this code."""

import hashlib
import json
from pathlib import Path

from labkit.grading.hidden import variants
from labkit.teach.exercises.registry import EXERCISES

KNOWN = Path(__file__).with_name("hidden.json")
"""A digest of each exercise's variants for `SEEDS`. A change here changes grades: say so in the commit."""
SEEDS = range(25)


def digest(name: str) -> str:
    drawn = [[(each.name, each.parameters) for each in variants(name, seed)] for seed in SEEDS]
    return hashlib.sha256(repr(drawn).encode()).hexdigest()[:16]


def test_the_variants_of_a_seed_never_change() -> None:
    known, drawn = json.loads(KNOWN.read_text()), {name: digest(name) for name in EXERCISES}
    changed = {name: drawn.get(name) for name in {*known, *drawn} if known.get(name) != drawn.get(name)}
    assert not changed, f"for {KNOWN.name}, where a change of an old digest changes grades: {json.dumps(changed)}"
