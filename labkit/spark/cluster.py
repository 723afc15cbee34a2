"""Configure executors for a master that is not local, and check the conditions for a run on it.

The cluster's workers start the executors, on this host or another; so executors inherit nothing from the driver and
outlive it for a moment. They must find the checkpoint, and a store that consists of files, under the same path as the
driver: on one host, or on a shared disk.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from labkit.core.errors import InvalidInput, ServiceUnavailable
from labkit.host.java import Java
from labkit.spark.master import is_local, too_few

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXECUTOR_MEMORY = "512m"
"""The heap of one executor, slightly above Spark's minimum (UnifiedMemoryManager: 450 MB)."""

SLOT_SECONDS = 90.0
"""Seconds within which enough executors must register with the driver; starting one takes a few seconds."""

_HANDED_ON = ("LABKIT_", "XDG_CACHE_HOME")
"""Prefixes of the environment variables that the driver passes to executors, for example the addresses of servers."""

_ON_ONE_HOST = frozenset({"sqlite"})
"""Stores whose locks do not work on a shared disk."""


def executors(
    master: str, java: Java, python_path: str, more: Sequence[str] = (), environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the Spark properties that set up the executors of a cluster; an empty dict for a local master.

    The executors get `python_path` as PYTHONPATH, the additional JVM options `more`, and the variables of the lab from
    `environment`. The properties may contain a server's password, so never put them on a command line, which other
    users can read.
    """
    if is_local(master):
        return {}
    handed = {name: value for name, value in environment.items() if name.startswith(_HANDED_ON)}
    settings = {f"spark.executorEnv.{name}": value for name, value in {**handed, "PYTHONPATH": python_path}.items()}
    # "." is the executor's own directory, which its worker deletes, so a killed executor leaves no temporary file.
    options = ["-XX:-UsePerfData", "-Djava.io.tmpdir=.", *more, *java.flags]
    return settings | {"spark.executor.memory": EXECUTOR_MEMORY, "spark.executor.extraJavaOptions": " ".join(options)}


def to_properties(configuration: Mapping[str, str]) -> str:
    """Return Spark properties as the text of a Java properties file, for SparkSubmit's option --properties-file."""
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in configuration.items())


def _escaped(text: str) -> str:
    special = {"\\": "\\\\", "\n": "\\n", "=": "\\=", ":": "\\:", "#": "\\#", "!": "\\!", " ": "\\ "}
    return "".join(special.get(sign, sign if sign.isascii() else _unicode(sign)) for sign in text)


def _unicode(sign: str) -> str:
    # An escape has 16 bits, so a character beyond them is written as two escapes.
    encoded = sign.encode("utf-16-be")
    return "".join(f"\\u{encoded[at] << 8 | encoded[at + 1]:04x}" for at in range(0, len(encoded), 2))


def await_executors(spark: "SparkSession", needed: int, stores: Iterable[str]) -> None:
    """Wait until the cluster can run `needed` tasks at the same time, then check that its hosts can use the stores.

    Raises `ServiceUnavailable` if the cluster has too few task slots. Raises `InvalidInput` if the cluster has several
    hosts, but one of the `stores` works on one host only.
    """
    # In this order, because only registered executors have known hosts.
    await_slots(spark, max(needed, 1))
    for store in stores:
        check_store(store, hosts(spark))


def await_slots(spark: "SparkSession", needed: int) -> None:
    """Wait until `needed` tasks can run at once. Raises `ServiceUnavailable` after `SLOT_SECONDS`."""
    context = spark.sparkContext
    end = time.monotonic() + SLOT_SECONDS
    while (count := slots(spark)) < needed:
        if time.monotonic() > end:
            raise ServiceUnavailable(
                f"{context.master} has too few free task slots: {too_few(count, needed)}, or end other applications."
            )
        time.sleep(0.1)


def slots(spark: "SparkSession") -> int:
    """Return how many tasks the registered executors can run at the same time."""
    if len(_inner(spark).statusTracker().getExecutorInfos()) < 2:  # the driver is always among them
        return 0
    # On a standalone cluster this is the number of cores of all registered executors.
    return int(spark.sparkContext.defaultParallelism)


def hosts(spark: "SparkSession") -> set[str]:
    """Return the host names of the driver and of all registered executors."""
    keys = _inner(spark).getExecutorMemoryStatus().keys().iterator()
    names = set()
    while keys.hasNext():
        names.add(str(keys.next()).rpartition(":")[0])
    return names


def _inner(spark: "SparkSession") -> Any:
    # The JVM's SparkContext, because PySpark's has no methods about executors.
    return spark.sparkContext._jsc.sc()  # noqa: SLF001 - no public name


def check_store(store: str, places: set[str]) -> None:
    """Raise `InvalidInput` if the run is on several hosts (`places`), but its store is a file for one host only."""
    if store in _ON_ONE_HOST and len(places) > 1:
        raise InvalidInput(
            f"--store {store}: only programs on one host can use this store's file, but this run is on the hosts "
            f"{', '.join(sorted(places))}; use --store postgres, or --store files on a shared disk."
        )


def check_speculation(supported: bool, sink: str, setting: Callable[[str, str], str | None]) -> None:
    """Raise `InvalidInput` if spark.speculation is on, but the sink does not support it (`supported` is False).

    `setting` is a function that takes the name and the default of a Spark property and returns the property's value.
    """
    if supported or (setting("spark.speculation", "false") or "false").lower() != "true":
        return
    raise InvalidInput(
        f"spark.speculation is on, but the sink {sink} does not support it: two attempts of a task would write the "
        "same rows. Turn spark.speculation off, or use the sink batch_marker or two_phase."
    )
