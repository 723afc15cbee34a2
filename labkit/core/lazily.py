"""A mapping that imports a module only when somebody looks up its entry."""

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Generic, TypeVar

T = TypeVar("T")


class Lazily(MutableMapping[str, T], Generic[T]):
    """A mapping from names to objects that imports an object's module only when somebody looks up the object's name.

    The object is the attribute `attribute` of the module. Listing the names imports nothing.
    """

    def __init__(self, attribute: str, modules: Mapping[str, str]) -> None:
        self._attribute = attribute
        self._modules: dict[str, str | T] = dict(modules)

    def __getitem__(self, name: str) -> T:
        entry = self._modules[name]
        if isinstance(entry, str):
            loaded: T = vars(import_module(entry))[self._attribute]
            self._modules[name] = entry = loaded
        return entry

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __setitem__(self, name: str, value: T) -> None:
        self._modules[name] = value

    def __delitem__(self, name: str) -> None:
        del self._modules[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)
