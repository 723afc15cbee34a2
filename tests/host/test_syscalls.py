"""A watched command: what it asks the kernel for is seen, in order, and what is held never happens. No JVM here.

Every program is a real one under a real filter; the servers are real sockets of this process.
"""

import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from waiting import until
from watched_programs import NUMBERS, go_on, python, run, shell

from labkit.core.errors import InvalidInput, JobFailed, ServiceUnavailable
from labkit.crashtest.harness.leftovers import MARK, marked_processes
from labkit.host.syscalls import guarding
from labkit.host.syscalls.ahead import Ahead
from labkit.host.syscalls.calls import Answer, Call, CallKind
from labkit.host.syscalls.support import kernel_of, refusal, supported
from labkit.host.syscalls.table import ARCHITECTURES, QUESTIONS
from labkit.host.syscalls.watching import watch

ROOT = Path(__file__).parents[2]


pytestmark = pytest.mark.usefixtures("watched_calls")


def told(calls: Sequence[Call], folder: Path) -> list[str]:
    """The calls below a folder in a few words, in order."""
    return [
        " ".join(filter(None, [each.kind.value, each.path, each.target])).replace(f"{folder}/", "")
        for each in calls
        if str(folder) in each.path + each.target or each.kind in (CallKind.SEND, CallKind.EXIT)
    ]


def alive(folder: Path) -> list[int]:
    """Processes that were started by a watched command of this test."""
    return marked_processes(str(folder))


# What is seen.


def test_a_shell_script(place: Path) -> None:
    ended, calls = shell(
        place,
        "echo one > a; echo two >> a; mv a b; mkdir d; mkdir -p d; ln b d/c; ln -s b s; : > b; rm b; echo seen; exit 3",
    )
    assert told(calls, place) == [
        "create a",
        "write a",
        "write a",
        "rename a b",
        "mkdir d",
        "link b d/c",
        "link b s",
        "truncate b",
        "unlink b",
        "exit",
    ]
    assert [call.number for call in calls] == list(range(1, 11))
    assert (ended.status, ended.held, ended.emptied) == (3, None, None)
    assert calls[-1].size == 3
    assert ended.calls >= len(calls)
    assert [call.seconds for call in calls] == sorted(call.seconds for call in calls)
    assert place.with_name("work.out").read_text() == "seen\n"


def test_threads_and_children_of_a_python_program(place: Path) -> None:
    ended, calls = python(
        place,
        """
        import os, subprocess, sys, threading
        def write(name):
            with open(name, "wb") as file:
                file.write(b"12345")
                file.flush()
                os.fsync(file.fileno())
        threads = [threading.Thread(target=write, args=(f"thread-{n}",)) for n in range(4)]
        [each.start() for each in threads]
        [each.join() for each in threads]
        if os.fork() == 0:
            write("forked")
            os._exit(0)
        os.wait()
        subprocess.run([sys.executable, "-I", "-S", "-c", "import os; os.rename('forked', 'renamed')"], check=True)
        """,
    )
    assert ended.status == 0
    for file in [f"thread-{number}" for number in range(4)] + ["forked"]:
        own = [each for each in calls if each.path == f"{place}/{file}"]
        kinds = [each.kind.value for each in own]
        assert kinds[:3] == ["create", "write", "sync"]
        assert own[1].size == 5
    writers = {each.pid for each in calls if "thread-" in each.path}
    assert len(writers) == 4
    assert len({each.process for each in calls if "thread-" in each.path}) == 1
    by_process = {each.process for each in calls}
    assert len(by_process) == 3
    assert told(calls, place)[-2:] == ["rename forked renamed", "exit"]


