"""What a reader saw of a state, the judge's verdict on it, and what is claimed of a design.

Lost, duplicate and wrong rows are counted by `labkit.core.judge` alone: a state becomes a History here.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence

from labkit.core.records import History, Observation, PlannedBatch, Reading, Record
from labkit.sim.model import Property
from labkit.sim.models.orders.parts import Place, Seen, State
from labkit.sim.models.orders.settings import ROWS_OF_A_STEP, Settings, World
from labkit.sim.verdicts import StateJudge
from labkit.sim.writes import Output

KEY = "hello"


def expected(rows: int) -> list[Record]:
    """What should come out: the running count of one word."""
    return [Record(offset, KEY, offset + 1) for offset in range(rows)]


def is_done(settings: Settings, state: State) -> bool:
    """Whether the process is up and has nothing left to do."""
    process = state.process
    return process.place is Place.IDLE and process.job.start >= settings.rows


def history_of(seen: Sequence[Seen], *, rows: int, keyed: bool, bounds_change: bool) -> History:
    """What was seen, with a look at each crash and at the end.

    Where a step may take other rows, no part of a batch can be told from a whole one.
    """
    batches = [
        PlannedBatch(step, start, min(start + ROWS_OF_A_STEP, rows))
        for step, start in enumerate(range(0, rows, ROWS_OF_A_STEP))
    ]
    return History(_events(seen), keyed, [] if bounds_change else batches)


def _events(seen: Sequence[Seen]) -> Iterator[Observation | Reading]:
    crashes = 0
    for row in seen:
        if row.offset < 0:
            crashes += 1
            yield Reading(f"crash {crashes}")
        else:
            yield Observation(row.offset, KEY, row.value, row.step, row.life)
    yield Reading("end")


def _view(state: State) -> Hashable:
    return state.seen


class Judge(StateJudge[State]):
    """Judges what readers saw."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(expected(settings.rows), _view)
        self._settings = settings

    def history(self, state: State) -> History:
        """What an outside reader saw, with a look at the end."""
        settings = self._settings
        return history_of(
            state.seen,
            rows=settings.rows,
            keyed=settings.design.output is Output.UPSERT,
            bounds_change=settings.world is World.OTHER,
        )


ENDS = {
    "no_loss": "When all is done, no row is lost.",
    "no_duplicate": "When all is done, no row is there twice.",
    "no_unexpected": "When all is done, every value is right.",
}
"""What the guarantee is told from."""

MEANWHILE = {
    "no_regression": "No value is seen to go back.",
    "no_fractured_read": "At no crash is part of a step visible.",
}
"""What a reader can meet though the end is right."""


def claims(settings: Settings, text: Callable[[State], str]) -> Sequence[Property[State]]:
    """The judge's properties when all is done and on the way, and that all can come out at all."""
    judge = Judge(settings)

    def done(state: State) -> bool:
        return is_done(settings, state)

    return [
        *(judge.claim(name, said, done) for name, said in ENDS.items()),
        judge.claim("no_regression", MEANWHILE["no_regression"], None),
        judge.claim("no_fractured_read", MEANWHILE["no_fractured_read"], _is_down),
        judge.all_out("All rows come out.", text, done),
    ]


def _is_down(state: State) -> bool:
    """Whether nobody is there to complete what a reader sees."""
    return state.process.place is Place.DOWN
