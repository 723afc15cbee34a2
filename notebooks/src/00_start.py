# %% [markdown]
# # What is left after a crash?
#
# A stream processor counts words: *hello*, *world*, *hello*. It is killed in the middle and started again. Is the
# result the one that would have come without the crash? That is what *exactly once* promises, and this lab lets you
# see where the promise ends.
#
# Nothing here is simulated. A real PySpark Structured Streaming job runs in a process of its own, all of its
# processes are killed by SIGKILL at a named moment, and it is restarted from its checkpoint. Afterwards we read, from
# outside, what a reader could have seen.
#
# It takes about ten minutes; each crash takes about 20 seconds.

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
# ## Predict
#
# The sink *append* writes each row as soon as it has it: one row (word, count so far) for every input record, so three
# rows without a crash. We kill the job when all three are written and Spark has not yet noted that the batch is
# finished.
#
# How many rows will a reader find after the restart? Write your answer down; the run goes ahead without one, too.

# %%
my_prediction = None  # rows in the end: 0, 3, 4 or 6?

# %% [markdown]
# ## Crash it

# %%
outcome = lab.crash(failpoint, sink=sink)

# %% tags=["nbval-check-output"]
print("rows in the end:", outcome.verdict.rows, "| final:", dict(outcome.verdict.final))
print("duplicate offsets:", list(outcome.verdict.duplicate))
print("guarantee:", outcome.verdict.guarantee)

# %% [raw] tags=["expected"]
# rows in the end: 6 | final: {'hello': 2, 'world': 1}
# duplicate offsets: [0, 1, 2]
# guarantee: at-least-once

# %%
print("you predicted", my_prediction or "nothing", "- there are", outcome.verdict.rows)
assert outcome.verdict.rows == 6

# %% [markdown]
# Nothing is lost, and every row came out twice. The lab's judge says why:

# %%
print(outcome.verdict.because)

# %% [markdown]
# ## Was the crash real?
#
# A failpoint that is never reached proves nothing, so every run keeps evidence: the signal, and how many processes
# died by it.

# %%
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
print("offsets:", evidence["offset_log"])
print("commits:", evidence["commit_log"])

# %% [raw] tags=["expected"]
# offsets: [0]
# commits: []

# %% [markdown]
# And this is inside. The last line of `offsets/0` says where the batch ends: offset 3, the next record to read.

# %%
print(outcome.checkpoint_file("offsets/0").splitlines()[-1])
assert outcome.checkpoint_file("offsets/0").endswith('{"offset": 3}')

# %% [markdown]
# ## What did a reader see?
#
# In the order in which it became visible, with the moment of the crash:

# %% tags=["nbval-check-output"]
hello = [row.value for row in outcome.rows() if row.key == "hello"]
print("hello was seen as", hello)

# %% [raw] tags=["expected"]
# hello was seen as [1, 2, 1, 2]

# %% [markdown]
# A reader who had seen `hello = 2` saw `hello = 1` again: the value *jumped back*, and was replayed. The lab calls
# this a *regression*.

# %%
assert list(outcome.verdict.regression) == [0]
print(outcome.seen)

# %% [markdown]
# ## The same moment with another sink
#
# *Two-phase commit* writes the rows into a transaction, pre-commits it, and commits it only when Spark has decided
# that the batch counts. We kill it at exactly the same moment: between pre-commit and commit.
#
# Predict first: how many rows this time?

# %%
second = lab.crash(failpoint, sink="two_phase")

# %% tags=["nbval-check-output"]
print("rows in the end:", second.verdict.rows, "| duplicate offsets:", list(second.verdict.duplicate))
print("guarantee:", second.verdict.guarantee)

# %% [raw] tags=["expected"]
# rows in the end: 3 | duplicate offsets: []
# guarantee: exactly-once

# %% [markdown]
# The batch ran again this time too: the checkpoint looked just the same. But nobody had seen the rows of the first
# attempt, and the restarted job threw them away before it began.

# %%
assert second.crashes[0]["commit_log"] == []
assert list(second.verdict.regression) == []

# %% [markdown]
# ## What remains true
#
# - *Exactly once* is about effects, not about executions: the records were processed twice in both runs.
# - The guarantee of the whole is not Spark's alone. Same job, same crash, another sink: another guarantee.
# - We killed at one moment. Is two-phase commit safe at every other one? Not in every order of its steps:
#   `labkit matrix --expected` shows every sink at every moment, and `labkit run` lets you try each.
#
# ## Check yourself
#
# **1. Why did *append* write each row twice?**
#
# <details><summary>Because Spark read the input twice by mistake.</summary>It read it twice on purpose: the batch was
# not in <code>commits</code>, so it had to run again. A job that did not would lose the batch if it had failed earlier.</details>
# <details><summary>Because the batch ran twice and the sink does not notice.</summary>Yes. Re-running is right; the
# sink has to make it harmless.</details>
# <details><summary>Because SIGKILL damaged the output file.</summary>The file is whole. What a process has handed to the
# operating system survives the process; a power failure would be another matter.</details>
#
# **2. Would it have helped to write `commits/0` before the sink writes?**
#
# <details><summary>Yes, then the batch would not run again.</summary>And a crash between the two would lose it: nothing
# written, and nobody to write it again. That is at-most-once.</details>
# <details><summary>No, then a crash in between would lose the batch.</summary>Yes. One of the two orders duplicates, the
# other loses, unless the sink's write and the note are one step, or the sink can be told later.</details>
#
# **3. What does the second run show about the number of times a record is processed?**
#
# <details><summary>That two-phase commit processes each record once.</summary>It did not: the batch ran twice here as
# well. Only its effect came once.</details>
# <details><summary>Nothing, processing and effect are different things.</summary>Yes, and only the effect can be
# guaranteed.</details>
#
# Sources: the order of Spark's logs is in `MicroBatchExecution` (Apache Spark); the names pre-commit and commit are those of
# Flink's `TwoPhaseCommitSinkFunction`.
