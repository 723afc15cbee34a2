"""Repeat the scenario of a real run in the simulator, and show it in a player."""

from itertools import islice

from labkit.core.errors import InvalidInput
from labkit.host.logs import read_log
from labkit.runs.scenario import Scenario
from labkit.sim.models.pipeline.scenarios import crashed, first_crash, is_modelled
from labkit.sim.models.pipeline.state import STORES
from labkit.sim.walk import Replay
from labkit.spark.options import CheckpointFate, Job
from labkit.view.stepper import Player

MOST_WORDS = 8
"""The largest number of input records for which a run is repeated in the simulator."""


def walk_of(scenario: Scenario) -> Replay:
    """Repeat a real run's crash in the simulator, and return the simulated run.

    Raises `InvalidInput` if the simulator does not model an option of the scenario.
    """
    words = (
        # One more than is allowed, so that a longer input is noticed without reading all of it.
        list(islice(read_log(scenario.input), MOST_WORDS + 1)) if scenario.job is Job.RUNNING else []
    )
    if not words or not is_modelled(scenario.store) or scenario.checkpoint is CheckpointFate.DELETED:
        raise InvalidInput(
            "The simulator can repeat only a run of the job `running` that keeps its checkpoint and writes to one of "
            f"the stores {', '.join(STORES)}; choose such a run."
        )
    if not len(words) <= min(MOST_WORDS, scenario.records_per_batch):
        raise InvalidInput(
            f"The simulator models a single batch of at most {MOST_WORDS} records, but the input of this run needs "
            "more; start a run with a shorter input."
        )
    if not scenario.crashes:
        raise InvalidInput(
            'This run has no crash to simulate; start a run with one, for example lab.crash("sink.mid_write").'
        )
    return crashed(scenario.strategy, scenario.order, scenario.store, scenario.crashes, words)


def at_failpoint(scenario: Scenario) -> Player:
    """Return a viewer of the simulated run, opened at the step that reaches the failpoint.

    Raises `InvalidInput` if the simulator does not model an option of the scenario.
    """
    walk = walk_of(scenario)
    step, point = first_crash(walk), scenario.crashes[0].point
    return Player(walk.trace, f"Step {step - 1} reaches {point}. {point.sentence} Step {step} is the crash.", step - 1)
