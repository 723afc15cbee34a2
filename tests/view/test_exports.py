"""Exports for other tools: vector clocks that are right, text that no value can break, runs from their folders."""

import json
import os
import random
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from command import labkit, refusal

from labkit import lab
from labkit.core.errors import InvalidAction, InvalidInput
from labkit.core.judge import judge
from labkit.core.records import History, Observation, Reading
from labkit.runs.history import written as history_of
from labkit.runs.layout import RunFolder
from labkit.runs.outcome import Outcome
from labkit.runs.pages.diagram import of_run, write_diagram
from labkit.runs.record import RunRecord
from labkit.runs.run import Run
from labkit.runs.scenario import plan
from labkit.sim.rules import Event
from labkit.sim.scenarios import every
from labkit.sim.trace import Replay, make, replay
from labkit.view.exports import FORMATS, written
from labkit.view.exports.shiviz import Happening, happenings
from labkit.view.narration import Story
from labkit.view.scene import slip
from labkit.view.spacetime import Diagram, Flight, Step

ROOT = Path(__file__).parents[2]
DEFAULT_REGEX = r"(?P<event>.*)\n(?P<host>\S*) (?P<clock>{.*})"
"""ShiViz's documented default expression, with Python's spelling of a named group."""
NASTY = [
    'say "hi"; #35; %% x',
    "<b>x</b> &lt; &#60; <U+0041>",
    "one\ntwo\r\nthree\u2028four",
    "wrap: $$x$$ `y` {a} [[b]] |c| \\n \\t",
    'host {"host": 3}',
    "@enduml **b** //i// --s-- __u__ ~~w~~ /' block '/",
    "{x} ends",
    "# list",
    "= heading",
    "wrap: long",
    "漢字 ä 😀",
]


def diagram_of(name: str) -> Diagram:
    return Story(replay(every()[name].trace)).diagram()


def nasty() -> Diagram:
    """Return a diagram with every nasty text as a sentence, a message and a title of a process."""
    steps = tuple(
        Step("p0", Event.CRASH if n % 2 else Event.STEP, ("p1",) * (n % 3 > 0), text) for n, text in enumerate(NASTY)
    )
    flights = tuple(Flight("p1", n, "p2", n + 1, slip(text), n % 4 == 3) for n, text in enumerate(NASTY))
    return Diagram({f"p{n}": text for n, text in enumerate(NASTY)}, steps, flights)


def events_of(log: str) -> list[tuple[str, str, dict[str, int]]]:
    """Return event, host and clock of every entry, read as ShiViz reads a file."""
    regex, separator, text = log.split("\n", 2)
    assert (regex, separator) == (DEFAULT_REGEX.replace("?P<", "?<"), "")
    found = [match.groups() for match in re.finditer(f"^{DEFAULT_REGEX}$", text, re.MULTILINE)]
    # Pasted with the two first lines and read with the expression as it stands, the log gives the same events.
    assert [match.groups() for match in re.finditer(DEFAULT_REGEX, log, re.MULTILINE)] == found
    assert 2 * len(found) == len(text.splitlines())
    return [(event, host, json.loads(clock)) for event, host, clock in found]


def before(one: Happening, other: Happening) -> bool:
    return one != other and other.clock.get(one.lane, 0) >= one.clock[one.lane]


@pytest.mark.parametrize("name", every())
def test_every_run_is_a_log_that_shiviz_accepts(name: str) -> None:
    events = events_of(lab.export(name, "shiviz"))
    counts: dict[str, int] = {}
    for _, host, clock in events:
        counts[host] = counts.get(host, 0) + 1
        assert clock[host] == counts[host]
        assert all(0 < time <= counts[other] for other, time in clock.items())


@pytest.mark.parametrize("name", every())
def test_a_clock_counts_the_events_that_happen_before(name: str) -> None:
    """The order is computed a second time, as a relation instead of clocks."""
    diagram = diagram_of(name)
    events = list(happenings(diagram))
    past: list[set[int]] = []
    last: dict[str, int] = {}
    for place, event in enumerate(events):
        is_first = place == 0 or events[place - 1].step != event.step
        actor = next(n for n, each in enumerate(events) if each.step == event.step)
        direct = {last[event.lane]} if event.lane in last else set()
        if is_first:
            others = {each.lane for each in events if each.step == event.step}
            direct |= {last[lane] for lane in others if lane in last}
            for flight in diagram.flights:
                if flight.received == event.step and not flight.lost and flight.sent:
                    direct.add(
                        next(
                            n for n, each in enumerate(events) if (each.step, each.lane) == (flight.sent, flight.source)
                        )
                    )
        else:
            direct.add(actor)
        past.append({place}.union(*(past[each] for each in direct)))
        last[event.lane] = place
    for place, event in enumerate(events):
        counted = {lane: sum(events[each].lane == lane for each in past[place]) for lane in diagram.lanes}
        assert event.clock == {lane: number for lane, number in counted.items() if number}


