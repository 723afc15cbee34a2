# ---
# jupyter:
#   labkit:
#     slow: true
# ---

# %% [markdown]
# # Which sink survives which crash?
#
# In [the first notebook](00_start.ipynb) we killed one job at one moment, with two sinks. Now we take five sinks, other
# moments, the other order of commits, and then what lies around the sink: the source, the state, the checkpoint.
#
# Every run here is a real PySpark job, killed by SIGKILL and restarted from its checkpoint; only the grid near the end is
# simulated, and says so. Runs that belong together share their drivers, so that all of them take about three minutes.
# Run the cells in order, from the first one.

# %% tags=["parameters"]
failpoint = "sink.after_pre_commit"  # between pre-commit and commit

# %%
from labkit import lab

# %% [markdown]
# ## Five sinks, one moment
#
# | sink | writes | becomes visible |
# |---|---|---|
# | append | each row at once | at once |
# | idempotent | the value of a key, in place of the older one | at once |
# | wal | into a log of its own, and copies the log later | row by row, on commit |
# | batch_marker | all rows and the number of the batch in one transaction | with that transaction |
# | two_phase | into a transaction that it prepares, and commits later | on commit |
#
# We kill when every task has pre-committed and nothing has been committed. For each sink: is the result *exactly-once*,
# *at-least-once* or *at-most-once*? Write your answers into the cell in place of `None`, as `"exactly-once"`; the runs go
# ahead without them, too. We begin with *append*, which does nothing about crashes.

# %%
my_predictions = {"append": None, "idempotent": None, "wal": None, "batch_marker": None, "two_phase": None}

# %%
lab.need("failpoint", "my_predictions", cell="the parameters and the predictions above")
on_sqlite = {"idempotent": "sqlite", "batch_marker": "sqlite"}
sinks = {sink: {"at": failpoint, "sink": sink, "store": on_sqlite.get(sink, "files")} for sink in my_predictions}
same_moment = lab.crash_each(sinks)

# %% tags=["nbval-check-output"]
lab.need("my_predictions", "same_moment", cell="the two cells above")
print(lab.table(same_moment, my_predictions))

# %% [raw] tags=["expected"]
#               guarantee      lost  duplicate  jumped back
# append        at-least-once  0     3          1
# idempotent    exactly-once   0     0          1
# wal           exactly-once   0     0          0
# batch_marker  exactly-once   0     0          0
# two_phase     exactly-once   0     0          0

# %%
lab.need("same_moment", cell="the cell that runs five sinks")
assert all(outcome.crashes[0]["signal"] == 9 for outcome in same_moment.values())
assert list(same_moment["append"].verdict.duplicate) == [0, 1, 2]

# %% [markdown]
# Four of five end *exactly-once*. Does that mean that they looked alike to a reader? Each row below is one sink; a
# reader of the word *hello* could have seen these values, in this order:

# %%
lab.need("same_moment", cell="the cell that runs five sinks")
figure, shown = lab.seen_over_time(same_moment, "hello")
figure

# %% [markdown]
# *Idempotent* ends with the right value, and yet somebody who had read `hello = 2` read `hello = 1` afterwards: the value
# jumped back and was replayed. Spark rolls back one micro-batch; an engine with longer checkpoints rolls back more.

# %%
lab.need("shown", cell="the cell with the figure")
assert [point.value for point in shown["idempotent"].points] == [1, 2, 1, 2]
assert [point.value for point in shown["two_phase"].points] == [1, 2]

# %% [markdown]
# ## Other moments, and the other order
#
# *Is a write-ahead log exactly-once?* It copies its log row by row. Kill it in the middle of that.
#
# *Is two-phase commit exactly-once?* Who decides that a batch counts? In Spark's own order the sink commits, and
# then Spark writes `commits/N` (order *engine*). In Flink's order `commits/N` comes first, as the decision, and the sink
# commits afterwards (order *decision*). Kill both when every transaction has been committed.

# %%
my_predictions = {"wal, half copied": None, "two_phase, engine order": None, "two_phase, decision order": None}

# %%
limits = {
    "wal, half copied": {"at": "sink.mid_commit", "sink": "wal"},
    "two_phase, engine order": {"at": "sink.after_commit", "sink": "two_phase", "order": "engine"},
    "two_phase, decision order": {"at": "sink.after_commit", "sink": "two_phase", "order": "decision"},
}
other_moments = lab.crash_each(limits)

