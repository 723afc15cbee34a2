"""Loads the user's file and finds out how Spark calls the sink in it.

The process of the command line never imports the user's file; only the reader's process, a driver or a Python worker
does.
"""

import importlib
import importlib.util
import inspect
import re
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.core.kinds import Unfit
from labkit.crashtest.project import package_root

_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")

RAISED = "the sink raised "
"""The beginning of the line in which the job of a sink prints an error of the user's code."""

LOAD_SECONDS = 60.0


class Adapter(StrEnum):
    """The interface through which Spark calls the user's sink, such as foreachBatch."""

    BATCH = "foreachBatch"
    WRITER = "foreach"
    SOURCE = "data source"
    STREAM = "writeStream"
    """A function that gets the stream; it starts a query on it, or returns a writer, which labkit then starts."""
    FORMAT = "format"
    TABLE = "table"
    """With `FORMAT` and `TABLE` the sink is one of Spark's own, which the user only names."""


BY_NAME = (Adapter.FORMAT, Adapter.TABLE)
"""The interfaces for which Spark uses no code of the user."""

IN_JVM = (Adapter.STREAM, *BY_NAME)
"""The interfaces whose sink may run in the JVM."""


@dataclass(frozen=True)
class Subject:
    """A sink or reader that the user named: a Python file, and a name defined in it."""

    file: str
    name: str
    said: str = ""
    """The text to display in messages; if empty, the file and the name are displayed."""

    @classmethod
    def parse(cls, text: str, option: str = "FILE:NAME") -> "Subject":
        """Parse `FILE:NAME` or `package.module:NAME`; the message of an `InvalidInput` begins with `option`."""
        try:
            return cls.read(text)
        except Unfit as refused:
            raise InvalidInput(f"{option} {text[:80]}: {refused}") from None

    @classmethod
    def read(cls, text: str) -> "Subject":
        """Parse `FILE:NAME` or `package.module:NAME`. Raises `Unfit` for another form or a missing file."""
        file, colon, name = text.rpartition(":")
        if not colon or not file or not name.isidentifier():
            raise Unfit("this names no function or class in a Python file; write FILE:NAME, as in sink.py:write_batch.")
        path = Path(file)
        if not path.is_file() and _MODULE.fullmatch(file) and path.suffix != ".py":
            path = file_of_module(file) or path
        if not path.is_file():
            raise Unfit(f"there is no file {file}; name a Python file.")
        return cls(str(path.resolve()), name)

    def __str__(self) -> str:
        return self.said or f"{Path(self.file).name}:{self.name}"


def file_of_module(module: str) -> Path | None:
    """Return the source file of a module on `sys.path` or in the working folder; None if there is none."""
    inner = Path(*module.split("."))
    for folder in (Path.cwd(), Path("src").resolve(), *map(Path, sys.path)):
        for path in (folder / inner.with_suffix(".py"), folder / inner / "__init__.py"):
            if path.is_file():
                return path
    return None


def module_name(file: str) -> str:
    """Return the name under which to import the user's file.

    A file in a package keeps its usual name, because its relative imports depend on that.
    """
    path, root = Path(file), package_root(file)
    if root != path.parent:
        inner = path.parent if path.stem == "__init__" else path.with_suffix("")
        return ".".join(inner.relative_to(root).parts)
    return "crashtest_subject_" + "".join(sign if sign.isalnum() else "_" for sign in Path(file).stem)


def load(file: str) -> ModuleType:
    """Import the user's file and return the module. Raises `InvalidInput` if the import fails."""
    name = module_name(file)
    if name in sys.modules:
        return sys.modules[name]
    for folder in (str(package_root(file)), str(Path(file).parent)):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"{file}: not a Python file; name a file that ends in .py.")
    module = importlib.util.module_from_spec(spec)
    try:
        if "." in name:
            importlib.import_module(name.rpartition(".")[0])
        sys.modules[name] = module
        spec.loader.exec_module(module)
    except BaseException as error:
        sys.modules.pop(name, None)
        raise InvalidInput(
            f"{file}: importing this file failed ({error_text(error)}); make it work with plain python first."
        ) from error
    return module


def error_text(error: BaseException) -> str:
    """Return an error's type and message on one line of at most 200 characters."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:200] if text else type(error).__name__


def adapter_of(candidate: Any, where: object) -> Adapter:
    """Return the Spark interface of the user's object. Raises `InvalidInput`, naming `where`, if it is no sink."""
    if inspect.isclass(candidate) and _is_data_source(candidate):
        if not callable(getattr(candidate, "streamWriter", None)) or "streamWriter" not in _own(candidate):
            raise InvalidInput(
                f"{where}: this data source has no method streamWriter, which Spark calls to write a stream; add it."
            )
        return Adapter.SOURCE
    if callable(getattr(candidate, "process", None)):
        return Adapter.WRITER
    if inspect.isclass(candidate) or not callable(candidate):
        raise InvalidInput(
            f"{where}: {_what(candidate)} is not a sink; name a function with two parameters (DataFrame, batch id) for "
            "foreachBatch, an object or class with process(row) for foreach, a Python DataSource class with "
            "streamWriter, or a function with one parameter, stream, that returns stream.writeStream.format(...)."
        )
    wanted = _parameters(candidate)
    if wanted not in (1, 2):
        raise InvalidInput(
            f"{where}: the function has {wanted} parameters; labkit can test a function for foreachBatch (DataFrame, "
            "batch id), a function for foreach (row), or a function that starts a query (stream)."
        )
    if wanted == 2:
        return Adapter.BATCH
    return Adapter.STREAM if _starts_query(candidate) else Adapter.WRITER


def _starts_query(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    if code is not None and {"writeStream", "toTable"} & set(code.co_names):
        return True
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    annotation = str(parameters[0].annotation) if parameters else ""
    return "DataFrame" in annotation or "DataStreamWriter" in annotation


def _is_data_source(sink: type) -> bool:
    # Compares names of classes, because to compare the classes this module would have to import pyspark.
    return any((base.__module__, base.__name__) == ("pyspark.sql.datasource", "DataSource") for base in sink.__mro__)


def _own(sink: type) -> set[str]:
    bases = (base for base in sink.__mro__ if base.__module__ not in ("pyspark.sql.datasource", "builtins", "abc"))
    return {name for base in bases for name in vars(base)}


def _what(sink: Any) -> str:
    return f"a class {sink.__name__}" if inspect.isclass(sink) else f"an object of type {type(sink).__name__}"


def _parameters(function: Any) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 2
    needed = [one for one in parameters if one.default is one.empty]
    return sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in needed)
