"""Checks whether the test observed every write, by comparing the user's rows at each crash point of a healthy run.

If rows appeared, changed or disappeared between two neighbouring crash points, and no effect recorded between them
explains it, something writes unobserved and no crash was ever placed next to that write. The test must then claim no
guarantee.
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
"""Libraries whose writes the test does not record, each with a library for the same store whose writes it does."""

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
"""Other libraries and modules whose writes the test does not record."""

IN_JVM = " (the sink writes in the JVM, where the instruments see nothing; --eyes kernel sees it)"

FEW = 2
"""The maximum number of gaps that a sentence lists."""


class PointReading(NamedTuple):
    """The rows that the reader returned while the sink waited at one crash point."""

    point: str
    position: int
    """The length of the run's log in bytes when the sink began to wait; exactly the effects within it had happened."""
    seen: tuple[Seen, ...]
    at: Point | None = None
    """The crash point; None for the start and the end of the run."""


class Logged(NamedTuple):
    """An effect, and the position in bytes at which its line ends in the log."""

    end: int
    effect: Effect


class Gap(NamedTuple):
    """Two neighbouring crash points between which the readable rows changed without a recorded effect that
    explains it.
    """

    earlier: str
    later: str
    appeared: int
    gone: int
    edges: tuple[Point, ...] = ()
    """The two crash points, without the start and the end of the run."""

    def by_line(self) -> bool:
        """Return whether one of the crash points lies before a source line, so that one statement can be blamed for the
        gap.
        """
        return any(edge.kind is Kind.LINE for edge in self.edges)

    def __str__(self) -> str:
        changes = [
            f"{count} row(s) {word}"
            for count, word in ((self.appeared, "appeared"), (self.gone, "disappeared"))
            if count
        ]
        return f"{' and '.join(changes)} between [{self.earlier}] and [{self.later}]"


def read_logged(path: Path) -> list[Logged]:
    """Return the effects of a log with their positions; a line that is not complete is ignored."""
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
    """Return the gaps of a run: neighbouring crash points between which rows changed although no recorded effect can
    have changed them.
    """
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


def unseen_effects(gaps: Iterable[Gap]) -> list[Effect]:
    """Return an inferred write for each source line next to which rows changed."""
    lines = [gap.edges[0] for gap in gaps if gap.edges and gap.edges[0].kind is Kind.LINE]
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
    """Return whether a recorded effect between two positions of the log can have made rows appear or disappear.

    A producer may deliver a message at any time until a flush. A query listener may flush or commit after the next call
    has begun, and a reader may get the message a little later. So the message counts as arriving until that call is
    over.
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
    """Return whether a producer had no message left after this effect.

    A producer's commit is recognised by its empty target in the log.
    """
    return effect.kind is Kind.FLUSH or (effect.kind is Kind.COMMIT and not effect.target)


def doubts(
    readings: Sequence[PointReading], logged: Sequence[Logged], imported: Iterable[str] = (), *, in_jvm: bool = False
) -> list[str]:
    """Return the reasons why no guarantee can be claimed, each as a sentence; empty if the test observed every write.

    `imported` are the packages that the sink's file imports. `in_jvm` says whether the sink may run in the JVM.
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
            "; the job was killed before and after these lines, but never within one"
            if any(each.by_line() for each in unseen)
            else ""
        )
        reasons.append(
            f"something writes unseen: in the run without a crash {named}{more}, "
            f"and the test saw no effect there{remedy}{cut}"
        )
    elif not any(each.kind in DURABLE for each in effects):
        reasons.append(
            f"the test saw no durable effect of the sink, so it placed no crash inside the sink's calls{remedy}"
        )
    peers = {each.target: each.by() for each in effects if each.kind is Kind.NETWORK}
    reasons += [
        f"the sink sent bytes to {peer}{by}, and the test cannot see their effect "
        f"(--ignore {peer} if that is not part of the sink)"
        for peer, by in peers.items()
    ]
    reasons += _torn(effects)
    late = first_late(effects)
    if late is not None:
        reasons.append(
            f"the sink returned too early: {late.label()} happened after its call had returned, when the engine may "
            "have recorded the batch as finished"
        )
    return reasons


def _torn(effects: Iterable[Effect]) -> list[str]:
    """Return a sentence for each source line whose effect is several writes, between which the test placed no crash."""
    several = {(each.file, each.line, each.torn): each.label() for each in effects if each.torn}
    return [
        f"{label} is several writes, because {why}; the job was killed before and after them, but never between two "
        "of them (--eyes kernel also kills there)"
        for (_, _, why), label in several.items()
    ]


def first_late(effects: Iterable[Effect]) -> Effect | None:
    """Return the first effect that happened after its call had returned, or None.

    Effects of query listeners are left out, because they are late by design.
    """
    return next((each for each in effects if each.late and each.where != LISTENER), None)


def askable(effects: Iterable[Effect]) -> list[Effect]:
    """Return the effects at which the test asks the reader for its rows (`labkit.crashtest.instrument.asking`)."""
    return [
        each
        for each in effects
        if not each.late
        and (each.kind is not Kind.SEND or each.nth == 1)
        and (each.kind is not Kind.LINE or each.nth <= TIMES)
    ]


def _help(imported: Iterable[str]) -> str:
    """Return advice in brackets, chosen by the libraries that the sink's file imports; empty if there is none."""
    names = set(imported)
    better = [
        f"the test does not see writes of {name}; use {seen}" for name, seen in SEEN_INSTEAD.items() if name in names
    ]
    others = [f"the test does not see writes of {name}" for name in UNSEEN if name in names]
    if better or others:
        others.append("--eyes kernel also sees the system calls of other libraries and programs")
    remedies = "; ".join([*better, *others])
    return f" ({remedies})" if remedies else ""


def imports(file: Path) -> set[str]:
    """Return the packages that a Python file, and the modules next to it, import, without executing any of them."""
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
