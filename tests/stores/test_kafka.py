"""What is Kafka's own: the order of its log, its timeouts, its epochs, and readers that see too much or too little."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from store_rows import HANDLE, prepare, row, written
from waiting import until

from labkit.core.errors import InvalidInput, JobFailed, ServiceUnavailable
from labkit.core.judge import judge
from labkit.core.records import History, Observation, Reading, Record, Visibility
from labkit.host.servers.kafka import KafkaService
from labkit.sinks.two_phase import TwoPhaseSink
from labkit.stores.contract import Handle, LostTransaction
from labkit.stores.kafka import transaction as kafka_transaction
from labkit.stores.kafka.journal import Journal, Vote
from labkit.stores.kafka.store import KafkaStore, Outcome
from labkit.stores.kafka.transaction import Producer, Stage, producer_of

OTHER = Handle("q", 0, 1, 1, 2)


@pytest.fixture
def store(kafka: KafkaService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaStore]:
    monkeypatch.setenv("LABKIT_KAFKA", kafka.status().address)
    with closing(KafkaStore(tmp_path / "store")) as opened:
        yield opened
        opened.destroy()


def put_back(store: KafkaStore, handle: Handle) -> None:
    """As if whoever committed had died between Kafka's answer and the note of it."""
    path = store.folder / "transactions" / f"{handle}.committed"
    path.with_suffix(".prepared").write_text(path.read_text())
    path.unlink()


# Readers


@pytest.mark.slow
def test_a_log_is_read_in_its_order_up_to_the_last_stable_offset(store: KafkaStore) -> None:
    prepare(store, HANDLE, 0)
    prepare(store, OTHER, 1)
    assert [described.stage for described in store.transactions()] == [Stage.ONGOING] * 2
    store.commit(OTHER)
    assert list(store.history()) == [], "what was committed second waits behind what is open"
    assert store.last_stable_offset() == 0
    assert list(store.hidden()) == [row(0), row(1)]
    store.commit(HANDLE)
    assert list(store.history()) == [row(0), row(1)]
    assert list(store.hidden()) == []


def test_an_orphan_keeps_everybody_behind_it_waiting(
    store: KafkaStore, killed: Callable[[str, str, Path], list[str]]
) -> None:
    killed("store.begin(handle).write(row(0)); store.close(); park()", "kafka", store.folder)
    store.append(row(1))
    assert list(store.history()) == []
    assert list(store.hidden()) == [Observation(0, "key 0", 0, 0, 1), row(1)]
    [orphan] = store.transactions()
    assert (orphan.name, orphan.stage, orphan.timeout) == (store.topic.transactional_id(HANDLE), Stage.ONGOING, 900)
    store.abort(HANDLE)
    assert list(store.history()) == [row(1)]
    assert store.transactions() == []


def test_what_was_aborted_is_read_at_read_uncommitted_for_ever(store: KafkaStore) -> None:
    prepare(store, HANDLE, 0)
    store.abort(HANDLE)
    prepare(store, HANDLE._replace(incarnation=2), 0)
    seen = [(each.offset, each.visibility) for each in store.uncommitted()]
    assert seen == [(0, Visibility.ABORTED), (0, Visibility.PRECOMMITTED)]
    store.commit(HANDLE._replace(incarnation=2))
    assert seen == [(each.offset, each.visibility) for each in store.uncommitted()]
    expected = [Record(*row(0)[:3])]
    early = judge(expected, History([*store.uncommitted(), Reading("end")]))
    patient = judge(expected, History([*store.history(), Reading("end")]))
    assert (early.aborted_read, early.precommitted_read) == ((0,), (0,))
    assert (patient.aborted_read, patient.precommitted_read, patient.rows) == ((), (), 1)


def test_a_record_of_somebody_else_is_refused_by_its_offset(store: KafkaStore) -> None:
    store.append(row(0))
    writer = store.topic.writer()
    writer.send(store.topic.name(), b"hello", partition=0).get(timeout=30)
    writer.close()
    with pytest.raises(InvalidInput, match="offset 1: this record is not a row"):
        list(store.history())


# Outcomes


