# ---
# jupyter:
#   labkit:
#     needs: [00_start, 01_guarantees, 05_two_phase_commit]
# ---

# %% [markdown]
# # What does a reader of your sink see?
#
# > **Ticket 8** (invented). *From the warehouse:* "The screen made us send a driver home, and ten seconds later call
# > him back. Is your total wrong, or your screen?" The table behind the screen was signed off as exactly-once last
# > month.
#
# How the sink writes decides what a reader of the table sees while the job is killed and started again.
#
# {head}
#
# You will be able to
#
# - say of five sinks what a reader sees during a crash, and what remains;
# - name the moments at which each of them is weak;
# - choose one for your own store.
#
# Everything here is **simulated**: the job, its checkpoint folder and the store. [Notebook 07](07_crash_spark.ipynb) kills the
# same sinks for real, at the same moments.

# %% tags=["parameters"]
failpoint = "sink.after_pre_commit"  # where the job is killed first: all rows are written, commits/0 is not there
sink = "wal"  # what you begin with in "Your turn": wal, two_phase, batch_marker or append

# %% [markdown]
# ## Where we kill
#
# The strip shows one batch, and the moments at which we can kill the job. We begin with *ready*: every row is written, and
# Spark has not noted that the batch is finished.

# %%
from labkit import lab

lab.strip(killed=failpoint)

# %% [markdown]
# ## First: write at once
#
# *append* is the sink of [notebook 00](00_start.ipynb), where this kill left six rows. The sink *idempotent* writes
# *hello = 2* under the key *hello*. Such a write is an **upsert**: it inserts the row of a key, or updates the row if
# the key is there. The kill is the same.

# %%
lab.ask("06-hello")

# %% tags=["nbval-check-output"]
upsert = lab.simulate(failpoint, sink="idempotent", store="sqlite")
upsert

# %% [raw] tags=["expected"]
# simulated run of pipeline, 17 steps: exactly-once
#   0 lost, 0 twice, 1 jump back; 2 rows
#   a reader saw of hello: 1 2 | killed | 1 2
#   exactly-once, because every one of the 3 records is contained in the last value of its key
#   BROKEN no_regression

# %% tags=["nbval-check-output"]
lab.answer("06-hello", ", ".join(word.removeprefix("hello=") for word in upsert.seen.split() if "hello" in word))

# %% [raw] tags=["expected"]
# It was: 1, 2, 1, 2.
# The first driver had shown 1 and 2. The batch ran again from its first record, so the second driver wrote 1 over the 2, and then 2.

# %% tags=["checked"]
assert upsert.verdict.guarantee == "exactly-once"
assert upsert.verdict.regression == (0,)

# %% [markdown]
# A jump back. Both sinks after the same kill:

# %% tags=["nbval-check-output"]
append = lab.simulate(failpoint, sink="append")
lab.compare(append=append, idempotent=upsert)

# %% [raw] tags=["expected"]
#             guarantee      lost  twice  jumps back  rows
# append      at-least-once  0     3      1           6
# idempotent  exactly-once   0     0      1           2

# %% tags=["checked"]
assert append.verdict.duplicate == (0, 1, 2)
assert not append.verdict.lost

# %% [markdown]
# With *idempotent* the table is right in the end, so the guarantee is exactly-once; the value jumps back all the same.
# Does it always? Two searches, with one and three records per batch:

# %% tags=["nbval-check-output"]
one = lab.explore("pipeline", strategy="idempotent", store="sqlite", records_per_batch=1)
three = lab.explore("pipeline", strategy="idempotent", store="sqlite", records_per_batch=3)
lab.compare(one_a_batch=one, three_a_batch=three)

# %% [raw] tags=["expected"]
#                guarantee     states  broken
# one_a_batch    exactly-once  102     nothing
# three_a_batch  exactly-once  64      no_fractured_read, no_regression

# %% tags=["checked"]
assert one.exhausted
assert three.exhausted
assert "no_regression" not in one.violated
assert "no_regression" in three.violated

