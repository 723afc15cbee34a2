"""What the crash tests of sinks and pipelines must leave behind: no process."""

from collections.abc import Iterator

import pytest
from crashtest_processes import left_over


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """At the end of the test, every process that its crash tests have started is gone."""
    yield
    assert left_over() == []