C_PROGRAM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
int main(void) {
  mkdir("sub", 0777);
  int folder = open("sub", O_RDONLY | O_DIRECTORY);
  int file = openat(folder, "f", O_CREAT | O_RDWR, 0666);
  struct iovec two[2] = {{"abc", 3}, {"defg", 4}};
  pwritev(file, two, 2, 10);
  pwrite(file, "xy", 2, 1);
  fdatasync(file);
  ftruncate(file, 5);
  ftruncate(file, 5);
  fsync(folder);
  int log = openat(folder, "log", O_CREAT | O_WRONLY | O_APPEND | O_DSYNC, 0666);
  write(log, "one", 3);
  write(log, "two", 3);
  int nameless = open("sub", O_TMPFILE | O_RDWR, 0666);
  write(nameless, "secret", 6);
  char own[64];
  snprintf(own, sizeof own, "/proc/self/fd/%d", nameless);
  linkat(AT_FDCWD, own, folder, "linked", AT_SYMLINK_FOLLOW);
  renameat(folder, "f", AT_FDCWD, "moved");
  chdir("sub");
  unlink("../sub/log");
  write(log, "gone", 4);
  unlink("missing");
  rename("missing", "other");
  write(99, "x", 1);
  mkdir("no/such", 0777);
  open("no/such/f", O_CREAT | O_WRONLY, 0666);
  rename("linked", "no/such/f");
  rmdir("../sub");
  unlink("../sub");
  return 0;
}
"""


def test_a_c_program(place: Path, tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("No C compiler (cc) on PATH.")
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(C_PROGRAM)
    subprocess.run([compiler, "-w", "-o", program, source], check=True)
    _, calls = run(place, [str(program)], contents=True)
    assert told(calls, place) == [
        "mkdir sub",
        "create sub/f",
        "write sub/f",
        "write sub/f",
        "sync sub/f",
        "truncate sub/f",
        "truncate sub/f",
        "sync sub",
        "create sub/log",
        "write sub/log",
        "write sub/log",
        "link sub/linked",
        "rename sub/f moved",
        "unlink sub/log",
        "exit",
    ]
    writes = [each for each in calls if each.kind is CallKind.WRITE]
    assert [(each.offset, each.content, each.synced) for each in writes] == [
        (10, b"abcdefg", False),
        (1, b"xy", False),
        (0, b"one", True),
        (3, b"two", True),
    ]
    assert [each.size for each in calls if each.kind is CallKind.TRUNCATE] == [5, 5]


def test_bytes_that_the_kernel_copies_are_writes(place: Path) -> None:
    (place / "source").write_bytes(b"0123456789")
    _, calls = python(
        place,
        """
        import os
        source, copy = os.open("source", os.O_RDONLY), os.open("copy", os.O_CREAT | os.O_WRONLY)
        os.copy_file_range(source, copy, 4)
        os.copy_file_range(source, copy, 100, offset_src=7, offset_dst=20)
        os.sendfile(copy, source, 2, 3)
        reading, writing = os.pipe()
        os.splice(source, writing, 5, offset_src=1)
        os.splice(reading, copy, 4, offset_dst=30)
        os.splice(reading, copy, 1)
        """,
        contents=True,
    )
    assert (place / "copy").read_bytes()[30:] == b"1234"
    writes = [each for each in calls if each.kind is CallKind.WRITE]
    assert [(each.name, each.offset, each.content) for each in writes] == [
        ("copy_file_range", 0, b"0123"),
        ("copy_file_range", 20, b"789"),
        ("sendfile", 4, b"234"),
        ("splice", 30, None),
        ("splice", 7, None),
    ]


def test_what_is_printed_is_no_call_and_what_is_redirected_is(place: Path) -> None:
    _, calls = shell(place, "echo printed; echo wrong >&2; echo file > /dev/null; echo kept >> log; echo piped | cat")
    assert told(calls, place) == ["create log", "write log", "exit"]
    printed = place.with_name("work.out").read_text()
    assert printed == "printed\nwrong\npiped\n"


def test_only_the_wanted_kinds_are_asked_about(place: Path) -> None:
    wanted = frozenset({CallKind.RENAME})
    _, calls = shell(place, "echo one > a; mv a b", kinds=wanted)
    assert told(calls, place) == ["rename a b"]


# Sockets.


@contextmanager
def server(family: int, address: object) -> Iterator[socket.socket]:
    """A server of this process, so outside of the command, that takes whatever comes."""
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.bind(address)
        listening.listen()

        def take() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    while connection.recv(4096):
                        pass

        thread = threading.Thread(target=take)
        thread.start()
        yield listening
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


INTERNAL = """
import os, socket, sys, threading
def talk(family, where):
    listening = socket.socket(family)
    listening.bind(where)
    listening.listen()
    if os.fork() == 0:
        connection, _ = listening.accept()
        listening.close()
        while connection.recv(100):
            connection.sendall(b"answer")
        os._exit(0)
    address = listening.getsockname()
    client = socket.socket(family)
    client.connect(address)
    listening.close()
    for _ in range(3):
        client.sendall(b"internal")
        client.recv(100)
    client.close()
    os.wait()
