"""Kill a pipeline of a real engine right before one system call, run the same command again, and judge the rows.

The pipeline is an unchanged program that knows nothing of the lab. It uses a private Kafka broker.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from labkit.core.errors import JobFailed
from labkit.core.judge import Verdict, judge
from labkit.core.records import History, Observation, Reading, Record
from labkit.crashtest.blackbox.effects import Effect, Namer
from labkit.host import addresses
from labkit.host.processes.own_python import own_python
from labkit.host.servers.tethered import tethered_kafka
from labkit.host.syscalls.calls import Answer, Call
from labkit.host.syscalls.watching import watch
from labkit.teach.engine_pipelines import ENGINES, Pipeline
from labkit.teach.hands_on import private

PATIENCE = 150.0
"""The time limit in seconds for one start of a pipeline."""
KAFKA = "<kafka>"
"""The placeholder for the broker's address in the name of an effect, such as a request to the broker."""
_READ = "print(*map(json.dumps, read()), sep='\\n')"


@contextmanager
def broker() -> Iterator[Mapping[str, str]]:
    """Provide a private Kafka broker for a `with` block, and yield `{"KAFKA": address}`, an environment variable.

    This is the notebook's private broker, which is started if necessary. If the notebook uses the user's own broker,
    labkit starts another one that ends with the block, because the tested pipelines have fixed topic names and must not
    write into the user's broker. Raises `ServiceUnavailable` if no broker can be started.
    """
    server = private.find(addresses.KAFKA, tethered_kafka)
    if server.folder is not None:
        yield {"KAFKA": server.address}
        return
    with tethered_kafka() as other:
        yield {"KAFKA": other.address}


def kill(pipeline: Pipeline, place: str, variables: Mapping[str, str]) -> Verdict:
    """Kill a pipeline right before one of its writes, restart it, and return the verdict on its output rows.

    `place` is the write's name in the pipeline's recording. `variables` are environment variables for the pipeline in
    addition to those of this process, such as the Kafka address that `broker` yields. Raises `ServiceUnavailable` if
    the machine cannot trace system calls, and `JobFailed` if the pipeline never made this write or failed.
    """
    wanted = place.replace(KAFKA, variables.get("KAFKA", KAFKA))
    # With this prefix, because labkit masks names such as tmpa1b2 in the names of effects.
    with tempfile.TemporaryDirectory(prefix="tmp") as folder:
        work = Path(folder) / "work"
        work.mkdir()
        environment = {**os.environ, **variables, "PYTHONDONTWRITEBYTECODE": "1"}
        _in_reader(pipeline, "reset()", work, environment)
        _killed(pipeline, wanted, work, environment)
        _run([sys.executable, str(pipeline.program)], work, environment)
        output = _in_reader(pipeline, _READ, work, environment)
    return _judged([json.loads(line) for line in output.splitlines()])


def _killed(pipeline: Pipeline, wanted: str, work: Path, environment: Mapping[str, str]) -> None:
    """Start the pipeline in the folder `work`, and kill its whole process tree right before the write `wanted`."""
    namer, met, end = Namer([work]), list[Effect](), time.monotonic() + PATIENCE

    def decide(call: Call) -> Answer:
        effect = namer.name(call)
        if effect is None or effect.name != wanted:
            return Answer.GO_ON
        met.append(effect)
        return Answer.KILL

    done = watch(
        [sys.executable, str(pipeline.program)],
        folder=work,
        environment=environment,
        output=work.parent / "killed.log",
        decide=decide,
        tick=lambda: Answer.KILL if time.monotonic() > end else Answer.GO_ON,
    )
    if not met or done.emptied is None or done.emptied.left:
        raise JobFailed(
            f"{pipeline.name} did not reach the write {wanted}, or labkit could not kill it there; run the cell again."
        )


def _in_reader(pipeline: Pipeline, statement: str, work: Path, environment: Mapping[str, str]) -> str:
    """Run a Python statement in a new process, and return its output.

    The statement can call the functions `read` and `reset` of the pipeline's reader module.
    """
    module = pipeline.reader.removesuffix(".py")
    path = f"import json, sys; sys.path.insert(0, {str(ENGINES)!r})"
    code = f"{path}; from {module} import read, reset; {statement}"
    return _run(own_python("-c", code), work, environment)


def _run(command: list[str], work: Path, environment: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            command, cwd=work, env=dict(environment), capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        raise JobFailed(f"{_name(command)} took more than {PATIENCE:g} s; run the cell again.") from None
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise JobFailed(f"{_name(command)} failed: {''.join(last)}; run the cell again.")
    return done.stdout


def _name(command: list[str]) -> str:
    return "The reader of the output" if "-c" in command else f"The pipeline {Path(command[-1]).name[:60]}"


def _judged(rows: list[dict[str, object]]) -> Verdict:
    text = (ENGINES / "expected.jsonl").read_text(encoding="utf-8")
    due = [json.loads(line) for line in text.splitlines()]
    expected = [Record(each["id"], each["key"], each["id"]) for each in due]
    seen = [Observation(int(str(each["id"])), str(each["key"]), int(str(each["id"])), 0, 1) for each in rows]
    return judge(expected, History([*seen, Reading("end")]))
