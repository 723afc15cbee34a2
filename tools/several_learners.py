"""Test several learners at once on one machine, each a user of the system with a home of their own.

    sudo .venv/bin/python tools/several_learners.py [--learners 8] [--processes 400] [--minutes 45]
        [--turns 2] [--crashes 3]

Linux, as root. Each learner runs one notebook with real crashes of Spark from end to end, the first two with a
PostgreSQL and a Kafka broker of their own, and nbval compares the outputs with those that the notebook states. They
share a temporary folder, the loopback interface and the machine. `--turns` is how many runs may be under way at a time
(LABKIT_TURNS). With `--crashes` each learner has a notebook with that many crashes instead, a minute apart as in a
lesson, and the seconds from each cell to its verdict are printed. Exit 1 if a learner's notebook fails, if a process,
port, file or shared memory of a learner is left, or if a port can be reached from another machine. Prints memory and
processes of each at their peak.

The accounts exist only in a mount namespace of this script: nothing of the machine is changed.
"""

import argparse
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import psutil

from labkit.host.turns import VARIABLE

ROOT = Path(__file__).resolve().parent.parent
FIRST_USER = 60_001 + 16 * (os.getpid() % 300)
"""The first user id, which no account has and which differs each time, to recognise learners' processes and files."""
NOTEBOOKS = ("08_postgres", "09_kafka")
OTHERWISE = "00_start"
CRASHES = "crashes"
SINKS = {"append": [0, 1, 2], "two_phase": []}
"""The sinks that are crashed in turn, each with the rows that are duplicates afterwards."""
CRASH = """import time
from labkit import lab
time.sleep({pause})
begun = time.monotonic()
assert list(lab.crash("sink.after_pre_commit", sink="{sink}").verdict.duplicate) == {rows}
print(time.monotonic() - begun, file=open("seconds.txt", "a"))"""
PAUSE = 60.0
"""The seconds between two crashes of a learner, who reads meanwhile."""
SHARED = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))  # noqa: S108  # looked at, and not written to
INSIDE = "--inside"
EVERY = 1.0
PATIENCE = 20.0
"""The seconds after a learner's end within which the learner's processes must end."""
MEGABYTE = 2**20


@dataclass
class Learner:
    """A learner: the account, its notebook, and the largest use of resources that was observed."""

    user: int
    notebook: str
    home: Path
    process: "subprocess.Popen[bytes] | None" = None
    begun: float = 0.0
    seconds: float = 0.0
    memory: int = 0
    """The largest proportional set size of all processes together, in bytes."""
    tasks: int = 0
    """The largest number of processes and threads, as the kernel's limit counts them."""
    ports: set[int] = field(default_factory=set)

    @property
    def name(self) -> str:
        """The name of the account."""
        return f"learner{self.user - FIRST_USER + 1}"


