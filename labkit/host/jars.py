"""Fetch jars from the central Maven repository once, with the Ivy that PySpark bundles, verify them, and use them
offline.

Ivy knows the repository by default, so nothing else has to be installed. A list of SHA-256 sums in this package
decides: a folder with an additional or a different jar is refused. After one complete verification, a seal with
the size and times of every jar replaces it, because hashing costs time at every start.
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
from labkit.host.addresses import cache_folder
from labkit.host.class_data import spark_jars
from labkit.host.java import Java

PATIENCE = 600.0
"""Seconds for a download; the largest one here took 40."""

Package = tuple[str, str, str]
"""Organisation, name, version."""


@dataclass(frozen=True)
class JarSet:
    """Packages with the sum of every jar that they consist of."""

    what: str
    """A name for messages, for example Kafka 4.3.0."""
    folder_name: str
    sums_file: str
    """The list of sums in this package in the format of sha256sum; write it anew whenever a version changes."""
    packages: tuple[Package, ...]
    transitive: bool
    """Whether Ivy also fetches the packages' dependencies."""
    megabytes: int
    otherwise: str
    """An alternative for users without a network."""

    def sums(self) -> dict[str, str]:
        """Return the SHA-256 of every jar by file name."""
        text = files("labkit.host.servers").joinpath(self.sums_file).read_text(encoding="ascii")
        return {name: digest for digest, name in (line.split() for line in text.splitlines())}

    def folder(self) -> Path:
        """Return the folder of the jars, whether or not it exists. Raises `ServiceUnavailable` for a user without
        a home.
        """
        cache = cache_folder()
        if cache is None:
            raise ServiceUnavailable(
                f"The jars of {self.what} need a cache folder, but none is known; set XDG_CACHE_HOME."
            )
        return cache / self.folder_name

    def find(self, java: Java, folder: Path | None = None) -> Path:
        """Return the folder with the verified jars, and fetch them if they are missing.

        Raises `ServiceUnavailable` if the first fetch is impossible, or if a jar fails its verification.
        """
        folder = self.folder() if folder is None else folder
        if not folder.is_dir():
            self._fetch(java, folder)
        self.check(folder)
        return folder

    def check(self, folder: Path) -> None:
        """Raise `ServiceUnavailable` that names a jar which differs, is missing, or does not belong there."""
        expected = self.sums()
        state = _state(folder, expected)
        if _read(folder / SEAL) == state:
            return
        present = {path.name for path in folder.glob("*.jar")}
        wrong = [f"{name} is missing" for name in sorted(expected.keys() - present)]
        wrong += [f"{name} is a file that does not belong there" for name in sorted(present - expected.keys())]
        wrong += [
            f"{name} differs" for name in sorted(present & expected.keys()) if _sum(folder / name) != expected[name]
        ]
        if wrong:
            raise ServiceUnavailable(
                f"{folder}: {wrong[0]}, compared with the SHA-256 sums of the lab; delete this folder, and the "
                "lab downloads it again."
            )
        with suppress(OSError):  # a read-only folder is checked every time
            durable.replace(folder / SEAL, state)

    def _fetch(self, java: Java, folder: Path) -> None:
        """Fetch into another folder, verify, and move into place, so that the folder exists completely or not at
        all.
        """
        durable.make_folder(folder.parent)
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            (aside / "jars").mkdir()
            for package in self.packages:
                self._retrieve(java, package, aside)
            self.check(aside / "jars")
            try:
                # Renaming a folder fails if the target is a folder with files: if two processes download at once, the
                # first result stays.
                (aside / "jars").rename(folder)
            except OSError:
                if not folder.is_dir():  # otherwise another process was first
                    raise
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def _retrieve(self, java: Java, package: Package, aside: Path) -> None:
        output = run_ivy(java, package, aside, transitive=self.transitive)
        if not any((aside / "jars").glob(f"{package[1]}-{package[2]}.jar")):
            raise ServiceUnavailable(
                f"{self.what} is not installed, and downloading it from the central Maven repository failed "
                f"({_complaint(output)}): connect this machine to the network once ({self.megabytes} MB), or "
                f"{self.otherwise}."
            )


SEAL = "checked"
"""The file that records a complete verification and the state of each jar at that time."""


def _state(folder: Path, sums: dict[str, str]) -> str:
    """Return the content of a seal: the list of sums and the state of each jar. It changes when any of them changes."""
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
    """Run Ivy for one package, which writes its jars into `aside/jars`, and return Ivy's output."""
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
    """Return the line in which Ivy reports the problem."""
    lines = [line.strip(" \t:") for line in output.splitlines()]
    telling = [line for line in lines if "not found" in line or "Exception" in line or "error" in line.lower()]
    return (telling or [line for line in lines if line] or ["it printed nothing"])[0][:160].replace(os.sep * 2, "")
