"""The jars of a Kafka broker: fetched once by the Ivy that PySpark bundles, checked at every use, then offline.

Ivy knows the central Maven repository by default. What it brings is believed only against `kafka.sha256`: a folder
that holds another jar, or one with another content, is refused. This module must not start a broker.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from importlib.resources import files
from pathlib import Path

from labkit.errors import ServiceUnavailable
from labkit.services.archive import spark_jars
from labkit.services.java import Java
from labkit.stores import durable
from labkit.stores.servers import cache_folder

VERSION = "4.3.0"
"""Of the broker. Whoever changes it writes `kafka.sha256` anew: sha256sum *.jar, in the folder of the jars."""

PACKAGES = (("org.apache.kafka", "kafka_2.13", VERSION), ("org.slf4j", "slf4j-simple", "1.7.36"))
"""The broker, and what lets it write a log: it brings an interface for that and no implementation."""

MEGABYTES = 44
PATIENCE = 600.0
"""Seconds for the download; it took 40."""


def sums() -> dict[str, str]:
    """The SHA-256 of every jar, by file name."""
    text = files("labkit").joinpath("services", "kafka.sha256").read_text(encoding="ascii")
    return {name: digest for digest, name in (line.split() for line in text.splitlines())}


def jars_folder() -> Path:
    """Where the jars belong, whether they are there or not. Raises `ServiceUnavailable` for a user without a home."""
    cache = cache_folder()
    if cache is None:
        raise ServiceUnavailable("The jars of Kafka need a cache folder: set XDG_CACHE_HOME to a folder of your own.")
    return cache / f"kafka-{VERSION}"


def find_jars(java: Java, folder: Path | None = None) -> Path:
    """The folder with the checked jars, fetched if it is not there.

    Raises `ServiceUnavailable` when the first fetch is impossible, or when a jar is not what it should be.
    """
    folder = jars_folder() if folder is None else folder
    if not folder.is_dir():
        _fetch(java, folder)
    check(folder)
    return folder


def check(folder: Path) -> None:
    """Raises `ServiceUnavailable` with the name of a jar that differs, is missing, or does not belong here."""
    expected, there = sums(), {path.name for path in folder.glob("*.jar")}
    wrong = [f"{name} is missing" for name in sorted(expected.keys() - there)]
    wrong += [f"{name} does not belong there" for name in sorted(there - expected.keys())]
    wrong += [f"{name} differs" for name in sorted(there & expected.keys()) if _sum(folder / name) != expected[name]]
    if wrong:
        raise ServiceUnavailable(
            f"{folder}: {wrong[0]}, by its SHA-256 in the lab; delete this folder and run labkit services up kafka."
        )


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(java: Java, folder: Path) -> None:
    """Fetches aside, checks, and moves into place, so that the folder is there whole or not at all."""
    durable.make_folder(folder.parent)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        (aside / "jars").mkdir()
        for package in PACKAGES:
            _retrieve(java, package, aside)
        check(aside / "jars")
        try:
            (aside / "jars").rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was first
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _retrieve(java: Java, package: tuple[str, str, str], aside: Path) -> None:
    """Runs Ivy for one package and all that it needs."""
    [ivy] = sorted(spark_jars().glob("ivy-*.jar"))[-1:]
    options = [f"-Divy.default.ivy.user.dir={aside}", f"-Djava.io.tmpdir={aside}", "-XX:-UsePerfData"]
    wanted = ["-cache", str(aside / "cache"), "-dependency", *package, "-confs", "default"]
    pattern = ["-retrieve", f"{aside}/jars/[artifact]-[revision].[ext]"]
    command = [str(java.path), *options, "-jar", str(ivy), *wanted, *pattern]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=PATIENCE, check=False)
        said = done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        said = f"no answer within {PATIENCE:.0f} s"
    if not any((aside / "jars").glob(f"{package[1]}-{package[2]}.jar")):
        raise ServiceUnavailable(
            f"Kafka {VERSION} is not here yet, and fetching it from the central Maven repository failed "
            f"({_complaint(said)}): connect this machine to the network once ({MEGABYTES} MB), "
            f"or point LABKIT_KAFKA=host:port to a broker that you have."
        )


def _complaint(said: str) -> str:
    """The line in which Ivy says what is wrong."""
    lines = [line.strip(" \t:") for line in said.splitlines()]
    telling = [line for line in lines if "not found" in line or "Exception" in line or "error" in line.lower()]
    return (telling or [line for line in lines if line] or ["it says nothing"])[0][:160].replace(os.sep * 2, "")
