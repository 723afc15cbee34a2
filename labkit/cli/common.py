"""The options that several verbs of the command line share. Nothing is done here."""

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")]
Out = Annotated[Path | None, typer.Option("--out", help="The folder to write to; it must not be there yet.")]
