"""List the measurements by name, with their number of rounds. A new measurement is one module and one line here."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from bench import (
    browser_search,
    crash,
    explore,
    grade,
    kafka,
    live,
    notebook,
    page,
    player,
    postgres,
    spark_search,
    start,
    totals,
)
from bench.rows import Rows
from labkit.core.errors import InvalidInput
from labkit.core.words import nearest


class Measurement(NamedTuple):
    """A measurement: the function, and its default number of rounds."""

    measure: Callable[[int], Rows]
    rounds: int

    @property
    def title(self) -> str:
        """The title of the measurement: the first line of its module's docstring."""
        module = inspect.getmodule(self.measure)
        return (inspect.getdoc(module) or "").partition("\n")[0]


MEASUREMENTS = {
    "start": Measurement(start.measure, 5),
    "explore": Measurement(explore.measure, 5),
    "spark": Measurement(spark_search.measure, 1),
    "player": Measurement(player.measure, 3),
    "live": Measurement(live.measure, 3),
    "page": Measurement(page.measure, 3),
    "browser": Measurement(browser_search.measure, 3),
    "crash": Measurement(crash.measure, 3),
    "notebook": Measurement(notebook.measure, 3),
    "postgres": Measurement(postgres.measure, 5),
    "kafka": Measurement(kafka.measure, 3),
    "totals": Measurement(totals.measure, 3),
    "grade": Measurement(grade.measure, 5),
}
"""The measurements by the name that the option --only takes."""


def select(
    only: Sequence[str], stores: Sequence[str] = (), words: int | None = None, states: int | None = None
) -> dict[str, Measurement]:
    """Return the named measurements, or all. Raises `InvalidInput`.

    `stores` and `words` are options of the measurement `totals`, and `states` is one of `spark`.
    """
    _refuse_unknown("--only", only, list(MEASUREMENTS))
    _refuse_unknown("--store", stores, list(totals.STORES))
    if words is not None and not 1_000 <= words <= 1_000_000_000:
        raise InvalidInput(f"--words {words}: choose 1,000 to 1,000,000,000.")
    if states is not None and not 1_000 <= states <= 1_000_000_000:
        raise InvalidInput(f"--states {states}: choose 1,000 to 1,000,000,000.")
    counting = partial(totals.measure, words=words or totals.WORDS, stores=stores or totals.STORES)
    configured = MEASUREMENTS | {
        "totals": MEASUREMENTS["totals"]._replace(measure=counting),
        "spark": MEASUREMENTS["spark"]._replace(
            measure=partial(spark_search.measure, states=states or spark_search.STATES)
        ),
    }
    return {name: configured[name] for name in only or MEASUREMENTS}


def _refuse_unknown(option: str, given: Sequence[str], known: list[str]) -> None:
    for name in given:
        if name not in known:
            raise InvalidInput(f"{option} {name}: unknown; {nearest(name, known)}")
