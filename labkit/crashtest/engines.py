"""Reads the shipped pipelines of real engines: each has a description, an expected result, and a recorded test.

The programs, `engines.toml` and the records are in `data/pipelines/engines`, whose README says how they were made. This
module only reads them; it runs no pipeline.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

import msgspec

from labkit.core.errors import InvalidInput
from labkit.spark.options import shipped

ENGINES = shipped("pipelines/engines")
"""The folder of the pipelines' programs, their readers and their input."""
RECORDS = ENGINES / "records"
PROJECT = "project"
"""The name of labkit's own Python environment in `engines.toml`."""


@dataclass(frozen=True)
class Pipeline:
    """A shipped pipeline of a real engine: one entry of `engines.toml`, which explains the fields."""

    name: str
    does: str
    promise: str
    at: str
    guarantee: str
    axes: tuple[str, ...]
    reader: str
    shown_by: tuple[str, ...] = ()
    environment: str = PROJECT
    read_environment: str = PROJECT
    pipeline: str = ""
    jars: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def program(self) -> Path:
        """The path of the pipeline's program."""
        return ENGINES / (self.pipeline or f"{self.name}.py")

    @property
    def is_ours(self) -> bool:
        """Whether the pipeline runs in labkit's own Python environment, so that only jars are downloaded for it."""
        return {self.environment, self.read_environment} == {PROJECT}


def pipelines() -> dict[str, Pipeline]:
    """Return every shipped pipeline by name."""
    text = (ENGINES / "engines.toml").read_text(encoding="utf-8")
    return {name: msgspec.convert({"name": name, **fields}, Pipeline) for name, fields in tomllib.loads(text).items()}


def named(name: str) -> Pipeline:
    """Return the pipeline with this name. Raises `InvalidInput` if there is none."""
    all_pipelines = pipelines()
    if name not in all_pipelines:
        raise InvalidInput(f"There is no pipeline {name[:40]}; choose one of {', '.join(all_pipelines)}.")
    return all_pipelines[name]


class Kept(msgspec.Struct, frozen=True):
    """The recorded test of a pipeline: the command that repeats it, the programs' versions, and the effects."""

    command: str
    versions: list[str]
    effects: list[str]

    @property
    def name(self) -> str:
        """The name of the pipeline that was run."""
        return self.command.split()[2]


def kept(name: str) -> Kept:
    """Return the recorded test of the pipeline `name`. Raises `InvalidInput` if there is no record."""
    path = RECORDS / f"{name}.json"
    if not path.exists():
        path = RECORDS / f"{named(name).program.stem}.json"
    if not path.exists():
        raise InvalidInput(
            f"the record {path.name} is missing; create it with python tools/pipelines.py {name} --record."
        )
    return msgspec.json.decode(path.read_bytes(), type=Kept)
