"""Runs labkit's own Kafka broker: one process in KRaft mode on the loopback interface, without Docker or root.

    KafkaService().up()                    this user's broker, in the cache folder; it stays until `down`
    KafkaService(folder, tethered=True).up()   a private broker that ends with this process, however that dies
    LABKIT_KAFKA=host:port                 the user's own broker: labkit neither starts nor stops it

Each folder has one lock, so that two processes that share a broker start it only once.
"""

import base64
import json
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from importlib.resources import files
from pathlib import Path
from typing import TypedDict

import psutil

from labkit.core.errors import LabError, ServiceUnavailable
from labkit.host import addresses, durable
from labkit.host.class_data import USED, archive_path, find_archive, keep
from labkit.host.fast_start import fast_start
from labkit.host.java import Java, find_java
from labkit.host.processes import wire
from labkit.host.processes.own_python import own_python
from labkit.host.processes.sessions import is_alive
from labkit.host.processes.start_server import Mode, ServerStarted
from labkit.host.servers.contract import State, Status, Stopped, running_pid
from labkit.host.servers.kafka_jars import BROKER, VERSION
from labkit.host.servers.kafka_metadata import is_ready, parse_address
from labkit.host.servers.ports import HOST, hold

PATIENCE = 60.0
"""The maximum seconds until a broker is ready; it needs two on an idle machine."""

GRACE = 15.0
"""The seconds that a broker gets after SIGTERM to stop by itself, before it is killed."""

ARCHIVING = 60.0
"""The value of `GRACE` for a broker that also writes a class-data archive while it stops, in about 2 s."""

_JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:+ExitOnOutOfMemoryError")
_LOG = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true")

SETTINGS: Mapping[str, str] = dict(
    line.split("=", 1)
    for line in files("labkit.host.servers").joinpath("broker.properties").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
)
"""The broker settings that differ from Kafka's defaults, or that learners should see."""


class BrokerNote(TypedDict, total=False):
    """The content of `broker.json` in a broker's folder, from which later processes learn how to reach the broker."""

    pid: int | None
    started: float
    """The time at which the process began, in seconds since 1970; another process may get the same pid later."""
    port: int
    controller: int
    archive: str
    """The file to which the broker writes a class-data archive when it stops; empty if it writes none."""


