# ---
# jupyter:
#   labkit:
#     needs: [05_two_phase_commit, 07_crash_spark, 09_kafka, 09b_timeouts]
#     slow: true
# ---

# %% [markdown]
# # Where does each engine write down that it is done?
#
# > **Ticket 19** (invented). *For the architecture review:* three teams, one with Spark, one with Flink, one with a
# > small Kafka program. Each has drawn a box and written *exactly-once* into it. The reviewer asks all three: "After a
# > crash, where does your job read that a step is done?"
#
# Each job must write down somewhere "this step is done". It matters where, and what it writes just before and after.
#
# {head}
#
# You will be able to
#
# - find that note in Spark, Flink and Kafka, and say what a crash just before or after it does;
# - say who starts again after a crash, and how much is read again;
# - tell what a stopped process and a restored checkpoint do, and which note survives them.

# %% tags=["parameters"]
design = "plan > visible > marker > decision; transaction; from decision, skips marked"  # an order for "Your turn"

# %%
from labkit import lab

# %% [markdown]
# ## Five jobs, one step
#
# Five plain programs copy nine orders in three steps of three. Each was run once, and every
# system call that leaves something behind was recorded. Below is one step of each, from left to right:

# %% tags=["nbval-check-output"]
lab.engines(killed=True)

# %% [raw] tags=["expected"]
# Spark, foreachBatch appends: plan > rows, unseen > rows > cleaning > ✗ [done]
# Spark, Delta with txnVersion: plan > rows, unseen > rows + batch id > ✗ [done]
# Flink, file sink: rows, unseen > [done] > ✗ rows
# Kafka, offsets afterwards: rows > ✗ [offsets]
# Kafka, offsets in transaction: ✗ [rows + offsets]

# %% [markdown]
# The picture shows what outlives the process. A thick frame is the note: a restart goes on after it. *rows*
# is what readers see. *rows, unseen* is a file that nobody reads yet. A plus joins two writes: a crash leaves both or neither.
#
# | job | the note | where it lies |
# |---|---|---|
# | Spark | `commits/N` | checkpoint folder |
# | Flink | checkpoint N in the store of completed checkpoints | high-availability storage; the run here has none, and restores the newest `_metadata` |
# | Kafka | the group's offset (`OffsetCommit`, or `TxnOffsetCommit` in a transaction) | a topic of the broker |
#
# The last two jobs do *consume-transform-produce*: a program reads from one topic and writes to another, with its progress in Kafka. One tells its
# group the offset after the rows. The other puts the offset into the transaction of the rows.
#
# Flink writes `_metadata` first, and then an entry into the store of completed checkpoints. With high availability an
# automatic restart looks only into the store. A JobManager that dies between the two leaves a `_metadata` whose
# transactions the restart *aborts*. Whoever later restores that file by hand asks for commits that nobody can make any
# more ([09b](09b_timeouts.ipynb)).
#
# Each job is killed in its second step, at the red cross, and started again: Kafka's two here and now, the other three when they
# were recorded.

# %%
lab.ask("12-twice")

# %%
# Kafka's two are killed here by SIGKILL. The others are recorded: Flink alone would have to fetch 380 MB.
killed = lab.kill_engines()
killed

# %% tags=["nbval-check-output"]
lab.answer("12-twice", killed.doubled)

# %% [raw] tags=["expected"]
# It was: spark, consumer.
# Both had shown the rows, and nothing that lasts said so. Delta's rows carry the batch number. Flink had noted that the step is done, so it only finished it. In the transaction, rows and offsets were sent but undecided, and the restart aborted them.

# %% tags=["checked"]
assert [each.rows for each in killed.kills] == [12, 9, 9, 12, 9]

