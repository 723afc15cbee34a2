"""Which cases of a long list every run of the tests has."""

from collections.abc import Iterable
from typing import Any

import pytest


def slow_but(fast: Iterable[str], names: Iterable[str]) -> list[Any]:
    """The fast ones for every run of the tests; all others are slow."""
    fast = tuple(fast)
    others = (pytest.param(name, marks=pytest.mark.slow) for name in names if name not in fast)
    return [*fast, *others]
