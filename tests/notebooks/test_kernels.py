"""A kernel of a checked notebook that dies of a port that somebody else has taken is started again; nothing else is."""

from collections.abc import Callable
from pathlib import Path
from runpy import run_path

import pytest

ROOT = Path(__file__).parent.parent.parent
start_again = run_path(str(ROOT / "conftest.py"))["start_again"]


def starting(*said: str) -> Callable[[], int]:
    """A start that fails with each of these messages, and then gives how often it was tried."""
    left = list(said)

    def start() -> int:
        if left:
            raise RuntimeError(left.pop(0))
        return len(said) + 1

    return start


DIED = "Kernel died before replying to kernel_info"


def test_a_kernel_that_died_at_its_start_is_started_again() -> None:
    assert start_again(starting()) == 1
    assert start_again(starting(DIED, DIED)) == 3
    with pytest.raises(RuntimeError, match="died"):
        start_again(starting(DIED, DIED, DIED))


def test_a_kernel_that_is_slow_is_not_started_again() -> None:
    with pytest.raises(RuntimeError, match="respond"):
        start_again(starting("Kernel didn't respond in 60 seconds"))


def test_nbval_starts_its_kernels_so() -> None:
    from nbval import kernel

    assert kernel.start_new_kernel.func.__name__ == "start_again"