# %% tags=["nbval-check-output"]
lab.need("my_predictions", "other_moments", cell="the two cells above")
print(lab.table(other_moments, my_predictions))

# %% [raw] tags=["expected"]
#                            guarantee      lost  duplicate  jumped back
# wal, half copied           at-least-once  0     1          0
# two_phase, engine order    at-least-once  0     3          1
# two_phase, decision order  exactly-once   0     0          0

# %% [markdown]
# Why does the order matter? Look at what lay in the checkpoint while everything was dead:

# %% tags=["nbval-check-output"]
lab.need("other_moments", cell="the cell that runs the other moments")
for name in ("two_phase, engine order", "two_phase, decision order"):
    crash = other_moments[name].crashes[0]
    print(f"{name:26} offsets {crash['offset_log']}  commits {crash['commit_log']}")

# %% [raw] tags=["expected"]
# two_phase, engine order    offsets [0]  commits []
# two_phase, decision order  offsets [0]  commits [0]

# %% [markdown]
# In engine order the rows were visible and Spark had not noted it, so it ran the batch again, and its rows came again.
# In decision order the note was there; the restarted driver had nothing to repeat.
#
# > **What popular notes get wrong.** "Pre-commit is the decision", and "a write-ahead log is exactly-once". The decision is
# > the durable note that the batch counts, and the log repeats whatever part of a copy was interrupted. Both runs are above.

# %%
lab.need("other_moments", cell="the cell that runs the other moments")
assert list(other_moments["wal, half copied"].verdict.duplicate) == [1]
assert list(other_moments["two_phase, decision order"].verdict.duplicate) == []

# %% [markdown]
# ## Your own crash
#
# Pick a sink, an order and a moment, say what you expect, and press *Run*. The panel names each stage as it comes, then
# shows the verdict, what a reader could have seen, the checkpoint's files, and the same moment in the simulator.
# Can you find a moment at which *wal* writes something twice in either order? One at which *append* survives?

# %%
lab.panel("wal")

# %% [markdown]
# ## A source that cannot be replayed
#
# So far the input was a file: Spark could read it again. A socket cannot. Our server sends six lines, each once: two to
# the first driver, which is killed before anything is written, and four to the second. Can a better sink help?

# %%
my_predictions = {"append": None, "two_phase": None}

# %%
lab.need("my_predictions", cell="the cell above")
killed = {"at": "source.after_offset_log@1", "job": "socket", "records_per_batch": 2}
from_socket = lab.crash_each({sink: killed | {"sink": sink} for sink in my_predictions})

# %% tags=["nbval-check-output"]
lab.need("my_predictions", "from_socket", cell="the two cells above")
print(lab.table(from_socket, my_predictions))
print("lost:", {sink: list(outcome.verdict.lost) for sink, outcome in from_socket.items()})

# %% [raw] tags=["expected"]
#            guarantee     lost  duplicate  jumped back
# append     at-most-once  4     0          0
# two_phase  at-most-once  4     0          0
# lost: {'append': [0, 1, 2, 3], 'two_phase': [0, 1, 2, 3]}

# %% [markdown]
# Lines 0 and 1 died with the driver. Lines 2 and 3 reached the second driver and were lost all the same: Spark's socket
# source counts the lines of a new connection from 0, and offsets 0 and 1 were in the checkpoint already. The chain is as
# strong as its weakest link, and no sink can put back what the source has forgotten.
#
# ## Whoever deletes the checkpoint
#
# A query is stuck, somebody deletes its checkpoint and starts it again. Batch numbers begin at 0 again. We kill after the
# first batch of one record is finished, and delete the checkpoint. Three sinks: *append*; a *batch marker* that names the
# query, and the query is a new one now; and a batch marker under a name that stays, with larger batches after the restart.

# %%
my_predictions = {"append": None, "marker, new name": None, "marker, name that stays": None}

# %%
deleted = {"at": "engine.after_commit_log", "records_per_batch": 1, "delete_checkpoint": True}
marker = deleted | {"sink": "batch_marker", "store": "sqlite"}
fresh = {"append": deleted, "marker, new name": marker}
fresh["marker, name that stays"] = marker | {"query": "counts", "later_records_per_batch": 3}
afresh = lab.crash_each(fresh)

# %% tags=["nbval-check-output"]
lab.need("my_predictions", "afresh", cell="the two cells above")
print(lab.table(afresh, my_predictions))

