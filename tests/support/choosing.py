"""Which cases of a long list every run of the tests has."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pytest


def slow_but(fast: Iterable[str], names: Iterable[str], variants: Collection[str] = ()) -> list[Any]:
    """The fast ones for every run of the tests; all others are slow, and `make test-slow` leaves out `variants`."""
    fast, names = tuple(fast), tuple(names)
    assert {*variants} <= {*names}, {*variants} - {*names}
    marks = {name: [pytest.mark.slow, *([pytest.mark.variant] if name in variants else [])] for name in names}
    return [*fast, *(pytest.param(name, marks=marks[name]) for name in names if name not in fast)]


def spread(cases: Sequence[Any], step: int) -> list[Any]:
    """The cases, each a tuple of arguments; of every `step` only the first is no variant."""
    return [
        pytest.param(*each, marks=pytest.mark.variant if number % step else ()) for number, each in enumerate(cases)
    ]


def variant_but(always: Iterable[str], names: Iterable[str]) -> list[Any]:
    """The names; those that are not in `always` are variants, which `make test-slow` leaves out.

    A name in `always` that is not among the names is an error, because nobody would miss its test.
    """
    always, names = set(always), list(names)
    assert always <= set(names), always - set(names)
    return [pytest.param(name, marks=() if name in always else pytest.mark.variant) for name in names]
