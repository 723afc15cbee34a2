"""How nbval compares a checked notebook: what a cell says as text. A card's HTML, pictures and widgets are not
compared.

And how it starts a kernel. This lies at the top, since pytest reads it also where only `checked` is named. Nothing here
may make a cell pass that prints or gives something else than its notebook claims.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbval import kernel

from labkit.host.durable import own_folder

TRIES = 3

REMOVAL_SECONDS = 30.0
"""Seconds within which the processes of a killed kernel must have ended."""


def start_again(start: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """Starts a kernel; one that dies before its first answer is started again, on other ports, as JupyterLab does it.

    A kernel's manager looks for five free ports and gives them back until the kernel has started. Where eight start
    together, two managers find the same port in about one of twenty-two tries.
    """
    for _ in range(TRIES - 1):
        try:
            return start(*given, **named)
        except RuntimeError as error:
            if "died" not in str(error):
                raise
    return start(*given, **named)


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop() -> Iterator[None]:
    """Gives nbval that patience, and its kernels a folder for temporary files, which goes with the session."""
    with pytest.MonkeyPatch.context() as patch, temporary() as folder:
        start = partial(start_in, folder, kernel.start_new_kernel)
        patch.setattr(kernel, "start_new_kernel", partial(start_again, start))
        return (yield)


def start_in(folder: str, start: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """Starts a kernel whose temporary files lie in this folder.

    nbval ends a kernel by SIGKILL, so a `TemporaryDirectory` of a cell is never removed by the kernel itself.
    """
    return start(*given, env={**os.environ, "TMPDIR": folder}, **named)


@contextmanager
def temporary() -> Iterator[str]:
    """A folder for a block, which is removed even if a process that is about to end still writes into it.

    Those that killed sessions left are removed, too. The name is short, because sockets lie in the folder.
    """
    with own_folder(Path(tempfile.gettempdir()), "labkit-nb-") as folder:
        folder.chmod(0o711)  # as root, PostgreSQL runs under another account and has its own folder in it
        try:
            yield str(folder)
        finally:
            end = time.monotonic() + REMOVAL_SECONDS
            while True:
                shutil.rmtree(folder, ignore_errors=True)
                if not folder.exists() or time.monotonic() > end:
                    break
                time.sleep(0.1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Replaces the comparison of every cell that nbval has collected."""
    for item in items:
        if getattr(item.parent, "nb", None) is not None:
            item.compare_outputs = partial(same_text, item.compare_outputs)


def same_text(compare: Callable[..., bool], came: list[NotebookNode], claimed: list[NotebookNode]) -> bool:
    """nbval's comparison of what both say; what goes to standard error is compared as it is."""
    from outputs import said

    errors = [output for output in came if output.get("name") == "stderr"]
    text = said(came)
    told = [new_output("stream", name="stdout", text=text)] if text else []
    return compare([*told, *errors], claimed)
