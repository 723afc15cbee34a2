"""Reads the recorded results of crash tests of real systems, and chooses pipelines by the names that a user typed."""

import tomllib

import msgspec

from labkit.teach.engine_pipelines import ENGINES, Pipeline, named, pipelines

VERDICTS = ENGINES / "verdicts.jsonl"
"""The recorded results of crash tests, one to a line; `tools/pipelines.py NAME --keep` writes them."""


def not_run() -> dict[str, str]:
    """Return the engines that labkit has not crash-tested, as a dict from engine to the reason."""
    return tomllib.loads((ENGINES / "not_run.toml").read_text(encoding="utf-8"))


def chosen(names: str) -> list[Pipeline]:
    """Return the shipped pipelines that the user selected by a text such as `flink,spark_files`.

    The names between the commas are names of pipelines, names of engines (which select all pipelines of the engine), or
    `all`. Raises `InvalidInput` for an unknown name.
    """
    results: dict[str, Pipeline] = {}
    for name in names.split(","):
        of_system = {each.name: each for each in pipelines().values() if name in {"all", each.key}}
        results |= of_system or {name: named(name)}
    return list(results.values())


class Verdict(msgspec.Struct, frozen=True):
    """The recorded result of a crash test of a shipped pipeline, as one line of the file `verdicts.jsonl`."""

    name: str
    """The pipeline."""
    day: str
    """The date of the run, as `2026-11-27`."""
    labkit: str
    versions: list[str]
    """The versions of the tested packages, jars and servers, each as `NAME VERSION`."""
    options: list[str]
    """The options of `labkit crashtest`, without those that every test of the pipeline has."""
    claim: str
    """What the report claims, as `not refuted (12 of 83 points)`."""
    strength: str
    guarantee: str
    """The best guarantee that the runs allow, or `unknown`."""
    violated: list[str]
    """The violated properties among lost, duplicate, unexpected and stuck."""
    weakest: str
    """The weakest run, as `before rename done #1 (job.py:8 in mark)`; empty if no run violates a property."""
    because: str
    """What was wrong in the weakest run."""
    found: int
    """The number of crash points that the run without a crash showed."""
    tried: int
    runs: int
    unknown: int
    """The number of runs that prove nothing, for example because they did not reach their point."""
    seconds: int
    machine: str = ""
    """The kernel, Python and SQLite of the run, which no lock fixes."""


def verdicts() -> dict[str, Verdict]:
    """Return the recorded crash test results, as a dict from the name of the pipeline to its result."""
    lines = VERDICTS.read_bytes().splitlines() if VERDICTS.exists() else []
    records = (msgspec.json.decode(line, type=Verdict) for line in lines)
    return {each.name: each for each in records}
