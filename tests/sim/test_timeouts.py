"""The checker of timeouts: what it refuses, what it calls safe, and which mistake it names."""

import pytest
from command import labkit

from labkit.core.errors import InvalidInput
from labkit.sim.models.kafka_log.timeouts import Fit, Timeouts, examine, longest_open


def test_an_hour_against_a_quarter_is_refused() -> None:
    found = examine(Timeouts(interval=60, checkpoint=60, transaction=3600))
    assert found.fit is Fit.REFUSED
    assert "INVALID_TRANSACTION_TIMEOUT" in found.because
    assert "more than 120 s and at most 900 s" in found.because


def test_a_job_that_needs_more_than_the_maximum_is_told_to_raise_it() -> None:
    found = examine(Timeouts(interval=60, checkpoint=600, transaction=3600))
    assert (found.fit, found.needed) == (Fit.REFUSED, 1200)
    assert "raise transaction.max.timeout.ms above 1200 s" in found.because


def test_the_sample_configuration_loses_a_burst() -> None:
    """5 s, every 10 s, a pause of at least 15 s."""
    found = examine(Timeouts(interval=10, checkpoint=1, transaction=5, pause=15))
    assert (found.fit, found.needed) == (Fit.LOSES, 17)
    assert "burst" in found.because
    assert "crash loop" in found.because


def test_the_formula_that_is_commonly_given_can_be_too_short() -> None:
    """Checkpoints that may outlast the interval: (0 + 1) x (10 + 30) + 5 = 45 is believed to be enough, and is not."""
    assert examine(Timeouts(interval=10, checkpoint=30, transaction=46, downtime=5)).fit is Fit.LOSES
    assert examine(Timeouts(interval=10, checkpoint=30, transaction=66, downtime=5)).fit is Fit.SAFE
    assert examine(Timeouts(interval=10, checkpoint=30, transaction=65, downtime=5)).fit is Fit.LOSES


@pytest.mark.parametrize(("field", "value"), [("interval", 0), ("transaction", -1), ("tolerated", -1)])
def test_impossible_numbers_are_refused_by_name(field: str, value: int) -> None:
    with pytest.raises(InvalidInput, match=f"--{field} {value}"):
        examine(Timeouts(interval=1, checkpoint=1, transaction=5)._replace(**{field: value}))


@pytest.mark.parametrize("times", [(1, 1, 0, 1), (2, 1, 0, 1), (1, 2, 0, 1), (1, 1, 1, 1), (1, 2, 1, 0)])
def test_it_says_what_every_schedule_of_the_simulator_says(times: tuple[int, int, int, int]) -> None:
    """test_kafka_log.py searches all schedules for either side of this bound."""
    interval, checkpoint, tolerated, downtime = times
    given = Timeouts(interval, checkpoint, 1, tolerated=tolerated, downtime=downtime)
    bound = longest_open(*times)
    assert examine(given).needed == bound
    assert examine(given._replace(transaction=bound)).fit is Fit.LOSES
    assert examine(given._replace(transaction=bound + 1)).fit is Fit.SAFE


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ([], 1, "refused at start"),
        (["--transaction", "5", "--interval", "10", "--checkpoint", "1", "--pause", "15"], 1, "can lose data"),
        (["--transaction", "600", "--interval", "60", "--checkpoint", "60", "--downtime", "120"], 0, "safe"),
    ],
)
def test_the_command_says_so_and_exits_with_it(options: list[str], code: int, said: str) -> None:
    found, out, _ = labkit("timeouts", *options)
    assert found == code
    assert out.startswith(said)
