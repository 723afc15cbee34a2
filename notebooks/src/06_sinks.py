# %% [markdown]
# # What does a reader of your sink see?
#
# A job counts *hello*, *world*, *hello* and writes every count: three rows. It is killed and started again, and the batch
# runs a second time. Whether the reader gets each row once, twice or not at all, is up to the **sink**. Five ways to write
# meet the same crashes here.
#
# **Everything in this notebook is simulated**: the job, its checkpoint folder and the outside store. The failpoints have the same
# names as in real Spark, the same judge counts, and [notebook 07](07_crash_spark.ipynb) does the same with real processes and
# real kills. It takes about fifteen minutes. Run the cells from top to bottom; one that needs another says which.

# %% tags=["parameters"]
failpoint = "sink.after_pre_commit"  # where the job is killed first: all rows written, commits/0 not yet there
sink = "wal"  # what you begin with in "Your turn": wal, two_phase, batch_marker or append

# %% [markdown]
# ## Naive: write each row at once
#
# *Append* writes a row as soon as it has it. The job is killed when all three are written and Spark has not yet noted that the
# batch is finished, so the batch runs again. How many rows are there in the end, and what is the guarantee? Write your answers
# in place of `None`, then run the cell. It runs without them, too.

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("failpoint", cell="the first code cell")
said = lab.predict(rows=None, guarantee=None)  # a number; exactly-once, at-least-once, at-most-once or none
append = lab.simulate(failpoint, sink="append")
print(said.beside(rows=append.verdict.rows, guarantee=append.verdict.guarantee))
print("seen:", append.seen)
assert not append.verdict.lost  # at least once, wherever you let it die
assert lab.replay("pipeline.append_twice").verdict.duplicate == (0, 1, 2)

# %% [raw] tags=["expected"]
#            it was
# rows       6
# guarantee  at-least-once
# Nothing was predicted, so nothing is compared.
# seen: world=1 hello=1 hello=2 | crash 1 | world=1 hello=1 hello=2

# %% [markdown]
# ## Idempotent: write the value of a key
#
# An *idempotent* sink replaces the value of the key. Writing `hello = 2` again changes nothing, so nothing can be there twice.
# Same kill. What does a reader see of *hello*, in order?

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("failpoint", cell="the first code cell")
said = lab.predict({"hello is seen as": None, "guarantee": None})  # a list such as [1, 2]; and a guarantee
upsert = lab.simulate(failpoint, sink="idempotent", store="sqlite")
hello = [int(word.removeprefix("hello=")) for word in upsert.seen.split() if word.startswith("hello=")]
print(said.beside({"hello is seen as": hello, "guarantee": upsert.verdict.guarantee}))

# %% [raw] tags=["expected"]
#                   it was
# hello is seen as  [1, 2, 1, 2]
# guarantee         exactly-once
# Nothing was predicted, so nothing is compared.

# %%
from labkit import lab

lab.need("upsert", cell="the cell above")
assert upsert.verdict.guarantee == "exactly-once"
assert lab.replay("pipeline.jump_back").verdict.regression == (0,)
lab.show("pipeline.jump_back")

# %% [markdown]
# Right in the end, and yet somebody who had read 2 read 1 afterwards: the value **jumped back** and was replayed. For that
# it takes two updates of one key in what is replayed. Spark replays one micro-batch at most. Search every order of steps
# with one record a batch, and with all three in one batch. In which of them can a value jump back?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict({"one a batch": None, "three a batch": None})  # "yes" or "no"
job = {"strategy": "idempotent", "store": "sqlite"}
one, three = (lab.explore("pipeline", **job, records_per_batch=size) for size in (1, 3))
back = ["no_regression" in search.violated for search in (one, three)]
print(said.beside({"one a batch": back[0], "three a batch": back[1]}))

# %% [raw] tags=["expected"]
#                it was
# one a batch    no
# three a batch  yes
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# The more is replayed, the further a value can jump back; an engine like Flink replays a whole checkpoint interval. And
# *idempotent* holds for one writer only. Here a driver that was thought dead wakes up and writes what it still had to write:

# %% tags=["nbval-check-output"]
from labkit import lab

zombie = lab.replay("pipeline.zombie_upserts")
print("seen: ", zombie.seen)
print("final:", dict(zombie.verdict.final), "- lost:", list(zombie.verdict.lost))

