"""Find the prediction that `expected.toml` has for a run, if the run has one crash and no special options."""

from labkit.runs.expected import Cell, Expected, compared, expectations
from labkit.runs.record import RunRecord
from labkit.runs.scenario import plan


def expected_of(record: RunRecord) -> tuple[Expected, bool] | None:
    """Return the verdict that `expected.toml` predicts for a run, and whether the run confirmed the prediction.

    Returns None if the file has no prediction for the run.
    """
    scenario = record.scenario
    crashes = [str(crash) for crash in scenario.crashes]
    order = None if scenario.order.value == "none" else scenario.order.value
    if len(crashes) != 1 or scenario != plan(
        sink=scenario.strategy.value, store=scenario.store, order=order, crashes=crashes
    ):
        return None
    cell = Cell(scenario.store, scenario.strategy, scenario.order, scenario.crashes[0].point)
    expected = expectations().get(cell)
    return (expected, expected.compared() == compared(record.verdict.to_json())) if expected else None