talk(socket.AF_INET, ("127.0.0.1", 0))
talk(socket.AF_INET6, ("::", 0)) if socket.has_ipv6 else None
talk(socket.AF_UNIX, "own.sock")
talk(socket.AF_UNIX, "\\0labkit-own-%d" % os.getpid())
one, two = socket.socketpair()
one.sendall(b"pair")
"""


def test_bytes_for_a_server_are_seen_and_those_between_own_processes_are_not(place: Path) -> None:
    with server(socket.AF_INET, ("127.0.0.1", 0)) as tcp, server(socket.AF_UNIX, str(place / "their.sock")):
        port = tcp.getsockname()[1]
        outside = f"""
        import os, socket
        tcp = socket.create_connection(("127.0.0.1", {port}))
        tcp.sendall(b"12345")
        os.write(tcp.fileno(), b"123")
        tcp.sendmsg([b"1", b"23"])
        unix = socket.socket(socket.AF_UNIX)
        unix.connect("their.sock")
        unix.sendall(b"1234567")
        wide = socket.socket(socket.AF_INET6)
        wide.connect(("::ffff:127.0.0.1", {port}))
        wide.sendall(b"1")
        """
        ended, calls = python(place, INTERNAL + textwrap.dedent(outside))
        assert ended.status == 0, place.with_name("work.out").read_text()
    sends = [(each.target, each.size) for each in calls if each.kind is CallKind.SEND]
    peer = f"127.0.0.1:{port}"
    assert sends == [(peer, 5), (peer, 3), (peer, 3), (f"unix:{place}/their.sock", 7), (peer, 1)]
    heads = [each.head for each in calls if each.kind is CallKind.SEND]
    assert heads == [b"12345", b"123", b"123", b"1234567", b"1"]


def test_a_message_to_a_named_peer(place: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taker:
        taker.bind(("127.0.0.1", 0))
        port = taker.getsockname()[1]
        _, calls = python(
            place,
            f"""
            import socket
            box = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            box.sendto(b"abc", ("127.0.0.1", {port}))
            """,
        )
    sends = [(each.target, each.size) for each in calls if each.kind is CallKind.SEND]
    assert sends == [(f"127.0.0.1:{port}", 3)]


# What is held never happens.


def test_a_held_call_never_happens_and_nothing_is_left(place: Path) -> None:
    def decide(call: Call) -> Answer:
        return Answer.KILL if call.kind is CallKind.RENAME else Answer.GO_ON

    ended, calls = shell(place, "sleep 600 & echo one > a; mv a b; echo two > c", decide=decide)
    assert sorted(path.name for path in place.iterdir()) == ["a"]
    assert ended.status is None
    assert ended.held == calls[-1]
    assert ended.held.kind is CallKind.RENAME
    assert len(ended.emptied.killed) >= 3
    assert ended.emptied.left == []
    assert alive(place) == []


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            with open("beat", "a") as file:
                file.write("x")
            time.sleep(0.005)
    os._exit(0)
os.wait()
while not os.path.exists("beat") or not os.path.getsize("beat"):
    time.sleep(0.01)
open("ready", "x").close()
"""


@pytest.mark.parametrize("after", ["", "time.sleep(600)"])
def test_a_daemon_that_left_its_session_is_killed_too(place: Path, after: str) -> None:
    def decide(call: Call) -> Answer:
        return Answer.KILL if call.path.endswith("ready") and after else Answer.GO_ON

    ended, _ = python(place, DAEMON + after, decide=decide, linger=0.2)
    assert ended.status == (None if after else 0)
    assert ended.emptied.killed
    assert alive(place) == []
    size = (place / "beat").stat().st_size
    assert size
    assert (place / "ready").exists() is not bool(after)


