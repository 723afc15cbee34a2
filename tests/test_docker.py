"""The compose file is whole: everything pinned, healthy before it is needed, bound to the loopback interface.

Nothing here starts a container or asks an engine whether it accepts the file: continuous integration has none.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
DOCKER = ROOT / "docker"
PINNED = re.compile(r"[a-z./-]+:\d+\.\d+[\w.-]*")

FILE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = FILE["services"]


def test_no_key_of_a_service_is_misspelt() -> None:
    known = {
        *("image", "build", "command", "environment", "ports", "volumes"),
        *("depends_on", "healthcheck"),
    }
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
        assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port), (
            "only this machine may reach it"
        )


def test_images_of_the_dockerfile_are_pinned_and_what_it_copies_is_there() -> None:
    lines = (DOCKER / "Dockerfile").read_text().splitlines()
    images = [line.split()[1] for line in lines if line.startswith("FROM")]
    assert len(images) == 2
    assert all(PINNED.fullmatch(image) for image in images)
    copied = [
        name
        for line in lines
        if line.startswith("COPY") and "--from" not in line
        for name in line.split()[1:-1]
    ]
    assert copied
    assert [name for name in copied if not (ROOT / name).exists()] == []


def test_transactions_can_be_prepared_in_either_server() -> None:
    assert "max_prepared_transactions=64" in SERVICES["postgres"]["command"]
    kafka = SERVICES["kafka"]["environment"]
    assert kafka["KAFKA_PROCESS_ROLES"] == "broker,controller"
    assert kafka["KAFKA_TRANSACTION_STATE_LOG_MIN_ISR"] == "1"
    assert kafka["KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR"] == "1"


def test_executors_and_driver_see_the_same_folder_and_servers() -> None:
    lab, workers = (
        SERVICES["lab"],
        [SERVICES["spark-worker-1"], SERVICES["spark-worker-2"]],
    )
    for worker in workers:
        assert worker["volumes"] == lab["volumes"]
        assert worker["environment"].items() <= lab["environment"].items()
