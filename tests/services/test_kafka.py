"""A broker of the lab's own: started once, found again, ended with its owner, and never confused with another."""

import json
import os
import shutil
import socket
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from other_processes import has_ended, until_killed
from waiting import until

from labkit.core.errors import InvalidInput, ServiceUnavailable
from labkit.host import jars
from labkit.host.java import Java
from labkit.host.servers.kafka import KafkaService, cluster_id
from labkit.host.servers.kafka_jars import BROKER
from labkit.host.servers.kafka_metadata import is_ready, parse_address

pytestmark = pytest.mark.slow


@pytest.fixture
def service(java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaService]:
    monkeypatch.delenv("LABKIT_KAFKA", raising=False)
    broker = KafkaService(tmp_path / "kafka", tethered=True)
    yield broker
    broker.down()


def test_up_and_down_may_be_repeated_and_only_this_machine_reaches_it(service: KafkaService) -> None:
    assert service.status().state == service.down().state == "down"
    first = service.up()
    assert (first.state, first.version, first.folder) == ("up", "4.3.0", service.folder)
    assert first == service.up() == service.status()
    assert is_ready(*parse_address(first.address, "address"))
    assert first.pid is not None
    listening = [each.laddr for each in psutil.Process(first.pid).net_connections() if each.status == "LISTEN"]
    assert {str(place.ip).removeprefix("::ffff:") for place in listening} == {"127.0.0.1"}
    assert service.down().state == service.down().state == "down"
    assert has_ended(first.pid)


def test_a_broker_that_was_killed_is_stale_and_comes_back_where_it_was(service: KafkaService) -> None:
    first = service.up()
    assert service.kill() == [first.pid]
    assert service.status()[1:4] == ("stale", first.address, None)
    again = service.up()
    assert again.address == first.address
    assert again.pid != first.pid


def test_two_that_start_it_at_once_get_the_same_broker(service: KafkaService) -> None:
    other = KafkaService(service.folder, tethered=True)
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(lambda each: each.up(), [service, other])
    assert one == two
    assert one.state == "up"
    assert other.down().state == "down"


def test_a_port_that_somebody_took_is_not_fought_over(service: KafkaService) -> None:
    first = service.up()
    service.down()
    with socket.create_server(parse_address(first.address, "address")):
        assert service.up().address != first.address


