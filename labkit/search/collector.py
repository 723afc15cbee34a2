"""Switch off Python's cyclic garbage collector during a search."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """Switch off the cyclic garbage collector for a block: states are tuples without cycles, and there are
    millions of them.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
