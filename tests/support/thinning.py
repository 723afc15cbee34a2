"""What only a whole run has time for: `make test-all` and `LABKIT_EVERY=1` try every case of the long lists."""

import os
from collections.abc import Iterable
from typing import Any

import pytest

EVERY = bool(os.environ.get("LABKIT_EVERY"))
"""Whether nothing is left out."""


def one_in(number: int, cases: Iterable[Any], first: int = 0) -> list[Any]:
    """Every so manieth case of a list, from `first` on; all of them where nothing is left out."""
    return list(cases) if EVERY else list(cases)[first::number]


def slow_but(fast: Iterable[str], names: Iterable[str]) -> list[Any]:
    """The fast ones for every run of the tests; all others are slow."""
    fast = tuple(fast)
    others = (
        pytest.param(name, marks=pytest.mark.slow) for name in names if name not in fast
    )
    return [*fast, *others]
