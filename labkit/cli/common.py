"""Defines options that several subcommands share, and turns declared options (`labkit.core.options`) into typer's."""

import importlib.util
from collections.abc import Iterable, Mapping
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

from labkit import __version__
from labkit.core.errors import MissingExtra
from labkit.core.options import Option

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")]
Out = Annotated[Path | None, typer.Option("--out", help="The folder to write to; it must not exist yet.")]


def need_grader(command: str) -> None:
    """Raise `MissingExtra` if the grader, a separate package for instructors, is not installed."""
    if importlib.util.find_spec("labkit.grading") is None:
        raise MissingExtra(
            f"{command} needs the grader, which is not installed: pip install labkit-grading=={__version__}."
        )


def parameter(option: Option[Any], help: str = "") -> Parameter:
    """Convert an option to a function parameter, which typer offers on the command line.

    `help`, if given, replaces the option's own help text.
    """
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
    """Return the options that the user typed, as a dict from keyword to value.

    `words` maps every option to its value, which is the default if the user did not type the option.
    """
    return {each.keyword: words[each.parameter] for each in options if is_typed(context, each.parameter)}


def is_typed(context: typer.Context, parameter: str) -> bool:
    """Return whether the user typed this parameter on the command line, even with its default value."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"
