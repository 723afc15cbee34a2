"""Reads `[tool.labkit.crashtest]` of pyproject.toml, a project's settings for the command line and for pytest."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.core.verdict import Guarantee
from labkit.core.words import nearest
from labkit.crashtest.blackbox.settings import PipelineSettings, pipeline_settings
from labkit.crashtest.settings import Settings, settings
from labkit.crashtest.verdict import AXES

SINK = {"subject", "batches", "rows", "options", "code", "conf", "jars", "packages", "format", "table", "eyes"}
"""Keys that belong to a sink only."""

PIPELINE = {"command", "read_command", "expected", "feed", "reset", "watch", "checkpoint", "power_cut", "parallel"}
"""Keys that belong to a pipeline only."""

KEYS = SINK | PIPELINE | {"reader", "expect", "also", "ignore", "seconds"}
"""All keys."""


def configured(path: Path) -> dict[str, Any]:
    """The keys of the file with their values; empty without a file. Raises `InvalidInput` for an unknown key."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: not valid TOML ({error}).") from None
    table: dict[str, Any] = content.get("tool", {}).get("labkit", {}).get("crashtest", {})
    for key in table:
        if key not in KEYS:
            raise InvalidInput(f"{path}, [tool.labkit.crashtest]: {key}: unknown; {nearest(key, sorted(KEYS))}")
    seconds = table.get("seconds", 0)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidInput(
            f"{path}, [tool.labkit.crashtest]: seconds: {str(seconds)[:40]!r}: write a number, as in seconds = 600."
        )
    mixed = sorted(SINK & set(table))
    if "command" in table and mixed:
        raise InvalidInput(
            f"{path}, [tool.labkit.crashtest]: command is a pipeline and {mixed[0]} belongs to a sink; leave one out."
        )
    return table


def pipeline(said: dict[str, Any], command: str | None = None, **given: Any) -> PipelineSettings:
    """Settings of a pipeline, from the command line or else from the project. Raises `InvalidInput`."""
    names = ("reader", "read_command", "expected", "feed", "reset", "checkpoint")
    if given.get("reader") or given.get(
        "read_command"
    ):  # a reader of the command line replaces either kind of the project's
        said = {name: part for name, part in said.items() if name not in ("reader", "read_command")}
    texts = {name: given.pop(name, None) or said.get(name, "") for name in names}
    return pipeline_settings(
        command or said["command"],
        **texts,
        power_cut=given.pop("power_cut", None) or bool(said.get("power_cut")),
        seconds=given.pop("seconds", None) or said.get("seconds", 0.0),
        parallel=_parallel(given.pop("parallel", None), said),
        watch=tuple(given.pop("watch", None) or said.get("watch", ())),
        ignored=tuple(given.pop("ignored", None) or said.get("ignore", ())),
        **given,
    )


def _parallel(given: int | None, said: dict[str, Any]) -> int:
    """How many runs may be made side by side; 0: nobody said. Raises `InvalidInput` for what is no number from 1 on."""
    wanted = said.get("parallel", 0) if given is None else given
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 0 or given == 0:
        raise InvalidInput(
            f"--parallel {str(wanted)[:40]}: write how many runs may be made side by side, as in "
            "--parallel 4; 1 is one "
            "after the other."
        )
    return wanted


def combined(said: dict[str, Any], subject: str | None = None, **given: Any) -> Settings:
    """Settings of a sink, from the command line or else from the project. Raises `InvalidInput`."""
    by_name = {"sink_format": given.pop("sink_format", None), "table": given.pop("table", None)}
    if not subject and not any(by_name.values()):
        subject = said.get("subject")
        by_name = {"sink_format": said.get("format"), "table": said.get("table")}
    rows = given.pop("rows", None) or said.get("rows")
    batches = given.pop("batches", None)
    return settings(
        subject or "",
        **by_name,
        reader=given.pop("reader", None) or said.get("reader"),
        batches=said.get("batches", 3) if batches is None else batches,
        rows=None if rows is None else Path(rows),
        options=tuple(given.pop("options", None) or said.get("options", ())),
        code=tuple(given.pop("code", None) or said.get("code", ())),
        ignored=tuple(given.pop("ignored", None) or said.get("ignore", ())),
        conf=tuple(given.pop("conf", None) or said.get("conf", ())),
        jars=tuple(given.pop("jars", None) or said.get("jars", ())),
        packages=tuple(given.pop("packages", None) or said.get("packages", ())),
        lines=bool(given.pop("lines", None)),
        eyes=given.pop("eyes", None) or said.get("eyes", "instruments"),
        seconds=given.pop("seconds", None) or said.get("seconds", 0.0),
        watch=tuple(given.pop("watch", None) or said.get("watch", ())),
        **given,
    )


def guarantee_named(text: str | None) -> Guarantee | None:
    """A guarantee by its name. Raises `InvalidInput` for another word."""
    if text is None:
        return None
    names = [each.value for each in Guarantee if each is not Guarantee.UNKNOWN]
    if text not in names:
        raise InvalidInput(f"--expect {text}: unknown; {nearest(text, names)}")
    return Guarantee(text)


def check_axes(axes: Sequence[str]) -> None:
    """Raises `InvalidInput` for an axis that does not exist."""
    for axis in axes:
        if axis not in AXES:
            raise InvalidInput(f"--also {axis}: unknown; {nearest(axis, list(AXES))}")
