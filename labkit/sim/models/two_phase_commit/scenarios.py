"""The named runs of two-phase commit, each with what to watch for. A run consists of exactly the listed actions."""

from labkit.sim.blueprint import Scenario

_VOTES = "start read(0) read(1) hear(0) hear(1)"
_DECIDED = f"{_VOTES} decide_commit"
_DELIVERED = "read(0) read(1) hear(0) hear(1)"

SCENARIOS: dict[str, Scenario[str]] = {
    "nothing_fails": Scenario(
        "Both vote yes, and the decision is one record in the coordinator's log: nobody commits before it is there.",
        {},
        f"{_DECIDED} announce {_DELIVERED}",
    ),
    "one_says_no": Scenario(
        "Participant 0 has promised, participant 1 says no: one no is enough, and both parts are undone.",
        {},
        "start read(0) refuse(1) hear(0) hear(1) read(0) read(1)",
    ),
    "no_answer": Scenario(
        "The yes of participant 0 is lost: the coordinator waits long enough, gives up, and the abort is safe.",
        {},
        "start read(0) read(1) lose_inward(0) hear(1) give_up read(0) read(1)",
    ),
    "dies_before_deciding": Scenario(
        "The coordinator dies with both votes on their way: its log is empty, and an empty log means abort.",
        {},
        "start read(0) read(1) crash_coordinator restart_coordinator hear(0) hear(1) inquire(0) inquire(1) hear(0) "
        "hear(1) read(0) read(1)",
    ),
    "dies_before_writing": Scenario(
        "The coordinator has heard both votes and dies before it writes: its log is empty, so it answers abort.",
        {},
        f"{_VOTES} crash_coordinator restart_coordinator inquire(0) inquire(1) hear(0) hear(1) read(0) read(1)",
    ),
    "dies_after_writing": Scenario(
        "The coordinator dies between its decision and the first word of it: the record survives, so it commits.",
        {},
        f"{_DECIDED} crash_coordinator restart_coordinator announce {_DELIVERED}",
    ),
    "coordinator_gone": Scenario(
        "The coordinator dies after the votes and never returns: both are in doubt and hold their locks for ever.",
        {"coordinator_returns": False, "losses": 0},
        "start read(0) read(1) hear(0) hear(1) crash_coordinator inquire(0) inquire(1)",
    ),
    "dies_prepared": Scenario(
        "Participant 0 dies after its yes: the promise is in its log, so it comes back in doubt and may not abort.",
        {},
        f"start read(0) crash(0) read(1) hear(0) hear(1) decide_commit announce restart(0) {_DELIVERED}",
    ),
    "dies_before_voting": Scenario(
        "Participant 0 dies before it has promised anything: it aborts when it returns and answers no.",
        {},
        "start crash(0) read(1) restart(0) read(0) hear(0) hear(1) read(0) read(1)",
    ),
    "lost_decision": Scenario(
        "The commit to participant 0 is lost: it stays locked, asks again, and is told the same decision.",
        {},
        f"{_DECIDED} announce lose_outward(0) read(1) hear(1) inquire(0) hear(0) read(0) hear(0)",
    ),
    "two_crashes": Scenario(
        "The coordinator dies after deciding and participant 1 in doubt: two logs are enough to finish what was begun.",
        {"crashes": 2},
        f"{_DECIDED} crash_coordinator crash(1) restart(1) restart_coordinator announce {_DELIVERED}",
    ),
    "aborts_alone": Scenario(
        "Participant 0 is tired of waiting and aborts alone; the commit was decided: half of the transfer happened.",
        {"broken": "heuristic"},
        f"{_DECIDED} abort_alone(0) announce read(1)",
    ),
    "early_commit": Scenario(
        "The coordinator commits after the first yes; the second participant says no.",
        {"broken": "early"},
        "start read(0) hear(0) decide_commit announce read(0) refuse(1)",
    ),
    "forgotten_vote": Scenario(
        "The yes was not logged: participant 0 comes back from its crash without a promise and aborts.",
        {"broken": "forget_vote"},
        "start read(0) crash(0) restart(0) read(1) hear(0) hear(1) decide_commit announce read(1)",
    ),
    "forgotten_decision": Scenario(
        "The commit was told and not logged: after its crash the coordinator answers abort to whoever asks.",
        {"broken": "forget_decision"},
        f"{_DECIDED} announce read(0) lose_outward(1) crash_coordinator restart_coordinator inquire(1) hear(1) read(1)",
    ),
}