def test_the_end_of_the_command_is_a_call(place: Path) -> None:
    def decide(call: Call) -> Answer:
        return Answer.KILL if call.kind is CallKind.EXIT else Answer.GO_ON

    ended, calls = shell(place, "(exit 4); echo one > a; exit 5", decide=decide)
    assert (ended.status, calls[-1].kind, calls[-1].size) == (None, CallKind.EXIT, 5)
    assert (place / "a").read_text() == "one\n"


def test_a_tick_can_kill(place: Path) -> None:
    ticks = []

    def tick() -> Answer:
        ticks.append(time.monotonic())
        return Answer.KILL if len(ticks) == 3 else Answer.GO_ON

    ended, _ = shell(place, "sleep 600", tick=tick)
    assert (ended.status, ended.held, len(ticks)) == (None, None, 3)
    assert alive(place) == []


def test_a_signal_that_kills_the_command_is_its_status(place: Path) -> None:
    ended, calls = shell(place, "kill -TERM $$")
    assert ended.status == -signal.SIGTERM
    assert calls == []


@pytest.mark.parametrize("where", ["decide", "tick"])
def test_an_error_of_the_caller_comes_back_when_everything_is_dead(place: Path, where: str) -> None:
    def fail(*_call: Call) -> Answer:
        raise KeyError(where)

    with pytest.raises(KeyError, match=where):
        shell(place, "sleep 600 & echo one > a; sleep 600", **{where: fail})
    assert alive(place) == []
    assert not (place / "a").exists() or where == "tick"


def test_a_call_is_told_once_however_often_signals_interrupt_it(place: Path) -> None:
    ended, calls = python(
        place,
        """
        import os, signal
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        file = os.open("f", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        for _ in range(300):
            os.write(file, b"x")
        signal.setitimer(signal.ITIMER_REAL, 0)
        """,
    )
    assert ended.status == 0
    writes = [each for each in calls if each.kind is CallKind.WRITE]
    assert len(writes) == 300 == (place / "f").stat().st_size


# Nothing is left behind.

WATCHER = """
import os, sys
from pathlib import Path
from labkit.host.syscalls.calls import Answer
from labkit.host.syscalls.watching import watch
folder = Path(sys.argv[1])
def decide(call):
    print(call.kind, flush=True)
    return Answer.GO_ON
watch(["sh", "-c", sys.argv[2]], folder=folder, environment={**os.environ, "LABKIT_SYSCALLS_TEST": str(folder)},
      output=folder.parent / "out", decide=decide)
"""
KILLING = (
    WATCHER.replace("return", "return Answer.KILL if call.kind == 'rename' else").replace("watch([", "ended = watch([")
    + "for name in ended.unseen: print('unseen:', name, sep=chr(10))\n"
)
TREE = "setsid sh -c 'while :; do echo x >> beat; done' & (sleep 600 &) ; while :; do echo one > a; mv a b; done"


def watcher(place: Path, command: str, **options: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", WATCHER, place, command], cwd=ROOT, stdout=subprocess.PIPE, **options
    )


def guards(parent: int) -> list[psutil.Process]:
    found = []
    for each in psutil.Process(parent).children():
        with suppress(psutil.Error):  # another child may end meanwhile, or be a zombie
            if "labkit.host.syscalls.guard" in each.cmdline():
                found.append(each)
    return found


def killed_after(place: Path, lines: int, seconds: float) -> None:
    """A watcher that is killed when it has seen so many calls, and some seconds more."""
    with watcher(place, TREE) as process:
        for _ in range(lines):
            assert process.stdout.readline()
        guard = guards(process.pid)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()
    until(lambda: not alive(place), "everything ended with its watcher", 30)
    until(lambda: not any(map(psutil.Process.is_running, guard)), "the guard ended", 30)


def test_nothing_outlives_a_watcher_that_was_killed(place: Path) -> None:
    for lines in (0, 1, 8):
        killed_after(place, lines, 0.15 if lines == 0 else 0.0)


