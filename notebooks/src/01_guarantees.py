# ---
# jupyter:
#   labkit:
#     needs: [00_start]
# ---

# %% [markdown]
# # Which link decides what a stream can guarantee?
#
# > **Ticket 2** (invented). *From sales:* "A customer's questionnaire asks whether our price pipeline is
# > *exactly-once*. Our slide says yes: Flink is. Please confirm by Friday." Prices arrive from the stock exchange
# > over a plain network connection, and a job writes them into a table.
#
# The answer depends on three links: the source, the **engine** (the program that runs the job: Spark, Flink), and the
# sink. We change one link at a time.
#
# {head}
#
# You will be able to
#
# - say what at-most-once, at-least-once and exactly-once promise, and for which part of a system;
# - find the harmful moment in a chain of source, engine and sink;
# - choose the one change that mends a chain.
#
# Everything here is **simulated**, because a simulator can try *every* moment of a crash.

# %%
from labkit import lab

# %% tags=["parameters"]
my_source = "socket"  # for "your own chain" further down: log or socket
my_engine = "log-then-commit"  # or: commit-then-log; loses its checkpoint (log-then-commit on a bad disk)
my_sink = "wal"  # append, idempotent, batch_marker, wal or two_phase

# %% [markdown]
# ## Three promises
#
# | promise | after a crash and a restart |
# |---|---|
# | **at-most-once** | no record counts twice; some may be missing |
# | *at-least-once* | no record is missing; some may count twice |
# | *exactly-once* | as if nothing had failed |
#
# "As if nothing had failed" cannot mean "the same output as the run without the failure". Two runs without any failure
# may differ, too: records may arrive in another order. So the promise means: what a reader finds in the end could have
# come from *some* run without a failure. Whether readers see something wrong on the way, such as a jump back, is a
# separate question.
#
# Ask also *where* the promise holds. **State consistency** is about the engine's own memory: its counts and offsets are
# right after a crash. An **end-to-end** guarantee is about what an outside reader finds behind the sink. In notebook 00
# Spark's counts were right, hello = 2 and world = 1, and the store behind *append* had every row twice. State
# consistency: exactly-once. End to end: at-least-once.
#
# (*Consistency* has other meanings, such as the C of **ACID**: a transaction leads a database from one valid state to
# another. Here the word compares a run with a failure to runs without one.)
#
# ## One run proves little
#
# In notebook 00 *append* doubled rows at *ready*, and none at *noted*. A promise is for *every* moment. The
# simulator goes through every order in which the steps of the job and one crash can happen. One such order is a
# **schedule**. All schedules together are a **search**.

# %% tags=["nbval-check-output"]
lab.explore("pipeline", strategy="append")

# %% [raw] tags=["expected"]
# every schedule of pipeline: at-least-once
#   64 states, all there are
#   BROKEN no_duplicate, 15 steps: not exactly-once, because 1 of 3 records came out twice or more, first offset 1 ('world' = 1): written by attempt 1 of batch 0 and by attempt 2 of batch 0; at-least-once still holds; meanwhile a reader saw offset 1 ('world' = 1) at crash 1 without the rest of its batch.
#   BROKEN no_fractured_read, 15 steps: not exactly-once, because 1 of 3 records came out twice or more, first offset 1 ('world' = 1): written by attempt 1 of batch 0 and by attempt 2 of batch 0; at-least-once still holds; meanwhile a reader saw offset 1 ('world' = 1) at crash 1 without the rest of its batch.
#   BROKEN no_regression, 17 steps: not exactly-once, because 3 of 3 records came out twice or more, first offset 0 ('hello' = 1): written by attempt 1 of batch 0 and by attempt 2 of batch 0; at-least-once still holds; meanwhile a reader saw 'hello' jump back from 2 to 1.

