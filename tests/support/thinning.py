"""Which cases of a long list the slow tests try: one in so many. `make test-all` tries the others, too (`longest`)."""

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(number: int, cases: Iterable[Any], first: int = 0) -> list[Any]:
    """The cases as parameters, all but one in `number` marked `longest`; `first` is the first that is not."""
    return [
        case if place % number == first else only_in_a_whole_run(case)
        for place, case in enumerate(cases)
    ]


def only_in_a_whole_run(case: Any) -> Any:
    """One case as a parameter that `make test-all` alone tries."""
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.longest)


def fast_and_one_in(number: int, names: Iterable[str], fast: Iterable[str]) -> list:
    """The fast ones for every run of the tests; of all others, which are slow, all but one in `number` `longest`, too."""
    fast = tuple(fast)
    slow = [name for name in names if name not in fast]
    only = (pytest.mark.slow, pytest.mark.longest)
    return [
        *fast,
        *(
            pytest.param(name, marks=only if place % number else pytest.mark.slow)
            for place, name in enumerate(slow)
        ),
    ]
