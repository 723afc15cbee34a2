"""Words and counts that a careless comparison takes for equal: probes of the exercises of notebooks 09d, 10 and 10b.

The tasks say how long a word may be and how large a count, so the probes reach these limits and stay within them.
"""

from labkit.teach.exercises import keys_alike

LONGEST_WORD = 40
"""The largest number of characters of a word, and of an order's name, as the tasks say."""
LARGEST_COUNT = 10**9
"""The largest count, as the tasks say."""
MOST_ROWS = 200
"""The largest number of rows of a table, as the tasks say."""

_LONG = "a" * (LONGEST_WORD - 1)
_HALF = "a" * (LONGEST_WORD // 2 - 1)
WORDS = (
    ("hello", "Hello", "HELLO", "hello ", " hello", "hell", "hellos", "olleh", "hello hello"),
    ("hello world", "helloworld", "hello  world", "Hello World", "world hello", "hello world ", "hello"),
    ("listen", "silent", "tinsel"),
    ("plumless", "buckeroo"),
    (f"{_LONG}b", f"{_LONG}c", f"b{_LONG}", f"c{_LONG}", f"{_HALF}b{_HALF}", f"{_HALF}c{_HALF}", _LONG, f"{_LONG}a"),
    ("it's", "its", '"hi"', "hi", "'hi'", "None", "none", "0", "False"),
    ("a|1", "a:1", "a,1", "a;1", "a 1", "a_1", "a\t1", "a1", "a"),
    *(tuple(f"a{text}" for text in group) for group in keys_alike.ALIKE),
)
"""Groups of different words that are equal after a usual change, such as other case, sorted letters or a cut."""

APART = (
    *(9 * 10**8, 2**29, 720_720_000, 999_999_000, 99_999 * 9_999, 255 * 257 * 8_191, 97 * 101 * 89 * 997),
    *(10_007 * 65_521, 65_537 * 14_999, 99_991 * 9_973, 998_244_353, 1_000_003 * 997, 127 * 911 * 8_191),
    *(30 * 365 * 86_400, 511 * 1_009 * 1_023, 999_983 * 999, 103 * 107 * 109 * 113, 2**24 * 3**3, 60_000 * 9_001),
)
"""Differences of numbers that are equal after a division by one of many divisors, such as 97, 1000 or 2**29."""
NEIGHBOURS = tuple(
    dict.fromkeys(
        (number, number + 1)
        for number in (
            *(10**power - step for power in range(1, 9) for step in (0, 1)),
            *(2**power - step for power in range(3, 30) for step in (0, 1)),
            LARGEST_COUNT - 1,
        )
    )
)
"""Pairs of numbers with a difference of one, which are equal if large numbers are capped, cut or rounded."""
DIGITS = ((1, 10), (12, 120), (12, 21), (123, 1_234), (12, 123), (12, 312), (5, 1_005), (0, 1), (0, LARGEST_COUNT))
"""Pairs of numbers whose texts are alike."""


def counts_apart(count: int) -> tuple[tuple[int, int], ...]:
    """Return pairs of different counts that a comparison confuses if it divides, cuts, caps or rounds them.

    `count` is a number below 1,000, which many of the pairs contain.
    """
    return (*((count, count + difference) for difference in APART), *NEIGHBOURS, *DIGITS)
