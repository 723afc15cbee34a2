"""Show the part of a sink's source that writes and commits rows, for learners."""

import inspect
from functools import cached_property
from textwrap import dedent

from labkit.core.errors import InvalidInput
from labkit.core.strategies import Strategy
from labkit.core.words import name_in, nearest
from labkit.sinks import SINKS
from labkit.view.card import Shown, framed, para
from labkit.view.card import code as lines_of

SHOWN = ("begin", "pre_commit", "gathered", "commit")
"""The names of a sink's methods that write and commit, in the order in which a batch calls them."""


class Code(Shown):
    """The source code of one sink strategy's methods that write and commit rows, which a notebook shows to learners."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy

    @cached_property
    def text(self) -> str:
        """The source code: the sink's class line and its methods that write and commit."""
        sink = SINKS[self.strategy]
        own = [getattr(sink, name) for name in SHOWN if name in vars(sink)]
        head = inspect.getsource(sink).splitlines()[0]
        bodies = [dedent(inspect.getsource(inspect.unwrap(each))) for each in own]
        indented = ("\n".join(f"    {line}".rstrip() for line in body.splitlines()) for body in bodies)
        return "\n\n".join([head, *indented]).replace(":\n\n", ":\n", 1)

    @property
    def file(self) -> str:
        """The path of the sink's source file, relative to the directory that contains the package `labkit`."""
        return f"{SINKS[self.strategy].__module__.replace('.', '/')}.py"

    def html(self) -> str:
        """Return the source code as an HTML card."""
        title = f"The sink {self.strategy}: the lines that ran"
        return framed(
            para(title, kind="lkc-title"),
            lines_of(self.text),
            para(f"From {self.file}.", kind="lkc-under"),
            label=title,
        )

    def __str__(self) -> str:
        return f"{self.file}\n{self.text}"

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        lines = len(self.text.splitlines())
        return {"text/html": self.html(), "text/plain": f"{self.file}: {lines} lines of the sink {self.strategy}"}


def code(sink: str) -> Code:
    """Return the source code with which a sink writes and commits. Raises `InvalidInput` if no sink has this name."""
    names = [each.value for each in Strategy]
    if name_in(sink, 'lab.code("append")') not in names:
        raise InvalidInput(f"there is no sink {sink[:40]!r}; {nearest(sink[:40], names)}")
    return Code(Strategy(sink))
