# ---
# jupyter:
#   labkit:
#     needs: [00_start, 01_guarantees, 06_sinks]
#     slow: true
#     told: true
# ---

# %% [markdown]
# # Which sink survives which crash?
#
# The shop's job writes its counts into one of five sinks. Each sink has a plan against crashes, or none.
# Here no plan is taken on trust. A real PySpark job is killed by SIGKILL, restarted from its checkpoint, and judged from outside.
#
# {head}
#
# You will be able to
#
# - read a checkpoint folder and say what the next start will do,
# - say which sinks survive a crash between the sink's commit and Spark's note, and why,
# - say what no sink can repair: a source without memory, and a deleted checkpoint.
#
# Runs that belong together share their drivers, so all of them take about three minutes.

# %% tags=["parameters"]
failpoint = "sink.after_pre_commit"  # moment 4 of the strip

# %%
from labkit import lab

# %% [markdown]
# ## Five sinks, one moment
#
# For each micro-batch Spark does four things, always in this order. It writes `offsets/0`: the plan, with the offsets of the batch.
# It runs the tasks. It lets the sink commit. It writes `commits/0`: the note that the batch is finished.
#
# | sink | writes | a reader sees the rows |
# |---|---|---|
# | append | each row at once | at once |
# | idempotent | the value of a key, in place of the older one | at once |
# | wal | into a log of its own, and copies the log on commit | row by row, on commit |
# | batch_marker | all rows and the number of the batch in one transaction | with that transaction |
# | two_phase | into a transaction that it prepares, and commits later | on commit |
#
# We kill all five at moment 4: all tasks are ready, and nothing is final.

# %%
lab.strip(killed=failpoint)

# %% [markdown]
# `commits/0` is missing at this moment, so Spark will run the batch again, with the offsets in `offsets/0`.

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
lab.compare(**same_moment)

# %% tags=["nbval-check-output"]
lab.answer("07-twice", [sink for sink, outcome in same_moment.items() if outcome.verdict.duplicate])

# %% [raw] tags=["expected"]
# ?

# %% tags=["checked"]
assert all(outcome.crashes[0]["signal"] == 9 for outcome in same_moment.values())
assert list(same_moment["append"].verdict.duplicate) == [0, 1, 2]
assert [outcome.verdict.guarantee for outcome in same_moment.values()] == ["at-least-once"] + 4 * ["exactly-once"]

# %% [markdown]
# The table shows four sinks that end *exactly-once*. Did they look alike to a reader? Each row of the next picture is one sink.
# A reader of the word *hello* could have seen these values, in this order. The dotted line is the kill.

# %%
figure, shown = lab.seen_over_time(same_moment, "hello")
figure

# %% tags=["checked"]
assert [point.value for point in shown["idempotent"].points] == [1, 2, 1, 2]
assert [point.value for point in shown["two_phase"].points] == [1, 2]

# %% [markdown]
# The picture shows a jump back in two sinks, *append* and *idempotent*. A reader saw `hello = 2`, and later `hello = 1` again.
# *Idempotent* repairs the end of the story, and not the way there.
#
# Spark goes back by one micro-batch at most; an engine with longer checkpoints goes back further.
# (Two modes of Spark differ: asynchronous progress tracking, and Real-Time Mode from Spark 4.1 on. There a batch that runs again may hold other offsets.)

# %% [markdown]
# ## Who decides that a batch counts?
#
# Two sinks have a second step: they commit after the vote. So a crash can come *between* or *after* their commits.
#
# - *wal* copies its log row by row. We kill it at moment 6, when half of the log is copied.
# - *two_phase* is killed at moment 8: every transaction is committed. We run it in both orders.
#
# | order | who has it | what happens |
# |---|---|---|
# | **commit-then-log** (`order="engine"`) | Spark | the sink commits, then `commits/0` is written |
# | **log-then-commit** (`order="decision"`) | Flink | the decision is written, then the sink commits |
#
# Flink has no file `commits/0`. Its decision is a checkpoint in the store of completed checkpoints. In the lab's log-then-commit order
# `commits/0` plays that part.