# %% [markdown]
# Two jobs have twelve rows instead of nine. Spark and the plain Kafka consumer show rows first and write the
# note afterwards. The crash came between the two, so the step ran again and its three rows came twice.
#
# - *Delta* shows rows first, too. But the file that shows them also holds the batch number (`txnVersion`). The restarted job
#   runs the batch again, finds the number, and writes nothing.
# - *Flink* writes the note first. Its files are staged by then, and the checkpoint holds their names. The restart does not run
#   the step again. It renames what is left. What the store forgets meanwhile is lost ([09b](09b_timeouts.ipynb)).
# - *Kafka's transaction* makes rows and note one *decision*, though not one write. Its markers come partition by partition, so a
#   `read_committed` reader of two partitions may see half of it for a moment ([09](09_kafka.ipynb)).
#
#
# ## Who starts again, and how much is read again?
#
# In [02](02_delivery.ipynb) a process with strong productions (MillWheel,
# Dataflow) wrote each result down before it sent it on. So only the dead process worked again, on what it had not written. The price was one durable write for each process and record.
#
# Flink and Spark write less often, and for all tasks together. Two more **simulated** jobs, of three records each. In
# Flink's design the checkpoint after the second record is complete, and the job dies when it has read the third. In
# Spark's design all three are one batch, and the driver dies right after the last of its rows.

# %%
lab.ask("12-again")

# %%
barriers = lab.replay("barriers.crash_at_the_third")
batch = lab.simulate("sink.after_pre_commit", sink="append")
read_again = {
    "Flink's design": [str(step) for step in barriers.walk.actions].count("read(0)") - 3,
    "Spark's design": len(batch.verdict.duplicate),
}

# %% tags=["nbval-check-output"]
lab.answer("12-again", read_again["Spark's design"])

# %% [raw] tags=["expected"]
# It was 3.
# Spark's design ran its whole batch again. Flink's design read one record again, the one after the barrier.

# %% tags=["checked"]
assert read_again == {"Flink's design": 1, "Spark's design": 3}

# %% [markdown]
# Each repeats what came after its newest note, so the numbers depend on where it died. Here is who starts again:
#
# | design | who starts again | what is read again |
# |---|---|---|
# | strong productions (MillWheel, Dataflow) | the dead process alone | what it had not written down |
# | barriers (Flink) | all connected tasks of the job | everything after the newest complete checkpoint |
# | micro-batches (Spark) | after a driver's death: the whole query | one batch, with the same offsets |
# | transactions (the Kafka program) | the dead program | everything after the last commit |
#
# If only a task of Spark fails, the task alone runs again. If its stored input is lost, the stage that made it runs again, too. That is safe only
# where a repeated task gives the same rows. (In Spark's [real-time mode](https://spark.apache.org/docs/4.3.0/streaming/real-time-mode.html), since 4.1,
# offsets are logged at the *end* of a batch, so a repeated batch may hold others; not run here.)
#
# ## One table for all
#
# The engines order the same few writes differently, and the lab can try every order. Each square below is a **simulated** search of
# all schedules with up to two crashes. A row says which write is first, a column what the sink adds, a small name who
# does it. The table has its own words for the writes, and `design` at the top of this page has others:
#
# | so far | table | `design` |
# |---|---|---|
# | rows | output | `visible` |
# | rows, unseen | staged | `staged` |
# | batch id, beside the rows | marker | `marker` |
# | the note: done, offsets | decision | `decision` |
#
# Choose a square:

# %%
table = lab.orders()
table

# %% tags=["nbval-check-output"]
{
    name: table.built[name]
    for name in ("spark-append", "delta-txn", "flink-two-phase", "kafka-transaction", "kafka-streams")
}

# %% [raw] tags=["expected"]
# {'spark-append': 'output, then decision | nothing else',
#  'delta-txn': 'output, then decision | marker with output',
#  'flink-two-phase': 'decision, then output | staged, finished',
#  'kafka-transaction': 'output with decision | nothing else',
#  'kafka-streams': 'output with decision | nothing else'}

# %% [markdown]
# Spark's append is not exactly-once; the other four are. *Output, then decision* needs a marker in the transaction of the rows. *Decision, then output* needs staged rows that survive, and
# a restart that finishes them. *Output with decision* needs a store that holds rows and note together.
#
# Rows that are upserted by key, before the decision, need none of these three to end right, if a repeat gives the same values and one writer
# sends them in order. On the way readers see values go back. *Undone*, the last column: the restart takes back rows of
# steps that it will repeat (Apache Fluss).
#
# Kafka Streams also keeps state, in a topic of its own. With `processing.guarantee=exactly_once_v2` state, rows and offsets are one transaction.
#
# **Your turn.** `design` at the top says which writes follow each other (`>`), and which are one (`+`). After the first semicolon comes how rows are shown (`append`, `upsert`, `transaction`), after the second where a restart
# goes on (`from decision`, `from marker`, `from plan`) and what it does (`skips marked`, `finishes decided`). Swap
# or join two writes, and run the next cell.

