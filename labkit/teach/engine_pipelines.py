"""Read the pipelines of real systems that labkit ships, each with an expected result and recorded system calls.

The programs, `engines.toml` and the recordings are in `data/pipelines/engines`, whose README says how they were made.
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
    """A pipeline of a real engine, such as Flink, that labkit ships; `engines.toml` explains the fields."""

    name: str
    system: str
    does: str
    promise: str
    source: str
    at: str
    guarantee: str
    axes: tuple[str, ...]
    change: str
    reader: str
    packages: tuple[str, ...]
    predicted: str = ""
    report: str = ""
    why: str = ""
    shown_by: tuple[str, ...] = ()
    environment: str = PROJECT
    read_environment: str = PROJECT
    pipeline: str = ""
    arguments: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    jars: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The engine's name as users type it on the command line, such as `delta-lake` for `Delta Lake`."""
        return self.system.lower().replace(" ", "-")

    @property
    def program(self) -> Path:
        """The path of the program that runs this pipeline."""
        return ENGINES / (self.pipeline or f"{self.name}.py")

    @property
    def is_ours(self) -> bool:
        """Whether the pipeline and its reader need no other Python environment than labkit's own."""
        return {self.environment, self.read_environment} == {PROJECT}


def pipelines() -> dict[str, Pipeline]:
    """Return all pipelines of real engines that labkit ships, as a dict from name to pipeline."""
    text = (ENGINES / "engines.toml").read_text(encoding="utf-8")
    return {name: msgspec.convert({"name": name, **fields}, Pipeline) for name, fields in tomllib.loads(text).items()}


def named(name: str) -> Pipeline:
    """Return the shipped pipeline with this name. Raises `InvalidInput` if there is none."""
    all_pipelines = pipelines()
    if name not in all_pipelines:
        raise InvalidInput(f"There is no pipeline {name[:40]}; choose one of {', '.join(all_pipelines)}.")
    return all_pipelines[name]


class Kept(msgspec.Struct, frozen=True):
    """A recorded run of a shipped pipeline: the command that ran it, the software's versions, and the system calls."""

    command: str
    versions: list[str]
    effects: list[str]

    @property
    def name(self) -> str:
        return self.command.split()[2]


def kept(name: str) -> Kept:
    """Return the recorded run of the shipped pipeline `name`. Raises `InvalidInput` if there is no recording."""
    path = RECORDS / f"{name}.json"
    if not path.exists():
        path = RECORDS / f"{named(name).program.stem}.json"
    if not path.exists():
        raise InvalidInput(
            f"the recording {path.name} is missing; create it with `python tools/pipelines.py {name} --record`."
        )
    return msgspec.json.decode(path.read_bytes(), type=Kept)