# %% [markdown]
# At-least-once: some schedule doubles a row, and no schedule loses one. In the first run on the card, the driver that
# dies and its successor both write *world*; *attempt 2* is the successor's work. A **state of a search** is one
# situation in which all processes together can be, such as "one row is out and the driver is dead". Two schedules that
# reach the same state can only go on in the same ways, so the search counts states.
#
# A **claim** is a sentence that must hold; for each broken claim the card shows a shortest run. Three break here: no
# row is there twice (`no_duplicate`); while the job is dead, nobody reads a part of a batch (`no_fractured_read`); no
# value jumps back (`no_regression`).
#
# We have searched every run of a *small* job. For larger jobs that is strong evidence, not a proof.
#
# ## A weak source
#
# So far the source read a log, which can be read again from any offset. A **socket** is a plain network connection. It
# gives each record once, and then forgets it. [Redis Pub/Sub](https://redis.io/docs/latest/develop/pubsub/) does the
# same, and so does RabbitMQ if its consumers [do not have to confirm](https://www.rabbitmq.com/docs/confirms) what they
# get.
#
# The sink is *two_phase* of notebook 00. It first writes hidden rows: the pre-commit. The *decision* is a durable note that
# the batch counts. The commit shows the rows; here it waits for the decision. Recovery deletes the hidden rows of an
# undecided batch. A batch that runs again gets new transactions. We kill the job at *ready*: all rows are pre-committed.

# %%
lab.ask("01-socket")

# %%
socket = lab.simulate("sink.after_pre_commit", sink="two_phase", source="socket")
socket

# %% tags=["nbval-check-output"]
lab.answer("01-socket", len(socket.verdict.lost))

# %% [raw] tags=["expected"]
# It was 3.
# Nothing was decided, so recovery deleted the hidden rows. The batch should have run again, and the socket had nothing left to read.

# %% tags=["checked"]
assert len(socket.verdict.duplicate) == 0
chains = lab.chains()
assert not any(chains[each].guarantee == "exactly-once" for each in chains if each.source == "socket")

# %% [markdown]
# All three records are missing. *No engine and no sink can put back what the source has forgotten.* Behind a plain socket,
# at-most-once is the most that a chain can promise.
#
# ## A weak engine
#
# Now the source is a log again. The sink's commit and the engine's note can come in two orders:
#
# - **commit-then-log**: the sink commits, then the engine writes its commit log (`commits/0`). That is Spark's order.
# - **log-then-commit**: the engine notes the decision, then the sink commits. That is Flink's order. The lab's
#   *two_phase* can follow this order on Spark, too: it says "done" early, and commits when it finds `commits/0`.
#
# We kill the job between the two steps, with the sink *two_phase*.

# %%
lab.ask("01-orders")

# %%
# order="engine" is commit-then-log: the sink commits first. order="decision" is log-then-commit.
first = lab.simulate("sink.after_commit", sink="two_phase", order="engine")
second = lab.simulate("engine.after_commit_log", sink="two_phase", order="decision")
runs = {"commit-then-log": first, "log-then-commit": second}
lab.compare(**runs)

# %% tags=["nbval-check-output"]
found = [order for order, run in runs.items() if run.verdict.duplicate]
lab.answer("01-orders", found)

# %% [raw] tags=["expected"]
# It was commit-then-log.
# There the rows were committed and the batch was not noted, so it ran again in a new transaction. In the other order recovery knew that the batch counts, and only finished its commit.

# %%
lab.show(first.trace, beside=second.trace)

# %% [markdown]
# In commit-then-log every row is there twice; in log-then-commit, once. The sink is the same, so here the *order*
# decides. (Spark asks a sink to recognise a batch that it has committed. The streaming sinks of Delta 4.4 and Iceberg
# 1.11 do, as our kills showed. In `foreachBatch` Delta does so only with `txnAppId` and `txnVersion`. *two_phase* does
# not.)
#
# An engine can also break its own state. Flink copies its counts while records flow
# ([notebook 04](04_barriers.ipynb)), and a setting allows it to copy carelessly. With it, a search finds a schedule in
# which the *count itself* is wrong after a restart:

# %% tags=["nbval-check-output"]
flink = {"sink": "two_phase", "counts": 1, "words": "hello-hello"}  # one task counts two records: a small job
lab.compare(
    careful=lab.explore("barriers", mode="aligned", **flink),  # notebook 04 explains the modes
    careless=lab.explore("barriers", mode="at_least_once", **flink),
)

