# ---
# jupyter:
#   labkit:
#     needs: [00_start, 01_guarantees, 06_sinks]
#     slow: true
# ---

# %% [markdown]
# # Which sink survives which crash?
#
# > **Ticket 9** (invented). *From a colleague, on Friday:* "The query was stuck after the upgrade, so I deleted its
# > checkpoint and started it again. It works! Only the report looks odd. Shall we just wait?"
#
# In [06](06_sinks.ipynb) everything was simulated. Here a real PySpark job is killed by SIGKILL and restarted, and then
# somebody deletes its checkpoint.
#
# {head}
#
# You will be able to
#
# - read a checkpoint folder as Spark does,
# - say which sinks survive which crash, and what none can repair.

# %% tags=["parameters"]
failpoint = "sink.after_pre_commit"  # ready

# %%
from labkit import lab

lab.strip(killed=failpoint)

# %% [markdown]
# ## Four sinks, really killed
#
# For each micro-batch Spark does four things, in this order. It writes `offsets/0`, the plan: which offsets belong to the batch.
# It runs the tasks. It lets the sink commit. It writes `commits/0`, the note that the batch is finished.
#
# Five runs. *append* and *idempotent* are killed at *ready*, where all rows are out. *wal* is killed at *half*, with a
# part of its log copied, in log-then-commit. *two_phase* is killed at *committed*, in both orders. For log-then-commit
# the lab's sink tells Spark "done" when everything is prepared. A listener in the driver then looks for `commits/0`,
# and looks once more when the query ends. When the file is there, the sink commits.

# %%
lab.ask("07-twice")

# %%
runs = lab.crash_each(
    {
        "append": {"at": failpoint, "sink": "append"},
        "idempotent": {"at": failpoint, "sink": "idempotent", "store": "sqlite"},
        "wal": {"at": "sink.mid_commit", "sink": "wal", "order": "decision"},
        "two_phase, commit-then-log": {"at": "sink.after_commit", "sink": "two_phase", "order": "engine"},
        "two_phase, log-then-commit": {"at": "sink.after_commit", "sink": "two_phase", "order": "decision"},
    }
)
lab.compare(runs)

# %% tags=["nbval-check-output"]
lab.answer("07-twice", [name for name, run in runs.items() if run.verdict.duplicate])

# %% [raw] tags=["expected"]
# It was: append, wal, two_phase, commit-then-log.
# append and two_phase in Spark's order had rows out and no commits/0, so the batch ran again. wal had commits/0, so its batch did not run again, but recovery copied its whole log.

# %% tags=["checked"]
assert all(outcome.crashes[0]["signal"] == 9 for outcome in runs.values())
assert list(runs["append"].verdict.duplicate) == [0, 1, 2]
assert list(runs["wal"].verdict.duplicate) == [1]
assert list(runs["two_phase, commit-then-log"].verdict.duplicate) == [0, 1, 2]
_, seen = lab.seen_over_time(runs, "hello")
assert [point.value for point in seen["idempotent"].points] == [1, 2, 1, 2]

# %% [markdown]
# Real Spark does what [06](06_sinks.ipynb) has simulated. Three of the five had rows out and no note, so their batch
# ran again; of these, *idempotent* wrote the same values over its rows. This is what lay in the checkpoint folder of
# each job while no driver ran:

# %% tags=["nbval-check-output"]
{name: {log: run.crashes[0][log] for log in ("offset_log", "commit_log")} for name, run in runs.items()}

# %% [raw] tags=["expected"]
# {'append': {'offset_log': [0], 'commit_log': []},
#  'idempotent': {'offset_log': [0], 'commit_log': []},
#  'wal': {'offset_log': [0], 'commit_log': [0]},
#  'two_phase, commit-then-log': {'offset_log': [0], 'commit_log': []},
#  'two_phase, log-then-commit': {'offset_log': [0], 'commit_log': [0]}}

# %% [markdown]
# With `offsets/2` and `commits/1` as the newest files, the next start runs batch 2 again, with exactly the offsets in `offsets/2`.
# With `commits/2` it plans batch 3. (In log-then-commit order it may first have to commit batch 2.)
#
# Commit-then-log can write a batch **twice**, unless the sink recognises it, as *batch_marker* and Delta do. Log-then-commit can **lose** one: nobody runs it again, so a
# store that forgets what was prepared has lost its rows ([09](09_kafka.ipynb)).
#
# **Your turn: break it.** At which moments does *wal* double rows in Spark's order? At which does *append* survive?
#
# <details><summary>What the panel says</summary>wal: half and flushed, in both orders. append: plan (no row written) and noted (<code>commits/0</code> written).</details>

