"""The external systems that a sink writes to: one module per store, registered by one line in `STORES`.

A store's module is imported only when somebody opens the store, so importing this module needs no client library.
"""

from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol

from labkit.core.errors import InvalidInput
from labkit.core.words import nearest
from labkit.stores.contract import Appendable, Atomic, Expiring, Fencing, Keyed, Store, Transactional

__all__ = ["CAPABILITIES", "STORES", "capabilities", "open_store"]


class StoreClass(Protocol):
    """The type of a store's class. A call of the class with the store's location (a path) opens the store."""

    def __call__(self, location: Path, /) -> Store: ...


STORES: dict[str, str] = {
    "files": "labkit.stores.files:FilesStore",
    "sqlite": "labkit.stores.sqlite:SQLiteStore",
    "postgres": "labkit.stores.postgres.store:PostgresStore",
    "kafka": "labkit.stores.kafka.store:KafkaStore",
}
"""The module and the class of each store, by the store's name."""

_LACKS: dict[Any, str] = {
    Appendable: "cannot append rows",
    Keyed: "cannot upsert by key",
    Atomic: "cannot write rows and a marker in one transaction",
    Transactional: "has no transactions that outlive their writer",
    Fencing: "cannot refuse a writer that was replaced",
    Expiring: "keeps a transaction for ever",
}
"""For the protocol of each capability, the words in which an error message says that a store lacks the capability."""

CAPABILITIES: dict[str, str] = {protocol.__name__: lack for protocol, lack in _LACKS.items()}
"""The words of `_LACKS` by the protocol's name, because a sink names the capability that it needs."""


def open_store(kind: str, location: Path) -> Store:
    """Open the store of the kind `files`, `sqlite`, `postgres` or `kafka` at this location.

    If there is no store yet, the first write creates it. Raises `InvalidInput` for any other kind.
    """
    return _class(kind)(location)


def capabilities(kind: str) -> frozenset[str]:
    """Return the capabilities of a kind of store: names of protocols in `labkit.stores.contract`, such as "Atomic".

    This opens no store. Raises `InvalidInput` for an unknown kind.
    """
    offered: Any = _class(kind)
    return frozenset(protocol.__name__ for protocol in _LACKS if issubclass(offered, protocol))


def _class(kind: str) -> StoreClass:
    if kind not in STORES:
        raise InvalidInput(f"--store {kind}: unknown; {nearest(kind, list(STORES))}")
    found: StoreClass = resolve_name(STORES[kind])
    return found
