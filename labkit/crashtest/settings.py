"""The user's options for the test of a sink, checked before anything starts."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from labkit.core.errors import InvalidInput
from labkit.core.words import nearest
from labkit.crashtest.instrument.effects import check_id
from labkit.crashtest.project import Project
from labkit.crashtest.spark_options import SparkOptions, spark_options
from labkit.crashtest.subject import BY_NAME, Adapter, Subject
from labkit.crashtest.verdict import EYES, VARIANTS

MOST_BATCHES = 5
"""More batches would not fit into a sum: each query of a variant has digits of its own."""


@dataclass(frozen=True)
class Settings:
    """The settings of one test: a sink, its reader, and how much of it is to be tried."""

    subject: Subject
    reader: Subject
    batches: int = 3
    quick: bool = False
    rows: Path | None = None
    options: dict[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    limit: float = 30.0
    """Seconds within which a sink must do something."""
    seconds: float = 0.0
    """Seconds for all runs; a run that does not fit is unknown. 0: 170 if quick, 900 if not."""
    code: tuple[str, ...] = ()
    """Folders whose code counts as the sink's, beside the project."""
    ignored: tuple[str, ...] = ()
    """Patterns of files and peers whose effects are none of the sink's."""
    spark: SparkOptions = field(default_factory=SparkOptions)
    """Options for the sessions of the test's drivers."""
    by_kernel: bool = False
    """Whether a plain job is killed at its system calls, instead of one with instruments at their effects."""
    watched: tuple[Path, ...] = ()
    """With the kernel's eyes: folders in which the sink writes, beside the working folder."""
    lines: bool = False
    """Whether places before lines are tried even where all effects are seen."""
    adapter: Adapter | None = None
    """How Spark calls the sink; None: told from the file. For a format or a table, `subject` has the reader's file and
    the sink's own name."""

    @cached_property
    def project(self) -> Project:
        """The user's project, whose effects count."""
        return Project.of(self.subject.file, self.code, self.ignored)

    @property
    def settle(self) -> float:
        """Seconds for which the store is watched after a run."""
        return 0.6 if self.quick else 1.0

    @property
    def budget(self) -> float:
        """Seconds for all runs."""
        return self.seconds or (170.0 if self.quick else 900.0)

    def command(self, only: str = "") -> str:
        """The command line that repeats the test, or one run of it."""
        named = f"--{self.adapter} {self.subject.name}"
        file = f"{self.subject.file}:{self.subject.name}"
        by_name = self.adapter in BY_NAME
        parts = ["labkit crashtest", named if by_name else file]
        if by_name or self.reader != Subject(self.subject.file, "read"):
            parts.append(f"--reader {self.reader.file}:{self.reader.name}")
        if self.batches != 3:
            parts.append(f"--batches {self.batches}")
        if self.rows is not None:
            parts.append(f"--rows {self.rows}")
        parts += [f"--option {name}={value}" for name, value in self.options.items()]
        parts += self.spark.words()
        parts += [f"--code {folder}" for folder in self.code]
        parts += [f"--ignore '{pattern}'" for pattern in self.ignored]
        if self.by_kernel:
            parts += ["--eyes kernel", *(f"--watch {each}" for each in self.watched)]
        if self.lines:
            parts.append("--lines")
        if only:
            parts.append(f"--only {only}")
        elif self.quick:
            parts.append("--quick")
        return " ".join(parts)


def settings(
    subject: str = "",
    *,
    sink_format: str | None = None,
    table: str | None = None,
    reader: str | None = None,
    batches: int = 3,
    quick: bool = False,
    rows: Path | None = None,
    options: tuple[str, ...] = (),
    only: tuple[str, ...] = (),
    limit: float = 30.0,
    seconds: float = 0.0,
    code: tuple[str, ...] = (),
    ignored: tuple[str, ...] = (),
    conf: tuple[str, ...] = (),
    jars: tuple[str, ...] = (),
    packages: tuple[str, ...] = (),
    lines: bool = False,
    eyes: str = "instruments",
    watch: tuple[str, ...] = (),
) -> Settings:
    """Settings from the options that the user typed. Raises `InvalidInput` in one sentence."""
    adapter, sink = _sink(subject, sink_format, table, reader)
    if not 1 <= batches <= MOST_BATCHES:
        raise InvalidInput(f"--batches {batches}: from 1 to {MOST_BATCHES}; two show most, three show a later one.")
    if limit <= 0 or seconds < 0:
        raise InvalidInput("--limit and --seconds must be more than 0.")
    if eyes not in EYES:
        raise InvalidInput(f"--eyes {eyes[:40]}: unknown; {nearest(eyes, list(EYES))}")
    if watch and eyes != "kernel":
        raise InvalidInput("--watch belongs to --eyes kernel, or to a pipeline.")
    for one in () if eyes == "kernel" else only:
        for part in () if one in (*NAMED, *VARIANTS) else one.split("+"):
            check_id(part)
    if rows is not None and not Path(rows).is_file():
        raise InvalidInput(f"--rows {rows}: there is no such file.")
    for folder in code:
        if not Path(folder).is_dir():
            raise InvalidInput(f"--code {folder}: there is no such folder.")
    return Settings(
        subject=sink,
        reader=Subject(sink.file, "read") if reader is None else Subject.parse(reader, "--reader"),
        batches=batches,
        quick=quick,
        rows=rows,
        options=_options(options),
        only=only,
        limit=limit,
        seconds=seconds,
        code=tuple(str(Path(folder).resolve()) for folder in code),
        ignored=ignored,
        spark=spark_options(conf, jars, packages),
        adapter=adapter,
        by_kernel=eyes == "kernel",
        watched=tuple(Path(each).resolve() for each in watch),
        lines=lines or any(".line" in one for one in only),
    )


def _sink(
    subject: str, sink_format: str | None, table: str | None, reader: str | None
) -> tuple[Adapter | None, Subject]:
    """The sink to test: a name in a file, or one of Spark's own. Raises `InvalidInput` unless exactly one is named."""
    if sum(map(bool, (subject, sink_format, table))) != 1:
        raise InvalidInput(
            "which sink? Write one of FILE:NAME, as in sink.py:write_batch, --format NAME and --table NAME."
        )
    if subject:
        return None, Subject.parse(subject)
    adapter = Adapter.FORMAT if sink_format else Adapter.TABLE
    if reader is None:
        raise InvalidInput(f"--{adapter}: who reads what was written? Name a function with --reader FILE:NAME.")
    file, name = Subject.parse(reader, "--reader").file, sink_format or table or ""
    return adapter, Subject(file, name, f"{adapter} {name}")


def _options(texts: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise InvalidInput(f"--option {name[:60]}: write name=value, as in --option path=out.")
    return {name: value for name, _, value in pairs}


NAMED = ("healthy", "retry", "large")
"""Runs with a name of their own instead of a point's, beside the variants."""
