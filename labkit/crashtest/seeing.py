"""Checks whether the test saw all that changes rows, by the rows of the user's reader at each point of the healthy run.

Where rows became readable, changed or went between two neighbouring points, and no effect that was recorded between
them could have done that, something writes unseen, and no crash was ever put beside it. Nothing may then be said of the
guarantee. This module reads what was recorded.
"""

import ast
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from labkit.crashtest.instrument.calls import TIMES
from labkit.crashtest.instrument.effects import DURABLE, LISTENER, SHOWING, Effect, Kind, Point
from labkit.crashtest.rows import Seen

SEEN_INSTEAD = {
    "psycopg2": "psycopg (3)",
    "asyncpg": "psycopg (3), without async",
    "aiosqlite": "sqlite3",
    "apsw": "sqlite3",
    "confluent_kafka": "kafka-python",
    "aiokafka": "kafka-python",
}
"""Libraries that are not seen, each with a library for the same store that is seen."""

UNSEEN = (
    "duckdb",
    "redis",
    "requests",
    "httpx",
    "urllib3",
    "boto3",
    "deltalake",
    "pyarrow",
    "pyiceberg",
    "pymongo",
    "pymysql",
    "clickhouse_connect",
    "cassandra",
    "ctypes",
    "multiprocessing",
    "subprocess",
)
"""Other libraries whose writes the test does not see."""

IN_JVM = " (the sink writes in the JVM, where nothing is seen; --eyes kernel sees it)"

FEW = 2
"""How many places a sentence names."""


class PointReading(NamedTuple):
    """The rows that the reader returned while the sink waited at one point."""

    point: str
    position: int
    """Bytes of the run's log when the sink began to wait: the effects in them have happened, and no others."""
    seen: tuple[Seen, ...]
    at: Point | None = None
    """The point itself; None: the start or the end of the run."""


class Logged(NamedTuple):
    """An effect, and where its line of the log ends, in bytes."""

    end: int
    effect: Effect


class Gap(NamedTuple):
    """Two neighbouring points between which the readable rows changed, and no recorded effect explains it."""

    earlier: str
    later: str
    appeared: int
    gone: int
    edges: tuple[Point, ...] = ()
    """The two points, as far as they are places of the sink."""

    def by_line(self) -> bool:
        """Whether the gap belongs to one statement, since one of its points lies before a line."""
        return any(edge.kind is Kind.LINE for edge in self.edges)

    def __str__(self) -> str:
        changes = [
            f"{count} row(s) {word}" for count, word in ((self.appeared, "appeared"), (self.gone, "went")) if count
        ]
        return f"{' and '.join(changes)} between [{self.earlier}] and [{self.later}]"


def read_logged(path: Path) -> list[Logged]:
    """The effects of a log with their positions, without an unfinished line."""
    logged: list[Logged] = []
    end = 0
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else []:
        end += len(line)
        try:
            logged.append(Logged(end, Effect.from_json(json.loads(line))))
        except (ValueError, KeyError):
            continue
    return logged


def gaps(readings: Sequence[PointReading], logged: Sequence[Logged]) -> list[Gap]:
    """Where the rows changed although no effect that was recorded there could have changed them."""
    unexplained = []
    for earlier, later in pairwise(readings):
        before, after = Counter(earlier.seen), Counter(later.seen)
        if before == after or _explained(earlier.position, later.position, logged):
            continue
        appeared, gone = after - before, before - after
        edges = tuple(each.at for each in (earlier, later) if each.at is not None)
        gap = Gap(earlier.point, later.point, appeared.total(), gone.total(), edges)
        unexplained.append(gap)
    return unexplained


def unseen_effects(found: Iterable[Gap]) -> list[Effect]:
    """The unseen writes of the lines beside which rows changed, one for each line."""
    lines = [gap.edges[0] for gap in found if gap.edges and gap.edges[0].kind is Kind.LINE]
    return [
        Effect(
            point.batch,
            point.where,
            point.number,
            Kind.UNSEEN,
            "",
            point.line,
            point.nth,
            file=point.file,
            step=point.step,
        )
        for point in lines
    ]


