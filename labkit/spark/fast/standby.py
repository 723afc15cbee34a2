"""A warm standby: a driver that has run a scratch query of the same shape and waits for the work of a dead one.

It is started before the crash, under a supervisor of its own. It gets its cells only against the proof that the old
driver was killed and that its session is empty, and it opens the checkpoint and recovers only then: a standby that
looked at anything earlier could resolve what a living driver is still writing. The checkpoint's lock
(`labkit.spark.checkpoint.DriverLock`) refuses it a second time. This module must not kill and must not judge.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from labkit.core.errors import JobFailed, ServiceUnavailable
from labkit.host.doctor import GIGABYTE, MEMORY_NEEDED
from labkit.host.processes.child import Drive
from labkit.host.processes.sessions import session_members


class Standby:
    """One waiting driver. Leaving the block ends it, whether it was used or not."""

    def __init__(self, spec: dict[str, Any], patience: float) -> None:
        self.log = Path(spec["log"])
        self.drive = Drive({**spec, "cells": []}, patience)
        self.events = self.drive.events()

    def __enter__(self) -> Self:
        self.drive.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.drive.__exit__(kind, error, trace)

    def await_ready(self) -> None:
        """Waits until it is warm. Raises `JobFailed` when it ends instead."""
        for event in self.events:
            if event["event"] == "ready":
                return
            if event["event"] == "failed":
                raise JobFailed(f"the standby driver failed: {event['because']}")
        raise JobFailed(f"the standby driver ended by itself; {self.log} says why.")

    def take_over(
        self, proof: dict[str, Any], cells: Sequence[dict[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        """Hands the cells of a driver over that is dead by this proof; returns what happens to them from now on."""
        check_dead(proof)
        self.drive.order({"cells": list(cells)})
        return self.events


def check_dead(proof: dict[str, Any]) -> None:
    """Looks again. Raises `JobFailed` unless the driver was killed by SIGKILL and nothing of its session is left."""
    if (
        proof.get("signal") != 9
        or proof.get("left")
        or session_members(proof["session"])
    ):
        raise JobFailed(
            f"the old driver is not proven dead (proof: {proof}), so the standby must not take over."
        )


def check_memory(standbys: int) -> None:
    """Raises `ServiceUnavailable` where one driver and so many standbys do not fit into the free memory."""
    available, needed = (
        psutil.virtual_memory().available,
        (1 + standbys) * MEMORY_NEEDED,
    )
    if available < needed:
        raise ServiceUnavailable(
            f"--standby: {1 + standbys} drivers at once need about {needed / GIGABYTE:.1f} GB of memory and "
            f"{available / GIGABYTE:.1f} GB are available; close other programs, or leave --standby out."
        )
