"""Lists the subcommands of `labkit`, and imports the module of a subcommand only when the user calls it."""

from pkgutil import resolve_name
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from labkit import __version__
from labkit.core.errors import InvalidInput

VERBS = {
    "doctor": "Say what this machine has and lacks.",
    "services": "Start, look at or stop the servers that some stores need.",
    "grade": "Grade submitted notebooks, each in a sandbox.",
    "release": "Make the copy of the lab that learners get.",
    "crashtest": "Kill a real job at every effect of your own sink or pipeline, and say what it guarantees.",
    "bisect": "Crash-test a pipeline with several versions of a package, and say at which its guarantee changed.",
    "compare": "Say in Markdown how two reports of a crash test differ.",
    "effects": "Show in which order a pipeline writes plan, data and decision, and what it syncs.",
    "timeouts": "Say whether three timeouts of Kafka transactions can lose data.",
    "orders": "Show what each order of plan, output, marker and decision guarantees, and a crash that breaks it.",
    "points": "List the failpoints, and the sinks that pass each of them.",
    "run": "Run the word count on real Spark, kill it, restart it, judge it.",
    "demo": "Crash a job of three records with every sink, then show the limits.",
    "matrix": "Compare every sink at every failpoint with the predictions.",
    "explore": "Visit every schedule of a simulator and say which claims do not hold.",
    "replay": "Step through one run of a simulator, a line a step.",
    "export": "Write a simulated or a real run as Mermaid, PlantUML, ShiViz or SVG.",
    "check": "Check the exercises of saved notebooks, each answer alone, with an exit code.",
    "course": "Write the notebooks, and the other files that a class needs, into a folder.",
    "lab": "Open JupyterLab on the notebooks.",
}
"""Every subcommand with its line in `labkit --help`. `labkit.cli.run.run` implements `labkit run`, and so on."""


class Verb(TyperCommand):
    """A subcommand of `labkit` whose module is not imported until it runs, so that `labkit --help` is fast."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        assert self.name is not None
        return command(self.name).make_context(*arguments, **options)


MOVED = {"bench": 'measurements are `make bench` in a checkout, for example: make bench ONLY="crash explore" ROUNDS=3.'}
"""Removed subcommands, each with the sentence that tells the user what to type instead."""


class Moved(TyperCommand):
    """A removed subcommand. Whatever options the user adds, it only says which command to type instead."""

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
    """Step, crash and judge stream processing: what does exactly-once really guarantee?

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
        help="Step, crash and judge stream processing: what does exactly-once really guarantee?",
    )
    top.callback(invoke_without_command=True)(root)
    group = get_group(top)
    for name, summary in VERBS.items():
        group.add_command(Verb(name, short_help=summary, rich_markup_mode=None))
    for name in MOVED:
        group.add_command(Moved(name, hidden=True))
    return group
