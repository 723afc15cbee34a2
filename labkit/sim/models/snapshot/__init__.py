"""The simulator of snapshots: processes send each other money while one takes a snapshot of all of them."""

from collections.abc import Mapping

from labkit.sim.blueprint import Blueprint, Fact, play, scenarios_of
from labkit.sim.models.snapshot.claims import moment, paused, stood_still
from labkit.sim.models.snapshot.model import Bank
from labkit.sim.models.snapshot.state import AMOUNT, in_channels
from labkit.sim.tasks import tasks_of
from labkit.sim.walk import Replay


def facts(walk: Replay) -> Mapping[str, Fact]:
    """Return results of a run: its last snapshot, the lengths of pauses, and `moment`.

    `moment` is the step after which the bank really was in the state that the snapshot shows.
    """
    snapshot = walk.state.completed
    step = moment(walk.states)
    return {
        "snapshot_accounts": [part.account.balance for part in snapshot] if snapshot else None,
        "snapshot_channels": AMOUNT * in_channels(snapshot).bit_count() if snapshot else None,
        "paused_steps": list(paused(walk.states)),
        "stood_still_steps": stood_still(walk.states),
        "moment": step if step is not None or not snapshot else "never",
    }


BLUEPRINT = Blueprint(
    Bank,
    "Processes send each other money while a snapshot is taken: naively, by stopping the world, or with markers.",
    play,
    scenarios_of(__name__),
    facts,
    {
        "snapshot_accounts": "money in each account of the last completed snapshot",
        "snapshot_channels": "money under way in the last completed snapshot",
        "paused_steps": "steps for which each process was told to pause",
        "stood_still_steps": "steps for which everybody stood still",
        "moment": "the step after which the bank really was in the state of the last snapshot",
    },
    tasks=tasks_of(__name__),
)
