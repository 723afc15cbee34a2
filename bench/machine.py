"""Describe the machine on which a figure was measured, because a figure means nothing without it."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from bench import flink
from labkit import __version__
from labkit.core.errors import ServiceUnavailable
from labkit.host.class_data import find_archive
from labkit.host.java import find_java


def machine() -> dict[str, str | int | float]:
    """Return processor, cores, memory, system, present load, and the versions of the software, by title."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "memory GB": round(psutil.virtual_memory().total / 1e9, 1),
        "system": _system(),
        "load before": round(os.getloadavg()[0], 2),
        "Python": platform.python_version(),
        "Java": _java(),
        "class-data archive": _archive(),
        "PySpark": _version("pyspark"),
        "PyFlink": os.environ.get(flink.VARIABLE) or _version("apache-flink"),
        "labkit": __version__,
    }


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _system() -> str:
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        name = ""
    return " ".join(filter(None, [name, platform.system(), platform.release()]))


def _java() -> str:
    try:
        java = find_java()
    except ServiceUnavailable:
        return "none"
    return f"{java.release} ({java.source})"


def _archive() -> str:
    try:
        return "used" if find_archive(find_java()) else "none"
    except (ServiceUnavailable, PackageNotFoundError, OSError):
        return "none"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
