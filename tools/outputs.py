"""What a cell has said, as text: what it printed, and below it the text of its result.

The build tool takes it over into a source, and the comparison of checked notebooks (conftest.py) asks the same.
Pictures, widgets and errors are not said.
"""

from collections.abc import Iterable, Mapping
from typing import Any


def said(outputs: Iterable[Mapping[str, Any]]) -> str:
    """What was printed, then the text form of the result, without blanks at the ends of that one's lines."""
    printed, result = "", ""
    for output in outputs:
        if output.get("name") == "stdout":
            printed += "".join(output["text"])
        elif output["output_type"] == "execute_result":
            lines = "".join(output["data"].get("text/plain", "")).splitlines()
            result = "".join(f"{line.rstrip()}\n" for line in lines)
    between = "\n" if result and printed and not printed.endswith("\n") else ""
    return printed + between + result
