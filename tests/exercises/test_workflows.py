"""The keys of exercise `11b-runner`: every key that tells all steps of all runs apart is paid."""

import pytest
from choosing import slow_but
from exercise_sources import run

from labkit.grading.hidden import variants
from labkit.teach.exercises.contract import Variant
from labkit.teach.exercises.namespace import InNotebook
from labkit.teach.exercises.registry import EXERCISES

ENGINE = """
import base64, hashlib, json, uuid, zlib
from urllib.parse import quote, urlencode
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
    "f'{len(run)}:{run}{number}'",
    "f'{run}{number:09}'",
    "f'{number:012} {run}'",
    "f'{run}-{number:x}'",
    "f'{number}{run!r}'",
    "json.dumps(run) + str(number)",
    "urlencode({'run': run, 'number': number})",
    "quote(run) + '/' + str(number)",
    "ascii([run, number])",
    "f'{number}{hashlib.sha256(run.encode()).hexdigest()}'",
    "hashlib.sha256(repr((run, number)).encode()).hexdigest()[:16]",
    "hashlib.blake2b(json.dumps([number, run]).encode(), digest_size=8).hexdigest()",
    "base64.urlsafe_b64encode(zlib.compress(f'{number}/{run}'.encode())).decode()",
    "f'{run}@{number}'[::-1]",
    "f'{run}-{number}-{starts[0]}'",
)


def of_keys() -> list[Variant]:
    """The variants in which steps or runs are alike; for a key, the others make no difference."""
    every = (*EXERCISES["11b-runner"].public, *variants("11b-runner", 0), *variants("11b-runner", 1))
    return [each for each in every if {"probe", "runs", "firsts"} & set(dict(each.parameters))]


@pytest.mark.parametrize("key", slow_but(KEYS[::16], KEYS, {*KEYS} - {*KEYS[::4]}))
def test_a_key_that_is_always_different_is_right(key: str):
    exercise, names = EXERCISES["11b-runner"], run(ENGINE.replace("KEY", key))
    assert len(of_keys()) > 5
    for variant in of_keys():
        finding = exercise.judge(InNotebook(exercise.answer, names), variant)
        assert finding.passed, (variant.name, finding.message)


TOO_SHORT = (
    "hashlib.sha256(repr((run, number)).encode()).hexdigest()[:8]",
    "f'{hashlib.sha256(run.encode()).hexdigest()[:8]}-{number}'",
    "f'{number}/{zlib.crc32(run.encode())}'",
    "str(int(hashlib.sha256(repr((run, number)).encode()).hexdigest(), 16) % 10**9)",
)


@pytest.mark.parametrize("key", slow_but(TOO_SHORT[:1], TOO_SHORT))
def test_a_hash_of_few_bits_is_wrong_also_with_the_number_beside_it(key: str):
    exercise, names = EXERCISES["11b-runner"], run(ENGINE.replace("KEY", key))
    probes = [each for each in of_keys() if "probe" in dict(each.parameters)]
    assert len(probes) == 3
    for variant in probes:
        finding = exercise.judge(InNotebook(exercise.answer, names), variant)
        assert not finding.passed
        assert "bits only" in finding.message


GLUED = [
    form.replace("W", str(width))
    for form in ("f'{run}{number:0W}'", "f'{number:0W}{run}'", "f'{run}{number:<W}'")
    for width in range(1, 9)
]


@pytest.mark.parametrize("key", slow_but(GLUED[2::9], GLUED))
def test_a_key_without_anything_between_its_parts_is_wrong_at_every_width(key: str):
    exercise, names = EXERCISES["11b-runner"], run(ENGINE.replace("KEY", key))
    for variant in of_keys():
        if "probe" in dict(variant.parameters):
            assert not exercise.judge(InNotebook(exercise.answer, names), variant).passed