# %%
lab.ask("07-order")

# %%
limits = {
    "wal, moment 6": {"at": "sink.mid_commit", "sink": "wal"},
    "two_phase, commit-then-log": {"at": "sink.after_commit", "sink": "two_phase", "order": "engine"},
    "two_phase, log-then-commit": {"at": "sink.after_commit", "sink": "two_phase", "order": "decision"},
}
other_moments = lab.crash_each(limits)
lab.compare(**other_moments)

# %% tags=["nbval-check-output"]
doubled = [name.split(", ")[1] for name, run in other_moments.items() if "two" in name and run.verdict.duplicate]
lab.answer("07-order", ", ".join(doubled))

# %% [raw] tags=["expected"]
# ?

# %% [markdown]
# Why does the order matter? This lay in the checkpoint while everything was dead:

# %% tags=["nbval-check-output"]
{name: ("offsets", run.crashes[0]["offset_log"], "commits", run.crashes[0]["commit_log"]) for name, run in other_moments.items()}

# %% [raw] tags=["expected"]
# ?

# %% tags=["checked"]
assert list(other_moments["wal, moment 6"].verdict.duplicate) == [1]
assert list(other_moments["two_phase, commit-then-log"].verdict.duplicate) == [0, 1, 2]
assert list(other_moments["two_phase, log-then-commit"].verdict.duplicate) == []

# %% [markdown]
# The second line shows the dangerous gap: the rows were visible, and `commits/0` was not there. So the second driver ran the batch again.
# The third line shows the note; the second driver had nothing to repeat.
#
# With this you can read any checkpoint folder. Suppose that it holds `offsets/0`, `offsets/1`, `offsets/2` and `commits/0`, `commits/1`.
# Batch 2 is planned and not noted. The next start runs batch 2 again, with exactly the offsets in `offsets/2`.
# If `commits/2` is there as well, batch 2 is finished: the next start plans batch 3.
#
# Each order has its own typical damage. Commit-then-log can do a batch **twice**: that is the gap above.
# Log-then-commit can **lose** a batch: nobody runs it again, so a store that forgets its prepared transaction has lost it.
# [Notebook 09](09_kafka.ipynb) shows that loss.
#
# The first line shows why *wal* doubled a row: one row was copied before the kill, and then the whole log was copied again.
# (The lab's *wal* copies its log at the restart. Flink 1.x's write-ahead sink sends a pending log again only after its next completed checkpoint.)
#
# > **What popular notes get wrong.** "*Pre-commit is the decision*", and "*a write-ahead log is exactly-once*". The decision is the durable
# > note that the batch counts. A log repeats whatever part of a copy was interrupted. Both runs are above.
#
# ## Your turn: break it
#
# Pick a sink, an order and a moment, say what you expect, and press *Run*. The panel shows the verdict, what a reader could have seen,
# the files of the checkpoint, and the same moment in the simulator.
# Can you find a moment at which *wal* doubles a row in the other order? One at which *append* survives?

# %%
lab.panel("wal")

# %% [markdown]
# ## What no sink can repair
#
# ### A source that forgets
#
# So far the input was a file, and Spark could read it again. A socket cannot repeat a line.
# Our server sends six lines, each once: two to the first driver, and four to the second one.
#
# The first driver plans batch 0 with lines 0 and 1, writes `offsets/0`, and is killed before any row is written.
# The second driver opens a new connection. Spark's socket source numbers the lines of every connection from 0.
# And `offsets/0` says: numbers 0 and 1 are planned already.

# %%
lab.ask("07-socket")

# %%
killed = {"at": "source.after_offset_log@1", "job": "socket", "records_per_batch": 2}
from_socket = lab.crash_each({sink: killed | {"sink": sink} for sink in ("append", "two_phase")})
lab.compare(**from_socket)

# %% tags=["nbval-check-output"]
lab.answer("07-socket", len(from_socket["two_phase"].verdict.lost))

