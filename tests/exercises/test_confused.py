"""Names and numbers that are said to collide do so; otherwise no question would show an answer that hashes them."""

import hashlib
import zlib
from collections.abc import Callable
from random import Random

import pytest

from labkit.teach.exercises.capstone import SAME_CHECKSUMS, SAME_DIGESTS
from labkit.teach.exercises.confused import SAME_WEIGHTS

SEEDS, BITS = (0, 1, 2, 42, 123), range(16, 33)


def test_names_of_a_pair_have_digests_that_begin_alike() -> None:
    for name, numbers in SAME_DIGESTS.items():
        for kind, first, second in zip(("md5", "sha1", "sha256"), numbers[::2], numbers[1::2], strict=True):
            digests = {hashlib.new(kind, f"{name}-{each}".encode()).hexdigest()[:8] for each in (first, second)}
            assert len(digests) == 1, (kind, name)
        assert len({zlib.crc32(each.encode()) for each in SAME_CHECKSUMS[name]}) == 1
        assert len({zlib.adler32(f"{name}-{end}".encode()) for end in ("acca", "bbbb")}) == 1


def weights(draw: Callable[[Random], int], seed: int) -> list[int]:
    random = Random(seed)
    return [draw(random) for _ in range(1 + max(map(max, SAME_WEIGHTS)))]


@pytest.mark.slow
def test_numbers_of_a_pair_have_the_same_weight_for_a_usual_seed() -> None:
    draws: list[Callable[[Random], int]] = [lambda random, bits=bits: random.getrandbits(bits) for bits in BITS]
    for most in (*(10**digits for digits in range(4, 10)), *(1 << bits for bits in BITS)):
        draws.append(lambda random, most=most: random.randrange(most))
        draws.append(lambda random, most=most: random.randrange(1, most))
        draws.append(lambda random, most=most: random.randint(1, most))
    unseen = set(SAME_WEIGHTS)
    for seed in SEEDS:
        for draw in draws:
            table = weights(draw, seed)
            unseen = {(first, second) for first, second in unseen if table[first] != table[second]}
            if not unseen:
                return
    assert not unseen
