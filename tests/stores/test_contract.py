"""What `labkit.stores.contract` promises, asked of every registered store, for each capability that it has."""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from choosing import slow_but
from hypothesis import given, settings
from hypothesis import strategies as st
from store_rows import HANDLE, prepare, row, written

from labkit.core.errors import JobFailed
from labkit.core.records import Observation
from labkit.stores import STORES, capabilities, open_store
from labkit.stores.contract import Handle, ServerBacked, Store

Killed = Callable[[str, str, Path], list[str]]
Together = Callable[[str, str, Path, int], None]

OTHERS = [Handle("q", 0, 1, 1, 1), Handle("q", 1, 0, 1, 1), Handle("q", 1, 0, 2, 1)]


def able(capability: str) -> pytest.MarkDecorator:
    """Asks every store that has the capability. A broker is slow; its own tests ask it at every run."""
    kinds = [name for name in STORES if capability in capabilities(name)]
    return pytest.mark.parametrize("kind", slow_but([name for name in kinds if name != "kafka"], kinds))


def in_order_of_commits(capability: str) -> pytest.MarkDecorator:
    """Asks every store that has the capability, and that shows a transaction where its commit comes.

    Kafka shows a partition in the order of its log: `test_kafka.py` asks it for that.
    """
    kinds = [name for name in STORES if capability in capabilities(name) and name != "kafka"]
    return pytest.mark.parametrize("kind", kinds)


anything = pytest.mark.parametrize("kind", slow_but([name for name in STORES if name != "kafka"], STORES))


def rows(*offsets: int) -> list[Observation]:
    return [row(offset) for offset in offsets]


def history(kind: str, place: Path) -> list[Observation]:
    """What somebody else reads."""
    with closing(open_store(kind, place)) as reader:
        return list(reader.history())


# Any store


@anything
def test_looking_creates_nothing(kind: str, store: Any, place: Path) -> None:
    assert list(store.history()) == list(store.hidden()) == []
    if "Transactional" in capabilities(kind):
        assert store.prepared("q") == []
        store.abort(HANDLE)
        with pytest.raises(JobFailed):
            store.commit(HANDLE)
    if "Atomic" in capabilities(kind):
        assert not store.has_marker("q", 0)
    store.close()
    assert not place.parent.exists()


@anything
def test_a_store_is_closed_twice(kind: str, store: Any) -> None:
    store.close()
    store.close()


# Appendable

ODD = ["", " ", "a\nb", "\r", '"quoted"', "é", "\u2028", "\0", "😀", "x" * 100_000, "' OR 1=1; --"]


@able("Appendable")
def test_appended_rows_are_visible_at_once_and_in_order(kind: str, store: Any, place: Path) -> None:
    expected = []
    for offset in (2, 0, 1, 0):
        store.append(row(offset))
        expected.append(row(offset))
        assert list(store.history()) == history(kind, place) == expected
    assert list(store.hidden()) == []


@able("Appendable")
def test_rows_come_back_as_they_were_written(store: Any) -> None:
    appended = [Observation(2**53 + 1, key, -(2**60), 7, 3) for key in ODD]
    for one in appended:
        store.append(one)
    assert list(store.history()) == appended


@able("Appendable")
def test_a_reopened_store_goes_on(kind: str, place: Path) -> None:
    for offset in range(3):
        with closing(open_store(kind, place)) as opened:
            opened.append(row(offset))
    assert history(kind, place) == rows(0, 1, 2)


@able("Appendable")
def test_a_row_that_was_appended_survives_the_death_of_the_process(kind: str, place: Path, killed: Killed) -> None:
    killed("store.append(row(0)); park()", kind, place)
    assert history(kind, place) == [Observation(0, "key 0", 0, 0, 1)]


@able("Appendable")
def test_a_kill_between_rows_leaves_whole_rows(kind: str, place: Path, killed: Killed) -> None:
    code = """
for offset in range(10 ** 9):
    store.append(row(offset))
    print("parked" if offset == 200 else offset, flush=True)
"""
    told = killed(code, kind, place)
    left = history(kind, place)
    assert [one.offset for one in left] == list(range(len(left)))
    assert len(left) > len(told) == 200
    with closing(open_store(kind, place)) as again:
        again.append(row(7))
    assert history(kind, place) == [*left, row(7)]


