"""The options of the user's own Spark session: configuration, jars, and Maven packages (--conf, --jars, --packages).

Spark's own SparkSubmit resolves packages once, before the test, so that every driver gets the same jars.
"""

import re
import shlex
import subprocess
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from labkit.core.errors import InvalidInput
from labkit.core.kinds import Unfit
from labkit.host.class_data import spark_jars
from labkit.host.java import Java
from labkit.spark.cluster import to_properties
from labkit.spark.jvm import PROFILES, Profile

RESOLVE_SECONDS = 300.0
"""The maximum seconds for resolving and downloading packages."""

OURS = {
    "spark.master": "the test runs its tasks one after the other in one process",
    "spark.submit.deployMode": "the driver is what the test kills",
    "spark.remote": "the test starts its own driver",
    "spark.api.mode": "the test starts its own driver",
    "spark.driver.host": "the test talks over loopback only",
    "spark.driver.bindAddress": "the test talks over loopback only",
    "spark.local.dir": "each driver has a folder of its own, which is removed",
    "spark.python.daemon.module": "the test knows Spark's workers by it",
    "spark.python.use.daemon": "the test knows Spark's workers by it",
    "spark.pyspark.python": "tasks run the interpreter of the test",
    "spark.pyspark.driver.python": "tasks run the interpreter of the test",
    "spark.sql.streaming.checkpointLocation": "each run has a checkpoint of its own",
    "spark.sql.streaming.noDataMicroBatches.enabled": "a batch without rows would move every point",
    "spark.sql.files.minPartitionNum": "the test deals each batch to two tasks",
    "spark.jars": "name jars with --jars",
    "spark.jars.packages": "name packages with --packages",
    "spark.driver.extraClassPath": "name jars with --jars",
    "spark.executor.extraClassPath": "name jars with --jars",
}
"""Spark settings that the user may not set because the test sets them, each with the reason or the option to use
instead.
"""

_MEMORY = re.compile(r"(\d+[kmgt])b?", re.IGNORECASE)
_PACKAGE = re.compile(r"[\w.-]+:[\w.-]+:[\w.-]+")
_LISTED = re.compile(r"\.jar$")


@dataclass(frozen=True)
class SparkOptions:
    """The user's options for the Spark sessions of a test, in addition to those that the test sets itself."""

    conf: dict[str, str] = field(default_factory=dict)
    jars: tuple[str, ...] = ()
    """The absolute paths of the user's jars."""
    packages: tuple[str, ...] = ()
    """Maven coordinates, group:artifact:version, of packages whose jars are not known yet."""

    def resolved(self, java: Java) -> "SparkOptions":
        """Return the options with packages replaced by their jars and those of their dependencies.

        Raises `InvalidInput` if a package is unavailable.
        """
        if not self.packages:
            return self
        more = tuple(jar for jar in resolve(self, java) if jar not in self.jars)
        return replace(self, jars=(*self.jars, *more), packages=())

    def profile(self) -> Profile:
        """Return the profile, with which a session is started, for these options.

        Memory and Java options become arguments of the JVM.
        """
        usual, conf, options = PROFILES["crashtest"], dict(self.conf), []
        memory = conf.pop("spark.driver.memory", "")
        if memory:
            options.append(f"-Xmx{memory.lower().removesuffix('b')}")
        options += shlex.split(conf.pop("spark.driver.extraJavaOptions", ""))
        if self.jars:
            conf["spark.jars"] = ",".join(self.jars)
        return replace(usual, options=(*usual.options, *options), configuration=usual.configuration | conf)


def setting(text: str) -> str:
    """Return the text of a setting `spark.key=value`, after checking it.

    Raises `Unfit` for another form, or if the test sets that key itself.
    """
    key, equals, value = text.partition("=")
    if not equals or not key.startswith("spark.") or key != key.strip():
        raise Unfit("write spark.key=value, as in --conf spark.sql.session.timeZone=UTC.")
    if key in OURS:
        raise Unfit(f"the test must set this itself; {OURS[key]}.", key)
    if key == "spark.driver.memory" and not _MEMORY.fullmatch(value):
        raise Unfit("write the memory as Spark does, as in spark.driver.memory=2g.")
    if key == "spark.driver.extraJavaOptions":
        try:
            shlex.split(value)
        except ValueError as error:
            raise Unfit(f"{error}.") from None
    return text


def jar(path: str) -> str:
    """Return the absolute path of a jar. Raises `Unfit` if there is no such jar."""
    file = Path(path).expanduser()
    if not file.is_file():
        raise Unfit("there is no such file.")
    if not zipfile.is_zipfile(file):
        raise Unfit("this file is not a jar, because it is not a zip file.")
    return str(file.resolve())


def package(text: str) -> str:
    """Return the text of Maven coordinates, after checking it. Raises `Unfit` for another form."""
    if not _PACKAGE.fullmatch(text):
        raise Unfit("write group:artifact:version, as in org.postgresql:postgresql:42.7.8.")
    return text


def resolve(options: SparkOptions, java: Java) -> list[str]:
    """Return the jars of the packages and of their dependencies, resolved by SparkSubmit.

    Packages in Ivy's cache or in ~/.m2 need no network. Raises `InvalidInput` if a package is unavailable.
    """
    names = ", ".join(options.packages)
    with TemporaryDirectory(prefix="labkit-packages-") as folder:
        file = Path(folder, "spark.properties")
        file.write_text(to_properties(_of_ivy(options.conf)), encoding="ascii")
        command = [
            *(str(java.path), "-XX:-UsePerfData", f"-Djava.io.tmpdir={folder}"),
            *("-cp", str(spark_jars() / "*"), "org.apache.spark.deploy.SparkSubmit"),
            *("--verbose", "--master", "local[1]", "--properties-file", str(file)),
            *("--packages", ",".join(options.packages)),
            # A main class that does nothing: SparkSubmit has resolved the packages before it starts the class.
            *("--class", "org.apache.ivy.Main", "spark-internal", "-version"),
        ]
        try:
            process = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=RESOLVE_SECONDS,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            raise InvalidInput(
                f"--packages {names}: resolving took more than {RESOLVE_SECONDS:.0f} s; download the jars yourself and "
                "name them with --jars."
            ) from None
    output = process.stdout + process.stderr
    jars = _class_path(output)
    if process.returncode or not jars:
        raise InvalidInput(
            f"--packages {names}: neither in Ivy's cache nor available from a repository "
            f"({_complaint(output)}); connect "
            "this machine to the network once, or name the jars with --jars."
        )
    return jars


def _of_ivy(conf: dict[str, str]) -> dict[str, str]:
    """Return those of the user's settings that say where Ivy looks for packages."""
    return {key: value for key, value in conf.items() if key.startswith(("spark.jars.", "spark.hadoop."))}


def _class_path(output: str) -> list[str]:
    """Return the jars that SparkSubmit prints as the class path of its main class."""
    _, _, after = output.partition("Classpath elements:\n")
    jars = []
    for line in after.splitlines():
        path = line.strip().removeprefix("file://")
        if not _LISTED.search(path):
            break
        jars.append(path)
    return jars


def _complaint(output: str) -> str:
    """Return the line of SparkSubmit's output in which Ivy reports an error."""
    lines = [line.strip(" \t:") for line in output.splitlines()]
    telling = [line for line in lines if "not found" in line or "Exception" in line]
    return (telling or [line for line in lines if line] or ["it says nothing"])[0][:160]
