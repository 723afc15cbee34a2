"""Sinks that a plain process calls, without Spark, and the effects that the instruments record of them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from labkit.crashtest.instrument.effects import BOUNDS, Effect, Point
from labkit.crashtest.instrument.ticket import Ticket
from labkit.crashtest.points import read_log
from labkit.crashtest.project import Project

HERE = Path(__file__).parent
SINKS = HERE.parents[1] / "data" / "sinks"
PROCESS = HERE / "plain_sink_process.py"
PATIENCE = 60.0


class Sink:
    """One sink in a plain process, in a folder of its own."""

    def __init__(self, folder: Path, file: Path, name: str = "write_batch") -> None:
        self.folder, self.file, self.name = folder, file, name
        self.store = folder / "store"
        self.log, self.evidence = folder / "effects.jsonl", folder / "reached.json"
        self.code: tuple[str, ...] = ()
        self.ignored: tuple[str, ...] = ()

    def start(self, armed: Point | None = None, then: str = "crash", batches: int = 1) -> "subprocess.Popen[bytes]":
        ticket = Ticket(
            str(self.file),
            str(self.log),
            1,
            armed,
            str(self.evidence) if armed else "",
            then,
            *Project.of(str(self.file), self.code, self.ignored)[1:],
        )
        environment = dict(os.environ, SINK_STORE=str(self.store))
        command = [sys.executable, str(PROCESS), str(self.file), self.name, json.dumps(ticket.to_json()), str(batches)]
        return subprocess.Popen(command, env=environment, start_new_session=True)

    def effects(self, batches: int = 1) -> list[Effect]:
        with self.start(batches=batches) as process:
            assert process.wait(PATIENCE) == 0
        return read_log(self.log)

    def kinds(self) -> list[tuple[str, int]]:
        return [(each.kind.value, each.line) for each in self.effects() if each.kind not in BOUNDS and not each.failed]


def line_of(file: str, text: str) -> int:
    lines = (SINKS / file).read_text().splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


def await_stopped(process: "subprocess.Popen[bytes]", evidence: Path) -> None:
    end = time.monotonic() + PATIENCE
    while not (evidence.exists() and psutil.Process(process.pid).status() == psutil.STATUS_STOPPED):
        if time.monotonic() > end:
            os.killpg(process.pid, signal.SIGKILL)  # else whoever opened it would wait for its end
            pytest.fail("the point was not reached")
        time.sleep(0.01)
