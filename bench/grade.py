"""How fast submissions are graded: a notebook without Spark in a sandbox, and the same cells by plain papermill.

The two ways alternate after one warm-up run of each, and neither judges answers. The last row is for a class of 300,
graded on all cores, with judging, records and pages.
"""

import os
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.rows import Rows, median, ratio, spread
from labkit.cli.common import need_grader

AT_MOST = 1.2
AT_LEAST = 100
"""The least number of submissions per minute, on two idle cores."""
_BATCH = 300


def measure(rounds: int) -> Rows:
    """Return rows: seconds per submission for both ways, and submissions per minute. Raises `MissingExtra`."""
    need_grader("make bench ONLY=grade")
    from bench.sample_submissions import execute_plainly, specimen

    apart: list[float] = []
    bare: list[float] = []
    with tempfile.TemporaryDirectory(prefix="labkit-bench-") as folder, specimen(Path(folder)) as one:
        one.execute()
        execute_plainly(one.notebook)
        for _ in range(rounds):
            bare.append(execute_plainly(one.notebook))
            apart.append(one.execute())
    of_plain = ratio(apart, bare)
    return [
        {"grade": "plain papermill", "seconds": median(bare), "range": spread(bare)},
        {
            "grade": f"in a sandbox ({one.sandbox.level})", "seconds": median(apart), "range": spread(apart),
            "of plain": of_plain, "at most": AT_MOST, "held": of_plain <= AT_MOST,
        },
        _batch(),
    ]  # fmt: skip


def _batch() -> dict[str, Any]:
    """Return the row for a batch of submissions with right answers, graded on all cores.

    The time includes the start of the workers, judging, records and pages.
    """
    from bench.sample_submissions import hand_in
    from labkit.grading.batch import run
    from labkit.grading.course import load
    from labkit.grading.gradebook import write_book
    from labkit.grading.order import Order
    from labkit.grading.scoring import Policy

    with tempfile.TemporaryDirectory(prefix="labkit-bench-") as folder:
        given, out = Path(folder, "in"), Path(folder, "out")
        hand_in(given, _BATCH)
        begun, used = time.perf_counter(), _processor()
        done = run(Order([given], out, trust=True), lambda *_: None)
        write_book(out, load(None), Policy())
        rate = round(60 * _BATCH / (time.perf_counter() - begun), 1)
        each = round((_processor() - used) / _BATCH, 2)
    return {
        "grade": f"batch of {_BATCH} ({done.level})", "a minute": rate, "at least": AT_LEAST, "held": rate >= AT_LEAST,
        "processor s each": each,
    }  # fmt: skip


def _processor() -> float:
    """Return the processor seconds of this process and its ended children.

    The Jupyter kernels in sandboxes are not counted, because Linux kills what is left in a sandbox and no process waits
    for it. `perf stat` counts them as well.
    """
    return sum(os.times()[:4])
