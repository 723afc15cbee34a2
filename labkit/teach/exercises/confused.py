"""Different numbers and texts that a careless comparison takes for equal; several exercises test learners with them.

They become equal if a learner's function cuts, rounds, hashes or simplifies them. A right function compares whole
values, so it never confuses them.
"""

from collections.abc import Iterator

from labkit.teach.exercises.keys_alike import ALIKE, BETWEEN, RARELY_BETWEEN, from_file

MODULI = (
    *(97, 101, 997, 9_973, 65_521, 65_537, 99_991, 999_983, 1_000_003, 1_000_007, 16_777_619),
    *(998_244_353, 999_999_937, 10**9 + 7, 10**9 + 9, 2**31 - 1, 2**32 - 5, 2**32 + 15, 10**12 - 11, 2**61 - 1),
)
"""Primes that are often used as the size of a hash table; the last one is that of Python's own hash of a number."""
SAME_DIGITS, SAME_TEXTS, SAME_WEIGHTS = map(from_file, ("same_digits", "same_texts", "same_weights"))
_MARKS = (*(text for text in (*BETWEEN, *RARELY_BETWEEN) if len(text) == 1), "::", "--", "->", ", ", " - ")
"""Texts at which a learner's function may cut a text into parts, or which it may strip."""
LENGTHS = (70, 300, 5_100)
"""How many characters two long texts have in common before or after the letter in which they differ."""
COMPOSED = ("caf\u00e9", "cafe\u0301")
"""Two words that look the same: the first has a letter with an accent, the second a letter followed by an accent."""
_TWO_LONG = "word" * 70
PAIRS_ALIKE = (
    COMPOSED,
    *(("listen", "silent"), ("plumless", "buckeroo"), ("\u65e5\u672c", "\u4e2d\u56fd"), ("order", "Order")),
    *(("order-1", "order 1"), ("order-123-x", "order-456-x"), ("order", "order "), ("7", "07")),
    *((f"{_TWO_LONG}s", f"{_TWO_LONG}t"), (f"a{_TWO_LONG}", f"b{_TWO_LONG}")),
)
"""Pairs of different words that an answer confuses if it cuts, strips, hashes or simplifies them."""
NUMBERS_ALIKE = (7, 7 + 97_000, 7 + 10**6, 7 + 2**16, 7 + 2**32, 2**53 + 7, 2**60, 2**60 + 1)
"""Different numbers, some of which are equal in 16 or 32 bits, as floating-point numbers, rounded, or as remainders."""


def numbers_alike(large: int) -> list[int]:
    """Return positive 63-bit numbers that become equal to `large` if a learner's function cuts, rounds or hashes them.

    `large` should have about 18 digits.
    """
    # A function that rounds confuses the nearest numbers. They come last: the first confused number tells the cause.
    steps = [*(2**power for power in range(24, 63)), *(10**power for power in range(9, 19)), *MODULI]
    steps += sorted([*(2**power for power in range(24)), *(10**power for power in range(1, 9))], reverse=True)
    digits = str(large)
    others = [large + step for step in steps]
    others += [part for cut in range(1, len(digits)) for part in (int(digits[:cut]), int(digits[cut:]))]
    others += [int(digits[::-1]), int("".join(sorted(digits, reverse=True))), int(digits[1] + digits[0] + digits[2:])]
    others.append((large & (2**31 - 1)) << 32 | large >> 32)
    return [number for number in dict.fromkeys(others) if 0 < number < 2**63 and number != large]


