"""From the names of effects to the order of writes of one step: what is told, and what is refused."""

import pytest
from cells import before

from labkit.core.errors import InvalidInput
from labkit.crashtest.blackbox.writes import Orders, engine_rows, meaning, meanings, orders, unknown
from labkit.sim.writes import Write, parse_order

TABLE = {"create *": "nothing", "write data": "visible", "write done": "marker", "rename plan": "plan"}


def told(
    names: list[str], table: dict[str, str] = TABLE, ends: str | None = None, idle: tuple[Write, ...] = ()
) -> Orders:
    return orders(names, meanings(table), ends, idle)


def numbered(*kinds: str) -> list[str]:
    """Names as effects have them: the same kind again has the next number."""
    return [f"{kind} #{kinds[: place + 1].count(kind)}" for place, kind in enumerate(kinds)]


STEP = ("rename plan", "write data", "write data", "write done")


def test_steps_are_cut_where_a_write_is_made_again() -> None:
    found = told([*numbered("create data", *STEP, *STEP, *STEP), "exit"])
    assert str(found) == "plan > visible > marker"
    assert found.order == parse_order("plan > visible > marker")
    assert len(found.steps) == 3
    assert found.steps[1][1].effects == ("write data #3", "write data #4")


def test_another_order_of_effects_is_another_order_of_writes() -> None:
    swapped = ("write done", "rename plan", "write data")
    assert str(told(numbered(*swapped, *swapped))) == "marker > plan > visible"


def test_a_kill_before_a_set_leaves_those_before_it_whole() -> None:
    found = told(numbered(*STEP, *STEP))
    assert [before(found, 1, done) for done in range(4)] == [
        "rename plan #1",
        "write data #1",
        "write done #1",
        "rename plan #2",
    ]
    assert before(found, 2, 3) == "exit"


def test_a_place_is_found_again() -> None:
    found = told(numbered(*STEP, *STEP))
    for step in (1, 2):
        for done in range(3):
            assert found.place(before(found, step, done)) == (step, done)
    assert found.place("exit") == (2, 3)
    assert found.place("create data #1") is None


def test_an_effect_that_no_row_knows_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="'unlink data #1'"):
        told([*numbered(*STEP), "unlink data #1"])
    names = numbered(*STEP, "unlink data", "unlink data", "sync data")
    assert unknown(names, meanings(TABLE)) == ["unlink data", "sync data"]


def test_effects_of_one_transaction_are_one_set_at_its_commit() -> None:
    table = {"send INSERT": "(visible)", "send MARK": "(marker)", "send COMMIT": "commits"}
    both = ("send INSERT", "send MARK", "send COMMIT")
    found = told(numbered(*both, *both), table, ends="send COMMIT")
    assert str(found) == "visible+marker"
    assert before(found, 2, 0) == "send COMMIT #2"
    apart = ("send INSERT", "send COMMIT", "send MARK", "send COMMIT")
    assert str(told(numbered(*apart, *apart), table)) == "visible > marker"


def test_what_no_commit_follows_has_not_happened() -> None:
    table = {"send INSERT": "(visible)", "send COMMIT": "commits"}
    with pytest.raises(InvalidInput, match=r"none of the recorded effects .* output"):
        told(numbered("send INSERT"), table)


def test_one_effect_may_stage_now_and_show_later() -> None:
    table = {"send ROW": "staged (visible)", "rename done": "decision", "send END": "commits"}
    step = ("send ROW", "rename done", "send END")
    assert str(told(numbered(*step, *step), table)) == "staged > decision > visible"


def test_a_row_may_speak_of_one_number_alone() -> None:
    table = {"write data #[12]": "nothing", "write data": "visible", "write done": "marker"}
    found = told(numbered("write data", "write data", "write data", "write done"), table)
    assert found.steps[0][0].effects == ("write data #3",)


def test_interleaved_writes_have_no_order() -> None:
    names = numbered("write data", "write done", "write data")
    with pytest.raises(InvalidInput, match="alternate"):
        told(names, ends="rename plan")


def test_a_refusal_stays_short() -> None:
    names = numbered(*("write data", "write data", "write done") * 500, "write data")
    with pytest.raises(InvalidInput, match="alternate") as error:
        told(names, ends="rename plan")
    assert "marker > visible > marker, and so on)" in str(error.value)
    assert len(str(error.value)) < 250


def test_a_write_in_two_sets_of_a_step_has_no_order() -> None:
    table = {"write data": "visible", "write both": "visible+marker"}
    with pytest.raises(InvalidInput, match="alternate"):
        told(numbered("write data", "write both"), table, ends="rename plan")


def test_steps_that_differ_are_refused() -> None:
    names = numbered(*STEP, "rename plan", "write done", "write data")
    with pytest.raises(InvalidInput, match="step 2 in the order 'plan > marker > visible'"):
        told(names)


def test_a_step_without_output_is_none() -> None:
    names = numbered("rename plan", "write done", *STEP, "rename plan", "write done")
    assert len(told(names).steps) == 1


CHECKPOINTS = {"write part": "staged", "rename chk": "decision", "rename part": "visible"}


def test_only_the_last_idle_write_before_output_belongs_to_its_step() -> None:
    step = ("write part", "rename chk", "write part", "rename chk", "rename part")
    names = numbered("rename chk", *step, "rename chk", "rename chk", *step, "rename chk")
    found = told(names, CHECKPOINTS, idle=(Write.DECISION,))
    assert str(found) == "staged > decision > visible"
    assert before(found, 1, 1) == "rename chk #3"
    with pytest.raises(InvalidInput):
        told(names, CHECKPOINTS)


@pytest.mark.parametrize("said", ["visble", "", "(visible", "marker, visible"])
def test_a_meaning_that_is_none_is_refused(said: str) -> None:
    with pytest.raises(InvalidInput):
        meaning("write *", said)


def test_every_row_that_is_shipped_can_be_read_and_is_named_by_its_engine() -> None:
    assert len(engine_rows()) > 40
    assert set(engine_rows("spark")) < set(engine_rows())
    with pytest.raises(InvalidInput, match="did you mean 'spark'"):
        engine_rows("sparc")