@pytest.mark.slow
def test_nothing_outlives_a_watcher_that_was_killed_at_twenty_moments(place: Path) -> None:
    for moment in range(20):
        killed_after(place, moment if moment % 2 else 0, 0.05 * moment)


def test_a_guard_that_dies_at_once_is_said_in_one_sentence(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its socket then closes while the order is still unread, so that reading from it fails."""
    monkeypatch.setattr(guarding, "own_python", lambda *_words: ["/bin/sh", "-c", "sleep 0.2"])
    with pytest.raises(JobFailed, match="died before it could do so"):
        run(place, ["true"])


def test_nothing_outlives_a_guard_that_was_killed(place: Path) -> None:
    guard: list[psutil.Process] = []

    def decide(call: Call) -> Answer:
        if call.path.endswith("beat") and not guard:
            guard.extend(guards(os.getpid()))
            for process in guard:
                process.kill()
        return Answer.GO_ON

    with pytest.raises(JobFailed, match="guard process of the watched command was killed"):
        shell(place, TREE, decide=decide)
    assert guard
    until(lambda: not alive(place), "everything ended with its guard", 30)


# Who may watch.


WITHOUT_RIGHTS = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"]
"""Root's processes without a single capability; to the kernel they are any user's."""
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
READS = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
"""So that nobody can start an interpreter that lies in root's home. It has no say in what is tested here."""


@pytest.mark.parametrize("before", [NOBODY + READS, WITHOUT_RIGHTS], ids=["nobody", "no rights"])
def test_an_ordinary_user_may_watch(before: list[str]) -> None:
    if os.getuid() != 0:
        pytest.skip("Only root can give up rights; here everything else runs as an ordinary user.")
    _kills_at_a_rename(before)


def test_a_user_namespace_without_rights_may_watch() -> None:
    before = ["unshare", "-Ur"]  # in there root has no right over anything outside
    if subprocess.run([*before, "true"], check=False, capture_output=True).returncode:
        pytest.skip("This machine makes no user namespaces (unshare -Ur).")
    _kills_at_a_rename(before)


def _kills_at_a_rename(before: Sequence[str]) -> None:
    text = "mkdir killed; echo one > killed/a; sleep 600 & mv killed/a killed/b"
    assert _watched_by(before, text) == ["mkdir", "create", "write", "rename", "a"]


def _watched_by(before: Sequence[str], command: str) -> list[str]:
    """Somebody else watches a command, and kills it at a rename: what was seen, and what is there then."""
    with tempfile.TemporaryDirectory() as top:
        place = Path(top).resolve() / "work"
        place.mkdir()
        for folder in (Path(top), place):
            folder.chmod(0o777)
        done = subprocess.run(
            [*before, sys.executable, "-c", KILLING, place, command],
            cwd=top,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert alive(place) == []
        killed = place / "killed"
        left = [path.name for path in killed.iterdir()] if killed.exists() else []
        return done.stdout.splitlines() + left


# What cannot be followed is counted and named.


def test_what_cannot_be_followed_is_counted(place: Path) -> None:
    ended, calls = python(
        place,
        """
        import ctypes, mmap, os
        file = os.open("mapped", os.O_CREAT | os.O_RDWR)
        os.ftruncate(file, 4096)
        with mmap.mmap(file, 4096) as whole:
            whole[0:3] = b"abc"
        mmap.mmap(-1, 4096)
        mmap.mmap(file, 4096, prot=mmap.PROT_READ)
        ctypes.CDLL(None).syscall(425, 1, ctypes.create_string_buffer(120))
        """,
    )
    assert dict(ended.unseen) == {"mmap of a writable file": 1, "io_uring": 1}
    assert ended.unseen_paths == {"mmap of a writable file": (f"{place}/mapped",)}
    assert told(calls, place) == ["create mapped", "truncate mapped", "exit"]


MAPS = """
import ctypes, mmap, os
libc = ctypes.CDLL(None)
libc.mmap.restype, file = ctypes.c_void_p, os.open("mapped", os.O_CREAT | os.O_RDWR)
os.ftruncate(file, 4096)
place = libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_SHARED, file, 0)
"""
PROTECTS = "libc.mprotect(ctypes.c_void_p(place), 4096, mmap.PROT_READ | mmap.PROT_WRITE)"


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        (f"{MAPS}{PROTECTS}", 1),
        (f"{MAPS}os.close(file)\nif os.fork(): os.wait()\nelse: {PROTECTS}", 1),
        (MAPS, 0),
        (f"{MAPS}place = libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_PRIVATE, file, 0)\n{PROTECTS}", 0),
        (f"{MAPS}os.unlink('mapped')\n{PROTECTS}", 0),
    ],
    ids=["made writable", "by a child", "only read", "a copy", "without a name"],
)
def test_a_mapped_file_that_is_made_writable_later_is_counted(place: Path, text: str, counted: int) -> None:
    ended, _ = python(place, text)
    assert ended.status == 0
    assert ended.unseen == ({"mmap of a writable file": counted} if counted else {})
    assert ended.unseen_paths == ({"mmap of a writable file": (f"{place}/mapped",)} if counted else {})


