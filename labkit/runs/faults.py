"""Inject a fault after a crash and before the next driver starts: into the store's server or into the job's input.

A fault kills or restarts a server, changes the input, or waits until the server has aborted open transactions.
labkit kills only servers that it has started itself. Such a kill affects every run that uses the server, so a run with
this fault must run alone.
"""

import signal
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from labkit.core.errors import JobFailed, ServiceUnavailable
from labkit.host.servers import service
from labkit.runs.kafka_source import change_source
from labkit.runs.layout import RunFolder
from labkit.runs.scenario import Scenario
from labkit.spark.options import OF_THE_SOURCE, ON_THIS_MACHINE, Fault
from labkit.spark.outside import Outside
from labkit.stores import open_store
from labkit.stores.contract import Expiring

EXPIRES_AFTER = 8.0
"""The seconds after which the server aborts an open transaction in a run with the fault `expire`.

A repeated batch needs about one second, so it is finished in time.
"""

_PATIENCE = 60.0


def check_between(scenario: Scenario) -> None:
    """Raise `ServiceUnavailable` if the fault kills or restarts a server that labkit has not started itself."""
    if scenario.between not in (*ON_THIS_MACHINE, Fault.EXPIRE, *OF_THE_SOURCE):
        status = service(scenario.store).status()
        if status.state != "up":
            raise ServiceUnavailable(
                f"--between {scenario.between} needs a server that labkit started: start one with `labkit services up "
                f"{scenario.store}`, and unset LABKIT_{scenario.store.upper()}."
            )


def prepare_for_faults(scenario: Scenario, location: Path) -> None:
    """For the fault `expire`, make the server abort transactions that stay open for `EXPIRES_AFTER` seconds."""
    if scenario.between is Fault.EXPIRE:
        with closing(open_store(scenario.store, location)) as store:
            assert isinstance(store, Expiring)
            store.expire_after(EXPIRES_AFTER)


def inject(scenario: Scenario, folder: RunFolder, crashes: int) -> dict[str, Any]:
    """Inject the scenario's fault, such as a restart of the server, and return its proof for the evidence file.

    The fault `falsify-group` commits wrong offsets to Kafka's consumer group; `crashes`, the number of crashes so far,
    decides which. Raises `JobFailed` if the fault had no effect.
    """
    if scenario.between is Fault.NOTHING:
        return {}
    if scenario.between is Fault.EDIT_PRICES:
        return {"prices": Outside(folder.outside).edit()}
    if scenario.between in OF_THE_SOURCE:
        return {"source": {"between": scenario.between.value, **change_source(scenario, folder, crashes)}}
    location = folder.store(scenario.store)
    if scenario.between is Fault.EXPIRE:
        return {"server": {"between": scenario.between.value, "aborted": _await_expiry(scenario, location)}}
    server = service(scenario.store)
    if scenario.between is Fault.KILL_SERVER:
        ended, number = server.kill(), int(signal.SIGKILL)
    else:
        ended, number = server.stop()
    after = server.up()
    # The same process id would mean that the old server is still running.
    if after.state != "up" or after.pid in ended:
        raise JobFailed(
            f"--between {scenario.between}: labkit stopped the server, but afterwards no new server process was "
            "running, so the run proves nothing; start the run again."
        )
    return {"server": {"between": scenario.between.value, "signal": int(number), "ended": ended, "now": after.pid}}


def _await_expiry(scenario: Scenario, location: Path) -> list[str]:
    """Wait until the server has aborted all open transactions of the run, and return their names."""
    with closing(open_store(scenario.store, location)) as store:
        assert isinstance(store, Expiring)
        deadline = time.monotonic() + _PATIENCE
        while names := store.unfinished():
            if time.monotonic() > deadline:
                raise JobFailed(
                    f"the server kept the transaction {names[0]} open for {_PATIENCE:.0f} s although it should have "
                    "expired, so the run proves nothing; start it again."
                )
            time.sleep(0.1)
        return store.expired()
