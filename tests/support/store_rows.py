"""Rows, and transactions that hold them, as the tests of every store write them."""

from typing import Any

from labkit.core.records import Observation
from labkit.stores.contract import Handle

HANDLE = Handle("q", 0, 0, 1, 1)


def row(offset: int, key: str = "hello", batch: int = 0) -> Observation:
    return Observation(offset, key, offset * 10, batch, 1)


def written(store: Any, handle: Handle, *offsets: int) -> Any:
    """An open transaction with these rows."""
    transaction = store.begin(handle)
    for offset in offsets:
        transaction.write(row(offset))
    return transaction


def prepare(store: Any, handle: Handle, *offsets: int) -> None:
    written(store, handle, *offsets).prepare()
