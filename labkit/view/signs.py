"""Define the look of each guarantee: its sign and two colours. The sign serves readers who cannot see colours."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from labkit.core.verdict import Guarantee


class Look(NamedTuple):
    """The sign and the colours that represent a guarantee, such as exactly-once."""

    sign: str
    shade: str
    """A dark colour, as the background of white text."""
    tint: str
    """A light colour behind black text: darker for a weaker guarantee, so that greyscale keeps the order."""


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
    """Return the sign and the name of a guarantee as one text, such as `✓ exactly-once`."""
    return f"{LOOKS[guarantee].sign} {guarantee}"
