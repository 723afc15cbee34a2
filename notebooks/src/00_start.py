# ---
# jupyter:
#   labkit:
#     needs: []
#     slow: true
# ---

# %% [markdown]
# # What is left after a crash?
#
# A shop counts words as customers type them. One customer types *hello*, another *world*, a third *hello*. The job that
# counts them is killed. It starts again. Is the count right?
#
# {head}
#
# You will be able to
#
# - name the pieces of a streaming job, and what a crash takes;
# - read from two small logs what a restarted job will do;
# - say why one crash doubles the rows of one sink and not of another.
#
# The crashes are real: the operating system kills every process of a Spark job. Where something is simulated instead, the
# text says so.

# %%
from labkit import lab

lab.pieces()

# %% [markdown]
# ## The pieces
#
# Customers never stop typing. Input without an end is a **stream**. Each thing in it is a **record**: here, one word. A
# streaming job gives results while its input still grows. These are its pieces:
#
# - The **log** keeps the records in order. Each record has a number, its **offset**: its place in the log, counted from 0.
# - The **source** is the part of the job that reads the log.
# - A **task** does one share of the computing. Here the tasks count words.
# - The **driver** is the process that plans the work and directs the tasks.
# - The **sink** is the part that writes the results to the outside.
# - The **store** keeps what the sink has written: a file, or a database.
# - The **checkpoint** is a folder in which the driver notes how far the job has come.
# - The **outside reader** looks at the store at any time, also in the middle of a crash.
#
# What is green is on disk and survives a crash: log, store, checkpoint. What is dashed is in memory and is lost: driver,
# tasks, and their counts.
#
# ## The whole job
#
# First, a place for it. The folder `orders` plays the log: every word becomes one file. The card below the cell says
# whether this machine has everything.

# %%
from pathlib import Path
from tempfile import TemporaryDirectory

place = TemporaryDirectory()
shop = Path(place.name)
orders, results = shop / "orders", shop / "results.txt"
orders.mkdir()


def customer_types(word):
    new = shop / "typing"
    new.write_text(word)
    new.rename(orders / f"{len(list(orders.iterdir()))}.txt")


lab.doctor()

# %% [markdown]
# Now the job. It reads the words, counts them, and hands every new count to the sink, the function `write_batch`.

# %%
spark = lab.spark()


def write_batch(rows, number):
    with results.open("a") as file:
        for row in rows.collect():  # all rows of the batch, as a list
            print(number, row["value"], row["count"], file=file)


counts = spark.readStream.text(str(orders)).groupBy("value").count()
query = (
    counts.writeStream.outputMode("update")  # hands over only the counts that changed
    .foreachBatch(write_batch)
    .option("checkpointLocation", str(shop / "checkpoint"))
    .start()
)

# %% [markdown]
# Three customers come, and Spark counts after each. Then we look into the store, as an outside reader.

# %% tags=["nbval-check-output"]
for word in ["hello", "world", "hello"]:
    customer_types(word)
    query.processAllAvailable()  # waits until the word is counted

results.read_text().splitlines()

# %% [raw] tags=["expected"]
# ['0 hello 1', '1 world 1', '2 hello 2']

# %% [markdown]
# The store has three lines: a number, a word, and the word's count so far. The number is that of a **micro-batch**, or
# **batch** for short: the few records that Spark takes at a time. Batches are numbered from 0. Here each held one record.
#
# `foreachBatch` calls your function for each batch. It hands over two things: the batch's rows, as a table (DataFrame), and
# the batch's number. A batch that runs a second time has the same number again. So a sink that wants to recognise it
# stores the number, with the query's name.
#
# **Try it.** Change the words in the last cell and run it again: the count goes on. Then run the cell with the job again,
# and the last cell after it. Spark stops the old job, and the new one goes on counting. Where did it look up the counts?

# %% tags=["nbval-check-output"]
query.stop()
logs = {"offsets": shop / "checkpoint/offsets", "commits": shop / "checkpoint/commits"}
{name: sorted(file.name for file in folder.glob("[0-9]*")) for name, folder in logs.items()}

# %% [raw] tags=["expected"]
# {'offsets': ['0', '1', '2'], 'commits': ['0', '1', '2']}

# %% [markdown]
# The checkpoint has one file in `offsets` and one in `commits` for each batch. These are Spark's two logs. Their entries
# are notes about batches, and hold no words.
#
# - `offsets/N`, an entry of the **offset log**, is written *before* batch N runs. It says up to which offset the batch
#   reads.
# - `commits/N`, an entry of the **commit log**, is written *after* the sink has reported batch N as done. It says that
#   Spark will not run batch N again. It makes no row visible.
#
# The rule for a restart is short. Take the newest batch in `offsets`. If it is in `commits`, go on with the next batch. If
# it is not, run it again, with the same offsets. The checkpoint can also restore the counts after each batch, which are the job's
# **state**. A batch that runs again starts from the counts before it.
#
# ## One batch, and where it can die
#
# From here on we use the lab's own job. It counts the same words, all three in *one* batch. It writes one row for *every*
# record: the word, and its count so far. So without a crash there are three rows.
#
# The lab's job can be stopped at nine named moments and killed there. Such a moment is a **failpoint**. The first sink is
# *append*: it writes each row into the store at once, like `write_batch` above. This is batch 0 with that sink. The
# cross marks the kill.

