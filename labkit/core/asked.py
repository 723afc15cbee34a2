"""Arguments that a person typed: what a function says of itself in its annotations is what it takes.

A decorated function answers a call that does not fit with one sentence: the argument, what may stand there, and an
example. This module must not catch what a function raises: an error from within is a defect, and stays one.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import Parameter
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from labkit.core.errors import InvalidInput

ParamsT = ParamSpec("ParamsT")
ReturnT = TypeVar("ReturnT")

MOST_KINDS = 4
"""Kinds that a sentence names; where there are more, the example has to do."""

SPOKEN = {
    "str": "text in quotation marks",
    "int": "a whole number",
    "float": "a number",
    "bool": "True or False",
    "Path": "a path",
    "Mapping": "a dict",
    "Sequence": "a list",
    "Callable": "a function",
}
"""What a kind is called in a sentence; any other by the name of its class."""


def takes(example: str) -> Callable[[Callable[ParamsT, ReturnT]], Callable[ParamsT, ReturnT]]:
    """Decorates a function of the face, which is called as in `example` (`lab.show("pipeline.jump_back")`).

    A call whose arguments do not fit its annotations raises `InvalidInput`. Annotations in quotes are not looked at.
    """
    place = f"{example.partition('(')[0]}()"

    def checked(function: Callable[ParamsT, ReturnT]) -> Callable[ParamsT, ReturnT]:
        signature = inspect.signature(function)

        @wraps(function)
        def asked(*args: ParamsT.args, **kwargs: ParamsT.kwargs) -> ReturnT:
            try:
                given = signature.bind(*args, **kwargs)
            except TypeError as refusal:
                raise InvalidInput(f"{place}: {refusal}; write it as in {example}.") from None
            for name, value, annotation in _each(signature, given.arguments):
                if not fits(value, annotation):
                    raise InvalidInput(
                        f"{place}: {name}={_shown(value)} will not do; write {_wanted(annotation)} as in {example}."
                    )
            return function(*args, **kwargs)

        return asked

    return checked


def _each(signature: inspect.Signature, given: Mapping[str, Any]) -> Iterable[tuple[str, object, object]]:
    """Every value that was given, with its name and its annotation."""
    for name, value in given.items():
        parameter = signature.parameters[name]
        if parameter.kind is Parameter.VAR_POSITIONAL:
            yield from ((name, each, parameter.annotation) for each in value)
        elif parameter.kind is Parameter.VAR_KEYWORD:
            yield from ((key, each, parameter.annotation) for key, each in value.items())
        else:
            yield name, value, parameter.annotation


def fits(value: object, annotation: object) -> bool:
    """Whether a value is of an annotated kind. An annotation that cannot be looked at allows everything."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in inside)
    if origin is Literal:
        return any(value is each or value == each for each in inside)
    if annotation in (int, float):
        numbers = int | float if annotation is float else int
        return isinstance(value, numbers) and not isinstance(value, bool)
    kind = NoneType if annotation is None else origin or annotation
    if not isinstance(kind, type) or kind in (Parameter.empty, Any):
        return True
    return isinstance(value, kind) and _inside_fits(value, inside)


def _inside_fits(value: object, inside: Sequence[object]) -> bool:
    """Whether the entries of a list, or the names and values of a dict, are of the annotated kinds."""
    if isinstance(value, Mapping) and len(inside) == 2:
        key, each = inside
        return all(fits(name, key) and fits(one, each) for name, one in value.items())
    # A text is a sequence of texts, without end.
    if isinstance(value, Sequence) and not isinstance(value, str) and len(inside) == 1:
        return all(fits(each, inside[0]) for each in value)
    return True


def _wanted(annotation: object) -> str:
    """What may be written, with a comma behind it; where that would be a long list, the example says it."""
    kinds = list(dict.fromkeys(_spoken(annotation)))
    return f"{' or '.join(kinds)}," if len(kinds) <= MOST_KINDS else "it"


def _spoken(annotation: object) -> Iterable[str]:
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        for each in inside:
            yield from _spoken(each)
    elif origin is Literal:
        yield from map(repr, inside)
    elif annotation not in (None, NoneType):
        name = getattr(origin or annotation, "__name__", str(annotation))
        yield SPOKEN.get(name, f"a {name}")


def _shown(value: object) -> str:
    """A value as it was typed, short; an object without a form of its own by the name of its class."""
    if type(value).__repr__ is object.__repr__:
        return f"{type(value).__name__}()"
    said = repr(value)
    return said if len(said) <= 40 else f"{said[:36]} ..."