# %%
table[design]

# %% [markdown]
# ## Stopped, not dead
#
# Now a writer is only **stopped**: by SIGSTOP, by a long garbage collection, or by a
# frozen machine. It has looked into the store, found nothing, and is about to write three rows. Its operator starts a
# second writer, which writes them. Then the first one wakes up (SIGCONT) and goes on where it was.
#
# Four stores. Before SIGSTOP, the writer
#
# - of a *file* or a *table* looks for rows that are there already;
# - of the *table with an epoch row* takes the next epoch from it, a number that grows with each writer;
# - of *Kafka* calls `init_transactions` for its transactional id.

# %%
lab.ask("12-stopped")

# %% tags=["nbval-check-output"]
stopped = lab.stopped_writers()
stopped

# %% [raw] tags=["expected"]
#                                  rows    the successor  the old writer
# a file; the writer looks first   6 of 3  written        written
# a table; the writer looks first  6 of 3  written        written
# a table with an epoch row        3 of 3  written        refused
# Kafka, one transactional id      3 of 3  written        refused

# %% tags=["nbval-check-output"]
lab.answer("12-stopped", stopped.doubled)

# %% [raw] tags=["expected"]
# It was: a file; the writer looks first, a table; the writer looks first.
# Both old writers had looked before they were stopped, and saw nothing. The epoch is checked in the write itself: in the row's transaction, or by the broker.

# %% [markdown]
# Two stores hold six rows. A look before the write helps after a crash. It does not help against a zombie: in between, the
# world can change. A store must compare the epoch *in* the write. (Kafka's broker keeps it; `init_transactions` raises it.)
#
# Do the engines not fence, then? They do, but only their own notes: a JobManager takes messages only with its own token
# (Flink 2, `JobMasterId`), and Spark refuses a log entry that exists. That comes too late for the rows. Here two real
# Spark jobs share a checkpoint folder. The first stops itself by SIGSTOP in the middle of its batch, the second
# finishes that batch, and the first goes on:


# %%
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

# %%
JOB = """
import os, signal, sys
from labkit import lab

def write_batch(rows, batch):
    if sys.argv[1] == "first":
        print("in its batch", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
    with open("rows.txt", "a") as file:
        print(sys.argv[1], "writes", [row["value"] for row in rows.collect()], file=file)

orders = lab.spark().readStream.text(os.path.abspath("orders")).writeStream.foreachBatch(write_batch)
query = orders.option("checkpointLocation", os.path.abspath("checkpoint")).trigger(availableNow=True).start()
try:
    query.awaitTermination()
    print("finished")
except Exception as error:
    print("CONCURRENT_STREAM_LOG_UPDATE" if "CONCURRENT_STREAM_LOG_UPDATE" in str(error) else error)
"""


# %%
def job(name, folder):
    return subprocess.Popen([sys.executable, "-c", JOB, name], cwd=folder, stdout=subprocess.PIPE, text=True)


with tempfile.TemporaryDirectory() as folder:
    (Path(folder) / "orders").mkdir()
    (Path(folder) / "orders" / "0.txt").write_text("pen")
    first = job("first", folder)
    first.stdout.readline()  # returns when the first job is in its batch
    ended = {"second": job("second", folder).communicate()[0].strip()}
    first.send_signal(signal.SIGCONT)
    ended["first"] = first.communicate()[0].strip()
    written = (Path(folder) / "rows.txt").read_text().splitlines()

# %% tags=["nbval-check-output"]
print(ended)
print(written)

# %% [raw] tags=["expected"]
# {'second': 'finished', 'first': 'CONCURRENT_STREAM_LOG_UPDATE'}
# ["second writes ['pen']", "first writes ['pen']"]

# %% [markdown]
# The first job learned that it was replaced only when it found `commits/0` written already. By then its row was out.
#
# ## When the note itself goes back
#
# Somebody restores yesterday's copy of a checkpoint folder. Below is real Spark in this kernel. Each batch
# holds whatever orders have arrived. One sink appends. The other writes its rows and the batch number in one transaction.