# %% [markdown]
# With one record a batch nothing jumps back. Spark repeats at most one batch, so a value can jump back only if one
# batch updates its key twice. The lab's job does: it hands over a row per record. Spark's `groupBy().count()` in update
# mode does not: it hands over one per key and batch ([00](00_start.ipynb)). (Two exceptions, not run here: with
# [asynchronous progress tracking](https://spark.apache.org/docs/4.0.0/streaming/performance-tips.html) a crash can
# change the offsets of a batch; [real-time mode](https://spark.apache.org/docs/4.3.0/streaming/real-time-mode.html)
# writes them at a batch's end.) Flink repeats everything since its last checkpoint.
#
# An upsert is not always idempotent. The value must be the same when the batch runs again. Here a batch of one record
# runs twice, in plain SQL:

# %% tags=["nbval-check-output"]
import sqlite3

store = sqlite3.connect(":memory:")
store.execute("CREATE TABLE counts (word TEXT PRIMARY KEY, added INTEGER, replaced INTEGER)")
store.execute("INSERT INTO counts VALUES ('hello', 0, 0)")
for _ in (1, 2):  # the batch, and the same batch again
    store.execute("UPDATE counts SET added = added + 1, replaced = 1 WHERE word = 'hello'")
store.execute("SELECT added, replaced FROM counts").fetchone()

# %% [raw] tags=["expected"]
# (2, 1)

# %% [markdown]
# Adding twice counts twice. A random key would make a new row each time. The last condition is a single writer. Now the
# input is *hello* three times, two in a batch. The first driver writes 1 and falls silent. A second driver takes over
# and writes 1, 2 and 3. Then the first wakes up and writes its 2: it is a zombie.

# %% tags=["nbval-check-output"]
zombie = lab.replay("pipeline.zombie_upserts")
print(zombie.seen)
print("in the end:", zombie.verdict.final["hello"], "- lost offsets:", list(zombie.verdict.lost))

# %% [raw] tags=["expected"]
# hello=1 hello=1 hello=2 hello=3 hello=2
# in the end: 2 - lost offsets: [2]

# %% [markdown]
# The zombie overwrote the 3.
#
# ## Second: keep the rows, and copy them later
#
# The sink *wal* keeps a write-ahead log: the rows of a batch go into a file that no reader looks at. When Spark has
# noted the batch (`commits/0`), the sink copies the log into the table. That copy is the **flush**. Finally the sink
# notes that the batch is flushed: the **second confirmation**. In this order the moments after *ready* are *votes*, *noted*, *half*, *flushed*, *committed*.

# %%
lab.ask("06-log")

# %% tags=["nbval-check-output"]
logged = {point: lab.simulate(point, sink="wal") for point in lab.points("wal")}
lab.compare(logged)

# %% [raw] tags=["expected"]
#                                     guarantee      lost  twice  jumps back  rows
# plan (source.after_offset_log)      exactly-once   0     0      0           3
# write (sink.mid_write)              exactly-once   0     0      0           3
# task done (sink.before_pre_commit)  exactly-once   0     0      0           3
# ready (sink.after_pre_commit)       exactly-once   0     0      0           3
# votes (coordinator.after_handles)   exactly-once   0     0      0           3
# noted (engine.after_commit_log)     exactly-once   0     0      0           3
# half (sink.mid_commit)              at-least-once  0     1      0           4
# flushed (sink.before_confirm)       at-least-once  0     3      1           6
# committed (sink.after_commit)       exactly-once   0     0      0           3

# %% tags=["nbval-check-output"]
lab.answer("06-log", " ".join(point for point, run in logged.items() if run.verdict.duplicate))

# %% [raw] tags=["expected"]
# It was: from the first copied row to the second confirmation.
# Rows are out, and no second confirmation says so. Recovery flushes the whole log again.

# %% tags=["checked"]
assert [point for point, run in logged.items() if run.verdict.duplicate] == [
    "sink.mid_commit",
    "sink.before_confirm",
]
assert not any(run.verdict.lost for run in logged.values())

