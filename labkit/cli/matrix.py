"""Defines `labkit matrix`, which kills every sink at every failpoint and compares the results with predictions.

The sinks run in a simulator and on real Spark. A cell is one combination of sink, commit order, store and failpoint.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from labkit.cli.common import Json, Out
from labkit.cli.progress import progress
from labkit.cli.tables import show, table
from labkit.core.errors import InvalidInput, LabError, ServiceUnavailable
from labkit.core.failpoints import Crash, FailPoint, Order
from labkit.core.strategies import Strategy
from labkit.core.words import nearest
from labkit.host.java import java_for_spark
from labkit.runs.crash import run_all
from labkit.runs.expected import Cell, Expected, compared, expectations
from labkit.runs.layout import RunFolder
from labkit.runs.outcome import Outcome
from labkit.runs.pages import grid
from labkit.runs.prepare import check_services, fresh_folder, prepare_all
from labkit.runs.run import Run
from labkit.runs.scenario import Scenario, plan
from labkit.sim.models.pipeline.scenarios import is_modelled, simulate
from labkit.stores import STORES


def matrix(
    engine: Annotated[
        str,
        typer.Option(help="sim: compare prediction and simulator; spark: prediction and real Spark; both: all three."),
    ] = "both",
    expected: Annotated[
        bool, typer.Option("--expected", help="Run nothing; print each prediction with its reason.")
    ] = False,
    store: Annotated[list[str] | None, typer.Option(help="Only these stores; may be repeated.")] = None,
    sink: Annotated[list[str] | None, typer.Option(help="Only these sinks; may be repeated.")] = None,
    point: Annotated[list[str] | None, typer.Option(help="Only these failpoints; may be repeated.")] = None,
    repeat: Annotated[int, typer.Option(help="How often each sink runs with each store and failpoint.")] = 1,
    out: Out = None,
    as_json: Json = False,
) -> int:
    """Kill every sink at every failpoint, simulated and on real Spark, and compare the results with the predictions.

    Exit 1 if a result differs from its prediction.
    """
    cells = select(engine, store, sink, point)
    if expected:
        return show_expected(cells, as_json)
    if engine == "sim":
        return simulate_matrix(cells, as_json)
    return run_matrix(cells, repeat, out, as_json, both=engine == "both")


def select(
    engine: str, stores: Sequence[str] | None, sinks: Sequence[str] | None, points: Sequence[str] | None
) -> dict[Cell, Expected]:
    """Return the requested combinations of engine, store, sink and crash point, each with the predicted verdict.

    Raises `InvalidInput` for an unknown name.
    """
    _check_each("--engine", [engine], ["sim", "spark", "both"])
    _check_each("--store", stores or [], list(STORES))
    _check_each("--sink", sinks or [], [member.value for member in Strategy])
    _check_each("--point", points or [], [member.value for member in FailPoint])
    chosen = {
        cell: expected
        for cell, expected in expectations().items()
        if (not stores or cell.store in stores)
        and (not sinks or cell.strategy in sinks)
        and (not points or cell.point in points)
    }
    if not chosen:
        raise InvalidInput(
            "no combination matches --store, --sink and --point together; leave one of these options out."
        )
    return chosen


def _check_each(option: str, values: Sequence[str], names: list[str]) -> None:
    for value in values:
        if value not in names:
            raise InvalidInput(f"{option} {value}: unknown; {nearest(value, names)}")


def scenario(cell: Cell) -> Scenario:
    """Return the run to execute for one combination of sink, commit order, store and failpoint."""
    order = None if cell.order is Order.NONE else cell.order.value
    crash = str(Crash(cell.point))
    return plan(sink=cell.strategy.value, store=cell.store, order=order, crashes=[crash])


def show_expected(cells: dict[Cell, Expected], as_json: bool) -> int:
    """Print the predicted result of every combination of sink, commit order, store and failpoint, with its reason."""
    if as_json:
        print(json.dumps({"cells": [_entry(cell, expected) for cell, expected in cells.items()]}))
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


def simulated(cell: Cell) -> dict[str, Any] | None:
    """Return the simulated result of one combination; None if the simulator does not model the combination's store."""
    if not is_modelled(cell.store):
        return None
    return compared(simulate(cell.strategy, cell.order, cell.store, [Crash(cell.point)]).to_json())


def simulate_matrix(cells: dict[Cell, Expected], as_json: bool) -> int:
    """Simulate each combination and print the results; return 1 if a result differs from its prediction."""
    entries = [_entry(cell, expected, sim=True) for cell, expected in cells.items()]
    if as_json:
        print(json.dumps({"cells": entries, "not_modelled": _unmodelled(entries)}))
    else:
        _show(entries)
    return _code(entries)


