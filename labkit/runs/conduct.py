"""Execute runs on real Spark, if possible several at once: start drivers, let them crash, and start the next ones.

Several queries share one driver: each stops at its own failpoint, and one kill ends them all. The next driver of a
query is always a new process.
"""

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import psutil

from labkit.core.errors import InvalidInput, LabError
from labkit.host.cores import cores
from labkit.host.processes import wire
from labkit.host.processes.child import SupervisedDriver
from labkit.host.processes.events import AnyEvent, DriverStarts, Ending, Ready, StandbyStarts, Waits
from labkit.host.processes.protocol import Launch, RunQueries
from labkit.host.servers.lines import LineServer
from labkit.host.turns import turn
from labkit.runs.driver_task import ACTIVE, PATIENCE, DriverTask, QueryTask
from labkit.runs.evidence import DriverEvents
from labkit.runs.progress import Tell
from labkit.runs.run import Run
from labkit.runs.warm_drivers import WarmDriver, WarmDrivers
from labkit.spark.fast.standby import Standby, check_memory
from labkit.spark.options import Job

PARKED = 24
"""The largest number of queries that may wait at their failpoints in one driver if memory allows it."""

DRIVER_BYTES, QUERY_BYTES = 1_300_000_000, 120_000_000
"""The bytes of memory for a driver with its workers, and for each query that waits in it (24 queries: 3.4 GB)."""


@dataclass(frozen=True)
class Setup:
    """Settings for starting the Spark drivers of a run, which affect the run's speed but never its verdict."""

    profile: str | None = None
    """The name of the Spark settings, one of `labkit.spark.session.PROFILES` or `stock`; None for those of the job."""
    standby: bool = False
    """Whether one driver for each crash is started in advance, to take over at once. Only for a single run."""
    active: int = ACTIVE
    """The number of queries that one driver runs at a time."""
    warm: WarmDrivers | None = None
    """The drivers that a notebook keeps warm. Only for a single run."""
    archive: bool = True
    """Whether the JVMs load the class-data archive, which makes them start faster, if there is one."""


HEARTBEAT = 0.1
"""The seconds between two calls of the `heartbeat` function of `conduct`."""


def conduct(
    runs: Sequence[Run],
    scratch: Path,
    tell: Tell,
    patience: float = PATIENCE,
    setup: Setup | None = None,
    *,
    heartbeat: Callable[[], None] | None = None,
) -> None:
    """Execute all runs, each with all its crashes and restarts; store the error of a failed run in `Run.error`.

    `heartbeat` is called every `HEARTBEAT` seconds, and an exception that it raises ends all drivers. `scratch` is
    deleted at the end. A run fails if its driver reports nothing for `patience` seconds. If LABKIT_TURNS limits how
    many processes may conduct runs at a time, this function first waits for its turn.

    With `setup.standby`, `runs` must contain a single run. The function then raises `ServiceUnavailable` if there is
    too little memory for the standby drivers, and `InvalidInput` if the run is on a cluster.
    """
    setup = setup or Setup()
    assert len(runs) == 1 or not (setup.standby or setup.warm)
    if setup.standby:
        if runs[0].scenario.master is not None:
            raise InvalidInput(
                "--standby: with --master, a standby driver would take the cluster's cores, and the first driver would "
                "wait for them; leave --standby out."
            )
        check_memory(len(runs[0].crashes_left))
    shutil.rmtree(scratch, ignore_errors=True)
    drivers = DriverPool(scratch, tell, patience, setup)
    try:
        with (
            turn(_waiting(tell, heartbeat)),
            ExitStack() as servers,
            setup.warm.run() if setup.warm else nullcontext(),
            ThreadPoolExecutor(side_by_side := _side_by_side(runs, setup)) as pool,
        ):
            for run in runs:
                if run.scenario.job is Job.SOCKET:
                    run.port = servers.enter_context(LineServer(run.portions(), run.waits_for_lines)).port
            try:
                _run_all(drivers, pool, list(runs), side_by_side, heartbeat)
            except BaseException:
                drivers.let_go()
                raise
    finally:
        drivers.close()
        shutil.rmtree(scratch, ignore_errors=True)