# %% [markdown]
# Two moments of nine are bad, *half* and *flushed*, as a restarted driver flushes each log whose batch is noted but not
# confirmed. The time between them grows with the batch. The sink is at-least-once. This is the code that flushes and
# confirms:

# %%
lab.code("wal")

# %% [markdown]
# What if recovery deleted a log that was flushed in part? Another kill in the middle of the flush:

# %% tags=["nbval-check-output"]
lab.compare(flush_again=lab.replay("pipeline.half_flushed_log"), delete_the_log=lab.replay("pipeline.deleted_log"))

# %% [raw] tags=["expected"]
#                 guarantee      lost  twice  jumps back  rows
# flush_again     at-least-once  0     1      0           4
# delete_the_log  at-most-once   2     0      0           1

# %% [markdown]
# One row was out; two were in the log only, and are lost. A log must stay until the second
# confirmation is on disk.
#
# > **You will read:** "*a write-ahead log is exactly-once*". It doubled rows at two of nine moments. "*The log is
# > deleted when the write fails.*" Then two of three records were lost.
#
# ## Third: one transaction for the rows and the note
#
# The log doubles rows because the rows and the confirmation are two writes. A database can take both in one
# transaction. In Spark's `foreachBatch(rows, batch)`:
#
# ```sql
# BEGIN;
# SELECT 1 FROM batches WHERE query = 'shop' AND batch = 0;  -- there already? Then ROLLBACK: nothing to do
# INSERT INTO counts VALUES ('world', 1), ('hello', 1), ('hello', 2);
# INSERT INTO batches VALUES ('shop', 0);                    -- the marker; its key (query, batch) refuses a second writer
# COMMIT;
# ```
#
# The row of the last INSERT is the **batch marker**: it says which batch is in the table. A search with two
# crashes:

# %% tags=["nbval-check-output"]
lab.explore("pipeline", strategy="batch_marker", crashes=2)

# %% [raw] tags=["expected"]
# every schedule of pipeline: exactly-once
#   87 states, all there are

# %% [markdown]
# Exactly-once, without two-phase commit or jump back, on two conditions. A number must always stand for the same
# records. (Their values may differ from run to run, because readers see one run only; for jobs with state see
# [11](11_side_effects.ipynb).) And the marker must name the query, with a new name for a new checkpoint folder, where
# the numbers begin at 0 again. In [01](01_guarantees.ipynb) a marker without the name lost two rows.
#
# > **Found in the wild.** In September 2026 somebody reported that Apache Paimon's sink for Spark commits "a replayed micro-batch twice"
# > ([apache/paimon#9666](https://github.com/apache/paimon/issues/9666)). The sink "received the batch id but used it only to pace
# > full compaction" ([#9667](https://github.com/apache/paimon/pull/9667)): it had the number, and wrote no marker.
#
# ## Fourth: a transaction for each task
#
# One transaction needs one writer. With *two_phase*, each task writes into a transaction of its own and pre-commits it,
# as in [notebook 05](05_two_phase_commit.ipynb). Two participants take part here: one has *world*, the other has both
# *hello*. Which is first, the sink's commit or Spark's note?
#
# - commit-then-log (`order="engine"`), Spark's order: `offsets/0`, rows, pre-commit, the sink commits, `commits/0`.
# - log-then-commit (`order="decision"`), Flink's order: `offsets/0`, rows, pre-commit, votes, `commits/0`, the sink
#   commits. The note is the decision.
#
# In Spark's order we kill the job at *half*: the transaction with *world* is committed, the other is not, and
# `commits/0` is not there.

# %%
lab.ask("06-order")

# %% tags=["nbval-check-output"]
spark_order = lab.simulate("sink.mid_commit", sink="two_phase", order="engine")
spark_order