def test_it_ends_with_a_process_that_is_killed(java: Java, tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from labkit.host.servers.kafka import KafkaService
service = KafkaService(Path(sys.argv[1]), tethered=True)
print(service.up().pid, flush=True)
sys.stdin.read()
"""
    with until_killed(code, str(tmp_path / "kafka"), without="LABKIT_KAFKA") as line:
        broker = int(line())
        assert not has_ended(broker)
    until(lambda: has_ended(broker), "the broker's end")


def test_a_note_of_a_process_id_that_came_round_again_harms_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LABKIT_KAFKA", raising=False)
    note = tmp_path / "broker.json"
    note.write_text(json.dumps({"pid": os.getpid(), "started": 1.0, "port": 1}))
    service = KafkaService(tmp_path)
    assert service.status()[1:4] == ("stale", "127.0.0.1:1", None)
    assert service.down().state == "down"
    note.write_text("{")
    assert service.status().state == "down"


@pytest.mark.slow
def test_a_broker_that_ends_by_itself_leaves_an_archive_and_later_ones_start_from_it(
    kafka: KafkaService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache" / "labkit"
    cache.mkdir(parents=True)
    (cache / "kafka-4.3.0").symlink_to(BROKER.folder())
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
    monkeypatch.delenv("LABKIT_KAFKA", raising=False)
    broker = KafkaService(tmp_path / "kafka")
    try:
        options = psutil.Process(broker.up().pid).cmdline()
        assert any("ArchiveClassesAtExit" in option for option in options)
        broker.kill()
        broker.up()
        assert not list(cache.glob("*.jsa")), "one that was killed leaves nothing"
        assert len(list(cache.glob("*.part"))) <= 1
        broker.down()
        [archive] = cache.glob("*.jsa")
        assert not list(cache.glob("*.part"))
        options = psutil.Process(broker.up().pid).cmdline()
        assert f"-XX:SharedArchiveFile={archive}" in options
        os.truncate(archive, 1000)
        broker.down()
        assert f"-XX:SharedArchiveFile={archive}" not in psutil.Process(broker.up().pid).cmdline(), "it is damaged"
    finally:
        broker.down()


@pytest.mark.parametrize("first", range(0, 256, 4))
def test_no_cluster_id_looks_like_an_option(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uuid.uuid4", lambda: uuid.UUID(bytes=bytes([first] * 16)))
    chosen = cluster_id()
    assert not chosen.startswith("-")
    assert len(chosen) == 22


def test_damaged_data_is_said_in_one_sentence(service: KafkaService) -> None:
    (service.folder / "data").mkdir(parents=True)
    (service.folder / "data" / "meta.properties").write_text("version=nonsense\n")
    with pytest.raises(ServiceUnavailable, match="ended before it was ready") as refused:
        service.up()
    assert str(service.folder) in str(refused.value)
    assert service.status().state == "down"


def test_a_broker_of_your_own_is_used_and_left_alone(
    kafka: KafkaService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = kafka.status().address
    monkeypatch.setenv("LABKIT_KAFKA", address)
    mine = KafkaService(tmp_path / "none")
    for status in (mine.up(), mine.status(), mine.down()):
        assert (status.state, status.address, status.pid) == ("yours", address, None)
    assert is_ready(*parse_address(address, "address"))
    assert not (tmp_path / "none").exists()
    with pytest.raises(ServiceUnavailable, match="state: yours"):
        mine.kill()


@pytest.mark.parametrize("address", ["nonsense", "host:", ":9092", "host:0", "host:99999"])
def test_an_address_that_is_none_is_refused(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABKIT_KAFKA", address)
    with pytest.raises(InvalidInput, match="write host:port"):
        KafkaService(tmp_path).status()


def test_your_own_that_does_not_answer_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
    monkeypatch.setenv("LABKIT_KAFKA", f"127.0.0.1:{port}")
    assert KafkaService(tmp_path).status().state == "down"
    with pytest.raises(ServiceUnavailable, match="no broker answers there"):
        KafkaService(tmp_path).up()


# The jars


def test_the_sums_name_every_jar_once() -> None:
    sums = BROKER.sums()
    assert len(sums) == 46
    assert {f"{name}-{version}.jar" for _, name, version in BROKER.packages} <= sums.keys()
    assert all(len(digest) == 64 for digest in sums.values())


def test_the_sums_are_not_taken_again_while_no_jar_has_changed(
    kafka: KafkaService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, summed = tmp_path / "jars", list[Path]()
    shutil.copytree(BROKER.folder(), folder)
    honest = jars._sum
    monkeypatch.setattr(jars, "_sum", lambda path: (summed.append(path), honest(path))[1])
    for _ in range(2):
        BROKER.check(folder)
    assert len(summed) == 46
    jar = folder / "kafka-clients-4.3.0.jar"
    times = jar.stat()
    content = jar.read_bytes()
    jar.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(jar, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(ServiceUnavailable, match="differs"):
        BROKER.check(folder)


def test_a_jar_that_differs_is_refused_by_name(kafka: KafkaService, tmp_path: Path) -> None:
    folder = tmp_path / "jars"
    shutil.copytree(BROKER.folder(), folder)
    BROKER.check(folder)
    jar = folder / "kafka-clients-4.3.0.jar"
    content = jar.read_bytes()
    jar.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ServiceUnavailable, match=r"kafka-clients-4\.3\.0\.jar differs"):
        BROKER.check(folder)
    jar.unlink()
    with pytest.raises(ServiceUnavailable, match=r"kafka-clients-4\.3\.0\.jar is missing"):
        BROKER.check(folder)
    jar.write_bytes(content)
    (folder / "another.jar").touch()
    with pytest.raises(ServiceUnavailable, match=r"another\.jar .* does not belong there"):
        BROKER.check(folder)


def test_a_first_fetch_without_a_network_is_said_in_one_sentence(
    java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = (
        "-DproxySet=true -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=9 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9"
    )
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", nowhere)
    with pytest.raises(ServiceUnavailable, match="central Maven repository failed") as refused:
        BROKER.find(java, tmp_path / "kafka-4.3.0")
    assert "connect this machine to the network once" in str(refused.value)
    assert list(tmp_path.iterdir()) == []