def _explained(start: int, end: int, logged: Iterable[Logged]) -> bool:
    """Whether an effect between two places of the log shows rows, or takes them away.

    A message given to a producer may arrive at any time until a flush. After the flush or commit, which a listener may
    do when the next call has begun, a reader may see the message a little later: until that call is over.
    """
    arriving = delivered = False
    calls = 0
    for place, effect in logged:
        if place > end:
            break
        if place > start and effect.kind in SHOWING:
            return True
        if effect.kind is Kind.SEND:
            arriving, delivered, calls = True, False, 0
        elif _delivers(effect):
            arriving, delivered, calls = True, True, 0
        elif effect.kind is Kind.BEGIN and place <= start:
            calls += 1
            arriving = arriving and not (delivered and calls > 1)
    return arriving


def _delivers(effect: Effect) -> bool:
    """Whether a producer had no message left after this effect. The commit of a producer has no target."""
    return effect.kind is Kind.FLUSH or (effect.kind is Kind.COMMIT and not effect.target)


def doubts(
    readings: Sequence[PointReading], logged: Sequence[Logged], imported: Iterable[str] = (), *, in_jvm: bool = False
) -> list[str]:
    """Why nothing may be said of the guarantee, a sentence each; none if all that changes rows was seen.

    `in_jvm`: whether the sink may lie in the JVM.
    """
    reasons = []
    unseen = gaps(readings, logged)
    effects = [each.effect for each in logged]
    in_python = any(each.where == "call" for each in effects)
    remedy = IN_JVM if in_jvm and not in_python else _help(imported)
    if unseen:
        named = "; ".join(map(str, unseen[:FEW]))
        more = f"; and {len(unseen) - FEW} more" if len(unseen) > FEW else ""
        cut = (
            "; the job was killed before and behind these lines, and never within one"
            if any(each.by_line() for each in unseen)
            else ""
        )
        reasons.append(
            f"something writes unseen: without a crash {named}{more}, and no effect was seen there{remedy}{cut}"
        )
    elif not any(each.kind in DURABLE for each in effects):
        reasons.append(f"no durable effect of the sink was seen, so nothing inside of its calls was cut{remedy}")
    peers = {each.target: each.by() for each in effects if each.kind is Kind.NETWORK}
    reasons += [
        f"bytes were sent to {peer}{by}, and what became of them is not seen (--ignore {peer} if that is no part of "
        "the sink)"
        for peer, by in peers.items()
    ]
    late = first_late(effects)
    if late is not None:
        reasons.append(
            f"the sink returned too early: {late.said()} happened after its call had returned, when the engine may "
            "have recorded the batch as finished"
        )
    return reasons


def first_late(effects: Iterable[Effect]) -> Effect | None:
    """The first effect of a thread that outlived its call. A listener of the query acts late on purpose."""
    return next((each for each in effects if each.late and each.where != LISTENER), None)


def askable(effects: Iterable[Effect]) -> list[Effect]:
    """The effects at which the reader is asked (`labkit.crashtest.instrument.asking`)."""
    return [
        each
        for each in effects
        if not each.late
        and (each.kind is not Kind.SEND or each.nth == 1)
        and (each.kind is not Kind.LINE or each.nth <= TIMES)
    ]


def _help(imported: Iterable[str]) -> str:
    """The remedy, by the libraries that the file imports."""
    names = set(imported)
    better = [f"{name} is not seen, {seen} is" for name, seen in SEEN_INSTEAD.items() if name in names]
    others = [f"what {name} does is not seen" for name in UNSEEN if name in names]
    if better or others:
        others.append("--eyes kernel sees the system calls of other programs, too")
    remedies = "; ".join([*better, *others])
    return f" ({remedies})" if remedies else ""


def imports(file: Path) -> set[str]:
    """The packages that a file of Python imports, and those that the modules beside it import, by their text."""
    packages: set[str] = set()
    waiting, read = [file], set[Path]()
    while waiting:
        path = waiting.pop()
        if path in read or not path.is_file():
            continue
        read.add(path)
        for name in _imported(path):
            packages.add(name.partition(".")[0])
            inner = file.parent.joinpath(*name.split("."))
            waiting += [inner.with_suffix(".py"), inner / "__init__.py"]
    return packages


def _imported(file: Path) -> list[str]:
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return []
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [node.module] if node.module else []
            names += [alias.name for alias in node.names if node.level]
    return names
