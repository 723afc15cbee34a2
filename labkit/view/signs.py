"""The look of each guarantee: a sign and shades next to its name, so that no reader depends on colour."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from labkit.core.verdict import Guarantee


class Look(NamedTuple):
    """The look of one guarantee."""

    sign: str
    shade: str
    """A dark colour, for white text on it."""
    tint: str
    """A light colour, for black text on it: darker as the guarantee gets weaker, so that greyscale keeps the order."""


LOOKS: Mapping[str, Look] = MappingProxyType(
    {
        Guarantee.EXACTLY_ONCE: Look("\u2713", "#2e7d32", "#cfe8dc"),
        Guarantee.AT_LEAST_ONCE: Look("\u00d72", "#b26a00", "#f5c98a"),
        Guarantee.AT_MOST_ONCE: Look("\u2212", "#7b1fa2", "#c9a8dc"),
        Guarantee.NONE: Look("\u2717", "#b71c1c", "#d07b76"),
        Guarantee.UNKNOWN: Look("?", "#616161", "#ffffff"),
    }
)


def signed(guarantee: str) -> str:
    """Return the sign and the name of a guarantee."""
    return f"{LOOKS[guarantee].sign} {guarantee}"
