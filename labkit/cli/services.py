"""Defines `labkit services`, which starts, examines and stops labkit's own servers, and examines a user's."""

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labkit.cli.common import Json
from labkit.core.errors import InvalidInput, ServiceUnavailable
from labkit.core.words import nearest
from labkit.host.servers import SERVICES, Service, Status, service

if TYPE_CHECKING:
    from labkit.stores.kafka.transaction import TransactionDescription

VERBS = ("up", "status", "down")
READY = ("up", "yours")


def services(
    verb: Annotated[str, typer.Argument(help="up, status or down.")],
    name: Annotated[str | None, typer.Argument(help="postgres or kafka; default: both.")] = None,
    as_json: Json = False,
) -> int:
    """Start (up), examine (status) or stop (down) the lab's own servers, whose files are in the user's cache folder.

    If LABKIT_POSTGRES or LABKIT_KAFKA names a server of your own, labkit uses that server, and starts and deletes
    nothing. Exit 69 if a server does not answer after `up` or at `status`.
    """
    if verb not in VERBS:
        raise InvalidInput(f"services {verb}: there is no such action; {nearest(verb, list(VERBS))}")
    statuses, refusals = [], []
    for each in [name] if name else SERVICES:
        try:
            statuses.append(_ask(verb, service(each)))
        except ServiceUnavailable as error:
            # An error of one server must not hide the state of the others.
            refusals.append(error)
    if as_json:
        print(json.dumps({"services": [_plain(status) for status in statuses]}))
    else:
        for status in statuses:
            print(sentence(status), *map(waiting, _open(status)), sep="\n  ")
    if refusals:
        raise type(refusals[0])(" ".join(map(str, refusals)))
    missing = verb != "down" and any(status.state not in READY for status in statuses)
    return ServiceUnavailable.exit_code if missing else 0


def _ask(verb: str, one: Service) -> Status:
    status: Status = getattr(one, verb)()
    if verb == "up" and status.name == "postgres" and status.state == "up":
        from labkit.stores.postgres.store import sweep

        sweep()  # deletes data of runs whose folders are gone, in labkit's own server
    return status


def sentence(status: Status) -> str:
    """Return one sentence that says whether a server runs and where, or how to start it."""
    about = f"{status.name} {status.version}".strip()
    if status.state == "up":
        return f"{about} is up: {status.address} (process {status.pid}, folder {status.folder})"
    if status.state == "yours":
        return f"{about} is yours: {status.address}; labkit neither starts it nor deletes anything there"
    if status.state == "stale":
        up = f"labkit services up {status.name}"
        if status.pid:
            down = f"labkit services down {status.name}"
            return f"{about} is stale: process {status.pid} does not answer (folder {status.folder}); {down}, then {up}"
        return f"{about} is stale: its process is gone (folder {status.folder}); {up} starts it again"
    if status.folder is None:
        return f"{about} is down: yours at {status.address} does not answer"
    return f"{about} is down; labkit services up {status.name} starts it (folder {status.folder})"


def _plain(status: Status) -> dict[str, Any]:
    plain = status._asdict() | {"folder": status.folder and str(status.folder)}
    opened = [each._asdict() | {"producer": each.producer._asdict()} for each in _open(status)]
    return plain | ({"transactions": opened} if status.name == "kafka" else {})


def _open(status: Status) -> "list[TransactionDescription]":
    """Return the open transactions of a Kafka broker; empty for another server, or if the broker does not answer."""
    if status.name != "kafka" or status.state not in READY:
        return []
    from labkit.stores.kafka.transaction import open_transactions

    return open_transactions(status.address)


def waiting(transaction: "TransactionDescription") -> str:
    """Return a sentence about an open Kafka transaction, for which readers at read_committed have to wait."""
    age = (
        f"{max(time.time() - transaction.started, 0):.0f} s of {transaction.timeout:g} s"
        if transaction.started
        else transaction.stage
    )
    return (
        f"open: {transaction.name} ({transaction.stage}, {age}); readers at read_committed wait for all later records "
        "until its writer, the recovery of its query, or the timeout ends the transaction"
    )