# %% [raw] tags=["expected"]
#                          guarantee      lost  duplicate  jumped back
# append                   at-least-once  0     1          0
# marker, new name         at-least-once  0     1          0
# marker, name that stays  at-most-once   2     0          0

# %% [markdown]
# The marker that outlived its query said that batch 0 was done. The new batch 0 held all three records, and was skipped.
#
# > **What popular notes get wrong.** "The checkpoint is only an optimisation", and "foreachBatch with a batch number is
# > exactly-once". The offset log and the commit log *are* the guarantee; a batch number means nothing beyond its query.

# %%
lab.need("afresh", cell="the cell that deletes the checkpoint")
assert list(afresh["marker, name that stays"].verdict.lost) == [1, 2]

# %% [markdown]
# ## Where the counts live
#
# Spark keeps the counts in a *state store*. One provider has a map in the driver's heap (`hdfs`), the other a database
# on the local disk (`rocksdb`). We count a poem (job `totals`, Spark's own aggregation) and kill in the second batch. The
# heap dies with its process. Does either result survive?

# %%
asked = lab.predict(hdfs=None, rocksdb=None)  # a guarantee each

# %%
poem = {"at": "sink.after_pre_commit@1", "job": "totals", "sink": "two_phase", "records_per_batch": 18}
providers = lab.crash_each({state: poem | {"state": state} for state in ("hdfs", "rocksdb")})

# %% tags=["nbval-check-output"]
lab.need("providers", cell="the cell above")
for state, outcome in providers.items():
    kinds = {name.rpartition(".")[2] for name in outcome.crashes[0]["state_files"] if "state/0/0/1" in name}
    print(f"{state:8} {outcome.verdict.guarantee}  version 1 of the first task: {sorted(kinds)}")

# %% [raw] tags=["expected"]
# hdfs     exactly-once  version 1 of the first task: ['delta']
# rocksdb  exactly-once  version 1 of the first task: ['zip']

# %%
lab.need("asked", "providers", cell="the cells above, from the prediction")
guarantees = {state: outcome.verdict.guarantee for state, outcome in providers.items()}
print(asked.beside(guarantees))
assert set(guarantees.values()) == {"exactly-once"}

# %% [markdown]
# Both survive, because both put their changes into the checkpoint, as the files above show. The working copy died with
# the driver either way. And a query that keeps everything in memory, its result too, without a checkpoint? We run it, kill
# it, and run it again. How many files does the first driver leave behind?

# %%
asked = lab.predict(left_on_disk=None)  # a number of files

# %%
lives = lab.memory_sink()

# %% tags=["nbval-check-output"]
lab.need("lives", cell="the cell above")
for number, life in enumerate(lives, start=1):
    print(f"driver {number}: inside {life.rows}; signal {life.signal}; left on disk: {life.left}")

# %% [raw] tags=["expected"]
# driver 1: inside [(0, 'hello', 1), (1, 'world', 1), (2, 'hello', 2)]; signal 9; left on disk: []
# driver 2: inside [(0, 'hello', 1), (1, 'world', 1), (2, 'hello', 2)]; signal 9; left on disk: []

# %%
lab.need("asked", "lives", cell="the cells above, from the prediction")
print(asked.beside(left_on_disk=len(lives[0].left)))
assert lives[0].left == []
assert lives[0].rows == lives[1].rows

# %% [markdown]
# The second driver counted everything from the start: there was nothing that it could have gone on from.
#
# ## All moments at once
#
# We tried a dozen cells. Here is every one of this job in the *simulator*, which a test compares with real Spark cell by cell.
# The hook marks a value that jumped back. `labkit matrix --engine spark` runs them for real, and `lab.matrix(folder)` shows
# its folder as the same grid, each cell a link to its run.

# %%
cells = lab.matrix()
assert cells["two_phase on files, engine order", "sink.after_commit"].guarantee == "at-least-once"
cells

# %% [markdown] tags=["task"]
# ## Exercise: a sink that survives (`07-sink`)
#
# Choose a sink, a store (`"files"` or `"sqlite"`) and an order (`"engine"`, `"decision"`, or `None` for a sink that takes
# none). The check runs it on **real Spark** and kills it by SIGKILL at the moment when the sink has committed and
# `commits/0` is not written yet (or, for a sink that shows its rows at once, when all of them are out). After the restart
# the guarantee must be **exactly-once**, and no value may have been seen to jump back. The check takes about twenty
# seconds.
#
# *configure, medium, 4 points; one line.*
#
# <details><summary>Hint 1</summary>The batch runs again. Which sinks know that it is there?</details>
# <details><summary>Hint 2</summary>In engine order two_phase does not. In decision order nothing is committed at that
# moment.</details>