# %%
lab.panel("wal")

# %% [markdown]
# ## A checkpoint that is deleted
#
# Now the ticket. A query is stuck, so somebody deletes its checkpoint folder and starts it again. Batch numbers and
# input begin at 0 again. We let a first batch of one record finish, kill the job and delete the folder. We do so twice,
# with two tables that have a batch marker. The first marker names the query, and the query has a new name after the
# restart. The second marker has a name that stays; its job gets three records a batch after the restart.

# %%
lab.ask("07-deleted")

# %%
marker = {
    "at": "engine.after_commit_log",
    "records_per_batch": 1,
    "delete_checkpoint": True,
    "sink": "batch_marker",
    "store": "sqlite",
}
afresh = lab.crash_each(
    {"new name": marker, "name that stays": marker | {"query": "counts", "later_records_per_batch": 3}}
)
lab.compare(afresh)

# %% tags=["nbval-check-output"]
what = {
    name: "loses" if run.verdict.lost else "doubles" if run.verdict.duplicate else "right"
    for name, run in afresh.items()
}
lab.answer("07-deleted", f"{what['new name']}, {what['name that stays']}")

# %% [raw] tags=["expected"]
# It was: the first doubles rows, the second loses rows.
# Everything ran again under a name that no marker knows. Under the old name, the old marker said that batch 0 was done, and the new batch 0 held three records.

# %% tags=["checked"]
assert list(afresh["new name"].verdict.duplicate) == [0]
assert list(afresh["name that stays"].verdict.lost) == [1, 2]

# %% [markdown]
# Neither is right. Doubled rows can be found and removed. The lost ones leave no trace in the table, and no error anywhere.
#
# > **You will read:** "*the checkpoint is only an optimisation*". In *Spark Streaming*, the older API of DStreams,
# > a job without state can run without one. In *Structured Streaming* the offset log and the commit log **are** the guarantee.
#
# > **Found in the wild.** Losing one small file is enough. A folder without its `metadata` file "will generate a new UUID on restart", which "breaks the deduplication
# > mechanism of exactly-once sinks" ([apache/spark#53844](https://github.com/apache/spark/pull/53844), 2026). Spark 4.2 refuses such a folder.
#
# A source can forget, too. Behind a plain socket, no sink brings back what was read and not written ([01](01_guarantees.ipynb)); Spark ships its socket source for tests only.
#
# ## What Spark ships
#
# None of these sinks is Spark's own: all are the lab's. Spark ships:
#
# | Spark's own | what it promises |
# |---|---|
# | `format("kafka")` | at-least-once |
# | files: `format("parquet")` and others | a batch that is in its log `_spark_metadata` is skipped; readers must read only the files that this log names |
# | `foreachBatch(f)` | at-least-once; the rest is up to your function `f(rows, batchId)` |
#
# With `foreachBatch` the result is exactly-once if your function is a *batch_marker*: it writes rows and marker (query, `batchId`) in **one** transaction, and
# skips a batch whose marker is there. The two conditions are those of [06](06_sinks.ipynb). The lab's version:

# %%
lab.code("batch_marker")

# %% [markdown]
# ## Where the counts live
#
# A count is state. The part of Spark that keeps it is called a **state store provider**. By default it keeps a map in
# memory; `rocksdb` keeps a database on the local disk. On a cluster both are in the **executors**, the processes that
# run the tasks. (In this lab executor and driver are one process.) After each batch both write their changes into the
# checkpoint. We count a poem with RocksDB and kill in the second batch, number 1 (`@1`):

# %%
poem = {"job": "totals", "sink": "two_phase", "records_per_batch": 18, "state": "rocksdb"}
rocks = lab.crash("sink.after_pre_commit@1", **poem)
rocks

# %% tags=["nbval-check-output"]
[file for file in rocks.crashes[0]["state_files"] if "state/0/0/1" in file]

# %% [raw] tags=["expected"]
# ['state/0/0/1.zip']

# %% tags=["checked"]
assert rocks.verdict.guarantee == "exactly-once"

# %% [markdown]
# The counts survive: `state/0/0/1` is version 1 of the state of operator 0, task 0, and batch 0 left it. A lost machine
# takes the working copy, in memory or on its disk. Only the checkpoint folder can survive, if it lies elsewhere.
#
# ## All moments at once
#
# *Simulated*; a test compares each cell with real Spark. The sign ↩ marks a value that jumped back.

# %%
cells = lab.matrix()
cells

# %% tags=["checked"]
assert cells["two_phase on files, commit-then-log", "sink.after_commit"].guarantee == "at-least-once"

