"""The external systems that a sink writes to: one module per store, registered by one line in `STORES`.

A store's module is imported only when somebody opens the store, so importing this module needs no client library.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from labkit.core.errors import InvalidInput
from labkit.core.words import nearest
from labkit.stores.contract import Appendable, Atomic, Expiring, Fencing, Keyed, Store, Transactional

__all__ = ["CAPABILITIES", "STORES", "capabilities", "open_store"]


class StoreClass(Protocol):
    """The type of a store's class: calling it with the store's location (a path) opens the store."""

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
"""For each store's name, a function that imports its module and returns its class."""

_LACKS: dict[Any, str] = {
    Appendable: "cannot append rows",
    Keyed: "cannot upsert by key",
    Atomic: "cannot write rows and a marker in one transaction",
    Transactional: "has no transactions that outlive their writer",
    Fencing: "cannot refuse a writer that was replaced",
    Expiring: "keeps a transaction for ever",
}
"""For each protocol that a store may implement, the words in which an error message says that the store does not."""

CAPABILITIES: dict[str, str] = {protocol.__name__: lack for protocol, lack in _LACKS.items()}
"""`_LACKS` with each protocol's name as key, because sinks name the protocol that they need."""


def open_store(kind: str, location: Path) -> Store:
    """Open the store of the kind `files`, `sqlite`, `postgres` or `kafka` at this location; the first write creates
    it. Raises `InvalidInput` for any other kind.
    """
    return _class(kind)(location)


def capabilities(kind: str) -> frozenset[str]:
    """Return the names of the protocols in `labkit.stores.contract` that this kind of store implements, such as
    "Atomic". Opens no store. Raises `InvalidInput` for an unknown kind.
    """
    offered: Any = _class(kind)
    return frozenset(protocol.__name__ for protocol in _LACKS if issubclass(offered, protocol))


def _class(kind: str) -> StoreClass:
    if kind not in STORES:
        raise InvalidInput(f"--store {kind}: unknown; {nearest(kind, list(STORES))}")
    return STORES[kind]()
