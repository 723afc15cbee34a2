"""The rules of the exercises about engines, held against every order that can be made, and against files left
by hand.
"""

from collections.abc import Iterator
from itertools import permutations

import pytest

from labkit.sim.writes import AtomicSet, Write, atomic
from labkit.teach.exercises.engines import OUTPUTS, forbidden, harm, has_order, really_next, stores

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
