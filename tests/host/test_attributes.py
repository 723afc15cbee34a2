"""Changes of times, modes, owners and extended attributes are seen, of real programs, and calls that change nothing
are not.
"""

import array
import fcntl
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from watched_programs import NUMBERS, python, run, shell

from labkit.host.syscalls.calls import Answer, Call, CallKind

pytestmark = pytest.mark.usefixtures("watched_calls")


def changed(calls: list[Call], folder: Path) -> list[str]:
    """Which system call changed the attributes of which file, in order."""
    return [f"{each.name} {each.path.replace(f'{folder}/', '')}" for each in calls if each.kind is CallKind.ATTRIBUTES]


def has_extended_attributes(folder: Path) -> bool:
    probe = folder.with_name("probe")
    probe.touch()
    try:
        os.setxattr(probe, "user.probe", b"1")
    except OSError:
        return False
    return True


def test_times_of_paths_folders_links_and_descriptors(place: Path) -> None:
    (place / "d").mkdir()
    (place / "d" / "a").touch()
    (place / "link").symlink_to("d/a")
    _, calls = python(
        place,
        """
        import os
        os.utime("d/a", (1, 1))
        os.utime("d", (1, 1))
        os.utime("link", (1, 1))
        os.utime("link", (1, 1), follow_symlinks=False)
        folder = os.open("d", os.O_RDONLY)
        os.utime("a", (1, 1), dir_fd=folder)
        os.utime(os.open("d/a", os.O_RDONLY), (1, 1))
        os.utime("/proc/self/cwd/d/a", (1, 1))
        for missing in ("gone", "d/gone", "gone/a"):
            try:
                os.utime(missing, (1, 1))
            except FileNotFoundError:
                pass
        """,
    )
    assert changed(calls, place) == [
        "utimensat d/a",
        "utimensat d",
        "utimensat d/a",
        "utimensat link",
        "utimensat d/a",
        "utimensat d/a",
        "utimensat d/a",
    ]


def test_a_path_may_be_empty_or_missing(place: Path) -> None:
    _, calls = python(
        place,
        f"""
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        calls = {NUMBERS!r}
        def call(name, *of):
            return libc.syscall(calls[name], *of)
        IS_DESCRIPTOR, HERE = 0x1000, -100
        file = os.open("a", os.O_CREAT | os.O_RDWR, 0o600)
        assert call("utimensat", file, None, None, 0) == 0
        assert call("utimensat", file, b"", None, IS_DESCRIPTOR) == 0
        assert call("utimensat", file, b"", None, 0) == -1
        assert call("fchownat", HERE, b"", -1, os.getgid() or 1, IS_DESCRIPTOR) in (0, -1)
        assert call("utimensat", HERE, b"", None, IS_DESCRIPTOR) == 0
        call("fchmodat2", file, b"", 0o640, IS_DESCRIPTOR)
        os.unlink("a")
        assert call("utimensat", file, None, None, 0) == 0
        """,
    )
    seen = changed(calls, place)
    assert seen[:2] == ["utimensat a", "utimensat a"]
    assert [each for each in seen[2:] if "fchownat" not in each] == [f"utimensat {place}", "fchmodat2 a"]


OLD_CALLS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
calls = {numbers!r}
os.close(os.open("a", os.O_CREAT, 0o600))
def call(name, *of):
    assert libc.syscall(calls[name], *of) == 0, name
