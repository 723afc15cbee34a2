"""The table of orders: its squares, the page, the command, and that each sentence of the page can fail."""

import json

import pytest
from build_orders import PAGE, STALE, page
from command import labkit, refusal

from labkit import lab
from labkit.core.errors import InvalidInput
from labkit.sim.models.orders.state import Fault
from labkit.sim.orders import table
from labkit.sim.orders.merging import verdicts
from labkit.sim.orders.named import NAMED, named
from labkit.sim.trace import parse, replay
from labkit.sim.writes import Output

ONCE, MORE, LESS = "exactly-once", "at-least-once", "at-most-once"
IN_A_TRANSACTION = "rows of a step come in one transaction"
STRUCK = {name for name, each in NAMED.items() if each.fault is not Fault.NONE}
"""Systems in which something else happens than a crash: no square speaks of them."""
OUTPUT_FIRST, DECISION_FIRST = "output, then decision", "decision, then output"


@pytest.fixture(scope="module")
def orders():
    return lab.orders()


def of(orders, block: str, row: str) -> list[str]:
    return [orders.grid.squares[block, row, column].guarantee for column in table.COLUMNS]


def test_the_squares_are_as_predicted_by_hand(orders):
    no = "cannot be"
    added, replaced, _ = table.BLOCKS
    assert of(orders, added, OUTPUT_FIRST) == [MORE, LESS, MORE, no, MORE, MORE, ONCE]
    assert of(orders, added, DECISION_FIRST) == [LESS, LESS, LESS, no, LESS, MORE, LESS]
    assert of(orders, replaced, OUTPUT_FIRST) == [ONCE, LESS, ONCE, no, ONCE, ONCE, ONCE]
    assert of(orders, replaced, DECISION_FIRST) == [LESS, LESS, LESS, no, LESS, ONCE, LESS]
    joined = of(orders, IN_A_TRANSACTION, "output with decision")
    assert of(orders, IN_A_TRANSACTION, OUTPUT_FIRST) == [MORE, LESS, MORE, ONCE, MORE, MORE, ONCE]
    assert of(orders, IN_A_TRANSACTION, DECISION_FIRST) == [LESS] * 5 + [ONCE, LESS]
    assert joined == [ONCE, LESS, ONCE, ONCE, ONCE, ONCE, ONCE]


def test_who_stands_in_a_square_is_left_with_what_the_square_says(orders):
    standing = {name: square for square, names in table.built().items() for name in names}
    assert set(NAMED) - set(standing) - STRUCK == {"trident-mixed"}
    assert not STRUCK & set(standing)
    for name, square in standing.items():
        order, there = orders[name], orders.squares[square]
        assert order.guarantee is there.guarantee
        assert order.guarantee_with_other_rows is there.guarantee_with_other_rows
    assert orders.built["kafka-streams"] == "output with decision | nothing else"
    assert orders.built["flink-two-phase"] == ("decision, then output | staged, finished")
    assert "<small>flink-two-phase, " in orders.grid.html()


def test_a_design_without_a_note_stands_nowhere():
    assert table.square_of(named("plan > visible; upsert; from beginning")) is None


def test_a_marker_needs_a_plan_and_offsets_need_none(orders):
    square = orders.grid.squares[IN_A_TRANSACTION, OUTPUT_FIRST, "marker with output"]
    assert "Without a plan, a repeated step may get other rows, and the guarantee is then none." in (square.because)
    assert orders["offsets-in-store"].is_exactly_once
    assert not orders["trident-mixed"].is_exactly_once


def test_no_reader_tells_the_quiet_ones_apart():
    """Two-phase commit, Kafka's transactions, Delta under a plan, offsets in the store, receivers that know ids."""
    found = {name: verdicts(each.design) for name, each in NAMED.items() if name not in STRUCK}
    quiet = {name for name, each in found.items() if set(each.guarantees) == {ONCE} and not any(each.broken)}
    assert quiet == {
        *("spark-marker", "delta-txn", "spark-files", "flink-two-phase"),
        *("kafka-transaction", "kafka-streams", "offsets-in-store"),
        *("outbox-idempotent", "millwheel", "trident-transactional", "delta-catalog", "kafka-prepared"),
    }
    assert len({found[name].key for name in quiet}) == 1


def test_the_grid_needs_no_script_and_is_small(orders):
    bundle = orders._repr_mimebundle_()
    html = bundle["text/html"]
    assert html.count("<details") == 63
    assert html.count("Simulated: every schedule with at most 2 crashes.") == 45
    assert "Delta Lake's txnAppId" in html
    assert "real Spark" not in html + bundle["text/plain"]
    assert "<script" not in html
    assert len(html.encode()) <= 50_000


