"""Find out whether this machine can watch system calls, and if not, explain why in one sentence.

The check asks the kernel; it starts and changes nothing.
"""

import errno
import os
import platform
import re
import sys

from labkit.host.syscalls.filters import offered
from labkit.host.syscalls.table import ARCHITECTURES, architecture

OLDEST_KERNEL = (5, 5)
"""The first Linux version that lets a held call continue (SECCOMP_USER_NOTIF_FLAG_CONTINUE)."""


def supported() -> str:
    """Return "" if this machine can watch system calls, otherwise a sentence with the reason and the remedy."""
    if sys.platform != "linux":
        return f"System calls can be watched on Linux only, not on {platform.system()}; use a Linux machine."
    machine = architecture()
    if machine is None:
        return (
            f"System calls can be watched only on {' and '.join(ARCHITECTURES)} with a 64-bit Python, but this "
            f"is {platform.machine()}."
        )
    if kernel_of(platform.release()) < OLDEST_KERNEL:
        oldest = ".".join(map(str, OLDEST_KERNEL))
        return (
            f"Watching system calls needs Linux {oldest} or newer, but this is {platform.release()}; update the kernel."
        )
    return refusal(offered(machine))


def kernel_of(release: str) -> tuple[int, int]:
    """Return the first two numbers of a Linux release, such as (6, 8) for `6.8.0-45`; (0, 0) if there are none."""
    match = re.match(r"(\d+)\.(\d+)", release)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def refusal(number: int) -> str:
    """Return a sentence on why the kernel refused a seccomp filter with the errno `number`; "" if `number` is 0."""
    if number == 0:
        return ""
    if number == errno.EBUSY:
        return (
            "Another program already watches the system calls of this process, and only one can; run labkit "
            "outside of that program."
        )
    if number in (errno.EPERM, errno.EACCES, errno.ENOSYS):
        return (
            "This container or sandbox forbids seccomp, so system calls cannot be watched; "
            "allow the seccomp call in its profile, or run labkit outside of it."
        )
    return (
        f"The kernel refuses to watch system calls ({os.strerror(number)}), because it was built without "
        "seccomp filters."
    )