def test_a_command_that_was_started_ahead_counts_every_file_that_may_become_writable(place: Path) -> None:
    log = place.parent / "ahead.out"
    log.touch()
    os.mkfifo(place / "go")
    # Open for both, so that neither end waits for the other to open: the command's `open` is held if it comes late.
    go = os.open(place / "go", os.O_RDWR)
    waits = "open('go', 'rb', buffering=0).read(1)"
    environment = {**os.environ, MARK: str(place)}
    words = [sys.executable, "-I", "-S", "-c", f"{waits}\n{MAPS}"]
    ahead = Ahead(words, folder=place, environment=environment, output=log)
    ended = ahead.watch(go_on, begin=lambda: os.write(go, b"!"))
    ahead.close()
    os.close(go)
    assert ended.unseen == {"mmap of a writable file": 1}


NOTED = {
    "other roots and mounts, because paths then name other files": (
        """
        import ctypes, os
        libc = ctypes.CDLL(None)
        for call in (lambda: os.chroot("missing"), lambda: libc.mount(b"missing", b"missing", None, 0, None),
                     lambda: libc.umount2(b"missing", 0), lambda: libc.setns(-1, 0), lambda: libc.syscall(PIVOT, 0, 0),
                     lambda: libc.syscall(429, -1, 0, -1, 0, 0)):
            try:
                call()
            except OSError:
                pass
        """.replace("PIVOT", str(NUMBERS.get("pivot_root"))),
        ["exit"],
        {"chroot": 1, "pivot_root": 1, "a change of mounts": 3, "setns": 1},
    ),
    "the name and the clock of the machine": (
        """
        import ctypes
        libc = ctypes.CDLL(None)
        libc.sethostname(None, 9999)
        libc.setdomainname(None, 9999)
        libc.syscall(NUMBER, 99, None)
        """.replace("NUMBER", str(NUMBERS.get("clock_settime"))),
        ["exit"],
        {"the name or the clock of the machine": 3},
    ),
    # An object without a key dies with those who know its number, and others may find it again.
    "what outlives every process and is no file": (
        """
        import ctypes, os
        libc = ctypes.CDLL(None)
        libc.shmat.restype = ctypes.c_void_p
        for key in (0, os.getpid(), os.getpid() + 10_000_000):
            memory = libc.shmget(key, 4096, 0o1600)
            libc.shmat(memory, None, 0o10000)
            libc.shmat(memory, None, 0)
            libc.shmctl(memory, 0, None)
            semaphores = libc.semget(key, 1, 0o1600)
            libc.semctl(semaphores, 0, 12)
            libc.semctl(semaphores, 0, 16, 3)
            libc.semop(semaphores, (1 << 16).to_bytes(6, "little"), 1)
            libc.semctl(semaphores, 0, 0)
            queue = libc.msgget(key, 0o1600)
            message = ctypes.create_string_buffer((8).to_bytes(8, "little") + b"a")
            libc.msgsnd(queue, message, 1, 0)
            libc.msgrcv(queue, message, 1, 0, 0)
            libc.msgctl(queue, 0, None)
        """,
        ["exit"],
        {"SysV shared memory": 4, "SysV semaphores": 6, "a SysV message queue": 6},
    ),
    "the write hint of a file, and no other request of fcntl": (
        """
        import fcntl, os, struct
        file = os.open("f", os.O_RDWR | os.O_CREAT)
        fcntl.fcntl(file, 1036, struct.pack("Q", 3))  # F_SET_RW_HINT
        assert fcntl.fcntl(file, 1035, bytes(8)) == struct.pack("Q", 3)
        fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
        """,
        ["create f", "attributes f", "exit"],
        {},
    ),
    "allocated blocks, although size and contents stay": (
        """
        import ctypes, os
        file = os.open("f", os.O_RDWR | os.O_CREAT)
        libc = ctypes.CDLL(None)
        libc.fallocate(file, 1, ctypes.c_long(0), ctypes.c_long(4096))  # FALLOC_FL_KEEP_SIZE
        os.posix_fallocate(file, 0, 4096)
        os.posix_fallocate(file, 0, 4096)
        """,
        ["create f", "attributes f", "truncate f", "attributes f", "exit"],
        {},
    ),
}
"""Programs, each with the calls that are seen, and how often something was noted that cannot be followed."""