# %% [raw] tags=["expected"]
# seen:  hello=1 hello=1 hello=2 hello=3 hello=2
# final: {'hello': 2} - lost: [2]

# %% [markdown]
# ## A write-ahead log
#
# The *wal* sink shows nothing at first. It writes the rows into a log; when the batch is decided it copies the log to the
# table, row by row (the *flush*); then it notes a **second confirmation**, so that nobody flushes again.
#
# A batch passes nine failpoints. At how many of them does a kill make a row come twice?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict({"points that double a row": None})
logged = {point: lab.simulate(point, sink="wal") for point in lab.points("wal")}
doubling = [point for point, run in logged.items() if run.verdict.duplicate]
print(said.beside({"points that double a row": len(doubling)}))
print("\n" + lab.table(logged))

# %% [raw] tags=["expected"]
#                           it was
# points that double a row  2
# Nothing was predicted, so nothing is compared.
#
#                            guarantee      lost  duplicate  jumped back
# source.after_offset_log    exactly-once   0     0          0
# sink.mid_write             exactly-once   0     0          0
# sink.before_pre_commit     exactly-once   0     0          0
# sink.after_pre_commit      exactly-once   0     0          0
# coordinator.after_handles  exactly-once   0     0          0
# engine.after_commit_log    exactly-once   0     0          0
# sink.mid_commit            at-least-once  0     1          0
# sink.before_confirm        at-least-once  0     3          1
# sink.after_commit          exactly-once   0     0          0

# %% [markdown]
# The window lies between the first flushed row and the second confirmation, and it grows with the batch. Nobody can say how
# far the flush had come, so recovery flushes everything again: **at-least-once**. Would it be better to delete a log
# whose flush was interrupted? The same kill in the middle of the flush; how many of the three records are lost?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict({"flush again": None, "delete the log": None})
runs = {"flush again": lab.replay("pipeline.half_flushed_log"), "delete the log": lab.replay("pipeline.deleted_log")}
print(said.beside({name: len(run.verdict.lost) for name, run in runs.items()}))
for name, run in runs.items():
    print(f"{name:15} {run.verdict.guarantee:14} seen: {run.seen}")

# %% [raw] tags=["expected"]
#                 it was
# flush again     0
# delete the log  2
# Nothing was predicted, so nothing is compared.
# flush again     at-least-once  seen: world=1 | crash 1 | world=1 hello=1 hello=2
# delete the log  at-most-once   seen: world=1 | crash 1 |

# %%
from labkit import lab

lab.show("pipeline.deleted_log")

# %% [markdown]
# ## The confirmation in the same transaction
#
# The log doubles because rows and confirmation are **two** writes. A store with transactions can take both in one: the rows, and
# a row (query, batch) that says they are there. Before it writes, the sink looks for it. The lab calls this sink
# *batch_marker*. A batch passes five failpoints; at how many of them does it double or lose anything?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict({"points that break it": None})
marked = {point: lab.simulate(point, sink="batch_marker") for point in lab.points("batch_marker")}
print(said.beside({"points that break it": sum(run.verdict.guarantee != "exactly-once" for run in marked.values())}))
twice = lab.explore("pipeline", strategy="batch_marker", crashes=2)
print("two crashes, anywhere:", list(twice.violated) or "no claim is broken")
assert twice.exhausted  # every order of steps was tried
assert not twice.violated

# %% [raw] tags=["expected"]
#                       it was
# points that break it  0
# Nothing was predicted, so nothing is compared.
# two crashes, anywhere: no claim is broken

# %% [markdown]
# Exactly-once, without two-phase commit and without a jump back. The marker must name the query, too: batch numbers begin
# at 0 again with a new checkpoint (`pipeline.deleted_checkpoint_and_markers`).
#
# ## Two-phase commit
#
# Not every store has one transaction for all writers. With *two_phase*, each task writes into a transaction of its own,
# **pre-commits** it, and commits it when told. Who decides first: does the sink commit and Spark then write `commits/N`
# (order *engine*), or is `commits/N` the decision and the sink commits afterwards (order *decision*)? A batch passes seven
# failpoints in the first order and eight in the second. At how many does a kill make a row come twice?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(engine=None, decision=None)  # a number of points each
doubling = {}
for order in said.said:
    runs = {point: lab.simulate(point, sink="two_phase", order=order) for point in lab.points("two_phase", order)}
    doubling[order] = [point for point, run in runs.items() if run.verdict.duplicate]
