"""A place that a store cannot use is refused by whatever the store is asked."""

from collections.abc import Callable
from typing import Any

import pytest
from store_rows import HANDLE, row

from labkit.core.errors import InvalidInput

WRITING: list[Callable[[Any], object]] = [
    lambda store: store.append(row(3)),
    lambda store: store.begin(HANDLE),
    lambda store: store.transaction(HANDLE).__enter__(),
]
READING: list[Callable[[Any], object]] = [
    lambda store: list(store.history()),
    lambda store: list(store.hidden()),
    lambda store: store.has_marker("q", 0),
    lambda store: store.prepared("q"),
]


def assert_refused(opened: Callable[[], Any], words: str, *uses: Callable[[Any], object]) -> None:
    """Each of these uses, of a store of its own, is refused by one sentence."""
    for use in uses:
        with pytest.raises(InvalidInput, match=words) as refused:
            use(opened())
        assert "\n" not in str(refused.value)
