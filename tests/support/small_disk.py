"""A disk that is soon full, where this user may mount one."""

import subprocess
import time
from pathlib import Path

import psutil


def mount(place: Path, megabytes: int) -> bool:
    """Mounts a disk of this size, in memory; says whether that was allowed."""
    place.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def fill(place: Path, free: int) -> Path:
    """A file that leaves so many bytes."""
    ballast = place / "ballast"
    ballast.write_bytes(bytes(psutil.disk_usage(str(place)).free - free))
    return ballast


def unmount(place: Path) -> None:
    """Takes the disk away, as soon as nobody holds a file there."""
    end = time.monotonic() + 30
    while subprocess.run(["umount", str(place)], capture_output=True, check=False).returncode:
        assert time.monotonic() < end, "the kernel does not let go of the small disk"
        time.sleep(0.05)