@able("Appendable")
def test_rows_of_four_processes_are_all_there_once(kind: str, place: Path, together: Together) -> None:
    together("for offset in range(50): store.append(row(first * 50 + offset))", kind, place, 4)
    found = [one.offset for one in history(kind, place)]
    assert sorted(found) == list(range(200))
    for writer in range(4):
        mine = [offset for offset in found if offset // 50 == writer]
        assert mine == sorted(mine)


# Keyed


@able("Keyed")
def test_a_key_keeps_its_last_row_and_the_history_every_row(kind: str, store: Any, place: Path) -> None:
    upserted = [row(0), row(1, "world"), row(2), row(2), row(0)]
    for one in upserted:
        store.upsert(one)
    assert list(store.history()) == history(kind, place) == upserted


@able("Keyed")
def test_an_upsert_survives_the_death_of_the_process(kind: str, place: Path, killed: Killed) -> None:
    killed("store.upsert(row(0)); store.upsert(row(0)); park()", kind, place)
    assert history(kind, place) == [Observation(0, "key 0", 0, 0, 1)] * 2


# Atomic


@able("Atomic")
def test_rows_and_marker_appear_together_at_the_end(kind: str, store: Any, place: Path) -> None:
    with store.transaction(HANDLE) as write:
        write(row(0))
        write(row(1))
        assert list(store.history()) == history(kind, place) == []
        assert not store.has_marker("q", 0)
    assert list(store.history()) == history(kind, place) == rows(0, 1)
    assert store.has_marker("q", 0)
    assert list(store.hidden()) == []


@able("Atomic")
def test_a_marker_names_query_and_batch(store: Any) -> None:
    with store.transaction(Handle("q_1", 12, 0, 1, 1)):
        pass
    markers = [("q_1", 12), ("q_1", 1), ("q_1", 2), ("q_1", 120), ("q", 12), ("1", 12), ("q_12", 12)]
    assert [store.has_marker(*marker) for marker in markers] == [True] + [False] * 6


@able("Atomic")
@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, OSError])
def test_an_exception_leaves_nothing(kind: str, store: Any, place: Path, failure: type[BaseException]) -> None:
    with pytest.raises(failure, match="mine"), store.transaction(HANDLE) as write:  # noqa: PT012 - the block is the point
        write(row(0))
        raise failure("mine")
    assert list(store.history()) == list(store.hidden()) == []
    assert not store.has_marker("q", 0)
    with store.transaction(HANDLE) as write:
        write(row(1))
    assert history(kind, place) == rows(1)


@able("Atomic")
def test_a_batch_is_committed_once(store: Any) -> None:
    with store.transaction(HANDLE) as write:
        write(row(0))
    with (
        pytest.raises(JobFailed, match="committed already"),
        store.transaction(HANDLE._replace(incarnation=2)) as write,
    ):
        write(row(0))
    assert list(store.history()) == rows(0)


@able("Atomic")
def test_a_kill_in_a_transaction_leaves_nothing(kind: str, place: Path, killed: Killed) -> None:
    code = """
with store.transaction(handle) as write:
    for offset in range(5000):
        write(row(offset))
    park()
"""
    killed(code, kind, place)
    with closing(open_store(kind, place)) as store:
        assert list(store.history()) == []
        assert not list(store.hidden()) or kind == "kafka", "a broker does not notice that a writer has died"
        assert not store.has_marker("q", 0)
        if "Transactional" in capabilities(kind):
            assert store.prepared("q") == []
        for handle in (HANDLE._replace(incarnation=2), HANDLE._replace(batch=1)):
            with store.transaction(handle) as write:
                write(row(handle.batch))
    assert history(kind, place) == rows(0, 1)


# Transactional