# %% [raw] tags=["expected"]
# simulated run of pipeline, 25 steps: at-least-once
#   0 lost, 1 twice, 0 jumps back, 1 read without the rest of its batch; 4 rows
#   a reader saw of hello: killed | 1 2
#   not exactly-once, because 1 of 3 records came out twice or more, first offset 1 ('world' = 1): written by attempt 1 of batch 0 and by attempt 2 of batch 0; at-least-once still holds
#   BROKEN no_duplicate, no_fractured_read

# %% tags=["nbval-check-output"]
lab.answer("06-order", spark_order.verdict.rows)

# %% [raw] tags=["expected"]
# It was 4.
# One row was committed, and nothing on disk said that batch 0 is finished. So the batch ran again and committed all three.

# %% [markdown]
# Two moments come out differently (each line says *order: moment*):

# %% tags=["nbval-check-output"]
found = {}
for order, name in {"engine": "commit-then-log", "decision": "log-then-commit"}.items():
    for point in lab.points("two_phase", order):
        found[name, point] = lab.simulate(point, sink="two_phase", order=order)

late = ("sink.mid_commit", "sink.after_commit")  # half, committed
lab.compare({f"{name}: {point}": found[name, point] for name, point in found if point in late})

# %% [raw] tags=["expected"]
#                                     guarantee      lost  twice  jumps back  rows
# commit-then-log: sink.mid_commit    at-least-once  0     1      0           4
# commit-then-log: sink.after_commit  at-least-once  0     3      1           6
# log-then-commit: sink.mid_commit    exactly-once   0     0      0           3
# log-then-commit: sink.after_commit  exactly-once   0     0      0           3

# %% tags=["checked"]
wrong = [point for (name, point), run in found.items() if run.verdict.guarantee != "exactly-once"]
assert wrong == ["sink.mid_commit", "sink.after_commit"]
assert found["log-then-commit", "sink.mid_commit"].verdict.guarantee == "exactly-once"
undecided = lab.simulate("coordinator.after_handles", sink="two_phase")
assert "abort(1)" in [str(action) for action in undecided.trace.actions]

# %% [markdown]
# Spark's order has two bad moments for this sink. Flink's has none: the restarted driver finds the decision and the
# handles of the transactions, and finishes the commits (`lab.show("pipeline.decide_then_commit")`). Votes are not the
# decision: if the job dies between *votes* and *noted*, recovery aborts, and the batch runs again.
#
# One thing remains in Flink's order. Two commits are two steps, and the job can die between them, at *half*:

# %% tags=["nbval-check-output"]
half = lab.simulate("sink.mid_commit", sink="two_phase")
print("rows while the job is down:", half.until("crash").verdict.rows)
print(half.seen)

# %% [raw] tags=["expected"]
# rows while the job is down: 1
# world=1 | crash 1 | hello=1 hello=2

# %% [markdown]
# One row of three is there while the job is down. This is a **fractured read**: a reader sees a part of a batch. (A
# running job shows one, too, between two commits; the lab counts only those of a dead job.) Recovery completes the
# batch.
#
# ## Which one, and what does it cost?
#
# Hiding rows has a price: readers wait. *append* and *idempotent* hold nothing back. The other three show a row when
# its batch is complete. If a batch (in Flink, a checkpoint) ends every ten seconds, a row waits for that end, the
# checkpoint itself and the commit ([13](13_price.ipynb) measures how long).
#
# | sink | a batch that comes again | guarantee | on the way | what it demands, and costs |
# |---|---|---|---|---|
# | append | is written again | at-least-once | values jump back, fractured reads | nothing |
# | idempotent | replaces the same values | exactly-once | values jump back, fractured reads | a key, the same values on replay, one writer |
# | wal | is flushed again if it is not confirmed | at-least-once | both, if it dies while flushing | a log, and waiting |
# | batch_marker | is skipped | exactly-once | whole batches only | one transaction for rows and marker, and waiting |
# | two_phase, log-then-commit | does not come again once decided | exactly-once | fractured reads | a store that keeps its promise, and waiting |
#
# With a key, or with a marker in the transaction, no two-phase commit is needed. For a PostgreSQL table with all rows
# through the driver take *batch_marker*. For plain files from many tasks take *two_phase*, where the commit is a
# rename.
#
# ## Your own sink, third edition
#
# In `my_sink.py` a reader may still see a part of a batch. **Put all rows of a batch into one transaction**, with a batch marker or with the
# key that you have. A marker needs a table of its own, and the query's name.

