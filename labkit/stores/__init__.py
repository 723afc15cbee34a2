"""External systems to write to: one file a store, one line in `STORES` to register it.

A store's module is imported when the store is asked for. Nothing here may import a client library.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from labkit.core.errors import InvalidInput
from labkit.core.words import nearest
from labkit.stores.contract import Appendable, Atomic, Expiring, Fencing, Keyed, Store, Transactional

__all__ = ["STORES", "capabilities", "open_store"]


class StoreClass(Protocol):
    """The class of a store: opened by its location, in every process anew."""

    def __call__(self, location: Path, /) -> Store: ...


def _files() -> StoreClass:
    from labkit.stores.files import FilesStore

    return FilesStore


def _sqlite() -> StoreClass:
    from labkit.stores.sqlite import SQLiteStore

    return SQLiteStore


def _postgres() -> StoreClass:
    from labkit.stores.postgres.store import PostgresStore

    return PostgresStore


def _kafka() -> StoreClass:
    from labkit.stores.kafka.store import KafkaStore

    return KafkaStore


STORES: dict[str, Callable[[], StoreClass]] = {
    "files": _files,
    "sqlite": _sqlite,
    "postgres": _postgres,
    "kafka": _kafka,
}
"""Every store by its name, with the function that imports its class."""

_CAPABILITIES = (Appendable, Keyed, Atomic, Transactional, Fencing, Expiring)


def open_store(kind: str, location: Path) -> Store:
    """The store of this kind at this place; nothing is created before it is written to.

    Raises `InvalidInput` for an unknown kind.
    """
    return _class(kind)(location)


def capabilities(kind: str) -> frozenset[str]:
    """The names of the protocols that a store of this kind offers; nothing is opened. Raises `InvalidInput`."""
    offered: Any = _class(kind)
    return frozenset(protocol.__name__ for protocol in _CAPABILITIES if issubclass(offered, protocol))


def _class(kind: str) -> StoreClass:
    if kind not in STORES:
        raise InvalidInput(f"--store {kind}: unknown; {nearest(kind, list(STORES))}")
    return STORES[kind]()