@able("Transactional")
def test_rows_are_visible_after_commit_and_not_before(kind: str, store: Any, place: Path) -> None:
    transaction = written(store, HANDLE, 0, 1)
    assert list(store.history()) == history(kind, place) == []
    transaction.prepare()
    assert list(store.history()) == history(kind, place) == []
    assert list(store.hidden()) == rows(0, 1)
    store.commit(HANDLE)
    assert list(store.history()) == history(kind, place) == rows(0, 1)
    assert list(store.hidden()) == []


@in_order_of_commits("Transactional")
def test_many_rows_keep_their_order(store: Any) -> None:
    prepare(store, OTHERS[0], *range(10_000, 12_500))
    prepare(store, HANDLE, *range(2_500))
    for handle in (HANDLE, OTHERS[0]):
        store.commit(handle)
    assert [one.offset for one in store.history()] == [*range(2_500), *range(10_000, 12_500)]


@in_order_of_commits("Transactional")
def test_history_is_in_the_order_of_commits(kind: str, store: Any, place: Path) -> None:
    handles = [HANDLE._replace(partition=number) for number in range(12)]
    for number, handle in enumerate(handles):
        prepare(store, handle, number)
    for handle in reversed(handles):
        store.commit(handle)
    assert history(kind, place) == rows(*reversed(range(12)))


@able("Transactional")
def test_history_only_grows_at_its_end(store: Any) -> None:
    seen: list[Observation] = []
    for number in range(12):
        prepare(store, HANDLE._replace(batch=11 - number), number)
        store.commit(HANDLE._replace(batch=11 - number))
        now = list(store.history())
        assert now[:-1] == seen
        seen = now


@able("Transactional")
def test_commit_is_idempotent(kind: str, store: Any, place: Path) -> None:
    prepare(store, HANDLE, 0)
    prepare(store, OTHERS[0], 1)
    for handle in (HANDLE, HANDLE, OTHERS[0], HANDLE):
        store.commit(handle)
    with closing(open_store(kind, place)) as other:
        other.commit(HANDLE)
    assert list(store.history()) == rows(0, 1)


@able("Transactional")
def test_an_unprepared_transaction_cannot_be_committed(store: Any) -> None:
    transaction = written(store, HANDLE, 0)
    for handle in (HANDLE, OTHERS[0]):
        with pytest.raises(JobFailed, match=f"{handle} is not prepared"):
            store.commit(handle)
    assert list(store.history()) == []
    transaction.prepare()
    store.commit(HANDLE)
    assert list(store.history()) == rows(0)


@able("Transactional")
@pytest.mark.parametrize("is_prepared", [False, True])
def test_abort_drops_a_transaction_and_may_be_repeated(store: Any, *, is_prepared: bool) -> None:
    prepare(store, OTHERS[0], 1)
    transaction = written(store, HANDLE, *range(1_500))
    if is_prepared:
        transaction.prepare()
    for _ in range(2):
        store.abort(HANDLE)
        assert store.prepared("q") == [OTHERS[0]]
        assert list(store.hidden()) == rows(1)
    with pytest.raises(JobFailed, match="not prepared"):
        store.commit(HANDLE)
    assert list(store.history()) == []


@able("Transactional")
def test_abort_never_undoes_a_commit(store: Any) -> None:
    prepare(store, HANDLE, 0)
    store.commit(HANDLE)
    store.abort(HANDLE)
    assert list(store.history()) == rows(0)
    store.commit(HANDLE)
    assert list(store.history()) == rows(0)


@able("Transactional")
def test_a_writer_that_was_aborted_cannot_prepare(store: Any) -> None:
    old = written(store, HANDLE, 0)
    store.abort(HANDLE)
    with pytest.raises(JobFailed, match="aborted"):
        old.prepare()
    assert store.prepared("q") == []


@able("Transactional")
def test_a_writer_that_was_aborted_cannot_touch_its_successor(store: Any) -> None:
    old = written(store, HANDLE, 0)
    store.abort(HANDLE)
    new = written(store, HANDLE, 1)
    with pytest.raises(JobFailed, match="aborted"):
        old.prepare()
    new.prepare()
    store.commit(HANDLE)
    assert list(store.history()) == rows(1)


