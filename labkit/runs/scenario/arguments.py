"""Give a function with `**options` a signature and a docstring that list the options of a run.

`help()` and tab completion read both.
"""

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any, TypeVar

from labkit.core.options import Option, options_of, with_arguments
from labkit.runs.scenario.scenario import Scenario

FunctionT = TypeVar("FunctionT", bound=Callable[..., object])


def takes_options(*but: str, of: type[Scenario] = Scenario) -> Callable[[FunctionT], FunctionT]:
    """Return a decorator that lists a run's options, except those in `but`, in a function's signature and docstring."""

    def named(function: FunctionT) -> FunctionT:
        options = [each for each in options_of(of) if each.keyword not in but]
        lines = [f"    {each.keyword}: {each.help}" for each in options]
        function.__doc__ = "\n".join([inspect.getdoc(function) or "", "", "Options:", *lines])
        return with_arguments(function, [_argument(each) for each in options])

    return named


def _argument(option: Option[Any]) -> Parameter:
    default = option.default_word
    annotation = option.kind.accepts or option.kind.annotation
    return Parameter(
        option.keyword,
        Parameter.KEYWORD_ONLY,
        default=default,
        annotation=annotation | None if default is None else annotation,
    )
