"""The compose file parses, pins its images, names what docker/README.md names, and the image can build the lab.

No test starts a container: continuous integration has no engine.
"""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import install as installer
import pytest
import yaml

from labkit.host.servers.kafka_jars import VERSION as KAFKA

ROOT = Path(__file__).parent.parent
DOCKER = ROOT / "docker"
README = (DOCKER / "README.md").read_text()
PINNED = re.compile(r"[a-z./-]+:\d+\.\d+[\w.-]*")
FILE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
DOCKERFILE = (DOCKER / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
COPIED = [
    name for line in DOCKERFILE if line.startswith("COPY") and "--from" not in line for name in line.split()[1:-1]
]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_pinned_and_healthy_before_it_is_needed(name: str) -> None:
    service = SERVICES[name]
    assert PINNED.fullmatch(service["image"]) or (ROOT / service["build"]["dockerfile"]).is_file()
    assert service["healthcheck"]["test"][0] == "CMD"
    assert service.get("depends_on", {}).keys() <= SERVICES.keys()
    assert all(each == {"condition": "service_healthy"} for each in service.get("depends_on", {}).values())
    assert {volume.partition(":")[0] for volume in service["volumes"]} <= FILE["volumes"].keys()
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in service.get("ports", []))


def test_versions_and_addresses_are_those_of_the_readme() -> None:
    kafka, postgres, lab = (SERVICES[name] for name in ("kafka", "postgres", "lab"))
    assert kafka["image"] == f"apache/kafka:{KAFKA}"
    assert f"Kafka {kafka['image'].partition(':')[2].rpartition('.')[0]} " in README
    assert f"PostgreSQL {postgres['image'].partition(':')[2].partition('.')[0]} " in README
    for service in (kafka, postgres, lab):
        assert all(port.rpartition(":")[0] in README for port in service["ports"])
    assert f"token `{lab['environment']['JUPYTER_TOKEN']}`" in README


def test_transactions_work_and_executors_see_the_drivers_folder_and_servers() -> None:
    assert "max_prepared_transactions=64" in SERVICES["postgres"]["command"]
    assert SERVICES["kafka"]["environment"]["KAFKA_TRANSACTION_STATE_LOG_MIN_ISR"] == "1"
    assert SERVICES["kafka"]["environment"]["KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR"] == "1"
    lab, worker = SERVICES["lab"], SERVICES["spark-worker-1"]
    assert worker["volumes"] == lab["volumes"]
    assert worker["environment"].items() <= lab["environment"].items()


def test_the_image_holds_enough_to_install_the_lab(tmp_path: Path) -> None:
    assert all(PINNED.fullmatch(line.split()[1]) for line in DOCKERFILE if line.startswith("FROM"))
    assert "RUN /usr/local/bin/python tools/install.py && mkdir /work" in DOCKERFILE
    listed = subprocess.run(["git", "ls-files", "--", *COPIED], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    for lock in (installer.LOCK, installer.JAVA_LOCK):
        assert installer.entries(tmp_path / lock) == installer.entries(ROOT / lock)
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "made"], cwd=tmp_path, check=True)
    [wheel] = (tmp_path / "made").glob("*.whl")
    assert {"labkit/lab.py", "labkit/notebooks/00_start.ipynb"} <= set(zipfile.ZipFile(wheel).namelist())
