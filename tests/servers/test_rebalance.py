"""Two consumers of one group on a real broker: killed, stopped and slow ones, what is refused, what is left behind."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from psycopg import sql

from labkit import lab
from labkit.core.errors import InvalidInput, JobFailed
from labkit.core.judge import Guarantee
from labkit.host import addresses
from labkit.teach.hands_on.postgres import postgres as by_hand


@pytest.fixture(scope="module", autouse=True)
def _servers(postgres: str, kafka_address: str) -> Iterator[None]:
    """The servers of all tests, as a user's own servers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(addresses.POSTGRES, postgres)
        patch.setenv(addresses.KAFKA, kafka_address)
        yield
        by_hand()  # cleans what the last call has made
        assert not schemas(postgres)


def schemas(address: str) -> list[tuple[object, ...]]:
    """The schemas of programs, which calls of lab.rebalance have made."""
    with psycopg.connect(address) as connection:
        return connection.execute("SELECT nspname FROM pg_namespace WHERE nspname ~ '^notebook_.+_[0-9]+$'").fetchall()


def after(worker):
    worker.join()
    while orders := worker.poll():
        for order in orders:
            worker.charge(order)
        worker.commit()


def before(worker):
    worker.join()
    while orders := worker.poll():
        worker.commit()
        for order in orders:
            worker.charge(order)


def told(worker, word):
    worker.join()
    while orders := worker.poll():
        worker.at(f"{word} {orders[0]}")
        worker.commit()


def fails(worker):
    worker.join()
    worker.at("before")
    return 1 / 0


def takes_no_worker():
    pass


def test_a_kill_repeats_or_loses_what_the_commit_says(postgres: str):
    found = lab.rebalance(before, after, kill="charged 4")
    assert schemas(postgres)  # so the fixture sees later that they are removed
    assert found["before"].charged == "A 0 1 2 3 4, then B 6 7 8"
    assert (found["before"].verdict.guarantee, found["before"].verdict.lost) == (Guarantee.AT_MOST_ONCE, (5,))
    assert found["after"].charged == "A 0 1 2 3 4, then B 3 4 5 6 7 8"
    assert found["after"].ends == ("signal 9", "")
    assert [each.offset for each in found.values()] == [9, 9]
    assert "A 0 1 2 3 4, then B 3 4 5 6 7 8" in str(found["after"])
    rows = lab.compare(found).rows
    assert [row["lost"] for row in rows.values()] == ["1", "0"]


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["stop", "slow"])
def test_a_consumer_that_was_replaced_goes_on_and_its_commit_is_refused(fault):
    found = lab.rebalance(after, **{fault: "charged 4"})["after"]
    assert found.charged == "A 0 1 2 3 4, then B 3 4 5 6 7 8, then A 5"
    assert found.ends == ("CommitFailedError", "")
    assert found.offset == 9
    assert found.verdict.duplicate == (3, 4, 5)


@pytest.mark.slow
def test_a_program_runs_once_with_each_text():
    found = lab.rebalance(told, each={"one": "x", "two": "x 3 y"[:1]}, kill="x 3")
    assert {name: (each.charged, each.offset) for name, each in found.items()} == {
        "one": ("nothing", 9),
        "two": ("nothing", 9),
    }


@pytest.mark.parametrize(
    ("programs", "options", "error", "message"),
    [
        ((after,), {}, InvalidInput, "needs programs"),
        ((after,), {"kill": "a", "stop": "b"}, InvalidInput, "one of stop, slow and kill"),
        ((), {"kill": "a"}, InvalidInput, "needs programs"),
        ((after, before), {"kill": "a", "each": {"a": "b"}}, InvalidInput, "or one program with each"),
        ((after, after), {"kill": "a"}, InvalidInput, "two programs have the same name"),
        ((len,), {"kill": "a"}, InvalidInput, "functions that you have defined"),
        ((lambda worker: worker,), {"kill": "a"}, InvalidInput, "functions that you have defined"),
    ],
)
def test_a_call_that_cannot_be_gets_one_sentence(
    programs: tuple[Callable[..., object], ...], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as refused:
        lab.rebalance(*programs, **options)
    assert "\n" not in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "moment", "error", "message"),
    [
        (after, "charged 44", InvalidInput, r"after never reached the moment 'charged 44'; it passed: 'polled 0', "),
        (fails, "never", JobFailed, "fails: A ended with ZeroDivisionError"),
        (fails, "before", JobFailed, "fails: B ended with ZeroDivisionError"),
        (takes_no_worker, "before", JobFailed, "takes_no_worker: A ended with TypeError"),
    ],
)
def test_a_program_that_shows_nothing_is_refused(program, moment, error, message):
    with pytest.raises(error, match=message):
        lab.rebalance(program, kill=moment)


ASKING = """
import sys
sys.path.insert(0, {folder!r})
from test_rebalance import after
from labkit import lab
lab.rebalance(after, stop="charged 4", longer=60)
"""


@pytest.mark.slow
def test_nobody_is_left_when_the_asking_process_is_killed(postgres: str) -> None:
    """Also not the consumer that is stopped: the supervisor's input ends, and it kills both.

    The tables stay, because the server is the user's own here; a private one ends as well.
    """
    earlier = schemas(postgres)
    code = ASKING.format(folder=str(Path(__file__).parent))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL) as asking:
        deadline = time.monotonic() + 60
        family: list[psutil.Process] = []
        while not any(each.status() == psutil.STATUS_STOPPED for each in family if each.is_running()):
            assert time.monotonic() < deadline
            time.sleep(0.1)
            family = psutil.Process(asking.pid).children(recursive=True)
        asking.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(family, timeout=20)
    assert not alive
    with psycopg.connect(postgres) as connection:
        for (name,) in set(schemas(postgres)) - set(earlier):
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(str(name))))
