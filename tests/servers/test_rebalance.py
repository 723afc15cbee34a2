"""Two consumers of one group on a real broker: killed, stopped and slow ones, what is refused, what is left behind."""

import math
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
from labkit.host.processes.own_python import own_python
from labkit.teach.hands_on import rebalance as under_test
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


HURRIED = """
from labkit.teach.hands_on import rebalance_process
rebalance_process.PATIENCE = 15.0
rebalance_process.main()
"""


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The supervisor waits for 15 s instead of 90 s, which is several times as long as two consumers need."""
    monkeypatch.setattr(under_test, "own_python", lambda *_: own_python("-c", HURRIED))


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


def charges_those_in(worker, text):
    worker.join()
    while orders := worker.poll():
        for order in orders:
            if str(order) in text:
                worker.charge(order)
        worker.commit()


def names_each_order(worker):
    worker.join()
    while orders := worker.poll():
        for order in orders:
            worker.charge(order)
            worker.at("order")
        worker.commit()


def ends_at_once(worker):
    worker.at("before")


def b_fails_at_once(worker):
    worker.at("before")
    if worker.name == "B":
        raise ValueError("no")


def b_never_ends(worker):
    import time

    worker.at("before")
    if worker.name == "B":
        time.sleep(600)


def a_never_ends(worker):
    import time

    worker.at("before")
    if worker.name == "A":
        time.sleep(600)


def fails(worker):
    worker.join()
    worker.at("before")
    return 1 / 0


def fails_in_a_function(worker):
    def charge(order):
        worker.db.execute(f"INSERT INTO charges (who, id) VALUES ('A', {order})")

    worker.join()
    charge("x")


def needs_more(worker):
    worker.at(signal.Signals(9).name)


def counts_in_an_unset_variable(worker):
    total += 1  # noqa: F821, F841  # the mistake that the test is about


def says_much(worker):
    raise ValueError("first line\nsecond line " + 1_000 * "x")


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
    found = lab.rebalance(charges_those_in, each={"low": "0 7", "high": "4 8"}, kill="polled 6")
    assert {name: (each.charged, each.offset) for name, each in found.items()} == {
        "low": ("A 0, then B 7", 9),
        "high": ("A 4, then B 8", 9),
    }


@pytest.mark.slow
def test_a_moment_in_a_loop_counts_once(hurried: None):
    """B would never get the partition back from an A that waits at the same moment for a second order to go on."""
    found = lab.rebalance(names_each_order, slow="order")["names_each_order"]
    assert found.charged.startswith("A 0, then B 0 1 2 3 4 5 6 7 8, then A 1 2")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "longer", "message"),
    [
        pytest.param(
            b_never_ends, 0, "b_never_ends: B did not end within 15 s after 'before'", marks=pytest.mark.variant
        ),
        (a_never_ends, 0, "a_never_ends: A did not end within 15 s after 'before'"),
        (ends_at_once, 60, "ends_at_once: B took too long for longer=60: "),
        pytest.param(b_fails_at_once, 60, "b_fails_at_once: B ended with ValueError: no ", marks=pytest.mark.variant),
    ],
)
def test_the_consumer_that_has_not_ended_or_ended_too_late_is_named(hurried: None, program, longer, message):
    with pytest.raises(JobFailed, match=message):
        lab.rebalance(program, stop="before", longer=longer)


def test_a_failure_while_the_tables_are_prepared_leaves_none(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_hand()
    before = schemas(postgres)

    def refuse(*_: object) -> None:
        raise JobFailed("the broker refuses the orders.")

    monkeypatch.setattr(under_test, "fill", refuse)
    with pytest.raises(JobFailed, match="refuses the orders"):
        lab.rebalance(after, kill="charged 4")
    assert len(schemas(postgres)) == len(before) + 1
    by_hand()
    assert schemas(postgres) == before


@pytest.mark.parametrize(
    ("programs", "options", "error", "message"),
    [
        ((after,), {}, InvalidInput, "exactly one of the parameters"),
        ((after,), {"kill": "a", "stop": "b"}, InvalidInput, "exactly one of the parameters"),
        ((), {"kill": "a"}, InvalidInput, "exactly one of the parameters"),
        ((after, before), {"kill": "a", "each": {"a": "b"}}, InvalidInput, "pass only one program"),
        ((after, after), {"kill": "a"}, InvalidInput, "two programs have the same name"),
        ((len,), {"kill": "a"}, InvalidInput, "a function that you have defined"),
        ((lambda worker: worker,), {"kill": "a"}, InvalidInput, "a function that you have defined"),
        ((after,), {"kill": "a", "each": {}}, InvalidInput, "`each` is an empty dict"),
        ((after,), {"stop": "a", "longer": -1}, InvalidInput, "longer=-1 is not possible; .* from 0 to 60"),
        ((after,), {"stop": "a", "longer": 60.5}, InvalidInput, "longer=60.5 is not possible; .* from 0 to 60"),
        ((after,), {"stop": "a", "longer": math.nan}, InvalidInput, "longer=nan is not possible"),
        ((after,), {"kill": "a", "longer": 5}, InvalidInput, "the parameter `longer` has no effect"),
    ],
)
def test_a_call_that_cannot_be_gets_one_sentence(
    programs: tuple[Callable[..., object], ...], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as refused:
        lab.rebalance(*programs, **options)
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_a_moment_that_never_comes_is_refused_with_those_that_came():
    message = "after never reached the moment 'charged 44'; name one that it reached: 'polled 0', "
    with pytest.raises(InvalidInput, match=message):
        lab.rebalance(after, kill="charged 44")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "moment", "error", "line"),
    [
        (fails, "never", "A ended with ZeroDivisionError: division by zero", 3),
        (fails, "before", "B ended with ZeroDivisionError: division by zero", 3),
        (fails_in_a_function, "before", 'A ended with UndefinedColumn: column "x" does not exist', 2),
        (needs_more, "before", "A ended with NameError: name 'signal' is not defined", 1),
        (
            counts_in_an_unset_variable,
            "before",
            "A ended with UnboundLocalError: cannot access local variable 'total'",
            1,
        ),
        (says_much, "before", "A ended with ValueError: first line second line x", 1),
        (takes_no_worker, "before", "A ended with TypeError: takes_no_worker() takes 0 positional arguments", 0),
    ],
)
def test_an_error_of_a_program_is_told_with_its_message_and_line(program, moment, error, line):
    with pytest.raises(JobFailed) as refused:
        lab.rebalance(program, kill=moment)
    message = str(refused.value)
    assert message.startswith(f"{program.__name__}: {error}")
    assert f"(line {program.__code__.co_firstlineno + line} of test_rebalance.py); " in message
    assert ("its processes get nothing else" in message) == (program is needs_more)
    assert ("\n" not in message, len(message) < 400, message[-1]) == (True, True, ".")


IN_A_CELL = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("from labkit import lab", store_history=True)
shell.run_cell("def fails(worker):\\n    return 1 / 0", store_history=True)
try:
    lab = shell.user_ns["lab"]
    lab.rebalance(shell.user_ns["fails"], kill="never")
except Exception as error:
    print(error)
"""


@pytest.mark.slow
def test_an_error_in_a_cell_is_told_with_the_line_of_the_cell() -> None:
    ended = subprocess.run([sys.executable, "-c", IN_A_CELL], stdout=subprocess.PIPE, text=True, check=True)
    assert "ZeroDivisionError: division by zero (line 2 of cell In[2]); " in ended.stdout


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
