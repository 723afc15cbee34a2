"""`labkit explore`, `replay`, `matrix --engine sim`: what they print, how they exit, what they refuse."""

import json
from pathlib import Path

import pytest
from command import labkit, refusal

from labkit.cli.matrix import agreement
from labkit.sim.scenarios import every


def test_explore_prints_what_it_found_as_json():
    code, out, words = labkit(
        "explore", "two_phase_commit", "--set", "textbook=true", "--set", "participants=3", "--json"
    )
    found = json.loads(out)
    assert (code, words) == (0, "")
    assert found.pop("seconds") < 10
    assert found == {
        "model": "two_phase_commit",
        "parameters": found["parameters"],
        "unique_states": 288,
        "generated_states": 761,
        "depth": 10,
        "exhausted": True,
        "stopped": "",
        "violations": [],
        "never_reached": [],
    }
    assert found["parameters"]["participants"] == 3


def test_a_violation_ends_in_1_with_a_trace_that_replays():
    code, out, _ = labkit("explore", "two_phase_commit", "--set", "broken=heuristic", "--json")
    violations = {violation["property"]: violation for violation in json.loads(out)["violations"]}
    assert (code, set(violations)) == (1, {"atomic", "promise"})
    code, out, _ = labkit("replay", violations["atomic"]["trace"], "--json")
    again = json.loads(out)
    assert code == 1
    assert violations["atomic"] in again["violations"]
    assert len(again["steps"]) == 9
    assert again["blocked_steps"] == [1, 4]


def test_explore_for_a_person_gives_the_command_that_shows_it():
    code, out, _ = labkit("explore", "pipeline", "--set", "strategy=append")
    assert code == 1
    assert "VIOLATED no_duplicate, 15 steps: not exactly-once" in out
    assert "  labkit replay pipeline~1~strategy.append~~start-1.resolved-0.plan-0." in out


@pytest.mark.parametrize("cores", ["1", "2"])
@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("--max-states", "500", "500 states were reached"),
        ("--seconds", "0.000001", "the time was up (--seconds)"),
        ("--megabytes", "1", "the memory was used up (--megabytes)"),
    ],
)
def test_a_limit_ends_in_2_and_says_which(option: str, value: str, reason: str, cores: str):
    line = ("explore", "two_phase_commit", "--set", "participants=6", "--cores", cores)
    code, out, _ = labkit(*line, option, value, "--json")
    found = json.loads(out)
    assert (code, found["exhausted"], found["stopped"]) == (2, False, reason)
    assert found["unique_states"] < 20_000


def test_two_cores_answer_as_one_does():
    line = ("explore", "pipeline", "--set", "strategy=append", "--json")
    one, two = (labkit(*line, "--cores", cores) for cores in ("1", "2"))
    alone, both = (json.loads(out) for _, out, _ in (one, two))
    del alone["seconds"], both["seconds"]
    assert (one[0], two[0]) == (1, 1)
    assert alone == both
    assert alone["violations"]


def test_symmetry_counts_classes_and_finds_the_same():
    line = ("explore", "two_phase_commit", "--set", "broken=early", "--json")
    whole, classes = (labkit(*line, *more) for more in ((), ("--symmetry",)))
    assert (whole[0], classes[0]) == (1, 1)
    every, few = (json.loads(out) for _, out, _ in (whole, classes))
    assert ("symmetry" in every, few["symmetry"]) == (False, True)
    assert few["unique_states"] < every["unique_states"]
    assert [each["property"] for each in few["violations"]] == [each["property"] for each in every["violations"]]
    code, out, _ = labkit(*line[:-1], "--symmetry")
    assert code == 1
    assert f"classes of states  {few['unique_states']:,}" in out


def test_walks_are_repeatable():
    line = ("explore", "two_phase_commit", "--set", "participants=5", "--set", "broken=forget_vote", "--walks", "50")
    first, again = (labkit(*line, "--json") for _ in range(2))
    assert first == again
    assert first[0] == 1


def test_replay_lists_the_scenarios_and_plays_one():
    code, out, _ = labkit("replay", "--json")
    assert (code, set(json.loads(out)["scenarios"])) == (0, set(every()))
    code, out, _ = labkit("replay", "decide_then_commit")
    assert code == 0
    assert f"Watch for: {every()['pipeline.decide_then_commit'].watch_for}" in out
    assert "guarantee             exactly-once" in out


def test_replay_reads_a_file(tmp_path: Path):
    _, out, _ = labkit("replay", "pipeline.zombie", "--json")
    plain = {name: json.loads(out)[name] for name in ("model", "version", "parameters", "actions")}
    (tmp_path / "trace.json").write_text(json.dumps(plain))
    (tmp_path / "trace").write_text(json.loads(out)["trace"] + "\n")
    for name in ("trace.json", "trace"):
        code, again, _ = labkit("replay", name, "--json", cwd=tmp_path)
        assert code == 1
        assert json.loads(again) == {**json.loads(out), "watch_for": None}


