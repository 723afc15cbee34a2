"""Confines a process before a learner's code runs in it: with its own root folder, namespaces, limits and few rights.

The process was forked for one notebook. It cannot leave its confinement, so it must not do any other work afterwards.
"""

import os
import resource
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

from labkit.grading.sandbox.inside import linux, seccomp
from labkit.grading.sandbox.inside.jobs import Job, Level, Limits, Place

_SPACES = linux.NEWNS | linux.NEWNET | linux.NEWIPC | linux.NEWUTS | linux.NEWPID
_DEVICES = ("null", "zero", "full", "random", "urandom")
HOME = "/home/learner"
_NAME = "learner"


def separate(job: Job) -> None:
    """Move this process into its own Linux namespaces (network, processes, mounts), except at the level `PLAIN`.

    This process itself stays outside the new process namespace; its next child is the first process inside. Raises
    `OSError`.
    """
    if job.level is Level.USER_NAMESPACES:
        user, group = os.geteuid(), os.getegid()
        _own_users(user, group)
    if job.level is not Level.PLAIN:
        linux.unshare(_SPACES)


def confine(job: Job) -> None:
    """Give this process its own root folder and limits, and drop all its privileges. Raises `OSError`."""
    if job.level is not Level.PLAIN:
        linux.host_name("sandbox")
        build_root(job.place, job.limits, job.place.user if job.level is Level.NAMESPACES else os.geteuid())
    limit(job.limits)
    if job.level is Level.NAMESPACES:
        os.setgroups([])
        os.setresgid(job.place.user, job.place.user, job.place.user)
        os.setresuid(job.place.user, job.place.user, job.place.user)
        _own_users(job.place.user, job.place.user)
    if job.level is not Level.PLAIN:
        # Not earlier, because this limit would then count the processes of all sandboxes of the same user together.
        resource.setrlimit(resource.RLIMIT_NPROC, (job.limits.processes, job.limits.processes))
        # Forbids further user namespaces: there, the learner's code would be root, and could mount uncounted memory.
        Path("/proc/sys/user/max_user_namespaces").write_text("0", encoding="ascii")
        linux.drop_privileges()
        seccomp.forbid()
    if sys.platform == "linux":
        linux.hide_memory()
        linux.die_with_parent(signal.SIGKILL)


def _own_users(user: int, group: int) -> None:
    """Enter a user namespace in which only `user` and `group` exist. Both keep their ids."""
    linux.unshare(linux.NEWUSER)
    linux.hide_memory(hidden=False)  # otherwise these files belong to root, and this process cannot open them
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")


def limit(limits: Limits) -> None:
    """Set Linux's resource limits (setrlimit) for this process and its children."""
    chosen = {
        resource.RLIMIT_AS: limits.memory,
        resource.RLIMIT_FSIZE: limits.file_size,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CPU: int(limits.total_seconds) + 5,
        resource.RLIMIT_CORE: 0,
    }
    for name, most in chosen.items():
        with nullcontext() if sys.platform == "linux" else suppress(ValueError, OSError):
            resource.setrlimit(name, (most, most))


def build_root(place: Place, limits: Limits, user: int) -> None:
    """Replace the root folder of this process by a file system in memory, with at most `limits.disk` bytes.

    The readable folders of `place` are mounted in it, and its `/etc/passwd` contains only the user id `user`.
    """
    root = place.root
    linux.mount("none", "/", flags=linux.REC | linux.PRIVATE)
    options = f"size={limits.disk},nr_inodes=10000,mode=755"
    linux.mount("tmpfs", root, "tmpfs", linux.NOSUID | linux.NODEV, options)
    empty = linux.NOSUID | linux.NODEV
    above = layers(place.shown, place.masked)
    for folder, is_shown in above.items():
        if is_shown:
            _show(root, folder)
        else:
            linux.mount("tmpfs", root + folder, "tmpfs", empty, "size=64k,mode=755")
    for folder in [each for each, is_shown in above.items() if not is_shown]:
        # Made read-only only now, because the mounts inside it had to create their mount points first.
        linux.mount("none", root + folder, "", linux.REMOUNT | linux.RDONLY | empty)
    for name in ("/tmp", "/dev/shm", HOME):
        Path(root + name).mkdir(parents=True, exist_ok=True)
        Path(root + name).chmod(0o1777)
    for name in _DEVICES:
        Path(f"{root}/dev/{name}").touch()
        linux.mount(f"/dev/{name}", f"{root}/dev/{name}", flags=linux.BIND)
    Path(root + "/proc").mkdir()
    linux.mount("proc", root + "/proc", "proc", linux.NOSUID | linux.NODEV)
    etc = Path(root + "/etc")
    etc.mkdir(exist_ok=True)
    (etc / "passwd").write_text(f"{_NAME}:x:{user}:{user}::{HOME}:/bin/sh\n", encoding="ascii")
    (etc / "group").write_text(f"{_NAME}:x:{user}:\n", encoding="ascii")
    linux.change_root(root)


def layers(shown: Sequence[str], masked: Sequence[str]) -> dict[str, bool]:
    """Return the paths to mount in a sandbox, outer folders first, as a dict from path to whether it is readable.

    At a path that is not readable, an empty folder is mounted. Paths in `shown` are readable, unless they are also in
    `masked`. A path is left out if the mounted folders around it already have the same effect.
    """
    wanted = dict.fromkeys(map(Path, shown), True) | dict.fromkeys(map(Path, masked), False)
    mounted: dict[Path, bool] = {}
    for path in sorted(wanted):
        nearest = next((mounted[each] for each in path.parents if each in mounted), False)
        if wanted[path] != nearest:
            mounted[path] = wanted[path]
    return {str(path): is_shown for path, is_shown in mounted.items()}


def _show(root: str, folder: str) -> None:
    """Mount a file or folder of the machine read-only at the same path below `root`; a symbolic link is copied."""
    place, source = Path(root + folder), Path(folder)
    place.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        place.symlink_to(source.readlink())
        return
    if source.is_dir():
        place.mkdir(exist_ok=True)
    else:
        place.touch()
    linux.mount(folder, str(place), flags=linux.BIND | linux.REC)
    flags = os.statvfs(place).f_flag & (linux.NODEV | os.ST_NOEXEC)
    linux.mount("none", str(place), flags=linux.REMOUNT | linux.BIND | linux.RDONLY | linux.NOSUID | flags)
