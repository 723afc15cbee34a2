"""Records SQL that the user's code executes through psycopg, with its plain classes and with those for asyncio.

A statement outside of a transaction commits by itself, which only the connection's state afterwards shows. The module
gets psycopg as an argument, and opens no connection.
"""

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from labkit.crashtest.instrument.effects import Kind
from labkit.crashtest.instrument.recorder import recorder
from labkit.crashtest.instrument.sql import ended, kind_of, short

METHODS = {
    "commit": Kind.COMMIT,
    "rollback": Kind.ROLLBACK,
    "tpc_prepare": Kind.PREPARE,
    "tpc_commit": Kind.COMMIT,
    "tpc_rollback": Kind.ROLLBACK,
}
"""The methods of a connection that are recorded, each with the kind of its effect."""


class About(NamedTuple):
    """The effect that a call is about to have, as the arguments for `Recorder.effect`."""

    kind: Kind
    target: str
    decide: Callable[[], Kind] | None = None


Tells = Callable[..., About | None]
"""A function that returns the effect of a call, given the call's arguments, or None if the call changes nothing."""


def instrument_psycopg(module: ModuleType) -> None:
    """Make the methods of psycopg's connections, cursors, transaction blocks and copies record their effects."""
    if hasattr(module.Connection.commit, "recorded"):
        return
    writes = module.pq.ExecStatus.COPY_IN
    for kind in ("", "Async"):
        connection, cursor = (getattr(module, f"{kind}{name}") for name in ("Connection", "Cursor"))
        for name in ("execute", "executemany"):
            _wrap(cursor, name, _of_statement)
        for name, effect in METHODS.items():
            _wrap(connection, name, functools.partial(_of_method, effect))
        leave = "__aexit__" if kind else "__exit__"
        _wrap(getattr(module, f"{kind}Transaction"), leave, _of_block)
        copy = functools.partial(_of_copy, writes)
        _wrap(getattr(module, f"{kind}Copy"), leave, copy)


def _wrap(owner: Any, name: str, tells: Tells) -> None:
    plain = getattr(owner, name)
    around = _awaited if inspect.iscoroutinefunction(plain) else _called
    recorded = around(plain, tells)
    recorded.recorded = True  # type: ignore[attr-defined]  # a mark on a function
    setattr(owner, name, recorded)


def _called(plain: Callable[..., Any], tells: Tells) -> Callable[..., Any]:
    @functools.wraps(plain)
    def recorded(self: Any, *arguments: Any, **named: Any) -> Any:
        about = tells(self, *arguments, **named)
        if about is None:
            return plain(self, *arguments, **named)
        with recorder.effect(*about):
            return plain(self, *arguments, **named)

    return recorded


def _awaited(plain: Callable[..., Any], tells: Tells) -> Callable[..., Any]:
    """Return a version of a coroutine function that records an effect, which lasts until the coroutine has been
    awaited.
    """

    @functools.wraps(plain)
    async def recorded(self: Any, *arguments: Any, **named: Any) -> Any:
        about = tells(self, *arguments, **named)
        if about is None:
            return await plain(self, *arguments, **named)
        with recorder.effect(*about):
            return await plain(self, *arguments, **named)

    return recorded


def _of_statement(cursor: Any, query: Any, *_rest: Any, **_named: Any) -> About | None:
    sql = query if isinstance(query, str) else str(query)
    kind = kind_of(sql)
    if kind is None:
        return None

    def decide() -> Kind:
        return ended(kind) or (Kind.COMMIT if _idle(cursor.connection) else kind)

    return About(kind, short(sql), decide)


def _of_method(kind: Kind, connection: Any, *arguments: Any) -> About | None:
    # Without an open transaction nothing ends. With a name (`tpc_commit`) it is another
    # transaction than the connection's.
    if not arguments and _idle(connection):
        return None
    return About(kind, str(arguments[0]) if arguments else "transaction")


def _of_block(block: Any, kind: Any, _error: Any, _trace: Any) -> About:
    """Return the effect of leaving a block `with connection.transaction()`.

    For the outermost block it is a commit, or a rollback if the block is undone; for an inner block it is a statement.
    """

    def decide() -> Kind:
        if not _idle(block.connection):
            return Kind.STATEMENT
        undone = kind is not None or block.force_rollback
        return Kind.ROLLBACK if undone else Kind.COMMIT

    return About(Kind.STATEMENT, "transaction", decide)


def _of_copy(writes: int, copy: Any, _kind: Any, _error: Any, _trace: Any) -> About | None:
    """Return the effect of leaving `with cursor.copy(...)`, after which the server has all rows.

    Return None unless the copy has the status `writes`, which means that it sends rows to the server.
    """
    result = copy.cursor.pgresult
    if result is None or result.status != writes:
        return None

    def decide() -> Kind:
        return Kind.COMMIT if _idle(copy.connection) else Kind.STATEMENT

    return About(Kind.STATEMENT, "COPY", decide)


def _idle(connection: Any) -> bool:
    return bool(connection.info.transaction_status.name == "IDLE")
