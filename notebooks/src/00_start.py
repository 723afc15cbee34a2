# %% [markdown]
# # What is left after a crash?
#
# A stream processor counts words: *hello*, *world*, *hello*. It is killed in the middle and started again. Is the
# result the one that would have come without the crash? That is what *exactly once* promises, and this lab lets you
# see where the promise ends.
#
# The crashes here are real: a PySpark Structured Streaming job runs in processes of its own, all of them are killed by
# SIGKILL at a named moment, and the job is restarted from its checkpoint. Afterwards we read, from outside, what a
# reader could have seen. Where something is simulated instead, the text says so.
#
# It takes about ten minutes; each crash takes about 20 seconds. Run the cells in order, from the first one.

# %% tags=["parameters"]
sink = "append"  # how results are written: append, idempotent, batch_marker, wal or two_phase
failpoint = "sink.after_pre_commit"  # where the job is killed

# %% [markdown]
# ## Is this machine ready?
#
# One line for each thing that the lab needs. If something is missing, the line says what to do.

# %%
from labkit import lab

for finding in lab.doctor():
    print("ok     " if finding.ok else "MISSING", finding.name, "-", finding.remedy or finding.detail)

# %% [markdown]
# ## The job in one picture
#
# Before anything goes wrong, look at the job once, step by step. This picture is *simulated*: a model of the same job
# with the same sink. Press *next*, or use the arrow keys; dashed frames hold what a crash would take.

# %%
lab.show("pipeline.undisturbed")

# %% [markdown]
# ## Predict
#
# The sink *append* writes each row as soon as it has it: one row (word, count so far) for every input record, so three
# rows without a crash. We kill the job when all three are written and Spark has not yet noted that the batch is
# finished.
#
# How many rows will a reader find after the restart, and which guarantee is that? Write your answers in place of
# `None`: a number such as 0, 3, 4 or 6, and `"exactly-once"`, `"at-least-once"` or `"at-most-once"`. The run goes ahead
# without them, too.

# %%
asked = lab.predict(rows=None, guarantee=None)

# %% [markdown]
# ## Crash it

# %%
lab.need("failpoint", "sink", cell="the first code cell (the parameters)")
outcome = lab.crash(failpoint, sink=sink)

# %% tags=["nbval-check-output"]
lab.need("outcome", cell="the cell under Crash it")
print("rows in the end:", outcome.verdict.rows, "| final:", dict(outcome.verdict.final))
print("duplicate offsets:", list(outcome.verdict.duplicate))
print("guarantee:", outcome.verdict.guarantee)

# %% [raw] tags=["expected"]
# rows in the end: 6 | final: {'hello': 2, 'world': 1}
# duplicate offsets: [0, 1, 2]
# guarantee: at-least-once

# %%
lab.need("asked", "outcome", cell="the cells under Predict and Crash it")
print(asked.beside(rows=outcome.verdict.rows, guarantee=outcome.verdict.guarantee))
assert outcome.verdict.rows == 6

# %% [markdown]
# Nothing is lost, and every row came out twice. The lab's judge says why:

# %%
lab.need("outcome", cell="the cell under Crash it")
print(outcome.verdict.because)

# %% [markdown]
# ## Was the crash real?
#
# A failpoint that is never reached proves nothing, so every run keeps evidence: the signal, and how many processes
# died by it.

# %%
lab.need("outcome", cell="the cell under Crash it")
evidence = outcome.crashes[0]
print("signal", evidence["signal"], "at", evidence["point"], "- processes killed:", len(evidence["killed"]))
assert evidence["signal"] == 9

# %% [markdown]
# ## Why did the batch run again?
#
# Spark keeps two logs in the checkpoint folder. `offsets/N` is written *before* batch N runs: these are the offsets
# that it will process. `commits/N` is written *after* the sink has finished. On a restart, a batch that is in
# `offsets` and not in `commits` runs again, with the same offsets.
#
# This is what lay there while everything was dead:

# %% tags=["nbval-check-output"]
lab.need("evidence", cell="the cell under Was the crash real")
print("offsets:", evidence["offset_log"])
print("commits:", evidence["commit_log"])

# %% [raw] tags=["expected"]
# offsets: [0]
# commits: []

# %% [markdown]
# And this is inside. The last line of `offsets/0` says where the batch ends: offset 3, the next record to read.

# %%
lab.need("outcome", cell="the cell under Crash it")
print(outcome.checkpoint_file("offsets/0").splitlines()[-1])
assert outcome.checkpoint_file("offsets/0").endswith('{"offset": 3}')

# %% [markdown]
# ## What did a reader see?
#
# The values of *hello*, in the order in which they became visible. The dotted line is the moment at which everything
# was dead.

# %%
lab.need("outcome", cell="the cell under Crash it")
figure, shown = lab.seen_over_time({"append": outcome}, "hello")
figure

# %% [markdown]
# A reader who had seen `hello = 2` saw `hello = 1` again: the value *jumped back*, and was replayed. The lab calls
# this a *regression*. In a model of the same run you can go through it slowly; the picture opens where the real job was
# killed, and the next step is the crash.

