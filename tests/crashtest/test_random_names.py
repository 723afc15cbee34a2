"""The parts of file names that chance decides, as two runs without a crash show them."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from labkit.crashtest.blackbox.effects import Effect, Namer, mask
from labkit.crashtest.blackbox.random_names import CHEAP_SECONDS, RandomName, mask_random, may_be_random, random_names
from labkit.host.syscalls.calls import Call, CallKind


def effects(*paths: str, kind: CallKind = CallKind.CREATE) -> list[Effect]:
    return [
        Effect(Call(number, 7, 7, kind, kind.value, f"/s/{path}", "", 0, 0.0), mask(path), 1, path)
        for number, path in enumerate(paths, start=1)
    ]


def learned(first: Sequence[str], second: Sequence[str]) -> tuple[RandomName, ...]:
    return random_names(effects(*first), effects(*second))


@pytest.mark.parametrize(
    ("one", "other", "masked"),
    [
        ("out/.tmp-k3x_9ab1", "out/.tmp-sn3i3gw3", "out/.tmp-<x>"),
        ("out/.tmp-k3x_9ab1.json", "out/.tmp-sn3i3gw1.json", "out/.tmp-<x>.json"),
        ("out/.tmp-k3x_9ab1.json", "out/.tmp-kn3i3gw3.json", "out/.tmp-<x>.json"),
        ("rowsk3x_9ab1", "rowssn3i3gw3", "rows<x>"),
        ("rows.aB3dEf", "rows.Zk9dPq", "rows.<x>"),
        ("stage-k3x_9ab1/part-0", "stage-sn3i3gw3/part-0", "stage-<x>/part-0"),
        ("stage-k3x_9ab1/z8h2k4m6", "stage-sn3i3gw3/p1q2r3s4", "stage-<x>/<x>"),
    ],
)
def test_what_differs_between_two_runs_is_masked_in_a_third(one: str, other: str, masked: str) -> None:
    names = learned([one], [other])
    assert mask_random(one, names) == mask_random(other, names) == masked
    third = "".join("q" if a != b else a for a, b in zip(one, other, strict=True))
    assert mask_random(third, names) == masked


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["rows"], ["rows"]),
        (["day-one"], ["day-two"]),  # too short for a random part
        (["rows", "other_file"], ["rows"]),
        (["a b c d e f"], ["g h i j k l"]),
    ],
)
def test_other_differences_are_not_learned(first: Sequence[str], second: Sequence[str]) -> None:
    assert learned(first, second) == ()


def test_a_random_part_that_looks_like_an_id_is_masked_as_in_other_runs() -> None:
    names = learned(["out/.tmp-k3x_9ab1"], ["out/.tmp-sn3i3gw3"])
    path = "out/.tmp-a1b2c3d4"
    assert mask(path) == "out/.tmp-<hex>"
    assert mask(mask_random(path, names)) == "out/.tmp-<x>"
    assert learned(["out/.tmp-k3x_9ab1"], [path]) == names
    namer = Namer([Path("/s")], mask_more=partial(mask_random, names=names))
    assert namer.ids(f"/s/{path}") == ()
    assert namer.file(f"/s/{path}") == "out/.tmp-<x>"


def test_a_name_counts_only_in_its_folder_and_with_its_fixed_parts() -> None:
    names = learned(["out/.tmp-k3x_9ab1"], ["out/.tmp-sn3i3gw3"])
    for path in (".tmp-k3x_9ab1", "in/.tmp-k3x_9ab1", "out/tmp-k3x_9ab1", "out/.tmp-k3x_9ab", "out/.tmp-k3x-9ab1"):
        assert mask_random(path, names) == path


@pytest.mark.parametrize(
    ("path", "kind", "seconds", "wanted"),
    [
        ("out/.tmp-k3x_9ab1", CallKind.CREATE, 60, True),
        ("out/.tmp-abcdefgh", CallKind.CREATE, 0.2, False),
        ("out/.tmp-abcdefgh", CallKind.UNLINK, 0.2, True),
        ("out/.tmp-abcdefgh", CallKind.UNLINK, CHEAP_SECONDS, False),
        ("part-00000-0b5a9c7e-1111-4222-8333-123456789abc-c000.snappy.parquet", CallKind.RENAME, 60, False),
        ("_temporary/0/_temporary/attempt_202611301351_0000_m_000000_0/part-00000", CallKind.RENAME, 60, False),
    ],
)
def test_a_second_run_is_made_where_a_name_may_be_random(
    path: str, kind: CallKind, seconds: float, wanted: bool
) -> None:
    assert may_be_random(effects(path, kind=kind), seconds) is wanted
