"""The parameters and states of the simulator `snapshot`: accounts, processes, channels, and parts of snapshots."""

from typing import NamedTuple

from labkit.sim.model import Durable, Volatile
from labkit.sim.parameters import Choice, Parameter, Whole

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
    "reorderings": Whole("How often a message may overtake the one before it, so that channels are not FIFO.", 0, 0, 3),
    "broken": Choice(
        "Which rule is left out: forget_channels (transfers in channels are not saved), late_markers (they are sent in "
        "a step of their own), forget_pause (paused processes go on), forget_drain (processes copy while money is "
        "under way), restore_alone (only crashed processes go back).",
        "nothing",
        ("nothing", "forget_channels", "late_markers", "forget_pause", "forget_drain", "restore_alone"),
    ),
}


START = 200
"""The money of each process at the beginning."""

AMOUNT = 100
"""The money that one transfer takes from the sender and gives to the receiver."""

MARKER = -1
"""The message that a process sends when it records its account, between transfers sent before and after that."""

PER_CHANNEL = 8
"""An upper bound for the transfers of a channel. Transfer k of channel c has the number c * PER_CHANNEL + k."""

Transfers = int
"""A set of transfers, as a number with one bit for each."""

Channel = tuple[int, ...]
"""The transfers (by number) and markers on the way from one process to another, first in, first out."""


class Account(NamedTuple):
    """The money of a process, and the transfers that it has sent and received."""

    balance: int
    sent: Transfers = 0
    received: Transfers = 0


class Part(NamedTuple):
    """One process's part of a snapshot: a copy of its account, and the transfers in flight to it."""

    account: Account
    channels: Transfers = 0


class Process(NamedTuple):
    """The state of one branch of the bank. Its account is in memory only, so it is None while the process is down.

    While the process waits for markers, `copy` is the account that it has recorded for the snapshot, and `awaited` has
    one bit for each process whose marker is missing. `in_flight` has the transfers that have arrived from the awaited
    processes since the copy.
    """

    part: Durable[Part | None] = None
    """The process's part of the running snapshot, once it is complete; None before."""
    account: Volatile[Account | None] = None
    copy: Volatile[Account | None] = None
    awaited: Volatile[int] = 0
    in_flight: Volatile[Transfers] = 0
    paused: Volatile[bool] = False


Snapshot = tuple[Part, ...]


class State(NamedTuple):
    """The state of all processes and channels, the last snapshot, and how many more events of each kind may happen.

    `completed` is the last completed snapshot; if it is empty, a restore leads back to the initial state. `running`
    says that a snapshot has begun and is neither completed nor given up.
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
    """The two processes that a channel connects, sender and receiver, counted from 0."""

    sender: int
    receiver: int

    @property
    def name(self) -> int:
        """Return the channel's name: the sender and the receiver as two digits, so 12 leads from process 1 to 2."""
        return 10 * (self.sender + 1) + self.receiver + 1


def ends(processes: int) -> tuple[Ends, ...]:
    """Return every channel between two different processes, sorted by the numbers of its sender and receiver."""
    return tuple(
        Ends(sender, receiver) for sender in range(processes) for receiver in range(processes) if sender != receiver
    )


def beginning(processes: int) -> Snapshot:
    """Return the bank's initial state as a snapshot, which a restore loads if no snapshot has been completed."""
    return (Part(Account(START)),) * processes


def in_channels(snapshot: Snapshot) -> Transfers:
    """Return the transfers that a snapshot records as in flight."""
    transfers = 0
    for part in snapshot:
        transfers |= part.channels
    return transfers


def orphans_and_missing(snapshot: Snapshot) -> tuple[Transfers, Transfers]:
    """Return the two sets of transfers that make a snapshot inconsistent: orphans and missing transfers.

    An orphan is received or in flight according to the snapshot, but not sent; or it is in flight, but already
    received. A missing transfer is sent, but neither received nor in flight.
    """
    sent = received = 0
    for part in snapshot:
        sent |= part.account.sent
        received |= part.account.received
    within = in_channels(snapshot)
    return (received & ~sent) | (within & (received | ~sent)), sent & ~received & ~within


def money(snapshot: Snapshot) -> int:
    """Return the sum of the money in the accounts and channels of a snapshot."""
    return sum(part.account.balance for part in snapshot) + AMOUNT * in_channels(snapshot).bit_count()
