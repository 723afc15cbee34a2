"""How nbval compares a checked notebook: what a cell says as text. A card's HTML, pictures and widgets are not compared.

It lies at the top, since pytest reads it also where only `checked` is named. Nothing here may make a cell pass that prints
or gives something else than its notebook claims.
"""

from collections.abc import Callable
from functools import partial

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_output


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Replaces the comparison of every cell that nbval has collected."""
    for item in items:
        if getattr(item.parent, "nb", None) is not None:
            item.compare_outputs = partial(same_text, item.compare_outputs)


def same_text(
    compare: Callable[..., bool], came: list[NotebookNode], claimed: list[NotebookNode]
) -> bool:
    """nbval's comparison of what both say; what goes to standard error is compared as it is."""
    from outputs import said

    errors = [output for output in came if output.get("name") == "stderr"]
    text = said(came)
    told = [new_output("stream", name="stdout", text=text)] if text else []
    return compare([*told, *errors], claimed)
