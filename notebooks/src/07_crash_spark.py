# ---
# jupyter:
#   labkit:
#     needs: [00_start, 01_guarantees, 06_sinks]
#     slow: true
# ---

# %% [markdown]
# # Which sink survives which crash?
#
# The shop's job can write its counts through five sinks. Each has a plan against crashes, or none.
# Here a real PySpark job is killed by SIGKILL and restarted.
#
# {head}
#
# You will be able to
#
# - read a checkpoint folder like Spark does,
# - say which sinks survive which crash, and what none can repair.

# %% tags=["parameters"]
failpoint = "sink.after_pre_commit"  # moment 4 of the strip

# %%
from labkit import lab

# %% [markdown]
# ## Five sinks, one moment
#
# For each micro-batch Spark does four things, in this order. It writes `offsets/0`, the plan: which offsets belong to the batch.
# It runs the tasks. It lets the sink commit. It writes `commits/0`, the note that the batch is finished.
#
# | sink | writes | a reader sees the rows |
# |---|---|---|
# | append | each row | at once |
# | idempotent | the value of a key, over the older one | at once |
# | wal | into a log of its own, copied on commit | row by row, on commit |
# | batch_marker | all rows and the batch's number in one transaction | with that transaction |
# | two_phase | into a transaction that it prepares | on commit |
#
# We kill all five at moment 4: all tasks are ready, no transaction is committed. `commits/0` is missing, so Spark will run the batch again, with the offsets in `offsets/0`.
# The second run overwrites an undecided log and rolls back an undecided transaction.

# %%
lab.strip(killed=failpoint)

# %%
lab.ask("07-twice")

# %%
files, database = {"at": failpoint, "store": "files"}, {"at": failpoint, "store": "sqlite"}
same_moment = lab.crash_each(
    {
        "append": files | {"sink": "append"},
        "idempotent": database | {"sink": "idempotent"},
        "wal": files | {"sink": "wal"},
        "batch_marker": database | {"sink": "batch_marker"},
        "two_phase": files | {"sink": "two_phase"},
    }
)
lab.compare(same_moment)

# %% tags=["nbval-check-output"]
shown = {sink: outcome.seen.partition("crash")[0] for sink, outcome in same_moment.items()}  # before the kill
lab.answer("07-twice", [sink for sink, rows in shown.items() if "=" in rows])

# %% [raw] tags=["expected"]
# It was: append, idempotent.
# Both write each row at once. The other three had shown nothing yet: what they had kept was replaced or rolled back. The batch ran again in all five, and only append has its rows twice in the end.

# %% tags=["checked"]
assert all(outcome.crashes[0]["signal"] == 9 for outcome in same_moment.values())
assert list(same_moment["append"].verdict.duplicate) == [0, 1, 2]
assert [outcome.verdict.guarantee for outcome in same_moment.values()] == ["at-least-once"] + 4 * ["exactly-once"]

# %% [markdown]
# Four sinks end *exactly-once*. The card of one run says what a reader saw:

# %%
# Spark's asynchronous progress tracking and its Real-Time Mode differ: a batch that runs again may hold other offsets.
same_moment["idempotent"]

# %% tags=["checked"]
_, seen = lab.seen_over_time(same_moment, "hello")
assert [point.value for point in seen["idempotent"].points] == [1, 2, 1, 2]
assert [point.value for point in seen["two_phase"].points] == [1, 2]

# %% [markdown]
# *hello* jumps back: 1, 2, and after the kill 1, 2 again.
#
# ## Who decides that a batch counts?
#
# Only *wal* and *two_phase* commit in a second step, so only they take an order.
# *wal* is killed at moment 6, half of its log copied, in log-then-commit; *two_phase* at moment 8, every transaction committed, in both:
#
# | order | whose | what happens |
# |---|---|---|
# | commit-then-log (`order="engine"`) | Spark's | the sink commits, then `commits/0` is written |
# | log-then-commit (`order="decision"`) | Flink's | the decision is written, then the sink commits |
#
# Spark's own four steps stay as they are. For log-then-commit the lab's sink tells Spark "done" when all is prepared. A listener in the driver then looks for
# `commits/0`, once more when the query ends, and commits. For this sink that file is the decision; Flink's is a completed checkpoint.

# %%
lab.ask("07-order")

# %%
limits = {
    "wal, moment 6": {"at": "sink.mid_commit", "sink": "wal", "order": "decision"},
    "two_phase, commit-then-log": {"at": "sink.after_commit", "sink": "two_phase", "order": "engine"},
    "two_phase, log-then-commit": {"at": "sink.after_commit", "sink": "two_phase", "order": "decision"},
}
other_moments = lab.crash_each(limits)
lab.compare(other_moments)

