"""Stores are found by name, say what they can do without being opened, and are refused in one sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from labkit.core.errors import InvalidInput
from labkit.stores import STORES, capabilities, open_store
from labkit.stores.contract import Store


def test_what_each_store_can_do() -> None:
    assert {kind: capabilities(kind) for kind in STORES} == {
        "files": {"Appendable", "Atomic", "Transactional"},
        "sqlite": {"Appendable", "Keyed", "Atomic", "Transactional"},
        "postgres": {"Appendable", "Keyed", "Atomic", "Transactional", "Fencing"},
        "kafka": {"Appendable", "Atomic", "Transactional", "Fencing", "Expiring"},
    }


@pytest.mark.parametrize("kind", list(STORES))
def test_what_is_opened_is_a_store(kind: str, tmp_path: Path) -> None:
    store = open_store(kind, tmp_path / "store")
    assert isinstance(store, Store)
    store.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("kind", "remedy"), [("sqlit", "did you mean 'sqlite'"), ("zzz", "choose one of files")])
def test_an_unknown_kind_is_refused_with_the_nearest_name(kind: str, remedy: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=remedy):
        open_store(kind, tmp_path)
    with pytest.raises(InvalidInput, match=remedy):
        capabilities(kind)


def test_importing_the_registry_imports_no_store() -> None:
    code = "import sys, labkit.stores; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "labkit.stores.contract" in loaded
    heavy = {
        "labkit.stores.files",
        "labkit.stores.sqlite",
        "labkit.stores.postgres.store",
        "sqlite3",
        "msgspec",
        "psycopg",
        "kafka",
    }
    assert heavy.isdisjoint(loaded)
