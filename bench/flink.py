"""Count the words of `totals` in PyFlink, if it is installed: Table API, exactly-once checkpoints, discarded output.

PyFlink and PySpark need different versions of py4j, so it may be in its own environment, whose Python LABKIT_PYFLINK
names. The comparison is not exact: Flink emits a change for every word, Spark a row for every word of a batch, and
Flink writes nothing here.
"""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from labkit.core.errors import JobFailed

VARIABLE = "LABKIT_PYFLINK"

_JOB = r"""
import json, sys
from pyflink.table import EnvironmentSettings, TableEnvironment

path, tasks = sys.argv[1:]
tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
for name, value in {"parallelism.default": tasks, "execution.checkpointing.interval": "500ms",
                    "execution.checkpointing.mode": "EXACTLY_ONCE"}.items():
    tables.get_config().set(name, value)
tables.execute_sql(f"CREATE TABLE lines (line STRING) WITH ('connector'='filesystem', 'path'='{path}', 'format'='raw')")
tables.execute_sql("CREATE TABLE nowhere (word STRING, total BIGINT) WITH ('connector'='blackhole')")
words = "UNNEST(REGEXP_EXTRACT_ALL(line, '[\\p{L}\\p{N}'']+', 0)) AS found(word)"
count = f"INSERT INTO nowhere SELECT LOWER(word), COUNT(*) FROM lines CROSS JOIN {words} GROUP BY LOWER(word)"
client = tables.execute_sql(count).get_job_client()
print(json.dumps(client.get_job_execution_result().result().get_net_runtime() / 1000))
"""


def interpreter() -> str | None:
    """Return the Python that has PyFlink, or None."""
    named = os.environ.get(VARIABLE)
    return named or (sys.executable if find_spec("pyflink") else None)


def seconds(python: str, path: Path, tasks: int) -> float:
    """Return the seconds that the job took, without the start of Flink's cluster.

    `python` is the interpreter that has PyFlink. Raises `JobFailed` with the last line of output if the job fails.
    """
    command = [python, "-c", _JOB, path.absolute().as_uri(), str(tasks)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _failed(python, str(error)) from None
    if done.returncode != 0:
        raise _failed(python, (done.stderr.strip() or "it said nothing").splitlines()[-1])
    return float(json.loads(done.stdout.splitlines()[-1]))


def _failed(python: str, reason: str) -> JobFailed:
    return JobFailed(f"PyFlink in {python} did not count: {reason[:200]}; unset {VARIABLE} to leave it out.")
