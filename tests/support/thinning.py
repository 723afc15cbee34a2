"""Which cases of a long list the slow tests try: one in so many. `make test-all` tries the others, too (`longest`)."""

from collections.abc import Iterable
from typing import Any

import pytest

ONLY_IN_A_WHOLE_RUN = (pytest.mark.slow, pytest.mark.longest)


def only_in_a_whole_run(case: Any) -> Any:
    """One case as a parameter that `make test-all` alone tries."""
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=ONLY_IN_A_WHOLE_RUN)


def one_in(number: int, cases: Iterable[Any], first: int = 0) -> list[Any]:
    """The cases as parameters, all but one in `number` for a whole run only; `first` is the first that is not."""
    return [
        case if place % number == first else only_in_a_whole_run(case)
        for place, case in enumerate(cases)
    ]


def fast_and_one_in(
    number: int, names: Iterable[str], fast: Iterable[str], first: int = 0
) -> list:
    """The fast ones for every run of the tests; the others are slow, and all but one in `number` for a whole run only.

    `first` is the first slow one that is not.
    """
    fast = tuple(fast)
    slow = [name for name in names if name not in fast]
    return [
        *fast,
        *(
            only_in_a_whole_run(name)
            if place % number != first
            else pytest.param(name, marks=pytest.mark.slow)
            for place, name in enumerate(slow)
        ),
    ]