# %%
spark = lab.spark()


def arrives(place, number, db, write_batch):
    """An order arrives in a folder, and the query takes what there is."""
    (place / "inbox").mkdir(exist_ok=True)
    (place / "inbox" / f"{number}.json").write_text(json.dumps({"id": number}))
    orders = spark.readStream.schema("id INT").json(str(place / "inbox"))
    query = orders.writeStream.foreachBatch(lambda rows, batch: write_batch(db, rows.collect(), batch))
    query = query.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True)
    query.start().awaitTermination()


# %%
def shop(write_batch):
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        db = sqlite3.connect(place / "rows.db", check_same_thread=False)
        db.executescript("CREATE TABLE rows (id INTEGER); CREATE TABLE marker (query TEXT, batch INTEGER)")
        arrives(place, 0, db, write_batch)
        arrives(place, 1, db, write_batch)
        shutil.copytree(place / "checkpoint", place / "copy")  # batches 0 and 1 are done
        arrives(place, 2, db, write_batch)
        shutil.rmtree(place / "checkpoint")
        (place / "copy").rename(place / "checkpoint")  # and now the copy is restored
        arrives(place, 3, db, write_batch)
        return sorted(number for (number,) in db.execute("SELECT id FROM rows"))


# %%
def append(db, rows, batch):
    with db:
        db.executemany("INSERT INTO rows VALUES (?)", rows)


def with_marker(db, rows, batch):
    with db:
        if not db.execute("SELECT 1 FROM marker WHERE query = 'shop' AND batch = ?", [batch]).fetchone():
            db.executemany("INSERT INTO rows VALUES (?)", rows)
            db.execute("INSERT INTO marker VALUES ('shop', ?)", [batch])


# %% tags=["nbval-check-output"]
{"append": shop(append), "with marker": shop(with_marker)}

# %% [raw] tags=["expected"]
# {'append': [0, 1, 2, 2, 3], 'with marker': [0, 1, 2]}

# %% [markdown]
# *append* has order 2 twice: the restored folder knew nothing of batch 2. With the marker, order 3 is **lost**. The new
# batch 2 held orders 2 and 3. The marker said that batch 2 of this query was done, so the sink skipped both.
#
# A batch number stands for the same records only as long as its plan, the file `offsets/N`, lasts. Rows that are there twice can be found. An order that
# is missing leaves no trace in the table.
#
# > **You will read:** "*our engine is exactly-once*". No engine is, alone. It is exactly-once with a store, with a certain
# > order of writes, and for as long as its note lasts.


# %% [markdown]
# ## Your own sink, fifth edition
#
# The last column of your card, *restored*, is this incident: the last batch comes again under its number, with one row more. **Let `my_sink.py` survive it.** What
# must a sink recognise, if not the number of a batch?

# %%
lab.my_sink(after="12")

# %% [markdown]
# <details><summary>One way</summary>Recognise the order and not the batch: <code>id PRIMARY KEY</code>, and INSERT OR IGNORE within BEGIN and COMMIT. The marker is
# superfluous then. Where rows have no key, store their offsets in the transaction that writes them.</details>


# %% tags=["exercise"]
# exercise 12-order
def order(store, quiet):
    """The writes of a step in an order that is exactly-once, or []."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 12-order
def order(store, quiet):
    """The writes of a step in an order that is exactly-once, or []."""
    # One commit for rows and note if the store can join them; a marker; or staged rows that a restart finishes.
    if store["rows"] == "replaced" and not quiet:
        return ["plan", "rows", "done"]
    if store["rows"] == "together":
        if store["joins marker"]:
            return ["plan", "rows+marker", "done"]
        if store["joins done"]:
            return ["plan", "rows+done"]
        if store["stages"]:
            return ["plan", "staged", "done", "rows"]
    return []


# %% tags=["check", "nbval-check-output"]
lab.check("12-order")

# %% [raw] tags=["expected"]
# 12-order: not attempted (4 points); lab.hint("12-order") gives a hint.


# %% tags=["exercise"]
# exercise 12-restart
def next_step(engine, left):
    """The number of the step that runs next."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 12-restart