# %% [raw] tags=["expected"]
# ?

# %% tags=["nbval-check-output"]
{sink: list(outcome.verdict.lost) for sink, outcome in from_socket.items()}

# %% [raw] tags=["expected"]
# ?

# %% [markdown]
# Both lists show the same four lines, whatever the sink. Lines 0 and 1 died with the first driver.
# Lines 2 and 3 reached the second driver as its numbers 0 and 1, and counted as done.
# What the source cannot give again is lost, and no sink can put it back.
#
# ### A checkpoint that is deleted
#
# A query is stuck. Somebody deletes its checkpoint folder and starts it again: batch numbers begin at 0 again, and so does the input.
# We let the first batch, of one record, finish. Then we kill the job and delete the folder. Three sinks:
#
# - *append*;
# - a batch marker that names the query, and the new query has a new name;
# - a batch marker under a name that stays, with three records in a batch after the restart.

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
lab.compare(**afresh)

# %% tags=["checked"]
assert list(afresh["append"].verdict.duplicate) == list(afresh["marker, new name"].verdict.duplicate) == [0]
assert list(afresh["marker, name that stays"].verdict.lost) == [1, 2]

# %% [markdown]
# The first two rows of the table show one record twice: a new folder means that everything runs again.
# The third row shows two records *lost*. The old marker said that batch 0 was done.
# The new batch 0 held all three records, and the sink skipped it.
#
# > **What popular notes get wrong.** "*The checkpoint is only an optimisation.*" That was nearly true of *Spark Streaming*, the older API
# > of DStreams: its checkpoint cut long chains of recomputation. In *Structured Streaming* the offset log and the commit log **are** the guarantee.
# > Also wrong: "*foreachBatch with a batch number is exactly-once*". The number means nothing beyond its own checkpoint.
#
# `foreachBatch` is Spark's door for your own sink: Spark calls your function with the rows of a batch and its number, `batchId`.
# By itself it is at-least-once. The result is exactly-once if your function does what *batch_marker* does:
# write rows and marker (query, batch) in **one** transaction, and skip a batch whose marker is there.
# A batch that runs again must also have the same rows, so the query must not use the clock or random numbers.
# This is the lab's sink:

# %%
lab.code("batch_marker")

# %% [markdown]
# ### What Spark ships
#
# None of the five sinks above is Spark's. Spark ships these:
#
# | Spark's own | what it promises |
# |---|---|
# | `format("kafka")` | at-least-once, no transactions |
# | files, as `format("parquet")` | a batch that is in its log `_spark_metadata` is skipped; readers must honour that log |
# | `foreachBatch` | at-least-once; the rest is up to your function |
# | `format("memory")`, `format("console")` | for looking only |
#
# The lab's five are a Python data source and a `foreachBatch` function, so that each idea can be seen alone.

# %% [markdown]
# ## Where the counts live
#
# A count is state: Spark must remember it from batch to batch. A **state store provider** is the part of Spark that keeps it.
# There are two. `hdfs`, the default, keeps a map in memory. `rocksdb` keeps a small database on the local disk.
#
# On a cluster both live in the **executors**, the processes that run tasks: one store for each task. In this lab's local mode
# executor and driver are one process.
# After each batch both providers write what has changed into the checkpoint folder. We count a poem and kill in the second batch:

# %%
poem = {"at": "sink.after_pre_commit@1", "job": "totals", "sink": "two_phase", "records_per_batch": 18}
providers = lab.crash_each({state: poem | {"state": state} for state in ("hdfs", "rocksdb")})
lab.compare(**providers)

# %% tags=["nbval-check-output"]
{name: [file for file in run.crashes[0]["state_files"] if "state/0/0/1" in file] for name, run in providers.items()}

# %% [raw] tags=["expected"]
# ?

# %% tags=["checked"]
assert {outcome.verdict.guarantee for outcome in providers.values()} == {"exactly-once"}

