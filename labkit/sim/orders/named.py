"""Designs of writes that real systems use, each with its source (`named.toml`)."""

import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.core.words import nearest
from labkit.sim.models.orders.state import Fault
from labkit.sim.writes import Design, Write


class Built(NamedTuple):
    """A real system's order of durable writes, with its recovery rules and the evidence for them."""

    design: Design
    who: str
    """The part of the system that makes these writes, in words."""
    source: str
    """A class, file, proposal or paper that documents the order."""
    fault: Fault = Fault.NONE
    """The fault, other than a crash, that the verdict on this system assumes."""
    limit: str = ""
    """A difference between the system and the design, or an assumption of the verdict; empty if none is known."""


def _built() -> Iterator[tuple[str, Built]]:
    text = files(__package__).joinpath("named.toml").read_text(encoding="utf-8")
    for name, table in tomllib.loads(text).items():
        fault = Fault(table.get("fault", Fault.NONE))
        yield name, Built(**{**table, "design": Design.parse(table["design"]), "fault": fault})


NAMED = dict(_built())
"""The designs of real systems by a short name."""


def named(text: str) -> Design:
    """Return the write order of a real system by its name, or the order in a text such as "plan > visible".

    Raises `InvalidInput` for any other text.
    """
    if text in NAMED:
        return NAMED[text].design
    if not set(text) & set("> ;+") and text != Write.VISIBLE:
        raise InvalidInput(f"there is no design {text[:40]!r}; {nearest(text[:40], list(NAMED))}")
    return Design.parse(text)


def fault_of(text: str) -> Fault:
    """Return the fault, other than a crash, that the verdict on a real system assumes; `NONE` if there is none.

    `text` is the system's short name. If it is an order of writes instead (see `named`), the result is `NONE`.
    """
    return NAMED[text].fault if text in NAMED else Fault.NONE


def names_of(design: Design, fault: Fault = Fault.NONE) -> list[str]:
    """Return the short names of the real systems with this design, if the verdict on them assumes this fault."""
    return [name for name, built in NAMED.items() if (built.design, built.fault) == (design, fault)]