def _waiting(tell: Tell, heartbeat: Callable[[], None] | None) -> Callable[[int], None]:
    reported = 0

    def waits(ahead: int) -> None:
        nonlocal reported
        if heartbeat:
            heartbeat()
        if ahead != reported:
            reported = ahead
            tell(Waits(ahead))

    return waits


def _side_by_side(runs: Sequence[Run], setup: Setup) -> int:
    """Return the number of drivers to run at the same time."""
    # On a cluster, the first driver takes all cores, and a second one would wait for them.
    if setup.active == 1 or any(run.scenario.master is not None for run in runs):
        return 1
    allowed = max(1, min(cores() // 2, psutil.virtual_memory().available // DRIVER_BYTES))
    return min(allowed, -(-len(runs) // setup.active))


def _run_all(
    drivers: "DriverPool",
    pool: ThreadPoolExecutor,
    ready: list[Run],
    side_by_side: int,
    heartbeat: Callable[[], None] | None,
) -> None:
    under_way: dict[Future[None], list[Run]] = {}
    while ready or under_way:
        # Rounded up, because the runs may not divide evenly among the drivers.
        share = -(-len(ready) // side_by_side)
        while ready and len(under_way) < side_by_side:
            load = list(islice(_runs_of_next_driver(ready, _parked_allowed(side_by_side)), max(share, 1)))
            ready = [run for run in ready if run not in load]
            under_way[pool.submit(drivers.run, load)] = load
        if heartbeat:
            heartbeat()
        for future in wait(under_way, HEARTBEAT if heartbeat else None, return_when=FIRST_COMPLETED).done:
            load = under_way.pop(future)
            # Raises only errors of labkit itself, because a run that fails stores its error in `Run.error`.
            future.result()
            # Runs that wait for their recovery come first, because their checkpoints are unresolved; new runs can wait.
            ready = [run for run in load if not run.ended and run.error is None] + ready


def _runs_of_next_driver(ready: Sequence[Run], most: int) -> Iterator[Run]:
    """Choose from the runs `ready` the ones that the next driver executes together, and yield them.

    Runs that must recover come first. All chosen runs need the same cluster and the same Spark settings. At most `most`
    of them have a planned crash ahead, because a query at its failpoint keeps its memory until the driver is killed.
    """
    parked, kind = 0, _kind(ready[0])
    alike = sorted((run for run in ready if _kind(run) == kind), key=lambda run: -run.drivers)
    if _runs_alone(alike[0]):
        yield alike[0]
        return
    for run in alike:
        if _runs_alone(run):
            continue
        parked += run.next_crash is not None
        if parked > most:
            return
        yield run


def _runs_alone(run: Run) -> bool:
    """Return whether a run needs a driver of its own: if it is on a cluster, and its next crash is inside a task.

    The crashing task keeps its core while it waits to be killed, and every other task of its batch needs a core at the
    same time. Other runs in the same driver would take these cores.
    """
    return run.scenario.master is not None and run.next_crash is not None and run.next_crash.point.in_task


def _kind(run: Run) -> tuple[str | None, str]:
    profile = PROFILE[run.scenario.job]
    return (run.scenario.master, "cluster" if run.scenario.master and profile == "small" else profile)


def _parked_allowed(side_by_side: int) -> int:
    share = psutil.virtual_memory().available // side_by_side
    return max(2, min(PARKED, (share - DRIVER_BYTES) // QUERY_BYTES))


PROFILE = {Job.RUNNING: "small", Job.SOCKET: "small", Job.TOTALS: "bulk", Job.KAFKA: "kafka", Job.SHOP: "small"}
"""For each job, the name of the settings for its driver's Spark session, one of `labkit.spark.session.PROFILES`."""


def _master(load: Sequence[Run]) -> str:
    """Return the Spark master URL for a driver of these runs: the URL of their cluster, or `local[N]`.

    N is large enough for every task that waits at a failpoint.
    """
    if load[0].scenario.master is not None:
        return load[0].scenario.master
    if load[0].scenario.job is Job.TOTALS:
        return f"local[{cores()}]"
    tasks = max(run.scenario.most_tasks for run in load)
    # A parked query keeps its threads until the kill, so every query of the load needs its own threads.
    return f"local[{(tasks + 1) * (len(load) + 1)}]"


class DriverPool:
    """Starts and ends the Spark drivers of several runs.

    It also starts standby drivers, which are ready before a crash and continue the run after it.
    """

    def __init__(self, scratch: Path, tell: Tell, patience: float, setup: Setup) -> None:
        self._scratch, self._tell = scratch, tell
        self._patience, self._setup = patience, setup
        self._drivers: list[SupervisedDriver] = []
        self._standbys: list[Standby] = []
        self._warm: list[WarmDriver] = []
        self._dead: Ending | None = None
        self._lock = threading.Lock()
        self._count = 0
        self._closed = False

    def let_go(self) -> None:
        """Kill all drivers, and from now on kill each newly started driver at once."""
        with self._lock:
            self._closed = True
            for driver in self._drivers:
                driver.let_go()

    def _add(self, driver: SupervisedDriver) -> None:
        with self._lock:
            # Under the lock of `let_go`, so that a driver that is added during the shutdown is ended as well.
            self._drivers.append(driver)
            if self._closed:
                driver.let_go()

    def run(self, load: Sequence[Run]) -> None:
        """Execute the runs `load` in one driver.

        Returns when the driver has ended and the evidence of each crash has been checked.
        """
        queries = [run.query_task() for run in load]
        noted = DriverEvents(load, self._tell)
        log = self._scratch / "no.log"
        try:
            with ExitStack() as stack:
                log, events = self._start(stack, load, queries)
                for event in events:
                    noted.note(event)
        except LabError as error:
            noted.give_up(error)
        finally:
            noted.keep_log(log)
        noted.conclude()
        # Kept only after `conclude`, so that a standby gets queries only if the evidence has been checked.
        self._dead = noted.ending

    def _start(
        self, stack: ExitStack, load: Sequence[Run], queries: list[QueryTask]
    ) -> tuple[Path, Iterator[AnyEvent]]:
        # A standby driver replaces a dead one, so the first driver of a run is never a standby.
        if self._dead is not None and self._standbys:
            standby = self._standbys.pop(0)
            stack.enter_context(standby.driver)
            order = RunQueries([wire.raw(query) for query in queries])
            return standby.log, standby.take_over(self._dead, order)
        if warm := self._take_warm(load):
            stack.enter_context(warm.standby.driver)
            self._add(warm.standby.driver)
            order = RunQueries([wire.raw(query) for query in queries])
            hand = warm.standby.hand if self._dead is None else partial(warm.standby.take_over, self._dead)
            return warm.standby.log, hand(order)
        self._start_standbys(load)
        launch = self._launch(load, queries)
        self._tell(DriverStarts())
        driver = stack.enter_context(SupervisedDriver(launch, self._patience))
        self._add(driver)
        return Path(launch.log), driver.events()

    def _take_warm(self, load: Sequence[Run]) -> WarmDriver | None:
        pool, run = self._setup.warm, load[0]
        if pool is None or self._setup.standby or self._setup.profile is not None:
            return None
        if warm := pool.take(run):
            self._warm.append(warm)
        return warm

    def close(self) -> None:
        """End standby drivers that no crash needed; remove the folders of drivers taken from `setup.warm`."""
        for warm in self._warm:
            warm.remove()
        while self._standbys:
            with self._standbys.pop().driver:
                continue

    def _start_standbys(self, load: Sequence[Run]) -> None:
        """If the setup requests standby drivers, start one for each planned crash, and wait until each is ready."""
        while self._setup.standby and len(self._standbys) < len(load[0].crashes_left):
            self._tell(StandbyStarts())
            launch = self._launch(load, [], standby=load[0].scenario.job)
            standby = Standby(launch, self._patience)
            self._standbys.append(standby)
            self._add(standby.driver)
            standby.await_ready()
            self._tell(Ready())

    def _launch(self, load: Sequence[Run], queries: list[QueryTask], standby: Job | None = None) -> Launch:
        with self._lock:
            self._count += 1
            base = self._scratch / f"driver-{self._count}"
        task = DriverTask(
            master=_master(load),
            profile=self._setup.profile or _kind(load[0])[1],
            active=self._setup.active,
            archive=self._setup.archive,
            queries=queries,
            standby=standby,
        )
        return Launch(module="labkit.runs.driver", scratch=str(base), log=f"{base}.log", task=wire.raw(task))