def test_outcomes_are_told_apart(store: KafkaStore) -> None:
    prepare(store, HANDLE, 0)
    assert store.finish(HANDLE) is Outcome.COMMITTED
    assert store.finish(HANDLE) is Outcome.ALREADY_COMMITTED
    put_back(store, HANDLE)
    assert store.finish(HANDLE) is Outcome.ALREADY_COMMITTED
    assert list(store.history()) == [row(0)]
    journal = Journal(store.folder / "transactions")
    journal.begin(OTHER)
    journal.prepare(OTHER, Vote(Producer(987_654, 0), 1))
    assert store.finish(OTHER) is Outcome.UNKNOWN
    with pytest.raises(JobFailed, match=f"has forgotten the transaction {OTHER}"):
        store.commit(OTHER)


def test_a_transaction_that_timed_out_is_lost_and_said_to_be(store: KafkaStore) -> None:
    store.expire_after(1)
    prepare(store, HANDLE, 0)
    until(lambda: not store.unfinished(), "Kafka to abort what has run out of time")
    assert store.expired() == [store.topic.transactional_id(HANDLE)]
    for _ in range(2):
        assert store.finish(HANDLE) is Outcome.LOST
        with pytest.raises(LostTransaction, match=f"Kafka aborted the transaction {HANDLE} before its commit"):
            store.commit(HANDLE)
    assert list(store.history()) == list(store.hidden()) == []
    assert [each.visibility for each in store.uncommitted()] == [Visibility.ABORTED]
    assert store.prepared("q") == []


def test_recovery_reports_what_is_lost_and_goes_on(store: KafkaStore, tmp_path: Path) -> None:
    store.expire_after(1)
    prepare(store, HANDLE, 0)
    until(lambda: not store.unfinished(), "Kafka to abort what has run out of time")
    store.expire_after(60)
    prepare(store, OTHER, 1)
    sink = TwoPhaseSink(store, "q", 2, tmp_path)
    votes = [type("Vote", (), {"handle": handle})() for handle in (HANDLE, OTHER)]
    said = [step.carry_out() or step.sentence for step in sink.resolutions([(0, votes)])]
    assert said[0].startswith(f"LOST, although its batch was decided: Kafka aborted the transaction {HANDLE}")
    assert said[1] == f"committed {OTHER}, whose batch was decided"
    assert list(store.history()) == [row(1)]


@pytest.mark.parametrize(("is_committed", "outcome"), [(True, Outcome.ALREADY_COMMITTED), (False, Outcome.LOST)])
def test_where_the_coordinator_has_forgotten_the_log_knows(
    store: KafkaStore, outcome: Outcome, *, is_committed: bool
) -> None:
    """Whoever initialises an id raises its epoch; the coordinator then answers alike, whatever had happened."""
    prepare(store, HANDLE, 0)
    if is_committed:
        store.commit(HANDLE)
        put_back(store, HANDLE)
    name = store.topic.transactional_id(HANDLE)
    for _ in range(2):
        store.topic.coordinators.fence(name, 60)
    described = store.topic.coordinators.describe(name)
    assert described is not None
    assert store.finish(HANDLE) is outcome


# Epochs


def test_a_writer_that_was_fenced_writes_nothing_more(store: KafkaStore) -> None:
    zombie = written(store, HANDLE, 0)
    with closing(KafkaStore(store.folder)) as other:
        other.abort(HANDLE)

    def go_on() -> None:
        zombie.write(row(1))  # refused already if the broker has refused the first record by then
        zombie.prepare()

    with pytest.raises(JobFailed, match="aborted"):
        go_on()
    assert store.transactions() == []
    assert list(store.history()) == list(store.hidden()) == []


def test_a_writer_whose_first_record_was_refused_says_that_it_was_aborted(store: KafkaStore) -> None:
    """After such an error the client takes no more records, in whatever state it is."""
    zombie = written(store, HANDLE, 0)
    kafka_transaction.flush(zombie._writer)
    with closing(KafkaStore(store.folder)) as other:
        other.abort(HANDLE)
    zombie.write(row(1))
    kafka_transaction.flush(zombie._writer)
    with pytest.raises(JobFailed, match="aborted while it was open"):
        zombie.write(row(2))


def test_initialising_first_loses_what_was_to_be_committed(store: KafkaStore) -> None:
    """The demand that a transaction can be resumed by another process, broken alone."""
    prepare(store, HANDLE, 0)
    writer = store.topic.writer(store.topic.transactional_id(HANDLE))
    writer.init_transactions()
    writer.close()
    with pytest.raises(LostTransaction):
        store.commit(HANDLE)


