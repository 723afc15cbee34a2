"""The shop between a real PostgreSQL and a real broker: what dies, what is judged, what is refused, what is left."""

from collections.abc import Callable, Iterator

import pytest

from labkit import lab
from labkit.core.errors import InvalidInput, JobFailed, ServiceUnavailable
from labkit.core.judge import Guarantee
from labkit.host import addresses
from labkit.host.servers.tethered import tethered_postgres
from labkit.teach.hands_on.postgres import postgres as by_hand
from labkit.teach.hands_on.shop import Shop
from labkit.teach.hands_on.shop_process import inserted

PAID, OTHER, CANCELLED = (1, "A", "paid"), (2, "B", "paid"), (3, "A", "cancelled")


@pytest.fixture(scope="module")
def shop(postgres: str, kafka_address: str) -> Iterator[Shop]:
    """A shop on the servers of all tests, as on a user's own servers, with three changes committed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(addresses.POSTGRES, postgres)
        patch.setenv(addresses.KAFKA, kafka_address)
        opened = lab.shop()
        opened.open_slot()
        for change in (PAID, OTHER, CANCELLED):
            opened.sell(change)
        yield opened
        watcher = by_hand().session("watcher")  # cleans the shop
        left = "SELECT slot_name FROM pg_replication_slots UNION ALL SELECT pubname FROM pg_publication"
        assert watcher.run(left).rows == []
        by_hand()


@pytest.mark.slow
def test_messages_are_judged_by_what_the_database_has_committed(shop):
    def found(*messages):
        return shop.outcome(messages).verdict

    assert found(PAID, OTHER, CANCELLED).guarantee == Guarantee.EXACTLY_ONCE
    assert found(PAID, CANCELLED).lost == (2,)
    assert found().lost == (1, 2, 3)
    assert found(PAID, OTHER, OTHER, CANCELLED).duplicate == (2,)
    assert found(PAID, OTHER, CANCELLED, (4, "C", "paid")).unexpected == (4,)
    assert found((1, "A", "cancelled"), OTHER, CANCELLED).unexpected == (1,)
    late = found(CANCELLED, OTHER, PAID)
    assert (late.guarantee, late.regression) == (Guarantee.EXACTLY_ONCE, (1,))
    rows = lab.compare(
        made_up=shop.outcome([PAID, OTHER, CANCELLED, (4, "C", "paid")]), right=shop.outcome([PAID])
    ).rows
    assert [row.get("unexplained") for row in rows.values()] == ["1", None]
    with pytest.raises(InvalidInput, match="is not a message"):
        found("nonsense")


def test_the_slot_is_read_with_and_without_confirming(shop):
    assert shop.peek() == shop.peek() == [PAID, OTHER, CANCELLED]
    assert shop.get() == [PAID, OTHER, CANCELLED]
    assert shop.peek() == []
    shop.db.execute("UPDATE outbox SET sent = true WHERE id = 1")  # reported, and no message
    assert shop.get() == []


def test_only_an_inserted_row_is_a_change():
    row = b"I\0\0\x40\1N\0\4t\0\0\0\x0212t\0\0\0\1At\0\0\0\x04paidn"
    assert inserted(row) == (12, "A", "paid")
    assert [inserted(kind + row[1:]) for kind in (b"U", b"B", b"C", b"R")] == [None] * 4


def relay(shop):
    for change in shop.db.execute("SELECT id, name, state FROM outbox ORDER BY id").fetchall():
        shop.publish(change)
        shop.at(f"published {change[0]}")


def fails(shop):
    shop.at("before")
    return 1 / 0


def ends_itself(shop):
    import os
    import signal

    os.kill(os.getpid(), signal.SIGKILL)


def leaves(shop):
    raise SystemExit(0)


def test_a_program_dies_at_its_moment_and_a_new_process_goes_on(shop):
    said = shop.run(relay, kill="published 2")
    assert said == "relay: the process died by signal 9 at 'published 2'; a new one went on"
    assert shop.messages() == [PAID, OTHER, PAID, OTHER, CANCELLED]
    verdict = shop.outcome().verdict
    assert (verdict.guarantee, verdict.duplicate, verdict.regression) == (Guarantee.AT_LEAST_ONCE, (1, 2), ())


@pytest.mark.parametrize(
    ("program", "kill", "error", "told"),
    [
        (relay, "never", InvalidInput, r"never called shop.at\('never'\); .*: 'published 1', 'published 2', 'publ"),
        (fails, "", JobFailed, "fails: ZeroDivisionError: division by zero"),
        (ends_itself, "before", JobFailed, "signal 9 ended it"),
        (leaves, "", JobFailed, "leaves: SystemExit: 0"),
        (len, "", InvalidInput, "needs a function that you have defined"),
        (lambda shop: shop, "", InvalidInput, "needs a function that you have defined"),
    ],
)
def test_a_program_that_cannot_be_run_gets_one_sentence(
    shop: Shop, program: Callable[..., object], kill: str, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told) as refused:
        shop.run(program, kill=kill)
    assert "\n" not in str(refused.value)


def test_a_server_without_logical_decoding_is_refused_with_the_remedy(monkeypatch):
    with tethered_postgres("--no-sync") as server:
        monkeypatch.setenv(addresses.POSTGRES, server.address)
        with pytest.raises(ServiceUnavailable, match=r"wal_level = replica, .* unset LABKIT_POSTGRES"):
            lab.shop()