def test_a_message_arrives_after_it_was_sent_and_a_lost_one_orders_nothing() -> None:
    arrived = lost = 0
    for name in every():
        diagram = diagram_of(name)
        events = {(each.step, each.lane): each for each in happenings(diagram)}
        for flight in diagram.flights:
            if not flight.sent or flight.received > len(diagram.steps):
                continue
            if flight.lost:
                lost += 1
                continue
            arrived += 1
            assert before(events[flight.sent, flight.source], events[flight.received, flight.target]), (name, flight)
    assert arrived > 300
    assert lost > 10
    steps = (Step("a", Event.STEP, (), ""), Step("b", Event.DROP, (), ""))
    one, other = happenings(Diagram({"a": "a", "b": "b"}, steps, (Flight("a", 1, "b", 2, slip("x"), lost=True),)))
    assert not before(one, other)


def test_a_step_comes_after_what_the_process_that_it_reaches_has_done_before() -> None:
    steps = (Step("b", Event.STEP, (), ""), Step("a", Event.STEP, ("b",), ""), Step("b", Event.STEP, (), ""))
    events = list(happenings(Diagram({"a": "a", "b": "b"}, steps)))
    assert [(each.step, each.lane) for each in events] == [(1, "b"), (2, "a"), (2, "b"), (3, "b")]
    assert all(before(one, other) for one, other in pairwise(events))


# These actions wait for what another process has done, as a timer does, and no message tells them.
WITHOUT_MESSAGE = ("collect", "inquire")


@pytest.mark.parametrize("model", ["changelog", "delivery", "two_phase_commit"])
def test_steps_that_the_clocks_do_not_order_can_be_exchanged(model: str) -> None:
    """If a clock misses an influence between two processes, their steps in the other order give another state."""
    exchanged = 0
    for walk in walks(model):
        diagram = Story(walk).diagram()
        events: dict[int, list[Happening]] = {}
        for each in happenings(diagram):
            events.setdefault(each.step, []).append(each)
        for step in range(1, len(diagram.steps)):
            pair = walk.actions[step - 1 : step + 1]
            if {diagram.steps[step - 1].event, diagram.steps[step].event} != {Event.STEP} or any(
                before(one, other) for one in events[step] for other in events[step + 1]
            ):
                continue
            if any(action.name in WITHOUT_MESSAGE for action in pair):
                continue
            other = walk.beginning(step - 1)
            try:
                other.forward(pair[1])
                other.forward(pair[0])
            except InvalidAction as error:
                pytest.fail(f"{walk.trace}, step {step}: {error}")
            assert other.state == walk.states[step + 1], f"{walk.trace}, step {step}"
            exchanged += 1
    assert exchanged > 50


def walks(model: str) -> Iterator[Replay]:
    """Yield random runs of a model."""
    for seed in range(60):
        walk, chance = Replay(make(model, {})), random.Random(seed)
        while len(walk.actions) < 60 and (enabled := walk.model.actions(walk.state)):
            walk.forward(chance.choice(list(enabled)))
        yield walk


def test_no_value_breaks_a_log_of_shiviz() -> None:
    events = events_of(written(nasty(), "title", "shiviz"))
    assert len({host for _, host, _ in events}) == 3
    assert [event for event, host, _ in events if 'host {"host": 3}' in event]
    with pytest.raises(InvalidInput, match="no step"):
        written(Diagram({"a": "a"}, ()), "title", "shiviz")


MERMAID = re.compile(
    r"sequenceDiagram|    title [^#;\n]+|    participant p\d+ as [^#;\n]+|"
    r"    Note over p\d+: [^#;\n]+|    p\d+(-\)|-x|--\)|->>)p\d+: [^#;\n]+"
)
PLANTUML = re.compile(
    r'@startuml|@enduml|title .+|participant "[^"]+" as p\d+|note over p\d+ : .+|p\d+ (->>|->x|-->>|->) p\d+ : .+'
)


def test_no_value_breaks_a_diagram_of_mermaid() -> None:
    text = written(nasty(), NASTY[0], "mermaid")
    lines = [re.sub(r"#\d+;", "_", line) for line in text.split("\n")[:-1]]
    assert all(MERMAID.fullmatch(line) for line in lines)
    texts = [re.sub(r"^    p\d+\S+: ", "", line) for line in lines]
    assert not re.search(r"[<>%$`{}\\@\[\]|~*\"&^]|^(no)?wrap:", "\n".join(texts), re.MULTILINE)
    decoded = re.sub(r"#(\d+);", lambda match: chr(int(match[1])), text)
    assert all(f"{number}. {'CRASH: ' * ((number - 1) % 2)}{each}" in decoded for number, each in enumerate(NASTY, 1))
    assert "participant p10 as wrap#58; long" in text


