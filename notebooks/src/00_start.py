# ---
# jupyter:
#   labkit:
#     needs: []
#     slow: true
# ---

# %% [markdown]
# # What is left after a crash?
#
# > **Ticket 1** (invented, like all numbered tickets here; anything with a link is real). *09:04, from finance:* "Since
# > this morning our totals do not add up. Your job reports no error. Which rows are wrong?" At 3:12 the memory had run
# > out, and the operating system had killed the job. The job restarted automatically.
#
# {head}
#
# You will be able to
#
# - name the pieces of a streaming job, and say which of them a crash destroys;
# - read from two small logs what a restarted job will do;
# - tell from those logs which rows to check after an outage.
#
# The crashes are real: the operating system kills every process of a Spark job (SIGKILL). Where something is simulated
# instead, the text says so.

# %%
from labkit import lab

# %% [markdown]
# ## Kill it first
#
# Let us do to a small job what happened at 3:12. It counts the words that customers type: *hello*, *world*, *hello*.
# Customers never stop, so its input has no end: it is a **stream**, and each word in it is a **record**. For every record
# the job writes a row, the word and its count so far. The part that writes to the outside is its **sink**.
#
# Spark takes a few records at a time, a **micro-batch**, or **batch** for short. Here all three are in one batch. So a run
# that nobody disturbs leaves three rows: *hello 1*, *world 1*, *hello 2*.
#
# The strip shows that batch from left to right, with the sink *append*, which adds each row to a file at once.
# Everything green is in files and survives the kill; the rest is only in the memory of the processes, so the kill destroys
# it. (A power failure can take more, see [13](13_price.ipynb).) The cross marks our kill: at *ready*, when all rows are
# written.

# %% tags=["parameters"]
sink = "append"  # or two_phase, see below; notebook 01 explains idempotent, batch_marker and wal
failpoint = "sink.after_pre_commit"  # where the job is killed: the full name of the moment "ready"

# %%
lab.strip(killed=failpoint, sink=sink)

# %%
lab.ask("00-rows")

# %%
outcome = lab.crash(failpoint, sink=sink)  # kills the job, starts it again, waits until it is done, and reads the file
outcome

# %% tags=["nbval-check-output"]
lab.answer("00-rows", outcome.verdict.rows)

# %% [raw] tags=["expected"]
# It was 6.
# The first run had written three rows. Nothing on disk said that the batch was finished, so the second run wrote them again.

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
# The first run wrote three rows, and the second run wrote the same three again. Finance adds up rows, one for each word
# that a customer typed, so it counted six words in the morning instead of three. No row is missing, but some came
# twice. That is called **at-least-once**.
#
# A dashboard reads the same file in another way: it takes the newest row of a word as the word's value, so it is right
# in the end. But the small line on the result above, which we call its *card*, shows what such a reader saw of *hello*:
# 1, 2, then 1 again, and 2. The lab calls that a **jump back**: somebody who had seen 2 saw an older value.
#
# ## The pieces
#
# To see why the batch ran again, we need names for the pieces.

# %%
lab.pieces()

# %% [markdown]
# - The **log** keeps the records in order. Each record has a number, its **offset**: its place in the log, counted from 0.
# - The **source** is the part of the job that reads the log.
# - A **task** does one share of the computing. Here the tasks count words.
# - The **driver** is the process that plans the work and directs the tasks.
# - The **store** keeps what the sink has written: a file, or a database.
# - The **checkpoint** is a folder in which the driver notes how far the job has come.
# - The **outside reader** looks at the store at any time, also in the middle of a crash.
#
# ## The whole job, in Spark
#
# Now write a similar job yourself. The folder `orders` plays the log: every word becomes one file.

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


# %%
spark = lab.spark()


def write_batch(rows, number):  # the sink
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

# %% tags=["nbval-check-output"]
for word in ["hello", "world", "hello"]:
    customer_types(word)
    query.processAllAvailable()  # waits until the word is counted

results.read_text().splitlines()

# %% [raw] tags=["expected"]
# ['0 hello 1', '1 world 1', '2 hello 2']

# %% [markdown]
# Each word came alone this time, so there are three batches, numbered from 0. In one batch they would give only two
# rows, *hello 2* and *world 1*: `count()` in update mode hands over one row per word and batch. The job that we killed
# writes one per record.
#
# `foreachBatch` calls your function for each batch. It hands over the batch's rows, as a table (DataFrame), and the
# batch's number. A batch that runs a second time has the same number again.
#
# **Try it.** Change the words in the last cell and run it again: the count goes on. Then run the cell that starts the
# job again, and after it the cell with the words. Spark stops the old job, and the new one goes on counting. Where did
# it look up the counts?

# %% tags=["nbval-check-output"]
query.stop()
logs = {"offsets": shop / "checkpoint/offsets", "commits": shop / "checkpoint/commits"}
{name: sorted(file.name for file in folder.glob("[0-9]*")) for name, folder in logs.items()}

# %% [raw] tags=["expected"]
# {'offsets': ['0', '1', '2'], 'commits': ['0', '1', '2']}

# %% [markdown]
# It looked in the checkpoint. The checkpoint holds the counts, which are the job's **state**, and also two logs with a
# file for each batch:
#
# - `offsets/N`, an entry of the **offset log**, is written *before* batch N runs. It says up to which offset the batch
#   reads.
# - `commits/N`, an entry of the **commit log**, is written *after* the sink has reported batch N as done. It tells
#   Spark not to run batch N again; it does not make any row visible.
#
# A restart takes the newest batch in `offsets`. If it is in `commits`, Spark goes on with the next batch. If it is not,
# Spark runs it again, with the same offsets and from the state before it. In our crash `offsets/0` was there and
# `commits/0` was not. So Spark did nothing wrong: the *sink* did not notice that the batch came a second time. Unfold
# the card above to see the proof. The second driver read what to do from `offsets/0`; this is the last line of that
# file:

