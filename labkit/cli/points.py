"""Defines `labkit points`, which lists every failpoint and the sinks that reach it (`labkit.core.failpoints`)."""

import json

from labkit.cli.common import Json
from labkit.core.failpoints import FailPoint, Order
from labkit.core.strategies import POINTS


def points(as_json: Json = False) -> int:
    """List the failpoints (moments for a kill of the job), each with the batch's state and the sinks that reach it."""
    passed: dict[FailPoint, list[str]] = {point: [] for point in FailPoint}
    for (strategy, order), names in POINTS.items():
        for point in names:
            passed[point].append(strategy.value if order is Order.NONE else f"{strategy} ({order})")
    if as_json:
        print(json.dumps({point.value: {"sentence": point.sentence, "sinks": passed[point]} for point in FailPoint}))
        return 0
    for point in FailPoint:
        print(f"{point}\n  {point.sentence}\n  {', '.join(passed[point]) or 'every sink, in a restarted driver'}")
    return 0
