"""The named runs of the bank simulator, each with what to watch for. A run consists of exactly the listed actions."""

from labkit.sim.blueprint import Scenario

_NAIVE = {"algorithm": "naive", "processes": 2}
_STOP = {"algorithm": "stop_the_world", "processes": 2}
_TWO = {"processes": 2}

SCENARIOS: dict[str, Scenario[str]] = {
    "copied_on_the_way": Scenario(
        "100 is under way while both copy: the snapshot holds 300 of 400.",
        _NAIVE,
        "transfer(12) copy(1) copy(2) receive(12)",
    ),
    "copied_before_and_after": Scenario(
        "Process 1 copies before it pays, process 2 after it was paid: the snapshot holds 500 of 400.",
        _NAIVE,
        "copy(1) transfer(12) receive(12) copy(2)",
    ),
    "two_transfers": Scenario(
        "100 vanishes and 100 appears: the sum is right, and yet no run leads to what the snapshot holds.",
        {**_NAIVE, "transfers": 2},
        "transfer(21) copy(1) transfer(12) receive(12) copy(2) receive(21)",
    ),
    "power_failure": Scenario(
        "100 is taken here, the power fails, and it is never given there: the naive snapshot has made the loss final.",
        _NAIVE,
        "transfer(12) copy(1) copy(2) crash(1) restore",
    ),
    "stopped_world": Scenario(
        "Pause, drain, copy, resume: the snapshot is right, and for five steps nobody could begin a transfer.",
        {"algorithm": "stop_the_world"},
        "transfer(12) pause(1) pause(2) pause(3) receive(12) copy(1) copy(2) copy(3) resume(1) resume(2) resume(3)",
    ),
    "markers_flow": Scenario(
        "Nobody stops: the transfer that comes in before the marker of its sender is saved with its channel.",
        {},
        "transfer(21) record(1) receive(21) receive(12) receive(13) receive(21) receive(23) receive(31) receive(32)",
    ),
    "crossing_transfers": Scenario(
        "The snapshot is right, and at no step were things as it says: a consistent cut is not a moment.",
        {**_TWO, "transfers": 2},
        "record(1) transfer(12) transfer(21) receive(12) receive(12) receive(21) receive(21)",
    ),
    "restored_together": Scenario(
        "The power fails after the snapshot: the 100 that were under way are put back into their channel.",
        _TWO,
        "transfer(21) record(1) receive(12) receive(21) receive(21) crash(2) restore receive(21)",
    ),
    "died_in_a_snapshot": Scenario(
        "Process 2 dies before its part is whole: the snapshot is given up, all go back, and the next one completes.",
        {**_TWO, "snapshots": 2},
        "transfer(12) record(1) crash(2) restore record(2) receive(21) receive(12)",
    ),
    "marker_overtakes": Scenario(
        "A marker overtakes the 100 sent before it: they are in no copy and in no channel.",
        {**_TWO, "reorderings": 1},
        "transfer(12) record(1) overtake(12) receive(12) receive(12) receive(21)",
    ),
    "transfer_overtakes": Scenario(
        "100 overtakes the marker sent before it: received in one copy, not sent in the other.",
        {**_TWO, "reorderings": 1},
        "record(1) transfer(12) overtake(12) receive(12) receive(12) receive(21)",
    ),
    "forgotten_channels": Scenario(
        "Markers flow, and what is in the channels is not saved: money vanishes.",
        {**_TWO, "broken": "forget_channels"},
        "transfer(21) record(1) receive(21) receive(12) receive(21)",
    ),
    "late_markers": Scenario(
        "Between the copy and the markers a transfer slips out: money appears.",
        {**_TWO, "broken": "late_markers"},
        "record(1) transfer(12) announce(1) receive(12) receive(12) announce(2) receive(21)",
    ),
    "forgotten_drain": Scenario(
        "All are paused and copy at once: what is under way is in no copy.",
        {**_STOP, "broken": "forget_drain"},
        "transfer(12) pause(1) pause(2) copy(1) copy(2) resume(1) resume(2) receive(12)",
    ),
    "forgotten_pause": Scenario(
        "Nothing is under way when the first copies, but nobody has stopped: money appears.",
        {**_STOP, "broken": "forget_pause"},
        "pause(1) pause(2) copy(1) transfer(12) receive(12) copy(2) resume(1) resume(2)",
    ),
    "restored_alone": Scenario(
        "Only who died goes back: process 1 forgets that it has paid, and process 2 keeps the 100.",
        {**_TWO, "broken": "restore_alone"},
        "transfer(12) receive(12) crash(1) restore",
    ),
}