# %% tags=["nbval-check-output"]
lab.answer("07-order", [name for name, run in other_moments.items() if 0 not in run.crashes[0]["commit_log"]])

# %% [raw] tags=["expected"]
# It was: two_phase, commit-then-log.
# Only there commits/0 was missing. In log-then-commit order it is written before the sink's commit, so nothing runs again: recovery finishes the commit, and copies the log of wal from its beginning.

# %% [markdown]
# The checkpoint folder while no driver ran:

# %% tags=["nbval-check-output"]
{name: {log: run.crashes[0][log] for log in ("offset_log", "commit_log")} for name, run in other_moments.items()}

# %% [raw] tags=["expected"]
# {'wal, moment 6': {'offset_log': [0], 'commit_log': [0]},
#  'two_phase, commit-then-log': {'offset_log': [0], 'commit_log': []},
#  'two_phase, log-then-commit': {'offset_log': [0], 'commit_log': [0]}}

# %% tags=["checked"]
assert list(other_moments["wal, moment 6"].verdict.duplicate) == [1]
assert list(other_moments["two_phase, commit-then-log"].verdict.duplicate) == [0, 1, 2]
assert list(other_moments["two_phase, log-then-commit"].verdict.duplicate) == []

# %% [markdown]
# In commit-then-log order `commits/0` was missing: the gap between the sink's commit and Spark's note is where duplicates come from, unless the sink recognises the batch, as *batch_marker* and Delta do.
# With `offsets/2` and `commits/1` as the newest files, the next start runs batch 2 again, with exactly the offsets in `offsets/2`.
# With `commits/2` it plans batch 3. (In log-then-commit order it may first have to commit batch 2.)
#
# Commit-then-log can write a batch **twice**. Log-then-commit can **lose** one: nobody runs it again, so a store that
# forgets what was prepared has lost its rows ([09](09_kafka.ipynb)).
#
# *wal* doubled the one row that was copied before the kill. The batch did not run again; recovery copied the whole log. In
# commit-then-log the batch would run again, and its new log be copied.
#
# > **What popular notes get wrong.** "*Spark starts no second driver on a folder, so no row comes twice.*" A first driver that was only stopped
# > is refused when it comes to write a log entry that exists (`CONCURRENT_STREAM_LOG_UPDATE`). That is too late: its sink has written by then ([12](12_engines.ipynb)).
#
# **Your turn: break it.** At which moments does *wal* double rows in Spark's order? At which does *append* survive?
#
# <details><summary>What the panel says</summary>wal: 6 (half of its log copied) and 7 (all copied, not noted), in both orders. append: 1 (no row written) and 9 (<code>commits/0</code> written).</details>

# %%
lab.panel("wal")

# %% [markdown]
# ## What no sink can repair
#
# ### A source that forgets
#
# A socket cannot repeat a line. Our server sends lines 0 to 5, each once: two to the first driver, four to the second.
# The first driver begins with an empty batch 0. It plans lines 0 and 1 as batch 1, writes `offsets/1`, and is killed before it writes a row.
# Spark's socket source numbers the lines of **every connection** from 0. And `offsets/1` says: numbers 0 and 1 belong to batch 1.
# The second driver connects and runs batch 1 again at once, before a line arrives. Batch 2 begins at number 2.

# %%
lab.ask("07-socket")

# %%
killed = {"at": "source.after_offset_log@1", "job": "socket", "records_per_batch": 2}  # @1: in batch 1
from_socket = lab.crash_each({sink: killed | {"sink": sink} for sink in ("append", "two_phase")})
lab.compare(from_socket)

# %% tags=["nbval-check-output"]
lab.answer("07-socket", len(from_socket["two_phase"].verdict.lost))

# %% [raw] tags=["expected"]
# It was 4.
# Lines 0 and 1 died with the first driver. Lines 2 and 3 were numbers 0 and 1 of the new connection, which belong to batch 1. That batch had run again before they arrived, and was empty.

# %% tags=["checked"]
assert [list(outcome.verdict.lost) for outcome in from_socket.values()] == 2 * [[0, 1, 2, 3]]

# %% [markdown]
# Both sinks miss the same four lines. What the source cannot give again is lost. (Spark ships this source for tests only.)
#
# ### A checkpoint that is deleted
#
# A query is stuck, so somebody deletes its checkpoint folder and starts it again. Batch numbers and input begin at 0 again.
# We let a first batch of one record finish, kill the job and delete the folder. Three sinks: *append*; a batch marker that names the query, which is new now;
# and a marker under a name that stays. The last gets three records a batch after the restart.

