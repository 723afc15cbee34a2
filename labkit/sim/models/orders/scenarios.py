"""The named runs of designs of writes, each with a sentence on what to watch for."""

from labkit.sim.blueprint import Scenario

_SHOWN = "take(2) plan(0) show(0) show(1)"
_MARKED = {"order": "plan-visible-marker-decision", "skips": True}
_TOGETHER = {"order": "plan-visible_marker-decision", "output": "transaction", "skips": True}
_TWO_PHASE = {"order": "plan-staged-decision-visible", "output": "transaction", "leftover": "decided"}
_LOG = {"order": "plan-staged-decision-visible-clean", "leftover": "decided"}

SCENARIOS: dict[str, Scenario[str]] = {
    "append_again": Scenario(
        "The process dies with its rows visible and nothing decided: the step runs again, and both "
        "rows are there twice.",
        {},
        f"{_SHOWN} crash",
    ),
    "upsert_jumps_back": Scenario(
        "The same with an upsert: the end is right, and on the way a reader sees hello = 2 go back to hello = 1.",
        {"output": "upsert"},
        f"{_SHOWN} crash",
    ),
    "marker_after_output": Scenario(
        "The store's marker comes behind the output, and the process dies between them: the marker is not there yet.",
        _MARKED,
        f"{_SHOWN} crash",
    ),
    "marker_before_output": Scenario(
        "The store's marker comes before the output: what runs again is left out, although nobody has written it.",
        {**_MARKED, "order": "plan-marker-visible-decision"},
        "take(2) plan(0) marker(0) crash",
    ),
    "marker_with_output": Scenario(
        "Marker and output are one transaction: wherever the process dies, the marker says the truth.",
        _TOGETHER,
        "take(2) plan(0) visible(0) crash",
    ),
    "marker_without_plan": Scenario(
        "Marker and output are one transaction, but no plan says which rows a step has: the second "
        "time step 0 takes two "
        "rows, is left out as known, and its second row is lost.",
        {**_TOGETHER, "order": "visible_marker-decision", "input": "other"},
        "take(1) visible(0) crash restart(2) take(2)",
    ),
    "decided_then_finished": Scenario(
        "The process dies between decision and commit; the restart finds the staged output and finishes it.",
        _TWO_PHASE,
        "take(2) plan(0) staged(0) decision(0) crash",
    ),
    "decided_then_forgotten": Scenario(
        "The same, but the restart drops what is staged: the step will not run again, and its rows are lost.",
        {**_TWO_PHASE, "leftover": "dropped"},
        "take(2) plan(0) staged(0) decision(0) crash",
    ),
    "log_copied_twice": Scenario(
        "A log is copied row by row and then removed; the process dies between both, and copies it a second time.",
        _LOG,
        "take(2) plan(0) staged(0) decision(0) show(0) show(1) crash",
    ),
    "state_ahead_of_note": Scenario(
        "The state is kept in place and is newer than the note: the step runs again on top of itself and counts twice.",
        {"order": "state-visible-decision", "newest": True},
        "take(2) state(0) crash",
    ),
    "told_too_early": Scenario(
        "The source is told before the output is visible, and forgets the rows: nobody can read them again.",
        {"order": "notice-visible-decision", "input": "gone"},
        "take(2) notice(0) crash",
    ),
}
