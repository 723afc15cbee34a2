"""One line registers a model, another one its picture; every verb finds it then, and the reference names it."""

import json
import re
from pathlib import Path

import pytest
import toy_model
import toy_scene

import labkit
from labkit.cli.explore import Search, run_explore
from labkit.cli.replay import replay as step_through
from labkit.core.errors import InvalidInput
from labkit.lab import show
from labkit.sim.explore import violations
from labkit.sim.models import MODELS
from labkit.sim.scenarios import every, facts, find, say
from labkit.sim.trace import blueprint, make, parse, replay
from labkit.view.scenes import DRAWINGS
from labkit.view.session import session

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "simulators.md"
PACKAGE = Path(labkit.__file__).parent


def test_the_reference_names_every_model_in_the_order_of_the_registry():
    table = PAGE.read_text(encoding="utf-8").split("| model | what it shows |")[1]
    rows = table.split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE) == list(MODELS)


def test_the_registry_names_each_model_once():
    assert [found.name for found in MODELS.values()] == list(MODELS)


def test_no_rule_and_no_place_is_found_by_its_name():
    """A table names every effect, so that whoever reads a rule finds its callers."""
    folders = (PACKAGE / "sim", PACKAGE / "view" / "scenes")
    modules = [path for folder in folders for path in folder.rglob("*.py")]
    assert len(modules) > 80
    assert [path for path in modules if "getattr(" in path.read_text("utf-8")] == []


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two lines that register a model and its picture."""
    monkeypatch.setitem(MODELS, "toy", toy_model.BLUEPRINT)
    monkeypatch.setitem(DRAWINGS, "toy", toy_scene.DRAWING)


def test_an_unknown_model_is_refused():
    with pytest.raises(InvalidInput, match="there is no simulator 'toy'"):
        make("toy", {})


@pytest.mark.usefixtures("toy")
def test_a_registered_model_is_explored(capsys: pytest.CaptureFixture[str]):
    bounds = {"model": "toy", "max_states": 99, "seconds": 9, "megabytes": 999}
    code = run_explore(Search.plan({**bounds, "settings": ["times=1"]}), as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert (code, printed["unique_states"], printed["violations"]) == (0, 3, [])
    assert run_explore(Search.plan(bounds), as_json=True), "pressed twice"
    [broken] = json.loads(capsys.readouterr().out)["violations"]
    assert broken["trace"] == "toy~1~~press.press"


@pytest.mark.usefixtures("toy")
def test_a_registered_model_has_scenarios_traces_and_facts(capsys: pytest.CaptureFixture[str]):
    assert every()["toy.glow"] == find("glow")
    trace = find("glow").trace
    assert str(trace) == "toy~1~~press.burn_out.press", "and everybody goes on"
    walk = replay(parse(str(trace)))
    assert [broken.property for broken in violations(walk)] == ["unpressed"]
    assert [say(*fact) for fact in facts(walk).items()] == ["how often the switch was pressed: 2"]
    assert blueprint("toy").sentence == "A light is switched on and may burn out."
    assert step_through("toy.glow", as_json=False) == 1
    printed = capsys.readouterr().out
    assert "2 burn_out: The light burns out. the light is off, pressed 1 times." in (printed)
    assert step_through(None, as_json=False) == 0
    assert "toy.glow" in capsys.readouterr().out


@pytest.mark.usefixtures("toy")
def test_a_registered_model_is_shown_and_steered():
    shown = show("toy.glow")
    assert "watch for: It burns out once." in str(shown)
    assert "waits for a press" in shown.html()
    steered = session("toy")
    steered.do("press")
    assert steered.scenarios == {"glow": "It burns out once."}
    assert steered.enabled == ["press", "burn_out"]
