"""Words that all models use in the text of their states: lists, sets of numbers, and remaining faults."""

from collections.abc import Iterable


def listed(words: Iterable[object], between: str = " ", none: str = "-") -> str:
    """Return the words with `between` between them, or `none` if there are none."""
    return between.join(map(str, words)) or none


def members(bits: int) -> list[int]:
    """Return the numbers in a set of numbers that is stored as bits."""
    return [number for number in range(bits.bit_length()) if bits >> number & 1]


def to_come(names: Iterable[str], counts: Iterable[int]) -> list[str]:
    """Return the faults that a budget still allows, each with its count."""
    return [f"{count} {name}" for name, count in zip(names, counts, strict=True) if count]
