"""What happens to a store's server between two drivers of a run, while the job is dead: it is killed, or restarted.

Only to a server of the lab's own. Every run that uses the server at that moment is hit, so a scenario with this runs
alone. This module must not read or write what the store holds.
"""

from typing import Any

from labkit.errors import JobFailed, ServiceUnavailable
from labkit.scenario import Between, Scenario
from labkit.services import service
from labkit.services.contract import Killable


def check_between(scenario: Scenario) -> None:
    """Refuses before anything is run what could not be done. Raises `ServiceUnavailable`."""
    if scenario.between is not Between.NOTHING:
        found = service(scenario.store).status()
        if found.state != "up":
            remedy = (
                f"start one with labkit services up {scenario.store}, and leave LABKIT_{scenario.store.upper()} unset"
            )
            raise ServiceUnavailable(f"--between {scenario.between} needs a server of the lab's own: {remedy}.")


def disturb(scenario: Scenario) -> dict[str, Any]:
    """Does it, and gives the proof: which processes were killed or stopped, and the process that answers now."""
    if scenario.between is Between.NOTHING:
        return {}
    server = service(scenario.store)
    before = server.status()
    if scenario.between is Between.KILL_SERVER:
        assert isinstance(server, Killable)
        ended, number = server.kill(), 9
    else:
        ended, number = [before.pid or 0], 2
        server.down()
    after = server.up()
    if after.state != "up" or after.pid in ended:
        raise JobFailed(f"the server was not {scenario.between.value.partition('-')[0]}ed; the run proves nothing.")
    return {"server": {"between": scenario.between.value, "signal": number, "ended": ended, "now": after.pid}}
