"""What may be chosen of the snapshot model. Nothing here runs."""

from labkit.sim.parameters import Choice, Parameter, Whole

VERSION = 1

NAIVE, STOP, MARKERS = "naive", "stop_the_world", "chandy_lamport"

PARAMETERS: dict[str, Parameter] = {
    "algorithm": Choice(
        "How a snapshot is taken: each process copies when it likes (naive), all pause and drain first "
        "(stop_the_world), or markers flow with the money (chandy_lamport).",
        MARKERS,
        (NAIVE, STOP, MARKERS),
    ),
    "processes": Whole("Processes; each has a channel to each other.", 3, 2, 5),
    "transfers": Whole("How many transfers there may be.", 1, 0, 6),
    "snapshots": Whole("How many snapshots may be started, one after another.", 1, 0, 3),
    "crashes": Whole("How many crashes there may be.", 1, 0, 3),
    "reorderings": Whole("How often a message may overtake the one before it: channels are not FIFO then.", 0, 0, 3),
    "broken": Choice(
        "Which rule is left out: forget_channels (what is in the channels is not saved), late_markers (they are sent "
        "in a step of their own), forget_pause (who is paused goes on), forget_drain (copies are made while money is "
        "under way), restore_alone (only who crashed goes back).",
        "nothing",
        ("nothing", "forget_channels", "late_markers", "forget_pause", "forget_drain", "restore_alone"),
    ),
}
