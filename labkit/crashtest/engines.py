"""Pipelines of real engines that are shipped with the lab: what each is, what is expected of it, and its kept record.

Programs, `engines.toml` and records lie in `data/pipelines/engines`, whose README says how they were made. This module
must not run a pipeline, must not fetch anything, and must not judge.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

import msgspec

from labkit.core.errors import InvalidInput
from labkit.spark.options import shipped

ENGINES = shipped("pipelines/engines")
"""The folder with the programs, their readers and their input."""
RECORDS = ENGINES / "records"
PROJECT = "project"
"""The name of the lab's own environment."""


@dataclass(frozen=True)
class Pipeline:
    """One entry of engines.toml, which says what the fields mean."""

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
        """The pipeline's file."""
        return ENGINES / (self.pipeline or f"{self.name}.py")

    @property
    def is_ours(self) -> bool:
        """Whether the lab's own environment is enough, so that nothing but jars is fetched."""
        return {self.environment, self.read_environment} == {PROJECT}


def pipelines() -> dict[str, Pipeline]:
    """Every pipeline, by name."""
    text = (ENGINES / "engines.toml").read_text(encoding="utf-8")
    return {name: msgspec.convert({"name": name, **said}, Pipeline) for name, said in tomllib.loads(text).items()}


def named(name: str) -> Pipeline:
    """One pipeline. Raises `InvalidInput`."""
    there = pipelines()
    if name not in there:
        raise InvalidInput(f"There is no pipeline {name[:40]}; there are {', '.join(there)}.")
    return there[name]


class Kept(msgspec.Struct, frozen=True):
    """What a pipeline was seen to do, and how anybody sees it again."""

    command: str
    versions: list[str]
    effects: list[str]

    @property
    def name(self) -> str:
        """The pipeline that was run."""
        return self.command.split()[2]


def kept(name: str) -> Kept:
    """The record of a pipeline, or of the one whose program it shares. Raises `InvalidInput`."""
    path = RECORDS / f"{name}.json"
    if not path.exists():
        path = RECORDS / f"{named(name).program.stem}.json"
    if not path.exists():
        raise InvalidInput(f"{path.name} is not there; python tools/pipelines.py {name} --record writes it.")
    return msgspec.json.decode(path.read_bytes(), type=Kept)