print(said.beside({order: len(found) for order, found in doubling.items()}))
print("engine order:", ", ".join(doubling["engine"]))

# %% [raw] tags=["expected"]
#           it was
# engine    2
# decision  0
# Nothing was predicted, so nothing is compared.
# engine order: sink.mid_commit, sink.after_commit

# %%
from labkit import lab

undecided = lab.simulate("coordinator.after_handles", sink="two_phase")  # all pre-committed, commits/0 not there
assert "abort(1)" in [str(action) for action in undecided.trace.actions]
lab.show("pipeline.decide_then_commit")

# %% [markdown]
# In engine order rows were visible and the note was missing, so the batch ran again. In decision order the restarted driver
# finds the decision and the handles of the transactions, and finishes the commits: that is the run in the player. Pre-commit
# is **not** the decision: when the job dies between the two, recovery aborts, as the assertions say.
#
# A plain folder can be such a store, too: a staged file becomes visible by one rename, which [notebook 07](07_crash_spark.ipynb)
# does with real files. But several renames, or several commits, are not one step. How many of the three rows does a reader find
# while the job is down, if it dies between the commits of two transactions?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict({"rows while it is down": None})
half = lab.replay("pipeline.half_committed")
print(said.beside({"rows while it is down": half.until("crash").verdict.rows}))
print("seen:", half.seen, "-", half.verdict.guarantee)

# %% [raw] tags=["expected"]
#                        it was
# rows while it is down  1
# Nothing was predicted, so nothing is compared.
# seen: world=1 | crash 1 | hello=1 hello=2 - exactly-once

# %% [markdown]
# ## Timeouts that fit, and timeouts that do not
#
# Between decision and commit the outside store must keep the transaction. This simulated Kafka aborts a transaction 5 s
# after its first record, and a checkpoint comes every 10 s. Three kinds of traffic: a record every 5 s; a burst and then
# silence; two records just before the barrier. How many of the two records does a reader at *read_committed* miss in
# the end?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(steady_traffic=None, burst_then_silence=None, just_before_the_barrier=None)
kafka = {name: lab.replay(f"kafka_log.{name}") for name in said.said}
print(said.beside({name: len(run.verdict.lost) for name, run in kafka.items()}))
for name, run in kafka.items():
    print(f"{name:24} restarts: {run.state.failures}")

# %% [raw] tags=["expected"]
#                          it was
# steady_traffic           0
# burst_then_silence       2
# just_before_the_barrier  0
# Nothing was predicted, so nothing is compared.
# steady_traffic           restarts: 1
# burst_then_silence       restarts: 0
# just_before_the_barrier  restarts: 0

# %% [markdown]
# The worst case is the quiet one: the checkpoint completes, the commit is refused, the error is only logged. Does it help to
# let the commit raise, or to commit before the decision? Search every order of steps in which the store drops one transaction
# and nobody crashes.

# %% tags=["nbval-check-output"]
from labkit import lab

print("order     commit of a dropped one  loses  doubles  may never end")
for order in ("decision", "engine"):
    for dropped in ("ignore", "raise"):
        broken = lab.explore("pipeline", order=order, dropped=dropped, expiries=1, crashes=0).violated
        claims = ["yes" if name in broken else "no" for name in ("no_loss", "no_duplicate", "ends")]
        print(f"{order:9} {dropped:24} {claims[0]:6} {claims[1]:8} {claims[2]}")

# %% [raw] tags=["expected"]
# order     commit of a dropped one  loses  doubles  may never end
# decision  ignore                   yes    no       no
# decision  raise                    no     no       yes
# engine    ignore                   yes    no       no
# engine    raise                    no     yes      no

# %% [markdown]
# No line is clean. In the second one nothing counts as lost, because the query never ends, and the row never comes. In the last
# one a transaction was committed when the other one was refused, and the batch ran again. What helps is a timeout that is long
# enough ([notebook 05](05_two_phase_commit.ipynb) measures how long), or a store without one.
#
# ## Which records does a transaction protect?
#
# The sink's transactions are cut at the barriers. In this run record 0 comes before barrier 1 and record 1 behind it; when
# checkpoint 1 is complete, the job dies. What does a reader see while the job is down, and what in the end?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict({"while it is down": None, "in the end": None})  # for example "hello=2 world=1"
epochs = lab.replay("barriers.epochs")
down, end = epochs.until("crash").facts["visible"], epochs.facts["visible"]
print(said.beside({"while it is down": down, "in the end": end}))

