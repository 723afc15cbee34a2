"""Defines `labkit export`, which writes a simulated or a real run for other tools."""

from pathlib import Path
from typing import Annotated

import typer

from labkit.cli.replay import read
from labkit.core.errors import InvalidInput
from labkit.host import durable
from labkit.view.exports import FORMATS


def export(
    run: Annotated[
        str,
        typer.Argument(
            help="A trace, a file with one, the name of a scenario, or the folder of a run of `labkit run`."
        ),
    ],
    to: Annotated[str, typer.Option("--as", metavar="FORMAT", help=f"One of {', '.join(FORMATS)}.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="The file to write, replaced if it exists; default: print."),
    ] = None,
) -> int:
    """Write a run, simulated or real, as a sequence diagram (mermaid, plantuml), a log with vector clocks (shiviz) or a
    picture (svg). Exit 64 if there is no such run.
    """
    from labkit.teach import export as exports

    text = exports.export(exports.folder_of(run) or read(run), to)
    if out is None:
        print(text, end="")
        return 0
    if not out.parent.is_dir() or out.is_dir():
        raise InvalidInput(f"--out {out}: this is a folder, or is in a folder that does not exist; name another file.")
    with durable.explained(out):
        out.write_text(text, encoding="utf-8")
    return 0