# %%
lab.my_sink(after="06")

# %% [markdown]
# <details><summary>One way</summary><code>BEGIN</code>; <code>SELECT 1 FROM marks WHERE query = ? AND batch = ?</code>;
# if nothing is found, insert the rows and the marker; <code>COMMIT</code>. With a key, BEGIN and COMMIT around the
# upserts are enough. The last column of the card tells the two apart; see <a href="12_engines.ipynb">notebook
# 12</a>.</details>
#
# ## Your turn
#
# **With *wal*: find a crash after which every row is there twice, and the query ends.** Then find the last moment
# before it at which a crash doubles nothing. Can you double a row with `sink = "two_phase"`? `?` lists the player's
# keys.

# %%
steering = lab.explorer("pipeline", strategy=sink)
steering

# %%
print(lab.replay(steering.trace).seen)

# %% tags=["exercise"]
# exercise 06-predict
predicted_06 = {"lost": ..., "duplicate": ...}  # two lists of offsets

# %% tags=["solution"]
# exercise 06-predict
predicted_06 = {"lost": [], "duplicate": [2, 3]}

# %% tags=["check", "nbval-check-output"]
lab.check("06-predict")

# %% [raw] tags=["expected"]
# 06-predict: not attempted (not graded); write it, and the run unlocks.


# %% tags=["exercise"]
# exercise 06-key
def key(row):
    """The key by which a row is upserted."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 06-key
def key(row):
    """The key by which a row is upserted."""
    # The offset comes from the record, so a repeat has the same one, and no other record has it.
    return row["offset"]


# %% tags=["check", "nbval-check-output"]
lab.check("06-key")

# %% [raw] tags=["expected"]
# 06-key: not attempted (2 points); lab.hint("06-key") gives a hint.


# %% tags=["exercise"]
# exercise 06-wal
def commit(batch, rows, confirmed):
    """The steps with which a logged batch is written out."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 06-wal
def commit(batch, rows, confirmed):
    """The steps with which a logged batch is written out."""
    # The confirmation comes last: a crash before it repeats rows, a confirmation before the rows would lose them.
    if batch in confirmed:
        return []
    return [["write", offset] for offset in rows] + [["confirm", batch]]


# %% tags=["check", "nbval-check-output"]
lab.check("06-wal")

# %% [raw] tags=["expected"]
# 06-wal: not attempted (4 points); lab.hint("06-wal") gives a hint.


# %% tags=["exercise"]
# exercise 06-recover
def recover_and_commit(decided, stored, found):
    """What a restarted driver does with the transactions of its query."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 06-recover
def recover_and_commit(decided, stored, found):
    """What a restarted driver does with the transactions of its query."""
    # Due is what belongs to a decided batch. Whatever else is found belongs to nobody, and blocks others.
    due = [handle for vote in stored if vote["batch"] <= decided for handle in vote["handles"]]
    return [["commit", handle] for handle in due] + [["abort", handle] for handle in found if handle not in due]


# %% tags=["check", "nbval-check-output"]
lab.check("06-recover")

# %% [raw] tags=["expected"]
# 06-recover: not attempted (5 points); lab.hint("06-recover") gives a hint.


# %% tags=["exercise"]
# exercise 06-jump
def steady(seen):
    """Whether no word's value jumped back."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 06-jump
def steady(seen):
    """Whether no word's value jumped back."""
    # The largest count so far of each word; a smaller one has gone back.
    largest = {}
    for word, count in seen:
        if count < largest.get(word, 0):
            return False
        largest[word] = count
    return True


# %% tags=["check", "nbval-check-output"]
lab.check("06-jump")

# %% [raw] tags=["expected"]
# 06-jump: not attempted (3 points); lab.hint("06-jump") gives a hint.

