"""The keys of exercise `11b-runner`: every key that tells all steps of all runs apart is paid."""

import pytest
from exercise_sources import run

from labkit.grading.hidden import variants
from labkit.teach.exercises.contract import Variant
from labkit.teach.exercises.namespace import InNotebook
from labkit.teach.exercises.registry import EXERCISES

ENGINE = """
import base64, hashlib, json, uuid
from urllib.parse import quote
def next_action(step, journal, here, reply, now):
    run, name, number = step["run"], step["name"], step["number"]
    entries = [entry for entry in journal if entry[0] == number]
    if any(entry[1] != name for entry in entries):
        return ["refuse"]
    results = [entry[3] for entry in entries if entry[2] == "done"]
    if results:
        return ["return", results[0]]
    if reply:
        return ["done", reply[0]]
    starts = [entry[3] for entry in entries]
    if not starts:
        return ["start"]
    if here != ["start"] and now - starts[0] >= step["keeps"]:
        return ["stop"]
    return ["send", KEY]
"""
KEYS = (
    "f'{run}-{number}'",
    "f'{run}/{number}'",
    "f'{number} {run}'",
    "f'{run}:{number:05}'",
    "json.dumps([run, number])",
    "json.dumps(step, sort_keys=True)",
    "repr((name, run, number))",
    "f'{run!r}-{name!r}-{number}'",
    "f'{len(run)}:{run}{len(name)}:{name}{number}'",
    "f'{len(run)}-{run}-{number}-{name}'",
    "'/'.join(quote(part, safe='') for part in (run, name, str(number)))",
    "f'{run.encode().hex()}-{name.encode().hex()}-{number}'",
    "base64.b64encode(f'{number}.{run}'.encode()).decode()",
    "hashlib.sha256(f'{run}/{number}'.encode()).hexdigest()",
    "hashlib.md5(json.dumps([run, name, number]).encode()).hexdigest()",
    "str(uuid.uuid5(uuid.NAMESPACE_URL, f'{run}#{number}'))",
)


def of_keys() -> list[Variant]:
    """The variants in which steps or runs are alike; for a key, the others make no difference."""
    every = (*EXERCISES["11b-runner"].public, *variants("11b-runner", 0), *variants("11b-runner", 1))
    return [each for each in every if {"probe", "runs"} & set(dict(each.parameters))]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_that_is_always_different_is_right(key: str):
    exercise, names = EXERCISES["11b-runner"], run(ENGINE.replace("KEY", key))
    assert len(of_keys()) > 5
    for variant in of_keys():
        finding = exercise.judge(InNotebook(exercise.answer, names), variant)
        assert finding.passed, (variant.name, finding.message)
