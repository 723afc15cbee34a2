"""Defines `labkit demo`, which crashes a word count with every sink and shows what each guarantee does not cover."""

import json

from labkit.cli.common import Json, Out
from labkit.cli.progress import progress
from labkit.runs.crash import run_all
from labkit.runs.outcome import Outcome
from labkit.runs.pages.report import write_report
from labkit.runs.prepare import fresh_folder, prepare_all
from labkit.runs.scenario import Scenario, plan

BETWEEN = "sink.after_pre_commit"


def acts() -> list[tuple[str, list[Scenario]]]:
    """Return the runs of the demo under two titles: every sink at one crash point, then some sinks at other points."""
    stores = {"append": "files", "idempotent": "sqlite", "wal": "files", "batch_marker": "sqlite", "two_phase": "files"}
    same_moment = [plan(sink=sink, store=store, crashes=[f"{BETWEEN}@0"]) for sink, store in stores.items()]
    limits = [
        plan(sink="wal", store="files", crashes=["sink.mid_commit@0"]),
        plan(sink="two_phase", store="files", order="engine", crashes=["sink.after_commit@0"]),
        plan(sink="two_phase", store="files", order="decision", crashes=["sink.after_commit@0"]),
    ]
    return [
        ("Killed between pre-commit and commit (sink.after_pre_commit)", same_moment),
        ("The limits: killed at other moments, or with the other commit order", limits),
    ]


def demo(out: Out = None, as_json: Json = False) -> int:
    """Run a word count with every sink, kill it between pre-commit and commit, and show what was lost or doubled."""
    base = fresh_folder("demo") if out is None else out.absolute()
    acted = acts()
    runs = prepare_all({base / each.name: each for _, scenarios in acted for each in scenarios})
    if not as_json:
        print("hello, world, hello: PySpark Structured Streaming counts the words of three records in one micro-batch.")
        print(
            f"{len(runs)} queries run until each reaches its failpoint; then SIGKILL ends every process of the driver."
        )
        print("A new driver recovers and continues, and the history of the output shows what a reader could have seen.")
        print(flush=True)
    with progress(as_json, 2 * len(runs)) as tell:
        outcomes = dict(zip([run.name for run in runs], run_all(runs, base / "scratch", tell), strict=True))
    report = base / "report.html"
    judged = [outcome.record for outcome in outcomes.values() if isinstance(outcome, Outcome)]
    lead = "hello, world, hello in one micro-batch on real Spark; every driver was killed by SIGKILL and restarted."
    write_report(judged, report, "What is left after a crash", lead)
    if as_json:
        plain = [each.to_json() if isinstance(each, Outcome) else {"error": str(each)} for each in outcomes.values()]
        print(json.dumps({"runs": plain, "report": str(report)}))
    else:
        for title, scenarios in acted:
            print(f"\n{title}\n")
            for name in (scenario.name for scenario in scenarios):
                outcome = outcomes[name]
                print(outcome if isinstance(outcome, Outcome) else f"{name}: {outcome}", end="\n\n")
        print(f"Report, opens offline: {report}")
    return int(len(judged) < len(runs))
