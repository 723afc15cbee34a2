"""A disk that is soon full, where this user may mount one."""

import subprocess
from pathlib import Path

import psutil
from waiting import until


def mount(place: Path, megabytes: float) -> bool:
    """Mounts a disk of this size, in memory; says whether that was allowed."""
    place.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={int(megabytes * 2**20)}", "tmpfs", str(place)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def fill(place: Path, free: int) -> Path:
    """A file that leaves so many bytes."""
    ballast = place / "ballast"
    ballast.write_bytes(bytes(psutil.disk_usage(str(place)).free - free))
    return ballast


def unmount(place: Path) -> None:
    """Takes the disk away, as soon as nobody holds a file there."""
    command = ["umount", str(place)]
    until(lambda: subprocess.run(command, capture_output=True, check=False).returncode == 0, "the small disk", 30)