# %% [markdown]
# Both survive. The file names show why: version 1 of the first task's state is in the checkpoint.
# A `delta` holds the changes of one batch, a `zip` is RocksDB's description of its files.
# The working copies died with the process. What survives a lost machine is what lies in the checkpoint folder,
# so the folder must not be on that machine.
#
# And a query that keeps everything in memory, its result too, and has no checkpoint? We run it, kill it, and run it again.

# %%
lives = lab.memory_sink()

# %% tags=["nbval-check-output"]
[(life.rows, "left on disk:", life.left) for life in lives]

# %% [raw] tags=["expected"]
# ?

# %% tags=["checked"]
assert lives[0].left == []
assert lives[0].rows == lives[1].rows
assert {life.signal for life in lives} == {9}

# %% [markdown]
# Each line shows one driver. Both counted to the same three rows, and both left nothing behind.
# The second driver had nothing to go on from, so it counted from the start.
#
# ## All moments at once
#
# We tried a dozen moments. Here is every one of this job in the *simulator*; a test compares it with real Spark, cell by cell.
# A hook marks a value that jumped back. `labkit matrix --engine spark` runs them for real.

# %%
cells = lab.matrix()
cells

# %% tags=["checked"]
assert cells["two_phase on files, engine order", "sink.after_commit"].guarantee == "at-least-once"

# %% [markdown]
# The column of *two_phase* in log-then-commit order is *exactly-once* in every row. That holds as long as the store
# keeps what was prepared; a store that drops it is the subject of the next notebooks.

# %% [markdown] tags=["task"]
# ## Exercise: a sink that survives (`07-sink`)
#
# Choose a sink, a store (`"files"` or `"sqlite"`) and an order (`"engine"`, `"decision"`, or `None` for a sink that takes
# none). The check runs it on **real Spark** and kills it by SIGKILL at moment 8: the sink has committed, and `commits/0` is not
# written. A sink that shows its rows at once is killed when all of them are out. Two things must hold after the restart: the guarantee
# is **exactly-once**, and no value was seen to jump back. The check takes about twenty seconds; a grade comes from other batches and sizes.
#
# *configure, medium, 4 points; one line.*
#
# <details><summary>Hint 1</summary>The batch runs again. Which sinks know that it is there?</details>
# <details><summary>Hint 2</summary>In commit-then-log order two_phase does not. In log-then-commit order nothing is committed at that
# moment.</details>

# %% tags=["exercise"]
# exercise 07-sink
sink_settings = {"sink": ..., "store": ..., "order": ...}

# %% tags=["solution"]
# exercise 07-sink
sink_settings = {"sink": "batch_marker", "store": "sqlite", "order": None}

# %% tags=["check", "nbval-check-output"]
lab.check("07-sink")

# %% [raw] tags=["expected"]
# 07-sink: not attempted (4 points); lab.hint("07-sink") helps.

# %% [markdown] tags=["task"]
# ## Exercise: explain it to a colleague (`07-why`)
#
# Write three to six sentences for a colleague who has not seen this notebook. Why can an *idempotent* sink be exactly-once in
# the end and still have shown a value that jumps back? For which readers does that matter, and for which not?
#
# *explain, medium, 3 points from your instructor, by hand; about 4 lines.*
#
# <details><summary>Hint 1</summary>Name the moment of the crash, and what the reader has seen by then.</details>
# <details><summary>Hint 2</summary>Who reads a table only at the end of the day, and who reads it all the time?</details>

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
# 07-why: not attempted (3 points); lab.hint("07-why") helps.

