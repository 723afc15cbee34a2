"""What happens to a store's server, or to the job's input, between two drivers of a run, while the job is dead.

It is killed or restarted: only one of the lab's own, and every run that uses it at that moment is hit, so a scenario
with this runs alone. Or it is left alone until it has aborted what is open.
"""

import signal
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from labkit.core.errors import JobFailed, ServiceUnavailable
from labkit.host.servers import service
from labkit.host.servers.contract import Endable
from labkit.runs.kafka_source import change_source
from labkit.runs.layout import RunFolder
from labkit.runs.scenario import Scenario
from labkit.spark.options import OF_THE_SOURCE, ON_THIS_MACHINE, Fault
from labkit.spark.outside import Outside
from labkit.stores import open_store
from labkit.stores.contract import Expiring

EXPIRES_AFTER = 8.0
"""Seconds that a transaction of a run may be open that waits for its end; a batch that runs again needs about one."""

_PATIENCE = 60.0


def check_between(scenario: Scenario) -> None:
    """Refuses a fault that could not be injected, before anything is run. Raises `ServiceUnavailable`."""
    if scenario.between not in (*ON_THIS_MACHINE, Fault.EXPIRE, *OF_THE_SOURCE):
        status = service(scenario.store).status()
        if status.state != "up":
            remedy = (
                f"start one with labkit services up {scenario.store}, and leave LABKIT_{scenario.store.upper()} unset"
            )
            raise ServiceUnavailable(f"--between {scenario.between} needs a server of the lab's own: {remedy}.")


def prepare_for_faults(scenario: Scenario, location: Path) -> None:
    """Gives the run's transactions a short time before the first driver starts, where they are to run out of it."""
    if scenario.between is Fault.EXPIRE:
        with closing(open_store(scenario.store, location)) as store:
            assert isinstance(store, Expiring)
            store.expire_after(EXPIRES_AFTER)


def inject(scenario: Scenario, folder: RunFolder, crashes: int) -> dict[str, Any]:
    """Injects the scenario's fault after the nth crash, and returns the proof for the run's evidence.

    The proof names the processes that were ended, the transactions that were aborted, or what became of the input.
    Raises `JobFailed` where the fault did not take place.
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
    assert isinstance(server, Endable)
    if scenario.between is Fault.KILL_SERVER:
        ended, number = server.kill(), int(signal.SIGKILL)
    else:
        ended, number = server.stop()
    after = server.up()
    # The same process id would mean that the old server has gone on.
    if after.state != "up" or after.pid in ended:
        raise JobFailed(f"the server was not {scenario.between.value.partition('-')[0]}ed; the run proves nothing.")
    return {"server": {"between": scenario.between.value, "signal": int(number), "ended": ended, "now": after.pid}}


def _await_expiry(scenario: Scenario, location: Path) -> list[str]:
    """Asks the server until it says that nothing of the run is open any more; gives what it has aborted."""
    with closing(open_store(scenario.store, location)) as store:
        assert isinstance(store, Expiring)
        deadline = time.monotonic() + _PATIENCE
        while names := store.unfinished():
            if time.monotonic() > deadline:
                raise JobFailed(f"the server kept {names[0]} open for {_PATIENCE:.0f} s; the run proves nothing.")
            time.sleep(0.1)
        return store.expired()
