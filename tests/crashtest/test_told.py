"""What a test says beside its verdict: where a run left all failure-free ones."""

import json
from collections.abc import Sequence
from pathlib import Path

from crashtest_reports import flat, report_of

from labkit.core.judge import Outcome
from labkit.crashtest.blackbox.story import in_their_rows
from labkit.crashtest.page import page
from labkit.crashtest.rows import Rows, Seen, Shape, generate
from labkit.crashtest.samples import Sample, judge_run
from labkit.crashtest.settings import settings
from labkit.crashtest.verdict import Coverage, Group, Result, summarise

ROWS = generate(1, per_batch=4)
ALL = [Seen(**row) for row in ROWS.batches[0].rows]


def sample(at: float, seen: Sequence[Seen], moment: str = "") -> Sample:
    return Sample(at, 1, tuple(seen), moment)


READ_TWICE = [sample(1010.0, ALL, "crash 1"), sample(1030.0, [*ALL, *ALL[:1]], "end")]


def result(samples: Sequence[Sample]) -> Result:
    verdict, explanation = judge_run(samples, ROWS, Shape.ROWS, ROWS.expected())
    return Result("a", "A", Group.CRASH, verdict=verdict, explanation=explanation)


def test_a_row_that_is_there_twice_is_said_to_appear_a_second_time() -> None:
    found = result(READ_TWICE)
    assert found.explanation.because.endswith(
        "offset 0 ('k0/0' = 1), written by attempt 1 of batch 0, appears a second time"
    )


def test_a_run_without_a_flaw_has_nothing_to_explain() -> None:
    assert result([READ_TWICE[0], sample(1030.0, ALL, "end")]).verdict_notes() == []


def test_text_page_and_json_say_it(tmp_path: Path) -> None:
    found = result(READ_TWICE)
    file = tmp_path / "sink.py"
    file.write_text("def sink(df, batch):\n    pass\n")
    report = report_of(settings(f"{file}:sink"), summarise([found], Coverage(1, 0, 1, 1)))
    told = dict(found.verdict_notes())
    assert f" breaks {told['breaks']} " in flat(report)
    assert "appears a second time" in page(report)
    assert json.loads(json.dumps(report.to_json()))["weakest"]["explanation"]["failure_free_run"] == "violated"


def test_a_value_that_a_key_loses_is_wrong_until_there_is_one_again() -> None:
    rows = generate(2, per_batch=4)
    first, second = ([Seen(**row) for row in batch.rows] for batch in rows.batches)
    samples = [sample(1, first), sample(3, []), sample(7, second, "end")]
    assert judge_run(samples, rows, Shape.LAST, rows.expected())[1].exists is Outcome.HOLDS


def test_a_pipeline_is_told_in_its_own_rows() -> None:
    _, found = judge_run([sample(1, [*ALL, ALL[1]], "end")], ROWS, Shape.ROWS, ROWS.expected())
    said = in_their_rows(found, {n: {"a": n} for n in range(4)}).because
    assert said.endswith('{"a": 1} appears a second time')


def test_a_long_row_is_told_in_the_users_words_too() -> None:
    long = [Seen(row.id, f"{'a' * 60}{row.id}", row.amount) for row in ALL]
    rows = Rows([[{"id": row.id, "key": row.key, "amount": row.amount} for row in long]])
    _, found = judge_run([sample(1, [*long, long[1]], "end")], rows, Shape.ROWS, rows.expected())
    said = in_their_rows(found, {n: {"a": n} for n in range(4)}).because
    assert said.endswith('{"a": 1} appears a second time')
