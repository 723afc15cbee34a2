"""The job `totals` on five million words: words a second with every sink, and what each phase of a commit costs.

All runs share one driver with Spark's own settings, one after the other, round after round, after one run that only
warms up the driver. A run counts only if the table that the sink wrote is right.
"""

import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from bench import flink, servers
from bench.rows import Rows, by_key, median, ratio
from labkit.core.errors import JobFailed
from labkit.core.failpoints import Order
from labkit.core.strategies import Strategy, orders
from labkit.runs.conclude import release
from labkit.runs.conduct import Setup, conduct
from labkit.runs.prepare import prepare
from labkit.runs.progress import silent
from labkit.runs.run import Run
from labkit.runs.scenario import Scenario, plan
from labkit.runs.scenario.checks import stores_for
from labkit.spark import stopwatch
from labkit.spark.checkpoint import Checkpoint

WORDS, VOCABULARY, LINE, BATCHES, SEED = 5_000_000, 10_000, 10, 10, 1
AT_MOST = 10.0
"""The milliseconds per batch by which two_phase's pre-commit and commit may exceed append's write (not in a server)."""

AT_LEAST = 0.97
"""The share of batch_marker's words per second (one plain transaction) that two_phase must reach in a server."""

STORES = ("sqlite", "files", "postgres")
SERVERS = ("postgres",)


class Taken(NamedTuple):
    """One run: seconds from its first plan to its last commit, and for every batch the seconds of each phase."""

    seconds: float
    phases: Sequence[Mapping[str, float]]


def measure(rounds: int, words: int = WORDS, stores: Sequence[str] = STORES) -> Rows:
    """Return a row for every strategy, order and store, and one for PyFlink if it is installed."""
    with ExitStack() as until_then:
        base = Path(until_then.enter_context(tempfile.TemporaryDirectory(prefix="labkit-bench-")))
        if "postgres" in stores:
            until_then.enter_context(servers.postgres())
        expected = write_words(base / "words.txt", words)
        scenarios = {name(scenario): scenario for scenario in every(base / "words.txt", words, stores)}
        warm = prepare(next(iter(scenarios.values())), base / "warm")
        in_turn = [list(scenarios.items()), list(scenarios.items())[::-1]]
        plans = [(*plan_, round_) for round_ in range(rounds) for plan_ in in_turn[round_ % 2]]
        runs = [prepare(scenario, base / f"{round_}-{scenario.name}") for _, scenario, round_ in plans]
        for run in runs:
            stopwatch.ask(Checkpoint(run.folder.checkpoint).log)
        conduct([warm, *runs], base / "scratch", silent, setup=Setup(active=1))
        taken: dict[str, list[Taken]] = {label: [] for label in scenarios}
        for (label, _, _), run in zip(plans, runs, strict=True):
            taken[label].append(read(run, expected))
            with closing(run.open_store()) as store:
                release(run, store)
        rows = table_of(taken, words)
        python = flink.interpreter()
        if python is not None and "files" in stores:
            times = [flink.seconds(python, base / "words.txt", len(os.sched_getaffinity(0))) for _ in range(rounds)]
            yardstick = [run.seconds for run in taken["append on files"]]
            shown = {"words/s": round(words / median(times, 6)), "time vs append": ratio(times, yardstick)}
            rows.append({"totals": "PyFlink, written nowhere", **shown})
    return rows


def write_words(path: Path, words: int) -> Counter[str]:
    """Write seeded random words by Zipf's law, ten a line; return how often each word was written."""
    choose, written = random.Random(SEED), Counter[str]()
    vocabulary = [f"w{number}" for number in range(VOCABULARY)]
    bounds = list(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, words, 1000):
            some = choose.choices(vocabulary, cum_weights=bounds, k=min(1000, words - start))
            written.update(some)
            file.writelines(" ".join(some[at : at + LINE]) + "\n" for at in range(0, len(some), LINE))
    return written