# %%
deleted = {"at": "engine.after_commit_log", "records_per_batch": 1, "delete_checkpoint": True}
marker = deleted | {"sink": "batch_marker", "store": "sqlite"}
afresh = lab.crash_each(
    {
        "append": deleted,
        "marker, new name": marker,
        "marker, name that stays": marker | {"query": "counts", "later_records_per_batch": 3},
    }
)
lab.compare(afresh)

# %% tags=["checked"]
assert list(afresh["append"].verdict.duplicate) == list(afresh["marker, new name"].verdict.duplicate) == [0]
assert list(afresh["marker, name that stays"].verdict.lost) == [1, 2]

# %% [markdown]
# In the first two rows a record comes twice: everything ran again. In the third, two records are *lost*:
# the old marker said that batch 0 was done, so the sink skipped the new one, with all three records.
#
# > **What popular notes get wrong.** "*The checkpoint is only an optimisation.*" In *Spark Streaming*, the older API of DStreams,
# > a job without state can run without one. In *Structured Streaming* the offset log and the commit log **are** the guarantee.
#
# ### foreachBatch, and what Spark ships
#
# None of the five is Spark's own: all are the lab's. Spark ships:
#
# | Spark's own | what it promises |
# |---|---|
# | `format("kafka")` | at-least-once |
# | files, as `format("parquet")` | a batch that is in its log `_spark_metadata` is skipped; readers must go by that log |
# | `foreachBatch(f)` | at-least-once; the rest is up to your function `f(rows, batchId)` |
#
# With `foreachBatch` the result is exactly-once if your function is a *batch_marker*: it writes rows and marker (query, `batchId`) in **one** transaction, and
# skips a batch whose marker is there. The two conditions are those of [06](06_sinks.ipynb). The lab's version:

# %%
lab.code("batch_marker")

# %% [markdown]
# ## Where the counts live
#
# A count is state. The part of Spark that keeps it is called a **state store provider**. `hdfs`, the default, keeps a map in memory; `rocksdb` keeps a database on the local disk.
# On a cluster both are in the **executors**, the processes that run the tasks. (In this lab executor and driver are one process.)
# After each batch both write their changes into the checkpoint. We count a poem and kill in the second batch:

# %%
poem = {"at": "sink.after_pre_commit@1", "job": "totals", "sink": "two_phase", "records_per_batch": 18}
# hdfs is named after the file system in which such a checkpoint often lies
providers = lab.crash_each({state: poem | {"state": state} for state in ("hdfs", "rocksdb")})
lab.compare(providers)

# %% tags=["nbval-check-output"]
{name: [file for file in run.crashes[0]["state_files"] if "state/0/0/1" in file] for name, run in providers.items()}

# %% [raw] tags=["expected"]
# {'hdfs': ['state/0/0/1.delta'], 'rocksdb': ['state/0/0/1.zip']}

# %% tags=["checked"]
assert {outcome.verdict.guarantee for outcome in providers.values()} == {"exactly-once"}

# %% [markdown]
# Both survive: `state/0/0/1` is version 1 of the state of operator 0, task 0, and batch 0 left it.
# A lost machine takes the working copy, in memory or on its disk. What survives is the checkpoint folder, so it must lie elsewhere.
#
# And without a checkpoint? We run such a query, with its result in memory, kill it, and run it again:

# %%
lives = lab.memory_sink()

# %% tags=["nbval-check-output"]
[{"rows": life.rows, "left on disk": life.left} for life in lives]

# %% [raw] tags=["expected"]
# [{'rows': [(0, 'hello', 1), (1, 'world', 1), (2, 'hello', 2)],
#   'left on disk': []},
#  {'rows': [(0, 'hello', 1), (1, 'world', 1), (2, 'hello', 2)],
#   'left on disk': []}]

# %% tags=["checked"]
assert lives[0].left == []
assert lives[0].rows == lives[1].rows
assert {life.signal for life in lives} == {9}

# %% [markdown]
# Neither driver left anything, so the second began at the first record.
#
# ## All moments at once
#
# *Simulated*; a test compares each cell with real Spark. A hook marks a value that jumped back.

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
# <details><summary>b) The repeated batch is added twice.</summary>Yes. Idempotent means: the same keys and values whenever the batch runs.</details>
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
# | *wal* | - | `GenericWriteAheadSink` (1.x) | - |
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
# Sources: Spark 4.2's `MicroBatchExecution`, `TextSocketMicroBatchStream`, `FileStreamSink` and guides (*State Store*; Spark Streaming);
# [Structured Streaming](https://doi.org/10.1145/3183713.3190664), SIGMOD 2018; Flink's release notes of 2.0.
#
# Next: [08, can a transaction outlive the program that wrote it?](08_postgres.ipynb)