# %% [raw] tags=["expected"]
#                   it was
# while it is down  hello=1
# in the end        hello=2 world=1
# Nothing was predicted, so nothing is compared.

# %%
from labkit import lab

protected = lab.explore("barriers", sources=1, counts=1, crashes=2)
assert protected.exhausted  # every order of steps, two crashes anywhere
assert not protected.violated  # no row lost, none twice, before or behind a barrier

# %% [markdown]
# The row before the barrier was committed with checkpoint 1. The row behind it was in the next transaction, which recovery
# aborts; its record is read again. Every record belongs to the transaction of its epoch, and none is left out.
#
# > **What popular notes get wrong.** "*Two-phase commit protects the data after the barrier, not before*": the search above found no
# > row lost or doubled on either side. "*A write-ahead log is exactly-once*": it doubled rows at two of nine points. "*The log
# > is deleted when the write fails*": then two of three records were lost.
#
# ## The last batch, and the waiting
#
# The input has an end. A query stops after the decision on its last batch and before the notification. How many rows does a
# reader find?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict({"stops at once": None, "delivers the last notification first": None})
ended = {"stops at once": lab.replay("pipeline.abrupt_end")}
ended["delivers the last notification first"] = lab.simulate(sink="two_phase")
print(said.beside({name: run.verdict.rows for name, run in ended.items()}))
print("guarantee of the first:", ended["stops at once"].verdict.guarantee)

# %% [raw] tags=["expected"]
#                                       it was
# stops at once                         0
# delivers the last notification first  3
# Nothing was predicted, so nothing is compared.
# guarantee of the first: unknown

# %% [markdown]
# *Unknown*, because the transactions are prepared and nobody has ended them: the rows are not lost yet. And this is what every
# guarantee costs: the step of a quiet run after which the first row can be read.

# %% tags=["nbval-check-output"]
from labkit import lab

stores = {"append": "files", "idempotent": "sqlite", "batch_marker": "files", "two_phase": "files", "wal": "files"}
for way, store in stores.items():
    states = lab.simulate(sink=way, store=store).walk.states
    print(f"{way:13} step", next(step for step, state in enumerate(states) if state.store.seen))

# %% [raw] tags=["expected"]
# append        step 4
# idempotent    step 4
# batch_marker  step 8
# two_phase     step 12
# wal           step 13

# %% [markdown]
# ## Your turn
#
# **With *wal*: find a crash after which every row is there twice, and the query ends.** Then the last moment before that at
# which a crash doubles nothing. Then try `sink = "two_phase"`: can you double a row at all? `?` shows the keys; the cell below
# says what a reader of your run saw.

# %%
from labkit import lab

lab.need("sink", cell="the first code cell")
steering = lab.explorer("pipeline", strategy=sink)
steering

# %%
from labkit import lab

lab.need("steering", cell="the cell above")
print(lab.replay(steering.trace).seen)

# %% [markdown] tags=["task"]
# ## Exercise: a flush that was cut short (`06-predict`)
#
# *wal* in decision order: *hello* (offset 0), *world* (1), *hello* (2). The flush writes *world* first and is killed when
# one of the three rows is out. Then the job starts again. Which offsets are **lost** in the end, and which came **more than
# once**?
#
# *predict, easy, 1 point for predicting, right or wrong; one line.*
#
# <details><summary>Hint 1</summary>Does recovery know how far the flush had come?</details>
# <details><summary>Hint 2</summary>It flushes the whole log again.</details>

# %% tags=["exercise"]
# exercise 06-predict
predicted_06 = {"lost": ..., "duplicate": ...}  # two lists of offsets

# %% tags=["solution"]
# exercise 06-predict
predicted_06 = {"lost": [], "duplicate": [1]}

# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("06-predict")

# %% [raw] tags=["expected"]
# 06-predict: not attempted (1 point); write it, and the run unlocks.