# %% [raw] tags=["expected"]
#           guarantee      states  broken
# careful   exactly-once   3,418   nothing
# careless  at-least-once  5,810   sent_first, conserved, exact, counted_once, no_duplicate

# %% [markdown]
# The careless engine's own count is wrong (`counted_once`), so even the best sink can only write a wrong count.
# ([04](04_barriers.ipynb) explains the first three claims.)
#
# ## A sink that repairs
#
# Look at three more sinks.
#
# | sink | what it does |
# |---|---|
# | *idempotent* | Every row has a key. The sink *sets* the key's value: hello = 2. An action is **idempotent** if doing it again changes nothing. |
# | *batch_marker* | The rows and a marker (the query's name and the batch's number) go into one transaction: all or nothing. A batch whose marker is there already is skipped. |
# | *wal* | Rows go into a **write-ahead log**, a file of their own. On commit, the sink copies them into the store. Then it notes that the copy is done. |
#
# Now the engine's disk burns, and the checkpoint is lost. The job starts as a *new query*, which
# counts its batches from 0 and reads the whole log again.

# %%
lab.ask("01-raise")

# %% tags=["nbval-check-output"]
chains = lab.chains()
sinks = ["append", "idempotent", "batch_marker", "two_phase"]
without = {sink: chains["log", "loses its checkpoint", sink] for sink in sinks}
lab.compare(**without)

# %% [raw] tags=["expected"]
#               guarantee      states  broken
# append        at-least-once  160     no_duplicate, no_fractured_read, no_regression
# idempotent    exactly-once   160     no_fractured_read, no_regression
# batch_marker  at-least-once  115     no_duplicate, no_regression, no_fractured_read
# two_phase     at-least-once  710     no_orphan, no_fractured_read, no_duplicate, no_regression

# %% tags=["nbval-check-output"]
lab.answer("01-raise", [sink for sink in sinks if without[sink].guarantee == "exactly-once"])

# %% [raw] tags=["expected"]
# It was idempotent.
# Writing the same value to the same key changes nothing. Markers and transactions are filed under the old query, so the new query does not know them.

# %% tags=["checked"]
assert "no_regression" in without["idempotent"].violated

# %% [markdown]
# Only *idempotent* is still exactly-once. A sink can **raise** the guarantee of the links before it: the engine repeats
# records, but writing the same value to the same key again changes nothing. This has a price. While the log is read
# again, a reader sees old values: a value jumps back. And it has conditions: the repeated run must produce the same
# keys and values, in order, from one writer. `n = n + 1` is not idempotent. (`no_orphan`: no transaction is left
# unfinished.)
#
# *batch_marker* fails here only because the checkpoint is gone. With its checkpoint it is exactly-once in both orders,
# on two conditions. A number must always stand for the same records. And the marker must name the query, too, because
# a new query begins at 0 again. Without the name, this happens:

# %% tags=["nbval-check-output"]
lab.replay("pipeline.deleted_checkpoint_and_markers")

# %% [raw] tags=["expected"]
# simulated run of pipeline, 17 steps: at-most-once
#   2 lost, 0 twice, 0 jumps back, 1 read without the rest of its batch; 1 row
#   not exactly-once, because 2 of 3 records got lost, first offset 1 ('world' = 1): no effect of it is left; at-most-once still holds
#   BROKEN no_loss, no_fractured_read

# %% [markdown]
# The old batch 0 held one record, and the new batch 0 held all three. Its number was there already, so it was skipped, and
# two records are missing.
#
# And *wal*? We kill it in the middle of its copy, in log-then-commit order:

# %% tags=["nbval-check-output"]
lab.simulate("sink.mid_commit", sink="wal")

# %% [raw] tags=["expected"]
# simulated run of pipeline, 22 steps: at-least-once
#   0 lost, 1 twice, 0 jumps back, 1 read without the rest of its batch; 4 rows
#   a reader saw of hello: killed | 1 2
#   not exactly-once, because 1 of 3 records came out twice or more, first offset 1 ('world' = 1): written by attempt 1 of batch 0 and by attempt 2 of batch 0; at-least-once still holds
#   BROKEN no_duplicate, no_fractured_read

