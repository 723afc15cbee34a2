"""Which cases of a long list the tests try, where a command tries all of them (CONTRIBUTING, "Campaigns")."""

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(number: int, cases: Iterable[Any], first: int = 0) -> list[Any]:
    """Every so manieth case of a list, from `first` on."""
    return list(cases)[first::number]


def slow_but(fast: Iterable[str], names: Iterable[str]) -> list[Any]:
    """The fast ones for every run of the tests; all others are slow."""
    fast = tuple(fast)
    others = (
        pytest.param(name, marks=pytest.mark.slow) for name in names if name not in fast
    )
    return [*fast, *others]
