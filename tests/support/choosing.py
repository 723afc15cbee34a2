"""Which cases of a long list every run of the tests has."""

from collections.abc import Iterable
from typing import Any

import pytest


def slow_but(fast: Iterable[str], names: Iterable[str]) -> list[Any]:
    """The fast ones for every run of the tests; all others are slow."""
    fast = tuple(fast)
    others = (pytest.param(name, marks=pytest.mark.slow) for name in names if name not in fast)
    return [*fast, *others]


def variant_but(always: Iterable[str], names: Iterable[str]) -> list[Any]:
    """The names; those that are not in `always` are variants, which `make test-slow` leaves out.

    A name in `always` that is not among the names is an error, because nobody would miss its test.
    """
    always, names = set(always), list(names)
    assert always <= set(names), always - set(names)
    return [pytest.param(name, marks=() if name in always else pytest.mark.variant) for name in names]