# %% [markdown]
# ## Check yourself
#
# **1. Your sink upserts each row under a key that `uuid()` makes. The batch runs twice. What is in the table?**
#
# <details><summary>a) Each row once; it is an upsert.</summary>The second run makes new keys and replaces nothing.</details>
# <details><summary>b) Each row twice.</summary>Yes. With a random key the sink behaves like <i>append</i>.</details>
#
# **2. You have one database with transactions, and all rows of a batch go through the driver. Which sink?**
#
# <details><summary>a) two_phase.</summary>It needs a recovery and a store that waits. It is for several writers that cannot
# share one transaction.</details>
# <details><summary>b) batch_marker.</summary>Yes: rows and marker in one transaction.</details>
# <details><summary>c) wal.</summary>Its window stays. Flush and confirmation in one transaction would close the window, and that
# is <i>batch_marker</i>.</details>
#
# **3. Two-phase commit in log-then-commit; the job is killed between the votes and the note. What becomes of the rows?**
#
# <details><summary>a) Recovery commits them, they were pre-committed.</summary>Nothing has decided that. The batch runs again, and
# they would be there twice.</details>
# <details><summary>b) Recovery aborts them, and the batch runs again.</summary>Yes. Nobody has seen the first ones.</details>
#
# ## What this is called in Flink, Spark and Kafka
#
# | here | Flink | Spark | Kafka, PostgreSQL |
# |---|---|---|---|
# | append | `DeliveryGuarantee.AT_LEAST_ONCE` | a plain write in `foreachBatch`; the Kafka sink | a producer without a transaction |
# | idempotent | a sink that upserts by key | an upsert in `foreachBatch` | `INSERT ... ON CONFLICT ... DO UPDATE` |
# | wal | 1.x: [`GenericWriteAheadSink`](https://github.com/apache/flink/blob/release-1.20/flink-streaming-java/src/main/java/org/apache/flink/streaming/runtime/operators/GenericWriteAheadSink.java); after a restart it flushes with the next completed checkpoint only | - | - |
# | batch_marker | - | `foreachBatch(rows, batchId)` with a table of batches; Delta's `txnAppId` and `txnVersion`; the file sink's `_spark_metadata` | one ordinary transaction |
# | two_phase | 1.x: `TwoPhaseCommitSinkFunction` (2.0: internal); today `Sink`, `SupportsCommitter`, `Committer` | `DataWriter.commit`, then `StreamingWrite.commit`, which must recognise a batch that it committed (Delta, Iceberg) | Kafka: no vote; `PREPARE TRANSACTION` |
#
# ## On Monday
#
# - Look at the line with which your job writes. Without a key, a batch number or a commit it is *append*. Derive a key from the
#   record, never from clock or chance.
# - In `foreachBatch`: write the query's name and `batchId` into the transaction of the rows, and skip what is there.
# - In Flink: look up each `KafkaSink`. Its `DeliveryGuarantee` is `NONE` by default, in SQL at-least-once; `EXACTLY_ONCE` needs a prefix of transactional ids.
#
# ## Closing the ticket
#
# > **Ticket 8, closed.** Neither the total nor the screen is wrong: for every record the sink sets the value of a key,
# > and a batch that ran again set it to 1 on its way to 2. Exactly-once is a promise about the end. Since people act on
# > this screen, the table gets a batch marker in the transaction of the rows, and shows only whole batches. The price:
# > a row waits for its whole batch.
#
# ## Sources
#
# Apache Spark 4.2: `MicroBatchExecution`, `StreamingWrite`. Apache Flink: `GenericWriteAheadSink` (1.x), the release
# notes of 2.0, `KafkaSinkBuilder` and `KafkaConnectorOptions` (5.0). Kafka:
# [KIP-98](https://cwiki.apache.org/confluence/display/KAFKA/KIP-98+-+Exactly+Once+Delivery+and+Transactional+Messaging).
#
# Next: [07, the same on real Spark](07_crash_spark.ipynb)
