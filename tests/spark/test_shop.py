"""The job `shop` on real Spark, killed: mails go out twice under every sink, and an edited price shows or does not."""

import pytest

from labkit import lab
from labkit.core.verdict import Outcome as Truth
from labkit.runs.progress import silent

pytestmark = [pytest.mark.spark, pytest.mark.slow]

READY = "sink.after_pre_commit"
EDITED = {"job": "shop", "between": "edit-prices"}


def test_what_a_sink_keeps_once_is_done_outside_twice(tmp_path):
    cases = {
        "kept": {"at": READY, "job": "shop", "sink": "batch_marker", "store": "sqlite"},
        "noted": {"at": "engine.after_commit_log", "job": "shop", "sink": "two_phase", "order": "engine"},
        "edited": EDITED | {"at": READY, "sink": "batch_marker", "store": "sqlite"},
        "jumps": EDITED | {"at": READY, "sink": "idempotent", "store": "sqlite"},
        "copied": EDITED | {"at": "sink.mid_commit", "sink": "wal", "order": "decision"},
        "rewritten": EDITED | {"at": "sink.mid_commit", "sink": "wal", "order": "engine"},
    }
    runs = lab.crash_each(cases, folder=tmp_path / "runs", tell=silent)
    sent = {name: [mail[::2] for mail in run.mails()] for name, run in runs.items()}
    shown = {name: sorted(row.value for row in run.rows()) for name, run in runs.items()}
    said = {name: run.record.explanation.exists for name, run in runs.items()}
    guarantee = {name: run.verdict.guarantee for name, run in runs.items()}

    assert sent["kept"] == [(0, 10), (0, 10), (1, 20), (1, 20), (2, 30), (2, 30)]
    assert shown["kept"] == [10, 20, 30]
    # A batch that is noted does not run again, and neither does what it does outside.
    assert sent["noted"] == [(0, 10), (1, 20), (2, 30)]
    twice = [(0, 10), (0, 11), (1, 20), (1, 21), (2, 30), (2, 31)]
    assert sent["edited"] == sent["jumps"] == sent["rewritten"] == twice
    assert sent["copied"] == sent["noted"]
    assert shown["edited"] == [11, 21, 31]
    assert shown["jumps"] == [10, 11, 20, 21, 30, 31]
    assert shown["copied"] == [10, 20, 20, 30]
    assert shown["rewritten"] == [11, 20, 21, 31]
    assert said["edited"] is Truth.HOLDS
    assert said["jumps"] is said["rewritten"] is Truth.VIOLATED
    assert guarantee["kept"] == guarantee["edited"] == "exactly-once"
    assert guarantee["copied"] == guarantee["rewritten"] == "at-least-once"
    assert "drawn" in dict(runs["edited"].record.verdict_notes())
    assert runs["jumps"].crashes[0]["prices"] == {"pen": 11, "book": 21, "lamp": 31}