# %% [markdown]
# *two_phase* in log-then-commit order is exactly-once everywhere, as long as the store keeps what was prepared.

# %% tags=["exercise"]
# exercise 07-sink
sink_settings = {"sink": ..., "store": ..., "order": ...}

# %% tags=["solution"]
# exercise 07-sink
sink_settings = {"sink": "batch_marker", "store": "sqlite", "order": None}

# %% tags=["check", "nbval-check-output"]
lab.check("07-sink")

# %% [raw] tags=["expected"]
# 07-sink: not attempted (4 points); lab.hint("07-sink") gives a hint.

# %% tags=["exercise"]
# exercise 07-why
why_text = ...  # a text in quotes; three of them on each side, if it has several lines

# %% tags=["solution"]
# exercise 07-why
why_text = """The sink writes each count at once, by the key of its word. The job dies when hello=2 is out and its batch is not
noted. The batch runs again and writes hello=1 over hello=2, and then hello=2 once more, so in the end every count is right. Whoever
read the table in between saw 2, then 1, then 2. That does not matter to a report that is made when the job has caught up; it matters
to anybody who acts on what the table says now, such as an alarm or another job that reads it."""

# %% tags=["check", "nbval-check-output"]
lab.check("07-why")

# %% [raw] tags=["expected"]
# 07-why: not attempted (3 points); lab.hint("07-why") gives a hint.

# %% [markdown]
# ## Check yourself
#
# **1. A sink runs `n = n + 1` for every record instead of writing the value. What does a crash do?**
#
# <details><summary>a) Nothing, an upsert is idempotent.</summary>No. Only one that writes the same value again is.</details>
# <details><summary>b) The repeated batch is added twice.</summary>Yes. Idempotent means: the same keys and values in
# every run.</details>
#
# **2. Two-phase commit in log-then-commit order is killed after `commits/N` and before any commit. What is right?**
#
# <details><summary>a) The batch is lost.</summary>No. The stored handles say what to commit.</details>
# <details><summary>b) Recovery commits it.</summary>Yes. The decision is on disk, and any driver can carry it out.</details>
#
# ## What this is called in Flink, Spark and Kafka
#
# | here | Spark | Flink | Kafka |
# |---|---|---|---|
# | plan | `offsets/N` | source offsets in the checkpoint | - |
# | note | `commits/N` | completed checkpoint | `PrepareCommit` in the coordinator's log |
# | folder | `checkpointLocation`, the query's | checkpoint storage | - |
# | state store provider | `spark.sql.streaming.stateStore.providerClass`; default `HDFSBackedStateStoreProvider`, or `RocksDBStateStoreProvider` | state backend | - |
# | *wal* | - | [`GenericWriteAheadSink`](https://github.com/apache/flink/blob/release-1.20/flink-streaming-java/src/main/java/org/apache/flink/streaming/runtime/operators/GenericWriteAheadSink.java) (1.x) | - |
# | *two_phase* | `DataWriter.commit`, then `StreamingWrite.commit`; no handle stored | `Sink` with `SupportsCommitter`; up to 1.x `TwoPhaseCommitSinkFunction` | no vote |
# | *batch_marker* | `foreachBatch`; Delta's `txnAppId`, `txnVersion` | - | - |
#
# ## On Monday
#
# - In a stopped job, is the newest number of `offsets` also in `commits`? If not, that batch will run again.
# - `checkpointLocation` must survive the machine; nobody may "clean it up".
# - Look into every `foreachBatch`: are query, `batchId` and rows in one transaction?
# - If a checkpoint must go, expect rows twice, or lost where a marker's name stays or the source starts at `latest`.
#
# ## Closing the ticket
#
# > **Ticket 9, closed.** The new checkpoint counts its batches from 0 again. So the job read everything again that the
# > input log still held, from Thursday on, and the table that appends has Thursday twice. The table with a marker lost
# > orders: its marker names the table and not the query, so the new batches were taken for old ones. We put the old
# > folder back as it was after its last batch, so that the job reads Friday again from there. Whatever is then in a
# > table twice we remove by order id. And the runbook says: nobody deletes a checkpoint without a plan for the rows
# > behind it, and nobody restores an *older* copy, which doubles or loses rows itself ([12](12_engines.ipynb)).
#
# Sources: Spark 4.2's `MicroBatchExecution`, `FileStreamSink` and guides (*State Store*; Spark Streaming);
# [Structured Streaming](https://doi.org/10.1145/3183713.3190664), SIGMOD 2018; Flink's release notes of 2.0.
#
# Next: [08, can a transaction outlive the program that wrote it?](08_postgres.ipynb)
