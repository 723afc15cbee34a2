"""What there is to choose for a crash: sinks, the stores that can carry each, its orders and its failpoints.

A choice always fits together: whoever changes one part of it gets the nearest whole that exists. This module asks the
strategies, the stores and the failpoints, and must not know any of them by name.
"""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import POINTS, Crash, FailPoint, Order, Strategy, orders
from labkit.core.words import nearest
from labkit.runs.scenario import Scenario, plan
from labkit.sinks import check_capability
from labkit.stores import STORES

PARTS = ("sink", "store", "order", "failpoint", "input")
"""What can be chosen, in the order in which a choice narrows the next."""


def able(sink: Strategy) -> list[str]:
    """The stores that can carry a sink."""
    return [store for store in STORES if _carries(sink, store)]


def _carries(sink: Strategy, store: str) -> bool:
    try:
        check_capability(sink, store)
    except InvalidInput:
        return False
    return True


@dataclass(frozen=True)
class Choice:
    """One crash that can be run. Made by `choose`, which checks it."""

    sink: Strategy
    store: str
    order: Order
    failpoint: FailPoint
    input: str = ""
    """A path; empty: the lab's three records."""
    names: dict[str, list[str]] = field(default_factory=dict, compare=False)
    """What each part could be instead, as long as the parts before it stay."""

    def change(self, part: str, value: str) -> "Choice":
        """The same choice with one part changed, and what no longer fits replaced by what does.

        Raises `InvalidInput` for an unknown part or value.
        """
        _known("part", part, list(PARTS))
        now = {
            "sink": self.sink,
            "store": self.store,
            "order": self.order,
            "failpoint": self.failpoint,
        }
        if part == "input":
            return replace(self, input=value.strip())
        _known(part, value, self.names[part])
        kept = {name: str(each) for name, each in now.items()} | {part: value}
        return _fitting(kept, self.input)

    def scenario(self) -> Scenario:
        """What is run: killed at the failpoint in the first batch. Raises `InvalidInput`."""
        return plan(
            input=Path(self.input) if self.input else None,
            sink=self.sink.value,
            store=self.store,
            order=None if self.order is Order.NONE else self.order.value,
            crashes=[str(Crash(self.failpoint))],
        )

    def call(self) -> str:
        """The same in Python."""
        options: dict[str, Any] = {"sink": self.sink.value, "store": self.store}
        if self.order is not Order.NONE:
            options["order"] = self.order.value
        if self.input:
            options["input"] = self.input
        said = ", ".join(
            f"{name}={json.dumps(value, ensure_ascii=False)}"
            for name, value in options.items()
        )
        return f'lab.crash("{self.failpoint}", {said})'


def choose(
    sink: str = "append",
    store: str | None = None,
    order: str | None = None,
    failpoint: str = FailPoint.AFTER_PRE_COMMIT.value,
    input: str | Path | None = None,
) -> Choice:
    """A choice from what a person wrote; what is left out is the first that fits. Raises `InvalidInput`."""
    strategy = Strategy(_known("sink", sink, [each.value for each in Strategy]))
    wanted = {"sink": sink, "store": store, "order": order, "failpoint": failpoint}
    chosen = _fitting(
        {name: value for name, value in wanted.items() if value is not None},
        str(input or ""),
    )
    for name, value in wanted.items():
        if value is not None and value != str(getattr(chosen, name)):
            raise InvalidInput(
                f"{name} {value!r}: {strategy} has none of that name; {_list(chosen.names[name])}"
            )
    return chosen


def _fitting(wanted: dict[str, str], input: str) -> Choice:
    """The parts that are wanted where they fit, else the first that does; the moment that every sink has."""
    sink = Strategy(wanted["sink"])
    stores = able(sink)
    possible = [order.value for order in orders(sink)]
    order = Order(_first(wanted.get("order"), possible))
    points = [point.value for point in POINTS[sink, order]]
    assert FailPoint.AFTER_PRE_COMMIT in points
    names = {
        "sink": [each.value for each in Strategy],
        "store": stores,
        "order": possible,
        "failpoint": points,
    }
    return Choice(
        sink,
        _first(wanted.get("store"), stores),
        order,
        FailPoint(
            _first(wanted.get("failpoint"), [FailPoint.AFTER_PRE_COMMIT.value, *points])
        ),
        input,
        names,
    )


def _first(wanted: str | None, known: list[str]) -> str:
    return wanted if wanted in known else known[0]


def _known(name: str, value: str, known: list[str]) -> str:
    if value not in known:
        raise InvalidInput(f"{name} {value!r}: unknown; {nearest(value, known)}")
    return value


def _list(names: list[str]) -> str:
    return f"choose one of {', '.join(names)}."