@pytest.mark.parametrize("name", NOTED)
def test_what_a_later_start_may_find_is_seen_or_counted(place: Path, name: str) -> None:
    text, seen, counted = NOTED[name]
    ended, calls = python(place, text)
    assert ended.status == 0
    assert told(calls, place) == seen
    assert dict(ended.unseen) == counted


def test_what_only_exists_is_a_mark_too(place: Path) -> None:
    """A later start may ask whether a name is there: of a Unix socket's file, a queue or an object with a key."""
    ended, calls = python(
        place,
        """
        import ctypes, os, socket
        for name in ("mark", "mark", "", b"\\0mark", "none/mark"):
            with socket.socket(socket.AF_UNIX) as own:
                try:
                    own.bind(name)
                except OSError:
                    pass
        socket.socket().bind(("127.0.0.1", 0))
        libc = ctypes.CDLL(None)
        name = f"/labkit-{os.getpid()}".encode()
        if libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None) >= 0:
            libc.mq_unlink(name)
        libc.msgctl(libc.msgget(os.getpid(), 0o1600), 0, None)
        """,
    )
    assert ended.status == 0
    assert told(calls, place) == ["create mark", "exit"]
    assert ended.unseen.pop("a SysV message queue") >= 1
    assert ended.unseen in ({}, {"a POSIX message queue": 1}, {"a POSIX message queue": 2})


FOREIGN = """
import ctypes, mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))  # mov eax, getpid of i386; int 0x80; ret
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""


def test_a_call_of_another_table_is_counted_and_goes_on(place: Path) -> None:
    alone = subprocess.run([sys.executable, "-I", "-S", "-c", FOREIGN], check=False)
    if alone.returncode:
        pytest.skip("This machine runs no 32-bit system calls.")
    ended, _ = python(place, FOREIGN)
    assert (ended.status, dict(ended.unseen)) == (0, {"a 32-bit system call": 1})


OWN_FILTER = """
import ctypes, errno, os, sys
sys.path.insert(0, {root!r})
from labkit.host.syscalls.filters import install, program
from labkit.host.syscalls.table import Question, architecture
here = architecture()
refused = [Question("mkdir", frozenset()), Question("mkdirat", frozenset())]
refused = [each for each in refused if each.name in here.numbers]
install(here, program(here, refused, 0x00050000 | errno.EPERM), listen=False)
try:
    os.mkdir("refused")
except PermissionError:
    os.rename("a", "b")
try:
    install(here, program(here, refused), listen=True)
except OSError as error:
    assert error.errno == errno.EBUSY
    open("busy", "x").close()
