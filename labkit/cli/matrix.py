"""`labkit matrix`: every sink at every failpoint, what was predicted and what really came out."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labkit import lab
from labkit.cli.progress import progress
from labkit.cli.tables import show, table
from labkit.errors import InvalidInput, LabError
from labkit.expected import Cell, Expected, compared, expectations
from labkit.failpoints import Crash, FailPoint, Order, Strategy, nearest
from labkit.scenario import Scenario, plan
from labkit.services.java import find_java
from labkit.spark.run import prepare
from labkit.stores import STORES


def select(
    engine: str, stores: Sequence[str] | None, sinks: Sequence[str] | None, points: Sequence[str] | None
) -> dict[Cell, Expected]:
    """The cells that were asked for. Raises `InvalidInput` for unknown names, or when nothing is left."""
    _known("--engine", [engine], ["spark"])
    _known("--store", stores or [], list(STORES))
    _known("--sink", sinks or [], [member.value for member in Strategy])
    _known("--point", points or [], [member.value for member in FailPoint])
    chosen = {
        cell: expected
        for cell, expected in expectations().items()
        if (not stores or cell.store in stores)
        and (not sinks or cell.strategy in sinks)
        and (not points or cell.point in points)
    }
    if not chosen:
        raise InvalidInput("no cell of the grid is on all of these stores, sinks and points; leave one of them out.")
    return chosen


def _known(option: str, values: Sequence[str], known: list[str]) -> None:
    for value in values:
        if value not in known:
            raise InvalidInput(f"{option} {value}: unknown; {nearest(value, known)}")


def scenario(cell: Cell) -> Scenario:
    """The run that fills a cell."""
    order = None if cell.order is Order.NONE else cell.order.value
    crash = str(Crash(cell.point))
    return plan(sink=cell.strategy.value, store=cell.store, order=order, crashes=[crash])


def show_expected(cells: dict[Cell, Expected], as_json: bool) -> int:
    """The predictions, each with its reason."""
    if as_json:
        print(json.dumps({"cells": [_entry(cell, expected, None, None) for cell, expected in cells.items()]}))
        return 0
    rows = table("cell", "guarantee", "duplicate", "regression", "why")
    for cell, expected in cells.items():
        rows.add_row(
            str(cell),
            expected.guarantee,
            str(expected.duplicate or ""),
            str(expected.regression or ""),
            expected.reason,
        )
    show(rows)
    return 0


def run_matrix(cells: dict[Cell, Expected], repeat: int, out: Path | None, as_json: bool) -> int:
    """Fills every cell on real Spark; exit 1 where one differs from its prediction or failed."""
    if repeat < 1:
        raise InvalidInput(f"--repeat {repeat}: each cell must run at least once.")
    find_java()
    base = lab.fresh_folder("matrix") if out is None else out.absolute()
    tasks = [(cell, round_) for cell in cells for round_ in range(repeat)]
    runs = [
        prepare(scenario(cell), base / (scenario(cell).name + (f"-{round_ + 1}" if repeat > 1 else "")))
        for cell, round_ in tasks
    ]
    with progress(as_json, 2 * len(runs)) as tell:
        outcomes = lab.run_all(runs, base / "scratch", tell)
    entries = [
        _entry(cell, cells[cell], outcome, run.folder.path)
        for (cell, _), run, outcome in zip(tasks, runs, outcomes, strict=True)
    ]
    if as_json:
        print(json.dumps({"cells": entries, "folder": str(base)}))
    else:
        _show(entries, base)
    return int(not all(entry["agrees"] for entry in entries))


def _entry(
    cell: Cell, expected: Expected, outcome: "lab.Outcome | LabError | None", folder: Path | None
) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "store": cell.store,
        "sink": cell.strategy.value,
        "order": cell.order.value,
        "point": cell.point.value,
        "expected": expected.compared(),
        "reason": expected.reason,
        "simulated": None,
        "real": None,
        "agrees": None,
    }
    if isinstance(outcome, LabError):
        entry |= {"agrees": False, "error": str(outcome), "folder": str(folder)}
    elif outcome is not None:
        real = compared(outcome.to_json())
        entry |= {"real": real, "agrees": real == expected.compared(), "because": outcome.verdict.because}
        entry |= {"seconds": outcome.to_json()["seconds"], "folder": str(folder)}
    return entry


def _show(entries: list[dict[str, Any]], base: Path) -> None:
    rows = table("", "store", "sink", "order", "killed at", "really", "duplicate", "folder")
    for entry in entries:
        real = entry["real"] or {"guarantee": entry.get("error", ""), "duplicate": []}
        mark = "ok" if entry["agrees"] else "DIFFERS"
        rows.add_row(
            mark,
            entry["store"],
            entry["sink"],
            entry["order"],
            entry["point"],
            real["guarantee"],
            str(real["duplicate"] or ""),
            Path(entry["folder"]).name,
        )
    show(rows)
    differing = [entry for entry in entries if not entry["agrees"]]
    print(f"\n{len(entries) - len(differing)} of {len(entries)} cells are as predicted. Folders are in {base}")
    for entry in differing:
        print(f"DIFFERS {entry['sink']} {entry['order']} {entry['store']} {entry['point']}")
        print(f"  predicted {entry['expected']} ({entry['reason']})")
        print(f"  really    {entry['real'] or entry['error']}")
