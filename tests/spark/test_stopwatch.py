"""Seconds by phase: written where somebody asked for them, and nowhere else."""

from pathlib import Path

from labkit.spark import stopwatch


def test_a_stopwatch_writes_only_where_somebody_asked(tmp_path: Path):
    watch = stopwatch.Stopwatch(tmp_path, 0)
    with watch.phase("write"):
        pass
    watch.keep()
    assert list(tmp_path.iterdir()) == []
    stopwatch.ask(tmp_path)
    watch.seconds.update({"write": 0.5})
    watch.move(0.2, out_of="write", to="pre_commit")
    watch.keep()
    late = stopwatch.Stopwatch(tmp_path, 0)
    late.seconds["commit"] = 0.1
    late.keep()
    assert stopwatch.read(tmp_path) == {0: {"write": 0.3, "pre_commit": 0.2, "commit": 0.1}}
