"""Cards: what each result shows of itself in a notebook, as HTML and as the few lines that are the same in
every run.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from IPython.lib.pretty import pretty

from labkit import lab
from labkit.core.errors import InvalidInput
from labkit.core.judge import judge
from labkit.core.records import History, Observation, PlannedBatch, Reading
from labkit.core.strategies import Strategy
from labkit.host.doctor import Finding
from labkit.host.processes.events import Begun, DriverStarts, Ended, Killed, Parked, Proof, Recovered, SessionUp
from labkit.runs import watching
from labkit.runs.history import written
from labkit.runs.layout import RunFolder
from labkit.runs.outcome import Outcome
from labkit.runs.progress import aloud, silent
from labkit.runs.record import RunRecord
from labkit.runs.scenario import plan
from labkit.runs.watching import Watch, watched
from labkit.sinks import SINKS
from labkit.stores.kafka import timeouts
from labkit.stores.postgres.session import Answer
from labkit.teach.comparing import Comparison
from labkit.teach.exercises import check as checks
from labkit.teach.exercises.registry import EXERCISES
from labkit.teach.hands_on.answers import ServerAnswer, said
from labkit.teach.hands_on.copying import CopyOutcome, Steps
from labkit.teach.hands_on.kafka import Look
from labkit.teach.hands_on.postgres import Reply
from labkit.teach.machine import Findings
from labkit.teach.orders import LEGEND
from labkit.teach.timeouts import Trials
from labkit.view import front_end
from labkit.view.assets import asset
from labkit.view.card import MOST_BYTES, MOST_LINES, Card, fold, folds, para

ROWS = [Observation(0, "hello", 1, 0, 1), Observation(1, "world", 1, 0, 1), Observation(2, "hello", 2, 0, 1)]
AGAIN = [row._replace(incarnation=2) for row in ROWS]
CRASH: Mapping[str, Any] = {
    "point": "sink.after_pre_commit",
    "batch": 0,
    "signal": 9,
    "offset_log": [0],
    "commit_log": [],
    "files": ["offsets/0"],
    "killed": [101, 102, 103],
}
TWICE = [*ROWS, Reading("crash 1"), *AGAIN, Reading("end")]
ONCE = [Reading("crash 1"), *AGAIN, Reading("end")]
REASON = (
    "All rows were visible and commits/0 was not there, so the batch ran again: every row twice, "
    "and a reader saw hello go from 2 back to 1."
)
"""What was written down for this cell before any run."""
HOSTILE = '<script>alert("1")</script>'


def outcome(
    folder: Path, events: Sequence[Observation | Reading] = TWICE, *, crash: Mapping[str, Any] = CRASH, **options: Any
) -> Outcome:
    """A run that was killed once and left these events."""
    place = RunFolder(folder)
    offsets = place.checkpoint / "offsets" / "0"
    offsets.parent.mkdir(parents=True)
    offsets.write_text('v1\n{"batchWatermarkMs":0}\n{"offset": 3}')
    scenario = plan(crashes=["sink.after_pre_commit@0"], **options)
    history = History(
        written(events, place.history), keyed=scenario.strategy.facts.replaces, planned_batches=[PlannedBatch(0, 0, 3)]
    )
    verdict = judge(scenario.count.expected(), history)
    return Outcome(RunRecord(scenario, place, verdict, [crash], {"to_crash_1": 6.9}, 2))


def shown(result: Any) -> tuple[str, str]:
    """The HTML without its style sheet, and the plain text. Every card is well-formed, small, and needs no script."""
    bundle = result._repr_mimebundle_()
    html, plain = bundle["text/html"], bundle["text/plain"]
    ET.fromstring(html)
    assert html.count("<style>") == 1
    assert len(html.encode()) <= MOST_BYTES
    assert len(plain.splitlines()) <= MOST_LINES
    bare = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    assert "<script" not in bare
    assert "://" not in bare
    assert result._repr_mimebundle_() == bundle
    return bare, plain


def text_of(html: str) -> str:
    """What a person reads, pieces apart."""
    return " ".join(" ".join(ET.fromstring(html).itertext()).split())


def test_a_run_says_verdict_counts_table_line_and_why(tmp_path: Path) -> None:
    html, plain = shown(outcome(tmp_path))
    said = text_of(html)
    assert '<p class="lkc-word bad">at-least-once</p>' in html
    assert "0 lost, 3 twice, 1 jump back" in said
    assert "should be found hello = 1 1 2 world = 1 1 2 hello = 2 1 2" in said
    assert 'aria-label="what a reader saw of hello: 1 2 | killed | 1 2"' in html
    assert "killed ✗" in said
    assert "jumps back" in said
    assert "so the batch ran again: every row twice" in said
    assert plain.splitlines() == [
        "append on files, killed at sink.after_pre_commit@0: at-least-once",
        "  0 lost, 3 twice, 1 jump back; 6 rows",
        "  hello = 1: should be 1, found 2",
        "  world = 1: should be 1, found 2",
        "  hello = 2: should be 1, found 2",
        "  a reader saw of hello: 1 2 | killed | 1 2",
        f"  {REASON}",
    ]


def test_behind_folds_lie_proof_files_code_steps_and_command(tmp_path: Path) -> None:
    run = outcome(tmp_path)
    html, _ = shown(run)
    said = [text_of(each) for each in re.findall(r"<details>.*?</details>", html, re.DOTALL)]
    judged, proof, files, code, steps, command = said
    assert "3 of 3 records came out twice or more" in judged
    assert "sink.after_pre_commit, ready: all rows are in the store." in proof
    assert "Signal 9 was sent to every process" in proof
    assert "processes killed: 3. Afterwards no process" in proof
    assert "Crash 1: offsets/0." in files
    assert '{"offset": 3}' in files
    assert "commits/0 did not exist." in files
    assert "self.store.append(*some)" in code
    trace = re.search(r'lab\.show\("([^"]+)"\)', steps)
    assert lab.replay(trace[1]).verdict.guarantee == run.verdict.guarantee
    assert run.record.scenario.command() in command


def test_the_text_of_a_run_is_the_same_in_another_folder_at_another_time(tmp_path: Path) -> None:
    first = outcome(tmp_path / "one")
    other = {**CRASH, "killed": list(range(900, 930)), "session": 77, "killed_at": 1.5}
    second = outcome(tmp_path / "two", crash=other)
    _, plain = shown(first)
    assert plain == shown(second)[1]
    assert str(tmp_path) not in plain
    # `str` stays as it was: with the folder.
    assert str(tmp_path / "one") in str(first)


@pytest.mark.parametrize("name", ["lost", "duplicate", "regression"])
def test_each_number_of_the_verdict_is_on_the_card(tmp_path: Path, name: str) -> None:
    run = outcome(tmp_path)
    word = {"lost": "lost", "duplicate": "twice", "regression": "jumps back"}[name]
    verdict = replace(run.verdict, **{name: (0, 1, 2, 3, 4)})
    for each in shown(Outcome(replace(run.record, verdict=verdict))):
        assert f"5 {word}" in each
        assert f"4 {word}" not in each


def test_an_early_read_is_counted_where_there_is_one(tmp_path: Path) -> None:
    run = outcome(tmp_path)
    assert "too early" not in shown(run)[1]
    verdict = replace(run.verdict, precommitted_read=(1, 2))
    said = shown(Outcome(replace(run.record, verdict=verdict)))[1]
    assert "2 read too early" in said


def test_a_lost_row_is_found_no_time(tmp_path: Path) -> None:
    events = [ROWS[0], Reading("crash 1"), ROWS[1], Reading("end")]
    html, plain = shown(outcome(tmp_path, events))
    assert "at-most-once" in html
    assert "hello = 2: should be 1, found 0" in plain
    assert '<td class="bad"><b>0</b></td>' in html


def test_an_upserting_sink_is_shown_by_its_last_values(tmp_path: Path) -> None:
    _, plain = shown(outcome(tmp_path, sink="idempotent", store="sqlite"))
    assert "hello: should be 2, found 2" in plain
    assert "exactly-once" in plain.splitlines()[0]
    assert "1 2 | killed | 1 2" in plain


def test_a_good_run_is_good_and_names_its_order(tmp_path: Path) -> None:
    html, plain = shown(outcome(tmp_path, ONCE, sink="two_phase"))
    assert '<p class="lkc-word good">exactly-once</p>' in html
    assert plain.startswith("two_phase on files, log-then-commit, killed at")
    assert "a reader saw of hello: killed | 1 2" in plain


def test_where_no_key_has_two_values_there_is_no_line(tmp_path: Path) -> None:
    events = [Reading("crash 1"), *ROWS[:2], Reading("end")]
    html, plain = shown(outcome(tmp_path, events))
    assert "<svg" not in html
    assert "a reader saw" not in plain


def test_what_was_not_recorded_is_unknown(tmp_path: Path) -> None:
    crash = {name: value for name, value in CRASH.items() if name not in {"killed", "files", "signal"}}
    said = text_of(shown(outcome(tmp_path / "run", crash=crash))[0])
    assert "Signal unknown was sent to every process" in said
    assert "processes killed: unknown." in said
    assert "no process of the session" not in said
    assert "not recorded" in said
    run = outcome(tmp_path / "other")
    (run.record.folder.checkpoint / "offsets" / "0").unlink()
    assert "where the batch ends: unknown" in text_of(shown(run)[0])


def test_an_executor_that_was_killed_is_told_from_a_driver(tmp_path: Path) -> None:
    crash = {**CRASH, "executor": 102}
    said = text_of(shown(outcome(tmp_path, crash=crash))[0])
    assert "Signal 9 was sent to the executor" in said
    assert "The driver continued." in said
    assert "no process of the session" not in said


def test_the_history_and_the_input_may_be_gone(tmp_path: Path) -> None:
    run = outcome(tmp_path)
    run.record.folder.history.unlink()
    html, plain = shown(run)
    assert "6 rows in the end." in text_of(html)
    assert "should be" not in plain


class Millions(Mapping[str, int]):
    """Last values that nobody may look at: sorting them would take long."""

    def __getitem__(self, key: str) -> int:
        raise AssertionError("a card has looked at the values of a large run")

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("a card has looked at the values of a large run")

    def __len__(self) -> int:
        return 5_000_000


def test_of_a_large_run_only_the_verdict_is_shown(tmp_path: Path) -> None:
    words = tmp_path / "words.jsonl"
    words.write_text('{"word": "hello"}\n{"word": "world"}\n{"word": "hello"}\n')
    run = outcome(tmp_path / "run", input=str(words))
    for path in (words, run.record.folder.history):
        with path.open("r+b") as file:
            file.truncate(10**6)  # zeros, at which whoever reads it stumbles
    verdict = replace(run.verdict, final=Millions(), rows=5_000_000, duplicate=range(5_000_000))
    html, plain = shown(Outcome(replace(run.record, verdict=verdict)))
    assert "5,000,000 rows in the end." in text_of(html)
    assert "5,000,000 twice" in plain
    assert "should be" not in plain
    assert "<svg" not in html


def test_hostile_words_stay_text(tmp_path: Path) -> None:
    words = tmp_path / "words.jsonl"
    words.write_text("".join('{"word": "<script>alert(\\"1\\")</script>"}\n' * 3))
    rows = [Observation(n, HOSTILE, n + 1, 0, 1) for n in range(3)]
    events = [*rows, Reading("crash 1"), *rows, Reading("end")]
    crash = {**CRASH, "files": [HOSTILE, "offsets/0"]}
    run = outcome(tmp_path / "run", events, crash=crash, input=str(words))
    html, plain = shown(run)  # well-formed, and without a script
    assert "&lt;script&gt;" in html
    assert HOSTILE in plain
    assert HOSTILE in text_of(html)
    findings = Findings([Finding(HOSTILE, False, True, HOSTILE, HOSTILE)])
    for result in (
        findings,
        lab.compare({HOSTILE: run}),
        Card(HOSTILE, HOSTILE, plain=[""], title=HOSTILE, under=HOSTILE),
    ):
        assert "&lt;script&gt;" in shown(result)[0]


def test_a_card_stays_small_whatever_it_shows(tmp_path: Path) -> None:
    names = [f"state/{number}/{'x' * 200}" for number in range(10_000)]
    run = outcome(tmp_path, crash={**CRASH, "files": names})
    html, _ = shown(run)
    assert "and 9970 more" in html
    endless = Card("word", *(para("x" * 20_000) for _ in range(9)), plain=["y" * 9_000] * 40)
    html, plain = shown(endless)
    assert "it is too long for a card." in html
    assert len(plain) < 5_000
    assert "... 29 more lines" in plain
    assert folds(fold("a", para("x" * 20_000)) for _ in range(9)).count("<details>") == 1


def test_a_walk_with_rows_shows_its_verdict_and_its_line() -> None:
    walk = lab.replay("pipeline.jump_back")
    html, plain = shown(walk)
    assert '<p class="lkc-word good">exactly-once</p>' in html
    assert "0 lost, 0 twice, 1 jump back; 2 rows" in plain
    assert "a reader saw of hello: 1 2 | killed | 1 2" in plain
    assert "BROKEN no_regression" in plain
    assert f'lab.show("{walk.trace}")' in text_of(html)
    assert (
        lab.simulate("sink.mid_write", sink="append")._repr_mimebundle_()["text/plain"]
        == lab.simulate("sink.mid_write", sink="append")._repr_mimebundle_()["text/plain"]
    )


def test_a_walk_without_rows_shows_its_facts_and_broken_claims() -> None:
    html, plain = shown(lab.replay("snapshot.markers_flow"))
    assert "every claim holds" in html
    assert "money under way in the last completed snapshot: 100" in plain
    search = lab.explore("snapshot", algorithm="naive")
    broken = lab.replay(search.counterexample())
    html, plain = shown(broken)
    assert '<p class="lkc-word bad">a claim is broken</p>' in html
    for name, because in broken.violated.items():
        assert f"{name}: {because}" in text_of(html)
        assert f"BROKEN {name}" in plain


def test_a_search_says_states_and_what_is_broken() -> None:
    search = lab.explore("pipeline", strategy="append")
    html, plain = shown(search)
    assert '<p class="lkc-word bad">at-least-once</p>' in html
    assert f"{search.states:,} states, all there are" in plain
    for name in search.violated:
        assert f"BROKEN {name}" in plain
        assert f'lab.show(search.counterexample("{name}"))' in text_of(html)
    assert search.call in text_of(html)
    html, plain = shown(lab.explore("snapshot"))
    assert '<p class="lkc-word good">holds</p>' in html
    assert "No schedule breaks a claim." in html


def test_a_claim_that_was_never_reached_opens_at_the_state_nearest_to_it() -> None:
    search = lab.explore("delivery", processes=2, records=1, max_states=60)
    assert search.exploration.never_reached == ("recovers",)
    assert 'lab.explorer(str(search.counterexample("recovers")))' in text_of(shown(search)[0])
    opened = lab.explorer(str(search.counterexample("recovers"))).session
    assert (opened.at, opened.enabled) == (5, ["crash(0)", "crash(1)"])
    with pytest.raises(InvalidInput, match=r"recovers.*; increase max_states"):
        lab.explore("pipeline", max_states=30).counterexample("recovers")


def test_a_search_that_was_stopped_claims_nothing() -> None:
    html, plain = shown(lab.explore("snapshot", max_states=10))
    assert '<p class="lkc-word dim">unknown</p>' in html
    assert "not all: " in plain


def test_exactly_once_in_the_end_with_a_jump_on_the_way_is_not_all_well() -> None:
    html, _ = shown(lab.explore("pipeline", strategy="idempotent", store="sqlite"))
    assert '<p class="lkc-word bad">exactly-once in the end, and broken on the way</p>' in html


def test_findings_are_still_a_list_and_say_what_to_do() -> None:
    java = Finding("Java", False, True, "none", "install one")
    kafka = Finding("kafka", False, False, "down", "labkit services up kafka")
    memory = Finding("memory", True, True, "3.14 GB available", "")
    findings = Findings([memory, java, kafka])
    assert [each.name for each in findings] == ["memory", "Java", "kafka"]
    html, plain = shown(findings)
    assert plain.splitlines() == [
        "1 of 3 things are missing that the lab needs.",
        "  MISSING Java: install one",
        "  optional kafka: labkit services up kafka",
    ]
    assert "not yet" in html
    assert "3.14 GB" in html
    html, plain = shown(Findings([memory, kafka]))
    assert '<p class="lkc-word good">ready</p>' in html
    assert "3.14" not in plain  # differs from one look to the next
    assert isinstance(lab.doctor(), list)


def test_a_comparison_is_one_table(tmp_path: Path) -> None:
    first = outcome(tmp_path / "one")
    second = outcome(tmp_path / "two", ONCE, sink="two_phase")
    compared = lab.compare(append=first, two_phase=second)
    html, plain = shown(compared)
    assert plain.splitlines() == [
        "           guarantee      lost  twice  jumps back  rows",
        "append     at-least-once  0     3      1           6",
        "two_phase  exactly-once   0     0      0           3",
    ]
    assert "append at-least-once 0 3 1 6" in text_of(html)
    assert html.count('class="bad"') == 3
    assert str(compared) == plain


def test_searches_and_walks_are_compared_too() -> None:
    searched = lab.compare(
        with_markers=lab.explore("snapshot"),
        without=lab.explore("snapshot", algorithm="naive"),
        append=lab.explore("pipeline", strategy="append"),
    )
    _, plain = shown(searched)
    head, markers, without, append = plain.splitlines()
    assert head.split() == ["states", "broken", "guarantee"]
    assert markers.split()[-2:] == ["nothing", "-"]
    assert "nothing" not in without
    assert append.endswith("at-least-once")
    mixed = Comparison({"a": lab.replay("snapshot.markers_flow")})
    assert "nothing" in shown(mixed)[1]


@pytest.mark.parametrize("what", [{}, {"append": "at-least-once"}])
def test_what_cannot_be_compared_is_refused(what: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"lab\.compare\(\)"):
        lab.compare(**what)


def test_timeouts_stay_what_they_were_and_show_whether_they_fit() -> None:
    fits = lab.timeouts(interval=10, checkpoint=1, transaction=5)
    fit, needed, because = fits
    assert (fit, needed) == (fits.fit, 11)
    assert repr(fits).startswith("Examination(fit=")
    html, plain = shown(fits)
    assert '<p class="lkc-word bad">can lose data</p>' in html
    assert "11 s" in plain
    assert because[1:] in plain
    html, _ = shown(lab.timeouts(interval=10, checkpoint=1, transaction=60))
    assert '<p class="lkc-word good">safe</p>' in html


def test_a_copy_and_its_steps(tmp_path: Path) -> None:
    html, plain = shown(CopyOutcome(outcome(tmp_path).verdict, started_at=2))
    assert "at offset 2" in html
    assert "3 twice" in plain
    steps = Steps([("starts", None), ("writes <hello>", None)])
    html, plain = shown(steps)
    assert plain == str(steps)
    assert "&lt;hello&gt;" in html


def test_a_measurement_is_shown_whole_also_without_html() -> None:
    trials = Trials({f"traffic {n}": timeouts.TimeoutTrial(timeouts.Traffic.BURST) for n in range(MOST_LINES)})
    plain = trials._repr_mimebundle_()["text/plain"]
    assert plain == str(trials)
    assert plain.count("traffic ") == MOST_LINES + 1, "each has its row, below the head"


def test_the_verdict_grid_and_the_chains_show_themselves() -> None:
    for result in (lab.matrix(), lab.chains(), lab.orders()):
        bundle = result._repr_mimebundle_()
        assert bundle["text/plain"] == str(result)
        assert "<script" not in bundle["text/html"]
    assert LEGEND.splitlines()[0] in bundle["text/html"]


@pytest.mark.parametrize("strategy", list(Strategy))
def test_the_code_of_a_sink_is_its_own_source(strategy: Strategy) -> None:
    html, plain = shown(lab.code(strategy.value))
    code = lab.code(strategy.value).text
    source = Path(str(SINKS[strategy].__module__).replace(".", "/")).with_suffix(".py")
    assert source.as_posix() in plain
    for line in code.splitlines():
        assert line in source.read_text(encoding="utf-8").splitlines()
    assert "pre_commit" in code or "commit(" in code
    assert f"class {SINKS[strategy].__name__}" in html


def test_an_unknown_sink_has_no_code() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'append'"):
        lab.code("apend")


def test_a_check_is_a_card_for_a_person_and_lines_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    exercise = next(iter(EXERCISES.values()))
    checks._not_attempted(exercise)
    printed = capsys.readouterr().out.rstrip("\n")
    seen: list[Card] = []
    monkeypatch.setattr(checks, "present", lambda card: seen.append(card) or True)
    checks._not_attempted(exercise)
    checks.progress()
    assert capsys.readouterr().out == ""
    first, progress = seen
    assert str(first) == printed
    assert printed in text_of(shown(first)[0])
    assert all(name in shown(progress)[0] for name in EXERCISES)


def luminance(colour: str) -> float:
    """As WCAG 2 defines it."""
    digits = colour.lstrip("#")
    full = digits if len(digits) == 6 else "".join(2 * each for each in digits)
    parts = [int(full[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_text_can_be_read_in_light_and_in_dark() -> None:
    pairs = re.findall(r"--(\w+): (?:var\([\w-]+, )?light-dark\((#\w+), (#\w+)\)", asset("card.css"))
    for scheme in (0, 1):
        colours = {name: both[scheme] for name, *both in pairs}
        for text in ("ink", "dim", "ok", "bad"):
            for ground in ("back", "soft"):
                lighter, darker = sorted((luminance(colours[text]), luminance(colours[ground])), reverse=True)
                assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (scheme, text, ground)


class Noted:
    """A line that keeps what it showed."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, int, int]] = []
        self.ended: list[str] = []

    def show(self, words: str, done: int, of: int) -> None:
        self.shown.append((words, done, of))

    def end(self, words: str) -> None:
        self.ended.append(words)