def run_matrix(cells: dict[Cell, Expected], repeat: int, out: Path | None, as_json: bool, *, both: bool) -> int:
    """Run each combination `repeat` times on real Spark and print the results; if `both`, also simulate it.

    Returns 1 if a result differs from its prediction.
    """
    if repeat < 1:
        raise InvalidInput(f"--repeat {repeat}: each combination runs at least once; choose 1 or more.")
    java_for_spark()
    base = fresh_folder("matrix") if out is None else out.absolute()
    _check_servers(cells, base)
    tasks = [(cell, round_) for cell in cells for round_ in range(repeat)]
    planned = {
        base / (each.name + (f"-{round_ + 1}" if repeat > 1 else "")): each
        for each, round_ in ((scenario(cell), round_) for cell, round_ in tasks)
    }
    runs = prepare_all(planned)
    with progress(as_json, 2 * len(runs)) as tell:
        outcomes = run_all(runs, base / "scratch", tell)
    entries = [
        _entry(cell, cells[cell], sim=both, outcome=outcome, folder=run.folder.path)
        for (cell, _), run, outcome in zip(tasks, runs, outcomes, strict=True)
    ]
    page = grid.write(base) if any(entry["real"] for entry in entries) else None
    if as_json:
        print(json.dumps({"cells": entries, "not_modelled": _unmodelled(entries), "folder": str(base)}))
    else:
        _show(entries)
        print(f"The runs' folders are in {base}" + (f"; the grid {page} links to each" if page else ""))
    return _code(entries)


def _check_servers(cells: Iterable[Cell], base: Path) -> None:
    """Raise `ServiceUnavailable` if a run of these combinations needs a server that is missing or unsuitable.

    Call this before the folder of the run is created, so that no empty folder is left if a server is missing.
    """
    for cell in cells:
        try:
            check_services(Run(scenario(cell), RunFolder(base)))
        except ServiceUnavailable as error:
            others = " ".join(f"--store {store}" for store in STORES if store != cell.store)
            raise ServiceUnavailable(f"{error} Or leave out the store {cell.store}: add {others}.") from None


def _code(entries: list[dict[str, Any]]) -> int:
    return int(any(entry["agrees"] is False for entry in entries))


def _entry(
    cell: Cell,
    expected: Expected,
    *,
    sim: bool = False,
    outcome: Outcome | LabError | None = None,
    folder: Path | None = None,
) -> dict[str, Any]:
    """Return the prediction for a combination of sink, commit order, store and failpoint, and its results, for JSON.

    The results are compared with the prediction. With `sim`, the combination is also simulated. `outcome` is the result
    or the error of the real run in `folder`, or None if there was no real run.
    """
    simulation = simulated(cell) if sim else None
    entry: dict[str, Any] = {
        "store": cell.store,
        "sink": cell.strategy.value,
        "order": cell.order.value,
        "point": cell.point.value,
        "expected": expected.compared(),
        "reason": expected.reason,
        "modelled": is_modelled(cell.store),
        "simulated": simulation,
        "real": None,
        "agrees": None,
    }
    guarantees = [simulation] if sim else []
    if isinstance(outcome, LabError):
        return entry | {"agrees": False, "error": str(outcome), "folder": str(folder)}
    if outcome is not None:
        real = outcome.to_json()
        guarantees.append(compared(real))
        entry |= {"real": compared(real), "because": outcome.verdict.because}
        entry |= {"seconds": real["seconds"], "folder": str(folder)}
    return entry | {"agrees": agreement(expected.compared(), guarantees)}


def agreement(expected: dict[str, Any], results: Sequence[dict[str, Any] | None]) -> bool | None:
    """Return True if every result equals the prediction, False if one does not, and None if a result is missing."""
    if any(result is not None and result != expected for result in results):
        return False
    return True if results and None not in results else None


def _unmodelled(entries: list[dict[str, Any]]) -> list[str]:
    return [_name(entry) for entry in entries if not entry["modelled"]]


def _name(entry: dict[str, Any]) -> str:
    return f"{entry['sink']} {entry['order']} {entry['store']} {entry['point']}"


_MARKS = {True: "ok", False: "DIFFERS", None: "?"}


def _show(entries: list[dict[str, Any]]) -> None:
    columns = ("", "store", "sink", "order", "killed at", "predicted", "simulated", "really", "duplicate", "folder")
    rows = table(*columns)
    for entry in entries:
        real = entry["real"] or {"guarantee": entry.get("error", "-")}
        rows.add_row(
            _MARKS[entry["agrees"]],
            entry["store"],
            entry["sink"],
            entry["order"],
            entry["point"],
            entry["expected"]["guarantee"],
            (entry["simulated"] or {"guarantee": "-"})["guarantee"],
            real["guarantee"],
            str(entry["expected"]["duplicate"] or ""),
            Path(entry.get("folder", "")).name,
        )
    show(rows)
    agreeing = sum(entry["agrees"] is True for entry in entries)
    unmodelled = _unmodelled(entries)
    print(f"\n{agreeing} of {len(entries)} combinations agree; no simulator models {len(unmodelled)} of them.")
    for name in unmodelled:
        print(f"NOT MODELLED {name}")
    for entry in entries:
        if entry["agrees"] is False:
            print(f"DIFFERS {_name(entry)}")
            print(f"  predicted {entry['expected']} ({entry['reason']})")
            print(f"  simulated {entry['simulated'] or '-'}")
            print(f"  really    {entry['real'] or entry.get('error', '-')}")
