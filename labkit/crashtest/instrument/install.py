"""Wraps everything that writes, so that the test records it: files, sqlite3, psycopg, kafka-python, Spark, sockets.

Each process calls `install` once, before it imports the user's file. A module that is imported later is wrapped right
after its import. Writes below Python by any other way (C extensions such as pyarrow or confluent_kafka) are not
recorded.
"""

import functools
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from types import ModuleType

from labkit.crashtest.instrument import files, jvm, kafka, network, psycopg, sql
from labkit.crashtest.project import Project
from labkit.crashtest.subject import SUBJECT, module_name, reach

INSTRUMENTS: dict[str, Callable[[ModuleType], None]] = {
    "sqlite3.dbapi2": sql.instrument_sqlite,
    "sqlite3": sql.instrument_sqlite,
    "psycopg": psycopg.instrument_psycopg,
    "kafka": kafka.instrument_kafka,
    "pyspark.sql.readwriter": jvm.instrument_writer,
    "pyspark.sql.session": jvm.instrument_session,
    "pyspark.sql.merge": jvm.instrument_merge,
    "socket": network.instrument_socket,
    "ssl": network.instrument_ssl,
}
"""For each module, the function that wraps it (its instrument), called with the module right after its import."""

_installed: list[bool] = []


def install() -> None:
    """Wrap every library whose effects the test records (`INSTRUMENTS`).

    A module that is already imported is wrapped now, any other when it is imported. A second call does nothing.
    """
    if _installed:
        return
    _installed.append(True)
    if SUBJECT in os.environ:
        project = Project.from_text(os.environ[SUBJECT])
        files.watched.add(project)
        reach(project.file)
    files.instrument_files()
    # First the finder, then what is there already, so that no module is imported
    # between the two without an instrument.
    sys.meta_path.insert(0, _InstrumentFinder())
    for name, instrument in INSTRUMENTS.items():
        if name in sys.modules:
            instrument(sys.modules[name])


class _InstrumentFinder(MetaPathFinder):
    """Finds the modules of `INSTRUMENTS` as Python would, and has them wrapped right after their import.

    It also finds the user's file for a worker that unpickles a function of that file by name.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == _subject_name(os.environ.get(SUBJECT, "")):
            file = Project.from_text(os.environ[SUBJECT]).file
            return importlib.util.spec_from_file_location(fullname, file)
        if fullname not in INSTRUMENTS:
            return None
        # Not by importlib.util.find_spec, which would ask this very finder again.
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _InstrumentedLoader(spec.loader, INSTRUMENTS[fullname])
        return spec


@functools.cache
def _subject_name(text: str) -> str:
    """Return the module name under which the user's file is imported; empty in a process without a user's file."""
    return module_name(Project.from_text(text).file) if text else ""


class _InstrumentedLoader(Loader):
    """Loads a module with its own loader, then wraps it."""

    def __init__(self, loader: Loader, instrument: Callable[[ModuleType], None]) -> None:
        self._loader, self._instrument = loader, instrument

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._instrument(module)

    # A traceback, for one, asks a loader for the source of its module; the module's own
    # loader can tell.
    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)
