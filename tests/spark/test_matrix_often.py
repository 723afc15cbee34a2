"""The moment between pre-commit and commit, once more for every sink beside the matrix: chance has no say in it."""

import pytest

from labkit import lab
from labkit.cli.matrix import scenario
from labkit.core.errors import LabError
from labkit.core.failpoints import FailPoint
from labkit.host.java import Java
from labkit.runs.expected import compared, expectations
from labkit.runs.run import prepare

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CELLS = {
    cell: expected
    for cell, expected in expectations().items()
    if cell.point is FailPoint.AFTER_PRE_COMMIT
}
TIMES = 1


@pytest.fixture(scope="module")
def outcomes(
    java: Java,
    postgres: str,
    kafka_address: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> list[list[lab.Outcome | LabError]]:
    base = tmp_path_factory.mktemp("often")
    runs = [
        prepare(scenario(cell), base / f"{scenario(cell).name}-{number}")
        for cell in CELLS
        for number in range(TIMES)
    ]
    done = lab.run_all(runs, base / "scratch")
    return [done[start : start + TIMES] for start in range(0, len(done), TIMES)]


@pytest.mark.parametrize("number", range(len(CELLS)), ids=map(str, CELLS))
def test_it_comes_out_alike_every_time(
    number: int, outcomes: list[list[lab.Outcome | LabError]]
):
    expected = list(CELLS.values())[number]
    for outcome in outcomes[number]:
        assert isinstance(outcome, lab.Outcome), str(outcome)
        assert outcome.crashes[0]["signal"] == 9
        assert compared(outcome.to_json()) == expected.compared(), expected.reason
