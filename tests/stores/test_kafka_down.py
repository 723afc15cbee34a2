"""A broker that dies under a store at every step, and one with a full disk: a sentence, nothing lost or doubled."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest
import small_disk
from choosing import variant_but
from store_rows import HANDLE, prepare, row, written

from labkit.core.errors import JobFailed, ServiceUnavailable
from labkit.host import addresses
from labkit.host.java import Java
from labkit.host.servers.kafka import KafkaService
from labkit.stores.kafka.store import KafkaStore

pytestmark = pytest.mark.slow


class Server:
    """A broker of the test's own, which the environment names only while a store is to find it."""

    def __init__(self, folder: Path) -> None:
        self.service = KafkaService(folder, tethered=True)

    def up(self) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv(addresses.KAFKA, raising=False)
            return self.service.up().address

    def kill(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv(addresses.KAFKA, raising=False)
            assert self.service.kill()

    def pid(self) -> int | None:
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv(addresses.KAFKA, raising=False)
            return self.service.status().pid

    def down(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv(addresses.KAFKA, raising=False)
            self.service.down()


@pytest.fixture(scope="module")
def server(kafka: KafkaService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`kafka` has seen to it that a broker can be started here."""
    one = Server(tmp_path_factory.mktemp("dying"))
    try:
        address = one.up()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(addresses.KAFKA, address)
            yield one
    finally:
        one.down()


MOMENTS = ("begin", "write", "prepare", "commit", "append", "recovery")


@pytest.mark.slow  # a client gives up after 10 or 30 seconds
@pytest.mark.parametrize("moment", variant_but(["prepare", "commit", "recovery"], MOMENTS))
def test_a_broker_that_is_down_gives_a_sentence_and_nothing_is_lost_or_doubled(
    server: Server, tmp_path: Path, moment: str
) -> None:
    with closing(KafkaStore(tmp_path / "store")) as store:
        store.append(row(0))
        prepare(store, HANDLE, 1)
        transaction = written(store, HANDLE._replace(partition=1), 2)
        transaction.flush()
        steps: dict[str, Callable[[], object]] = {
            "begin": lambda: store.begin(HANDLE._replace(partition=2)),
            "write": lambda: (transaction.write(row(3)), transaction.flush()),
            "prepare": lambda: (transaction.write(row(3)), transaction.prepare()),
            "commit": lambda: store.commit(HANDLE),
            "append": lambda: store.append(row(4)),
            "recovery": lambda: store.prepared("q"),
        }
        server.kill()
        with pytest.raises((ServiceUnavailable, JobFailed), match=r"does not answer|aborted while it was open") as told:
            steps[moment]()
        assert "\n" not in str(told.value)
        server.up()
    with closing(KafkaStore(tmp_path / "store")) as after:
        for handle in after.prepared("q"):
            if handle == HANDLE:
                after.commit(handle)
            else:
                after.abort(handle)
        assert list(after.history()) == [row(0), row(1)]
        assert (after.prepared("q"), list(after.hidden())) == ([], [])
        after.destroy()


FREE = 400_000
"""Bytes that are left on the full disk: less than the rows below take."""


@pytest.mark.slow
def test_a_full_disk_of_the_broker_is_said_and_what_was_acknowledged_stays(
    java: Java, kafka: KafkaService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody may mount a small disk, the broker's files may not grow instead: to it both are a failed write."""
    data = tmp_path / "broker" / "data"
    is_mounted = small_disk.mount(data, 64)
    server = Server(tmp_path / "broker")
    try:
        monkeypatch.setenv(addresses.KAFKA, server.up())
        told = fill(server, data if is_mounted else None, tmp_path / "store")
        assert "\n" not in told
        (data / "ballast").unlink(missing_ok=True)
        monkeypatch.setenv(addresses.KAFKA, server.up())
        with closing(KafkaStore(tmp_path / "store")) as store:
            found = list(store.history())
            assert found[:100] == [row(number) for number in range(100)]
            store.append(row(-1))
            assert list(store.history())[-1] == row(-1)
            store.destroy()
    finally:
        server.down()
        if is_mounted:
            small_disk.unmount(data)


def fill(server: Server, disk: Path | None, store_folder: Path) -> str:
    """Leaves the broker no room, and writes until it says so; gives the sentence."""
    with closing(KafkaStore(store_folder)) as store:
        store.append(*(row(number) for number in range(100)))
        if disk is None:
            psutil.Process(server.pid()).rlimit(psutil.RLIMIT_FSIZE, (FREE, FREE))
        else:
            small_disk.fill(disk, FREE)
        with pytest.raises((ServiceUnavailable, JobFailed)) as told:
            append_many(store)
        return str(told.value)


def append_many(store: KafkaStore) -> None:
    for start in range(100, 20_000, 500):
        store.append(*(row(number) for number in range(start, start + 500)))