# %% tags=["parameters"]
sink = "append"  # or two_phase, see below; notebook 01 explains idempotent, batch_marker and wal
failpoint = "sink.after_pre_commit"  # where the job is killed: this is the name of moment 4

# %%
lab.strip(killed=failpoint, sink=sink)

# %% [markdown]
# At moment 4 all rows are written, and Spark has not noted the batch as finished. The kill is a SIGKILL: the processes end
# at once, and no line of their code runs any more. Then the lab starts the job again from the same checkpoint, lets it
# finish, and reads the store.

# %%
lab.ask("00-rows")

# %%
outcome = lab.crash(failpoint, sink=sink)
outcome

# %% tags=["nbval-check-output"]
lab.answer("00-rows", outcome.verdict.rows)

# %% [raw] tags=["expected"]
# It was 6.
# The first driver had written three rows. commits/0 was not there, so the second driver wrote them again.

# %% tags=["checked"]
evidence = outcome.crashes[0]
assert evidence["signal"] == 9
assert (evidence["offset_log"], evidence["commit_log"]) == ([0], [])
assert list(outcome.verdict.duplicate) == [0, 1, 2]
assert list(outcome.verdict.regression) == [0]
assert dict(outcome.verdict.final) == {"hello": 2, "world": 1}
folder = outcome.folder / "checkpoint"
born = {log: (folder / log / "0").stat().st_mtime for log in ("offsets", "commits")}
assert born["commits"] - born["offsets"] > 1  # the dead time lies between them

# %% [markdown]
# Six rows: three from the first driver, and the same three from the second. No row is missing and some came twice. That
# is called **at-least-once**. Why did the batch run again? `offsets/0` was there and `commits/0` was not, so the
# second driver followed the rule. Spark did nothing wrong. The sink did not notice that the batch came a second time.
#
# For a reader, the newest row of a word is its value. The small line on the card shows what a reader saw of *hello*: 1, 2,
# then 1 again, and 2. A reader who had seen 2 saw an older value. The lab calls that a **jump back**.
#
# Unfold the card: it holds the proof that the crash was real, the checkpoint's files at that moment, and the sink's code.
# This is the last line of `offsets/0`:

# %% tags=["nbval-check-output"]
outcome.checkpoint_file("offsets/0").splitlines()[-1]

# %% [raw] tags=["expected"]
# '{"offset": 3}'

# %% [markdown]
# Offset 3 is where batch 0 ends: the *next* record to read. The batch holds 0, 1 and 2. The second driver
# read this file.
#
# Go through the same crash slowly, in a *simulated* model of the job. It opens where the job was killed.

# %%
outcome.simulated

# %% [markdown]
# ## The same moment with another sink
#
# A **transaction** is a group of writes that become visible together or not at all. The sink *two_phase* writes rows
# into a transaction, in two phases. First comes the **pre-commit**: the rows are complete and on disk, and they stay
# hidden. Later comes the **commit**: the rows become visible. Here the store is a folder, and the hidden rows wait in
# its subfolder `staging`, where no reader looks.
#
# After the pre-commit the sink reports the batch as done. It commits only when `commits/0` is on disk. For this sink, that
# file is the **decision**: from then on the batch counts. A restarted driver starts with the **recovery**: it commits what was
# decided, and deletes the rest. That is Flink's order, and here the lab's sink imitates it; Spark's own sinks commit first
# ([01](01_guarantees.ipynb)). So moment 9 (noted) comes before 6 (half is committed) and 8 (all is committed).

# %%
lab.strip(killed=failpoint, sink="two_phase")

# %%
lab.ask("00-second-rows")
lab.ask("00-second-runs")

# %%
second = lab.crash(failpoint, sink="two_phase")
second

# %% tags=["nbval-check-output"]
lab.answer("00-second-rows", second.verdict.rows)

# %% [raw] tags=["expected"]
# It was 3.
# The first driver's rows were never committed. The second driver deleted them, and wrote and committed its own.

# %% tags=["nbval-check-output"]
drivers = {row.attempt for row in second.rows()}  # the drivers that wrote these rows, counted from 1
lab.answer("00-second-runs", {1: "once", 2: "twice"}[max(drivers)])

# %% [raw] tags=["expected"]
# It was twice.
# offsets/0 was there and commits/0 was not, so the batch ran again. The sink does not change that rule.

# %% tags=["checked"]
assert second.crashes[0]["offset_log"] == outcome.crashes[0]["offset_log"]
assert second.crashes[0]["commit_log"] == []
assert drivers == {2}
assert list(second.verdict.regression) == []
assert second.verdict.guarantee == "exactly-once"
assert outcome.verdict.guarantee == "at-least-once"

