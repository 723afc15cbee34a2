"""Defines `labkit orders`, which shows what an order of writes guarantees, and the smallest change that repairs it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from labkit.cli.common import Json, parameter, typed_options
from labkit.core.errors import InvalidInput
from labkit.core.kinds import Many, Switch, Text
from labkit.core.options import Options, option, options_of, with_arguments
from labkit.host.path_kinds import AnyPath

if TYPE_CHECKING:
    from labkit.sim.orders.cheapest import Change
    from labkit.teach.orders import Order

_UNKNOWN = 2
"""The exit code if labkit does not know what one of the pipeline's recorded effects is (plan, output, ...)."""


@dataclass(frozen=True)
class Question(Options):
    """The options of `labkit orders`, which shows what the order of a pipeline's writes guarantees."""

    VERB = "labkit orders"

    design: str = option(
        Text(),
        "",
        'The name of a listed design, or its writes in their order, for example "plan > visible+marker > decision; '
        'transaction; from decision, skips marked".',
    )
    cheapest: bool = option(
        Switch(), default=False, help="Also find the smallest change that makes the design exactly-once."
    )
    quietly: bool = option(
        Switch(),
        default=False,
        help="With --cheapest: also require that no reader sees a value go back, or only part of a step (batch).",
    )
    hold: str = option(
        Text(), "", "With --cheapest: writes that must stay as they are, separated by commas, such as plan,decision."
    )
    fault: str = option(
        Text(),
        "",
        "With --design: what else may happen once, in addition to crashes. lost-answer: the store makes output "
        "visible, but its answer is lost, so the output is written again; expiry: the store aborts a prepared "
        "transaction; lease: the source delivers rows again, because they were acknowledged too late; lag: a step's "
        "plan, decision or notice is not written, but that of a later step is.",
    )
    of: Path | None = option(
        AnyPath("RECORD"),
        None,
        "List the designs that match a pipeline's record, which labkit effects --out has written.",
    )
    write: tuple[str, ...] = option(
        Many(Text(metavar="EFFECT=WRITE")),
        (),
        "With --of: which kind of write a recorded effect is, such as 'write store/all.txt=visible', or =nothing if no "
        "reader can notice it; may be repeated.",
    )
    ends: str = option(
        Text(metavar="EFFECT"),
        "",
        "With --of: the effect that ends a step (batch); by default a step ends when a write is repeated.",
    )


def orders(context: typer.Context, *, as_json: Json = False, **words: object) -> int:
    """Show what each order of the writes (plan, state, output, marker, decision) guarantees, and which crash breaks it.

    labkit runs no pipeline: it simulates every schedule with at most two crashes, and with --fault one other fault.
    Exit codes with --design: 0 the design is exactly-once even if a repeated step gets other rows; 1 it is not. With
    --of RECORD, a record of `labkit effects`: 0 labkit recognises the order of the recorded writes; 2 it does not.
    """
    from labkit.sim.orders.named import fault_of, named
    from labkit.sim.writes import Write, word_of
    from labkit.teach.orders import Order

    question = Question.plan(typed_options(context, options_of(Question), words))
    if question.of is not None:
        if question.design or question.cheapest or question.fault:
            raise InvalidInput(
                "--of takes the design from a record of `labkit effects`; leave --design, --cheapest and --fault out."
            )
        return _of(question.of, question.write, question.ends, as_json=as_json)
    if question.write or question.ends:
        raise InvalidInput("--write and --ends only apply to a record of `labkit effects`; name this record with --of.")
    if question.fault and (question.cheapest or not question.design):
        raise InvalidInput(
            "--fault tests the design that --design names, and --cheapest looks for other designs; leave --cheapest "
            "out and name the design, as in --design spark-marker --fault lag."
        )
    if (question.quietly or question.hold) and not question.cheapest:
        raise InvalidInput("--quietly and --hold only apply to --cheapest; add --cheapest, or leave them out.")
    if not question.design:
        if question.cheapest:
            raise InvalidInput(
                "--cheapest changes a design, but you have not named one; add --design, as in --design spark-append "
                "--cheapest."
            )
        return _table(as_json=as_json)
    order = Order(named(question.design), fault_of(question.design))
    if question.fault:
        order = order.under(question.fault)
    held = [word_of(Write, each.strip(), "write") for each in question.hold.split(",") if each]
    changes = order.cheapest(quietly=question.quietly, held=held) if question.cheapest else None
    if as_json:
        print(json.dumps(_plain(order, changes)))
    else:
        print("\n".join(_lines(order, changes)))
    return int(not order.is_exactly_once)


orders = with_arguments(orders, [parameter(each) for each in options_of(Question)])


def _of(record: Path, rows: Sequence[str], ends: str, *, as_json: bool) -> int:
    """Print which designs match the order of writes in a `record` of `labkit effects`; return the exit code.

    An effect is a recorded system call, such as `write store/all.txt`. `rows` are the values of --write, which say what
    kind of write an effect is. `ends` names the effect that ends each step (batch) of the pipeline; it may be empty.
    """
    from labkit.crashtest.blackbox.standing import read_names, standing, user_row

    meanings = [user_row(each) for each in rows]
    result = standing(read_names(record), meanings, ends or None)
    print(json.dumps(result.to_json()) if as_json else result.text())
    return 0 if result.orders else _UNKNOWN


def _table(*, as_json: bool) -> int:
    from labkit.sim.models.orders.state import Fault
    from labkit.sim.orders.named import NAMED
    from labkit.teach.orders import orders as table

    result = table()
    if as_json:
        squares = [
            {"block": block, "row": row, "column": column, **_plain(order, None)}
            for (block, row, column), order in result.squares.items()
            if order
        ]
        named = {
            name: each._asdict() | {"design": str(each.design), "fault": each.fault.value}
            for name, each in NAMED.items()
        }
        print(json.dumps({"squares": squares, "named": named}))
        return 0
    print(result)
    print("\nDesigns of known engines, for --design:")
    for name, built in NAMED.items():
        fault = "" if built.fault is Fault.NONE else f" (--fault {built.fault})"
        print(f"  {name}: {built.who}\n    {built.design}{fault}")
        if built.limit:
            print(f"    {built.limit}")
    return 0


def _lines(order: "Order", changes: "list[Change] | None") -> list[str]:
    lines = [str(order)]
    if order.is_ever_broken:
        lines.append(f"See it: labkit replay '{order.trace()}'")
    if changes is not None:
        lines += [f"{each}\n  {each.design}" for each in changes]
        if not changes:
            lines.append("No change of at most three edits makes it exactly-once.")
    return lines


def _plain(order: "Order", changes: "list[Change] | None") -> dict[str, Any]:
    plain: dict[str, Any] = order.to_json()
    if changes is not None:
        plain["cheapest"] = [{"design": str(each.design), "edits": each.edits, "seen": each.seen} for each in changes]
    return plain