# %% [markdown]
# A part of the log was in the store, and nobody had noted how far the copy had come. The batch counted, so it did not
# run again; recovery, in attempt 2, copied the whole log again. So *wal* is at-least-once.
#
# ## Two halves
#
# Take an at-most-once source and an at-least-once sink: a socket and *wal*, in log-then-commit order.

# %% tags=["nbval-check-output"]
lab.replay("pipeline.lost_and_doubled")

# %% [raw] tags=["expected"]
# simulated run of pipeline, 26 steps: no guarantee
#   1 lost, 1 twice, 0 jumps back, 1 read without the rest of its batch; 3 rows
#   a reader saw of world: 1 | killed | 1
#   neither at-least-once nor at-most-once, because 1 of 3 records got lost, first offset 2 ('hello' = 2): no effect of it is left, and 1 of 3 records came out twice or more, first offset 1 ('world' = 1): written by attempt 1 of batch 0 and by attempt 2 of batch 0
#   BROKEN no_loss, no_duplicate, no_fractured_read

# %% [markdown]
# At the crash, batch 0 was decided and copied in part, and batch 1 had been read. Recovery copied the log of batch 0
# again: *world* came twice. The socket could not give batch 1 again: one record never came. So the chain promises
# neither.
#
# > **You will read:** "a chain has the guarantee of its weakest link". Two runs above say otherwise. At-most-once and
# > at-least-once together may leave *nothing*. And an idempotent sink makes the engine's repeats harmless. What is
# > true: nobody can bring back what is *lost*.
#
# ## Thirty chains
#
# Here is every chain of two sources, three engines and five sinks. **Choose a square**: it says how its result was
# found, what a shortest run does, and which call repeats it.

# %% tags=["nbval-check-output"]
lab.chains()

# %% [raw] tags=["expected"]
#                 commit-then-log  log-then-commit  loses its checkpoint
# log
#   append        at-least-once *  at-least-once *  at-least-once
#   idempotent    exactly-once *   exactly-once *   exactly-once
#   batch_marker  exactly-once *   exactly-once *   at-least-once
#   wal           at-least-once *  at-least-once *  at-least-once
#   two_phase     at-least-once *  exactly-once *   at-least-once
# socket
#   append        at-most-once *   at-most-once *   at-most-once
#   idempotent    at-most-once     at-most-once     at-most-once
#   batch_marker  at-most-once     at-most-once     at-most-once
#   wal           at-most-once     none             none
#   two_phase     at-most-once     at-most-once *   at-most-once
# * also on real Spark

# %% tags=["checked"]
assert chains["socket", "log-then-commit", "wal"].guarantee == "none"
assert chains["log", "commit-then-log", "batch_marker"].broken == "nothing"

# %% [markdown]
# No square in the socket's half says exactly-once. Only *wal* can end at *none*, because it repeats from its own log
# once the batch is decided. The other sinks repeat what the source gives again, and a socket gives nothing again.
#
# ## Your turn
#
# The source is a socket, the sink *two_phase*, every batch has one record. **Find a schedule that crashes after the
# first batch was planned and loses no record.** Choose the next action below the picture until nothing is left to do.

# %%
mine = lab.explorer("pipeline", source="socket", records_per_batch=1)
mine

# %%
"crash" in mine.trace, lab.replay(mine.trace).verdict.lost

# %% [markdown]
# The values say whether your steps include a crash, and which records are not out so far.
#
# **Your own chain.** Set source, engine and sink in the parameters near the top, run that cell, then this one.
# `lab.show(chosen.counterexample())` steps through a shortest run that breaks a claim.

# %%
chosen = lab.chains()[my_source, my_engine, my_sink]
chosen

# %% tags=["exercise"]
# exercise 01-predict
predicted_01 = {"lost": ..., "duplicate": ...}  # two lists of offsets

# %% tags=["solution"]
# exercise 01-predict
predicted_01 = {"lost": [], "duplicate": [0, 1]}

# %% tags=["check", "nbval-check-output"]
lab.check("01-predict")

# %% [raw] tags=["expected"]
# 01-predict: not attempted (not graded); write it, and the run unlocks.

