"""Where real pipelines stand in the table of orders of writes (data/pipelines/cells.toml), and what the table says
there.
"""

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from labkit.core.judge import Guarantee, Verdict
from labkit.crashtest.blackbox.points import EXIT
from labkit.crashtest.blackbox.writes import Meaning, Orders, engine_rows, meanings
from labkit.sim.model import Action
from labkit.sim.models.orders import BLUEPRINT
from labkit.sim.models.orders.state import ROWS_OF_A_STEP, Place, Process, parameters_of
from labkit.sim.walk import Replay
from labkit.sim.writes import Design, Output, Write

CELLS = Path(__file__).parents[2] / "data" / "pipelines" / "cells.toml"
MOST_ROWS = 6
CRASH = Action("crash")
STRENGTH = (Guarantee.NONE, Guarantee.AT_MOST_ONCE, Guarantee.AT_LEAST_ONCE, Guarantee.EXACTLY_ONCE)
"""From the weakest on."""


class Cell(NamedTuple):
    """One pipeline, and where it stands."""

    name: str
    design: Design
    table: tuple[Meaning, ...]
    ends: str | None
    idle: tuple[Write, ...]
    points: dict[str, str]
    """Of a sink of the lab: for each failpoint where it lies, as `Kill.place` says it."""
    differs: dict[str, str]
    """Places where a kill gives another verdict than the table: the verdict and, behind a colon, why."""
    beyond: str
    """Why the pipeline is weaker than its cell, by something that no kill does; empty: it is not."""
    measured: dict[str, str]
    """Of an engine: the guarantee that was left by kills before other effects than the telling one."""
    built: str
    """The name that the table has for what readers see of this design; empty: none."""
    fault: str
    """What happens besides crashes; empty: nothing."""


def cells(kind: str) -> dict[str, Cell]:
    """The cells of the `sample`s, of those under a `fault`, of the pipelines of an `engine`, or of the lab's `sink`s,
    those outside left out.
    """
    told = tomllib.loads(CELLS.read_text(encoding="utf-8"))
    return {
        name: Cell(
            name,
            Design.parse(said["design"]),
            (*meanings(said.get("writes", {})), *engine_rows(*said.get("with", ()))),
            said.get("ends"),
            tuple(map(Write, said.get("idle", ()))),
            said.get("points", {}),
            said.get("differs", {}),
            said.get("beyond", ""),
            said.get("measured", {}),
            said.get("built", ""),
            said.get("fault", ""),
        )
        for name, said in told[kind].items()
        if "outside" not in said
    }


def outside(kind: str) -> dict[str, str]:
    """The pipelines that have no cell, with the reason."""
    told = tomllib.loads(CELLS.read_text(encoding="utf-8"))[kind]
    return {name: said["outside"] for name, said in told.items() if "outside" in said}


class Kill(NamedTuple):
    """One crash: in which step, counted from 1, and how many atomic sets of the step are whole."""

    step: int
    done: int
    inside: bool = False
    """Whether the next set is there in part."""

    def place(self, design: Design) -> str:
        """Where in a step it is, as `after visible` or `in visible`."""
        sets = ["+".join(each) for each in design.steps]
        if self.inside:
            return f"in {sets[self.done]}"
        return f"after {sets[self.done - 1]}" if self.done else "before all"


def before(found: Orders, number: int, made: int) -> str:
    """The effect before which a kill leaves the first `made` writes of a step (`number`, from 1), and no more.

    Behind the step's last write, it is the first effect of the next step, or the command's end.
    """
    following = [each.effects[0] for step in found.steps[number - 1 : number + 1] for each in step]
    return following[made] if made < len(following) else EXIT


def kills(design: Design, found: Orders, showing: frozenset[str] = frozenset()) -> Iterator[tuple[Kill, str]]:
    """Every place between two neighbouring writes of one step, its begin and end included, with the effect that is
    held.

    Where rows come one by one, the middle of the visible output is a place, too, if its first effect is one of those by
    which rows were seen to change (`showing`): a call that fails, or writes only part of a file, shows nothing.
    """
    step = min(2, len(found.steps))
    for done in range(len(design.steps) + 1):
        yield Kill(step, done), before(found, step, done)
    shows = design.place(Write.VISIBLE)
    effects = found.steps[step - 1][shows].effects
    one_by_one = design.output is not Output.TRANSACTION and len(effects) > 1
    if one_by_one and effects[0] in showing:
        yield Kill(step, shows, inside=True), effects[1]


def weakest(design: Design) -> Guarantee:
    """The weakest verdict that the table has for one crash between two writes, or between two rows, of this design."""
    places = [Kill(2, done) for done in range(len(design.steps) + 1)]
    if design.output is not Output.TRANSACTION:
        places.append(Kill(2, design.place(Write.VISIBLE), inside=True))
    found = [in_the_table(design, each).guarantee for each in places]
    return min(found, key=STRENGTH.index)


def in_the_table(design: Design, kill: Kill, steps: int = 3) -> Verdict:
    """What the simulator says of a run of so many steps with this one crash and one undisturbed restart."""
    rows = min(ROWS_OF_A_STEP * steps, MOST_ROWS)
    chosen = parameters_of(design) | {"rows": rows, "crashes": 1}
    model = BLUEPRINT.make(chosen)
    walk = Replay(model)
    while not _is_there(walk.state.process, kill, len(design.steps)):
        walk.forward(_undisturbed(model.actions(walk.state)))
    walk.forward(CRASH)
    while actions := model.actions(walk.state):
        walk.forward(_undisturbed(actions))
    verdict = BLUEPRINT.facts(walk)["verdict"]
    assert isinstance(verdict, Verdict)
    return verdict


def _undisturbed(actions: Sequence[Action]) -> Action:
    return next(each for each in actions if each != CRASH)


def _is_there(process: Process, kill: Kill, sets: int) -> bool:
    if kill.done == sets:
        return process.place is Place.IDLE and process.job.step == kill.step
    at = (process.job.step, process.at, process.shown)
    return process.place is Place.WORKING and at == (kill.step - 1, kill.done, int(kill.inside))
