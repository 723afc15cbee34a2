"""How a test breaks one rule of a model."""

from collections.abc import Callable
from typing import Any

import pytest

from labkit.sim.rules import RuleModel


def replace_effect(
    patch: pytest.MonkeyPatch,
    model: type[RuleModel[Any]],
    name: str,
    effect: Callable[[Any, Any, int], Any],
) -> None:
    """Gives an action of every model of this class that is built from now on another effect."""
    patch.setitem(model.rules, name, model.rules[name]._replace(effect=effect))
