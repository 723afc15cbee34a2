"""`labkit bench`: what this machine does. Medians of several rounds; compare the ratios, not the times.

A measurement is one module with a function `measure`, and one line in `MEASUREMENTS`.
"""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from bench import crash, explore, grade, kafka, live, player, postgres, start, totals
from bench.machine import machine
from bench.rows import Rows
from labkit.cli.tables import show, table
from labkit.core.errors import InvalidInput
from labkit.core.words import nearest


class Measurement(NamedTuple):
    """What can be measured, and how often unless somebody says so."""

    measure: Callable[[int], Rows]
    rounds: int


MEASUREMENTS = {
    "start": Measurement(start.measure, 5),
    "explore": Measurement(explore.measure, 5),
    "player": Measurement(player.measure, 3),
    "live": Measurement(live.measure, 3),
    "crash": Measurement(crash.measure, 3),
    "postgres": Measurement(postgres.measure, 5),
    "kafka": Measurement(kafka.measure, 3),
    "totals": Measurement(totals.measure, 3),
    "grade": Measurement(grade.measure, 5),
}
"""By the name that --only takes."""


def run_bench(
    only: Sequence[str],
    rounds: int | None,
    as_json: bool,
    *,
    stores: Sequence[str] = (),
    words: int | None = None,
) -> int:
    """Runs the measurements that were asked for; `stores` and `words` are for totals. Raises `InvalidInput`."""
    _refuse_unknown(only, stores)
    if rounds is not None and not 1 <= rounds <= 100:
        raise InvalidInput(f"--rounds {rounds}: choose 1 to 100.")
    if words is not None and not 1_000 <= words <= 1_000_000_000:
        raise InvalidInput(f"--words {words}: choose 1,000 to 1,000,000,000.")
    counting = partial(
        totals.measure, words=words or totals.WORDS, stores=stores or totals.STORES
    )
    measurements = {
        **MEASUREMENTS,
        "totals": MEASUREMENTS["totals"]._replace(measure=counting),
    }
    known = machine()
    found: dict[str, Rows] = {}
    for name in dict.fromkeys(only or MEASUREMENTS):
        measurement = measurements[name]
        found[name] = measurement.measure(rounds or measurement.rounds)
        if not as_json:
            _show(found[name])
    if as_json:
        print(json.dumps({"machine": known, **found}))
        return 0
    for name, value in known.items():
        print(f"{name}: {value}")
    return 0


def _refuse_unknown(only: Sequence[str], stores: Sequence[str]) -> None:
    for option, known, given in (
        ("--only", list(MEASUREMENTS), only),
        ("--store", list(totals.STORES), stores),
    ):
        for name in given:
            if name not in known:
                raise InvalidInput(f"{option} {name}: unknown; {nearest(name, known)}")


def _show(rows: Rows) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    made = table(*columns)
    for row in rows:
        made.add_row(*(_cell(row.get(name, "")) for name in columns))
    show(made)
    print(flush=True)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else str(value)
