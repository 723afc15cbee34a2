"""Draw the space-time diagram of a real run: lines of driver, checkpoint and outside reader, with the run's events."""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.core.records import Observation
from labkit.core.words import printable
from labkit.host import durable
from labkit.runs.history import Seen, read_history
from labkit.runs.layout import RunFolder
from labkit.runs.record import RunRecord
from labkit.runs.run import Run
from labkit.runs.scenario import Scenario
from labkit.sim.rules import Event
from labkit.view.spacetime import Diagram, Step, svg


def write_diagram(record: RunRecord) -> None:
    """Draw the space-time diagram of a finished run and write it to `spacetime.svg` in the run's folder."""
    diagram = of_run(record.crashes, record.events)
    durable.replace(record.folder.diagram, svg(diagram, title=title_of(record.scenario)))


def title_of(scenario: Scenario) -> str:
    """Return a title for the space-time diagram of a run with these options."""
    return f"Space-time diagram of a real run: {scenario.label}"


def of_folder(path: Path) -> tuple[str, Diagram]:
    """Return the title and the space-time diagram of a finished run, which has left its files in the folder `path`.

    Raises `InvalidInput` if a file is missing or damaged.
    """
    folder = RunFolder(path)
    for file in (folder.verdict, folder.evidence, folder.history):
        if not file.is_file():
            raise InvalidInput(
                f"{path}: this is not the folder of a finished run, because {file.name} is missing; name the folder "
                "that `labkit run` has printed."
            )
    try:
        run = Run(Scenario.from_json(json.loads(folder.verdict.read_bytes())["scenario"]), folder)
        run.read_evidence()
        return title_of(run.scenario), of_run(run.crashes, read_history(folder.history))
    except (InvalidInput, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"{path}: the run in this folder is damaged ({error}); run it again.") from None


def of_run(crashes: Sequence[Mapping[str, Any]], events: Iterable[Seen]) -> Diagram:
    """Return the space-time diagram of a run: time lines of driver, checkpoint and outside reader, and their events.

    `crashes` has the evidence of each crash. `events` has the visible rows, and the moments at which a reader looked.
    """
    names = {"driver": "driver", "checkpoint": "checkpoint", "reader": "outside reader"}
    steps, downs, nth = [Step("driver", Event.RESTART, (), "driver 1 starts")], [], 0
    if lost := [crash for crash in crashes if crash.get("executor")]:
        names["executor"] = "executor"
        steps += [Step("executor", Event.CRASH, (), f"{_kill(crash)}, at an unknown time") for crash in lost]
    crashes = [crash for crash in crashes if crash not in lost]
    for event in _shortened(events):
        if isinstance(event, Observation):
            sentence = f"{printable(event.key)} = {event.value} visible (offset {event.offset}, batch {event.batch})"
            steps.append(Step("driver", Event.STEP, ("reader",), sentence))
        elif isinstance(event, str):
            steps.append(Step("driver", Event.STEP, ("reader",), event))
        elif nth < len(crashes) and event.moment != "end":
            crash, nth = crashes[nth], nth + 1
            steps += _of_crash(crash, nth)
            downs.append(("driver", len(steps) - 2, len(steps)))
        else:
            steps.append(Step("reader", Event.STEP, (), f"reads at {event.moment}"))
    return Diagram(names, tuple(steps), (), tuple(downs))


MOST_EVENTS = 200
"""The number of visible rows above which a diagram leaves out the middle ones."""


def _shortened(events: Iterable[Seen]) -> Iterator[Seen | str]:
    """Yield a history's events; in a long history, sentences like `12 more rows become visible` replace most rows."""
    begun = skipped = rows = 0
    end: deque[Seen] = deque()
    for event in events:
        is_row = isinstance(event, Observation)
        if begun < MOST_EVENTS // 2:
            begun += is_row
            yield event
            continue
        end.append(event)
        rows += is_row
        # Only rows are left out, because the picture is about readings and crashes.
        while rows > MOST_EVENTS // 2:
            first = end.popleft()
            if isinstance(first, Observation):
                skipped, rows = skipped + 1, rows - 1
                continue
            if skipped:
                yield _left_out(skipped)
            skipped = 0
            yield first
    if skipped:
        yield _left_out(skipped)
    yield from end


def _left_out(rows: int) -> str:
    return f"{rows} more rows become visible"


def _of_crash(crash: Mapping[str, Any], nth: int) -> list[Step]:
    logs = f"offsets {crash['offset_log']}, commits {crash['commit_log']}"
    recovery = printable("; ".join(crash.get("recovery") or [])) or "nothing in doubt"
    return [
        # The driver wrote the checkpoint before it died, but nobody knows at which moments.
        Step("driver", Event.CRASH, (), _kill(crash), changes=("checkpoint",)),
        Step("checkpoint", Event.STEP, (), f"left on disk: {logs}"),
        Step("driver", Event.RESTART, ("checkpoint",), f"driver {nth + 1} starts; recovery: {recovery}"),
    ]


def _kill(crash: Mapping[str, Any]) -> str:
    return f"signal {crash['signal']} at {crash['point']}, batch {crash['batch']}"
