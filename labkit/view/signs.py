"""Define the look of each guarantee: its sign and its colour. The sign serves readers who cannot see colours."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from labkit.core.verdict import Guarantee


class Look(NamedTuple):
    """The sign and the colour that represent a guarantee, such as exactly-once."""

    sign: str
    shade: str
    """A dark colour, as the background of white text."""


LOOKS: Mapping[str, Look] = MappingProxyType(
    {
        Guarantee.EXACTLY_ONCE: Look("\u2713", "#2e7d32"),
        Guarantee.AT_LEAST_ONCE: Look("\u00d72", "#b26a00"),
        Guarantee.AT_MOST_ONCE: Look("\u2212", "#7b1fa2"),
        Guarantee.NONE: Look("\u2717", "#b71c1c"),
        Guarantee.UNKNOWN: Look("?", "#616161"),
    }
)


def signed(guarantee: str) -> str:
    """Return the sign and the name of a guarantee as one text, such as `✓ exactly-once`."""
    return f"{LOOKS[guarantee].sign} {guarantee}"
