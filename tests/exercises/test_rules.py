"""The rules of exercises, held against the simulators, against real kills, and against what was predicted by hand."""

from collections.abc import Iterator
from itertools import pairwise, permutations, product
from typing import Any, get_args

import pytest

from labkit import lab
from labkit.core.errors import InvalidInput
from labkit.core.judge import Guarantee
from labkit.grading.hidden import variants
from labkit.sim.models.changelog.query import messages
from labkit.sim.models.changelog.state import Kind, settings
from labkit.sim.trace import make, parse, replay
from labkit.sim.writes import AtomicSet, Write, atomic
from labkit.teach.exercises import barriers, delivery, guarantees, kills
from labkit.teach.exercises.changes import APPLY, MEANS, MESSAGES, REFUSED, WAYS, really_sent
from labkit.teach.exercises.constants import Settings
from labkit.teach.exercises.contract import Variant
from labkit.teach.exercises.demands import really_broken
from labkit.teach.exercises.engines import OUTPUTS, forbidden, harm, has_order, really_next, stores
from labkit.teach.exercises.namespace import InNotebook
from labkit.teach.exercises.registry import EXERCISES, find
from labkit.teach.study import explore

# Demands on a store

GOOD = {"shows": "committed", "open": None, "sealed": None, "ends": "anybody", "again": "nothing"}
JOB = {"interval": 2, "checkpoint": 1, "downtime": 2}
KAFKA = {
    "partitions": 1,
    "records": 1,
    "isolation": "read_committed",
    "interval": JOB["interval"],
    "checkpoint_timeout": JOB["checkpoint"],
    "ticks": 8,
}


@pytest.mark.parametrize(
    ("differs", "demand", "claim", "model", "parameters"),
    [
        (
            {"shows": "everything"},
            1,
            "no_aborted_read",
            "pipeline",
            {"store": "sqlite", "reader": "table", "words": "hello-world"},
        ),
        ({"again": "error"}, 5, "ends", "pipeline", {"committed_again": "raise", "words": "hello-world"}),
        ({"again": "next"}, 5, "no_duplicate", "kafka_log", {"naming": "one", "retries": 1, "partitions": 1}),
        ({"ends": "its session"}, 4, "no_loss", "kafka_log", {"broken": "init_first", "partitions": 1}),
    ],
)
def test_a_broken_demand_breaks_a_claim(differs, demand, claim, model, parameters):
    assert really_broken(GOOD | differs, JOB) == [demand]
    assert claim in explore(model, **parameters).violated


def test_a_store_that_keeps_all_demands_breaks_no_claim_about_rows():
    assert really_broken(GOOD, JOB) == []
    found = explore("pipeline", words="hello-world", crashes=2)
    assert found.exhausted
    assert not {"no_loss", "no_duplicate", "no_aborted_read", "ends"} & set(found.violated)


def test_a_limit_must_be_longer_than_the_wait():
    """A sealed transaction waits for interval, checkpoint and restart, counted from its first record."""
    needed = sum(JOB.values())
    for limit in (needed, needed + 1):
        sealed = limit - JOB["interval"]  # the simulated clock starts with the interval
        is_broken = really_broken(GOOD | {"sealed": sealed}, JOB) == [3]
        found = explore("kafka_log", **KAFKA, crashes=1, downtime=2, timeout=limit)
        assert ("no_loss" in found.violated) is is_broken


@pytest.mark.parametrize(("limit", "broken"), [(1, [2]), (2, [2]), (3, [])])
def test_an_open_transaction_needs_more_than_the_interval(limit, broken):
    assert really_broken(GOOD | {"open": limit}, JOB) == broken


# Engines

MORE = ((), (Write.STAGED,), (Write.MARKER,), (Write.STAGED, Write.MARKER))


def all_orders() -> Iterator[tuple[AtomicSet, ...]]:
    """Plan first, then rows, note and what may be added, in each order, with each set that holds the rows."""
    for more in MORE:
        writes = (Write.VISIBLE, Write.DECISION, *more)
        for order in permutations(writes):
            alone = tuple((each,) for each in order)
            yield ((Write.PLAN,), *alone)
        for joined in ((Write.DECISION,), (Write.MARKER,), (Write.DECISION, Write.MARKER)):
            if set(joined) <= set(writes):
                rest = [(each,) for each in writes[1:] if each not in joined]
                together = atomic((Write.VISIBLE, *joined))
                for order in permutations([together, *rest]):
                    yield ((Write.PLAN,), *order)


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("rows", OUTPUTS)
def test_there_is_an_order_just_where_one_of_all_is_right(rows: str, quiet: bool) -> None:
    for store in stores(rows):
        right = [order for order in all_orders() if not forbidden(order, store) and not harm(order, store, quiet=quiet)]
        assert bool(right) == has_order(store, quiet=quiet), store


