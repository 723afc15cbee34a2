"""Steps of workflows with which exercise `11b-runner` tests a learner's idempotency keys.

Every step of every run needs a key of its own. No judge can try all steps, so this module lists steps that get equal
keys by the usual mistakes: a key that joins, pads or cuts its parts, simplifies letters, or is too short a hash.
"""

import math
import tomllib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import pairwise, product
from random import Random
from typing import Any, NamedTuple

from labkit.teach.exercises.asking import Asker
from labkit.teach.exercises.contract import Finding

_DATA = tomllib.loads(files("labkit.teach.exercises").joinpath("alike.toml").read_text(encoding="utf-8"))


def from_file(name: str) -> tuple[Any, ...]:
    """Return the list `name` of `alike.toml` (see its comments) as a tuple; inner lists become tuples as well."""
    return tuple(tuple(each) if isinstance(each, list) else each for each in _DATA[name])


BETWEEN, RARELY_BETWEEN, ALIKE = map(from_file, ("between", "rarely_between", "alike"))
_AROUND, _NUMBERS = map(from_file, ("around_a_number", "numbers"))
_LABELLED = tuple(
    (f"{comma}{number}{equals}", f"{comma}name{equals}")
    for comma, number, equals in product(("&", ",", " ", ", ", ";"), ("number", "step"), ("=", ":"))
)
LONG = (70, 1_000, 5_100)
"""How many characters two long names have in common before or after they differ; keys are often cut to fewer."""
DIGITS = 9
"""The largest number of digits of a step's number, as the task says."""
FEWEST_BITS = 60
"""Keys of fewer bits are a hash that is too short: the tasks ask for 64, and the measurement may miss a few."""
_ALPHABETS = (2, 4, 8, 10, 16, 32, 36, 64, 95)
"""The sizes of usual alphabets of ASCII characters, such as 16 for hexadecimal digits."""
_RANDOM_RUNS, _RANDOM_LENGTH = 14, 1_000


class Step(NamedTuple):
    """A step of a workflow's run; the run's name and the step's number together identify it."""

    run: str
    name: str
    number: int


def joined_as(key: str, step: Step) -> Iterator[Step]:
    """Yield two steps that get equal keys if every key joins its parts in the same way as `key`, the key of `step`.

    If keys are *run-name-number*, these are the step *b-c* of the run *a*, and the step *c* of the run *a-b*. Yields
    nothing if `key` is a hash.
    """
    run, name, number = step
    if run not in key or name not in key:
        return
    one, other = sorted((run, name), key=key.index)
    between = key[key.index(one) + len(one) : key.index(other)]
    left, digits, right = between.partition(str(number))
    if digits:
        pair = (one, number, f"{one}{left}{number + 1}{right}{other}"), (f"{one}{between}{one}", number + 1, other)
    else:
        pair = (one, number, f"{one}{between}{other}"), (f"{one}{between}{one}", number, other)
    for first, each, second in pair:
        yield Step(first, second, each) if one == run else Step(second, first, each)


def joined(word: str, number: int) -> Iterator[Step]:
    """Yield steps, some of which get equal keys if a key (or the text that it hashes) joins its parts by a separator.

    `number` should have several digits, so that padding with zeros does not change it.
    """
    # A digit next to the number may belong to the number, the run or the name.
    yield from (Step(word, word, int(f"1{number}")), Step(f"{word}1", word, number), Step(word, f"{word}1", number))
    yield from (Step(word, word, int(f"{number}1")), Step(f"1{word}", word, number), Step(word, f"1{word}", number))
    # Run and name are next to one another. Both are built of one word, so either may come first.
    labels = (text for _, label in _LABELLED for text in (label, label.replace("name", "run")))
    for text in dict.fromkeys((*BETWEEN, *RARELY_BETWEEN, *labels, "', 'name': '", '", "name": "', '","name":"')):
        yield Step(word, f"{word}{text}{word}", number)
        yield Step(f"{word}{text}{word}", word, number)
    # The number is between them.
    around = (*product(BETWEEN, repeat=2), *zip(RARELY_BETWEEN, RARELY_BETWEEN, strict=True), *_LABELLED, *_AROUND)
    for left, right in around:
        yield Step(word, f"{word}{left}{number + 1}{right}{word}", number)
        yield Step(f"{word}{left}{number}{right}{word}", word, number + 1)
    # A key may leave the number 0 out, so that it consists of the run alone.
    yield Step(word, word, 1)
    yield from (Step(f"{word}{text}1", word, 0) for text in BETWEEN + RARELY_BETWEEN)
    yield from (Step(f"1{text}{word}", word, 0) for text in BETWEEN + RARELY_BETWEEN)


def padded(word: str) -> Iterator[Step]:
    """Yield steps, some of which get equal keys if a key joins a text and a padded number without a separator.

    For example, if numbers are padded to three digits, *a1* with 100 gets the same key as *a* with 1100. The last four
    steps get equal keys only if a key also contains the length of the text.
    """
    for base, widths in ((10, range(1, DIGITS)), (8, range(1, DIGITS)), (16, range(1, 8)), (2, (1, 2, 4, 8, 16))):
        for width in widths:
            low, high = base ** (width - 1), base**width
            yield from (Step(word, word, high), Step(f"0{word}", word, low), Step(word, f"0{word}", low))
            yield from (Step(word, word, low + high), Step(f"{word}1", word, low), Step(word, f"{word}1", low))
    length = len(word)
    yield from (Step(word, word, int(f"{length + 1}7")), Step(f"{word}{length}", word, 7))
    nine = (word * DIGITS)[:9]
    yield from (Step(nine, word, 110), Step(f"9{nine}", word, 1))