def test_no_value_breaks_a_diagram_of_plantuml() -> None:
    text = written(nasty(), NASTY[0], "plantuml")
    lines = [re.sub(r"<U\+[0-9A-F]{4,5}>", "", line) for line in text.split("\n")[:-1]]
    assert all(PLANTUML.fullmatch(line) for line in lines)
    texts = [re.sub(r"^p\d+ \S+ p\d+ : ", "", line) for line in lines[1:-1]]
    assert not re.search(r"[<>%$`{}\\\[\]|~*&^]|//|__|/'", "\n".join(texts))
    decoded = re.sub(r"<U\+([0-9A-F]+)>", lambda match: chr(int(match[1], 16)), text).replace("\u200b", "")
    assert all(f"{number}. {'CRASH: ' * ((number - 1) % 2)}{each}" in decoded for number, each in enumerate(NASTY, 1))
    assert '"<U+0023> list"' in text
    assert "<U+005C>t" not in text  # which PlantUML takes for a tabulator


@pytest.mark.parametrize("to", ["mermaid", "plantuml"])
def test_every_message_is_drawn_once_where_it_arrives(to: str) -> None:
    for name in every():
        diagram = diagram_of(name)
        text = written(diagram, "title", to)
        drawn = [each for each in diagram.flights if {each.source, each.target} <= diagram.lanes.keys()]
        assert len(re.findall(r"\(sent in step|\(there from the beginning", text)) == len(drawn)
        assert len(re.findall(r"p\d+(?:-x| ->x )p\d+", text)) == sum(each.lost for each in drawn)
        for number in range(1, len(diagram.steps) + 1):
            assert len(re.findall(rf": {number}\. ", text)) == 1


def test_a_sequence_diagram_word_by_word() -> None:
    steps = (
        Step("a", Event.STEP, (), "Asks."),
        Step("b", Event.STEP, ("c",), "Stores."),
        Step("b", Event.CRASH, ("c",), "Dies."),
    )
    flights = (
        Flight("a", 1, "b", 2, slip("ask")),
        Flight("a", 1, "b", 3, slip("again"), lost=True),
        Flight("b", 2, "a", 4, slip("yes")),
    )
    diagram = Diagram({"a": "client", "b": "server", "c": "store"}, steps, flights)
    assert written(diagram, "A run", "mermaid").splitlines() == [
        "sequenceDiagram",
        "    title A run",
        "    participant p1 as client",
        "    participant p2 as server",
        "    participant p3 as store",
        "    Note over p1: 1. Asks.",
        "    p1-)p2: ask (sent in step 1)",
        "    p2->>p3: 2. Stores.",
        "    p1-xp2: lost: again (sent in step 1)",
        "    Note over p2: 3. CRASH: Dies.",
        "    p2->>p3: step 3",
        "    p2--)p1: under way: yes (sent in step 2)",
    ]