# %% [markdown] tags=["task"]
# ## Exercise: the right key (`06-key`)
#
# A sink upserts every count that was ever reached into a table: one row for each record of the input. `key(row)` gives the
# key by which a row is upserted: a number, a text, or a list of these. The row is a dict with `"offset"` (of the input
# record), `"word"`, `"count"` (the running count of the word), `"batch"` and `"attempt"` (which driver wrote it).
#
# After any crash, and even if somebody deletes the checkpoint folder so that everything runs again in other batches, the
# table must end with **one row for every record**.
#
# *complete, easy, 2 points; one line.*
#
# <details><summary>Hint 1</summary>Which fields of a row are the same when its batch runs again, and which differ between
# two records?</details>
# <details><summary>Hint 2</summary>A batch number is the same after a restart, and begins at 0 again when the checkpoint
# folder is gone.</details>


# %% tags=["exercise"]
# exercise 06-key
def key(row):
    """The key by which a row is upserted."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 06-key
def key(row):
    """The key by which a row is upserted."""
    return row["offset"]


# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("06-key")

# %% [raw] tags=["expected"]
# 06-key: not attempted (2 points); lab.hint("06-key") helps.

# %% [markdown] tags=["task"]
# ## Exercise: the second confirmation (`06-wal`)
#
# The rows of a batch are in a write-ahead log. `commit(batch, rows, confirmed)` is asked when the log is complete: `batch`
# is the number of the batch, `rows` the list of its offsets, `confirmed` the list of batches with a second confirmation.
# Return the steps, in order: `["write", offset]` puts one row out, `["confirm", batch]` notes durably that a batch is out.
# Then Spark writes `commits/N`.
#
# Between any two steps the job may die; a batch without `commits/N` runs again, its log is written anew, and `commit` is
# asked again. No row may be lost. A row may come twice **only** if the crash came between the first row of its batch and
# the confirmation: that window no log can close.
#
# *complete, medium, 4 points; about 4 lines.*
#
# <details><summary>Hint 1</summary>A crash can come between any two steps. Which of them says that all rows are
# out?</details>
# <details><summary>Hint 2</summary>A batch that was confirmed may run again, when the crash came before commits/N. More:
# <code>lab.hint("06-wal")</code>.</details>


# %% tags=["exercise"]
# exercise 06-wal
def commit(batch, rows, confirmed):
    """The steps with which a logged batch is written out."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 06-wal
def commit(batch, rows, confirmed):
    """The steps with which a logged batch is written out."""
    if batch in confirmed:
        return []
    return [["write", offset] for offset in rows] + [["confirm", batch]]


# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("06-wal")

# %% [raw] tags=["expected"]
# 06-wal: not attempted (4 points); lab.hint("06-wal") helps.

# %% [markdown] tags=["task"]
# ## Exercise: recover and commit (`06-recover`)
#
# A driver with *two_phase* starts again, in decision order. Write `recover_and_commit(decided, stored, found)`, which is
# asked before the query starts. `decided` is the last batch with `commits/N` (-1: none). `stored` are the votes that were
# stored before the decision, as `{"batch": 3, "handles": [...]}`. `found` are the handles of all transactions of this query
# in the store that are open or pre-committed. Return a list of `["commit", handle]` and `["abort", handle]`. A handle names
# query, batch, partition and driver, as `"q0-b3-p1-i2"`; you need not take it apart. A task that was tried twice has a
# second transaction (`"q0-b3-p1-i2-a1"`), for which nobody has voted.
#
# The driver may die while it recovers, and then the next one recovers. A second commit of the same transaction changes
# nothing. No record may be lost or come twice, and no transaction may stay open.
#
# *complete, hard, 5 points; about 4 lines.*
#
# <details><summary>Hint 1</summary>What is the decision: the pre-commit, the stored votes, or commits/N?</details>
# <details><summary>Hint 2</summary>Votes are stored before the decision, so some of them may be undecided. More:
# <code>lab.hint("06-recover")</code>.</details>