PROOF = Proof(session=1, signal=9, killed=[1], left=[], begun=0.0)


def test_a_running_crash_is_one_line_that_changes() -> None:
    line, now = Noted(), [0.0]
    watch = Watch(line, crashes=1, clock=lambda: now[0])
    for event in (
        DriverStarts(),
        SessionUp(),
        Begun("run"),
        Recovered("run", []),
        Parked("run"),
        Killed(PROOF),
        DriverStarts(),
        SessionUp(),
        Begun("run"),
        Recovered("run", []),
        Ended("run"),
        Killed(PROOF),
    ):
        watch.tell(event)
        now[0] += 1.4
        watch.beat()
        watch.beat()  # nothing has changed, so nothing is shown
    said = [words.rpartition(",")[0] for words, _, _ in line.shown]
    assert said[:6] == [
        "starting Spark",
        "Spark has started",
        "starting the job",
        "the job is running",
        "the job has reached the failpoint and is being killed",
        "killed: every process is dead",
    ]
    assert said[6] == "starting Spark again"
    assert said[-1] == "the job has ended, reading the results"
    done = [done for _, done, _ in line.shown]
    assert done == sorted(done)
    assert {of for _, _, of in line.shown} == {10}
    watch.end()
    assert line.ended == ["The run took 16 s."]