@able("Transactional")
def test_a_prepared_transaction_takes_no_more_rows(store: Any) -> None:
    transaction = written(store, HANDLE, 0)
    transaction.prepare()
    for late in (lambda: transaction.write(row(1)), transaction.prepare):
        with pytest.raises(JobFailed, match="not open any more"):
            late()
    store.commit(HANDLE)
    assert list(store.history()) == rows(0)


@able("Transactional")
def test_a_name_is_never_used_twice(kind: str, store: Any, place: Path) -> None:
    transaction = written(store, HANDLE, 0)
    with closing(open_store(kind, place)) as other:
        for step in (transaction.prepare, lambda: store.commit(HANDLE), lambda: store.abort(HANDLE)):
            for one in (store, other):
                with pytest.raises(JobFailed, match="exists already"):
                    one.begin(HANDLE)
            step()
        with pytest.raises(JobFailed, match="exists already"):
            other.begin(HANDLE)
    assert list(store.history()) == rows(0)


@able("Transactional")
def test_a_transaction_may_be_empty(store: Any) -> None:
    prepare(store, HANDLE)
    assert store.prepared("q") == [HANDLE]
    store.commit(HANDLE)
    store.commit(HANDLE)
    assert store.prepared("q") == list(store.history()) == []


@able("Transactional")
def test_prepared_lists_what_is_unfinished_of_one_query(store: Any) -> None:
    mine = [Handle("q", 2, 0, 1, 1), Handle("q", 10, 0, 1, 1), Handle("q", 10, 2, 1, 1), Handle("q", 10, 10, 1, 1)]
    foreign = [Handle("qq", 2, 0, 1, 1), Handle("q_b2", 2, 0, 1, 1), Handle("b2", 2, 0, 1, 1)]
    for handle in [*reversed(mine), *foreign]:
        transaction = written(store, handle, 0)
        if handle.partition != 2:
            transaction.prepare()
    done = Handle("q", 3, 0, 1, 1)
    prepare(store, done, 0)
    store.commit(done)
    assert store.prepared("q") == mine
    for handle in store.prepared("q"):
        store.abort(handle)
    assert store.prepared("q") == []
    assert [store.prepared(handle.query) for handle in foreign] == [[handle] for handle in foreign]
    for handle in foreign:
        store.commit(handle)
    assert list(store.history()) == rows(0, 0, 0, 0)


@able("Transactional")
def test_another_process_commits_what_a_killed_one_prepared(kind: str, store: Any, place: Path, killed: Killed) -> None:
    code = """
transaction = store.begin(handle)
for offset in range(2500):
    transaction.write(row(offset))
transaction.prepare()
park()
"""
    killed(code, kind, place)
    assert list(store.history()) == []
    assert store.prepared("q") == [HANDLE]
    store.commit(HANDLE)
    assert [one.offset for one in store.history()] == list(range(2500))


@able("Transactional")
def test_another_process_aborts_what_a_killed_one_left_open(kind: str, store: Any, place: Path, killed: Killed) -> None:
    code = """
transaction = store.begin(handle)
for offset in range(2500):
    transaction.write(row(offset))
park()
"""
    killed(code, kind, place)
    assert store.prepared("q") == [HANDLE]
    left = [one.offset for one in store.hidden()]
    assert left == list(range(len(left)))
    with pytest.raises(JobFailed):
        store.commit(HANDLE)
    store.abort(HANDLE)
    assert store.prepared("q") == list(store.hidden()) == list(store.history()) == []


@able("Transactional")
def test_four_processes_commit_the_same_transactions_once(
    kind: str, store: Any, place: Path, together: Together
) -> None:
    handles = [HANDLE._replace(partition=number) for number in range(20)]
    for number, handle in enumerate(handles):
        prepare(store, handle, number, number)
    code = "for number in range(20): store.commit(handle._replace(partition=(number + 5 * first) % 20))"
    together(code, kind, place, 4)
    found = [one.offset for one in store.history()]
    assert Counter(found) == dict.fromkeys(range(20), 2)
    assert found[::2] == found[1::2]