# %% tags=["exercise"]
# exercise 01-links
links = {"source": ..., "engine": ..., "sink": ...}

# %% tags=["solution"]
# exercise 01-links
links = {"source": "log", "engine": "log-then-commit", "sink": "two_phase"}

# %% tags=["check", "nbval-check-output"]
lab.check("01-links")

# %% [raw] tags=["expected"]
# 01-links: not attempted (2 points); lab.hint("01-links") gives a hint.

# %% tags=["exercise"]
# exercise 01-weakest
weakest_answer = ...  # "a", "b", "c" or "d"

# %% tags=["solution"]
# exercise 01-weakest
weakest_answer = "c"

# %% tags=["check", "nbval-check-output"]
lab.check("01-weakest")

# %% [raw] tags=["expected"]
# 01-weakest: not attempted (not graded); lab.hint("01-weakest") gives a hint.

# %% [markdown]
# ## Check yourself
#
# **1. A message queue deletes a message when it is delivered, and never sends it again. Your engine has checkpoints, your sink two-phase commit.**
#
# <details><summary>a) Exactly-once: engine and sink are the best there are.</summary>No. What was delivered and not yet
# committed dies with the engine, and the queue cannot give it again.</details>
# <details><summary>b) At-most-once.</summary>Right. It gets better only if the queue keeps a message until it is
# acknowledged, after the result is on disk.</details>
# <details><summary>c) At-least-once: the engine runs the batch again.</summary>No. It does run the batch again, and finds
# it empty.</details>
#
# **2. You crash a job ten times and the result is right each time. What do you know?**
#
# <details><summary>a) It is exactly-once.</summary>No. The chain with <i>append</i> survives a crash at a harmless moment,
# too.</details>
# <details><summary>b) That these ten moments are harmless.</summary>Right. One harmful moment is enough to refute a
# guarantee; to trust it, look at all of them.</details>
#
# ## What this is called in Flink, Spark and Kafka
#
# | here | Spark Structured Streaming 4 | Flink 2 | Kafka Streams 4 |
# |---|---|---|---|
# | order of commit and note | commit-then-log | log-then-commit | with `exactly_once_v2`: one Kafka transaction holds output and offsets |
# | promise for the state | exactly-once with a checkpoint and a replayable source | `execution.checkpointing.mode`; default `EXACTLY_ONCE` | `processing.guarantee`; default `at_least_once` |
# | promise of a sink of your own | `foreachBatch`: at-least-once; with the batch's number you can do better | `SupportsCommitter`; in Flink 1.x `TwoPhaseCommitSinkFunction` | - |
# | promise of its Kafka sink | at-least-once | `DeliveryGuarantee`; default `NONE`, in SQL at-least-once | `exactly_once_v2` |
# | *batch_marker* | Delta's options `txnAppId` and `txnVersion` | - | - |
#
# ## On Monday
#
# **Look at** one job of yours and write down three answers. Can its source be read again? In which order do sink and engine
# commit? What does its sink do with a batch that comes twice?
#
# **Set** the sink first. From a log, with Spark, into a sink that only appends, you have at-least-once. Two changes help:
# store query name and batch number in the same transaction as the rows, or give every row a key and set its value.
#
# ## Closing the ticket
#
# > **Ticket 2, closed.** Not confirmed. The connection gives each price once, so what had been read and not written at
# > a crash is lost: at-most-once, whatever the engine promises. Three footnotes belong on the slide: from which source,
# > with which order of commit and note, into which sink. If the exchange offers a log that can be read again, we take
# > that first.
#
# ---
# Sources: Spark 4.2's `MicroBatchExecution` and `StreamingWrite.commit`, see the
# [Structured Streaming guide](https://spark.apache.org/docs/latest/streaming); Flink 2's `CheckpointCoordinator`,
# see [Stateful Stream Processing](https://nightlies.apache.org/flink/flink-docs-stable/docs/concepts/stateful-stream-processing/).
# Why the ends have to help: Saltzer, Reed and Clark,
# [End-to-End Arguments in System Design](https://doi.org/10.1145/357401.357402), 1984.
#
# Next: [Has it arrived?](02_delivery.ipynb)