# %% [markdown]
# The second driver wrote all three rows. The checkpoint was the same as before, so the batch ran again. The rows of the
# first driver were still hidden in `staging`. `commits/0` was missing, so recovery deleted them before the batch ran. No
# record is missing and none counts twice, as if nothing had failed. That is called **exactly-once**.
#
# > **What popular notes get wrong.** "Exactly once means that every record is processed exactly once." In both runs every
# > record was processed twice. No engine promises that code runs once. The **effect**, what a reader finds in the end, can
# > count once, if the sink helps.
#
# ## One moment later
#
# Both kills came before `commits/0`. What if the kill comes right *after* `commits/0`, at moment 9? Two simulated runs:

# %% tags=["nbval-check-output"]
noted = "engine.after_commit_log"  # moment 9
lab.compare(
    append=lab.simulate(noted, sink="append"),
    two_phase=lab.simulate(noted, sink="two_phase"),
)

# %% [raw] tags=["expected"]
#            guarantee     lost  twice  jumps back  rows
# append     exactly-once  0     0      0           3
# two_phase  exactly-once  0     0      0           3

# %% [markdown]
# With *append* the next driver finds batch 0 in both logs, so it does not run the batch again. It would go on with batch 1.
# With *two_phase* the rows are decided and still hidden. Recovery commits them, and the batch does not run again either.
#
# The table judges these two runs alone. *append* is right at this moment and wrong at moment 4. One harmful moment breaks
# a promise, so *append* remains at-least-once.
#
# `lab.panel()` in a new cell kills other sinks at other moments. `lab.word("offset")` explains a word.
#
# ## Check yourself
#
# **1. Why did *append* write each row twice?**
#
# <details><summary>a) Spark read the input twice by mistake.</summary>No. The batch was not in
# <code>commits</code>, so Spark had to run it again. Otherwise a kill before any row was written would lose it.</details>
# <details><summary>b) The batch ran twice, and the sink does not notice.</summary>Right. Running again is correct. The sink
# has to make it harmless.</details>
# <details><summary>c) SIGKILL damaged the output file.</summary>No. What a process has handed to the operating system
# survives the process. A power failure would be another matter.</details>
#
# **2. Would it help to write `commits/0` before the sink writes its rows?**
#
# <details><summary>a) Yes, then the batch would not run again.</summary>No. A crash between the two would lose the batch:
# nothing is written, and nobody writes it again.</details>
# <details><summary>b) No, then a crash in between would lose the batch.</summary>Right. One order doubles, the other loses,
# unless the sink can be told later, as <i>two_phase</i> is.</details>
#
# **3. A dashboard polls the store of the first run once a second. What may it have shown for *hello*?**
#
# <details><summary>a) Only 2, the right count.</summary>No, that takes luck. A value that was visible can be
# read.</details>
# <details><summary>b) 1 after it had shown 2.</summary>Right. The values became visible as 1, 2, 1, 2.</details>
#
# ## What this is called in Flink, Spark and Kafka
#
# | here | Spark Structured Streaming 4 | Flink 2 | Kafka 4 clients |
# |---|---|---|---|
# | driver | driver | JobManager | your own process |
# | task | task, in an executor | subtask, in a TaskManager | your own process |
# | plan of batch N | `offsets/N` | the sources' offsets, inside checkpoint N | - |
# | batch N is finished | `commits/N` | checkpoint N is stored as completed | the transaction is committed |
# | where the checkpoint lies | option `checkpointLocation` of each query | set for each job or cluster | consumer group offsets |
# | how often | `trigger(...)` | `execution.checkpointing.interval`; default: never | chosen by your code |
# | a sink with pre-commit and commit | `DataWriter.commit`, then `StreamingWrite.commit` | `SupportsCommitter`, `Committer`; in Flink 1.x `TwoPhaseCommitSinkFunction` | none: no pre-commit |
#
# ## On Monday
#
# **Look at** the checkpoint folder of a Spark job. While the job is down, compare the newest number in `offsets` with the
# newest in `commits`. If `offsets` is one ahead, that batch will run again. When the job is up again, compare the times of
# both files of the newest batches. Without a crash they are as far apart as one batch takes. If `offsets/N` is from before
# the outage and `commits/N` from after it, batch N ran twice, and a sink like *append* may have its rows twice.
#
# **Set** `checkpointLocation` to a place that survives the machine. Never share or delete it. In `foreachBatch`, store query
# name and batch number in the transaction of the rows.
#
# ## Sources, and what comes next
#
# The order of Spark's two logs is that of class `MicroBatchExecution` of Apache Spark 4.2. Armbrust and
# others, [Structured Streaming](https://doi.org/10.1145/3183713.3190664), SIGMOD 2018. Carbone and others, [State Management in Apache Flink](https://doi.org/10.14778/3137765.3137777), VLDB 2017.
# The order holds for ordinary micro-batches. Asynchronous progress tracking and real-time mode (Spark 4.1 and newer) differ.
#
# Next: [which link decides what a stream can guarantee?](01_guarantees.ipynb)
