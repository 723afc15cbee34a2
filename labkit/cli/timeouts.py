"""Defines `labkit timeouts`, which checks whether the three timeouts around a Kafka transaction fit together."""

import json
from typing import Annotated

import typer

from labkit.cli.common import Json


def timeouts(
    interval: Annotated[float, typer.Option(help="Seconds between the starts of two checkpoints.")] = 60.0,
    checkpoint: Annotated[float, typer.Option(help="Seconds that a checkpoint may take.")] = 600.0,
    transaction: Annotated[float, typer.Option(help="The producer's transaction.timeout.ms, in seconds.")] = 3600.0,
    maximum: Annotated[float, typer.Option(help="The broker's transaction.max.timeout.ms, in seconds.")] = 900.0,
    pause: Annotated[
        float, typer.Option(help="Minimum pause in seconds from the end of a checkpoint to the start of the next.")
    ] = 0.0,
    tolerated: Annotated[int, typer.Option(help="How many checkpoints in a row may expire.")] = 0,
    downtime: Annotated[float, typer.Option(help="How many seconds the job may be down after a crash.")] = 0.0,
    run: Annotated[
        bool,
        typer.Option(
            "--run", help="Also measure one checkpoint interval on the Kafka broker, with three kinds of traffic."
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Say whether a job that commits Kafka transactions with its checkpoints can lose data because of a timeout.

    By default, --transaction is one hour, as in Flink's KafkaSink, and the broker refuses that: its default maximum is
    900 s. Exit 0 if the job is safe, 1 if it can lose data or the broker refuses the timeout. A trial with --run takes
    at least as long as --interval, or as --pause if that is longer.
    """
    from labkit.sim.models.kafka_log.timeouts import Fit, Timeouts, examine

    settings = Timeouts(interval, checkpoint, transaction, maximum, pause, tolerated, downtime)
    result = examine(settings)
    runs = {}
    if run:
        from labkit.stores.kafka.timeouts import try_timeouts

        runs = try_timeouts(max(interval, pause), transaction)
    if as_json:
        plain = {"fit": result.fit, "needed": result.needed, "because": result.because}
        tried = {"runs": {name: each.to_json() for name, each in runs.items()}} if run else {}
        print(json.dumps({**settings._asdict(), **plain, **tried}))
    else:
        print(f"{result.fit}: {result.because}.", *runs.values(), sep="\n")
    return int(result.fit is not Fit.SAFE)
