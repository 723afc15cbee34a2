"""The compose file is whole: everything pinned, healthy before it is needed, bound to the loopback interface.

Nothing here starts a container or asks an engine whether it accepts the file: continuous integration has none. What
would run inside is started without one, with other ports: Spark's master and a worker, and JupyterLab.
"""

import os
import re
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import install as installer
import pytest
import yaml
from waiting import until

from labkit.host.java import Java
from labkit.host.processes.sessions import empty_session
from labkit.host.servers import ports

ROOT = Path(__file__).parent.parent
DOCKER = ROOT / "docker"
PINNED = re.compile(r"[a-z./-]+:\d+\.\d+[\w.-]*")

FILE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = FILE["services"]


def test_no_key_of_a_service_is_misspelt() -> None:
    known = {*("image", "build", "command", "environment", "ports", "volumes"), *("depends_on", "healthcheck")}
    assert {key for service in SERVICES.values() for key in service} <= known


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_pinned_and_has_a_health_check(name: str) -> None:
    service = SERVICES[name]
    if "build" in service:
        assert (DOCKER / service["build"]["context"]).resolve() == ROOT
        assert (ROOT / service["build"]["dockerfile"]).is_file()
    else:
        assert PINNED.fullmatch(service["image"]), service["image"]
    check = service["healthcheck"]
    assert check["test"][0] == "CMD"
    assert {"interval", "timeout", "retries"} <= check.keys()


@pytest.mark.parametrize("name", SERVICES)
def test_what_a_service_refers_to_is_there(name: str) -> None:
    service = SERVICES[name]
    for needed, condition in service.get("depends_on", {}).items():
        assert needed in SERVICES
        assert condition == {"condition": "service_healthy"}
    for volume in service.get("volumes", []):
        assert volume.partition(":")[0] in FILE["volumes"]
    for port in service.get("ports", []):
        assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port), "only this machine may reach it"


def test_images_of_the_dockerfile_are_pinned_and_what_it_copies_is_there() -> None:
    lines = (DOCKER / "Dockerfile").read_text().splitlines()
    images = [line.split()[1] for line in lines if line.startswith("FROM")]
    assert len(images) == 2
    assert all(PINNED.fullmatch(image) for image in images)
    copied = [name for line in lines if line.startswith("COPY") and "--from" not in line for name in line.split()[1:-1]]
    assert copied
    assert [name for name in copied if not (ROOT / name).exists()] == []


def test_transactions_can_be_prepared_in_either_server() -> None:
    assert "max_prepared_transactions=64" in SERVICES["postgres"]["command"]
    kafka = SERVICES["kafka"]["environment"]
    assert kafka["KAFKA_PROCESS_ROLES"] == "broker,controller"
    assert kafka["KAFKA_TRANSACTION_STATE_LOG_MIN_ISR"] == "1"
    assert kafka["KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR"] == "1"


