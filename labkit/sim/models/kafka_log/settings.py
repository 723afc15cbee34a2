"""What may be chosen of the log. Nothing here runs."""

from typing import NamedTuple

from labkit.sim.models.kafka_log.parts import Budget
from labkit.sim.parameters import Choice, Parameter, Values, Whole

VERSION = 1

PARAMETERS: dict[str, Parameter] = {
    "records": Whole("Input records of the job; record i goes to partition i modulo the partitions.", 2, 1, 6),
    "partitions": Whole("Partitions of the log.", 2, 1, 3),
    "isolation": Choice(
        "Who reads: both readers (what is claimed is claimed of read_committed), or only one of them.",
        "both",
        ("both", "read_committed", "read_uncommitted"),
    ),
    "naming": Choice(
        "A transactional id for each checkpoint, or one that is used again by every transaction of the job.",
        "per_checkpoint",
        ("per_checkpoint", "one"),
    ),
    "protocol": Choice(
        "Transactions of version 1 (one epoch for all of a producer), or 2 (a new epoch with each; KIP-890).",
        "v1",
        ("v1", "v2"),
    ),
    "refused": Choice(
        "What the job does when a commit is refused: ignore (it logs the error and goes on), or raise (it fails).",
        "ignore",
        ("ignore", "raise"),
    ),
    "positions": Choice(
        "When a reader stores its position: in one step with what it hands on, or in a step of its own afterwards.",
        "with_rows",
        ("with_rows", "after_rows"),
    ),
    "crashes": Whole("How many crashes there may be, of job, coordinator and readers together.", 1, 0, 3),
    "retries": Whole("How often the job may send a commit again because no answer came.", 0, 0, 2),
    "lapses": Whole("How many checkpoints may expire while the job lives on.", 0, 0, 2),
    "rollbacks": Whole("How often an older checkpoint may be restored.", 0, 0, 1),
    "zombies": Whole("How many jobs may be thought dead and go on writing.", 0, 0, 1),
    "others": Whole("Records that somebody else writes without a transaction.", 0, 0, 2),
    "ticks": Whole("How many ticks of time may pass; 0: time stands still.", 0, 0, 20),
    "timeout": Whole("Ticks from the first write of a transaction until the coordinator may abort it.", 1, 1, 20),
    "interval": Whole("Ticks between the starts of two checkpoints; 0: at any time, and nothing is punctual.", 0, 0, 5),
    "checkpoint_timeout": Whole("Ticks that a checkpoint may take, if the interval is not 0.", 1, 0, 5),
    "downtime": Whole("Ticks that the job may be down, if the interval is not 0.", 1, 0, 5),
    "broken": Choice(
        "Which rule is broken: last_stable_offset (it passes open transactions), early_commit (commit at pre-commit), "
        "init_first (recovery initialises the ids that it should commit), forget_lingering (recovery leaves open "
        "transactions alone), no_fencing (epochs are not compared), forget_decision (the coordinator answers before "
        "its decision is logged).",
        "nothing",
        (
            "nothing",
            "last_stable_offset",
            "early_commit",
            "init_first",
            "forget_lingering",
            "no_fencing",
            "forget_decision",
        ),
    ),
}

READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"


class Settings(NamedTuple):
    """The parameters, understood."""

    records: int
    partitions: int
    readers: tuple[str, ...]
    reuses_id: bool
    bumps_epoch: bool
    fails_when_refused: bool
    stores_with_rows: bool
    budget: Budget
    timeout: int
    interval: int
    checkpoint_timeout: int
    downtime: int
    broken: str

    def partition_of(self, record: int) -> int:
        """The partition that an input record goes to."""
        return record % self.partitions


def settings(values: Values) -> Settings:
    """The parameters, understood."""
    isolation = str(values["isolation"])
    return Settings(
        records=int(values["records"]),
        partitions=int(values["partitions"]),
        readers=(READ_COMMITTED, READ_UNCOMMITTED) if isolation == "both" else (isolation,),
        reuses_id=values["naming"] == "one",
        bumps_epoch=values["protocol"] == "v2",
        fails_when_refused=values["refused"] == "raise",
        stores_with_rows=values["positions"] == "with_rows",
        budget=Budget(*(int(values[name]) for name in Budget._fields)),
        timeout=int(values["timeout"]),
        interval=int(values["interval"]),
        checkpoint_timeout=int(values["checkpoint_timeout"]),
        downtime=int(values["downtime"]),
        broken=str(values["broken"]),
    )
