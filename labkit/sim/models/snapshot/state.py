"""The snapshot model's parameters and states: accounts, the processes that hold them, channels, and parts of snapshots.

The classes declare what a crash keeps and what it drops.
"""

from collections.abc import Iterator
from typing import NamedTuple

from labkit.sim.model import Durable, Volatile
from labkit.sim.parameters import Choice, Parameter, Whole

VERSION = 1

NAIVE, STOP, MARKERS = "naive", "stop_the_world", "chandy_lamport"

PARAMETERS: dict[str, Parameter] = {
    "algorithm": Choice(
        "How a snapshot is taken: each process copies when it likes (naive), all pause and drain first "
        "(stop_the_world), or markers flow with the money (chandy_lamport).",
        MARKERS,
        (NAIVE, STOP, MARKERS),
    ),
    "processes": Whole("Processes; each has a channel to each other.", 3, 2, 5),
    "transfers": Whole("How many transfers there may be.", 1, 0, 6),
    "snapshots": Whole("How many snapshots may be started, one after another.", 1, 0, 3),
    "crashes": Whole("How many crashes there may be.", 1, 0, 3),
    "reorderings": Whole("How often a message may overtake the one before it: channels are not FIFO then.", 0, 0, 3),
    "broken": Choice(
        "Which rule is left out: forget_channels (what is in the channels is not saved), late_markers (they are sent "
        "in a step of their own), forget_pause (who is paused goes on), forget_drain (copies are made while money is "
        "under way), restore_alone (only who crashed goes back).",
        "nothing",
        ("nothing", "forget_channels", "late_markers", "forget_pause", "forget_drain", "restore_alone"),
    ),
}


START = 200
"""Money that each process has in the beginning."""

AMOUNT = 100
"""Money that one transfer takes from the sender and gives to the receiver."""

MARKER = -1
"""The message that says: whatever comes after it was sent after the sender recorded its state."""

PER_CHANNEL = 8
"""More transfers than any channel carries. Transfer k of channel c has the number c * PER_CHANNEL + k."""

Transfers = int
"""A set of transfers, as bits by number."""

Channel = tuple[int, ...]
"""What is under way from one process to another, first in, first out: transfers by number, and markers."""


class Account(NamedTuple):
    """What a process knows, and what a copy of it holds: its money, and which transfers it has sent and received."""

    balance: int
    sent: Transfers = 0
    received: Transfers = 0


class Part(NamedTuple):
    """One process's part of a snapshot: the copy of its account, and what was in the channels that lead to it."""

    account: Account
    channels: Transfers = 0


class Process(NamedTuple):
    """One branch of the bank. While it is down its account is None: it is in memory only.

    `copy` is its recorded account while it still waits for the markers of the processes in `awaited` (as bits);
    `in_flight` are the transfers that came from them meanwhile.
    """

    part: Durable[Part | None] = None
    """Its part of the snapshot that is running, once it is whole."""
    account: Volatile[Account | None] = None
    copy: Volatile[Account | None] = None
    awaited: Volatile[int] = 0
    in_flight: Volatile[Transfers] = 0
    paused: Volatile[bool] = False


Snapshot = tuple[Part, ...]


class State(NamedTuple):
    """Processes, and the environment: channels, the store of snapshots, and what may still happen.

    `completed` is the last completed snapshot; empty: there is none, and a restore leads back to the beginning.
    `running` says that a snapshot has begun, and is neither completed nor given up.
    """

    processes: tuple[Process, ...]
    channels: tuple[Channel, ...]
    running: bool
    completed: Snapshot
    transfers: int
    snapshots: int
    reorderings: int
    crashes: int


class Ends(NamedTuple):
    """The two ends of a channel, by place; a channel is named by its ends, so that 12 leads from process 1 to 2."""

    sender: int
    receiver: int

    @property
    def name(self) -> int:
        """Two digits: sender and receiver, counted from 1."""
        return 10 * (self.sender + 1) + self.receiver + 1


def ends(processes: int) -> tuple[Ends, ...]:
    """Every channel between two different processes, in order."""
    return tuple(
        Ends(sender, receiver) for sender in range(processes) for receiver in range(processes) if sender != receiver
    )


def beginning(processes: int) -> Snapshot:
    """What a restore loads when no snapshot was completed."""
    return (Part(Account(START)),) * processes


def numbers(bits: int) -> Iterator[int]:
    """The members of a set that is held as bits, in order."""
    return (number for number in range(bits.bit_length()) if bits >> number & 1)


def in_channels(snapshot: Snapshot) -> Transfers:
    """What a snapshot holds in its channels."""
    transfers = 0
    for part in snapshot:
        transfers |= part.channels
    return transfers


def stray(snapshot: Snapshot) -> tuple[Transfers, Transfers]:
    """What makes a snapshot no consistent cut: transfers received but not sent in it, and transfers that are missing.

    Missing is what was sent in it, not received in it, and is not in its channels. Something in a channel that was
    not sent, or was received already, counts as the former.
    """
    sent = received = 0
    for part in snapshot:
        sent |= part.account.sent
        received |= part.account.received
    within = in_channels(snapshot)
    return (received & ~sent) | (within & (received | ~sent)), sent & ~received & ~within


def money(snapshot: Snapshot) -> int:
    """Money in the accounts and channels of a snapshot."""
    return sum(part.account.balance for part in snapshot) + AMOUNT * in_channels(snapshot).bit_count()