call("utime", b"a", None)
call("utimes", b"a", None)
call("futimesat", -100, b"a", None)
call("futimesat", os.open("a", os.O_RDONLY), None, None)
call("chmod", b"a", 0o644)
"""


def test_the_older_calls_too(place: Path) -> None:
    if "utime" not in NUMBERS:
        pytest.skip("This processor has no such calls.")
    ended, calls = python(place, OLD_CALLS.format(numbers=NUMBERS))
    assert ended.status == 0
    assert changed(calls, place) == ["utime a", "utimes a", "futimesat a", "futimesat a", "chmod a"]


def test_flags_by_path_are_an_effect_also_of_what_a_link_points_to(place: Path) -> None:
    """The kernel may be too old for the call (before 6.17), or the file system may have no flags: it is seen anyway."""
    ended, calls = python(
        place,
        f"""
        import ctypes, os, struct
        os.close(os.open("a", os.O_CREAT, 0o600))
        os.symlink("a", "link")
        NO_DUMP = struct.pack("QIIII", 0x80, 0, 0, 0, 0)
        for path in (b"a", b"link", b"none"):
            ctypes.CDLL(None).syscall({NUMBERS["file_setattr"]}, -100, path, NO_DUMP, len(NO_DUMP), 0)
        """,
    )
    assert ended.status == 0
    assert changed(calls, place) == ["file_setattr a", "file_setattr a"]


def test_a_mode_or_an_owner_that_is_already_there_is_no_effect(place: Path) -> None:
    (place / "a").touch(mode=0o600)
    ended, calls = python(
        place,
        """
        import os
        os.chmod("a", 0o600)
        os.chmod("a", 0o644)
        os.chmod("a", 0o644)
        file = os.open("a", os.O_RDONLY)
        os.fchmod(file, 0o644)
        os.fchmod(file, 0o4755)
        os.chown("a", -1, -1)
        os.chmod("a", 0o600)
        os.chown("a", os.getuid(), os.getgid())
        os.lchown("a", -1, os.getgid())
        os.fchown(file, os.getuid(), -1)
        if os.getuid() == 0:
            os.chown("a", 12, -1)
            os.fchown(file, 12, 13)
            os.lchown("a", 0, 0)
            os.chown("a", 7, 7, dir_fd=os.open(".", os.O_RDONLY))
        """,
    )
    assert ended.status == 0
    owners = ["chown", "fchown", "lchown", "fchownat"] if os.getuid() == 0 else []
    seen = [each.split()[0].replace("fchmodat", "chmod") for each in changed(calls, place)]
    assert seen == ["chmod", "fchmod", "chown", "chmod", *owners]


def test_extended_attributes(place: Path) -> None:
    if not has_extended_attributes(place):
        pytest.skip("This file system has no extended attributes.")
    (place / "link").symlink_to("a")
    ended, calls = python(
        place,
        """
        import os
        file = os.open("a", os.O_CREAT | os.O_RDWR)
        os.setxattr("a", "user.done", b"1")
        os.setxattr("a", "user.done", b"1")
        os.setxattr("link", "user.done", b"2")
        os.setxattr(file, "user.done", b"3")
        os.setxattr(file, "user.empty", b"")
        for flags, name in ((os.XATTR_CREATE, "user.done"), (os.XATTR_REPLACE, "user.other")):
            try:
                os.setxattr("a", name, b"4", flags)
            except OSError:
                continue
            raise AssertionError(name)
        os.removexattr("a", "user.done")
        os.removexattr(file, "user.empty")
        for name in ("user.done", "nonsense.name"):
            try:
                os.removexattr("a", name)
            except OSError:
                continue
            raise AssertionError(name)
        """,
    )
    assert ended.status == 0
    assert changed(calls, place) == [
        "setxattr a",
        "setxattr a",
        "fsetxattr a",
        "fsetxattr a",
        "removexattr a",
        "fremovexattr a",
    ]


READS, SETS, NODUMP = 0x80086601, 0x40086602, 0x40
"""FS_IOC_GETFLAGS, FS_IOC_SETFLAGS and a flag that does no harm, as `chattr +d` sets it."""


def test_flags_are_attributes(place: Path) -> None:
    """A job may seal its input so. A request that reads them is not held."""
    with (place / "a").open("w") as file:
        try:
            fcntl.ioctl(file, SETS, array.array("l", [0]))
        except OSError:
            pytest.skip("This file system has no flags.")
    ended, calls = python(
        place,
        f"""
        import array, fcntl, os
        file = os.open("a", os.O_RDWR)
        flags = array.array("l", [0])
        fcntl.ioctl(file, {READS}, flags, True)
        flags[0] |= {NODUMP}
        fcntl.ioctl(file, {SETS}, flags)
        """,
    )
    assert ended.status == 0
    assert changed(calls, place) == ["ioctl a"]
    assert [call.name for call in calls].count("ioctl") == 1


def test_a_held_change_never_happens(place: Path) -> None:
    (place / "a").touch(mode=0o600)
    before = (place / "a").stat()
    for command in ("chmod 644 a", "touch -d @1 a"):

        def kill(call: Call) -> Answer:
            return Answer.KILL if call.kind is CallKind.ATTRIBUTES else Answer.GO_ON

        ended, _ = shell(place, command, decide=kill)
        assert ended.held is not None
        after = (place / "a").stat()
        assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)


TOOLS = {
    "touch": ("touch a; touch a; touch -h link", ["utimensat a", "utimensat a", "utimensat link"]),
    "cp": ("cp -p old new", ["new"]),
    "install": ("install -m 640 old new", ["new"]),
    "tar": ("tar cf t old && mkdir x && tar xf t -C x", ["x/old"]),
    "sed": ("chmod 640 old; sed -i s/o/0/ old", ["old"]),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_common_tools_do_the_same_under_watch(place: Path, tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"No {tool} on PATH.")
    command, seen = TOOLS[tool]
    results = []
    for name in ("alone", "again"):
        folder = place / name
        folder.mkdir()
        (folder / "old").write_text("old")
        (folder / "link").symlink_to("nowhere")
        os.utime(folder / "old", (1, 1))
        ended, calls = shell(folder, command)
        assert ended.status == 0
        results.append([f"{each.kind} {(each.target or each.path).replace(str(folder), '')}" for each in calls])
        for each in seen:
            assert any(each in call for call in changed(calls, folder)), changed(calls, folder)
    without_random = [[re.sub("sed.{6}$", "sed", each) for each in result] for result in results]
    assert without_random[0] == without_random[1]
    if tool == "cp":
        assert (place / "again" / "new").stat().st_mtime == 1


def test_a_copy_of_python_with_its_times(place: Path) -> None:
    (place / "old").write_text("old")
    os.utime(place / "old", (1, 1))
    program = "import shutil; shutil.copy2('old', 'new')"
    ended, calls = run(place, [sys.executable, "-c", program])
    assert ended.status == 0
    assert "utimensat new" in changed(calls, place)
    assert (place / "new").stat().st_mtime == 1