def texts_alike(word: str) -> Iterator[list[str]]:
    """Yield groups of similar texts: a function that cuts, lower-cases, strips or hashes them takes some for equal.

    Most texts are built from `word`, which should consist of a few different small letters.
    """
    groups = [
        [word, word.upper(), word.title(), word[:-1] + word[-1].upper(), f"{word}s", word[:-1], f"a{word}", word[1:]],
        [word, f" {word}", f"{word} ", f"{word}  ", f"{word}\n", f"\t{word}", f"{word}\xa0", f"{word}\u200b"],
        [word, word[::-1], word[1] + word[0] + word[2:], word * 2, word + word[-1], "".join(sorted(word))],
        [word, f"{word} a b", f"{word} b a", f"{word} a", f"{word} b", f"a {word}", f"b {word}", f"{word}  a"],
        ["1", "01", "1.0", "+1", "1e0", "10", "1_0", "-1", "0", "00", "True", "\u0661", "\xb9", "1 "],
        ["None", "none", "null", "nan", "NaN", " ", "  ", "\0", "-", "x", "X", "?", "''", '""', "[]"],
        *([f"{word} {text}" for text in group] for group in ALIKE),
        *([*pair] for pair in SAME_TEXTS),
    ]
    for length in LENGTHS:
        long = (word * length)[:length]
        groups.append([f"{long}a", f"{long}b", f"a{long}", f"b{long}", f"{long}a{long}", f"{long}b{long}"])
    groups += [[f"{word}{text}a", f"{word}{text}b", f"{word}{text}", f"{text}{word}", word] for text in _MARKS]
    yield from (list(dict.fromkeys(group)) for group in groups)


LONGEST_WORD = 40
"""The largest number of characters of a word, and of an order's name, as the tasks of notebooks 09d, 10 and 10b say."""
LARGEST_COUNT = 10**9
"""The largest count, as the tasks say."""
MOST_ROWS = 200
"""The largest number of rows of a table, as the tasks say."""

_LONG = "a" * (LONGEST_WORD - 1)
_HALF = "a" * (LONGEST_WORD // 2 - 1)
WORDS_ALIKE = (
    ("hello", "Hello", "HELLO", "hello ", " hello", "hell", "hellos", "olleh", "hello hello"),
    ("hello world", "helloworld", "hello  world", "Hello World", "world hello", "hello world ", "hello"),
    ("listen", "silent", "tinsel"),
    ("plumless", "buckeroo"),
    (f"{_LONG}b", f"{_LONG}c", f"b{_LONG}", f"c{_LONG}", f"{_HALF}b{_HALF}", f"{_HALF}c{_HALF}", _LONG, f"{_LONG}a"),
    ("it's", "its", '"hi"', "hi", "'hi'", "None", "none", "0", "False"),
    ("a|1", "a:1", "a,1", "a;1", "a 1", "a_1", "a\t1", "a1", "a"),
    *(tuple(f"a{text}" for text in group) for group in ALIKE),
)
"""Groups of different words that become equal if a rule cuts them, ignores their case or sorts their letters."""

APART = (
    *(9 * 10**8, 2**29, 720_720_000, 999_999_000, 99_999 * 9_999, 255 * 257 * 8_191, 97 * 101 * 89 * 997),
    *(10_007 * 65_521, 65_537 * 14_999, 99_991 * 9_973, 998_244_353, 1_000_003 * 997, 127 * 911 * 8_191),
    *(30 * 365 * 86_400, 511 * 1_009 * 1_023, 999_983 * 999, 103 * 107 * 109 * 113, 2**24 * 3**3, 60_000 * 9_001),
)
"""Multiples of usual divisors, such as 97, 1000 or 2**29: numbers that differ by one of them have equal remainders."""
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
"""Pairs of numbers that differ by one, so that a rule that caps, cuts or rounds large numbers takes some for equal."""
DIGITS = ((1, 10), (12, 120), (12, 21), (123, 1_234), (12, 123), (12, 312), (5, 1_005), (0, 1), (0, LARGEST_COUNT))
"""Pairs of numbers that have similar digits."""


def counts_apart(count: int) -> tuple[tuple[int, int], ...]:
    """Return pairs of different counts that a learner's function may confuse.

    For example, two counts become equal if it divides them, drops their last digits, limits them to a maximum or rounds
    them. In some pairs, one of the two is `count`, which must be below 1,000.
    """
    return (*((count, count + difference) for difference in APART), *NEIGHBOURS, *DIGITS)