# %% tags=["exercise"]
# exercise 06-recover
def recover_and_commit(decided, stored, found):
    """What a restarted driver does with the transactions of its query."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 06-recover
def recover_and_commit(decided, stored, found):
    """What a restarted driver does with the transactions of its query."""
    due = [handle for vote in stored if vote["batch"] <= decided for handle in vote["handles"]]
    return [["commit", handle] for handle in due] + [["abort", handle] for handle in found if handle not in due]


# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("06-recover")

# %% [raw] tags=["expected"]
# 06-recover: not attempted (5 points); lab.hint("06-recover") helps.

# %% [markdown] tags=["task"]
# ## Exercise: nothing jumps back (`06-jump`)
#
# Write the property that an outside reader cares about. `steady(seen)` gets what it saw, in order, as `[word, count]`: for
# example `[["world", 1], ["hello", 1], ["hello", 2]]`. Return `False` if a word was seen to go back to a smaller count,
# else `True`.
#
# The check asks it about every end of good systems and of systems whose readers see a jump, and about rows put together: a
# reader may miss counts, and may come late. It must reject what jumps back, and accept all else.
#
# *invariant, easy, 3 points; about 6 lines.*
#
# <details><summary>Hint 1</summary>Another word in between changes nothing for hello.</details>
# <details><summary>Hint 2</summary>Remember the largest count of every word so far. The same count twice is a duplicate and
# no jump.</details>


# %% tags=["exercise"]
# exercise 06-jump
def steady(seen):
    """Whether no word was seen to go back."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 06-jump
def steady(seen):
    """Whether no word was seen to go back."""
    largest = {}
    for word, count in seen:
        if count < largest.get(word, 0):
            return False
        largest[word] = count
    return True


# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("06-jump")

# %% [raw] tags=["expected"]
# 06-jump: not attempted (3 points); lab.hint("06-jump") helps.

# %% [markdown]
# ## What remains true
#
# | sink | in the end | on the way | price |
# |---|---|---|---|
# | append | at-least-once | values jump back | none |
# | idempotent | exactly-once | values jump back | one value a key, one writer |
# | wal | at-least-once | values jump back if it dies while flushing | visible after the decision |
# | batch_marker | exactly-once | each batch at once | one transaction for rows and marker |
# | two_phase, decision order | exactly-once, if the store keeps its promise | part of a batch while commits go on | visible after the decision, and a store that waits |
#
# ## Check yourself
#
# **1. Your sink runs `UPDATE t SET n = n + 1` for every record. The batch runs twice. What happens?**
#
# <details><summary>a) Nothing; it is an upsert.</summary>An upsert is idempotent when it writes the same value again. Adding twice
# is adding two.</details>
# <details><summary>b) Every record of the batch is added twice.</summary>Yes: it behaves like <i>append</i>.</details>
#
# **2. The log was flushed completely, and the job died before the second confirmation. What should recovery do?**
#
# <details><summary>a) Delete the log, since all rows are out.</summary>It cannot know that all are out. If one is missing, it is
# lost.</details>
# <details><summary>b) Flush again.</summary>Yes, and every row comes twice: that is the point
# <code>sink.before_confirm</code> in the table.</details>
#
# **3. You have one database with transactions, and all rows of a batch go through the driver. Which sink?**
#
# <details><summary>a) two_phase, it is the strongest.</summary>It needs prepared transactions, a recovery and patience with
# locks. It is needed where several writers cannot share one transaction.</details>
# <details><summary>b) batch_marker.</summary>Yes: rows and marker in one transaction, and the search with two crashes found
# nothing.</details>
# <details><summary>c) wal.</summary>Its window stays, and it has a log to look after.</details>
#
# **4. Two-phase commit in decision order; the job is killed between pre-commit and decision. What becomes of the rows?**
#
# <details><summary>a) Recovery commits them, they were pre-committed.</summary>Nothing has decided that. The batch runs again, and
# they would be there twice.</details>
# <details><summary>b) Recovery aborts them, and the batch runs again.</summary>Yes. Nobody has seen the first ones.</details>
#
# ## Sources
#
# In Apache Spark `MicroBatchExecution` (the order of the two logs) and `foreachBatch` (at least once, with a batch id to
# deduplicate by); in Apache Flink `GenericWriteAheadSink` and `CheckpointCommitter` (the second confirmation),
# `TwoPhaseCommitSinkFunction` (pre-commit, commit, recovery); Kafka's
# [KIP-98](https://cwiki.apache.org/confluence/display/KAFKA/KIP-98+-+Exactly+Once+Delivery+and+Transactional+Messaging) on
# transactions and *read_committed*.
#
# Next: [07, the same on real Spark](07_crash_spark.ipynb)