def test_of_several_runs_the_line_counts_those_that_have_ended() -> None:
    line = Noted()
    watch = Watch(line, crashes=1, runs=3, clock=lambda: 0.0)
    for event in (DriverStarts(), Parked("a"), Killed(PROOF), Ended("a"), Ended("b")):
        watch.tell(event)
    watch.beat()
    assert line.shown == [("2 of 3 runs have ended, 0 s", 2, 3)]


class Kernel:
    """What a notebook's kernel says of its front end."""

    def __init__(self, *, asks: bool) -> None:
        self._allow_stdin = asks


def test_only_a_person_gets_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Noted()
    monkeypatch.setattr(watching, "line", lambda: line)
    with watched(None, aloud, crashes=1) as (tell, heartbeat):
        assert (tell, heartbeat) == (aloud, None)
    monkeypatch.setattr(front_end, "kernel_here", lambda: Kernel(asks=False))
    with watched(None, aloud, crashes=1) as (tell, heartbeat):
        assert (tell, heartbeat) == (silent, None)
    monkeypatch.setattr(front_end, "kernel_here", lambda: Kernel(asks=True))
    with watched(aloud, aloud, crashes=1) as (tell, heartbeat):
        assert (tell, heartbeat) == (aloud, None)
    assert line.shown == []
    with watched(None, aloud, crashes=1) as (tell, heartbeat):
        assert heartbeat is not None
    assert len(line.shown) == 1
    assert line.ended == ["The run took 0 s."]
    with pytest.raises(InvalidInput), watched(None, aloud, crashes=1):
        raise InvalidInput("the run failed")
    assert line.ended[1:] == ["The run stopped after 0 s."]


