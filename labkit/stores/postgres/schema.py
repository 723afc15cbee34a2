"""The tables of a PostgreSQL store, its names in the server, and its encoding of rows.

Every store has its own schema, so that many runs share a database. The module builds statements and never sends one.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path

from psycopg import sql

from labkit.core.errors import InvalidInput
from labkit.core.records import Observation
from labkit.stores.contract import Handle

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,47}")

GID_BYTES = 199
"""The longest name of a prepared transaction in bytes (GIDSIZE in PostgreSQL's access/xact.h, minus its terminator)."""

TABLES = files("labkit.stores.postgres").joinpath("tables.sql").read_text(encoding="utf-8")
"""A sink writes `rows` and `totals`; a trigger logs every total in `changes`, within the same transaction.

`visible` numbers the transactions in the order in which they became visible; rows that were visible at once
carry their number themselves. `committed` holds the handle of every committed transaction, written inside that
transaction. `opened` and `staged` record which open and prepared transactions exist and what they hide, because
nobody can look into them. `staged` stores rows column by column, as the arrays in which they were sent; readers
unpack them. `at` is the server's clock: for rows and changes that are visible at once and for `visible`, it is
read under the lock right before the commit; for rows inside a transaction, it is the time of writing.
"""

HISTORY = """
SELECT "offset", key, value, batch, attempt FROM (
  SELECT coalesce(rows.number, visible.number) AS number, rows.id, "offset", key, value, batch, attempt
  FROM rows LEFT JOIN visible USING (handle)
  UNION ALL SELECT number, 0, "offset", key, value, batch, attempt FROM changes
) AS seen ORDER BY number NULLS LAST, id
"""
CLOCKED = """
SELECT "offset", key, value, batch, attempt, extract(epoch FROM shown), extract(epoch FROM written) FROM (
  SELECT coalesce(rows.number, visible.number) AS number, rows.id, "offset", key, value, batch, attempt,
    CASE WHEN handle IS NULL THEN rows.at ELSE visible.at END AS shown,
    CASE WHEN handle IS NULL THEN NULL ELSE rows.at END AS written
  FROM rows LEFT JOIN visible USING (handle)
  UNION ALL SELECT number, 0, "offset", key, value, batch, attempt, at, NULL FROM changes
) AS seen ORDER BY number NULLS LAST, id
"""
"""The query for the history with two times per row: when it became visible, and when a transaction wrote it."""
WAITING = """
SELECT hidden."offset", hidden.key, hidden.value, hidden.batch, hidden.attempt, extract(epoch FROM at)
FROM staged JOIN pg_prepared_xacts ON gid = %s || handle, unnest(
  offsets::bigint[], keys::text[], given::bigint[], batches::bigint[], attempts::bigint[]
) WITH ORDINALITY AS hidden ("offset", key, value, batch, attempt, nth)
WHERE handle NOT IN (SELECT handle FROM committed) AND database = current_database() ORDER BY id, nth
"""
HAS_MOMENTS = """
SELECT FROM information_schema.columns WHERE table_schema = %s AND table_name = 'visible' AND column_name = 'at'
"""
"""The query that finds out whether the schema records times; schemas of earlier versions do not."""
HIDDEN = """
SELECT hidden."offset", hidden.key, hidden.value, hidden.batch, hidden.attempt FROM staged, unnest(
  offsets::bigint[], keys::text[], given::bigint[], batches::bigint[], attempts::bigint[]
) WITH ORDINALITY AS hidden ("offset", key, value, batch, attempt, nth)
WHERE handle NOT IN (SELECT handle FROM committed) ORDER BY id, nth
"""
NOTE = "INSERT INTO staged (handle, offsets, keys, given, batches, attempts) VALUES (%s, %s, %s, %s, %s, %s)"
_ROWS = "SELECT * FROM unnest(%s::bigint[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[])"
INSERT = 'INSERT INTO rows (handle, "offset", key, value, batch, attempt) ' + _ROWS.replace("*", "%s, *", 1)
APPEND = 'INSERT INTO rows (number, "offset", key, value, batch, attempt) ' + _ROWS.replace(
    "*", "(SELECT nextval('visible_number')), *", 1
)
UPSERT = (
    'INSERT INTO totals ("offset", key, value, batch, attempt) '
    + _ROWS
    + """
ON CONFLICT (key) DO UPDATE
SET "offset" = excluded."offset", value = excluded.value, batch = excluded.batch, attempt = excluded.attempt
"""
)
"""`INSERT`, `APPEND` and `UPSERT` send many rows in one statement.

Unlike COPY, it need not wait for an earlier answer.
"""

FENCE = """
INSERT INTO epochs VALUES (%s, %s)
ON CONFLICT (query) DO UPDATE SET incarnation = excluded.incarnation WHERE epochs.incarnation <= excluded.incarnation
"""

ATOMIC = "atomic "
"""The prefix in the name of a single writer's transaction; no name of a prepared transaction (gid) begins with it."""

MARK = "labkit: "
"""The prefix of the comment on every schema of the lab; the store's location follows it."""


def schema_of(location: Path) -> str:
    """Return a store's schema: a bare name is the schema itself, any other path becomes a name with its digest."""
    if location.parent == Path() and _NAME.fullmatch(location.name):
        return location.name
    return f"labkit_{hashlib.sha256(str(location.absolute()).encode()).hexdigest()[:16]}"


def lock_of(schema: str) -> int:
    """Return the key of the advisory lock under which a store's transactions become visible, one at a time."""
    # Advisory locks have 64-bit keys; two schemas with the same key only wait for each other.
    return int.from_bytes(hashlib.sha256(schema.encode()).digest()[:8], signed=True)


def prefix_of(schema: str) -> str:
    """Return the prefix of a store's names of prepared transactions (gids), which are unique in a whole server."""
    return f"labkit:{schema}:"


def gid_of(schema: str, handle: Handle) -> str:
    """Return the full name (gid) of a prepared transaction. Raises `InvalidInput` if it is too long.

    It is never shortened, so that no two handles share one.
    """
    gid = f"{prefix_of(schema)}{handle}"
    # A shortened name could equal that of another transaction, which would then be committed or aborted by mistake.
    if len(gid.encode()) > GID_BYTES:
        raise InvalidInput(
            f"{gid[:60]}...: PostgreSQL allows names of transactions of at most {GID_BYTES} bytes; give the "
            "query a shorter name."
        )
    return gid


def handles_in(schema: str, gids: Iterable[str]) -> Iterator[Handle]:
    """Yield the handles of those gids that belong to this store, and skip all others."""
    prefix = prefix_of(schema)
    for gid in gids:
        if gid.startswith(prefix):
            try:
                yield Handle.parse(gid.removeprefix(prefix))
            except InvalidInput:
                continue


def creation(schema: str, location: Path) -> sql.Composed:
    """Return the statements that create a store's schema inside a transaction."""
    statements = "CREATE SCHEMA {}; COMMENT ON SCHEMA {} IS {}; SET LOCAL search_path = {};" + TABLES
    name = sql.Identifier(schema)
    return sql.SQL(statements).format(name, name, sql.Literal(f"{MARK}{location.absolute()}"), name)


# PostgreSQL's text cannot contain the character 0, so it is written as \0, and a backslash as two.


def key_to_text(key: str) -> str:
    """Encode a key as text that PostgreSQL can store, which excludes the character 0; `key_from_text` decodes it."""
    return key.replace("\\", "\\\\").replace("\0", "\\0") if "\\" in key or "\0" in key else key


def key_from_text(text: str) -> str:
    """Decode a key that `key_to_text` encoded."""
    if "\\" not in text:
        return text
    return "\\".join(part.replace("\\0", "\0") for part in text.split("\\\\"))


def to_arrays(rows: Sequence[Observation]) -> list[str]:
    """Return the columns of the rows as PostgreSQL array literals."""
    keys = ",".join([f'"{key_to_text(row.key).translate(_QUOTES)}"' for row in rows])
    offset, value, batch, attempt = [",".join([str(row[column]) for row in rows]) for column in _NUMBERS]
    return [f"{{{column}}}" for column in (offset, keys, value, batch, attempt)]


_NUMBERS = [Observation._fields.index(name) for name in ("offset", "value", "batch", "incarnation")]
_QUOTES = str.maketrans({"\\": r"\\", '"': r"\""})
