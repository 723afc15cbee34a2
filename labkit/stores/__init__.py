"""The external systems that a sink writes to: one module per store, registered by one line in `STORES`.

A store's module is imported only when somebody opens the store, so importing this module needs no client library.
"""

from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.core.words import nearest
from labkit.stores.contract import Appendable, Atomic, Expiring, Fencing, Keyed, Store, Transactional

__all__ = ["CAPABILITIES", "STORES", "capabilities", "open_store"]


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
"""For each capability, the end of the error message for a store without it: "the store 'kafka', which cannot ..."."""

CAPABILITIES: dict[str, str] = {protocol.__name__: lack for protocol, lack in _LACKS.items()}
"""The words of `_LACKS` by the protocol's name, because a sink names the capability that it needs."""


def open_store(kind: str, location: Path) -> Store:
    """Open a store of this kind (a key of `STORES`); its first write creates it.

    Raises `InvalidInput` for an unknown kind.
    """
    return _class(kind)(location)


def capabilities(kind: str) -> frozenset[str]:
    """Return the capabilities of a kind of store, such as "Atomic". Raises `InvalidInput` for an unknown kind."""
    offered: Any = _class(kind)
    return frozenset(protocol.__name__ for protocol in _LACKS if issubclass(offered, protocol))


def _class(kind: str) -> Callable[[Path], Store]:
    if kind not in STORES:
        raise InvalidInput(f"--store {kind}: unknown; {nearest(kind, list(STORES))}")
    found: Callable[[Path], Store] = resolve_name(STORES[kind])
    return found
