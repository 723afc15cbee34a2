"""Every run that has a name, of every simulator, and what is to be said of a whole walk beyond its last state.

One line in `SHELVES` registers a model's scenarios. This module must not tell any story itself.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from labkit.core.errors import InvalidInput
from labkit.core.judge import Verdict
from labkit.core.records import History
from labkit.core.words import nearest
from labkit.sim.models.barriers import scenarios as barriers
from labkit.sim.models.barriers.cost import cost
from labkit.sim.models.barriers.model import Barriers
from labkit.sim.models.changelog import scenarios as changelog
from labkit.sim.models.delivery import claims as delivery_claims
from labkit.sim.models.delivery import scenarios as delivery
from labkit.sim.models.kafka_log import scenarios as kafka_log
from labkit.sim.models.pipeline import scenarios as pipeline
from labkit.sim.models.snapshot import claims as snapshot_claims
from labkit.sim.models.snapshot import scenarios as snapshot
from labkit.sim.models.snapshot.parts import AMOUNT, in_channels
from labkit.sim.models.two_phase_commit import scenarios as two_phase_commit
from labkit.sim.models.two_phase_commit.model import TwoPhaseCommit
from labkit.sim.models.two_phase_commit.parts import blocked
from labkit.sim.trace import Replay, Trace

Fact = Verdict | int | str | list[int] | None
"""The judge's verdict, a count, or the counts of words that a model holds."""


class Shelf(NamedTuple):
    """The scenarios of one model: what to watch for in each, and how each is played to its end."""

    scenarios: Mapping[str, Any]
    trace_of: Callable[[str], Trace]


SHELVES = {
    "delivery": Shelf(delivery.SCENARIOS, delivery.trace_of),
    "snapshot": Shelf(snapshot.SCENARIOS, snapshot.trace_of),
    "barriers": Shelf(barriers.SCENARIOS, barriers.trace_of),
    "two_phase_commit": Shelf(two_phase_commit.SCENARIOS, two_phase_commit.trace_of),
    "pipeline": Shelf(pipeline.SCENARIOS, pipeline.trace_of),
    "changelog": Shelf(changelog.SCENARIOS, changelog.trace_of),
    "kafka_log": Shelf(kafka_log.SCENARIOS, kafka_log.trace_of),
}


class Named(NamedTuple):
    """One scenario, wherever it stands."""

    model: str
    name: str

    @property
    def watch_for(self) -> str:
        """What to look at."""
        sentence: str = SHELVES[self.model].scenarios[self.name].watch_for
        return sentence

    @property
    def trace(self) -> Trace:
        """The scenario, played to its end."""
        return SHELVES[self.model].trace_of(self.name)


def every() -> dict[str, Named]:
    """All scenarios as `model.name`, in the order of the course."""
    return {
        f"{model}.{name}": Named(model, name)
        for model, shelf in SHELVES.items()
        for name in shelf.scenarios
    }


def find(text: str) -> Named:
    """The scenario `model.name`, or `name` where only one model has it. Raises `InvalidInput` with the nearest one."""
    known = every()
    found = [name for full, name in known.items() if text in (full, name.name)]
    if len(found) == 1:
        return found[0]
    if found:
        both = " or ".join(f"{name.model}.{name.name}" for name in found)
        raise InvalidInput(f"there is more than one scenario {text!r}; choose {both}.")
    names = [*known, *dict.fromkeys(name.name for name in known.values())]
    close = (
        nearest(text[:40], names)
        if get_close_matches(text[:40], names, 1, 0.5)
        else "labkit replay lists them all."
    )
    raise InvalidInput(f"there is no scenario {text[:40]!r}; {close}")


def facts(walk: Replay) -> dict[str, Fact]:
    """What a model has to say of a whole walk."""
    if isinstance(walk.model, TwoPhaseCommit):
        return {"blocked_steps": list(blocked(walk.states))}
    known = FACTS.get(walk.model.name)
    return known(walk) if known else {}


def _delivery(walk: Replay) -> dict[str, Fact]:
    executions = [
        count for counts in delivery_claims.executions(walk.states) for count in counts
    ]
    waited = list(delivery_claims.waited(walk.states))
    return {
        "verdict": delivery.verdict(walk),
        "executions": executions,
        "waiting_steps": waited,
    }


def _snapshot(walk: Replay) -> dict[str, Fact]:
    held = walk.state.completed
    return {
        "snapshot_accounts": [part.account.balance for part in held] if held else None,
        "snapshot_channels": AMOUNT * in_channels(held).bit_count() if held else None,
        "paused_steps": list(snapshot_claims.paused(walk.states)),
        "stood_still_steps": snapshot_claims.stood_still(walk.states),
        "moment": snapshot_claims.moment(walk.states),
    }


def _barriers(walk: Replay) -> dict[str, Fact]:
    assert isinstance(walk.model, Barriers)
    found = cost(walk.model.settings, walk.states)
    price: dict[str, Fact] = {
        "held_records": found.held,
        "waiting_records_steps": found.waited,
    }
    price |= {"stored_records": found.stored, "standing_steps": found.stood}
    coordinator, _, operators, visible, _, _ = walk.state
    settings, counted = (
        walk.model.settings,
        sum(operator.state for operator in operators[:-1]),
    )
    if coordinator.completed:
        _, _, _, offsets, states, _ = coordinator.completed[-1]
        held = sum(max(state, 0) for state in states[:-1])
        price |= {
            "checkpoint_offsets": list(offsets),
            "checkpoint_counts": settings.totals(held),
        }
    return {
        **price,
        "counts": settings.totals(counted),
        "visible": settings.totals(visible),
    }


FACTS: dict[str, Callable[[Replay], dict[str, Fact]]] = {
    "delivery": _delivery,
    "snapshot": _snapshot,
    "barriers": _barriers,
    "pipeline": lambda walk: {"verdict": pipeline.verdict(walk)},
    "kafka_log": lambda walk: {"verdict": kafka_log.verdict(walk)},
}

HISTORIES: dict[str, Callable[[Replay], History]] = {
    "pipeline": pipeline.history,
    "kafka_log": kafka_log.history,
}
"""What an outside reader saw in a walk, of the models that have such a reader."""

MEANING = {
    "blocked_steps": "steps in doubt with locks held, by participant",
    "executions": "how often each process worked on each record",
    "waiting_steps": "steps for which each process had something that it must be able to send again",
    "snapshot_accounts": "money in each account of the last completed snapshot",
    "snapshot_channels": "money under way in the last completed snapshot",
    "paused_steps": "steps for which each process was told to pause",
    "stood_still_steps": "steps for which everybody stood still",
    "held_records": "records that were held back in a blocked channel",
    "waiting_records_steps": "steps after which a record was waiting in a blocked channel",
    "stored_records": "records in flight that complete checkpoints hold",
    "standing_steps": "steps after which a task was standing still until its copy was stored",
    "checkpoint_offsets": "the next offset of each source in the latest complete checkpoint",
    "checkpoint_counts": "the counts in the latest complete checkpoint",
    "counts": "the counts that the running job holds",
    "visible": "how many rows of each word readers see",
    "moment": "the step after which everything was as the last snapshot says; none: never",
}
"""Each fact in words."""


def say(name: str, fact: Fact) -> str:
    """A fact for a person: the verdict's own lines, or the fact's meaning and its numbers."""
    if isinstance(fact, Verdict):
        return fact.text()
    numbers = ", ".join(map(str, fact)) if isinstance(fact, list) else fact
    return f"{MEANING[name]}: {'none' if fact is None else numbers}"