# %% tags=["exercise"]
# exercise 07-sink
sink_settings = {"sink": ..., "store": ..., "order": ...}

# %% tags=["solution"]
# exercise 07-sink
sink_settings = {"sink": "batch_marker", "store": "sqlite", "order": None}

# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("07-sink")

# %% [raw] tags=["expected"]
# 07-sink: not attempted (4 points); lab.hint("07-sink") helps.

# %% [markdown] tags=["task"]
# ## Exercise: explain it to a colleague (`07-why`)
#
# In three to six sentences, for a colleague who has not seen this notebook: why can an *idempotent* sink be exactly-once in
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
from labkit import lab

lab.check("07-why")

# %% [raw] tags=["expected"]
# 07-why: not attempted (3 points); lab.hint("07-why") helps.

# %% [markdown]
# ## What remains true
#
# - The guarantee belongs to source, engine and sink together, in one order of commits, and to the checkpoint's life.
# - *Exactly once in the end* does not say what a reader saw on the way.
# - Two-phase commit in decision order is exactly-once in every cell of the grid. That holds as long as the outside system
#   keeps what was prepared: a transaction that it drops is another story.
#
# ## Check yourself
#
# **1. A sink upserts `n = n + 1` for every record instead of writing the value. What does the crash do?**
#
# <details><summary>a) Nothing, an upsert is idempotent.</summary>Only one that writes the same value again. Adding twice is
# adding two.</details>
# <details><summary>b) The repeated batch is added twice.</summary>Yes. Idempotent are keys and values that are
# the same whenever the batch runs.</details>
#
# **2. Two-phase commit in decision order, killed after `commits/N` and before any commit. Which is right?**
#
# <details><summary>a) The batch is lost, nobody will run it again.</summary>It is not run again, and it need not be: the
# stored handles say what to commit, and recovery commits it before the query starts.</details>
# <details><summary>b) Recovery commits it.</summary>Yes: decided is decided, whoever carries it out.</details>
# <details><summary>c) Recovery aborts it and runs the batch again.</summary>That would be right if nothing had been decided.
# Aborting what was decided loses it.</details>
#
# **3. Your job reads a message queue that deletes what was read. What must be written before you may tell it so?**
#
# <details><summary>a) The rows, in the sink.</summary>Enough for at-least-once, if the queue sends again what was not
# confirmed. But two systems must then agree on the same batch.</details>
# <details><summary>b) Nothing; the sink's transaction protects the rows.</summary>The socket above had a two-phase sink, and
# lost four of six.</details>
#
# **4. In the grid, *wal* is at-least-once at `sink.mid_commit`. What would make it exactly-once?**
#
# <details><summary>a) Deciding earlier, in the other order.</summary>Look at the grid: it is at-least-once in both orders. The
# order moves the moment of the decision; the half-made copy stays.</details>
# <details><summary>b) Copying the log and noting it as confirmed in one transaction of the store.</summary>Yes: then there is no
# half-made copy that anybody could find. A store without transactions cannot do that.</details>
# <details><summary>c) Deleting the log as soon as copying fails.</summary>Then the rest of the batch is lost. The log must stay
# until everything is copied and confirmed.</details>
#
# ## Sources, and what comes next
#
# Apache Spark: classes `MicroBatchExecution`, `TextSocketMicroBatchStream`, `HDFSBackedStateStoreProvider` and
# `RocksDBStateStoreProvider`; Armbrust and others, [Structured Streaming](https://doi.org/10.1145/3183713.3190664), SIGMOD 2018.
# Apache Flink: classes `GenericWriteAheadSink` and `TwoPhaseCommitSinkFunction`; Carbone and others,
# [State Management in Apache Flink](https://doi.org/10.14778/3137765.3137777), VLDB 2017.
#
# The same sinks step by step, without Spark: [the jump back, and what a transaction protects](06_sinks.ipynb). The beginning
# of the course: [what is guaranteed, and by whom?](01_guarantees.ipynb)
#
# Next: [08, can a transaction outlive the program that wrote it?](08_postgres.ipynb)
