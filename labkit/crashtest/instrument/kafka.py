"""Records the calls of the user's code to a producer of kafka-python: send, flush, and the ends of transactions.

A sent message may still be in the producer's buffer; after a flush, no message is in it.
"""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from labkit.crashtest.instrument.effects import Kind
from labkit.crashtest.instrument.recorder import recorder

METHODS = {
    "send": Kind.SEND,
    "flush": Kind.FLUSH,
    "commit_transaction": Kind.COMMIT,
    "abort_transaction": Kind.ROLLBACK,
    "send_offsets_to_transaction": Kind.STATEMENT,
}
"""The methods of `KafkaProducer` that are recorded, each with the kind of its effect."""


def instrument_kafka(module: ModuleType) -> None:
    """Make the methods of `KafkaProducer` in the module kafka-python record their effects."""
    producer = module.KafkaProducer
    if getattr(producer.send, "recorded", False):
        return
    for name, kind in METHODS.items():
        setattr(producer, name, _around(getattr(producer, name), kind))


def _around(method: Callable[..., Any], kind: Kind) -> Callable[..., Any]:
    @functools.wraps(method)
    def recorded(self: Any, *arguments: Any, **named: Any) -> Any:
        with recorder.effect(kind, arguments[0] if kind is Kind.SEND and arguments else ""):
            return method(self, *arguments, **named)

    recorded.recorded = True  # type: ignore[attr-defined]  # a mark on a function
    return recorded
