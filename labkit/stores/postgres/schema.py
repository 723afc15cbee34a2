"""The tables and statements of a PostgreSQL store, its names in the server, and its encoding of rows.

Every store has its own schema, so that many runs can share a database. The module sends no statement.
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
"""The statements that create the tables of a store.

| table             | content |
| `rows`, `totals`  | what a sink writes: rows, and values by key |
| `changes`         | every value that `totals` has had; a trigger writes it in the same transaction |
| `visible`         | the transactions, numbered in the order of visibility; other rows carry their number themselves |
| `committed`       | the handle of every committed transaction, written inside that transaction |
| `opened`          | the open transactions with their writers |
| `staged`          | copies of uncommitted rows, for connections that cannot read these rows; one array per column |

`at` is the server's time right before the commit, under the lock; for rows in a transaction, the time of their write.
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
"""Like `HISTORY`, with two times per row, in seconds since 1970: when it became visible, and when a transaction wrote
it (null without a transaction)."""
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
"""Finds out whether the schema records times; schemas of earlier versions do not."""
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

Unlike COPY, such a statement can be sent before the answer to an earlier one has arrived.
"""

FENCE = """
INSERT INTO epochs VALUES (%s, %s)
ON CONFLICT (query) DO UPDATE SET incarnation = excluded.incarnation WHERE epochs.incarnation <= excluded.incarnation
"""

ATOMIC = "atomic "
"""The prefix of the names in `opened` of transactions with a batch marker, which are never prepared."""

MARK = "labkit: "
"""The first word of the comment on every schema that the lab creates; the store's location follows it."""


def schema_of(location: Path) -> str:
    """Return the name of the schema for a store's location.

    A location that is a mere name, without folders, is also the schema's name. Any other location is hashed.
    """
    if location.parent == Path() and _NAME.fullmatch(location.name):
        return location.name
    return f"labkit_{hashlib.sha256(str(location.absolute()).encode()).hexdigest()[:16]}"


def lock_of(schema: str) -> int:
    """Return the key of the advisory lock that a process holds while it makes rows of the store visible."""
    # Advisory locks have 64-bit keys; two schemas with the same key only wait for each other.
    return int.from_bytes(hashlib.sha256(schema.encode()).digest()[:8], signed=True)


def prefix_of(schema: str) -> str:
    """Return the prefix for the names of a store's prepared transactions.

    It contains the store's schema, because PostgreSQL requires that these names are unique in the whole server.
    """
    return f"labkit:{schema}:"


def gid_of(schema: str, handle: Handle) -> str:
    """Return a prepared transaction's name in PostgreSQL. Raises `InvalidInput` if the name exceeds `GID_BYTES`."""
    gid = f"{prefix_of(schema)}{handle}"
    # A shortened name could equal that of another transaction, which would then be committed or aborted by mistake.
    if len(gid.encode()) > GID_BYTES:
        raise InvalidInput(
            f"{gid[:60]}...: PostgreSQL allows names of prepared transactions of at most {GID_BYTES} bytes; give the "
            "query a shorter name."
        )
    return gid


def handles_in(schema: str, gids: Iterable[str]) -> Iterator[Handle]:
    """Yield the handles of the prepared transactions in `gids` that belong to the store with this schema."""
    prefix = prefix_of(schema)
    for gid in gids:
        if gid.startswith(prefix):
            try:
                yield Handle.parse(gid.removeprefix(prefix))
            except InvalidInput:
                continue


def creation(schema: str, location: Path) -> sql.Composed:
    """Return the SQL statements that create a store's schema and tables. Run them in one transaction."""
    statements = "CREATE SCHEMA {}; COMMENT ON SCHEMA {} IS {}; SET LOCAL search_path = {};" + TABLES
    name = sql.Identifier(schema)
    return sql.SQL(statements).format(name, name, sql.Literal(f"{MARK}{location.absolute()}"), name)


def key_to_text(key: str) -> str:
    r"""Encode a key for PostgreSQL, whose texts cannot contain the NUL character.

    NUL becomes \0, and a backslash becomes \\.
    """
    return key.replace("\\", "\\\\").replace("\0", "\\0") if "\\" in key or "\0" in key else key


def key_from_text(text: str) -> str:
    """Decode a key that was encoded by `key_to_text`."""
    if "\\" not in text:
        return text
    return "\\".join(part.replace("\\0", "\0") for part in text.split("\\\\"))


def to_arrays(rows: Sequence[Observation]) -> list[str]:
    """Return one PostgreSQL array literal for each column of the rows: offset, key, value, batch and attempt."""
    keys = ",".join([f'"{key_to_text(row.key).translate(_QUOTES)}"' for row in rows])
    offset, value, batch, attempt = [",".join([str(row[column]) for row in rows]) for column in _NUMBERS]
    return [f"{{{column}}}" for column in (offset, keys, value, batch, attempt)]


_NUMBERS = [Observation._fields.index(name) for name in ("offset", "value", "batch", "incarnation")]
_QUOTES = str.maketrans({"\\": r"\\", '"': r"\""})
