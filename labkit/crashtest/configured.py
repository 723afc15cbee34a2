"""Reads `[tool.labkit.crashtest]` of pyproject.toml, and merges it with the options of a command line or of pytest.

The keys are the fields of `Settings`, `PipelineSettings` and `Demand`; each value has the type of its option.
"""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.core.options import Option, options_of
from labkit.core.words import nearest
from labkit.crashtest.blackbox.settings import PipelineSettings
from labkit.crashtest.options import Demand, SharedOptions
from labkit.crashtest.settings import Settings

KINDS: tuple[type[Settings], type[PipelineSettings]] = (Settings, PipelineSettings)
"""The kinds of tests: of a sink, and of a pipeline. If both have an option, it is the same object in both."""

OPTIONS: dict[str, Option[Any]] = {each.keyword: each for of in (*KINDS, Demand) for each in options_of(of)}

KEYS = {each.json_name: each for each in OPTIONS.values() if each.in_project}
"""Every key that the table in pyproject.toml may have, with its option."""


def configured(path: Path) -> dict[str, Any]:
    """Return the options that a pyproject.toml sets, by keyword; {} if there is no such file.

    Raises `InvalidInput` for bad options.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: this file is not valid TOML ({error}); correct it.") from None
    table: Any = content
    for name in ("tool", "labkit", "crashtest"):
        table = table.get(name, {})
        if not isinstance(table, dict):
            raise InvalidInput(
                f"{path}: the key {name} must be a table; write the options below a line [tool.labkit.crashtest]."
            )
    place, words = f"{path}, [tool.labkit.crashtest]:", {}
    for key, plain in table.items():
        if any(key == each.json_name and not each.in_project for each in OPTIONS.values()):
            raise InvalidInput(f"{place} {key}: this option is only for the command line; give it there.")
        if key not in KEYS:
            raise InvalidInput(f"{place} {key}: there is no such option; {nearest(key, sorted(KEYS))}")
        option = KEYS[key]
        words[option.keyword] = option.kind.word_of(plain)
        option.read(words[option.keyword], f"{place} {key} =")
    if kind := kind_of(words):
        _refuse_others(kind, words, lambda option: f"{place} {option.json_name}")
    return words


def requested(project: Mapping[str, Any], command_line: Mapping[str, Any]) -> Settings | PipelineSettings:
    """Return the settings of the test of a sink or of a pipeline, from the options of pyproject.toml (`project`).

    Options of the command line override them. Raises `InvalidInput` for bad options.
    """
    command_line = _but_demands(command_line)
    replaced = {keyword for name in command_line for keyword in OPTIONS[name].instead_of}
    kept = {name: word for name, word in _but_demands(project).items() if name not in replaced}
    kind = kind_of(command_line) or kind_of(kept) or Settings
    _refuse_others(kind, command_line, lambda option: option.flag)
    if kind_of(project) not in (None, kind):
        kept = {}  # the project's options are about a test of the other kind
    own = {each.keyword for each in options_of(kind)}
    return kind.plan({name: word for name, word in kept.items() if name in own} | command_line)


def demanded(project: Mapping[str, Any], command_line: Mapping[str, Any]) -> Demand:
    """Return which verdict the test must reach to pass; the command line overrides pyproject.toml."""
    words = {**project, **command_line}
    return Demand.plan({each.keyword: words.get(each.keyword) for each in options_of(Demand)})


def owner(option: Option[Any]) -> type[Settings] | type[PipelineSettings] | None:
    """Return the settings class (for sinks or for pipelines) if only one of the two has this option, otherwise None."""
    owners = [kind for kind in KINDS if option in options_of(kind)]
    return owners[0] if len(owners) == 1 else None


def _but_demands(words: Mapping[str, Any]) -> dict[str, Any]:
    demands = {each.keyword for each in options_of(Demand)}
    return {name: word for name, word in words.items() if name not in demands}


def kind_of(words: Mapping[str, Any]) -> type[Settings] | type[PipelineSettings] | None:
    """Return the settings class for the subject (a pipeline or a sink) that the options `words` name; None if none."""
    for kind in reversed(KINDS):
        if any(each.names_subject and each.keyword in words for each in options_of(kind)):
            return kind
    return None


def _refuse_others(kind: type[SharedOptions], words: Mapping[str, Any], written: Callable[[Option[Any]], str]) -> None:
    """Raise `InvalidInput` if `words` contains an option that only the other kind of test has.

    `kind` is the settings class of the user's test (of a sink or a pipeline). `written` returns an option as the user
    wrote it.
    """
    for option in (OPTIONS[name] for name in words):
        other = owner(option)
        if other in (None, kind):
            continue
        if option.names_subject:
            raise InvalidInput(
                f"{written(option)} tests a sink, and --command tests a pipeline; give only one of the two."
            )
        raise InvalidInput(f"{written(option)} is an option for {other.KIND}; leave it out here.")
