"""Download jars from the central Maven repository once, with the Ivy that PySpark bundles, and verify them.

After the download, no network is needed. Ivy knows the repository by default, so nothing else has to be installed. The
jars must match a list of SHA-256 sums in this package: a folder with an additional or a different jar is refused. After
one complete verification, labkit only compares size and times of every jar with a file (the seal), because to compute
the sums at every start would take time.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from labkit.core.errors import ServiceUnavailable
from labkit.host import durable
from labkit.host.addresses import required_cache_folder
from labkit.host.class_data import spark_jars
from labkit.host.java import Java

PATIENCE = 600.0
"""The maximum seconds for a download; in a trial, the largest one took 40."""

Package = tuple[str, str, str]
"""A Maven package: organisation, name, version."""


@dataclass(frozen=True)
class JarSet:
    """The Maven packages of a Java program, such as Kafka, and the expected SHA-256 sum of each jar."""

    what: str
    """The name that messages show, for example Kafka 4.3.0."""
    folder_name: str
    sums_file: str
    """The file of this package with the sums, in the format of sha256sum; renew it whenever a version changes."""
    packages: tuple[Package, ...]
    transitive: bool
    """Whether Ivy also downloads the packages' dependencies."""
    megabytes: int
    otherwise: str
    """What a user without a network can do instead, such as "use a job that reads a file"."""

    def sums(self) -> dict[str, str]:
        """Return a dict from the file name of each jar to the expected SHA-256 sum."""
        text = files("labkit.host.servers").joinpath(self.sums_file).read_text(encoding="ascii")
        return {name: digest for digest, name in (line.split() for line in text.splitlines())}

    def folder(self) -> Path:
        """Return the folder for these jars in the user's cache. Raises `ServiceUnavailable` without a home folder."""
        return required_cache_folder(f"The jars of {self.what}") / self.folder_name

    def find(self, java: Java, folder: Path | None = None) -> Path:
        """Return the folder with the verified jars; if there is no such folder, download the jars.

        Raises `ServiceUnavailable` if the download fails, or if a jar does not have the expected SHA-256 sum.
        """
        folder = self.folder() if folder is None else folder
        if not folder.is_dir():
            self._fetch(java, folder)
        self.check(folder)
        return folder

    def check(self, folder: Path) -> None:
        """Raise `ServiceUnavailable` unless a folder contains exactly these jars, each with its SHA-256 sum."""
        expected = self.sums()
        state = _state(folder, expected)
        if _read(folder / SEAL) == state:
            return
        present = {path.name for path in folder.glob("*.jar")}
        wrong = [f"{name} is missing" for name in sorted(expected.keys() - present)]
        wrong += [f"{name} is a file that does not belong there" for name in sorted(present - expected.keys())]
        both = sorted(present & expected.keys())
        wrong += [f"{name} differs" for name in both if _sum(folder / name) != expected[name]]
        if wrong:
            raise ServiceUnavailable(
                f"{folder}: {wrong[0]}, so its jars do not match labkit's list of SHA-256 sums; delete this folder, "
                "and labkit will download the jars again."
            )
        with suppress(OSError):  # a read-only folder gets no seal and is verified every time
            durable.replace(folder / SEAL, state)

    def _fetch(self, java: Java, folder: Path) -> None:
        durable.make_folder(folder.parent)
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            (aside / "jars").mkdir()
            for package in self.packages:
                self._retrieve(java, package, aside)
            self.check(aside / "jars")
            try:
                (aside / "jars").rename(folder)
            except OSError:
                if not folder.is_dir():  # otherwise another process has just downloaded the same jars
                    raise
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def _retrieve(self, java: Java, package: Package, aside: Path) -> None:
        output = run_ivy(java, package, aside, transitive=self.transitive)
        if not any((aside / "jars").glob(f"{package[1]}-{package[2]}.jar")):
            raise ServiceUnavailable(
                f"{self.what} is not installed, and downloading it from the central Maven repository failed "
                f"({_complaint(output)}): connect this machine to the network once, to download "
                f"{self.megabytes} MB, or {self.otherwise}."
            )


SEAL = "checked"
"""The name of the file (the seal) that records a complete verification, and the state of each jar at that time."""


def _state(folder: Path, sums: dict[str, str]) -> str:
    lines = [hashlib.sha256(repr(sorted(sums.items())).encode()).hexdigest()]
    for jar in sorted(folder.glob("*.jar")):
        status = jar.stat()
        lines.append(f"{jar.name} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}")
    return "\n".join(lines)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def run_ivy(java: Java, package: Package, aside: Path, *, transitive: bool) -> str:
    """Download a Maven package (if `transitive`, with its dependencies) into `aside/jars`; return Ivy's output."""
    [ivy] = sorted(spark_jars().glob("ivy-*.jar"))[-1:]
    options = [
        f"-Divy.default.ivy.user.dir={aside}",
        # Ivy writes only into its user folder and the temporary folder, so nothing remains after `aside` is removed.
        f"-Djava.io.tmpdir={aside}",
        "-XX:-UsePerfData",
    ]
    wanted = ["-cache", str(aside / "cache"), "-dependency", *package, "-confs", "default"]
    how: Sequence[str] = () if transitive else ("-notransitive",)
    pattern = ["-retrieve", f"{aside}/jars/[artifact]-[revision].[ext]"]
    command = [str(java.path), *options, "-jar", str(ivy), *how, *wanted, *pattern]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=PATIENCE, check=False)
        return done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return f"no answer within {PATIENCE:.0f} s"


def _complaint(output: str) -> str:
    lines = [line.strip(" \t:") for line in output.splitlines()]
    telling = [line for line in lines if "not found" in line or "Exception" in line or "error" in line.lower()]
    return (telling or [line for line in lines if line] or ["it printed nothing"])[0][:160].replace(os.sep * 2, "")
