"""Provide interpreters and jars for the pipelines of real engines; none of them enters `.venv`.

An environment is a virtual environment in the user's cache, named by its lock (`data/pipelines/environments`),
so that a changed lock makes a new one. Jars come from the central Maven repository and are verified by their sums.
"""

import hashlib
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from labkit.core.errors import InvalidInput, ServiceUnavailable
from labkit.host import durable
from labkit.host.addresses import cache_folder
from labkit.host.environments import SEAL, NotInstalled, run_steps
from labkit.host.jars import JarSet
from labkit.host.java import find_java
from labkit.host.servers.kafka_jars import CONNECTOR
from labkit.teach.engine_pipelines import ENGINES, PROJECT

ENVIRONMENTS = ENGINES.parent / "environments"

OTHERWISE = "connect this machine to the network once, or take a pipeline that needs none"


@dataclass(frozen=True)
class PipelineJars(JarSet):
    """Jars whose sums are stored with the pipelines, not in the package."""

    def sums(self) -> dict[str, str]:
        """Return the SHA-256 of every jar, by file name."""
        text = (ENVIRONMENTS / self.sums_file).read_text(encoding="ascii")
        pairs = (line.split() for line in text.splitlines())
        return {name: digest for digest, name in pairs}


def jar_sets() -> dict[str, JarSet]:
    """Return every set of jars that a pipeline may name, by name."""
    text = (ENVIRONMENTS / "jars.toml").read_text(encoding="utf-8")
    sets: dict[str, JarSet] = {"spark_kafka": CONNECTOR}
    for name, fields in tomllib.loads(text).items():
        sums_file = f"{name}.sha256"
        digest = _digest(ENVIRONMENTS / sums_file)
        sets[name] = PipelineJars(
            what=fields["what"],
            folder_name=f"pipelines/{name}-{digest}",
            sums_file=sums_file,
            packages=tuple(_package(line) for line in fields["packages"]),
            transitive=fields.get("transitive", False),
            megabytes=fields["megabytes"],
            otherwise="take a pipeline that needs no jars",
        )
    return sets


def jars(names: tuple[str, ...]) -> list[Path]:
    """Return the paths of the jars of these sets, after downloading missing ones. Raises `ServiceUnavailable`."""
    sets, java = jar_sets(), find_java()
    return [jar for name in names for jar in sorted(sets[name].find(java).glob("*.jar"))]


def interpreter(environment: str) -> Path:
    """Return the Python of an environment, after creating the environment if necessary. Raises `ServiceUnavailable`."""
    if environment == PROJECT:
        return Path(sys.executable)
    folder = environment_folder(environment)
    if not (folder / SEAL).exists():
        with durable.locked(folder.parent):
            if not (folder / SEAL).exists():
                make(_lock(environment), folder, OTHERWISE)
    return folder / "bin" / "python"


def environment_folder(environment: str) -> Path:
    """Return the folder of an environment, existing or not. Raises `InvalidInput` if the environment has no lock."""
    lock, cache = _lock(environment), cache_folder()
    if not lock.exists():
        there = sorted(path.stem for path in ENVIRONMENTS.glob("*.lock"))
        raise InvalidInput(f"There is no environment {environment}; choose from {', '.join(there)}.")
    if cache is None:
        raise ServiceUnavailable(
            "This user has no home folder to keep environments in; set XDG_CACHE_HOME to a folder."
        )
    durable.make_folder(cache / "pipelines")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return cache / "pipelines" / f"{environment}-{version}-{_digest(lock)}"


def make(lock: Path, folder: Path, otherwise: str) -> None:
    """Create an environment in its final folder, and then its seal. Raises `ServiceUnavailable`."""
    print(f"making the environment {lock.stem} in {folder}", file=sys.stderr)
    uv = [sys.executable, "-m", "uv", "--quiet", "--no-config"]
    # Pipelines run without writing byte code, and start many times.
    install = [*uv, "pip", "install", "--compile-bytecode", "--no-deps", "--require-hashes"]
    steps = [
        [*uv, "venv", "--clear", "--python", sys.executable, str(folder)],
        [*install, "--python", str(folder), "-r", str(lock)],
    ]
    run(steps, folder, f"The environment {lock.stem} could not be installed", otherwise)
    durable.replace(folder / SEAL, _digest(lock))


def run(steps: list[list[str]], folder: Path, failed: str, otherwise: str) -> None:
    """Run the commands that fill a folder. If one fails, delete the folder and raise `ServiceUnavailable`."""
    try:
        run_steps(steps, folder)
    except NotInstalled as error:
        raise ServiceUnavailable(f"{failed} ({error}): {otherwise}.") from None


def _lock(environment: str) -> Path:
    return ENVIRONMENTS / f"{environment}.lock"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def _package(line: str) -> tuple[str, str, str]:
    organisation, name, version = line.split(":")
    return organisation, name, version
