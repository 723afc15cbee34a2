"""A model as small as one can be: a light that is switched on, and may burn out. It is registered by one line alone."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from labkit.sim.blueprint import Blueprint, Scenario, play_to_the_end
from labkit.sim.model import Action, Durable, Mood, Property, Volatile
from labkit.sim.parameters import Parameter, Whole
from labkit.sim.rules import Event, Rule, RuleModel


class State(NamedTuple):
    switched: Durable[int]
    is_lit: Volatile[bool]


PARAMETERS: dict[str, Parameter] = {"times": Whole("How often the switch may be pressed.", 2, 0, 5)}


class Light(RuleModel[State]):
    name, version, parameters = "toy", 1, PARAMETERS

    def initial(self) -> State:
        return State(0, is_lit=False)

    def actions(self, state: State) -> Sequence[Action]:
        enabled = []
        if state.switched < int(self.values["times"]):
            enabled.append(Action("press"))
        if state.is_lit:
            enabled.append(Action("burn_out"))
        return enabled

    def _press(self, state: State, _: int) -> State:
        return State(state.switched + 1, is_lit=True)

    def _burn_out(self, state: State, _: int) -> State:
        return state._replace(is_lit=False)

    def properties(self) -> Sequence[Property[State]]:
        lit = Property("lit", Mood.SOMETIMES, "The light is on.", lambda state: state.is_lit, self.text)
        dark: Property[State] = Property(
            "unpressed",
            Mood.ALWAYS,
            "Nobody presses the switch twice.",
            lambda state: state.switched < 2,
            lambda _: "it was pressed twice.",
        )
        return lit, dark

    def text(self, state: State) -> str:
        return f"the light is {'on' if state.is_lit else 'off'}, pressed {state.switched} times."

    rules: ClassVar[dict[str, Rule[State]]] = {
        "press": Rule(_press, "Somebody presses the switch."),
        "burn_out": Rule(_burn_out, "The light burns out.", Event.CRASH),
    }


BLUEPRINT = Blueprint(
    Light,
    "A light is switched on and may burn out.",
    play_to_the_end,
    {"glow": Scenario("It burns out once.", {"times": 2}, "press burn_out")},
    lambda walk: {"presses": walk.state.switched},
    {"presses": "how often the switch was pressed"},
)