def test_equal_runs_give_equal_text_in_every_process() -> None:
    names = ["delivery.doubled_by_the_network", "pipeline.jump_back"]
    code = (
        f"from labkit import lab\nfor to in {[*FORMATS]}:\n  for name in {names}: print(lab.export(name, to), end='')"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert texts == {"".join(lab.export(name, to) for to in FORMATS for name in names).encode()}


CRASH = {"point": "sink.mid_write", "batch": 0, "signal": 9, "offset_log": [0], "commit_log": []}
CRASH |= {"recovery": ['aborted "q"\n']}
EVENTS = [
    Observation(0, 'a;"#\n<b>', 1, 0, 1),
    Reading("crash 1"),
    Observation(0, 'a;"#\n<b>', 1, 0, 2),
    Reading("end"),
]


@pytest.fixture
def outcome(tmp_path: Path) -> Outcome:
    """Write the folder of a finished run, as `conclude` does."""
    run = Run(plan(crashes=["sink.mid_write@0"]), RunFolder(tmp_path / "run"), crashes=[CRASH])
    run.folder.path.mkdir()
    run.keep_evidence({"files": []})
    verdict = judge([], History(history_of(EVENTS, run.folder.history)))
    record = RunRecord(run.scenario, run.folder, verdict, [CRASH])
    run.folder.verdict.write_text(json.dumps(record.to_json()))
    write_diagram(record)
    return Outcome(record)


@pytest.mark.parametrize("to", FORMATS)
def test_a_real_run_is_exported_from_its_folder_and_from_its_outcome(outcome: Outcome, to: str) -> None:
    text = lab.export(outcome, to)
    assert text == lab.export(outcome.folder, to) == lab.export(str(outcome.folder), to)
    assert "driver 2 starts" in text
    assert 'aborted "q"' in text or to in ("mermaid", "plantuml")
    if to == "shiviz":
        assert text.count(r'a;"#\n<b> = 1 visible') == 2
    if to == "svg":
        assert text == (outcome.folder / "spacetime.svg").read_text()


def test_the_events_of_a_real_run_follow_one_another(outcome: Outcome) -> None:
    """Only the reader's look at the end has no part in what the drivers do."""
    events = list(happenings(of_run([CRASH], EVENTS)))
    steps = [next(each for each in events if each.step == number) for number in range(1, events[-1].step + 1)]
    assert [step.lane for step in steps] == ["driver", "driver", "driver", "checkpoint", "driver", "driver", "reader"]
    assert all(before(one, other) for one, other in pairwise(steps))


def test_the_crash_of_an_executor_is_in_the_diagram_and_ordered_with_nothing() -> None:
    diagram = of_run([{**CRASH, "executor": 7}], [EVENTS[0], Reading("end")])
    [killed] = [each for each in happenings(diagram) if each.lane == "executor"]
    assert "signal 9 at sink.mid_write, batch 0, at an unknown time" in killed.text
    assert killed.clock == {"executor": 1}
    assert all("executor" not in each.clock for each in happenings(diagram) if each != killed)


def test_what_a_simulated_run_is_called_does_not_matter() -> None:
    trace = every()["pipeline.jump_back"].trace
    texts = {lab.export(each, "mermaid") for each in ("jump_back", str(trace), trace)}
    texts |= {lab.export(each, "mermaid") for each in (lab.show(trace), lab.replay(trace))}
    assert len(texts) == 1
    assert ET.fromstring(lab.export(trace, "svg")).tag.endswith("svg")


def test_the_verb_prints_or_writes_the_same(tmp_path: Path, outcome: Outcome) -> None:
    trace = str(every()["pipeline.jump_back"].trace)
    (tmp_path / "trace.txt").write_text(trace)
    for words in (trace, "pipeline.jump_back", tmp_path / "trace.txt"):
        assert labkit("export", words, "--as", "shiviz") == (0, lab.export(trace, "shiviz"), "")
    for _ in range(2):
        assert labkit("export", outcome.folder, "--as", "plantuml", "-o", tmp_path / "run.puml") == (0, "", "")
        assert (tmp_path / "run.puml").read_text() == lab.export(outcome, "plantuml")


def test_the_verb_answers_what_it_cannot_export_with_one_sentence(tmp_path: Path, outcome: Outcome) -> None:
    run = outcome.folder
    for damage in ('{"crashes": [{}], "readings": []}', '{"crashes": "x", "readings": []}', "[]", "{"):
        (run / "evidence.json").write_text(damage)
        assert "damaged" in refusal("export", str(run), "--as", "svg")
    (run / "evidence.json").unlink()
    assert "evidence.json is missing" in refusal("export", str(run), "--as", "svg")
    assert "verdict.json is missing" in refusal("export", str(tmp_path), "--as", "svg")
    assert "version 0 of pipeline" in refusal("export", "pipeline~0~~start", "--as", "svg")
    assert "step 1" in refusal("export", "pipeline~1~~crash", "--as", "svg")
    assert "cannot be read" in refusal("export", str(tmp_path / "none" / "trace"), "--as", "svg")
    assert "xxx" in refusal("export", "x" * 5000, "--as", "svg")
    assert "'nowhere'" in refusal("export", "nowhere", "--as", "svg")
    assert "mermaid" in refusal("export", "jump_back", "--as", "merm")
    assert "--as" in refusal("export", "jump_back")
    assert "--out" in refusal("export", "jump_back", "--as", "svg", "--out", str(tmp_path / "none" / "x"))
    assert "--out" in refusal("export", "jump_back", "--as", "svg", "--out", str(tmp_path))


def test_an_old_verdict_or_history_is_refused_too(outcome: Outcome) -> None:
    for name in ("verdict.json", "history.jsonl"):
        whole = (outcome.folder / name).read_text()
        for damage in ("{}\x00", "[1]", '{"scenario": {}}', '{"scenario": {"strategy": "no"}}'):
            if name == "history.jsonl" and damage.startswith('{"scenario"'):
                continue  # an entry may have more fields than are read
            (outcome.folder / name).write_text(damage)
            assert "damaged" in refusal("export", str(outcome.folder), "--as", "svg")
        (outcome.folder / name).write_text(whole)
    assert labkit("export", outcome.folder, "--as", "svg")[0] == 0


def test_every_format_is_in_the_reference_and_in_the_docstring() -> None:
    page = (ROOT / "docs" / "reference" / "simulators.md").read_text()
    for to in FORMATS:
        assert f"| `{to}` |" in page
        assert f"`{to}`" in (lab.export.__doc__ or "")
