"""What runs say together, why, by which lines; and the files that a build gets. A run without evidence is no pass."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from labkit.core.judge import Guarantee, Outcome, Verdict, judge
from labkit.core.records import History
from labkit.crashtest.claim import Goal, Strength, claim
from labkit.crashtest.diagnosis import diagnose
from labkit.crashtest.instrument.effects import Effect, Kind, Point, Side
from labkit.crashtest.points import points
from labkit.crashtest.report import NOT_SEEN, Report, weaker
from labkit.crashtest.rows import Rows, Seen, Shape, generate, named
from labkit.crashtest.samples import Sample, history
from labkit.crashtest.settings import Settings
from labkit.crashtest.sink_report import finished, sink_report
from labkit.crashtest.subject import Adapter, Subject
from labkit.crashtest.verdict import Coverage, Group, Result, Summary, summarise

ROWS = generate(2, per_batch=4)
A, B = ([Seen(**row) for row in batch.rows] for batch in ROWS.batches)
GOOD, TWICE, MISSING = [*A, *B], [*A, *A, *B], B


def judged(seen: Sequence[Seen], rows: Rows = ROWS) -> Verdict:
    due = rows.expected()
    seen_at_the_end = [Sample(0, 1, tuple(seen), "end")]
    return judge([named(each, Shape.ROWS) for each in due], history(seen_at_the_end, rows, Shape.ROWS, due))


def log(*kinds: Kind, where: str = "call") -> list[Effect]:
    begin = Effect(0, where, 0, Kind.BEGIN, "", 0)
    effects = [Effect(0, where, n, kind, f"t{n}", 10 + n) for n, kind in enumerate(kinds, start=1)]
    return [begin, *effects, Effect(0, where, len(kinds) + 1, Kind.RETURN, "", 0)]


def results(effects: Sequence[Effect], bad: Sequence[Seen], first: str, last: str) -> list[Result]:
    """A run for every point; from `first` to `last` a reader sees `bad` at the end."""
    found, inside = [], False
    for point in points(effects, [0]):
        inside = inside or point.id == first
        verdict = judged(bad if inside else GOOD)
        inside = inside and point.id != last
        found.append(Result(point.id, str(point), Group.CRASH, (point,), verdict, evidence=[{"point": point.id}]))
    return found


def summary(found: Sequence[Result]) -> Summary:
    proven = sum(not each.unknown for each in found)
    return summarise(found, Coverage(len(found), 0, len(found), proven, proven))


TWO = log(Kind.STATEMENT, Kind.COMMIT, Kind.STATEMENT, Kind.COMMIT)


@pytest.mark.parametrize(
    ("effects", "bad", "first", "last", "code", "said"),
    [
        (TWO, TWICE, "b0.call.2.after", "b0.call.4.before", "marker after the data", "effects 2..4 must be atomic"),
        (TWO, MISSING, "b0.call.2.after", "b0.call.4.before", "marker before the data", "commit of t2 by line 12"),
        (TWO, TWICE, "b0.call.4.after", "b0.call.returns", "replay not recognised", "commit of t4 by line 14"),
        (TWO, MISSING, "b0.engine.commits", "b0.engine.commits", "returned too early", "before its rows were safe"),
        (
            log(Kind.WRITE),
            TWICE,
            "b0.call.1.after",
            "b0.call.returns",
            "replay not recognised",
            "overwrite by batch id",
        ),
        (
            log(Kind.SEND, Kind.FLUSH),
            TWICE,
            "b0.call.2.after",
            "b0.call.returns",
            "replay not recognised",
            "log-then-commit",
        ),
        (
            log(Kind.COMMIT, where="task 0"),
            TWICE,
            "b0.task0.1.after",
            "b0.task0.returns",
            "parts commit separately",
            "stage and publish",
        ),
    ],
)
def test_the_diagnosis_names_the_lines_between_which_a_crash_does_harm(
    effects: list[Effect], bad: list[Seen], first: str, last: str, code: str, said: str
) -> None:
    found = diagnose(summary(results(effects, bad, first, last)), effects, Shape.ROWS)
    assert found is not None
    assert found.code == code
    assert said in f"{found.why} {found.recipe.name}"


def test_a_second_query_whose_rows_are_missing_has_a_key_that_outlives_the_first() -> None:
    lost = Result("fresh_checkpoint", "a second query", Group.IDENTITY, verdict=judged(MISSING))
    found = diagnose(summary([*results(TWO, GOOD, "", ""), lost]), TWO, Shape.ROWS)
    assert found is not None
    assert found.code == "key outlives the query"


@pytest.mark.parametrize(("readings", "code"), [([[*A, *B], B], "readable too early"), ([B, [*A, *B, *A]], "recovery")])
def test_what_only_a_crash_of_the_recovery_shows_is_said_so(readings: list[list[Seen]], code: str) -> None:
    first, second = points(TWO, [0])[-2], points(TWO, [0])[2]._replace(line=12)
    moments = [Sample(0, 2, tuple(readings[0]), "crash 1"), Sample(1, 2, tuple(readings[1]), "crash 2")]
    moments.append(Sample(2, 3, tuple([*A, *B] if code != "recovery" else readings[1]), "end"))
    due = [named(each, Shape.ROWS) for each in ROWS.expected()]
    verdict = judge(due, history(moments, ROWS, Shape.ROWS, ROWS.expected()))
    pair = Result("pair", "a pair", Group.PAIR, (first, second), verdict)
    found = diagnose(summary([*results(TWO, GOOD, "", ""), pair]), TWO, Shape.ROWS)
    assert found is not None
    assert found.code == code


def test_nothing_wrong_needs_no_diagnosis() -> None:
    said = summary(results(TWO, GOOD, "", ""))
    assert diagnose(said, TWO, Shape.ROWS) is None
    assert (said.guarantee, said.weakest) == (Guarantee.EXACTLY_ONCE, None)


def test_loss_and_duplicates_in_different_runs_leave_nothing() -> None:
    both = [*results(TWO, TWICE, "b0.call.2.after", "b0.call.2.after")]
    both[0] = Result("x", "x", Group.CRASH, verdict=judged(MISSING))
    assert summary(both).guarantee is Guarantee.NONE
    assert summary(both).weakest is both[0]


UNKNOWN = Result("b0.call.1.after", "never reached", Group.CRASH, unknown="the point was never reached")


def test_a_run_without_evidence_is_unknown_and_never_a_pass() -> None:
    said = summary([*results(TWO, GOOD, "", ""), UNKNOWN])
    assert said.guarantee is Guarantee.UNKNOWN
    assert said.axes["lost"] is Outcome.UNKNOWN
    assert claim(said).strength is Strength.UNKNOWN
    assert claim(said).reaches(Goal.AT_LEAST_ONCE) is claim(said).reaches(Goal.NOT_REFUTED) is None
    assert said.coverage.hit == said.coverage.planned - 1


def test_a_verdict_of_a_run_in_which_nobody_looked_is_never_a_pass() -> None:
    right = Result("a", "a", Group.HEALTHY, verdict=judged(GOOD))
    due = [named(each, Shape.ROWS) for each in ROWS.expected()]
    blind = Result("b", "b", Group.CRASH, verdict=judge(due, History([])))
    assert (blind.guarantee, blind.unknown) == (Guarantee.UNKNOWN, "")
    found = summarise([right, blind], Coverage(2, 2, 2, 0))
    assert found.guarantee == Guarantee.UNKNOWN
    assert Outcome.HOLDS not in found.axes.values()


def test_what_was_refuted_stays_so_although_another_run_is_unknown() -> None:
    said = claim(summary([*results(TWO, TWICE, "b0.call.4.after", "b0.call.returns"), UNKNOWN]))
    assert said.reaches(Goal.EXACTLY_ONCE) is said.reaches(Goal.NOT_REFUTED) is False
    assert said.reaches(Goal.AT_LEAST_ONCE) is None
    assert (said.strength, said.at_best) == (Strength.REFUTED, Guarantee.AT_LEAST_ONCE)
    assert str(said) == "not exactly-once, at best at-least-once"


def test_lost_rows_promise_nothing_of_duplicates_that_were_not_looked_for() -> None:
    lost = Result("x", "x", Group.CRASH, verdict=judged(MISSING))
    assert summarise([lost], Coverage(1, 0, 1, 1)).guarantee is Guarantee.AT_MOST_ONCE
    both = summarise([lost, UNKNOWN], Coverage(2, 0, 2, 1))
    assert both.guarantee is Guarantee.UNKNOWN
    assert both.axes["lost"] is Outcome.VIOLATED
    assert claim(both).reaches(Goal.EXACTLY_ONCE) is False


def test_a_condition_is_no_part_of_the_guarantee() -> None:
    condition = Result("other_rows", "other rows", Group.CONDITION, verdict=judged(MISSING))
    said = summary([*results(TWO, GOOD, "", ""), condition])
    assert claim(said).strength is Strength.COMPLETE
    assert said.conditions == {"other_rows": Guarantee.AT_MOST_ONCE}
    assert weaker(condition, Guarantee.EXACTLY_ONCE) == ""


def test_a_job_that_is_stuck_is_not_what_was_expected() -> None:
    stuck = Result("x", "x", Group.CRASH, verdict=judged(GOOD), stuck="IntegrityError")
    said = summary([stuck])
    assert said.guarantee is Guarantee.EXACTLY_ONCE
    assert "fails again and again (IntegrityError)" in stuck.because


def test_a_claim_is_qualified_unless_everything_was_tried() -> None:
    right = results(TWO, GOOD, "", "")
    whole = summary(right).coverage
    assert str(claim(summary(right))) == "exactly-once"
    fewer = [
        (replace(whole, found=99), f"not refuted ({len(right)} of 99 points)"),
        (replace(whole, directed=3, directed_tried=2), f"{len(right)} points, 2 of 3 directed pairs)"),
        (replace(whole, planned=99), f"not refuted ({len(right)} of {len(right)} points)"),
        (replace(whole, selected=True), "not refuted"),
    ]
    for coverage, word in fewer:
        sampled = claim(summarise(right, coverage))
        assert word in str(sampled)
        assert sampled.guarantee is Guarantee.UNKNOWN
        assert sampled.reaches(Goal.NOT_REFUTED) is True
        assert sampled.reaches(Goal.EXACTLY_ONCE) is sampled.reaches(Goal.AT_LEAST_ONCE) is None


def test_a_run_for_which_no_time_was_left_makes_the_claim_weaker_and_not_unknown() -> None:
    right = results(TWO, GOOD, "", "")
    later = replace(UNKNOWN, unknown="not run: 9 s were over", skipped=True)
    found = summary([*right, later])
    assert found.guarantee is Guarantee.EXACTLY_ONCE
    assert claim(found).strength is Strength.SAMPLED


def test_without_any_crash_nothing_is_claimed() -> None:
    alone = Result("healthy", "no crash", Group.HEALTHY, verdict=judged(GOOD))
    assert claim(summarise([alone], Coverage(9, 0, 0, 0))).strength is Strength.UNKNOWN


def report(found: Sequence[Result], folder: Path) -> Report:
    file = Subject(str(folder / "sink.py"), "write_batch")
    wanted = Settings(sink=file, reader=Subject(file.file, "read"))
    return sink_report(wanted, Adapter.BATCH, Shape.ROWS, summary(found), TWO)


def test_the_exit_code_says_whether_it_is_as_expected(tmp_path: Path) -> None:
    good, bad = (results(TWO, GOOD, "", ""), results(TWO, TWICE, "b0.call.2.after", "b0.call.4.before"))
    assert report(good, tmp_path).code(Goal.EXACTLY_ONCE) == 0
    assert report(bad, tmp_path).code(Goal.EXACTLY_ONCE) == 1
    assert report(bad, tmp_path).code(Goal.AT_LEAST_ONCE) == 0
    assert report(bad, tmp_path).code(Goal.AT_LEAST_ONCE, ["duplicate"]) == 1
    assert report(bad, tmp_path).code(None) == 0
    assert report([*good, UNKNOWN], tmp_path).code(Goal.EXACTLY_ONCE) == 2
    assert report([*good, UNKNOWN], tmp_path).code(None) == 2


SEEING = Result("seeing", "what the test sees of the sink", Group.SEEING, unknown="something writes unseen")


def test_where_something_writes_unseen_every_word_is_unknown(tmp_path: Path) -> None:
    made = report([*results(TWO, GOOD, "", ""), SEEING], tmp_path)
    assert made.claim.strength is Strength.UNKNOWN
    assert made.code(Goal.EXACTLY_ONCE) == made.code(Goal.NOT_REFUTED) == made.code(None) == 2
    assert set(made.axes.values()) == {"unknown"}
    assert "crash-tested: unknown" in made.badge()
    assert made.to_json()["guarantee"] == "unknown"
    assert "unknown           seeing: something writes unseen" in made.text()
    root = ET.fromstring(made.junit(Goal.EXACTLY_ONCE))
    assert root.attrib["errors"] == "2", "the doubt, and the claim"


def test_what_was_refuted_stays_so_although_something_writes_unseen(tmp_path: Path) -> None:
    bad = results(TWO, TWICE, "b0.call.2.after", "b0.call.4.before")
    made = report([*bad, SEEING], tmp_path)
    assert made.code(Goal.EXACTLY_ONCE) == 1
    assert made.code(Goal.AT_LEAST_ONCE) == 2
    assert made.axes["duplicate"] == "violated"


def only(found: Sequence[Result], folder: Path) -> Report:
    whole = report(found, folder)
    part = replace(whole.summary, coverage=replace(whole.summary.coverage, selected=True))
    return replace(whole, summary=part, settings=replace(whole.settings, only=("b0.call.returns",)))


def test_one_run_claims_no_guarantee(tmp_path: Path) -> None:
    made = only(results(TWO, GOOD, "", ""), tmp_path)
    assert set(made.axes.values()) == {NOT_SEEN}
    assert "guarantee         not refuted (" in made.text()
    assert made.to_json()["claim"] == {"strength": "sampled", "at_best": "exactly-once"}
    assert made.code(None) == made.code(Goal.NOT_REFUTED) == 0
    assert made.code(Goal.EXACTLY_ONCE) == 2
    assert "crash-tested: not refuted (" in made.badge()
    root = ET.fromstring(made.junit(Goal.EXACTLY_ONCE))
    assert (root.attrib["failures"], root.attrib["errors"]) == ("0", "1")
    assert ET.fromstring(made.junit()).attrib["errors"] == "0"


def test_one_run_can_refute_a_guarantee(tmp_path: Path) -> None:
    bad = results(TWO, TWICE, "b0.call.2.after", "b0.call.4.before")
    assert only(bad, tmp_path).code(Goal.EXACTLY_ONCE) == 1
    assert only(bad, tmp_path).axes["duplicate"] == "violated"
    assert str(only(bad, tmp_path).claim) == "not exactly-once, at best at-least-once"


def test_a_stuck_job_whose_store_nobody_can_read_is_stuck_all_the_same(tmp_path: Path) -> None:
    bad = results(TWO, GOOD, "b0.call.2.after", "b0.call.4.before")
    place = next(n for n, each in enumerate(bad) if each.points)
    more = {"verdict": None, "stuck": "ValueError", "unknown": "the reader raised"}
    bad[place] = replace(bad[place], **more)
    made = report(bad, tmp_path)
    assert made.claim.strength is Strength.UNKNOWN
    assert made.axes["stuck"] == "violated"
    assert made.code(Goal.NOT_REFUTED) == 1
    assert "(ValueError); unknown: the reader raised" in made.text()
    assert made.diagnosis is not None
    assert made.diagnosis.code == "stuck on the replay"


def test_the_report_says_which_batches_were_not_tested(tmp_path: Path) -> None:
    made = finished(report(results(TWO, GOOD, "", ""), tmp_path), "", (), 10, 3)
    assert "batches of more than 10 rows" in made.text()
    assert "after the first 3" in made.text()


def test_a_large_batch_that_lasts_in_parts_is_diagnosed_by_its_line() -> None:
    point = Point(0, "call", 2, Kind.COMMIT, Side.AFTER, 31)
    large = Result("large.x", "a batch", Group.LARGE, (point,), judged(TWICE))
    said = summary([*results(TWO, GOOD, "", ""), large])
    found = diagnose(said, TWO, Shape.ROWS)
    assert found is not None
    assert found.code == "parts commit separately"
    assert "commit by line 31" in found.why
    assert said.guarantee is Guarantee.AT_LEAST_ONCE


@pytest.mark.parametrize(("tried", "said"), [(True, "does no harm"), (False, "was not tried")])
def test_a_diagnosis_of_a_recovery_names_only_what_was_tried(tried: bool, said: str) -> None:
    singles = results(TWO, GOOD, "", "")
    second = singles[3].points[0]
    if not tried:
        del singles[3]
    pair = Result("pair", "a pair", Group.PAIR, (singles[0].points[0], second), judged(TWICE))
    found = diagnose(summary([*singles, pair]), TWO, Shape.ROWS)
    assert found is not None
    assert f"one crash there {said}" in found.why


def test_a_late_effect_alone_is_returned_too_early() -> None:
    late = Effect(0, "call", 9, Kind.COMMIT, "t9", 19, late=True)
    found = diagnose(summary([SEEING]), [*TWO, late], Shape.ROWS)
    assert found is not None
    assert found.code == "returned too early"


def test_the_text_puts_the_weakest_first_with_the_one_command_that_repeats_it(tmp_path: Path) -> None:
    text = report(results(TWO, TWICE, "b0.call.2.after", "b0.call.4.before"), tmp_path).text()
    assert "guarantee         at-least-once" in text
    assert "effects 2..4 must be atomic" in text
    assert f"repeat            labkit crashtest {tmp_path}/sink.py:write_batch --only b0.call.2.after\n" in text
    assert "loss of power" in text


def test_junit_has_a_case_a_run_with_failures_and_errors(tmp_path: Path) -> None:
    found = [*results(TWO, TWICE, "b0.call.2.after", "b0.call.4.before"), UNKNOWN]
    root = ET.fromstring(report(found, tmp_path).junit(Goal.EXACTLY_ONCE))
    cases = root.findall(".//testcase")
    failed = sum(bool(each.rows_of("duplicate")) for each in found)
    assert len(cases) == len(found) + 1, "the last one is the claim"
    assert cases[-1].attrib["name"] == "guarantee: not exactly-once, at best at-least-once"
    assert len(root.findall(".//failure")) == failed + 1 == int(root.attrib["failures"])
    assert len(root.findall(".//error")) == 1 == int(root.attrib["errors"])


def test_the_badge_says_what_was_measured(tmp_path: Path) -> None:
    root = ET.fromstring(report(results(TWO, GOOD, "", ""), tmp_path).badge())
    assert root.attrib["aria-label"] == "crash-tested: exactly-once"


def test_every_point_of_a_report_can_be_asked_for_again(tmp_path: Path) -> None:
    plain = report(results(TWO, GOOD, "", ""), tmp_path).to_json()
    assert plain["eyes"] == "instruments"
    assert {each["id"] for each in plain["runs"]} == {point.id for point in points(TWO, [0])}
    assert all(isinstance(Point.from_json(point.to_json()), Point) for point in points(TWO, [0]))
