"""Builds command-line options from declared ones (`labkit.core.options`)."""

from collections.abc import Iterable, Mapping
from inspect import Parameter
from typing import Annotated, Any

import typer

from labkit.core.options import Option


def parameter(option: Option[Any], help: str = "") -> Parameter:
    """Return a declared option as a parameter for typer; `help` replaces its own help text."""
    default = None if option.default_word == "" else option.default_word
    default = Parameter.empty if option.required else default
    annotation = option.kind.annotation if default is not None else option.kind.annotation | None
    description, metavar = help or option.help, option.argument or option.kind.metavar
    typed: Any = typer.Option(option.flag, help=description, metavar=metavar)
    if option.argument:
        typed = typer.Argument(help=description, metavar=metavar)
    return Parameter(option.parameter, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, typed])


def typed_options(
    context: typer.Context, options: Iterable[Option[Any]], words: Mapping[str, object]
) -> dict[str, Any]:
    """Return the values that the user typed, by the options' names in Python, without defaults."""
    return {each.keyword: words[each.parameter] for each in options if is_typed(context, each.parameter)}


def is_typed(context: typer.Context, parameter: str) -> bool:
    """Return whether the user typed this parameter, rather than leaving it at its default."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"