def test_one_design_is_a_card_with_its_schedules(orders):
    bundle = orders["flink-log"]._repr_mimebundle_()
    assert "after a row of its output and before its marker" in bundle["text/html"]
    assert "<script" not in bundle["text/html"]
    assert len(bundle["text/plain"].splitlines()) <= 12
    walk = replay(parse(str(orders["flink-log"].trace("no_duplicate"))))
    assert [action.name for action in walk.actions].count("crash") == 1


def test_what_is_not_there_is_refused(orders):
    with pytest.raises(InvalidInput, match="did you mean 'outbox'"):
        _ = orders["outbux"]
    with pytest.raises(InvalidInput, match="No schedule violates a property"):
        orders["spark-marker"].trace()
    with pytest.raises(InvalidInput, match="did you mean 'no_loss'"):
        orders["consumer-early"].trace("no_los")
    with pytest.raises(InvalidInput, match="there is no write 'plans'"):
        orders["outbox"].cheapest(held=["plans"])


def test_each_design_of_the_table_was_named_by_its_exact_text():
    for name, each in NAMED.items():
        assert named(str(each.design)) == each.design
        assert each.who
        assert each.source
        assert named(name) == each.design


def test_a_square_without_output_in_a_transaction_joins_nothing():
    for (block, _, column), design in table.every().items():
        if design is None:
            assert table.BLOCKS[block] is not Output.TRANSACTION
        else:
            assert ("+" in design.order) == (
                column == "marker with output" or "decision+" in design.order or "+decision" in design.order
            )


def test_the_page_is_in_step():
    known = PAGE.read_text(encoding="utf-8")
    if page(known) != known:
        pytest.fail(STALE, pytrace=False)


# The command.


def test_the_command_prints_the_table_and_one_design():
    code, out, _ = labkit("orders")
    assert code == 0
    assert IN_A_TRANSACTION in out
    assert "spark-append: Spark's foreachBatch that appends" in out
    code, out, _ = labkit("orders", "--design", "spark-append", "--cheapest")
    assert code == 1
    assert "rows are there twice" in out
    assert "1 edit: make the output upsert\n  plan > visible > decision; upsert" in out
    trace = out.split("labkit replay '")[1].split("'")[0]
    assert "crash" in [each.name for each in parse(trace).actions]


def test_the_command_searches_a_design_under_another_fault():
    code, out, _ = labkit("orders", "--design", "spark-marker", "--fault", "lag")
    assert code == 1
    assert "A note in the log is left out, and the process dies" in out
    trace = out.split("labkit replay '")[1].split("'")[0]
    assert "defer" in [each.name for each in parse(trace).actions]
    code, out, _ = labkit("orders", "--design", "flink-kafka-expired", "--json")
    assert code == 1
    found = json.loads(out)
    assert (found["fault"], found["built"]) == ("expiry", ["flink-kafka-expired"])
    assert "The store aborts prepared output" in str(found["worlds"])


def test_the_command_prints_json():
    code, out, _ = labkit("orders", "--design", "spark-marker", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["built"] == ["spark-marker", "delta-txn", "trident-transactional"]
    assert found["worlds"]["same"] == {"guarantee": ONCE, "broken": {}}
    code, out, _ = labkit("orders", "--json")
    assert code == 0
    assert len(json.loads(out)["squares"]) == 45


REFUSED = {
    ("--design", "spark-apend"): "there is no design 'spark-apend'; did you mean 'spark-append'?",
    (
        "--cheapest",
    ): "--cheapest changes a design, but you have not named one; add --design, as in --design spark-append --cheapest.",
    ("--quietly",): "--quietly and --hold only apply to --cheapest; add --cheapest, or leave them out.",
    ("--design", "outbox", "--hold", "plan"): "--quietly and --hold only apply to --cheapest; add --cheapest, or leave "
    "them out.",
    ("--fault", "lag"): "--fault tests the design that --design names, and --cheapest looks for other designs; leave "
    "--cheapest out and name the design, as in --design spark-marker --fault lag.",
    ("--design", "outbox", "--fault", "lags"): "there is no fault 'lags'; did you mean 'lag'?",
    ("--design", "outbox", "--cheapest", "--hold", "plans"): "there is no write 'plans'; did you mean 'plan'?",
}


@pytest.mark.parametrize("options", REFUSED)
def test_the_command_refuses_in_one_sentence(options: tuple[str, ...], tmp_path):
    assert refusal("orders", *options, cwd=tmp_path) == REFUSED[options]
