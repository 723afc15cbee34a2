"""Searches of a simulator's states that are too large for one process: on several cores of this machine, or on Spark.

The result of a search does not depend on where it runs.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """Switch off Python's cyclic garbage collector in a `with` block, because the tuples of a search form no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
