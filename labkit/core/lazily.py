"""A mapping that imports a module only when somebody looks up its entry, so that a command loads only what it uses."""

from collections import UserDict
from collections.abc import Mapping
from importlib import import_module
from typing import TypeVar

T = TypeVar("T")


class Lazily(UserDict[str, T]):
    """A mapping from names to objects, which imports the module of an object when the object is first looked up.

    `modules` maps each name to the module of its object. In every module, the object's name is `attribute`. A list of
    the names needs no import.
    """

    def __init__(self, attribute: str, modules: Mapping[str, str]) -> None:
        super().__init__()
        self._attribute = attribute
        self.data |= modules  # type: ignore[arg-type]  # until it is needed, an object is the name of its module

    def __getitem__(self, name: str) -> T:
        entry = self.data[name]
        if isinstance(entry, str):
            entry = self.data[name] = vars(import_module(entry))[self._attribute]
        return entry