def test_a_late_commit_of_a_reused_id_commits_the_next_transaction(store: KafkaStore) -> None:
    """Why every handle has an id of its own: in version 1 of the protocol all transactions of a producer look alike."""
    name = f"{store.topic.name()}.reused"
    writer = store.topic.writer(name)
    writer.init_transactions()
    coordinators = store.topic.coordinators
    for offset in (0, 1):
        writer.begin_transaction()
        store.topic.send(writer, row(offset), None)
        writer.flush()
        if offset == 0:
            writer.commit_transaction()
            coordinators.settled(name)
    assert list(store.history()) == [row(0)]
    assert coordinators.end(name, producer_of(writer), commit=True).__name__ == "NoError"
    coordinators.settled(name)
    assert list(store.history()) == [row(0), row(1)]
    writer.close(timeout=1)


# Timeouts


def test_an_hour_is_more_than_the_broker_allows(store: KafkaStore) -> None:
    assert store.topic.coordinators.longest_timeout() == 900
    store.expire_after(3600)
    for refused in (lambda: store.check("Transactional"), lambda: store.begin(HANDLE)):
        with pytest.raises(InvalidInput, match="3600 s is more than the broker's maximum"):
            refused()
    store.expire_after(900)
    store.check("Transactional")


# Orphans


@pytest.mark.slow
def test_one_recovery_resolves_fifty_orphans_and_no_foreign_one(
    store: KafkaStore, tmp_path: Path, killed: Callable[[str, str, Path], list[str]]
) -> None:
    killed("store.begin(handle).write(row(0)); store.close(); park()", "kafka", store.folder)
    code = "one = store.begin(handle._replace(partition=1)); one.write(row(1)); one.prepare(); park()"
    killed(code, "kafka", store.folder)
    for number in range(2, 50):
        written(store, HANDLE._replace(partition=number), number).close()
    written(store, HANDLE._replace(query="another"), 100).close()
    with closing(KafkaStore(tmp_path / "elsewhere")) as elsewhere:
        written(elsewhere, HANDLE, 200).close()
        assert len(store.prepared("q")) == 50
        for step in TwoPhaseSink(store, "q", 2, tmp_path).resolutions([]):
            step.carry_out()
        assert store.prepared("q") == []
        assert store.unfinished() == [store.topic.transactional_id(HANDLE._replace(query="another"))]
        assert elsewhere.unfinished() == [elsewhere.topic.transactional_id(HANDLE)]
        elsewhere.destroy()
    assert [each.offset for each in store.hidden()] == [100]


def test_an_orphan_whose_note_is_gone_is_found_by_the_broker(store: KafkaStore) -> None:
    written(store, HANDLE, 0).close()
    (store.folder / "transactions" / f"{HANDLE}.open").unlink()
    assert store.prepared("q") == [HANDLE]
    store.abort(HANDLE)
    assert store.prepared("q") == []


def test_nothing_is_left_of_a_store_that_is_destroyed(store: KafkaStore) -> None:
    with store.transaction(HANDLE) as write:
        write(row(0))
    written(store, OTHER, 1).close()
    topic, admin = store.topic.name(), store.topic.coordinators.admin
    groups = [group["group_id"] for group in admin.list_groups()]
    assert f"{topic}.q-b0" in groups
    store.destroy()
    # The broker confirms that a topic is deleted before it has forgotten it.
    until(lambda: topic not in admin.list_topics(), "the end of the topic")
    assert not [group["group_id"] for group in admin.list_groups() if group["group_id"].startswith(topic)]
    assert store.topic.coordinators.unfinished(topic) == []
    store.destroy()
    assert list(store.history()) == []


# The broker


def test_a_broker_that_is_not_there_is_said_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABKIT_KAFKA", "127.0.0.1:9")
    with (
        closing(KafkaStore(tmp_path / "store")) as store,
        pytest.raises(ServiceUnavailable, match=r"127\.0\.0\.1:9: the Kafka broker does not answer"),
    ):
        store.begin(HANDLE)


def test_another_client_library_is_refused_before_its_private_names_are_used(
    store: KafkaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_transaction, "version", lambda _: "3.1.0")
    with pytest.raises(ServiceUnavailable, match=r"pip install kafka-python==3\.0\.12"):
        _ = store.topic.coordinators