# %% tags=["nbval-check-output"]
outcome.checkpoint_file("offsets/0").splitlines()[-1]

# %% [raw] tags=["expected"]
# '{"offset": 3}'

# %% [markdown]
# Offset 3 is the *next* record to read; the batch holds 0, 1 and 2. Go through the same crash slowly, in a *simulated* model.

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
# After the pre-commit the sink reports the batch as done. It commits only when `commits/0` is on disk. For this sink,
# that file is the **decision**: from then on the batch counts. A restarted driver starts with the **recovery**: it
# commits the decided transactions that it finds and deletes the rest. That is Flink's order, and the lab's sink
# imitates it; Spark's own sinks commit first ([01](01_guarantees.ipynb)). Each of the nine named moments of a strip is
# a **failpoint**: there the lab can kill the job.

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
# The checkpoint was the same as before, so the batch ran again and the second driver wrote all three rows. But the rows of
# the first driver were still hidden in `staging`. They were not decided, so recovery deleted them. No
# record is missing and none counts twice, as if nothing had failed. That is called **exactly-once**.
#
# > **You will read:** "exactly once means that every record is processed exactly once". In both runs every record was
# > processed twice. Flink's [documentation](https://nightlies.apache.org/flink/flink-docs-release-2.0/docs/learn-flink/fault_tolerance/#exactly-once-guarantees)
# > says of Flink, too, that *exactly once* does not mean this. The **effect**, what a reader finds in the end, can count once,
# > if the sink helps.
#
# ## One moment later
#
# What if the kill comes right *after* `commits/0`, at *noted*? Two simulated runs:

# %% tags=["nbval-check-output"]
noted = "engine.after_commit_log"
lab.compare(
    append=lab.simulate(noted, sink="append"),
    two_phase=lab.simulate(noted, sink="two_phase"),
)

# %% [raw] tags=["expected"]
#            guarantee     lost  twice  jumps back  rows
# append     exactly-once  0     0      0           3
# two_phase  exactly-once  0     0      0           3

# %% [markdown]
# Batch 0 is in both logs, so it does not run again. With *two_phase* its rows are decided and still hidden, and
# recovery commits them. So *append* survives a kill here, and not one at *ready*. One harmful moment breaks a promise:
# *append* remains at-least-once.
#
# ## Your own sink
#
# Write a sink of your own now. It stays with you through the course, in the file `my_sink.py`. It gets a database `db`, the
# name of the query, the number of the batch, and the rows. Each row is an order with an `id`, an `item` and an `amount`.
# A statement commits by itself, unless it stands between BEGIN and COMMIT.


# %%
def my_sink(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    for row in rows:
        db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])


lab.my_sink(my_sink, after="00")

# %% [markdown]
# For that card the lab has really killed your sink a few dozen times: before each statement, and at some other moments.
# Your sink is *append* once more, so it fails nearly every check. Do not mend it yet. After [02](02_delivery.ipynb),
# [06](06_sinks.ipynb), [11](11_side_effects.ipynb) and [12](12_engines.ipynb) you edit the same file, and in
# [14](14_capstone.ipynb) real Spark is killed with it.
#
# `lab.panel()` in a new cell kills the lab's sinks at other moments. `lab.word("offset")` explains a word, and
# `lab.word()` lists the course's words, and those that the lab invented.
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
# | driver, task | driver, task in an executor | JobManager, subtask in a TaskManager | your own process |
# | plan of batch N | `offsets/N` | the sources' offsets, inside checkpoint N | - |
# | batch N is finished | `commits/N` | checkpoint N is stored as completed | the transaction is committed |
# | where the checkpoint lies | option `checkpointLocation` of each query | set for each job or cluster | consumer group offsets |
#
# ## On Monday
#
# **Look at** the checkpoint folder of a Spark job. While the job is down, compare the newest number in `offsets` with
# the newest in `commits`. If `offsets` is one ahead, that batch will run again. When the job is up again, compare the
# times of both files of the newest batches. Without a crash they are as far apart as one batch takes. Much farther
# apart means that an outage interrupted the batch: check its rows.
#
# **Set** `checkpointLocation` to a place that survives the machine. Never share or delete it.
#
# ## Closing the ticket
#
# > **Ticket 1, closed.** One batch has its `offsets/N` from before the outage and its `commits/N` from after it: it was
# > planned before and finished after. The logs do not say how many of its rows the first run had written: none, some,
# > or all. So we compare the rows of batch N (its plan says which records they came from), and of no other, and remove
# > what is there twice. It can happen again at the next crash, until the sink recognises a batch that it has written.
#
# Sources: the order of the two logs is that of class `MicroBatchExecution` of Apache Spark 4.2. Armbrust and
# others, [Structured Streaming](https://doi.org/10.1145/3183713.3190664), SIGMOD 2018. Carbone and others, [State Management in Apache Flink](https://doi.org/10.14778/3137765.3137777), VLDB 2017.
# The order holds for ordinary micro-batches. [Asynchronous progress tracking](https://spark.apache.org/docs/4.0.0/streaming/performance-tips.html)
# and [real-time mode](https://spark.apache.org/docs/4.3.0/streaming/real-time-mode.html) (Spark 4.1 and newer) differ.
#
# Next: [which link decides what a stream can guarantee?](01_guarantees.ipynb)