def test_the_line_stays_in_one_place() -> None:
    calls: list[tuple[str, str]] = []

    class Handle:
        def update(self, data: dict[str, str], *, raw: bool) -> None:
            assert raw
            calls.append(("update", data["text/html"]))

    def display(data: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        assert raw
        assert display_id
        calls.append(("display", data["text/html"]))
        return Handle()

    line = front_end.Line(display)
    line.show("starting <Spark>", 1, 10)
    line.show("killed", 5, 10)
    line.end("The run took 17 s.")
    assert [how for how, _ in calls] == ["display", "update", "update"]
    assert "starting &lt;Spark&gt;" in calls[0][1]
    assert '<progress max="10" value="5"' in calls[1][1]
    assert "<progress" not in calls[2][1]


def test_trials_of_a_timeout_are_a_card_and_what_was_not_read_is_a_dash() -> None:
    trial = timeouts.TimeoutTrial(timeouts.Traffic.BURST, failures=2)
    shown = Trials({"burst": trial})._repr_mimebundle_()
    assert shown["text/plain"].splitlines() == [
        "traffic  failed writes  commit  lost",
        "burst    2              -       -",
    ]
    assert "<td>2</td>" in shown["text/html"]


def test_the_steps_of_a_trial_have_seconds_on_the_card_only() -> None:
    steps = [
        "  0.1 s  attempt 1: the first record opens the transaction",
        f"  5.0 s  attempt 1: the transaction is open for more than 5 s; {timeouts.WAITS}",
        "  6.2 s  attempt 1: Kafka has aborted the transaction",
    ]
    trial = timeouts.TimeoutTrial(timeouts.Traffic.BURST, steps=steps)
    html, plain = shown(Trials({"burst": trial}).steps("burst"))
    assert plain.splitlines() == [
        "burst: not judged",
        "  attempt 1: the first record opens the transaction",
        "  attempt 1: Kafka has aborted the transaction",
    ]
    assert "5.0 s attempt 1: the transaction is open" in text_of(html)
    with pytest.raises(InvalidInput, match="did you mean 'burst'"):
        Trials({"burst": trial}).steps("brust")


def test_answers_of_a_server_are_one_card_and_their_own_lines_as_text() -> None:
    rows = Answer("SELECT 2", ("word", "n"), [("<hello>", 1), ("world", None)])
    error = Answer("does not exist", code="42704")
    first = Reply("reader", [Answer("BEGIN"), rows])
    html, plain = shown(said(first, ServerAnswer("t: written"), Reply("other", [error])))
    assert plain.splitlines() == [
        "reader: BEGIN",
        "reader: word     n",
        "reader: <hello>  1",
        "reader: world    -",
        "t: written",
        "other: ERROR 42704: does not exist",
    ]
    assert text_of(html) == (
        "What the server answers reader BEGIN reader: word n <hello> 1 world - t written "
        "other ERROR 42704: does not exist"
    )
    assert '<td class="bad"><b>ERROR 42704: does not exist</b></td>' in html
    assert shown(first)[1] == str(first)
    empty = Reply("reader", [Answer("SELECT 0", ("n",), [])])
    assert text_of(shown(empty)[0]).endswith("reader: n (no row)")
    with pytest.raises(InvalidInput, match=r"lab\.said\(\) needs a reply"):
        said()


def test_a_line_of_an_answer_is_text_and_a_card() -> None:
    refused = ServerAnswer("orders: refused, too long")
    assert refused == "orders: refused, too long"
    html, plain = shown(refused)
    assert plain == refused == pretty(refused)
    assert '<td class="bad"><b>refused, too long</b></td>' in html
    killed = "the server died by signal 9; another process runs now: yes"
    assert f'<th scope="row"></th><td>{killed}</td>' in shown(ServerAnswer(killed))[0]
    assert '<th scope="row">a, b</th><td>gone</td>' in shown(ServerAnswer("a, b: gone"))[0]


def test_a_look_at_a_topic_is_a_table_of_two_readers() -> None:
    look = Look(["one", "two"], [], 2, 0, ["slow"])
    html, plain = shown(look)
    assert plain == str(look)
    assert text_of(html).endswith("read_committed 0, the last stable offset - open transactions: slow")