REFUSED = {
    "explore": "no simulator is named; choose one of delivery, snapshot, barriers, two_phase_commit, pipeline, "
    "changelog, kafka_log, orders.",
    "explore pipelin": "there is no simulator 'pipelin'; did you mean 'pipeline'?",
    "explore pipeline --set crashes": "--set crashes: write it as name=value, as in --set participants=3.",
    "explore pipeline --set crashs=1": "pipeline has no parameter 'crashs'; did you mean 'crashes'?",
    "explore pipeline --set crashes=9": "crashes=9: choose a whole number from 0 to 4.",
    "explore pipeline --set crashes=1 --set crashes=2": "--set crashes=2: crashes is set twice; leave one of them out.",
    "explore pipeline --set strategy=wall": "strategy=wall: unknown; did you mean 'wal'?",
    "explore pipeline --max-states 0": "--max-states 0: choose a whole number from 1.",
    "explore pipeline --seconds 0": "--seconds 0.0: must be more than 0.",
    "explore pipeline --megabytes 0": "--megabytes 0: choose a whole number from 1.",
    "explore pipeline --cores 0": "--cores 0: choose 1 to 64.",
    "explore pipeline --master local[2] --cores 2": "--cores and --master exclude each other",
    "explore pipeline --symmetry": "leave --symmetry out",
    "explore two_phase_commit --symmetry --walks 3": "--symmetry and --walks exclude each other",
    "explore pipeline --master spork": "write local[4] for threads of this machine, or spark://HOST:PORT",
    "explore pipeline --walks -1": "--walks -1: choose a whole number from 0.",
    "explore pipeline --walks 1 --steps 0": "--steps 0: choose a whole number from 1 to 10000.",
    "replay zombi": "there is no scenario 'zombi'; did you mean 'zombie'?",
    "replay none.json": "none.json: this file cannot be read (No such file or directory)",
    "replay pipeline~9~~start-1": "version 9 of pipeline",
    "replay pipeline~1~~start-2": "step 1 of the trace: start(2) is not enabled in this state: driver dead; "
    "q0 after 0 drivers, planned -, decided -1; seen -; to come 1 crashes. Enabled are start(1).",
    "matrix --engine spak": "--engine spak: unknown; did you mean 'spark'?",
    "bench --only explore --rounds 3": "measurements are `make bench` in a checkout, for example: "
    'make bench ONLY="crash explore" ROUNDS=3.',
}


@pytest.mark.parametrize("line", REFUSED)
def test_a_mistake_gets_one_sentence(line: str, tmp_path: Path):
    assert REFUSED[line] in refusal(*line.split(), cwd=tmp_path)


BEGIN = b'{"model": "pipeline", "parameters": {}, "version": '
FILES = {
    BEGIN: "(Input data was truncated)",
    BEGIN + b'"1", "actions": []}': "Expected `int`, got `str` - at `$.version`",
    BEGIN + b'1, "actions": ["start("]}': "'start(' is not an action; write",
    BEGIN + b'2, "actions": []}': "version 2 of pipeline",
    b"\xff\xfe~~": "can't decode byte 0xff",
    b"": "'' is not a complete trace",
    b"[" * 300_000: "is not a complete trace",
    b'{"model":' + b"[" * 300_000: "not a complete trace",
    b"x" * 10_000_000: "400000 bytes",
    b'{"model": "pipeline", "version": 1, "parameters": {}, "actions": ['
    + b'"a",' * 99_000
    + b'"a"]}': "99001 actions",
}


@pytest.mark.parametrize("content", FILES, ids=[words[:30] for words in FILES.values()])
def test_a_stranger_s_file_gets_one_sentence(content: bytes, tmp_path: Path):
    (tmp_path / "t.json").write_bytes(content)
    sentence = refusal("replay", "t.json", cwd=tmp_path)
    assert sentence.startswith("t.json: ")
    assert FILES[content] in sentence


def test_the_simulated_grid_agrees_with_every_prediction(tmp_path: Path):
    code, out, _ = labkit("matrix", "--engine", "sim", "--json", cwd=tmp_path)
    found = json.loads(out)
    assert (code, found["not_modelled"]) == (0, [])
    assert {cell["agrees"] for cell in found["cells"]} == {True}
    assert all(cell["simulated"] == cell["expected"] and cell["real"] is None for cell in found["cells"])
    code, out, _ = labkit("matrix", "--engine", "sim", cwd=tmp_path)
    count = len(found["cells"])
    assert f"{count} of {count} combinations agree; no simulator models 0 of them." in out
    assert list(tmp_path.iterdir()) == []


def test_voices_agree_only_if_all_of_them_say_what_was_predicted():
    one, other = {"lost": []}, {"lost": [1]}
    assert agreement(one, [one, one]) is True
    assert agreement(one, [one, other]) is False
    assert agreement(one, [None, other]) is False
    assert agreement(one, [None, one]) is None
    assert agreement(one, []) is None
