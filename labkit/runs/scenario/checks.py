"""Check the options of a scenario: which of them apply, which exclude each other, and whether they fit the input."""

from typing import TYPE_CHECKING

from labkit.core.errors import InvalidInput
from labkit.core.options import Need
from labkit.core.strategies import Pending, Strategy, check_crash
from labkit.sinks import check_capability
from labkit.spark.master import check_master, check_victim
from labkit.spark.options import STATEFUL, Fault, Job
from labkit.stores import STORES, capabilities

if TYPE_CHECKING:
    from labkit.runs.scenario.scenario import Scenario


def after_crash(when: str) -> Need:
    """Return the requirement of an option that has no effect without a crash: the scenario must plan a crash.

    `when` is a clause for the error message, such as `it takes effect after a crash`.
    """
    return Need(lambda scenario: bool(scenario.crashes), f"{{written}}: {when}; name one with --crash.")


def in_counting_jobs(may: str) -> Need:
    """Return the requirement of an option for stateful jobs: the scenario's job must be in `STATEFUL`.

    `may` is the end of the error message. It says what only such jobs may do, such as `change the number of tasks`.
    """
    return Need(
        lambda scenario: scenario.job in STATEFUL,
        f"{{option}}: only the jobs {' and '.join(STATEFUL)} may {may}; choose one of them with --job.",
    )


def stores_for(sink: Strategy) -> list[str]:
    """Return the names of the stores that have the capability that this sink needs, such as transactions."""
    return [store for store in STORES if _carries(sink, store)]


def _carries(sink: Strategy, store: str) -> bool:
    try:
        check_capability(sink, store)
    except InvalidInput:
        return False
    return True


def check_capable(scenario: "Scenario") -> None:
    """Raise `InvalidInput` if the scenario's store lacks the capability, such as transactions, that its sink needs."""
    check_capability(scenario.strategy, scenario.store)


def check_crashes(scenario: "Scenario") -> None:
    """Raise `InvalidInput` if a run can never reach the failpoint of a planned crash.

    Either the sink never passes this failpoint, or the failpoint is in the recovery of the first driver, which has
    nothing to recover.
    """
    for crash in scenario.crashes:
        check_crash(crash, scenario.strategy, scenario.order)
    if scenario.crashes and scenario.crashes[0].point.in_recovery:
        raise InvalidInput(
            f"--crash {scenario.crashes[0]}: the first driver has nothing to recover, so it never reaches this "
            "failpoint; put another --crash before this one, so that the next driver has something to recover."
        )


def check_expiry(scenario: "Scenario") -> None:
    """Raise `InvalidInput` for the fault `expire` with a store that never aborts open transactions by itself."""
    store = scenario.store
    if scenario.between is Fault.EXPIRE and "Expiring" not in capabilities(store):
        able = ", ".join(name for name in STORES if "Expiring" in capabilities(name))
        raise InvalidInput(
            f"--between {scenario.between} makes the next driver wait until the store has aborted the open "
            f"transactions, but {store} never aborts one by itself; use --store {able}."
        )


def check_placed(scenario: "Scenario") -> None:
    """Raise `InvalidInput` if labkit does not support the Spark master for this job, or if it has too few cores."""
    if scenario.master is None:
        return
    if scenario.job is Job.SOCKET:
        raise InvalidInput("--master: the job `socket` runs only in Spark's local mode; leave --master out.")
    in_tasks = scenario.crashes if scenario.job is Job.RUNNING else ()
    check_master(scenario.master, in_tasks, scenario.most_tasks)


def check_victim_there(scenario: "Scenario") -> None:
    """Raise `InvalidInput` if the scenario kills an executor, but this is impossible with its other options.

    For example, the tasks that write the rows may run in the driver's process.
    """
    in_tasks = scenario.job is Job.RUNNING and scenario.strategy.facts.pending is not Pending.DRIVER
    check_victim(scenario.victim, scenario.master, scenario.crashes, in_tasks=in_tasks)


def check_input(scenario: "Scenario") -> int:
    """Read the whole input once and return its number of records.

    Raises `InvalidInput` for a malformed line, and for a planned crash in a batch after the end of the input.
    """
    records = scenario.count.check()
    if scenario.job is Job.SOCKET:
        return records  # a socket has no admission control, so the number of lines in a batch is unknown
    batches = -(-records // scenario.records_per_batch)
    for crash in scenario.crashes:
        if crash.batch >= batches:
            raise InvalidInput(
                f"--crash {crash}: the input makes {batches} batch(es) of {scenario.records_per_batch} "
                f"record(s), so the last batch is {batches - 1}; name that batch or an earlier one."
            )
    return records
