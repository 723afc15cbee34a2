"""The named runs of the barriers simulator: parameters, a script of actions, and a sentence on what to watch for.

A script names actions; `settle` means everything that the counting tasks, the sink and the coordinator can do without a
source. After the script the job runs to its end without further faults.
"""

from labkit.sim.blueprint import Scenario, go_on
from labkit.sim.model import Action
from labkit.sim.models.barriers.model import READS, Barriers
from labkit.sim.walk import Replay

_SETTLES = ("store", "complete", "announce", *READS)
_REQUESTED = ("trigger", "copy")


def play(model: Barriers, script: str) -> Replay:
    """Run a script and go on to the end of the job. Raises `InvalidAction` for an action that is not enabled."""
    walk = Replay(model)
    for step in script.split():
        if step == "settle":
            _settle(walk)
        else:
            walk.forward(Action.parse(step))
    return go_on(walk, model, _first_unasked)


def _first_unasked(enabled: list[Action]) -> Action:
    """Return the first action that starts no checkpoint, or else the first action. So running checkpoints end first."""
    return next((each for each in enabled if each.name not in _REQUESTED), enabled[0])


def _settle(walk: Replay) -> None:
    while settling := [action for action in walk.model.actions(walk.state) if action.name in _SETTLES]:
        walk.forward(settling[0])


_ONE = {"sources": 1}
_JOIN = {"counts": 1, "words": "hello-hello-hello-world"}
"""The parameters of a job in which one task counts hello and hello of source 0, hello and world of source 1."""

