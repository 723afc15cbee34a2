"""A restart of the store's server between two drivers: real servers, stopped in order, or the run is refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from labkit.core.errors import ServiceUnavailable
from labkit.host.java import Java
from labkit.host.servers.kafka import KafkaService
from labkit.host.servers.postgres import PostgresService
from labkit.runs import faults
from labkit.runs.layout import RunFolder
from labkit.runs.scenario import plan

pytestmark = pytest.mark.slow


@pytest.fixture
def broker(java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaService]:
    """A broker as `labkit services up kafka` starts it, in a folder of its own."""
    monkeypatch.delenv("LABKIT_KAFKA", raising=False)
    service = KafkaService(tmp_path / "kafka")
    yield service
    service.down()


def restart(server: KafkaService | PostgresService, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Injects the fault into a server that is up, and returns the evidence."""
    scenario = plan(sink="two_phase", store=server.name, crashes=["sink.after_pre_commit"], between="restart-server")
    monkeypatch.setattr(faults, "service", lambda _name: server)
    evidence: dict[str, object] = faults.inject(scenario, RunFolder(folder), 1)["server"]
    return evidence


def test_kafka_is_stopped_in_order_and_started_again(
    broker: KafkaService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = broker.up()
    evidence = restart(broker, tmp_path / "run", monkeypatch)
    after = broker.status()
    assert (after.state, after.address) == ("up", before.address)
    assert evidence == {"between": "restart-server", "signal": 15, "ended": [before.pid], "now": after.pid}
    assert after.pid != before.pid


def test_a_broker_that_is_stopped_has_closed_its_log(broker: KafkaService) -> None:
    pid = broker.up().pid
    assert broker.stop() == ([pid], 15)
    # Kafka writes this file at the end of a shutdown in order, and never in a crash.
    assert list(broker.folder.rglob(".kafka_cleanshutdown"))


def test_a_broker_that_had_to_be_killed_proves_nothing(
    broker: KafkaService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tethered = KafkaService(broker.folder, tethered=True)
    tethered.up()
    with pytest.raises(ServiceUnavailable, match="did not shut down cleanly, so labkit killed it"):
        restart(tethered, tmp_path / "run", monkeypatch)


def test_a_server_that_is_down_cannot_be_restarted(
    broker: KafkaService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ServiceUnavailable, match="no running Kafka broker to stop"):
        restart(broker, tmp_path / "run", monkeypatch)


def test_postgres_is_stopped_in_order_and_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = PostgresService(tmp_path / "postgres")
    before = server.up()
    try:
        evidence = restart(server, tmp_path / "run", monkeypatch)
        assert evidence["signal"] == 2
        assert evidence["ended"] == [before.pid]
        assert evidence["now"] == server.status().pid != before.pid
    finally:
        server.down()
