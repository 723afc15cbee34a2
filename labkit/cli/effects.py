"""Defines `labkit effects`, which shows in which order a pipeline writes plan, data and decision, and what it syncs."""

import errno
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from labkit.cli.common import Json, Out, parameter, typed_options
from labkit.core.errors import InvalidInput, LabError
from labkit.core.kinds import Amount, Many, Text
from labkit.core.options import Options, option, options_of, with_arguments
from labkit.host import durable
from labkit.host.path_kinds import AnyPath, Folder

if TYPE_CHECKING:
    from labkit.crashtest.blackbox.xray import XRay

_FAILED, _UNKNOWN = 1, 2
_TAIL = 10
_NO_PLACE = (errno.ENOENT, errno.ENAMETOOLONG)
"""The error numbers of a path at which no folder can be created, for example below /proc."""


@dataclass(frozen=True)
class Watched(Options):
    """The options of `labkit effects`, which shows what a pipeline writes in which order."""

    VERB = "labkit effects"

    pipeline: str | None = option(
        Text(metavar="CMD"), None, "The command that starts the pipeline, run by a shell.", keyword="command"
    )
    beside: tuple[Path, ...] = option(
        Many(AnyPath("DIR")),
        (),
        "Run nothing; compare the records of earlier runs, each a folder that --out has written. Name two or more.",
        check=lambda chosen: chosen.check_beside(),
    )
    watch: tuple[Path, ...] = option(
        Many(Folder("DIR", present=True)),
        (),
        "A folder with files that the pipeline writes; may be repeated. Default: the working folder.",
    )
    lane: tuple[str, ...] = option(
        Many(Text(metavar="NAME=GLOB")),
        (),
        "Count files that match a pattern as plan, state, data, decision or visible, as in decision='manifests/*'; may "
        "be repeated.",
    )
    limit: float = option(Amount(0, above=True), 30.0, "Kill a command that has done nothing for this many seconds.")

    def check_beside(self) -> None:
        """Raise `InvalidInput` unless exactly one of --command and --beside is given, with options that fit it."""
        if self.beside and (self.pipeline is not None or self.watch or self.lane):
            raise InvalidInput(
                "--beside only compares recorded runs and starts no command; leave --command, --watch and --lane out."
            )
        if not self.beside and self.pipeline is None:
            raise InvalidInput(
                "Missing option '--command': give the command that starts the pipeline, or use --beside to "
                "compare two recorded runs."
            )


def effects(context: typer.Context, *, as_json: Json = False, out: Out = None, **words: object) -> int:
    """Run a pipeline once; show what it writes, in which order, and which of these writes a power cut may undo.

    labkit kills nothing. This works for every program on Linux: Spark, Flink, shell, C. Exit codes: 0 done; 1 the
    command failed; 2 labkit saw no lasting effect; 64 bad input; 69 system calls cannot be watched here.
    """
    from labkit.crashtest.blackbox.lanes import Lanes
    from labkit.crashtest.blackbox.xray import xray

    chosen = Watched.plan(typed_options(context, options_of(Watched), words))
    if chosen.pipeline is None:
        return _compare_records(chosen.beside, out, as_json=as_json)
    lanes = Lanes(chosen.lane)
    _check_new(out)
    with ExitStack() as stack:
        place = (
            Path(stack.enter_context(tempfile.TemporaryDirectory())) if out is None else stack.enter_context(_new(out))
        )
        log = place / "command.log"
        result = xray(chosen.pipeline, chosen.watch or [Path.cwd()], log, lanes=lanes, limit=chosen.limit)
        if out is not None:
            _keep(out, result.text(), result.to_json(), result.picture())
        print(json.dumps(result.to_json()) if as_json else result.text())
        return _code(result, log)


effects = with_arguments(effects, [parameter(each) for each in options_of(Watched)])


def _check_new(out: Path | None) -> None:
    if out is not None:
        with _writing(out):
            if out.exists():
                raise InvalidInput(f"{out}: this folder already exists; name a new one with --out.")


@contextmanager
def _new(out: Path) -> Iterator[Path]:
    """Create the output folder; remove it if the `with` block fails, so that the user can repeat the command."""
    with _writing(out):
        out.mkdir(parents=True)
    try:
        yield out
    except Exception:
        with suppress(OSError):
            (out / "command.log").unlink(missing_ok=True)
            out.rmdir()
        raise


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    """Turn an `OSError` about the folder `out` (--out) in a `with` block into an error that says what to do."""
    try:
        with durable.explained(out):
            yield
    except LabError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in _NO_PLACE:
            raise InvalidInput(
                f"--out {out}: labkit cannot create this folder ({cause.strerror}); name another one."
            ) from None
        raise


def _compare_records(records: Sequence[Path], out: Path | None, *, as_json: bool) -> int:
    """Print several recorded runs side by side; if `out` is given, also write them into this folder. Return 0."""
    from labkit.crashtest.blackbox.beside import Beside, read_record

    result = Beside([read_record(each) for each in records])
    _check_new(out)
    # Built before the folder is created, so that an error here leaves no folder behind.
    text, plain, picture = result.text(), result.to_json(), result.picture()
    if out is not None:
        with _new(out):
            _keep(out, text, plain, picture, name="beside")
    print(json.dumps(plain) if as_json else text)
    return 0


def _keep(out: Path, text: str, plain: dict[str, Any], picture: str, name: str = "effects") -> None:
    with _writing(out):
        for end, content in (("txt", f"{text}\n"), ("json", json.dumps(plain, indent=2)), ("svg", picture)):
            (out / f"{name}.{end}").write_text(content, encoding="utf-8")


def _code(record: "XRay", log: Path) -> int:
    """Return the exit code for a recorded run; if its command failed, print the log's last lines to standard error."""
    if record.watched.status:
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL:]:
            typer.echo(f"    {line}", err=True)
        return _FAILED
    return _UNKNOWN if all(each.kind.value == "exit" for each in record.effects) else 0
