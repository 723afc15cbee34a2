"""Defines `labkit run`, which runs a word count on Spark, kills and restarts it, and judges what readers saw."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from labkit.cli.common import Json, Out, is_typed, parameter
from labkit.core.errors import InvalidInput
from labkit.core.options import options_of, with_arguments
from labkit.core.verdict import Guarantee, satisfies
from labkit.core.words import nearest
from labkit.runs.scenario import Scenario

GUARANTEES = ["exactly-once", "at-least-once", "at-most-once", "none"]

Expect = Annotated[
    str | None, typer.Option(metavar="GUARANTEE", help="Exit 1 if the run shows a weaker guarantee than this.")
]
Resume = Annotated[Path | None, typer.Option(help="Finish the interrupted run in this folder.")]
Standby = Annotated[
    bool,
    typer.Option(
        "--standby",
        help="Start the next driver before the crash, so that it takes over within seconds. This needs memory for two "
        "drivers (see `labkit doctor`).",
    ),
]
KeepStore = Annotated[
    bool, typer.Option("--keep-store", help="Do not delete the run's rows from PostgreSQL or Kafka after the verdict.")
]
Patience = Annotated[float, typer.Option(help="The run fails if a driver reports nothing for this many seconds.")]


def run_of(scenario: type[Scenario]) -> Callable[..., int]:
    """Return the function of `labkit run`. Each field of the class `scenario` becomes an option."""
    options = {each.parameter: each for each in options_of(scenario)}

    def run(
        context: typer.Context,
        *,
        expect: Expect = None,
        out: Out = None,
        resume: Resume = None,
        standby: Standby = False,
        keep_store: KeepStore = False,
        patience: Patience = 240.0,
        as_json: Json = False,
        **words: object,
    ) -> int:
        """Run a word count on real Spark, kill it where you say, restart it, and judge what an outside reader saw."""
        from labkit.cli.progress import progress
        from labkit.runs.conduct import Setup
        from labkit.runs.crash import finish
        from labkit.runs.prepare import prepare
        from labkit.runs.prepare import resume as resumed

        if expect is not None and expect not in GUARANTEES:
            raise InvalidInput(f"--expect {expect}: unknown guarantee; {nearest(expect, GUARANTEES)}")
        if patience <= 0:
            raise InvalidInput(f"--patience {patience:g}: must be more than 0 seconds.")
        if resume is not None:
            for name in (each for each in [*options, "out"] if is_typed(context, each)):
                option = f"--{name.replace('_', '-')}"
                raise InvalidInput(
                    f"{option} with --resume: the folder already contains the run's options; leave {option} out."
                )
            started = resumed(resume)
        else:
            chosen = {options[name].keyword: word for name, word in words.items()}
            started = prepare(scenario.plan(chosen), out)
        started.keep_store = keep_store
        drivers = len(started.crashes_left) + 1
        with progress(as_json, drivers) as tell:
            finished = finish(started, tell, patience, Setup(standby=standby))
        print(json.dumps(finished.to_json()) if as_json else finished)
        guarantee = finished.verdict.guarantee
        if guarantee is Guarantee.UNKNOWN:
            return 2
        return 0 if expect is None or satisfies(guarantee, Guarantee(expect)) else 1

    return with_arguments(run, [parameter(each) for each in options.values()])


run = run_of(Scenario)
