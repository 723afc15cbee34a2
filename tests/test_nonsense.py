"""Every public name of `labkit.lab` answers an argument that cannot be with one sentence, and never with a
traceback.
"""

import inspect
from collections.abc import Callable
from inspect import Parameter
from pathlib import Path
from typing import Any, Literal

import pytest

from labkit import lab
from labkit.core.arguments import fits, takes
from labkit.core.errors import InvalidInput, LabError
from labkit.host import addresses
from labkit.runs.progress import words
from labkit.teach.hands_on import private
from labkit.teach.hands_on.kafka import Kafka

NONSENSE = (None, 5, "", [], object())
MADE_WITHOUT = {"kafka", "postgres", "pieces", "doctor", "spark", "chains", "Chains", "shop", "stopped_writers"}
"""Names that take no argument."""

GOOD = {
    "answer": {"name": "00-rows"},
    "ask": {"name": "00-rows"},
    "check": {"name": "05-recovery"},
    "hint": {"name": "05-recovery"},
    "reset": {"name": "05-recovery"},
    "code": {"sink": "append"},
    "columns": {"rows": [["a", "b"]]},
    "compare": {"facts": []},
    "crash_test": {"subject": "nowhere.py:sink", "only": ["rename checkpoint/commits/<n> #1"]},
    "copy_topic": {"trusts": "group", "group_says": 0, "records": 4},
    "crash": {"at": "sink.mid_write", "sink": "append"},
    "engines": {"names": "spark"},
    "kill_engines": {"names": "spark"},
    "export": {"run": "pipeline.jump_back", "to": "mermaid"},
    "explore": {"model": "pipeline", "max_states": 9},
    "explorer": {"what": "two_phase_commit"},
    "expected_wait": {"question": "00-rows"},
    "measure_rows": {"sizes": [1], "rows": 1},
    "my_sink": {"after": "00"},
    "measure_waits": {"intervals": [0.1, 0.2]},
    "replay": {"what": "pipeline.jump_back"},
    "show": {"what": "pipeline.jump_back"},
    "points": {"sink": "append"},
    "simulate": {"at": "sink.mid_write", "sink": "append"},
    "seen_over_time": {"key": "hello"},
    "strip": {"killed": "sink.mid_write", "sink": "append"},
    "totals": {"scenarios": "changelog.retract_stream"},
    "timeouts": {"interval": 1, "checkpoint": 1, "transaction": 9},
    "try_timeouts": {"interval": 1, "transaction": 9},
}
"""Arguments beside the one that is nonsense; a parameter that is missing here gets nonsense, too, if it is needed."""


def parameters(name: str) -> list[str]:
    """The parameters by name; for those that a call names freely, the ones that are known."""
    known = dict.fromkeys(GOOD.get(name, {}))
    for each in inspect.signature(getattr(lab, name)).parameters.values():
        if each.kind is not Parameter.VAR_KEYWORD:
            known[each.name] = None
    return list(known)


CASES = [
    (name, parameter)
    for name in lab.__all__
    if callable(getattr(lab, name)) and name not in MADE_WITHOUT
    for parameter in parameters(name)
]


def said(name: str, parameter: str, nonsense: object, kafka: Kafka) -> str:
    """What the call says; empty where it takes the value."""
    function = getattr(lab, name)
    given = {"kafka": kafka} if name in {"copy_topic", "ten_steps"} else {}
    given |= GOOD.get(name, {}) | {parameter: nonsense}
    positional: list[object] = []
    for each in inspect.signature(function).parameters.values():
        if each.kind is Parameter.VAR_POSITIONAL and each.name in given:
            positional.append(given.pop(each.name))
        elif each.default is Parameter.empty and each.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
            given.setdefault(each.name, nonsense)
    try:
        function(*positional, **given)
    except LabError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_nonsense_gets_one_sentence(name, parameter, tmp_path, monkeypatch) -> None:
    # Without a Java and a broker a call that is taken ends where real work would begin.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("labkit.host.java._candidates", lambda _environment: [])
    monkeypatch.setenv(addresses.KAFKA, "127.0.0.1:1")
    kafka = Kafka(private.Server("127.0.0.1:1", tmp_path))
    for nonsense in NONSENSE:
        sentence = said(name, parameter, nonsense, kafka)
        assert "\n" not in sentence
        assert len(sentence) < 1500


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: lab.show(5),
            (
                "lab.show(): what=5 is not accepted; write text in quotation marks or a Trace, as in "
                'lab.show("pipeline.jump_back").'
            ),
        ),
        (lab.show, "lab.show(): missing a required argument: 'what'; write it as in lab.show(\"pipeline.jump_back\")."),
        (
            lambda: lab.points([]),
            'lab.points(): sink=[] is not accepted; write text in quotation marks, as in lab.points("two_phase").',
        ),
        (
            lambda: lab.explore("pipeline", max_states=True),
            (
                "lab.explore(): max_states=True is not accepted; write a whole number, as in "
                'lab.explore("pipeline", strategy="append").'
            ),
        ),
        (
            lambda: lab.timeouts(5),
            (
                "lab.timeouts(): too many positional arguments; write it as in "
                "lab.timeouts(interval=10, checkpoint=5, transaction=60)."
            ),
        ),
        (
            lambda: lab.copy_topic(object(), trusts="me", group_says=0),
            (
                "lab.copy_topic(): kafka=object() is not accepted; write a Kafka, as in "
                'lab.copy_topic(kafka, trusts="checkpoint", group_says=0).'
            ),
        ),
        (lambda: words(5), "lab.words(): event=5 is not accepted; write it as in lab.words(event)."),
        (
            lambda: lab.crash_each({"append": 5}),
            (
                "lab.crash_each(): cases={'append': 5} is not accepted; write a dict, as in "
                'lab.crash_each({"append": {"at": "sink.mid_write", "sink": "append"}}).'
            ),
        ),
    ],
)
def test_the_sentence_names_place_and_remedy(call, sentence) -> None:
    with pytest.raises(InvalidInput) as refused:
        call()
    assert str(refused.value) == sentence


def test_an_error_from_within_stays_what_it_is() -> None:
    @takes("lab.half(4)")
    def half(number: int) -> str:
        return f"{number / 2}" + number  # type: ignore[operator]  # the defect that must be seen

    with pytest.raises(TypeError, match="can only concatenate str"):
        half(4)
    with pytest.raises(InvalidInput, match="number='4' is not accepted"):
        half("4")


@pytest.mark.parametrize(
    ("value", "annotation", "expected"),
    [
        (5, float, True),
        (True, int, False),
        (True, bool, True),
        (None, str | None, True),
        ([Path("a")], list[Path], True),
        (["a"], list[Path], False),
        ({"a": 1}, dict[str, int], True),
        ({"a": "1"}, dict[str, int], False),
        (5, "in quotes", True),
        (5, object, True),
        ({"at": "x"}, dict[str, Any], True),
        (5, Callable[[int], None], False),
        (len, Callable[[int], None] | None, True),
        ("log", Literal["log", "socket"], True),
        ("file", Literal["log", "socket"], False),
    ],
)
def test_what_fits(value, annotation, expected) -> None:
    assert fits(value, annotation) is expected
