"""Write a learner's sink into a file that Spark can call, with code that passes it batches and reads its store."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from labkit.core.errors import InvalidInput

WRITTEN = "Written by lab.save_sink."
"""A text in every file that `save_sink` wrote; it refuses to replace a file without this text."""
STORES: Mapping[str, tuple[str, str]] = {"table": ("Table", ".db"), "folder": ("Folder", ".files")}
"""For each kind of store, its class in `labkit.teach.own_store` and the suffix of the store's file or folder."""
SPARK = files("labkit.teach").joinpath("own_file.py.template").read_text(encoding="utf-8")
"""The code that `save_sink` adds to a file so that Spark and a reader can call the sink."""


def save_sink(sink: Callable[..., Any], file: str, kind: str, called: str = "lab.save_sink()") -> str:
    """Write a sink's source into a Python file, as `lab.save_sink` does, and return `FILE:foreach_batch`.

    Raises `InvalidInput` if the source, the file or the kind cannot be used; its message begins with `called`.
    """
    path = Path(file)
    try:
        source = textwrap.dedent(inspect.getsource(sink))
    except (OSError, TypeError):
        source = ""
    name = getattr(sink, "__name__", "")
    if not inspect.isfunction(sink) or name == "<lambda>":
        raise InvalidInput(f"{called}: the sink is {_what(sink)}; define it in a cell as a function, with def.")
    if not source.startswith(f"def {name}("):
        raise InvalidInput(
            f"{called}: labkit cannot copy this function, because it finds no source that begins with def; define the "
            "function in a cell, with def and without a decorator."
        )
    if kind not in STORES:
        raise InvalidInput(f'{called}: kind="{kind[:40]}" is not accepted; write "table" or "folder".')
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise InvalidInput(
            f'{called}: {file or "an empty name"} is not the name of a Python file; write it as in "my_sink.py".'
        )
    if not path.parent.is_dir():
        raise InvalidInput(
            f"{called}: the folder {path.parent} does not exist; create it first, or write only the file's name."
        )
    try:
        if path.exists() and WRITTEN not in path.read_text(encoding="utf-8", errors="replace"):
            raise InvalidInput(
                f"{called}: {file} already exists and lab.save_sink() did not write it; choose another name."
            )
        path.write_text(sink_file(source, name, path, kind), encoding="utf-8")
    except OSError as error:
        raise InvalidInput(
            f"{called}: {file} cannot be written ({error.strerror}); name a file in a folder where you may write."
        ) from None
    return f"{path}:foreach_batch"


def _what(sink: object) -> str:
    if inspect.isfunction(sink):
        return "a lambda, which has no name"
    if inspect.isclass(sink):
        return f"the class {sink.__name__[:40]}"
    if inspect.isbuiltin(sink):
        return f"Python's own function {sink.__name__[:40]}"
    return f"of the type {type(sink).__name__[:40]}"


def sink_file(source: str, name: str, path: Path, kind: str) -> str:
    """Return the text for the file `path`: a sink's `source`, and the code through which Spark calls `name`."""
    store, end = STORES[kind]
    return source + SPARK.format(name=name, store=store, place=f"{path.stem}{end}")


def first_function(file: Path) -> str:
    """Return the first function that a file defines, or "". Raises `InvalidInput` if it is not valid Python."""
    try:
        body = ast.parse(file.read_text(encoding="utf-8")).body
    except (OSError, ValueError, SyntaxError) as error:
        raise InvalidInput(f"{file} cannot be read as a Python file: {error}; correct the file.") from None
    return next((each.name for each in body if isinstance(each, ast.FunctionDef)), "")


def unwritten(file: Path) -> str:
    """Return the name of the sink in a file that `save_sink` wrote if the sink is still a stub, and "" otherwise."""
    try:
        text = file.read_text(encoding="utf-8")
        first = ast.parse(text).body[0] if WRITTEN in text else None
    except (OSError, ValueError, SyntaxError, IndexError):
        return ""
    if not isinstance(first, ast.FunctionDef):
        return ""
    last = first.body[-1]
    is_stub = isinstance(last, ast.Raise) and "NotImplementedError" in ast.unparse(last)
    return first.name if is_stub and len(first.body) < 3 else ""  # it may have a docstring
