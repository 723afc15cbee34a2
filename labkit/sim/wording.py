"""The small words in which every model tells its states: lists, sets of numbers, what may still come."""

from collections.abc import Iterable


def listed(words: Iterable[object], between: str = " ", none: str = "-") -> str:
    """Words in a row; a dash, or what is said instead, where there is none."""
    return between.join(map(str, words)) or none


def members(bits: int) -> list[int]:
    """The numbers in a set that is written as bits."""
    return [number for number in range(bits.bit_length()) if bits >> number & 1]


def to_come(names: Iterable[str], counts: Iterable[int]) -> list[str]:
    """What may still happen and how often, of a budget of faults."""
    return [f"{count} {name}" for name, count in zip(names, counts, strict=True) if count]