@in_order_of_commits("Transactional")
def test_transactions_of_four_processes_do_not_mix(kind: str, place: Path, together: Together) -> None:
    code = """
for batch in range(5):
    mine = handle._replace(batch=batch, partition=first)
    transaction = store.begin(mine)
    for offset in range(3):
        transaction.write(row(100 * first + 10 * batch + offset))
    transaction.prepare()
    store.commit(mine)
"""
    together(code, kind, place, 4)
    found = [one.offset for one in history(kind, place)]
    assert sorted(found) == [
        100 * first + 10 * batch + offset for first in range(4) for batch in range(5) for offset in range(3)
    ]
    assert all(found[start : start + 3] == [found[start] + number for number in range(3)] for start in range(0, 60, 3))


class Expected:
    """What a store should hold after any sequence of steps: the plainest thing that keeps the contract."""

    def __init__(self) -> None:
        self.state: dict[Handle, str] = {}
        self.rows: dict[Handle, list[Observation]] = {}
        self.history: list[Observation] = []

    def allows(self, step: str, handle: Handle) -> bool:
        """Whether the step must succeed; otherwise it must raise `JobFailed`."""
        state = self.state.get(handle)
        fits = {"begin": {None}, "write": {"open"}, "prepare": {"open"}, "commit": {"prepared", "committed"}}
        return step == "abort" or state in fits[step]

    def take(self, step: str, handle: Handle, one: Observation) -> None:
        state = self.state.get(handle)
        if step == "write":
            self.rows[handle].append(one)
        elif step == "commit" and state == "prepared":
            self.history += self.rows[handle]
        elif step == "begin":
            self.rows[handle] = []
        elif step == "abort" and state in {None, "committed"}:
            return
        if step != "write":
            self.state[handle] = {"begin": "open", "prepare": "prepared", "commit": "committed", "abort": "aborted"}[
                step
            ]

    def unfinished(self) -> list[Handle]:
        return sorted(handle for handle, state in self.state.items() if state in {"open", "prepared"})


def carry_out(store: Any, transactions: dict[Handle, Any], step: str, handle: Handle, one: Observation) -> None:
    if step == "begin":
        transactions[handle] = store.begin(handle)
    elif step == "write":
        transactions[handle].write(one)
    elif step == "prepare":
        transactions[handle].prepare()
    else:
        getattr(store, step)(handle)


@contextmanager
def fresh_store(kind: str) -> Iterator[Store]:
    """A store for one example; what it has in a server goes with it, or a server's limit is soon reached."""
    with tempfile.TemporaryDirectory() as name, closing(open_store(kind, Path(name) / "store")) as store:
        try:
            yield store
        finally:
            if isinstance(store, ServerBacked):
                store.destroy()


STEPS = st.tuples(
    st.sampled_from(["begin", "begin", "write", "write", "prepare", "prepare", "commit", "commit", "abort"]),
    st.sampled_from([HANDLE, *OTHERS]),
)


@in_order_of_commits("Transactional")
@settings(max_examples=30)
@given(steps=st.lists(STEPS, max_size=40))
def test_history_is_what_was_committed_in_the_order_of_commits(kind: str, steps: list[tuple[str, Handle]]) -> None:
    expected, transactions = Expected(), dict[Handle, Any]()
    with fresh_store(kind) as store:
        for offset, (step, handle) in enumerate(steps):
            if expected.state.get(handle) == "aborted" and step in {"begin", "write"}:
                continue  # a name that was used; a writer that learns of its abort when it prepares
            if step in {"write", "prepare"} and handle not in transactions:
                continue
            if expected.allows(step, handle):
                carry_out(store, transactions, step, handle, row(offset))
                expected.take(step, handle, row(offset))
            else:
                with pytest.raises(JobFailed):
                    carry_out(store, transactions, step, handle, row(offset))
            assert list(store.history()) == expected.history
            assert store.prepared("q") == expected.unfinished()
        hidden = Counter(store.hidden())
        for handle, state in expected.state.items():
            if state == "prepared":
                hidden.subtract(expected.rows[handle])
        assert min(hidden.values(), default=0) >= 0
        still_open = [
            one for handle, state in expected.state.items() if state == "open" for one in expected.rows[handle]
        ]
        assert not +hidden - Counter(still_open)
