"""Splits a script of SQL into parts that each last as a whole, so that each part is recorded as one effect.

`executescript` opens no transaction, so a statement outside of `BEGIN ... COMMIT` commits by itself. All parts together
are the script, character by character, and only the last part may leave a transaction open. So executing one part after
another does the same as executing the whole script.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

FIRST = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(\w+)(?:\s+(\w+))?", re.DOTALL)
"""A pattern for the first two words of a statement, after comments."""
_EMPTY = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*;?\s*", re.DOTALL)
_BACK_TO = re.compile(r"\bto\b", re.IGNORECASE)

ENDS = ("commit", "end", "rollback", "release")


class Part(NamedTuple):
    """A part of a script: one statement, or a transaction from its BEGIN to its end."""

    text: str
    statements: tuple[str, ...]
    """The statements of the part, without empty ones."""
    is_whole: bool = True
    """Whether the part becomes durable as a whole; False if several of its statements may commit by themselves."""


def first_words(sql: str) -> tuple[str, str]:
    """Return the first two words of a statement in lower case; a word that does not exist is empty."""
    words = FIRST.match(sql)
    first, second = words.groups() if words else ("", "")
    return (first or "").lower(), (second or "").lower()


def parts(script: str, is_complete: Callable[[str], bool]) -> list[Part]:
    """Split an SQL script into parts that become durable as a whole; `is_complete` is `sqlite3.complete_statement`.

    From a SAVEPOINT outside of a transaction, or a statement without a first word, the rest of the script is one part.
    """
    found: list[Part] = []
    pending: list[str] = []
    statements = _statements(script, is_complete)
    for index, statement in enumerate(statements):
        first, _ = first_words(statement)
        unclear = not first and not _EMPTY.fullmatch(statement)
        if unclear or (first == "savepoint" and not pending):
            return [*found, _rest([*pending, *statements[index:]])]
        if pending or first == "begin":
            pending.append(statement)
            if _closes(statement):
                found.append(_part(pending))
                pending = []
        else:
            found.append(_part([statement]))
    return [*found, _part(pending)] if pending else found


def _part(statements: list[str]) -> Part:
    return Part("".join(statements), tuple(each for each in statements if not _EMPTY.fullmatch(each)))


def _rest(statements: list[str]) -> Part:
    """Return the rest of a script as one part, which lasts as a whole if only its last statement can end a
    transaction.
    """
    part = _part(statements)
    ends = [first_words(each)[0] in ENDS for each in part.statements]
    is_savepoint = first_words(part.statements[0])[0] == "savepoint"
    return part._replace(is_whole=is_savepoint and not any(ends[:-1]))


def _closes(statement: str) -> bool:
    """Return whether a statement ends the transaction that a BEGIN has opened."""
    first, _ = first_words(statement)
    return first in {"commit", "end"} or (first == "rollback" and not _BACK_TO.search(statement))


def _statements(script: str, is_complete: Callable[[str], bool]) -> list[str]:
    """Return the statements of a script, each with its semicolon and the comments before it."""
    found: list[str] = []
    start = 0
    for end in (match.end() for match in re.finditer(";", script)):
        if is_complete(script[start:end]):
            found.append(script[start:end])
            start = end
    return [*found, script[start:]] if script[start:].strip() else found