def every(path: Path, words: int, stores: Sequence[str] = STORES) -> Iterator[Scenario]:
    """Yield a scenario for each strategy, in each of its orders, on each store that can carry it."""
    lines = -(-words // LINE)
    for store in stores:
        for strategy in Strategy:
            for order in orders(strategy) if store in stores_for(strategy) else ():
                yield plan(
                    job="totals",
                    input=path,
                    sink=strategy,
                    store=store,
                    order=None if order is Order.NONE else order,
                    records_per_batch=-(-lines // BATCHES),
                )


def name(scenario: Scenario) -> str:
    """Return a scenario's label: strategy, order if there is a choice, and store."""
    order = "" if scenario.order is Order.NONE else f" ({scenario.order})"
    return f"{scenario.strategy}{order} on {scenario.store}"


def read(run: Run, expected: Mapping[str, int]) -> Taken:
    """Return the times of an ended run. Raises the run's error, or `JobFailed` if its table is wrong."""
    if run.error is not None:
        raise run.error
    with closing(run.open_store()) as store:
        results = {row.key: row.value for row in store.history()}
    if results != expected:
        raise JobFailed(f"{name(run.scenario)} wrote a wrong table, so its times are worthless.")
    checkpoint = run.folder.checkpoint
    last = max(Checkpoint(checkpoint).commit_log())
    ended = (checkpoint / "commits" / str(last)).stat().st_ctime
    return Taken(
        ended - (checkpoint / "offsets" / "0").stat().st_ctime,
        list(stopwatch.read(Checkpoint(checkpoint).log).values()),
    )


def table_of(taken: Mapping[str, Sequence[Taken]], words: int) -> Rows:
    """Return rows of medians over all batches of all rounds.

    The cost of a commit is the time of pre-commit and commit, minus the time in which the sink `append` writes.
    """
    rows: Rows = [_row(label, runs, taken, words) for label, runs in taken.items()]
    rows.sort(key=lambda row: row["totals"].split(" on ")[1], reverse=True)
    append = {store: row for store in STORES if (row := by_key(rows, "totals").get(f"append on {store}"))}
    for row in rows:
        store = row["totals"].split(" on ")[1]
        more = round(row["pre-commit ms"] + row["commit ms"] - append[store]["write ms"], 1)
        row["pre-commit + commit - append's write, ms"] = more
        row["whole sink - append's, ms"] = round(row["sink ms"] - append[store]["sink ms"], 1)
        if row["totals"].startswith("two_phase") and store not in SERVERS:
            row[f"at most {AT_MOST:g} ms more"] = more <= AT_MOST
        if row["totals"].startswith("two_phase") and store in SERVERS:
            # Of the whole job, compared with one plain transaction for each batch.
            plain = [run.seconds for run in taken[f"batch_marker on {store}"]]
            speed = ratio(plain, [run.seconds for run in taken[row["totals"]]], 3)
            row |= {"speed of batch_marker's": speed, f"at least {AT_LEAST:g}": speed >= AT_LEAST}
    return rows


def _row(label: str, runs: Sequence[Taken], taken: Mapping[str, Sequence[Taken]], words: int) -> dict[str, object]:
    batches = [phases for run in runs for phases in run.phases]
    append = taken[f"append on {label.split(' on ')[1]}"]
    shown = {"write": "write", "pre-commit": "pre_commit", "commit": "commit"}
    times = {f"{title} ms": 1000 * _median_of(batches, [phase]) for title, phase in shown.items()}
    return {
        "totals": label,
        "words/s": round(words / median([run.seconds for run in runs], 6)),
        "time vs append": ratio([run.seconds for run in runs], [run.seconds for run in append]),
        **{title: round(value, 1) for title, value in times.items()},
        "sink ms": round(1000 * _median_of(batches, list(shown.values())), 1),
    }


def _median_of(batches: Sequence[Mapping[str, float]], phases: Sequence[str]) -> float:
    return median([sum(batch.get(phase, 0.0) for phase in phases) for batch in batches], 6)
