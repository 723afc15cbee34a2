"""Runs a private Spark standalone cluster from the installed PySpark: a master and workers on free loopback ports.

    with spark_cluster(workers=2) as cluster:
        cluster.url       # spark://127.0.0.1:PORT

Master and workers each run in a Unix session of their own, and all write below one new folder. They and their executors
end with the process that asked for them (`labkit.host.processes.tether`).
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import msgspec

from labkit.core.errors import ServiceUnavailable
from labkit.host.class_data import spark_jars
from labkit.host.java import Java, find_java
from labkit.host.processes.sessions import empty_session
from labkit.host.processes.tether import serve_tethered, tethered

START_SECONDS = 180.0
"""The seconds within which master and workers must find each other; it takes 4 s on an idle machine."""

_END_SECONDS = 30.0
_LEAST = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-XX:-UsePerfData")
"""The JVM options for master and workers, which only pass messages on. Executors have other options."""

_LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""


class Cluster(msgspec.Struct, frozen=True):
    """A running Spark standalone cluster: a master and its workers on this machine."""

    url: str
    """The URL of the master, for Spark's option `--master`."""
    sessions: list[int]
    """The session ids of the master and of each worker; a worker's executors are in its session."""
    folder: str
    guard: int
    """The id of the process that ends the cluster when the process that asked for it ends."""


def spark_cluster(workers: int = 2, cores: int = 2, megabytes: int = 700) -> AbstractContextManager[Cluster]:
    """Run a Spark standalone cluster within a `with` block.

    Each worker has `cores` cores and `megabytes` MB of memory for all its executors together. Raises
    `ServiceUnavailable` if the cluster does not start.
    """
    return tethered(Cluster, "labkit.host.servers.spark_cluster", *map(str, (workers, cores, megabytes)))


def linked_home(folder: Path) -> dict[str, str]:
    """Create a SPARK_HOME below `folder`, with a link to the installed jars.

    Return the environment variables that select it, as a dict. Without them, workers would write into the installed
    PySpark package, where their work folder is by default. The new folder has no `python/lib/pyspark.zip`, so Python
    workers import the installed, compiled pyspark.
    """
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    if not (home / "jars").exists():
        (home / "jars").symlink_to(spark_jars())
    # The Scala version from the name of a jar, because only a running JVM could state it otherwise.
    [core] = spark_jars().glob("spark-core_*.jar")
    return {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": core.name.removeprefix("spark-core_").partition("-")[0]}


class _Servers:
    """The master and the workers of a Spark cluster, as child processes of this process."""

    def __init__(self, folder: Path) -> None:
        self._java: Java = find_java()
        self._folder = folder
        self._logging = folder / "log4j2.properties"
        self._logging.write_text(_LOGGING, encoding="utf-8")
        self._home = linked_home(folder)
        self._started: list[subprocess.Popen[bytes]] = []

    @property
    def sessions(self) -> list[int]:
        # Each server was started in a Unix session of its own, so its process id is the id of the session.
        return [process.pid for process in self._started]

    def master(self) -> str:
        log = self._start("master", "org.apache.spark.deploy.master.Master", [])
        return self._await(log, r"Starting Spark master at (spark://\S+)")

    def workers(self, url: str, number: int, cores: int, megabytes: int) -> None:
        size = ["--cores", str(cores), "--memory", f"{megabytes}m"]
        logs = [
            self._start(
                f"worker-{each}",
                "org.apache.spark.deploy.worker.Worker",
                [*size, "--work-dir", str(self._folder / f"worker-{each}" / "applications"), url],
            )
            for each in range(number)
        ]
        for log in logs:
            self._await(log, r"(Successfully registered with master)")

    def end(self) -> None:
        # The workers come first, because without a master they would look for a new one.
        for process in reversed(self._started):
            empty_session(process.pid, _END_SECONDS)
            process.wait()

    def _start(self, name: str, server: str, arguments: Sequence[str]) -> Path:
        place = self._folder / name
        place.mkdir()
        # Without the user's SPARK_ variables, which may name another installation, or ports of the user's cluster.
        environment = {key: value for key, value in os.environ.items() if not key.startswith("SPARK_")}
        environment |= {**self._home, "SPARK_LOCAL_IP": "127.0.0.1", "TMPDIR": str(place)}
        environment |= {"JAVA_HOME": str(self._java.path.resolve().parents[1]), "SPARK_LOCAL_DIRS": str(place)}
        options = [*_LEAST, f"-Djava.io.tmpdir={place}", f"-Dlog4j2.configurationFile={self._logging.as_uri()}"]
        ports = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        with (place / "log").open("ab") as log:
            process = subprocess.Popen(
                [str(self._java.path), *options, "-cp", f"{spark_jars()}/*", server, *ports, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=place,
                start_new_session=True,
            )
        self._started.append(process)
        return place / "log"

    def _await(self, log: Path, pattern: str) -> str:
        """Wait until the regex `pattern` matches in the file `log`, and return the match's first group.

        Raises `ServiceUnavailable` if a server process ends before that, or after `START_SECONDS`.
        """
        end = time.monotonic() + START_SECONDS
        while not (match := re.search(pattern, text := log.read_text(encoding="utf-8", errors="replace"))):
            if any(process.poll() is not None for process in self._started) or time.monotonic() > end:
                last = (text.strip().splitlines() or ["it logged nothing"])[-1]
                raise ServiceUnavailable(
                    f"The Spark cluster's {log.parent.name} did not start (its log ends with: {last[:200]}); try again."
                )
            time.sleep(0.05)
        return match[1]


def guard(workers: int, cores: int, megabytes: int) -> None:
    """Start a Spark cluster, report its address on standard output, and kill it when standard input closes."""
    folder = Path(tempfile.mkdtemp(prefix="labkit-spark-"))
    with ExitStack() as ending:
        # Callbacks run last in, first out: the servers end before their folder is removed.
        ending.callback(shutil.rmtree, folder, ignore_errors=True)

        def begin() -> Cluster:
            servers = _Servers(folder)
            ending.callback(servers.end)
            url = servers.master()
            servers.workers(url, workers, cores, megabytes)
            return Cluster(url, servers.sessions, str(folder), os.getpid())

        serve_tethered(begin, ending.close)


if __name__ == "__main__":
    guard(*map(int, sys.argv[1:4]))
