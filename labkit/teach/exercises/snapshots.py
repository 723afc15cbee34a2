"""The exercises of notebook 03: the content of a snapshot of the bank, and which snapshots are consistent."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product, starmap
from typing import Any

from labkit.sim.model import Model
from labkit.sim.models.snapshot.state import AMOUNT, PER_CHANNEL, START, Account, Ends, Part, ends
from labkit.sim.wording import members
from labkit.teach.exercises.confused import SAME_WEIGHTS
from labkit.teach.exercises.constants import Prediction
from labkit.teach.exercises.contract import by, variant
from labkit.teach.exercises.invariants import Watch
from labkit.teach.study import replay


def _parts(_model: Model[Any], state: Any) -> tuple[Any, ...]:
    """Return the argument of the learner's function: the completed snapshot, as one dict for each process."""
    return (
        [
            {
                "balance": part.account.balance,
                "sent": members(part.account.sent),
                "received": members(part.account.received),
                "channels": members(part.channels),
            }
            for part in state.completed
        ],
    )


_PLACES = tuple(product((False, True), repeat=3))
"""Every combination of three facts on a transfer: the snapshot contains it as sent, as received, and in its channel."""
_USUAL = ((False, False, False), (True, True, False), (True, False, True), (True, False, False))
"""The combinations of `_PLACES` that occur in most snapshots; in the last one the transfer is lost."""

_WAYS = {
    "done": (True, True, False),
    "saved": (True, False, True),
    "gone": (True, False, False),
    "came": (False, True, False),
}
"""The ways to record a transfer, each as a combination of `_PLACES`."""
LIMIT = 100_000
"""All numbers of transfers are below this limit, as the task promises, so an answer may use one bit for each."""
MOST = 5_000
"""The largest number of transfers in a snapshot, as the task says."""
CONFUSED = (
    *((f"numbers {apart} apart", (33,), (33 + apart,)) for apart in (64_000, 97_000, 65_536, 99_900)),
    ("the same products", (1, 7, 18), (2, 3, 21)),
    ("the same products, counted from 1", (0, 6, 17), (1, 2, 20)),
    ("the same sums of powers", (0, 4, 9, 23, 27, 41, 46, 50), (1, 2, 11, 20, 30, 39, 48, 49)),
    ("the same digits", (1, 123), (11, 23)),
)
"""The name of a case, numbers of lost transfers, and numbers of transfers that arrived although nobody sent them.

An answer takes the two lists for equal if it combines all numbers of a list into one number or text.
"""

_COME = ((False, True, False), (False, False, True))
"""The combinations for a transfer that was never sent: it was received, or it is in its channel."""


def _copies(model: Model[Any], choice: Mapping[str, Any]) -> Iterator[Any]:
    """Yield simulator states with a completed snapshot, in which transfers are recorded in right or wrong ways.

    Most keys of `choice` name a way to record a transfer, and their value lists the channels with such transfers. For
    example, `done` means sent and received, `gone` means sent and then lost, `come` means arrived but never sent, and
    `any` means all ways in turn. With the key `numbered`, there is only one state: the key's value maps keys of `_WAYS`
    to numbers of transfers, which are spread over `channels` channels (by default over all).
    """
    start = model.initial()
    processes = len(start.processes)
    between = ends(processes)
    if "numbered" in choice:
        between = between[: choice.get("channels")]
        numbered = [(number, way) for way, numbers in choice["numbered"].items() for number in numbers]
        transfers = [(between[number % len(between)], _WAYS[way], 1 << number) for number, way in numbered]
        yield start._replace(completed=_recorded(processes, transfers))
        return
    whole = [
        (channel, (True, name == "all_done", name == "all_saved"), 2**PER_CHANNEL - 1)
        for name in ("all_done", "all_saved")
        for channel in choice.get(name, ())
    ]
    for channel in choice.get("twice", ()):
        whole += [(channel, (False, True, True), 1), (channel, (True, False, False), 2)]
    options = {"any": _PLACES, "usual": _USUAL, "done": _USUAL[1:2], "gone": _USUAL[3:], "come": _COME}
    channels = [channel for name in options for channel in choice.get(name, ())]
    for places in product(*(places for name, places in options.items() for _ in choice.get(name, ()))):
        ones = [(channel, place, 1) for channel, place in zip(channels, places, strict=True)]
        moved = [(between[channel], place, bits << channel * PER_CHANNEL) for channel, place, bits in [*ones, *whole]]
        yield start._replace(completed=_recorded(processes, moved))


def _recorded(processes: int, transfers: Iterable[tuple[Ends, tuple[bool, ...], int]]) -> tuple[Part, ...]:
    """Return a snapshot with these transfers, as one part for each process.

    A triple has transfers of one channel: the channel, the way in which they are recorded (one of `_PLACES`), and an
    integer in which the bits at the transfers' numbers are set.
    """
    sent, received, saved = ([0] * processes for _ in range(3))
    for channel, (is_sent, is_received, is_saved), bits in transfers:
        sent[channel.sender] |= bits * is_sent
        received[channel.receiver] |= bits * is_received
        saved[channel.receiver] |= bits * is_saved
    return tuple(starmap(_part, zip(sent, received, saved, strict=True)))


