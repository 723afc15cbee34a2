"""Histories for tests of what the core says of them: random ones, and every small one."""

from itertools import product

from hypothesis import strategies as st

from labkit.core.records import History, Observation, PlannedBatch, Reading, Record, Visibility

ABORTED, PRECOMMITTED = Visibility.ABORTED, Visibility.PRECOMMITTED


@st.composite
def random_histories(draw):
    offsets = draw(st.one_of(st.just(range(6)), st.sets(st.integers(-3, 9), max_size=6).map(sorted)))
    expected = [Record(offset, draw(st.sampled_from("ab")), number) for number, offset in enumerate(offsets)]
    odd = st.builds(Record, st.integers(-4, 10), st.sampled_from("abz"), st.integers(0, 6))
    records = st.one_of(st.sampled_from(expected), st.sampled_from(expected), odd) if expected else odd
    visibilities = st.sampled_from([*[Visibility.COMMITTED] * 4, ABORTED, PRECOMMITTED])
    rows = st.builds(
        lambda record, *rest: Observation(*record, *rest), records, st.integers(0, 1), st.integers(1, 3), visibilities
    )
    readings = st.builds(Reading, st.sampled_from(["crash 1", "crash 2", "end"]))
    cuts = sorted(draw(st.lists(st.integers(-4, 11), max_size=6)))
    return expected, History(
        events=draw(st.lists(st.one_of(rows, rows, rows, readings), max_size=14)),
        keyed=draw(st.booleans()),
        planned_batches=[PlannedBatch(n, *cuts[n * 2 : n * 2 + 2]) for n in range(len(cuts) // 2)],
        hidden=draw(st.lists(rows, max_size=3)),
    )


ROWS = [(0, "a", 1), (1, "a", 2), (2, "b", 1), (1, "a", 7), (9, "a", 1)]
SIGHTS = [
    *((row, Visibility.COMMITTED) for row in ROWS),
    *((row, visibility) for row in ROWS[:2] for visibility in (ABORTED, PRECOMMITTED)),
    (None, None),
]


def small_cases(length):
    """Every history of so many events over three records: of each event its place is the attempt that wrote it."""
    for sights in product(SIGHTS, repeat=length):
        yield [
            Observation(*row, 0, place, visibility) if row else Reading(f"{place}")
            for place, (row, visibility) in enumerate(sights)
        ]
