"""Describe the verbs of the command line as data for the reference pages: usage, arguments, options and help texts."""

from typing import Any

import click

from labkit.cli.app import command


def described(verb: str) -> tuple[str, str, list[tuple[str, str]]]:
    """Return the usage line of a verb, its help text, and (name, help) of each argument and option."""
    parsed: Any = command(verb)
    context = click.Context(parsed, info_name=f"labkit {verb}", terminal_width=100)
    usage = " ".join(parsed.get_usage(context).removeprefix("Usage:").split())
    rows = [parameter.get_help_record(context) for parameter in parsed.get_params(context)]
    text = "\n\n".join(" ".join(part.split()) for part in (parsed.help or "").split("\n\n"))
    return usage, text, [row for row in rows if row]