def next_step(engine, left):
    """The number of the step that runs next."""
    # Spark: is the newest plan finished? Flink: the newest entry of the store of completed checkpoints, not a folder.
    if engine == "spark":
        planned = [int(name[8:]) for name in left if name.startswith("offsets/") and name[8:].isdigit()]
        if not planned:
            return 0
        newest = max(planned)
        return newest + 1 if f"commits/{newest}" in left else newest
    complete = [int(name[3:]) for name in left if name.startswith("ha/")]
    return max(complete, default=0) + 1


# %% tags=["check", "nbval-check-output"]
lab.check("12-restart")

# %% [raw] tags=["expected"]
# 12-restart: not attempted (4 points); lab.hint("12-restart") gives a hint.

# %% [markdown]
# ## Check yourself
#
# **1. A Flink job dies after checkpoint 7 is complete and before its files have their names. What does the next start do?**
#
# <details><summary>a) It reads the orders of checkpoint 7 again.</summary>No. They are decided, and their files are staged.</details>
# <details><summary>b) It gives the files their names, and reads on after checkpoint 7.</summary>Yes. The checkpoint holds the names of what is staged.</details>
#
# **2. A consumer commits its offset in a second transaction, right after the rows. Is that enough?**
#
# <details><summary>a) Yes, both are transactions.</summary>Two transactions have a gap between them, and a crash finds it.</details>
# <details><summary>b) No, it must be the same transaction.</summary>Yes: <code>sendOffsetsToTransaction</code>, with <code>consumer.groupMetadata()</code>. A bare
# group name does not refuse a consumer whose partitions were given to another one (<a href="https://cwiki.apache.org/confluence/display/KAFKA/KIP-447%3A+Producer+scalability+for+exactly+once+semantics">KIP-447</a>, Kafka 2.5; not run here).</details>
#
# ## What this is called in Flink, Spark and Kafka
#
# | here | Spark | Flink | Kafka |
# |---|---|---|---|
# | what is repeated | a batch | everything after a checkpoint | a transaction |
# | progress is kept in | `offsets/N` | the source's state in the checkpoint | the group's offsets |
# | the note | `commits/N` | an entry in the store of completed checkpoints | the group's offset, which counts once its transaction is committed |
# | known again by | `batchId`; Delta's `txnAppId` and `txnVersion` | the checkpoint's number | transactional id and epoch |
# | state lives in | state store, and the checkpoint | state backend, and the checkpoint | a local store, and a changelog topic |
# | the sink's contract | `foreachBatch`; `StreamingWrite` | `Sink` with `SupportsCommitter`; up to 1.x `TwoPhaseCommitSinkFunction` | `sendOffsetsToTransaction` |
#
# ## On Monday
#
# - Find the note of your job: the file, row or request that tells a restart what it must not repeat. What lies between it and the rows?
# - You do not know? `labkit effects --command 'sh job.sh' --out seen` records what your job writes, and `labkit orders --of seen` says where it stands in the table.
# - Kill the old process before you start a new one, and let the store refuse it all the same.
# - Write down, beside the backup of a checkpoint: who restores it gets rows twice, or loses rows behind a marker.
#
# ## Closing the ticket
#
# > **Ticket 19, closed.** Three notes, three risks. Spark's comes after the rows, so the sink must recognise a batch.
# > Flink's comes before them, so the store must keep what is staged. The Kafka program's is in the transaction of the
# > rows, so both must be in Kafka. Spark's went wrong when only the checkpoint was restored (we have not tried the other two), and only the store can refuse a stopped writer. The review asks each team whether theirs does.
#
# ## Sources
#
# Records and kills: `data/pipelines/engines` in the lab, with versions. Apache Spark 4.2: `MicroBatchExecution`. Apache Flink 2: `CheckpointCoordinator.completePendingCheckpoint`, `CommitterOperator`. Kafka: [KIP-447](https://cwiki.apache.org/confluence/display/KAFKA/KIP-447%3A+Producer+scalability+for+exactly+once+semantics).
# [MillWheel](https://doi.org/10.14778/2536222.2536229), VLDB 2013.
#
# Back: [05, who decides?](05_two_phase_commit.ipynb) and [09b, may I use this store?](09b_timeouts.ipynb)