def test_executors_and_driver_see_the_same_folder_and_servers() -> None:
    lab, workers = (SERVICES["lab"], [SERVICES["spark-worker-1"], SERVICES["spark-worker-2"]])
    for worker in workers:
        assert worker["volumes"] == lab["volumes"]
        assert worker["environment"].items() <= lab["environment"].items()


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, each with what follows it, on one line."""
    text = (DOCKER / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (one.partition(" ") for one in lines)]


def copied(folder: Path) -> Path:
    """A folder with what the Dockerfile copies into the image, of what is committed or would be."""
    named = [
        name
        for word, rest in instructions()
        if word == "COPY" and not rest.startswith("--from")
        for name in rest.split()[:-1]
    ]
    files = subprocess.run(
        ["git", "ls-files", "--", *named], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert files
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    return folder


def test_what_the_image_holds_is_enough_to_install_the_lab(tmp_path: Path) -> None:
    [install] = [rest for word, rest in instructions() if word == "RUN" and "install" in rest]
    assert install == "/usr/local/bin/python tools/install.py && mkdir /work"
    place = copied(tmp_path)
    assert (place / "tools" / "install.py").is_file()
    for lock in (installer.LOCK, installer.JAVA_LOCK):
        assert installer.entries(place / lock) == installer.entries(ROOT / lock)
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "made"], cwd=place, check=True)
    [wheel] = (place / "made").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "labkit/lab.py" in names
    assert "labkit/notebooks/00_start.ipynb" in names


def answered(address: str) -> bytes:
    """What a server says, and nothing as long as it says nothing."""
    with suppress(OSError), urllib.request.urlopen(address, timeout=5) as answer:
        return bytes(answer.read())
    return b""


@contextmanager
def running(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """A command for a block, as long as which it must run; afterwards nothing of its session is left."""
    with (folder / "said").open("ab") as said:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        yield
        assert process.poll() is None, (folder / "said").read_text()
    finally:
        empty_session(process.pid, 10)
        process.wait()


def with_options(command: Sequence[str], **given: object) -> list[str]:
    """A command of the compose file with other values for options that it has."""
    words = list(command)
    for option, value in given.items():
        name = f"--{option.replace('_', '-')}"
        at = [n for n, word in enumerate(words) if word.partition("=")[0] == name]
        assert len(at) == 1, (name, command)
        if "=" in words[at[0]]:
            words[at[0]] = f"{name}={value}"
        else:
            words[at[0] + 1] = str(value)
    return words


@pytest.mark.spark
@pytest.mark.slow
def test_the_images_spark_starts_a_master_that_a_worker_finds(java: Java, tmp_path: Path) -> None:
    [making] = [rest for word, rest in instructions() if word == "RUN" and "printf" in rest]
    program = tmp_path / "bin" / "spark"
    program.parent.mkdir()
    assert making.count("/usr/local/bin/spark") == 2
    making = making.replace("/usr/local/bin/spark", str(program))
    subprocess.run(["sh", "-c", making], check=True)
    path = f"{program.parent}:{Path(sys.executable).parent}:{java.path.parent}"
    there = {"PATH": f"{path}:{os.environ['PATH']}", "SPARK_NO_DAEMONIZE": "1"}
    with ExitStack() as held:
        port, page, worker_page = (ports.hold(held) for _ in range(3))
    master = with_options(SERVICES["spark-master"]["command"], host="127.0.0.1", port=port, webui_port=page)
    worker = with_options(SERVICES["spark-worker-1"]["command"], webui_port=worker_page)
    assert worker[-1] == "spark://spark-master:7077"
    worker[-1] = f"spark://127.0.0.1:{port}"
    master_state, worker_state = (f"http://127.0.0.1:{each}/json/" for each in (page, worker_page))
    with running(master, tmp_path, there):
        until(lambda: b'"ALIVE"' in answered(master_state), "a master")
        with running([*worker, "--work-dir", str(tmp_path / "work")], tmp_path, there):
            until(lambda: b'aliveworkers" : 1' in answered(master_state), "its worker")
            assert b'"cores" : 1' in answered(worker_state)


@pytest.mark.slow
def test_jupyter_starts_as_it_is_started_in_the_container(tmp_path: Path) -> None:
    """As whoever runs the test, which in the container is root."""
    lab = SERVICES["lab"]
    command = with_options(
        lab["command"], ip="127.0.0.1", port=(port := ports.free_port()), notebook_dir=ROOT / "notebooks"
    )
    here = Path(sys.executable).parent
    there = {"HOME": str(tmp_path), "JUPYTER_TOKEN": lab["environment"]["JUPYTER_TOKEN"]}
    with running([str(here / command[0]), *command[1:]], tmp_path, there):
        until(lambda: answered(f"http://127.0.0.1:{port}/api"), "JupyterLab")
        token = lab["environment"]["JUPYTER_TOKEN"]
        listed = answered(f"http://127.0.0.1:{port}/api/contents?token={token}")
        assert b"00_start.ipynb" in listed
        assert not answered(f"http://127.0.0.1:{port}/api/contents")