class KafkaService:
    """A Kafka broker whose configuration, data, log and process id are in one folder."""

    name = "kafka"

    def __init__(
        self, folder: Path | None = None, *, tethered: bool = False, settings: Mapping[str, str] | None = None
    ) -> None:
        """Prepare the broker without starting it.

        The default folder is the one that all processes of this user share. If `tethered`, the broker is killed when
        this process ends. `settings` are broker settings in addition to `SETTINGS`.
        """
        self.folder = (
            folder
            or addresses.required_cache_folder("Kafka's data", f"set {addresses.KAFKA} to your own broker") / self.name
        )
        self._tethered, self._settings = tethered, {**SETTINGS, **(settings or {})}
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """Return the path of the file with the broker's output."""
        return self.folder / "broker.log"

    def up(self) -> Status:
        if address := os.environ.get(addresses.KAFKA):
            return _yours(address, required=True)
        durable.make_folder(self.folder)
        with durable.locked(self.folder):
            status = self.status()
            if status.state == "up":
                return status
            # A broker that runs but does not answer still has its ports and the lock on its data.
            self._stop(status.pid)
            java = find_java()
            self._start(java, BROKER.find(java))
            return self.status()

    def status(self) -> Status:
        if address := os.environ.get(addresses.KAFKA):
            return _yours(address, required=False)
        note = self._read_note()
        pid, port = note.get("pid"), note.get("port", 0)
        if pid is None:
            return Status(self.name, "down", "", None, self.folder, VERSION)
        alive = _is_alive(pid, note["started"])
        state: State = "up" if alive and is_ready(HOST, port) else "stale"
        return Status(self.name, state, f"{HOST}:{port}", pid if alive else None, self.folder, VERSION)

    def down(self) -> Status:
        if address := os.environ.get(addresses.KAFKA):
            return _yours(address, required=False)
        if self.folder.is_dir():
            with durable.locked(self.folder):
                self._stop(self.status().pid)
        return self.status()

    def stop(self) -> Stopped:
        """Shut the broker down cleanly.

        Raises `ServiceUnavailable` if labkit has to kill it instead; this is always so if it was created as `tethered`.
        """
        pid = running_pid(self.status(), "Kafka broker", "stop")
        with durable.locked(self.folder):
            ended_by_itself = self._stop(pid)
        if not ended_by_itself:
            raise ServiceUnavailable(
                f"The Kafka broker did not shut down cleanly, so labkit killed it; see the reason in {self.log}."
            )
        return Stopped([pid], signal.SIGTERM)

    def kill(self) -> list[int]:
        pid = running_pid(self.status(), "Kafka broker", "kill")
        _end(pid, GRACE, gently=False)
        return [pid]

    def discard(self) -> None:
        """Stop the broker and delete its folder."""
        with suppress(LabError):
            self.down()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _read_note(self) -> BrokerNote:
        try:
            note: BrokerNote = json.loads((self.folder / "broker.json").read_text(encoding="utf-8"))
            return note if {"pid", "started", "port"} <= note.keys() else {}
        except (OSError, ValueError, AttributeError):  # the file is missing or damaged
            return {}

    def _stop(self, pid: int | None) -> bool:
        """Stop the broker's process `pid`, and return whether SIGTERM sufficed; delete the id from `broker.json`."""
        grace = ARCHIVING if self._read_note().get("archive") else GRACE
        ended_by_itself = pid is not None and _end(pid, grace, gently=not self._tethered)
        if self._guard is not None:
            # `communicate` closes the guard's pipe, which ends the broker's session, and waits.
            guard, self._guard = self._guard, None
            guard.communicate()
        note = self._read_note()
        if part := note.pop("archive", ""):
            with suppress(OSError):
                if ended_by_itself:
                    keep(Path(part.rsplit(".", 2)[0]), Path(part))
                Path(part).unlink(missing_ok=True)
        if note.get("pid") is not None:
            self._write_note({**note, "pid": None})
            self._publish("")
        return ended_by_itself

    def _publish(self, address: str) -> None:
        # All processes of this user read this file. The address of a broker in a private folder is not for them.
        place = addresses.note(self.name)
        if place is not None and self.folder == place.parent / self.name:
            durable.replace(place, address)

    def _write_note(self, note: BrokerNote) -> None:
        durable.replace(self.folder / "broker.json", json.dumps(note))

    def _start(self, java: Java, jars: Path) -> None:
        note = self._read_note()
        with ExitStack() as stack:  # if possible the ports of the previous start
            port, controller = hold(stack, note.get("port", 0)), hold(stack, note.get("controller", 0))
        places = [f"-Djava.io.tmpdir={self.folder / 'tmp'}", f"-XX:ErrorFile={self.folder / 'jvm.log'}"]
        command = [str(java.path), *_JVM, *_LOG, *places, "-cp", f"{jars}{os.sep}*"]
        configuration = self._configure(port, controller)
        self._format(command, configuration)
        archive, part = self._archive(java, jars)
        pid = self._launch([command[0], *archive, *command[1:], "kafka.Kafka", str(configuration)])
        with suppress(psutil.Error):
            started = psutil.Process(pid).create_time()
            # Recorded before the broker is ready, so that other processes find it even if this one is killed now.
            self._write_note({"pid": pid, "started": started, "port": port, "controller": controller, "archive": part})
        self._await_ready(pid, port)
        self._publish(f"{HOST}:{port}")

    def _archive(self, java: Java, jars: Path) -> tuple[list[str], str]:
        """Return the JVM options to load or write a class-data archive (AppCDS), and the path of a new archive.

        The path is empty if no archive will be written. A tethered broker never writes one, because it is killed.
        """
        if not fast_start().archive:
            return [], ""
        if archive := find_archive(java, jars):
            return [f"-XX:SharedArchiveFile={archive}", *USED], ""
        path = archive_path(java, jars)
        if path is None or self._tethered:
            return [], ""
        part = f"{path}.{uuid.uuid4().hex[:8]}.part"
        return [f"-XX:ArchiveClassesAtExit={part}", *USED], part

    def _configure(self, port: int, controller: int) -> Path:
        for name in ("tmp", "data"):
            durable.make_folder(self.folder / name)
        settings = {
            **self._settings,
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            # A backslash begins an escape in a file of Java properties.
            "log.dirs": str(self.folder / "data").replace("\\", "\\\\"),
        }
        configuration = self.folder / "server.properties"
        durable.replace(configuration, "".join(f"{name}={value}\n" for name, value in settings.items()))
        return configuration

    def _format(self, command: list[str], configuration: Path) -> None:
        # A KRaft broker requires a cluster id in its data folder, which this command writes there.
        if (self.folder / "data" / "meta.properties").exists():
            return
        tool = [*command, "kafka.tools.StorageTool", "format", "-t", cluster_id(), "-c", str(configuration)]
        with self.log.open("ab") as log:
            code = subprocess.run(tool, stdout=log, stderr=log, stdin=subprocess.DEVNULL, check=False).returncode
        if code != 0:
            raise ServiceUnavailable(
                f"Kafka could not format {self.folder / 'data'}: {self._last_word()}; see {self.log}."
            )

    def _launch(self, command: list[str]) -> int:
        mode: Mode = "tethered" if self._tethered else "detached"
        starter = own_python("-m", "labkit.host.processes.start_server", mode, str(self.log), *command)
        process = subprocess.Popen(starter, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        assert process.stdout is not None
        pid = wire.decode(process.stdout.readline(), ServerStarted).pid
        if self._tethered:
            self._guard = process
        else:
            process.communicate()
        return pid

    def _await_ready(self, pid: int, port: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while not is_ready(HOST, port):
            if not is_alive(pid):
                self._stop(None)
                raise ServiceUnavailable(
                    f"The Kafka broker ended before it was ready: {self._last_word()}; see {self.log}. "
                    f"If its data is damaged, delete {self.folder} and start the broker again."
                )
            if time.monotonic() > deadline:
                self._stop(pid)
                raise ServiceUnavailable(
                    f"The Kafka broker was not ready within {PATIENCE:.0f} s, so labkit stopped it; see {self.log}, or "
                    "try again when this machine is less busy."
                )
            time.sleep(0.02)

    def _last_word(self) -> str:
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-200:]
        except OSError:
            return "it left no log"
        telling = [line for line in lines if "ERROR" in line or "Exception" in line]
        return (telling or lines or ["it logged nothing"])[-1].strip()[:200].rstrip(".")


def cluster_id() -> str:
    """Return a random cluster id that does not begin with a dash, because Kafka's tool would take it for an option."""
    first, *rest = uuid.uuid4().bytes
    return base64.urlsafe_b64encode(bytes([first & 0x7F, *rest])).decode().rstrip("=")


def _yours(address: str, *, required: bool) -> Status:
    """Return the state of the user's own broker. Raises `ServiceUnavailable` if it is `required` and absent."""
    host, port = parse_address(address, addresses.KAFKA)
    ready = is_ready(host, port)
    if required and not ready:
        raise ServiceUnavailable(f"LABKIT_KAFKA={address}: no broker answers there; start it, or unset LABKIT_KAFKA.")
    return Status(KafkaService.name, "yours" if ready else "down", f"{host}:{port}", None, None, "")


def _is_alive(pid: int, started: float) -> bool:
    # A later process may get the same id, so its start time is compared as well.
    try:
        return is_alive(pid) and abs(psutil.Process(pid).create_time() - started) < 1.0
    except psutil.Error:
        return False


def _end(pid: int, grace: float, *, gently: bool) -> bool:
    """Kill a process; if `gently`, first send SIGTERM and wait `grace` seconds. Return whether SIGTERM sufficed."""
    for number in (signal.SIGTERM, signal.SIGKILL) if gently else (signal.SIGKILL,):
        with suppress(psutil.Error):
            psutil.Process(pid).send_signal(number)
        deadline = time.monotonic() + grace
        while is_alive(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        if not is_alive(pid):
            return number is signal.SIGTERM
    return False