"""


def test_a_program_with_a_filter_of_its_own(place: Path) -> None:
    (place / "a").touch()
    ended, calls = run(place, [sys.executable, "-c", OWN_FILTER.format(root=str(ROOT))])
    assert ended.status == 0, place.with_name("work.out").read_text()
    own = [each for each in told(calls, place) if "pycache" not in each]
    assert own == ["rename a b", "create busy", "exit"]
    assert sum(ended.unseen.values()) >= 1
    assert any("seccomp listener" in each for each in ended.unseen)


def test_a_process_that_forbids_being_read_is_counted() -> None:
    program = "import ctypes, os; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); os.mkdir('hidden')"
    before = WITHOUT_RIGHTS if os.getuid() == 0 else []
    told_there = _watched_by(before, f'{sys.executable} -I -S -c "{program}"')
    assert told_there == ["exit", "unseen:", "a process that forbids reading its memory"]


# Where nothing can be watched.

FORBIDDING = """
import errno, sys
sys.path.insert(0, {root!r})
from labkit.host.syscalls.filters import install, program
from labkit.host.syscalls.support import supported
from labkit.host.syscalls.table import Question, architecture
here = architecture()
install(here, program(here, [Question("seccomp", frozenset())], 0x00050000 | errno.EPERM), listen=False)
print(supported())
"""


def test_a_container_that_forbids_seccomp_is_told_in_one_sentence() -> None:
    told_there = subprocess.run(
        [sys.executable, "-c", FORBIDDING.format(root=str(ROOT))], capture_output=True, text=True, check=True
    ).stdout
    assert told_there.strip() == refusal(1)
    assert "forbids seccomp" in told_there


@pytest.mark.parametrize(
    ("system", "machine", "release", "said"),
    [
        ("darwin", "arm64", "23.1", "Linux only"),
        ("linux", "riscv64", "6.1", "riscv64"),
        ("linux", "x86_64", "5.4.0-42-generic", "Linux 5.5 or newer"),
    ],
)
def test_a_machine_that_cannot_is_told_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, release: str, said: str
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("platform.release", lambda: release)
    sentence = supported()
    assert said in sentence
    assert sentence.endswith(".")
    with pytest.raises(ServiceUnavailable, match=re.escape(said)):
        watch(["true"], folder=Path(), environment={}, output=Path("never"), decide=go_on)
    assert not Path("never").exists()


def test_releases_of_kernels() -> None:
    assert kernel_of("5.15.0-1-generic") == (5, 15)
    assert kernel_of("6.18") == (6, 18)
    assert kernel_of("unknown") == (0, 0)


@pytest.mark.parametrize(
    ("command", "folder", "said"),
    [
        (["/no/such/program"], "", "/no/such/program: No such file"),
        (["true"], "missing", "missing: No such file"),
        (["/etc/passwd"], "", "Permission denied"),
    ],
)
def test_a_command_that_cannot_be_started(place: Path, command: list[str], folder: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        watch(command, folder=place / folder, environment=dict(os.environ), output=place.with_name("out"), decide=go_on)


# The tables.

HEADERS = {"x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "aarch64": "/usr/include/asm-generic/unistd.h"}


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_numbers_are_those_of_the_kernel(machine: str) -> None:
    header = Path(HEADERS[machine])
    if not header.exists():
        pytest.skip(f"No kernel headers here ({header}).")
    pattern = r"#define __NR(?:3264)?_(\w+)\s+(\d+)\b"
    theirs = {name: int(number) for name, number in re.findall(pattern, header.read_text())}
    ours = ARCHITECTURES[machine].numbers
    newest = max(theirs.values())
    assert {name: number for name, number in ours.items() if number <= newest} == {
        name: theirs[name] for name in ours if name in theirs
    }
    asked = {question.name for question in QUESTIONS}
    assert {name for name in asked if name in theirs} <= set(ours)


def test_the_filter_is_small_enough_for_its_jumps() -> None:
    from labkit.host.syscalls.filters import program

    for here in ARCHITECTURES.values():
        asked = [each for each in QUESTIONS if each.name in here.numbers]
        instructions = program(here, asked)
        assert len(instructions) < 4096
        assert all(0 <= each.holds < 256 and 0 <= each.fails < 256 for each in instructions)
        assert ctypes.sizeof(ctypes.c_void_p) == 8
