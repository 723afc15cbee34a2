"""What runs say together, and the files that a build gets. A run without evidence is no pass."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from crashtest_reports import flat, report_of

from labkit.core.judge import Guarantee, Outcome, Verdict, judge
from labkit.core.records import History
from labkit.crashtest.claim import Goal, Strength, claim
from labkit.crashtest.ledger import AT_LEAST, EXACT, Job, Ledger, silent, unknown
from labkit.crashtest.report import NOT_SEEN, WIDTH, Report, weaker
from labkit.crashtest.rows import Rows, Seen, Shape, generate, named
from labkit.crashtest.samples import Sample, judge_run
from labkit.crashtest.settings import Settings
from labkit.crashtest.subject import Subject
from labkit.crashtest.verdict import Coverage, Group, Result, Summary, summarise
from labkit.view.signs import LOOKS

ROWS = generate(2, per_batch=4)
A, B = ([Seen(**row) for row in batch.rows] for batch in ROWS.batches)
GOOD, TWICE, MISSING = [*A, *B], [*A, *A, *B], B


def judged(seen: Sequence[Seen], rows: Rows = ROWS) -> Verdict:
    return judge_run([Sample(0, 1, tuple(seen), "end")], rows, Shape.ROWS, rows.expected())[0]


POINTS = ("create a #1", "rename a #1", "rename commits/<n> #1", "exit")


def results(bad: Sequence[Seen] = GOOD, first: str = "", last: str = "") -> list[Result]:
    """A run for every point; from `first` to `last` a reader sees `bad` at the end."""
    found, inside = [], False
    for name in POINTS:
        inside = inside or name == first
        verdict = judged(bad if inside else GOOD)
        inside = inside and name != last
        found.append(Result(name, f"before {name}", Group.CRASH, verdict, evidence=[{"point": name}]))
    return found


WRONG = results(TWICE, "rename a #1", "rename commits/<n> #1")


def summary(found: Sequence[Result]) -> Summary:
    proven = sum(not each.unknown for each in found)
    return summarise(found, Coverage(len(found), 0, len(found), proven, proven))


def test_nothing_wrong_is_exactly_once_and_has_no_weakest_run() -> None:
    said = summary(results())
    assert (said.guarantee, said.weakest) == (Guarantee.EXACTLY_ONCE, None)


def test_loss_and_duplicates_in_different_runs_leave_nothing() -> None:
    both = [*results(TWICE, "rename a #1", "rename a #1")]
    both[0] = Result("x", "x", Group.CRASH, verdict=judged(MISSING))
    assert summary(both).guarantee is Guarantee.NONE
    assert summary(both).weakest is both[0]


UNKNOWN = Result("write a #1", "never reached", Group.CRASH, unknown="the run never reached the crash point")


def test_a_run_without_evidence_is_unknown_and_never_a_pass() -> None:
    said = summary([*results(), UNKNOWN])
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
    said = claim(summary([*WRONG, UNKNOWN]))
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
    said = summary([*results(), condition])
    assert claim(said).strength is Strength.COMPLETE
    assert said.conditions == {"other_rows": Guarantee.AT_MOST_ONCE}
    assert weaker(condition, Guarantee.EXACTLY_ONCE) == ""


def test_a_job_that_is_stuck_is_not_what_was_expected() -> None:
    stuck = Result("x", "x", Group.CRASH, verdict=judged(GOOD), stuck="IntegrityError", evidence=[{"point": "x"}])
    said = summary([stuck])
    assert said.guarantee is Guarantee.EXACTLY_ONCE
    assert "after the crash the job fails again and again (IntegrityError)" in stuck.because
    assert "the job fails without a crash (IntegrityError)" in replace(stuck, evidence=()).because
    assert "of the rows until then: exactly-once" in stuck.because
    assert claim(said).guarantee is Guarantee.EXACTLY_ONCE
    assert str(claim(said)) == "stuck after a crash; of its rows: none is wrong until then"
    alone = replace(stuck, evidence=(), group=Group.IDENTITY)
    assert str(claim(summary([alone]))).startswith("stuck without a crash; of its rows: ")
    assert str(claim(summary([alone, stuck]))).startswith("stuck after a crash; ")
    assert str(claim(summary([alone, replace(stuck, group=Group.CONDITION)]))).startswith("stuck without a crash; ")


def test_a_claim_is_qualified_unless_everything_was_tried() -> None:
    right = results()
    whole = summary(right).coverage
    assert str(claim(summary(right))) == "exactly-once"
    fewer = [
        (replace(whole, found=99), f"not refuted ({len(right)} of 99 points)"),
        (replace(whole, directed=3, directed_tried=2), f"{len(right)} points, 2 of 3 directed runs)"),
        (replace(whole, sampled_writes=2), f"{len(right)} points, 2 long write(s) cut at some places only)"),
        (replace(whole, states=7, states_left=2), f"{len(right)} points, 7 of at least 9 states of the files)"),
        (replace(whole, planned=99), f"not refuted ({len(right)} of {len(right)} points)"),
        (replace(whole, selected=True), "not refuted"),
        (replace(whole, between_lines=True), f"not refuted ({len(right)} of {len(right)} points between lines)"),
    ]
    for coverage, word in fewer:
        sampled = claim(summarise(right, coverage))
        assert word in str(sampled)
        assert sampled.guarantee is Guarantee.UNKNOWN
        assert sampled.reaches(Goal.NOT_REFUTED) is True
        assert sampled.reaches(Goal.EXACTLY_ONCE) is sampled.reaches(Goal.AT_LEAST_ONCE) is None


def test_a_report_counts_the_states_of_the_files_that_no_run_restarted_from() -> None:
    none, left = Coverage(1, 0, 1, 1, 1), Coverage(1, 0, 1, 1, 1, states=7, states_left=2, new_in=["store/log"])
    assert none.complete
    assert none.of_states == ""
    assert "there may be others" in replace(none, states=7).of_states
    assert " 7;" in left.of_states
    assert left.of_states.endswith("2 at least (--exhaustive tries them); what is new in them: store/log")
    of_sink = replace(left, every_state=False)
    assert of_sink.complete
    assert "--exhaustive" not in of_sink.of_states
    assert " 9 " in replace(none, states=9, closed=True).of_states


def test_no_more_pairs_are_tried_than_there_are() -> None:
    """A later look at the recoveries may not count a pair that was tried before, as with --only or other loops."""
    ledger = Ledger(9.0, silent)
    ledger.results = [
        replace(each, id=f"{name} then x", group=Group.PAIR) for name, each in zip("abc", results(), strict=False)
    ]
    for pairs in ((), ("a then x",), ("d then x", "e then x")):
        coverage = ledger.coverage(pairs, pairs, found=1)
        assert coverage.pairs_tried == 3
        assert coverage.pairs == len({*pairs, "a then x", "b then x", "c then x"})
        assert coverage.directed_tried <= coverage.directed


def test_the_time_left_is_estimated_from_runs_with_a_crash_alone() -> None:
    ledger = Ledger(900.0, silent)
    ledger.total = 5
    ledger.results = [Result("healthy", "no crash", Group.HEALTHY, seconds=50.0)]
    assert ledger.progress(Job("a", "before a", Group.CRASH)) == "run 2 of about 5"
    ledger.results.append(Result("a", "before a", Group.CRASH, seconds=4.0))
    ledger.sureness = EXACT
    assert ledger.progress(Job("b", "before b", Group.CRASH)) == "run 3 of 5, about 12 s left"
    ledger.sureness = AT_LEAST  # more runs may follow, so the time may rise
    assert ledger.progress(Job("b", "before b", Group.CRASH)) == "run 3 of at least 5, at least 12 s left"
    ledger.budget = 10.0  # no run begins after that
    assert ledger.progress(Job("b", "before b", Group.CRASH)).startswith("run 3 of at least 5, about ")


def test_only_runs_that_count_toward_the_guarantee_are_counted() -> None:
    ledger = Ledger(900.0, silent)
    for group in (Group.CRASH, Group.CONDITION, Group.FAULT, Group.IDENTITY):
        ledger.plan(Job(group, "", group))
        ledger.keep(Result(group, "", group))
    coverage = ledger.coverage((), (), 1)
    assert (coverage.hit, coverage.planned) == (2, 2)


def test_a_run_that_a_stop_interrupted_is_not_one_that_proved_nothing() -> None:
    ledger = Ledger(900.0, silent)
    jobs = [Job(f"{number}", "", Group.CRASH) for number in range(3)]
    for job in jobs:
        ledger.plan(job)
    ledger.keep(Result("0", "", Group.CRASH))
    ledger.keep(unknown(jobs[1], "no reader"))
    ledger.forget_unmade()
    ledger.keep(unknown(Job("stopped", "", Group.SEEING), "stopped"))
    coverage = ledger.coverage((), (), 3)
    assert (coverage.hit, coverage.planned) == (1, 2)


def test_runs_side_by_side_have_different_numbers_and_a_repeated_one_keeps_its_number() -> None:
    told: list[str] = []
    ledger = Ledger(900.0, lambda _what, text: told.append(text.partition(":")[0]))
    ledger.total, ledger.sureness = 4, EXACT
    for name in "abac":
        ledger.begin(Job(name, f"before {name}", Group.CRASH))
    assert told == ["run 2 of 4", "run 3 of 4", "run 2 of 4", "run 4 of 4"]


def test_a_run_for_which_no_time_was_left_makes_the_claim_weaker_and_not_unknown() -> None:
    right = results()
    later = replace(UNKNOWN, unknown="not run: 9 s were over", skipped=True)
    found = summary([*right, later])
    assert found.guarantee is Guarantee.EXACTLY_ONCE
    assert claim(found).strength is Strength.SAMPLED


def test_without_any_crash_nothing_is_claimed() -> None:
    alone = Result("healthy", "no crash", Group.HEALTHY, verdict=judged(GOOD))
    assert claim(summarise([alone], Coverage(9, 0, 0, 0))).strength is Strength.UNKNOWN


def report(found: Sequence[Result], folder: Path) -> Report:
    file = Subject(str(folder / "sink.py"), "write_batch")
    return report_of(Settings(sink=file, reader=Subject(file.file, "read")), summary(found))


def test_the_exit_code_says_whether_it_is_as_expected(tmp_path: Path) -> None:
    good, bad = (results(), WRONG)
    assert report(good, tmp_path).code(Goal.EXACTLY_ONCE) == 0
    assert report(bad, tmp_path).code(Goal.EXACTLY_ONCE) == 1
    assert report(bad, tmp_path).code(Goal.AT_LEAST_ONCE) == 0
    assert report(bad, tmp_path).code(Goal.AT_LEAST_ONCE, ["duplicate"]) == 1
    assert report(bad, tmp_path).code(None) == 0
    assert report([*good, UNKNOWN], tmp_path).code(Goal.EXACTLY_ONCE) == 2
    assert report([*good, UNKNOWN], tmp_path).code(None) == 2


SEEING = Result("seeing", "what the test sees of the sink", Group.SEEING, unknown="something writes unseen")


def test_where_something_writes_unseen_every_word_is_unknown(tmp_path: Path) -> None:
    made = report([*results(), SEEING], tmp_path)
    assert made.claim.strength is Strength.UNKNOWN
    assert made.code(Goal.EXACTLY_ONCE) == made.code(Goal.NOT_REFUTED) == made.code(None) == 2
    assert set(made.axes.values()) == {"unknown"}
    assert "crash-tested: unknown" in made.badge()
    assert made.to_json()["guarantee"] == "unknown"
    assert "unknown           seeing: something writes unseen" in made.text()
    root = ET.fromstring(made.junit(Goal.EXACTLY_ONCE))
    assert root.attrib["errors"] == "2", "the doubt, and the claim"


def test_what_was_refuted_stays_so_although_something_writes_unseen(tmp_path: Path) -> None:
    bad = WRONG
    made = report([*bad, SEEING], tmp_path)
    assert made.code(Goal.EXACTLY_ONCE) == 1
    assert made.code(Goal.AT_LEAST_ONCE) == 2
    assert made.axes["duplicate"] == "violated"


def only(found: Sequence[Result], folder: Path) -> Report:
    whole = report(found, folder)
    part = replace(whole.summary, coverage=replace(whole.summary.coverage, selected=True))
    return replace(whole, summary=part, settings=replace(whole.settings, only=("exit",)))


def test_one_run_claims_no_guarantee(tmp_path: Path) -> None:
    made = only(results(), tmp_path)
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
    bad = WRONG
    assert only(bad, tmp_path).code(Goal.EXACTLY_ONCE) == 1
    assert only(bad, tmp_path).axes["duplicate"] == "violated"
    assert str(only(bad, tmp_path).claim) == "not exactly-once, at best at-least-once"


def test_a_stuck_job_whose_store_nobody_can_read_is_stuck_all_the_same(tmp_path: Path) -> None:
    bad = results()
    bad[0] = replace(bad[0], verdict=None, stuck="ValueError", unknown="the reader raised")
    made = report(bad, tmp_path)
    assert made.claim.strength is Strength.UNKNOWN
    assert made.axes["stuck"] == "violated"
    assert str(made.claim).startswith("stuck after a crash; of its rows: ")
    assert made.text().splitlines()[2].split() == ["guarantee", *str(made.claim).split()]
    assert made.claim.look == LOOKS[Guarantee.NONE]
    assert made.code(Goal.NOT_REFUTED) == 1
    assert "(ValueError); unknown: the reader raised" in made.text()


def test_the_text_puts_the_weakest_first_with_the_one_command_that_repeats_it(tmp_path: Path) -> None:
    text = report(WRONG, tmp_path).text()
    assert "guarantee         at-least-once" in text
    assert f"repeat            labkit crashtest {tmp_path}/sink.py:write_batch --only 'rename a #1'\n" in text
    assert "loss of power" in text


def test_the_text_fits_into_a_terminal_apart_from_commands(tmp_path: Path) -> None:
    title = f"before {'a crash with a long name; then, in the recovery, ' * 5}"
    bad = [replace(each, title=title, id=f"{each.id} then {'rename a #1 then ' * 9}exit") for each in WRONG]
    text = report(bad, tmp_path).text()
    values, _ = text.split("\n\nWhat happened in ")
    assert all(len(line) <= WIDTH for line in values.splitlines() if not line.startswith("repeat "))
    assert title.rstrip() in flat(report(bad, tmp_path))
    [violated] = [line for line in values.splitlines() if line.startswith("duplicate ")]
    assert "rename a #1" in violated
    assert "... (2 runs)" in values


def test_the_text_says_what_a_guarantee_means(tmp_path: Path) -> None:
    doubt = "at-least-once may be too strong as well, since not all was tried"
    assert doubt in flat(only(WRONG, tmp_path))
    assert doubt not in flat(report(WRONG, tmp_path))
    assert "rows come out twice, and none gets lost" in flat(report(WRONG, tmp_path))
    assert report(results(), tmp_path).text().splitlines()[2:4][1].startswith("repeat ")


def test_a_wrong_row_that_a_restart_takes_back_is_announced_below_a_good_guarantee(tmp_path: Path) -> None:
    early = replace(results()[0], verdict=replace(judged(GOOD), aborted_read=(0,)))
    made = report([early, *results()[1:]], tmp_path)
    assert str(made.claim) == "exactly-once"
    assert "until a recovery has ended, they can see wrong or unfinished rows (aborted_read)" in flat(made)
    assert "until a recovery" not in flat(report(results(), tmp_path))


def test_junit_has_a_case_a_run_with_failures_and_errors(tmp_path: Path) -> None:
    found = [*WRONG, UNKNOWN]
    root = ET.fromstring(report(found, tmp_path).junit(Goal.EXACTLY_ONCE))
    cases = root.findall(".//testcase")
    failed = sum(bool(each.rows_of("duplicate")) for each in found)
    assert len(cases) == len(found) + 1, "the last one is the claim"
    assert cases[-1].attrib["name"] == "guarantee: not exactly-once, at best at-least-once"
    assert len(root.findall(".//failure")) == failed + 1 == int(root.attrib["failures"])
    assert len(root.findall(".//error")) == 1 == int(root.attrib["errors"])


def test_the_badge_says_what_was_measured(tmp_path: Path) -> None:
    root = ET.fromstring(report(results(), tmp_path).badge())
    assert root.attrib["aria-label"] == "crash-tested: exactly-once"
