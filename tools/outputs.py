"""Extract the text of a cell's outputs: what the cell printed, then the text of its result.

The build tool copies this text into a source, and the comparison of checked notebooks (conftest.py) calls the same
function. Pictures, widgets and errors are left out.
"""

from collections.abc import Iterable, Mapping
from typing import Any


def said(outputs: Iterable[Mapping[str, Any]]) -> str:
    """Return the printed text, then the text form of the result, whose lines lose trailing blanks."""
    printed, result = "", ""
    for output in outputs:
        if output.get("name") == "stdout":
            printed += "".join(output["text"])
        elif output["output_type"] == "execute_result":
            lines = "".join(output["data"].get("text/plain", "")).splitlines()
            result = "".join(f"{line.rstrip()}\n" for line in lines)
    between = "\n" if result and printed and not printed.endswith("\n") else ""
    return printed + between + result
