"""The named runs of the log simulator, each with a sentence on what to watch for.

A scenario lists its important steps; after them the run goes on to its end without further faults.
"""

from labkit.sim.blueprint import Scenario

_QUIET = {"crashes": 0}
_ONE = {"partitions": 1}
_COMMITTED = "begin(0) write(0) pre_commit(0) complete(0) send_commit(0) deliver(0) mark(0)"
_FIVE_SECONDS = {"crashes": 0, "interval": 2, "timeout": 1, "checkpoint_timeout": 1}
"""The parameters of a job with ticks of five seconds: a transaction timeout of 5 s, and a checkpoint every 10 s."""

SCENARIOS: dict[str, Scenario[str]] = {
    "kafka_to_kafka": Scenario(
        "Record 0 is visible to read_committed only after its checkpoint is complete and its marker is written; "
        "record 1 waits behind the next barrier.",
        {**_QUIET, **_ONE},
        "begin(0) write(0) poll_uncommitted(0) pre_commit(0) begin(1) write(1) complete(0) send_commit(0) deliver(0) "
        "mark(0) poll_committed(0) pre_commit(1) complete(1)",
    ),
    "dirty_read": Scenario(
        "The job dies before its barrier. read_uncommitted has record 0 of a transaction that is then aborted, and "
        "gets it again; read_committed gets it once.",
        {**_ONE},
        "begin(0) write(0) poll_uncommitted(0) crash restart(2)",
    ),
    "half_visible": Scenario(
        "The coordinator dies between two markers: one half of a committed transaction is visible, the other is not.",
        {},
        "begin(0) write(0) write(1) pre_commit(0) complete(0) send_commit(0) deliver(0) mark(0) crash_coordinator "
        "poll_committed(0)",
    ),
    "waiting_behind": Scenario(
        "A plain record of somebody else is in the log, and read_committed does not get it while the job is down with "
        "an open transaction before it.",
        {**_ONE, "others": 1},
        "begin(0) write(0) write_plain(0) crash poll_uncommitted(0) restart(2)",
    ),
    "commit_after_restart": Scenario(
        "The job dies after the decision. The next incarnation commits by the handle in the checkpoint, before it "
        "initialises any id, and nothing is written twice.",
        {},
        "begin(0) write(0) pre_commit(0) complete(0) crash restart(2)",
    ),
    "initialised_first": Scenario(
        "The same, but recovery initialises the id first: that aborts what it should commit, and the record is lost.",
        {"broken": "init_first"},
        "begin(0) write(0) pre_commit(0) complete(0) crash restart(2)",
    ),
    "coordinator_crash": Scenario(
        "EndTxn was answered, and the coordinator dies before the markers: its log has the decision; they come later.",
        {},
        "begin(0) write(0) write(1) pre_commit(0) complete(0) send_commit(0) deliver(0) crash_coordinator finish",
    ),
    "late_commit": Scenario(
        "A commit is asked for twice and arrives late a second time; the id belongs to one checkpoint, so the second "
        "one changes nothing.",
        {**_QUIET, "retries": 1},
        "begin(0) write(0) pre_commit(0) complete(0) send_commit(0) resend(0) deliver(0) mark(0) begin(1) write(1) "
        "deliver(0)",
    ),
    "reused_id": Scenario(
        "The same with one id: the late request commits the next open transaction, the job dies before its checkpoint, "
        "and record 1 comes twice.",
        {"naming": "one", "retries": 1},
        "begin(0) write(0) pre_commit(0) complete(0) send_commit(0) resend(0) deliver(0) mark(0) write(1) deliver(0) "
        "mark(1) crash",
    ),
    "reused_id_with_new_epochs": Scenario(
        "The same with transaction.version=2: every transaction has its own epoch, and the late request is refused.",
        {"naming": "one", "retries": 1, "protocol": "v2"},
        "begin(0) write(0) pre_commit(0) complete(0) send_commit(0) resend(0) deliver(0) mark(0) write(1) deliver(0) "
        "crash",
    ),
    "zombie_fenced": Scenario(
        "A job that was thought dead wakes up and writes: its epoch is old, so it is refused.",
        {**_QUIET, "zombies": 1},
        "begin(0) replace_job restart(2) fence(0) begin(0) write(0) zombie_write(0)",
    ),
    "zombie": Scenario(
        "The same where epochs are not compared: its record gets into the new job's transaction and comes twice.",
        {**_QUIET, "zombies": 1, "broken": "no_fencing"},
        "begin(0) replace_job restart(2) fence(0) begin(0) write(0) zombie_write(0)",
    ),
    "steady_traffic": Scenario(
        "Timeout 5 s, checkpoint every 10 s, and a record every 5 s: the transaction expires, the next write is "
        "refused, and the job starts again from its checkpoint; nothing is lost, but it may go on like this.",
        {**_FIVE_SECONDS, "ticks": 1, **_ONE},
        "begin(0) write(0) tick expire(0) mark(0) write(1)",
    ),
    "burst_then_silence": Scenario(
        "The same timeouts, one burst and then silence: the checkpoint completes, the commit is refused, the error is "
        "only logged, and both records are lost.",
        {**_FIVE_SECONDS, "ticks": 2, **_ONE},
        "begin(0) write(0) write(1) tick expire(0) mark(0) pre_commit(0) complete(0) send_commit(0) deliver(0)",
    ),
    "just_before_the_barrier": Scenario(
        "The same timeouts, and the records come just before the barrier: the clock starts with the first write, so "
        "nothing happens.",
        {**_FIVE_SECONDS, "ticks": 2, **_ONE},
        "begin(0) tick tick write(0) write(1) pre_commit(0) complete(0) send_commit(0) deliver(0)",
    ),
    "timeout_in_a_loop": Scenario(
        "The transaction expires after the decision, and a refused commit is an error: every incarnation meets it.",
        {**_QUIET, "ticks": 1, "refused": "raise"},
        "begin(0) write(0) pre_commit(0) complete(0) tick expire(0) mark(0)",
    ),
    "expired_checkpoint": Scenario(
        "Checkpoint 0 expires and its transaction rides along: it is committed with checkpoint 1, and is open longer.",
        {**_QUIET, "lapses": 1},
        "begin(0) write(0) pre_commit(0) lapse(0) begin(1) write(1) pre_commit(1) complete(1)",
    ),
    "older_checkpoint": Scenario(
        "An older checkpoint is restored: record 0 was committed with one that is gone, and comes a second time.",
        {"rollbacks": 1},
        f"{_COMMITTED} crash roll_back(0)",
    ),
    "reader_crash": Scenario(
        "A reader dies after it has handed on a record and before it has stored its position: it gets it again, "
        "although the log holds it once.",
        {"positions": "after_rows", "isolation": "read_committed"},
        f"{_COMMITTED} poll_committed(0) crash_reader(0)",
    ),
}