def main() -> int:
    """Start this script again in a mount namespace, test all learners, print the results, and return the exit code."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--learners", type=int, default=8)
    options.add_argument("--processes", type=int, default=400)
    options.add_argument("--minutes", type=float, default=45.0)
    options.add_argument("--turns", type=int)
    options.add_argument("--crashes", type=int)
    options.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    asked = options.parse_args()
    if os.geteuid() != 0 or not Path("/proc/self/smaps_rollup").exists():
        print("This script needs Linux and root, because each learner is a user of the system; run it with sudo.")
        return 69
    if not asked.inside:
        command = ["unshare", "--mount", "--propagation", "private", sys.executable]
        os.execvp(command[0], [*command, *sys.argv, INSIDE])  # noqa: S606  # no shell
    for number in (signal.SIGINT, signal.SIGTERM):  # a job in the background ignores the first
        signal.signal(number, lambda *_: sys.exit(1))
    place = Path(tempfile.mkdtemp(prefix="labkit-learners-"))
    place.chmod(0o755)
    learners = [
        Learner(FIRST_USER + number, notebook, place / f"learner{number + 1}")
        for number, notebook in enumerate(_notebooks(asked.learners, asked.crashes))
    ]
    try:
        furnish(place, learners, asked.crashes)
        complaints = work(learners, asked.processes, 60 * asked.minutes, _turns(place, asked.turns))
        complaints += list(left_behind(learners))
        tell(learners, asked.processes)
    finally:
        for learner in learners:
            _end(learner)
        with suppress(OSError):
            subprocess.run(["umount", place / "python"], check=False)
        shutil.rmtree(place, ignore_errors=True)
    for complaint in complaints:
        print(f"failed: {complaint}")
    return 1 if complaints else 0


def _notebooks(count: int, crashes: int | None) -> Sequence[str]:
    if crashes:
        return [CRASHES] * count
    first = NOTEBOOKS if count > len(NOTEBOOKS) else ()
    return [*first, *[OTHERWISE] * (count - len(first))]


def _turns(place: Path, most: int | None) -> dict[str, str]:
    """Return the environment variable that allows `most` runs at a time; empty without a number."""
    if most is None:
        return {}
    folder = place / "turns"
    folder.mkdir()
    folder.chmod(0o1777)
    return {VARIABLE: f"{most}:{folder}"}


def _with_crashes(count: int) -> str:
    """Return the JSON of a notebook with this number of crashes."""
    sinks = itertools.islice(itertools.cycle(SINKS), count)
    sources = [CRASH.format(sink=sink, rows=SINKS[sink], pause=PAUSE * bool(n)) for n, sink in enumerate(sinks)]
    cells = [nbformat.v4.new_code_cell(source, metadata={"tags": ["nbval-ignore-output"]}) for source in sources]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return str(nbformat.writes(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})))


def furnish(place: Path, learners: Sequence[Learner], crashes: int | None) -> None:
    """Create accounts and homes, and make this Python accessible to every user if only root can reach it."""
    for name, line in (
        ("passwd", "{0.name}:x:{0.user}:{0.user}::{0.home}:/bin/sh\n"),
        ("group", "{0.name}:x:{0.user}:\n"),
    ):
        text = Path("/etc", name).read_text(encoding="utf-8")
        draft = place / name
        draft.write_text(text + "".join(map(line.format, learners)), encoding="utf-8")
        subprocess.run(["mount", "--bind", draft, Path("/etc", name)], check=True)
    _show_python(place / "python")
    jars = Path.home() / ".cache" / "labkit"
    for learner in learners:
        cache = learner.home / ".cache" / "labkit"
        cache.mkdir(parents=True)
        if crashes:
            (learner.home / f"{CRASHES}.ipynb").write_text(_with_crashes(crashes), encoding="utf-8")
        else:
            shutil.copy(ROOT / "checked" / f"{learner.notebook}.ipynb", learner.home)
        for folder in jars.glob("kafka-*[0-9]"):  # fetched once, as for an image
            if learner.notebook == "09_kafka":
                shutil.copytree(folder, cache / folder.name)
        subprocess.run(["chown", "-R", f"{learner.user}:{learner.user}", learner.home], check=True)
        learner.home.chmod(0o700)


def _show_python(beside: Path) -> None:
    """Make this Python's installation visible at its path for all users, if a folder above it is closed to them."""
    python = Path(sys.base_prefix).resolve()
    closed = [each for each in python.parents if not each.stat().st_mode & 0o001]
    if not closed:
        return
    beside.mkdir()
    subprocess.run(["mount", "--bind", python, beside], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755,size=1m", "tmpfs", closed[-1]], check=True)
    python.mkdir(parents=True)
    subprocess.run(["mount", "--bind", "-o", "ro", beside, python], check=True)


def work(learners: Sequence[Learner], processes: int, seconds: float, turns: Mapping[str, str]) -> list[str]:
    """Start all learners at once, observe them until all have ended, and return a sentence for each failure."""
    complaints: list[str] = []
    deadline = time.monotonic() + seconds
    for learner in learners:
        _begin(learner, processes, seconds, turns)
    busy = list(learners)
    while busy and time.monotonic() < deadline:
        time.sleep(EVERY)
        _look(learners, complaints)
        for learner in list(busy):
            assert learner.process is not None
            if learner.process.poll() is not None:
                learner.seconds = time.monotonic() - learner.begun
                busy.remove(learner)
                if learner.process.returncode != 0:
                    output = (learner.home / "said").read_text(errors="replace")
                    last = "\n".join(output.splitlines()[-40:])
                    complaints.append(f"{learner.name}, {learner.notebook}: exit {learner.process.returncode}\n{last}")
    complaints += [f"{each.name} was not done in {seconds:.0f} s" for each in busy]
    return complaints


def _begin(learner: Learner, processes: int, seconds: float, turns: Mapping[str, str]) -> None:
    """Start nbval on the notebook as the learner, without this user's environment."""
    cell = f"--nbval-cell-timeout={int(seconds)}"
    command = ["prlimit", f"--nproc={processes}:{processes}", sys.executable]
    command += ["-m", "pytest", "-q", "-c", os.devnull, "-p", "conftest"]
    command += ["-p", "no:cacheprovider", f"--rootdir={learner.home}", "--nbval-lax"]
    environment = {
        "HOME": str(learner.home),
        "USER": learner.name,
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'tools'}",
        **turns,
    }
    if java := os.environ.get("JAVA_HOME"):
        environment["JAVA_HOME"] = java
    learner.begun = time.monotonic()
    with (learner.home / "said").open("wb") as output:
        learner.process = subprocess.Popen(
            [*command, cell, f"{learner.notebook}.ipynb"],
            cwd=learner.home,
            env=environment,
            user=learner.user,
            group=learner.user,
            extra_groups=[],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def _look(learners: Sequence[Learner], complaints: list[str]) -> None:
    """Update each learner's largest memory, tasks and ports, and complain about ports open to other machines."""
    memory: dict[int, int] = defaultdict(int)
    tasks: dict[int, int] = defaultdict(int)
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            user = process.uids().real
            if FIRST_USER <= user < FIRST_USER + len(learners):
                tasks[user] += process.num_threads()
                memory[user] += process.memory_full_info().pss
    for learner in learners:
        learner.memory = max(learner.memory, memory[learner.user])
        learner.tasks = max(learner.tasks, tasks[learner.user])
    for user, address, port in _listening():
        if FIRST_USER <= user < FIRST_USER + len(learners):
            learner = learners[user - FIRST_USER]
            if not _is_loopback(address) and port not in learner.ports:
                complaints.append(f"{learner.name} can be reached at {address}:{port}")
            learner.ports.add(port)
    together.append((sum(memory.values()), sum(tasks.values())))


together: list[tuple[int, int]] = []
"""Memory in bytes and number of tasks of all learners together, at each observation."""


def _listening() -> Iterator[tuple[int, str, int]]:
    """Yield the user id, the address as the kernel writes it, and the port of every listening socket."""
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path("/proc/net", table).read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == "0A":
                    address, _, port = words[1].partition(":")
                    yield int(words[7]), address, int(port, 16)


def _is_loopback(address: str) -> bool:
    """Return whether an address, as the kernel writes it, is in 127.0.0.0/8 (also in IPv6 form) or is ::1."""
    if len(address) == 8 or address.startswith("0000000000000000FFFF0000"):
        return address.endswith("7F")
    return address == "00000000000000000000000001000000"


def left_behind(learners: Sequence[Learner]) -> Iterator[str]:
    """Yield a sentence for each process, port, file or shared memory of a learner that is left after the end."""
    users = {learner.user: learner for learner in learners}
    deadline = time.monotonic() + PATIENCE
    while (left := list(_processes(users))) and time.monotonic() < deadline:
        time.sleep(EVERY)
    for process in left:
        with suppress(psutil.Error):
            yield f"{users[process.uids().real].name} left the process {process.pid}: {process.cmdline()[:4]}"
    kept = [(user, f"the port {port}") for user, _, port in _listening()]
    kept += [(user, f"the file {path}") for user, path in _files()]
    segments = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    kept += [(int(segment.split()[7]), "shared memory") for segment in segments]
    for user, what in kept:
        if user in users:
            yield f"{users[user].name} left {what}"
    for learner in learners:
        for path in learner.home.rglob("*"):
            if path.lstat().st_uid != learner.user and path.name != "said":
                yield f"{path} in {learner.name}'s home belongs to somebody else"


def _files() -> Iterator[tuple[int, Path]]:
    """Yield the owner and path of everything in the folders that all users share."""
    for path in itertools.chain.from_iterable(folder.iterdir() for folder in SHARED):
        # nbval ends a kernel by SIGKILL, so what a notebook itself asked `tempfile` for stays.
        with suppress(OSError):
            if not path.name.startswith("tmp"):
                yield path.lstat().st_uid, path


def _processes(users: dict[int, Learner]) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.uids().real in users and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def _end(learner: Learner) -> None:
    """Kill the remaining processes of a learner."""
    for process in _processes({learner.user: learner}):
        with suppress(psutil.Error):
            process.kill()
    if learner.process is not None:
        learner.process.wait()


def tell(learners: Sequence[Learner], processes: int) -> None:
    """Print a line for each learner, and one for all together."""
    for one in learners:
        print(
            f"{one.name}  {one.notebook:11}  {one.seconds:6.0f} s  {one.memory / MEGABYTE:6.0f} MB  "
            f"{one.tasks:4} processes and threads  ports {len(one.ports)}"
        )
    written = [one.home / "seconds.txt" for one in learners]
    seconds = [[float(line) for line in path.read_text().split()] for path in written if path.exists()]
    for number, each in enumerate(itertools.zip_longest(*seconds), start=1):
        few = sorted(one for one in each if one is not None)
        print(
            f"crash {number}: from cell to verdict {few[0]:.0f} to {few[-1]:.0f} s, median {few[len(few) // 2]:.0f} s"
        )
    memory, tasks = (max(each) for each in zip(*together, strict=True))
    print(
        f"together at their peak: {memory / MEGABYTE:.0f} MB, {tasks} processes and threads; "
        f"each may have {processes}; load {Path('/proc/loadavg').read_text()[:14]}"
    )


if __name__ == "__main__":
    sys.exit(main())