# %% [markdown]
# ## Check yourself
#
# **1. A sink runs `n = n + 1` for every record instead of writing the value. What does a crash do?**
#
# <details><summary>a) Nothing, an upsert is idempotent.</summary>No. Only an upsert that writes the same value again is. Adding twice is
# adding two.</details>
# <details><summary>b) The repeated batch is added twice.</summary>Yes. A sink is idempotent when keys and values are
# the same whenever the batch runs.</details>
#
# **2. Two-phase commit in log-then-commit order is killed after `commits/N` and before any commit. What is right?**
#
# <details><summary>a) The batch is lost, nobody will run it again.</summary>No. It is not run again, and it need not be: the
# stored handles say what to commit, and recovery commits before the query starts.</details>
# <details><summary>b) Recovery commits it.</summary>Yes. The decision is on disk, and any driver can carry it out.</details>
# <details><summary>c) Recovery aborts it and runs the batch again.</summary>No. That is right where nothing was decided.
# Aborting what was decided loses it.</details>
#
# **3. Your job reads a message queue that deletes what it has delivered. When may the job say "delivered"?**
#
# <details><summary>a) When a two-phase sink has its rows in an open transaction.</summary>No. An open transaction can be rolled back, and then
# nobody can send the rows again. The socket above had a two-phase sink and lost four of six.</details>
# <details><summary>b) As soon as the message is read.</summary>No. The socket works like that: what was read and not yet written is gone.</details>
# <details><summary>c) When the rows are committed, or a checkpoint holds the message itself.</summary>Yes. From then on the queue is not needed for a replay.</details>
#
# **4. *wal* is at-least-once at moment 6. What would make it exactly-once?**
#
# <details><summary>a) Deciding earlier, in the other order.</summary>No. The grid shows at-least-once in both orders. The
# order moves the decision; the half-made copy stays.</details>
# <details><summary>b) Copying the log and confirming the copy in one transaction of the store.</summary>Yes. Then there is no
# half-made copy. A store without transactions cannot do that.</details>
# <details><summary>c) Deleting the log as soon as copying fails.</summary>No. Then the rest of the batch is lost. The log must stay
# until everything is copied and confirmed.</details>
#
# ## What this is called in Flink, Spark and Kafka
#
# | here | Spark | Flink | Kafka |
# |---|---|---|---|
# | the plan | `offsets/N` | source offsets in the checkpoint | - |
# | the note | `commits/N` | completed checkpoint | `PrepareCommit` in the coordinator's log |
# | checkpoint folder | option `checkpointLocation`; the owner is the query | checkpoint storage | - |
# | state provider | `spark.sql.streaming.stateStore.providerClass`; default `HDFSBackedStateStoreProvider`, the other one `RocksDBStateStoreProvider` | state backend | - |
# | order of commits | commit-then-log | log-then-commit | - |
# | *wal* | - | `GenericWriteAheadSink` (1.x) | - |
# | *two_phase* | - | `Sink` with `SupportsCommitter`; up to 1.x `TwoPhaseCommitSinkFunction`, which left the public API in 2.0 | transactional producer |
# | *batch_marker* | your `foreachBatch`; Delta's `txnAppId` and `txnVersion` | - | - |
#
# ## On Monday
#
# - Look at a query's checkpoint folder: is the newest number in `offsets` also in `commits`? If not, that batch will run again.
# - Look at where `checkpointLocation` points. It must survive the machine, and nobody may "clean it up".
# - Look into every `foreachBatch`: does it write `batchId` and the query's name with its rows, in one transaction?
# - If a checkpoint must go: give the query a new name in its markers, and clear what it has written, or expect rows twice.
#
# ## Sources, and what comes next
#
# Apache Spark 4.2: classes `MicroBatchExecution`, `TextSocketMicroBatchStream`, `FileStreamSink`, `HDFSBackedStateStoreProvider` and
# `RocksDBStateStoreProvider`; the guide's chapters *State Store* and *foreachBatch*; Armbrust and others,
# [Structured Streaming](https://doi.org/10.1145/3183713.3190664), SIGMOD 2018.
# Apache Flink: release notes of 2.0 (removed sink classes); Carbone and others,
# [State Management in Apache Flink](https://doi.org/10.14778/3137765.3137777), VLDB 2017.
#
# The same sinks step by step, without Spark: [what does a reader see?](06_sinks.ipynb)
#
# Next: [08, can a transaction outlive the program that wrote it?](08_postgres.ipynb)
