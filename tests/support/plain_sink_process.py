"""Calls a user's sink in a plain process with the instruments in place: `FILE NAME TICKET BATCHES`, the ticket as JSON.

No Spark: the batch is a list with the one method that the sinks of the tests ask of a DataFrame.
"""

import json
import sys
from types import SimpleNamespace
from typing import Any

from labkit.crashtest.instrument import files, install
from labkit.crashtest.instrument.recorder import recorder
from labkit.crashtest.instrument.ticket import Ticket
from labkit.crashtest.rows import generate
from labkit.crashtest.subject import Subject, find


class Frame:
    """As much of a DataFrame as these sinks use."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = [SimpleNamespace(**row, asDict=lambda row=row: row) for row in rows]
        context = SimpleNamespace(getLocalProperty=lambda _name: "q1")
        self.sparkSession = SimpleNamespace(sparkContext=context)

    def collect(self) -> list[Any]:
        """The rows."""
        return self._rows


def main(file: str, name: str, ticket: str, batches: str) -> None:
    """Every batch, in order."""
    told = Ticket.from_json(json.loads(ticket))
    files.watched.add(told.project)
    install.install()
    function = find(Subject(file, name))
    for batch in generate(int(batches)).batches:
        with recorder.call(told, batch.number, "call"):
            function(Frame(list(batch.rows)), batch.number)


if __name__ == "__main__":
    main(*sys.argv[1:])