def exchanged(gone: Sequence[int], came: Sequence[int], **others: Sequence[int]) -> dict[str, object]:
    """Return a snapshot that lost the transfers `gone`, and has the transfers `came`, which nobody sent.

    `others` are further transfers, by the way in which they are recorded (a key of `_WAYS`), such as `done`.
    """
    return {"numbered": {**others, "gone": list(gone), "came": list(came)}}


def inside(number: int, digit: int) -> Iterator[dict[str, object]]:
    """Yield snapshots in which one transfer is lost or was never sent, and its number is a part of longer numbers.

    For example, `inside(12, 3)` gives transfer 12 and the longer numbers 120, 123, 312 and 3123. `number` is below
    1,000, and `digit` is not 0.
    """
    longer = [int(f"{number}0"), int(f"{number}{digit}"), int(f"{digit}{number}"), int(f"{digit}{number}{digit}")]
    for way in ("done", "saved"):
        yield exchanged((number,), (), **{way: longer})
        yield exchanged((), (number,), **{way: longer})
        # The text of the larger number is that of the two others, one after the other.
        yield {**exchanged((int(f"{number}{longer[1]}"),), (), **{way: [number, longer[1]]}), "channels": 1}


def crowd(number: int, way: str, exchange: int = -1, channels: int | None = None) -> dict[str, object]:
    """Return a snapshot with `number` transfers, all recorded in one `way`, such as `done`.

    If `exchange` is not -1, the snapshot has lost the transfer at this position, and has a transfer that nobody sent
    instead. `channels` is the number of channels over which the transfers are spread; None means all channels.
    """
    numbers = {way: [2 * place for place in range(number) if place != exchange]}
    if exchange >= 0:
        numbers |= {"gone": [2 * exchange], "came": [2 * exchange + 1]}
    return {"numbered": numbers, "channels": channels}


def _part(sent: int, received: int, channels: int) -> Part:
    balance = START + AMOUNT * (received.bit_count() - sent.bit_count())
    return Part(Account(balance, sent, received), channels)


WATCH = Watch("consistent", "snapshot", "reachable", _parts, _copies)
TWO: dict[str, object] = {"processes": 2, "transfers": 2, "crashes": 0}
THREE: dict[str, object] = {"processes": 3, "transfers": 1, "crashes": 0}

WEIGHED = tuple(("numbers with the same random weight", THREE, exchanged((a,), (b,))) for a, b in SAME_WEIGHTS)
"""Systems whose snapshot lost a transfer and has one that nobody sent; an answer that adds random weights misses it."""
LARGEST = (
    ("the first of all transfers is gone", THREE, crowd(MOST, "saved", 0)),
    ("the last of all transfers is gone", THREE, crowd(MOST, "done", MOST - 1)),
)
"""Systems with a snapshot of the largest size."""
ON_THE_WAY = (
    "snapshot~1~transfers.2~~transfer-12.transfer-23.record-3.receive-23.receive-12.receive-31.receive-32."
    "receive-12.receive-21.receive-13.receive-23"
)
"""A trace with two transfers and three markers: one transfer ends in an account, the other in a channel."""

PREDICTION = Prediction(
    "predicted_03",
    lambda: replay(ON_THE_WAY),
    {
        "accounts": lambda walk: walk.facts["snapshot_accounts"],
        "under_way": lambda walk: walk.facts["snapshot_channels"],
    },
)

JUDGES = {
    "03-predict": by(PREDICTION.judge, variant("two transfers on their way")),
    "03-cut": by(
        WATCH.judge,
        variant(
            "two processes",
            good=(("markers", TWO), ("the world stops", {**TWO, "algorithm": "stop_the_world"})),
            bad=(
                ("everybody copies when it likes", {**TWO, "algorithm": "naive"}),
                ("channels are not saved", {**TWO, "broken": "forget_channels"}),
            ),
        ),
        variant(
            "three processes",
            good=(("markers", THREE),),
            bad=(("markers are sent late", {**THREE, "broken": "late_markers"}),),
        ),
        variant("one transfer each way", assembled=(("in any of the places, or in several", TWO, {"any": (0, 1)}),)),
        variant(
            "as many transfers have come as are gone",
            assembled=(("other transfers, with an equal sum", THREE, {"gone": (0, 3), "come": (1, 2), "done": (4,)}),),
        ),
        variant(
            "numbers of any size",
            assembled=(
                *((name, THREE, exchanged(gone, came)) for name, gone, came in CONFUSED),
                *(("a number in the text of another", THREE, parts) for parts in inside(7, 1)),
                *WEIGHED,
            ),
        ),
        variant(
            "many transfers",
            assembled=(
                ("a thousand transfers", TWO, crowd(1_050, "done", channels=1)),
                ("one of the first is gone", TWO, crowd(1_050, "saved", 3, channels=1)),
                ("one in the middle is gone", TWO, crowd(1_050, "done", 525, channels=1)),
                ("one of the last is gone", TWO, crowd(1_050, "done", 1_040, channels=1)),
                *LARGEST,
            ),
        ),
        variant("one has come twice", assembled=(("and the next one is gone", TWO, {"twice": (1,)}),)),
    ),
}