def test_what_was_predicted_by_hand_of_each_store() -> None:
    def found(rows: str, *, quiet: bool) -> list[bool]:
        return [has_order(store, quiet=quiet) for store in stores(rows)]

    assert found("added", quiet=False) == 8 * [False]
    assert found("replaced", quiet=False) == 8 * [True]
    assert found("replaced", quiet=True) == 8 * [False]
    # Of a store that takes rows together only one that can do nothing else has no order.
    assert found("together", quiet=True) == [False] + 7 * [True]


@pytest.mark.parametrize(
    ("engine", "left", "step"),
    [
        ("spark", ["offsets/0", "offsets/1", "offsets/2", "commits/0", "commits/1"], 2),
        ("spark", ["commits/10", "offsets/9", "offsets/10"], 11),
        ("spark", ["offsets/3", "commits/.3.tmp"], 3),
        ("spark", [], 0),
        ("flink", ["ha/10", "chk-10/_metadata", "chk-9/_metadata", "ha/9"], 11),
        ("flink", ["chk-9/_metadata", "ha/9", "chk-10/._metadata.inprogress"], 10),
        ("flink", ["chk-9/_metadata", "ha/9", "chk-10/_metadata"], 10),
        ("flink", [], 1),
    ],
)
def test_the_next_step_of_files_that_were_left(engine: str, left: list[str], step: int) -> None:
    assert really_next(engine, left) == step


# Changes

COUNTS = range(6)


@pytest.mark.parametrize("way", ["retract", "upsert"])
@pytest.mark.parametrize("at_most", range(4))
def test_messages_are_those_of_the_simulated_query(way: str, at_most: int):
    """Of a count that grows by one, whichever counts are in the result."""
    given = settings(make("changelog", {"encoding": way, "at_most": at_most}).values)
    said = 0
    for old, new in pairwise(COUNTS):
        before, after = (count if given.shows(count) else None for count in (old, new))
        sent = messages(given, "hello", old, 7)
        told = [[str(kind), key, count] for kind, key, count, _ in sent]
        # The simulated upsert stream deletes a row by its key and its old count, and so does the exercise.
        assert told == really_sent(way, "hello", before, after)
        said += len(sent)
    assert said >= 2


def test_append_only_refuses_what_the_simulator_refuses():
    """A row that leaves the result needs to be taken back: the simulator takes no such configuration."""
    with pytest.raises(InvalidInput, match="append-only"):
        settings(make("changelog", {"encoding": "append", "at_most": 1}).values)
    assert really_sent("append", "hello", 1, None) == REFUSED
    assert really_sent("append", "hello", 1, 2) == REFUSED
    assert really_sent("append", "hello", None, 1) == [["+", "hello", 1]]


@pytest.mark.parametrize("way", WAYS)
def test_a_row_that_has_not_changed_is_not_mentioned(way: str):
    for count in (None, *COUNTS):
        assert really_sent(way, "hello", count, count) == []


def test_every_sign_has_its_sentence():
    assert set(MEANS) == set(Kind)


def test_a_counterexample_of_a_receiver_is_a_run_to_that_table():
    def keeps_all(rows, _message):
        return rows

    answer = InNotebook("apply", {"apply": keeps_all})
    finding = APPLY.judge(answer, find("10-apply").public[0])
    assert not finding.passed
    assert finding.trace is not None
    walk = replay(parse(finding.trace))
    assert (len(walk.actions), walk.state.consumer.table) == (finding.at, ())
    assert walk.state.topic[0].kind is Kind.ADD


@pytest.mark.parametrize(
    ("judge", "name", "given", "said"),
    [
        (MESSAGES.judge, "messages", None, "return a list of messages"),
        (MESSAGES.judge, "messages", "no", "return a list of messages"),
        (APPLY.judge, "apply", {"hello": 1}, "return a list of rows"),
        (APPLY.judge, "apply", [1, 2], "return a list of rows"),
    ],
)
def test_another_form_gets_a_sentence(judge, name, given, said):
    answer = InNotebook(name, {name: lambda *_: given})
    finding = judge(answer, find(f"10-{name}").public[0])
    assert not finding.passed
    assert said in finding.message


