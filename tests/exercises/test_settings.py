"""Settings are few enough to try them all: which ones pass is known, publicly and by hidden variants alike."""

from collections.abc import Iterator
from itertools import product

import pytest

from labkit.grading.hidden import variants
from labkit.teach.exercises import barriers, delivery, guarantees
from labkit.teach.exercises.constants import Settings
from labkit.teach.exercises.contract import Variant
from labkit.teach.exercises.namespace import InNotebook
from labkit.teach.exercises.registry import EXERCISES

ALL = {"01-links": guarantees.LINKS, "02-chain": delivery.CHAIN, "04b-settings": barriers.SETTINGS}
RIGHT = {
    "01-links": {
        ("log", "commit-then-log", "batch_marker"),
        ("log", "log-then-commit", "batch_marker"),
        ("log", "log-then-commit", "two_phase"),
    },
    "02-chain": {(True, "durable", "derived")},
    "04b-settings": {("aligned", "two_phase", "keep"), ("unaligned", "two_phase", "keep")},
}


def passing(settings: Settings, tried: list[Variant]) -> Iterator[tuple[object, ...]]:
    """Every choice that passes all variants."""
    for chosen in product(*settings.chosen.values()):
        answer = InNotebook("it", {"it": dict(zip(settings.chosen, chosen, strict=True))})
        if all(settings.judge(answer, variant).passed for variant in tried):
            yield chosen


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.slow) if one == "04b-settings" else one for one in ALL]
)
def test_exactly_the_right_settings_pass(name: str):
    assert set(passing(ALL[name], list(EXERCISES[name].public))) == RIGHT[name]
    assert set(passing(ALL[name], variants(name, 1))) == RIGHT[name]
