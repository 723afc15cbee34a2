"""Marks further samples of what a slow test shows, which only `make test-all` and the nightly workflow run."""

from collections.abc import Collection, Iterable, Mapping

import pytest

VARIANT = pytest.mark.variant


def kept(names: Iterable[str], always: Collection[str]) -> list[object]:
    """The names as parameters of a test; those that are not in `always` are variants, left out by `make test-slow`.

    A name in `always` that is not among the names is an error, since nobody would miss its test.
    """
    found = list(names)
    assert set(always) <= set(found), set(always) - set(found)
    return [pytest.param(name, marks=() if name in always else VARIANT) for name in found]


def pairs(values: Mapping[tuple[str, ...], object], always: Collection[tuple[str, ...]]) -> list[object]:
    """The same for tests with several parameters."""
    assert set(always) <= set(values), set(always) - set(values)
    return [pytest.param(*value, marks=() if value in always else VARIANT) for value in values]
