"""The options of the user's own Spark session: configuration, jars, and Maven packages (--conf, --jars, --packages).

Spark's own SparkSubmit resolves packages once, before the test, so that every driver gets the same jars.
"""

import shlex
import subprocess
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

from labkit.core.errors import InvalidInput
from labkit.host.class_data import spark_jars
from labkit.host.java import Java
from labkit.spark.cluster import to_properties
from labkit.spark.jvm import PROFILES, Profile

RESOLVE_SECONDS = 300.0


@dataclass(frozen=True)
class SparkOptions:
    """The configuration, jars and packages that the user gives for the Spark sessions of a test."""

    conf: dict[str, str] = field(default_factory=dict)
    jars: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    """Maven coordinates, group:artifact:version, of packages whose jars are not known yet."""

    def resolved(self, java: Java) -> "SparkOptions":
        """Return these options with the Maven packages, and all their dependencies, replaced by jars."""
        if not self.packages:
            return self
        more = tuple(jar for jar in resolve(self, java) if jar not in self.jars)
        return replace(self, jars=(*self.jars, *more), packages=())

    def profile(self) -> Profile:
        """Return the JVM arguments, including the driver's memory, and the configuration of a Spark session."""
        usual, conf, options = PROFILES["crashtest"], dict(self.conf), []
        memory = conf.pop("spark.driver.memory", "")
        if memory:
            options.append(f"-Xmx{memory.lower().removesuffix('b')}")
        options += shlex.split(conf.pop("spark.driver.extraJavaOptions", ""))
        if self.jars:
            conf["spark.jars"] = ",".join(self.jars)
        return replace(usual, options=(*usual.options, *options), configuration=usual.configuration | conf)


def resolve(options: SparkOptions, java: Java) -> list[str]:
    """Return the jars of the user's Maven packages and of their dependencies, which Spark's SparkSubmit determines.

    Packages in Ivy's cache or in ~/.m2 need no network. Raises `InvalidInput` if a package is unavailable, or if
    SparkSubmit takes too long.
    """
    names = ", ".join(options.packages)
    with TemporaryDirectory(prefix="labkit-packages-") as folder:
        file = Path(folder, "spark.properties")
        of_ivy = {key: value for key, value in options.conf.items() if key.startswith(("spark.jars.", "spark.hadoop."))}
        file.write_text(to_properties(of_ivy), encoding="ascii")
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
                f"--packages {names}: finding their jars took more than {RESOLVE_SECONDS:.0f} s; download the jars "
                "yourself and name them with --jars."
            ) from None
    output = process.stdout + process.stderr
    jars = _class_path(output)
    if process.returncode or not jars:
        raise InvalidInput(
            f"--packages {names}: these packages are neither in Ivy's cache nor available from a repository "
            f"({_complaint(output)}); connect this machine to the network once, or name the jars with --jars."
        )
    return jars


def _class_path(output: str) -> list[str]:
    _, _, after = output.partition("Classpath elements:\n")
    paths = (line.strip().removeprefix("file://") for line in after.splitlines())
    return list(takewhile(lambda path: path.endswith(".jar"), paths))


def _complaint(output: str) -> str:
    lines = [line.strip(" \t:") for line in output.splitlines()]
    telling = [line for line in lines if "not found" in line or "Exception" in line]
    return (telling or [line for line in lines if line] or ["Spark gives no reason"])[0][:160]
