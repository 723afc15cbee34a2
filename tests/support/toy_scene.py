"""The toy model as a picture."""

from toy_model import Light, State

from labkit.sim.model import Action
from labkit.view.scene import Box, Drawing, Place, Scene, field


def scene(_model: Light, state: State) -> Scene:
    rows = (
        field(state, "switched", "pressed", str(state.switched)),
        field(state, "is_lit", "light", "on" if state.is_lit else "off"),
    )
    return Scene((Box("lamp", 0, "lamp", "waits for a press", rows),))


def place(model: Light, action: Action) -> Place:
    return Place("lamp", model.event(action))


DRAWING = Drawing(scene, place)