SCENARIOS: dict[str, Scenario[str]] = {
    "three_records": Scenario(
        "The barrier follows hello, hello, world: the checkpoint holds offset 3, the next to read, hello=2, world=1.",
        {**_ONE, "crashes": 0},
        "read(0) read(0) read(0) trigger inject(0) settle",
    ),
    "crash_at_the_third": Scenario(
        "The job dies at the third record; it starts again from offset 2 and hello=1, world=1, and ends at hello=2.",
        {**_ONE, "words": "hello-world-hello"},
        "read(0) read(0) trigger inject(0) settle read(0) crash restore",
    ),
    "before_the_first_checkpoint": Scenario(
        "A checkpoint that is not complete is no checkpoint: the job starts from nothing and reads everything again.",
        {**_ONE, "words": "hello-world-hello"},
        "read(0) read(0) trigger inject(0) process(0) crash restore",
    ),
    "alignment": Scenario(
        "Barrier 1 has come from source 0: its channel is blocked, and its next record waits for source 1.",
        {**_JOIN, "crashes": 0},
        "read(0) trigger inject(0) read(0) read(1) settle read(1) inject(1) settle",
    ),
    "no_alignment": Scenario(
        "Nothing is blocked: a hello from behind the barrier gets into the state, comes again, and hello is 4, not 3.",
        {**_JOIN, "mode": "at_least_once"},
        "read(0) trigger inject(0) read(0) read(1) settle inject(1) settle crash restore",
    ),
    "no_alignment_one_input": Scenario(
        "With one input everywhere there is nothing to align: the state is exact at least once, too.",
        {**_ONE, "counts": 1, "mode": "at_least_once"},
        "read(0) trigger inject(0) read(0) settle crash restore",
    ),
    "overtaking": Scenario(
        "The barriers overtake: no channel is blocked, and the records that they left behind are in the checkpoint.",
        {**_JOIN, "mode": "unaligned"},
        "read(0) read(0) read(1) trigger inject(0) take_barrier(0) process(1) inject(1) settle crash restore",
    ),
    "channel_state_skipped": Scenario(
        "What the barriers leave behind is not saved: after the restart it is nowhere; no source sends it.",
        {**_JOIN, "mode": "unaligned", "broken": "skip_channel_state"},
        "read(0) read(0) read(1) trigger inject(0) take_barrier(0) process(1) inject(1) settle crash restore",
    ),
    "sink_offset_a": Scenario(
        "The sink has put out nothing of offset 1, but its hello is in the count already: it will count twice.",
        {**_ONE, "broken": "sink_offset"},
        "read(0) read(0) process(0) process(0) process(2) copy crash restore",
    ),
    "sink_offset_b": Scenario(
        "The row of world is out, so the checkpoint reads on behind it: hello, still on its way, is lost.",
        {**_ONE, "words": "hello-world-hello", "broken": "sink_offset"},
        "read(0) read(0) process(1) process(3) copy crash restore",
    ),
    "source_reads_on": Scenario(
        "Checkpoint 1 makes the row before its barrier visible; the row behind it is in the next transaction.",
        {**_ONE},
        "read(0) trigger inject(0) read(0) settle crash restore",
    ),
    "complete_not_announced": Scenario(
        "The checkpoint was stored, the sink was never told: the restart commits what was decided.",
        {**_ONE},
        "read(0) trigger inject(0) process(0) take_barrier(0) take_barrier(1) process(2) take_barrier(2) "
        "take_barrier(3) complete(1) crash restore",
    ),
    "announced_first": Scenario(
        "The sink is told before the checkpoint is stored: its row is visible, comes again, and is there twice.",
        {**_ONE, "broken": "announce_first"},
        "read(0) trigger inject(0) process(0) take_barrier(0) take_barrier(1) process(2) take_barrier(2) "
        "take_barrier(3) announce crash restore",
    ),
    "expired": Scenario(
        "Checkpoint 1 expires and the job lives on: its sealed transaction commits with the next checkpoint.",
        {**_ONE, "expiries": 1, "crashes": 0, "checkpoints": 2},
        "read(0) trigger inject(0) process(0) take_barrier(0) take_barrier(1) process(2) take_barrier(2) "
        "take_barrier(3) expire(1) read(0) trigger inject(0) settle",
    ),
    "expired_and_aborted": Scenario(
        "The same, but its transaction is aborted: the source does not go back, so the row is lost.",
        {**_ONE, "expiries": 1, "crashes": 0, "checkpoints": 2, "broken": "abort_expired"},
        "read(0) trigger inject(0) process(0) take_barrier(0) take_barrier(1) process(2) take_barrier(2) "
        "take_barrier(3) expire(1) read(0) trigger inject(0) settle",
    ),
    "newer_barrier": Scenario(
        "Barrier 1 blocks a channel and has expired; barrier 2 by the other channel ends that alignment.",
        {**_JOIN, "expiries": 1, "crashes": 0, "checkpoints": 2},
        "read(0) trigger inject(0) read(0) settle expire(1) trigger inject(1) settle inject(0) settle",
    ),
    "two_in_flight": Scenario(
        "Two checkpoints are in flight and have every acknowledgement; the newer is stored and subsumes the other.",
        {**_ONE, "counts": 1, "concurrent": 2, "checkpoints": 2, "crashes": 0},
        "read(0) trigger inject(0) trigger read(0) inject(0) process(0) take_barrier(0) process(0) take_barrier(0) "
        "process(1) take_barrier(1) process(1) take_barrier(1) complete(2)",
    ),
    "minimum_pause": Scenario(
        "Checkpoint 1 is complete, and the next is triggered only after four steps of the tasks.",
        {**_ONE, "checkpoints": 2, "min_pause": 4, "crashes": 0},
        "read(0) trigger inject(0) settle read(0) process(0) process(2) read(0) trigger inject(0) settle",
    ),
    "finished_source": Scenario(
        "Source 1 has ended, which counts as its barrier; checkpoints go on, and one more commits the last rows.",
        {**_JOIN, "crashes": 0},
        "read(1) read(1) finish(1) settle read(0) trigger inject(0) settle",
    ),
    "copied_in_the_background": Scenario(
        "The count has copied its state and goes on at once; its copy is stored later.",
        {**_ONE, "counts": 1, "copying": "background", "crashes": 0},
        "read(0) trigger inject(0) store(0) read(0) process(0) take_barrier(0) process(0) store(1)",
    ),
    "copied_standing": Scenario(
        "The same, but the count stands still until its copy is stored.",
        {**_ONE, "counts": 1, "copying": "standing", "crashes": 0},
        "read(0) trigger inject(0) store(0) read(0) process(0) take_barrier(0) store(1) process(0)",
    ),
    "sink_acknowledged": Scenario(
        "The sink has acknowledged and the count's copy is not stored: the checkpoint is complete without it.",
        {**_ONE, "counts": 1, "copying": "background", "broken": "sink_ack"},
        "read(0) trigger inject(0) store(0) process(0) take_barrier(0) process(1) take_barrier(1) store(2) complete(1) "
        "crash restore",
    ),
    "older_checkpoint": Scenario(
        "Not the latest checkpoint is restored: what the sink has committed since then comes a second time.",
        {**_ONE, "checkpoints": 2, "broken": "older_checkpoint"},
        "read(0) trigger inject(0) settle read(0) trigger inject(0) settle crash restore",
    ),
    "appended": Scenario(
        "The counts are exact, and a sink that shows rows at once has shown them twice: state is not output.",
        {**_ONE, "sink": "append"},
        "read(0) trigger inject(0) settle read(0) settle crash restore",
    ),
    "cancelled": Scenario(
        "The job is cancelled and its checkpoint deleted: the next start is from nothing, and rows come twice.",
        {**_ONE, "cancels": 1},
        "read(0) trigger inject(0) settle cancel restore",
    ),
    "cancelled_and_kept": Scenario(
        "The job is cancelled and its checkpoint kept: the next start goes on from there.",
        {**_ONE, "cancels": 1, "retention": "keep"},
        "read(0) trigger inject(0) settle cancel restore",
    ),
}
