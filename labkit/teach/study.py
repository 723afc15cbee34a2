"""The functions of `lab` for the simulators: replay a run, simulate a crash, search all schedules.

`labkit replay` and `labkit explore` do the same on the command line. The simulators define the properties, and the
judge counts lost and duplicate records.
"""

from collections.abc import Sequence

from labkit.core.arguments import takes
from labkit.core.errors import InvalidInput
from labkit.core.failpoints import Order, parse_crash
from labkit.core.strategies import POINTS, Strategy, check_crash, orders
from labkit.core.words import nearest
from labkit.sim.chains import SOURCES
from labkit.sim.explore import MAX_STATES
from labkit.sim.explore import explore as search
from labkit.sim.models.pipeline.scenarios import crashed
from labkit.sim.scenarios import run_of
from labkit.sim.trace import Trace, make
from labkit.sim.trace import replay as play
from labkit.teach.results import Search, Walk


@takes('lab.replay("pipeline.jump_back")')
def replay(what: str | Trace) -> Walk:
    """Replay a simulated run to its end.

    `what` is the name of a scenario (`pipeline.jump_back`), a `Trace`, or the text of a trace. Raises `InvalidInput`
    for an unknown scenario or invalid text, and `InvalidAction` if a step of the trace is impossible.
    """
    trace, watch_for = run_of(what)
    return Walk(play(trace), watch_for)


@takes('lab.simulate("sink.after_pre_commit", sink="append")')
def simulate(
    at: str | Sequence[str] = (), *, sink: str, store: str = "files", order: str | None = None, source: str = "log"
) -> Walk:
    """Simulate what `lab.crash` does on real Spark: crash a job with three records, and judge the rows.

    `at` is a failpoint (crash point) at which the driver is killed, or a list of failpoints, one for each successive
    driver. `order` is the commit order, such as `engine` or `decision`; without it, the sink's usual one is used.
    `source` is `log`, which can be read again after a crash, or `socket`, which cannot. Raises `InvalidInput` for a
    sink, order, store, source or failpoint that the simulator lacks.
    """
    strategy, taken = _sink(sink, order)
    crashes = [parse_crash(point) for point in ([at] if isinstance(at, str) else at)]
    for planned in crashes:
        check_crash(planned, strategy, taken)
    if source not in SOURCES:
        raise InvalidInput(f"there is no source {source[:40]!r}; {nearest(source[:40], list(SOURCES))}")
    return Walk(crashed(strategy, taken, store, crashes, source=SOURCES[source]))


@takes('lab.points("two_phase")')
def points(sink: str, order: str | None = None) -> list[str]:
    """Return the names of the failpoints (crash points) that a batch of this sink passes, from the first to the last.

    Raises `InvalidInput` if the sink is unknown or does not support the commit order `order`.
    """
    return [point.value for point in POINTS[_sink(sink, order)]]


def _sink(sink: str, order: str | None) -> tuple[Strategy, Order]:
    if sink not in list(Strategy):
        raise InvalidInput(f"there is no sink {sink[:40]!r}; {nearest(sink[:40], [each.value for each in Strategy])}")
    strategy = Strategy(sink)
    names = [each.value for each in orders(strategy)]
    if order is not None and order not in names:
        raise InvalidInput(
            f"the sink {sink} does not support the commit order {order[:40]!r}; {nearest(order[:40], names)}"
        )
    return strategy, orders(strategy)[0] if order is None else Order(order)


@takes('lab.explore("pipeline", strategy="append")')
def explore(model: str, *, max_states: int = MAX_STATES, **parameters: object) -> Search:
    """Search every schedule of the simulator `model` breadth first, up to `max_states` states.

    Returns the violated properties, each with a shortest run that violates it. `parameters` configure the simulator.
    Raises `InvalidInput` for an unknown simulator or parameter.
    """
    return Search(search(make(model, parameters), max_states=max_states))