def numbers_alike(step: Step) -> Iterator[Step]:
    """Yield copies of a step that differ only in their number, and to which a learner's function may give equal keys.

    It does so if it cuts or rounds the number, or uses only a remainder of it.
    """
    numbers = [*_NUMBERS, step.number, *(step.number + 10**power for power in range(2, DIGITS))]
    numbers += [step.number + 2**power for power in range(4, 30)]
    yield from (step._replace(number=number) for number in dict.fromkeys(numbers))


def runs_alike(step: Step) -> Iterator[Step]:
    """Yield copies of a step, in runs with similar names, to which a learner's function may give equal keys.

    It does so if it cuts or simplifies the names of runs, or uses only their length.
    """
    word = step.run
    runs = [f"{word}a", f"run {word}", f"run-{word}", f"run_{word}", f"{word} run"]
    for text in BETWEEN + RARELY_BETWEEN:
        runs += [f"{word}{text}a", f"b{text}a", f"{word}{text}", f"{text}{word}"]
    runs += [word, f"{word} ", f"{word} a ", f" {word} a", f"{word} a\n", f"{word} A", f"{word.title()} a"]
    runs += [f"{word} b", f"b {word} a", f"{word} 7", f"{word} 07", f"{word} b7", f"b {word} 7", f"{word}-1"]
    runs += [f"{word}{' ' * blanks}a" for blanks in range(1, 9)]
    runs += [f"{word} {text}" for group in ALIKE for text in group]
    for length in LONG:
        long = (word * length)[:length]
        runs += [f"{long}a", f"{long}b", f"a{long}", f"b{long}", f"{long}a{long}", f"{long}b{long}"]
    yield from (step._replace(run=run) for run in dict.fromkeys(runs))


def random_runs(step: Step) -> list[Step]:
    """Return copies of a step in runs with long random names.

    A learner's key that is shorter than the name of its run cannot contain this name, so the key must be a hash.
    """
    letters = Random(step.run)
    names = ("".join(letters.choices("abcdefghijklmnopqrstuvwxyz", k=_RANDOM_LENGTH)) for _ in range(_RANDOM_RUNS))
    return [step._replace(run=name) for name in names]


def bits(keys: Sequence[str]) -> float:
    """Return how many bits of information `keys` can hold at most; a small number reveals that keys are a short hash.

    The number is a product: the length of the longest key, without the characters that all keys share at the beginning
    and the end, times the bits of one character. A character has 4 bits if all are hexadecimal digits, for example.
    """
    rest = _without_common_start([key[::-1] for key in _without_common_start(keys)])
    characters = set("".join(rest))
    if not characters:
        return 0.0
    size = next((size for size in _ALPHABETS if len(characters) <= size), 256)
    if not all(map(str.isascii, characters)):
        size = max(256, len(characters))
    return max(map(len, rest)) * math.log2(size)


def too_short(ask: Asker, keys: Sequence[str], what: str, general: str) -> Finding | None:
    """Return the failed result if `keys` are a short hash, with fewer than `FEWEST_BITS` bits; otherwise None.

    `what` names the things that need keys, such as `"records"`, and `general` says how a short key does harm.
    """
    if (size := bits(keys)) >= FEWEST_BITS:
        return None
    (row,), _ = ask.questions[-1]
    message = (
        f"{ask.with_answer(row)}: all keys are as short as this one, and can differ in about {size:.0f} bits only, so "
        f"among many {what} two have the same key. {general}"
    )
    return Finding(False, message, "keys of too few bits", "a hash of at least 64 bits", general=general)


def _without_common_start(texts: Sequence[str]) -> list[str]:
    start = next((place for place, each in enumerate(zip(*texts, strict=False)) if len(set(each)) > 1), None)
    return [each[min(map(len, texts)) if start is None else start :] for each in texts]


def names_alike(name: str) -> Iterator[tuple[str, str]]:
    """Yield pairs of step names that a careless comparison confuses; some are the journal's own words (`done`)."""
    for text in ("a", " ", " a", "\n", "1", "-", ".", "'", "\0"):
        yield from ((name, f"{name}{text}"), (f"{name}{text}", name), (name, f"{text}{name}"), (f"{text}{name}", name))
    yield from ((name, name.upper()), (name.title(), name), (f"{name} a", f"{name}-a"), (f"{name} a", f"a {name}"))
    yield from ((f"{name} 7", f"{name} 07"), (name, "x"), (name[:-1], name), (name, name[1:]))
    yield from ((name, other) for other in ("started", "done", "start", "None", "0"))
    for group in ALIKE:
        yield from ((f"{name} {one}", f"{name} {other}") for one, other in pairwise((*group, group[0])))
    for length in LONG:
        long = (name * length)[:length]
        yield from ((f"{long}a", f"{long}b"), (f"a{long}", f"b{long}"), (f"{long}a{long}", f"{long}b{long}"))