def test_an_answer_that_changes_is_refused():
    said = []

    def messages_(way, word, before, after):
        said.append(1)
        right = really_sent(way, word, before, after)
        return right if len(said) <= 27 else []

    variant = Variant("few", (("words", ("hello",)), ("counts", (1, 2))))
    finding = MESSAGES.judge(InNotebook("messages", {"messages": messages_}), variant)
    assert not finding.passed
    assert "when asked again" in finding.message


# Settings: few enough to try them all

ALL = {"01-links": guarantees.LINKS, "02-chain": delivery.CHAIN, "04b-settings": barriers.SETTINGS}
RIGHT = {
    "01-links": {
        ("log", "commit-then-log", "batch_marker"),
        ("log", "log-then-commit", "batch_marker"),
        ("log", "log-then-commit", "two_phase"),
    },
    "02-chain": {(True, "durable", "derived")},
    "04b-settings": {("aligned", "two_phase", "keep"), ("unaligned", "two_phase", "keep")},
}


def passing(settings: Settings, tried: list[Variant]) -> Iterator[tuple[object, ...]]:
    """Every choice that passes all variants."""
    for chosen in product(*settings.chosen.values()):
        answer = InNotebook("it", {"it": dict(zip(settings.chosen, chosen, strict=True))})
        if all(settings.judge(answer, variant).passed for variant in tried):
            yield chosen


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.slow) if one == "04b-settings" else one for one in ALL]
)
def test_exactly_the_right_settings_pass(name: str):
    assert set(passing(ALL[name], list(EXERCISES[name].public))) == RIGHT[name]
    assert set(passing(ALL[name], variants(name, 1))) == RIGHT[name]


# Kills: what a real SQLite does under real kills

WITH_THREE_ROWS: list[kills.Requests] = [
    ("BEGIN", "ROW", "ROW", "ROW", "COMMIT"),  # wrong at the last place alone
    ("LOOK", "BEGIN", "ROW", "ROW", "ROW", "COMMIT", "MARK"),
    ("BEGIN", "LOOK", "ROW", "MARK", "ROW", "ROW", "COMMIT"),
]
SLOW: list[kills.Requests] = [
    ("LOOK", "ROW", "MARK", "ROW", "ROW"),
    ("LOOK", "BEGIN", "ROW", "COMMIT", "BEGIN", "ROW", "ROW", "MARK", "COMMIT"),
    ("LOOK", "BEGIN", "ROW", "MARK", "COMMIT", "BEGIN", "ROW", "ROW", "COMMIT"),
    ("ROW", "ROW", "MARK", "ROW"),
]


def sink_of(requests: kills.Requests) -> Any:
    """A sink that makes these requests of a database."""

    def sink(db: Any, query: str, batch: int, rows: list[dict[str, Any]]) -> None:
        db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
        db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
        waiting = sorted(rows, key=lambda row: row["id"])
        for request in requests:
            if request == "LOOK":
                look = "SELECT 1 FROM marks WHERE query = ? AND batch = ?"
                if db.execute(look, [query, batch]):
                    break
            elif request == "ROW":
                if waiting:
                    row = waiting.pop(0)
                    db.execute("INSERT INTO orders VALUES (?, ?, ?)", [*row.values()])
            elif request == "MARK":
                db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
            else:
                db.execute(request)

    return sink


@pytest.mark.parametrize(
    "requests", [*WITH_THREE_ROWS, *(pytest.param(each, marks=pytest.mark.slow) for each in SLOW)], ids=" ".join
)
def test_a_real_database_gives_the_same_after_real_kills(requests: kills.Requests) -> None:
    words = set(lab.try_sink(sink_of(requests), "table").kills)
    twice = bool(words & {Guarantee.AT_LEAST_ONCE, Guarantee.NONE})
    lost = bool(words & {Guarantee.AT_MOST_ONCE, Guarantee.NONE})
    said = kills.guarantee(requests)
    assert (lost, twice) == (
        said in (Guarantee.AT_MOST_ONCE, Guarantee.NONE),
        said in (Guarantee.AT_LEAST_ONCE, Guarantee.NONE),
    )


def test_variants_have_every_guarantee() -> None:
    drawn = [*kills.PUBLIC, *variants("14-kills", 1)]
    said = {kills.guarantee(case) for variant in drawn for case in variant["cases"]}
    assert said == set(Guarantee) - {Guarantee.UNKNOWN}


def test_no_sink_without_a_look_is_exactly_once() -> None:
    """By all lists of five requests: who never looks, repeats."""
    for requests in product(get_args(kills.Request), repeat=5):
        if "LOOK" not in requests and "ROW" in requests:
            assert kills.guarantee(requests) != Guarantee.EXACTLY_ONCE
