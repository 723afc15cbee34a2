"""Check the arguments of a call against the function's annotations, and answer a mismatch with one sentence.

The sentence names the argument, the types that it may have, and an example call. Errors that the function itself
raises pass through unchanged, because the caller did not cause them.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import Parameter
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from labkit.core.errors import InvalidInput
from labkit.core.extras import missing_extra

ParamsT = ParamSpec("ParamsT")
ReturnT = TypeVar("ReturnT")

MOST_KINDS = 4
"""The largest number of types that an error message lists; if there are more, it shows only an example call."""

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
"""The words by which an error message names a type. A type that is missing here appears under its class name."""


def takes(example: str) -> Callable[[Callable[ParamsT, ReturnT]], Callable[ParamsT, ReturnT]]:
    """Return a decorator that checks a function's arguments against its type annotations at every call.

    For an argument of the wrong type, the decorated function raises `InvalidInput`. Annotations written as strings are
    not checked. The error message shows `example`, a correct call such as `lab.show("pipeline.jump_back")`.
    """
    place = f"{example.partition('(')[0]}()"

    def checked(function: Callable[ParamsT, ReturnT]) -> Callable[ParamsT, ReturnT]:
        signature = inspect.signature(function)

        @wraps(function)
        def checked_call(*args: ParamsT.args, **kwargs: ParamsT.kwargs) -> ReturnT:
            try:
                call = signature.bind(*args, **kwargs)
            except TypeError as refusal:
                raise InvalidInput(f"{place}: {refusal}; write it as in {example}.") from None
            for name, value, annotation in _each(signature, call.arguments):
                if not fits(value, annotation):
                    raise InvalidInput(
                        f"{place}: {name}={_shown(value)} is not accepted; write {_wanted(annotation)} as in {example}."
                    )
            try:
                return function(*args, **kwargs)
            except ModuleNotFoundError as error:
                if missing := missing_extra(error):
                    raise missing from None
                raise

        return checked_call

    return checked


def _each(signature: inspect.Signature, arguments: Mapping[str, Any]) -> Iterable[tuple[str, object, object]]:
    for name, value in arguments.items():
        parameter = signature.parameters[name]
        if parameter.kind is Parameter.VAR_POSITIONAL:
            yield from ((name, each, parameter.annotation) for each in value)
        elif parameter.kind is Parameter.VAR_KEYWORD:
            yield from ((key, each, parameter.annotation) for key, each in value.items())
        else:
            yield name, value, parameter.annotation


def fits(value: object, annotation: object) -> bool:
    """Return whether a value has the annotated type; True for an annotation that cannot be checked."""
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
    """Return whether the contents of a list or a dict have the types in `inside`; True for any other value.

    `inside` has one type for the items of a list, or two types for the keys and the values of a dict.
    """
    if isinstance(value, Mapping) and len(inside) == 2:
        key, each = inside
        return all(fits(name, key) and fits(one, each) for name, one in value.items())
    # A `str` is a sequence of `str`, so the recursion would never end.
    if isinstance(value, Sequence) and not isinstance(value, str) and len(inside) == 1:
        return all(fits(each, inside[0]) for each in value)
    return True


def _wanted(annotation: object) -> str:
    """Return the words that follow "write" in an error message such as "write a number or a path, as in lab.show(1)".

    The words name the types that the annotation accepts, with a comma at the end. If there are too many types, the
    result is "it", which gives "write it as in lab.show(1)".
    """
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
    if type(value).__repr__ is object.__repr__:
        return f"{type(value).__name__}()"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:36]} ..."
