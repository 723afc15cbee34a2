"""Puts a recorder around what writes: files, SQL (sqlite3, psycopg), Kafka (kafka-python), Spark's writers, sockets.

`install` is called once in a process, before the user's file is imported. Modules that are imported later are met
when they are. What writes below Python without one of these (C extensions such as pyarrow or confluent_kafka) is not
seen. This module must not decide what an effect means, and leaves alone whatever no line of the user's project does.
"""

import functools
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from types import ModuleType

from labkit.crashtest.harness.subject import SUBJECT, module_name, reach
from labkit.crashtest.instrument import files, jvm, kafka, network, psycopg, sql
from labkit.crashtest.instrument.project import Project

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
"""What is done to a module as soon as it has been imported."""

_installed: list[bool] = []


def install() -> None:
    """Puts every instrument in its place, now or when its module is imported; a second call does nothing."""
    if _installed:
        return
    _installed.append(True)
    if SUBJECT in os.environ:
        project = Project.from_text(os.environ[SUBJECT])
        files.watched.add(project)
        reach(project.file)
    files.instrument_files()
    sys.meta_path.insert(0, _Meeting())
    for name, instrument in INSTRUMENTS.items():
        if name in sys.modules:
            instrument(sys.modules[name])


class _Meeting(MetaPathFinder):
    """Finds the modules that get an instrument as anybody would, and gives it to them behind their import.

    Also finds the user's file, where a worker is to unpickle a function of it by its name.
    """

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == _subject_name(os.environ.get(SUBJECT, "")):
            file = Project.from_text(os.environ[SUBJECT]).file
            return importlib.util.spec_from_file_location(fullname, file)
        if fullname not in INSTRUMENTS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _InstrumentedLoader(spec.loader, INSTRUMENTS[fullname])
        return spec


@functools.cache
def _subject_name(text: str) -> str:
    """Under which name the user's file is imported; empty in a process that has none."""
    return module_name(Project.from_text(text).file) if text else ""


class _InstrumentedLoader(Loader):
    """Loads a module as its own loader does, then gives it its instrument."""

    def __init__(
        self, loader: Loader, instrument: Callable[[ModuleType], None]
    ) -> None:
        self._loader, self._instrument = loader, instrument

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._instrument(module)

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)
