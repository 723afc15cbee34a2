"""What may be chosen of two-phase commit. Nothing here runs."""

from labkit.sim.parameters import Choice, Parameter, Switch, Whole

VERSION = 1
PARAMETERS: dict[str, Parameter] = {
    "participants": Whole("Participants.", 2, 1, 8),
    "textbook": Switch("Gray and Lamport's abstraction: no crash, no loss, messages that stay.", default=False),
    "crashes": Whole("How many crashes there may be.", 1, 0, 3),
    "losses": Whole("How many messages may be lost.", 1, 0, 3),
    "coordinator_returns": Switch("Whether a crashed coordinator is ever restarted.", default=True),
    "broken": Choice(
        "Which rule is left out: heuristic (a participant in doubt aborts alone after a timeout), early (commit before "
        "all votes), forget_decision (the commit is not logged), forget_vote (the yes is not logged).",
        "nothing",
        ("nothing", "heuristic", "early", "forget_decision", "forget_vote"),
    ),
}