# %%
lab.need("outcome", "shown", cell="the cell that draws what a reader saw")
assert [point.value for point in shown["append"].points] == [1, 2, 1, 2]
assert list(outcome.verdict.regression) == [0]
outcome.simulated

# %% [markdown]
# ## The same moment with another sink
#
# *Two-phase commit* writes the rows into a transaction, pre-commits it, and commits it only when Spark has decided
# that the batch counts. We kill it at exactly the same moment: between pre-commit and commit.
#
# Predict first: how many rows this time, and how often will the batch have run?

# %%
asked = lab.predict(rows=None, runs_of_the_batch=None)

# %%
lab.need("failpoint", cell="the first code cell (the parameters)")
second = lab.crash(failpoint, sink="two_phase")

# %% tags=["nbval-check-output"]
lab.need("second", cell="the cell above")
print("rows in the end:", second.verdict.rows, "| duplicate offsets:", list(second.verdict.duplicate))
print("guarantee:", second.verdict.guarantee)

# %% [raw] tags=["expected"]
# rows in the end: 3 | duplicate offsets: []
# guarantee: exactly-once

# %% [markdown]
# The checkpoint looked just the same, so the batch ran again this time too: every row that a reader finds was written
# by the second driver. But nobody had seen the rows of the first attempt, and the restarted job threw them away before
# it began.

# %%
lab.need("asked", "second", cell="the cells above, from the second prediction")
assert second.crashes[0]["commit_log"] == []
assert {row.attempt for row in second.rows()} == {2}  # the number of the driver that wrote the row
assert list(second.verdict.regression) == []
print(asked.beside(rows=second.verdict.rows, runs_of_the_batch=max(row.attempt for row in second.rows())))

# %% [markdown]
# > **What popular notes get wrong.** "Exactly once means that every record is processed exactly once." In both runs every
# > record was processed twice. What can be guaranteed is the *effect*, and the sink has its part in that: same job, same
# > crash, another sink, another guarantee.

# %%
lab.need("outcome", "second", cell="the two cells that crash a job")
same_checkpoint = outcome.crashes[0]["offset_log"] == second.crashes[0]["offset_log"] == [0]
assert same_checkpoint
assert (outcome.verdict.guarantee, second.verdict.guarantee) == ("at-least-once", "exactly-once")

# %% [markdown]
# ## What remains true
#
# - *Exactly once* is about effects, not about executions.
# - The guarantee of the whole is not Spark's alone: it belongs to source, engine and sink together.
# - We killed at one moment. Is two-phase commit safe at every other one? Not in every order of its steps:
#   `labkit matrix --expected` shows every sink at every moment, and `lab.panel()` in a new cell opens a panel on which you
#   choose sink and moment yourself.
#
# ## Check yourself
#
# **1. Why did *append* write each row twice?**
#
# <details><summary>a) Because Spark read the input twice by mistake.</summary>It read it twice on purpose: the batch was
# not in <code>commits</code>, so it had to run again. A job that did not would lose the batch if it had failed earlier.</details>
# <details><summary>b) Because the batch ran twice and the sink does not notice.</summary>Yes. Re-running is right; the
# sink has to make it harmless.</details>
# <details><summary>c) Because SIGKILL damaged the output file.</summary>The file is whole. What a process has handed to the
# operating system survives the process; a power failure would be another matter.</details>
#
# **2. Would it have helped to write `commits/0` before the sink writes?**
#
# <details><summary>a) Yes, then the batch would not run again.</summary>And a crash between the two would lose it: nothing
# written, and nobody to write it again. That is at-most-once.</details>
# <details><summary>b) No, then a crash in between would lose the batch.</summary>Yes. One of the two orders duplicates, the
# other loses, unless the sink's write and the note are one step, or the sink can be told later.</details>
#
# **3. What does the second run show about the number of times a record is processed?**
#
# <details><summary>a) That two-phase commit processes each record once.</summary>It did not: the batch ran twice here as
# well. Only its effect came once.</details>
# <details><summary>b) Nothing, processing and effect are different things.</summary>Yes, and only the effect can be
# guaranteed.</details>
#
# **4. A dashboard polls the table of the first run once a second. What may it have shown?**
#
# <details><summary>a) Only 2, the right count of <em>hello</em>.</summary>Possibly, if it looked at the right moments. But a
# value that was visible can be read, so a guarantee must hold for every moment.</details>
# <details><summary>b) 1 after it had shown 2.</summary>Yes: the values became visible as 1, 2, 1, 2.</details>
#
# ## Sources, and what comes next
#
# The order of Spark's two logs: class `MicroBatchExecution` of Apache Spark, and Armbrust and others,
# [Structured Streaming](https://doi.org/10.1145/3183713.3190664), SIGMOD 2018. The names pre-commit and commit are those of
# Flink's class `TwoPhaseCommitSinkFunction`; see Carbone and others,
# [State Management in Apache Flink](https://doi.org/10.14778/3137765.3137777), VLDB 2017.
#
# Next: [what is guaranteed, and by whom?](01_guarantees.ipynb) Or straight to
# [five sinks, other moments, and what lies around the sink](07_crash_spark.ipynb).
