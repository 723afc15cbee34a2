"""Lists the subcommands of `labkit`, and imports the module of a subcommand only when the user calls it."""

from pkgutil import resolve_name
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from labkit import __version__
from labkit.core.errors import InvalidInput

VERBS = {
    "doctor": "Check whether this machine has what labkit needs, such as Java.",
    "services": "Start, examine or stop the servers that some stores need: PostgreSQL and Kafka.",
    "grade": "Grade submitted notebooks, each in a sandbox.",
    "release": "Make the copy of the lab that learners get.",
    "crashtest": "Kill your own sink or pipeline before each of its writes, and say what it guarantees.",
    "bisect": "Crash-test a pipeline with several versions of a package, and say which version changed its guarantee.",
    "compare": "Say in Markdown how two reports of a crash test differ.",
    "effects": "Show in which order a pipeline writes plan, data and decision, and what it syncs to disk.",
    "timeouts": "Say whether a job that writes in Kafka transactions can lose data because of a timeout.",
    "orders": "Show what each order of a sink's writes guarantees, and a crash that breaks the guarantee.",
    "points": "List the failpoints (moments at which labkit can kill a job), and the sinks that reach each.",
    "run": "Run a word count on real Spark, kill it, restart it, and judge what readers saw.",
    "demo": "Crash a small Spark job with every sink, and show what was lost or doubled.",
    "matrix": "Kill every sink at every failpoint, and compare the results with the predictions.",
    "explore": "Visit every schedule of a simulator, and say which claims do not hold.",
    "replay": "Print one run of a simulator, one line per step.",
    "export": "Write a simulated or a real run as Mermaid, PlantUML, ShiViz or SVG.",
    "check": "Check the answers to exercises in saved notebooks, each on its own.",
    "course": "Write the notebooks, and the other files that a class needs, into a folder.",
    "lab": "Open JupyterLab on the notebooks.",
}
"""Every subcommand and its line in `labkit --help`. `labkit.cli.NAME.NAME` implements `labkit NAME`."""


class Verb(TyperCommand):
    """A subcommand of `labkit` whose module is not imported until it runs, so that `labkit --help` is fast."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        assert self.name is not None
        return command(self.name).make_context(*arguments, **options)


MOVED = {"bench": 'measurements are `make bench` in a checkout, for example: make bench ONLY="crash explore" ROUNDS=3.'}
"""Removed subcommands, each with the sentence that tells the user what to type instead."""


class Moved(TyperCommand):
    """A removed subcommand. It ignores its options and only says what to type instead (`MOVED`)."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        assert self.name is not None
        raise InvalidInput(MOVED[self.name])


def command(name: str) -> Any:
    """Return the subcommand of this name; the module of the same name contains its function."""
    verb = typer.Typer(add_completion=False, rich_markup_mode=None)
    verb.command(name)(resolve_name(f"labkit.cli.{name}:{name}"))
    return get_command(verb)


def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Simulate, crash and judge stream processing: what does exactly-once really guarantee?

    Start with `labkit demo`. Every command takes --debug, which shows the traceback of an error.
    """
    if version:
        print(f"labkit {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


def command_line() -> TyperGroup:
    """Return the command `labkit` with all its subcommands."""
    top = typer.Typer(
        name="labkit",
        add_completion=False,
        rich_markup_mode=None,
        help="Simulate, crash and judge stream processing: what does exactly-once really guarantee?",
    )
    top.callback(invoke_without_command=True)(root)
    group = get_group(top)
    for name, summary in VERBS.items():
        group.add_command(Verb(name, short_help=summary, rich_markup_mode=None))
    for name in MOVED:
        group.add_command(Moved(name, hidden=True))
    return group
