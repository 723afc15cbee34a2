# %% [markdown]
# # Which link decides what a stream can guarantee?
#
# Records come from a *source*, an *engine* processes them, a *sink* hands the results on. Then everything is killed
# and starts again. How often does the effect of a record count in the end? It takes all three links to answer that. In
# this notebook we exchange them one by one, in 30 chains.
#
# The chains here are **simulated**: a simulator can try *every* moment of a crash, in a second. A star marks those for
# which **real Spark** was killed as well ([notebook 07](07_crash_spark.ipynb) does it before your eyes). It takes 15
# minutes. The cells stand alone: you can run any of them first.

# %% tags=["parameters"]
my_source = "socket"  # for "your own chain" further down: log or socket
my_engine = "note, then commit"  # or: commit, then note; loses its checkpoint
my_sink = "wal"  # append, idempotent, batch_marker, wal or two_phase
really = False  # True: also kill real Spark, which takes about a minute

# %% [markdown]
# ## Three guarantees
#
# | guarantee | in the end |
# |---|---|
# | *at-most-once* | no record counts twice; some may be missing |
# | *at-least-once* | no record is missing; some may count twice |
# | *exactly-once* | as if nothing had failed |
#
# "As if nothing had failed" needs care: two runs without any failure may differ, too. So it means: what a reader sees
# could have come from *some* run without a failure.
#
# ## The simplest chain
#
# The source is a *log*: it can be read again from any place. The engine works in batches and notes in its *checkpoint*
# which batches are finished; after a crash it runs the last one again if it was not. The sink *append* writes each row
# at once. The input is *hello, world, hello* in one batch, and we kill the job when all rows are written and the
# batch is not yet noted as finished.
#
# How many rows will there be, and which guarantee was kept? Put your answers in place of `None`, then run the cell. It
# runs without them, too.

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(rows=None, guarantee=None)

verdict = lab.replay("pipeline.append_twice").verdict
print(said.beside(rows=verdict.rows, guarantee=verdict.guarantee))
assert verdict.rows == 6

# %% [raw] tags=["expected"]
#            it was
# rows       6
# guarantee  at-least-once
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# Three records came in, six rows came out. Step through it: choose a step on the slider or in the diagram, or press the
# arrow keys. The frame with the bolt is what the crash takes.

# %%
from labkit import lab

lab.show("pipeline.append_twice")

# %% [markdown]
# The engine did nothing wrong. It could not know whether the rows had been written, so it ran the batch again: each
# record was *processed* twice, and that is not the mistake. *Exactly once* is about **effects, not executions**. The
# mistake is that the sink lets the second execution have a second effect.
#
# ## One run proves little
#
# The same chain, killed a moment later: the batch has just been noted. Which guarantee do you see in each of the two runs?

# %% tags=["nbval-check-output"]
from labkit import lab

said = {"before the note": None, "after the note": None}

names = dict(zip(said, ("append_twice", "append_once"), strict=True))
print(lab.table({moment: lab.replay(f"pipeline.{name}") for moment, name in names.items()}, said))

# %% [raw] tags=["expected"]
#                  guarantee      lost  duplicate  jumped back
# before the note  at-least-once  0     3          1
# after the note   exactly-once   0     0          0

# %% [markdown]
# All looks well there. But a guarantee speaks of *every* run. So let the simulator crash this chain at every step,
# and take the worst. What is left?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(guarantee=None)

found = lab.explore("pipeline", strategy="append")
print(said.beside(guarantee=found.guarantee))
print(f"{found.states} states; some schedule breaks: {found.broken}")
assert found.exhausted

# %% [raw] tags=["expected"]
#            it was
# guarantee  at-least-once
# Nothing was predicted, so nothing is compared.
# 64 states; some schedule breaks: no_duplicate, no_fractured_read, no_regression

# %% [markdown]
# One run can refute a guarantee; to have one, all runs must keep it. (These are all runs of a *small* configuration: few
# records, one crash. What breaks here can break in a larger one as well. What holds here was not seen to break.)
#
# ## Thirty chains
#
# Now we exchange the links.
#
# | link | choices |
# |---|---|
# | source | *log*: can be read again. *socket*: gives every record once |
# | engine | *commit, then note*: the sink commits, then the batch is noted as finished (Spark's order). *note, then commit*: the other way round (Flink's order). *loses its checkpoint*: it lies on a disk that can be lost with the machine |
# | sink | *append*: writes each row at once. *idempotent*: sets the value of a key. *batch_marker*: rows and the batch's number in one transaction. *wal*: into a log first, copied later. *two_phase*: into a transaction that is prepared first and committed later |
#
# Predict five of them: a log, and an engine that notes first. Which guarantee does each sink give?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict({"append": None, "idempotent": None, "batch_marker": None, "wal": None, "two_phase": None})

chains = lab.chains()
print(said.beside({sink: chains["log", "note, then commit", sink].guarantee for sink in said.said}))

# %% [raw] tags=["expected"]
#               it was
# append        at-least-once
# idempotent    exactly-once
# batch_marker  exactly-once
# wal           at-least-once
# two_phase     exactly-once
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# And here are all of them. **Choose a square**: below the grid it says how it was found out, what happens in a shortest
# run that shows it, and which Python call repeats it.

# %%
from labkit import lab

lab.chains()

# %% [markdown]
# The same as text:

# %% tags=["nbval-check-output"]
from labkit import lab

print(lab.chains())

# %% [raw] tags=["expected"]
#                 commit, then note  note, then commit  loses its checkpoint
# log
#   append        at-least-once *    at-least-once *    at-least-once
#   idempotent    exactly-once *     exactly-once *     exactly-once
#   batch_marker  exactly-once *     exactly-once *     at-least-once
#   wal           at-least-once *    at-least-once *    at-least-once
#   two_phase     at-least-once *    exactly-once *     at-least-once
# socket
#   append        at-most-once *     at-most-once *     at-most-once
#   idempotent    at-most-once       at-most-once       at-most-once
#   batch_marker  at-most-once       at-most-once       at-most-once
#   wal           at-most-once       none               none
#   two_phase     at-most-once       at-most-once *     at-most-once
# * also on real Spark

# %% [markdown]
# *append*, *idempotent* and *batch_marker* have nothing to commit later, so the first two columns are the same for them.
# A star in the log's half: `labkit matrix` kills real Spark at every failpoint of that sink, and the worst outcome is
# the same. A star in the socket's half: notebook 07 runs it.
#
# ## A weak source
#
# Look at the lower half: no square says *exactly-once*. Take the best sink, *two_phase*, and three records from a socket in
# one batch. It is killed when all three are pre-committed and nothing is decided. How many are lost?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(lost=None, duplicate=None)

verdict = lab.replay("pipeline.forgetful_source").verdict
print(said.beside(lost=len(verdict.lost), duplicate=len(verdict.duplicate)))
chains = lab.chains()
assert not any(chains[each].guarantee == "exactly-once" for each in chains if each.source == "socket")

# %% [raw] tags=["expected"]
#            it was
# lost       3
# duplicate  0
# Nothing was predicted, so nothing is compared.

# %%
from labkit import lab

lab.show("pipeline.forgetful_source")

# %% [markdown]
# Two-phase commit did what it should: nothing was decided, so the prepared rows were dropped, and the batch ran again.
# But there was nothing left to read. No sink can put back what the source has forgotten. (Real Spark with its own socket
# source lost four of six lines, in notebook 07.)
#
# ## A weak engine
#
# Now a log, the same sink *two_phase*, and both orders of commit and note. The job is killed between the two: committed
# and not noted, or noted and not committed. Which guarantee does each run show?

# %% tags=["nbval-check-output"]
from labkit import lab

said = {"commit, then note": None, "note, then commit": None}

names = dict(zip(said, ("commit_then_decide", "decide_then_commit"), strict=True))
print(lab.table({order: lab.replay(f"pipeline.{name}") for order, name in names.items()}, said))

# %% [raw] tags=["expected"]
#                    guarantee      lost  duplicate  jumped back
# commit, then note  at-least-once  0     3          1
# note, then commit  exactly-once   0     0          0

# %%
from labkit import lab

lab.show("pipeline.commit_then_decide", beside="pipeline.decide_then_commit")

# %% [markdown]
# Not only the sink decides: the *order* between engine and sink does. And an engine has results of its own, the counts
# that it keeps. Flink's barriers ([notebook 04](04_barriers.ipynb)) can be told not to align a task's inputs
# (*at_least_once*). Is the engine's count always right after a crash? Which guarantee do the rows have, behind *two_phase*?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(aligned_count=None, aligned_rows=None, at_least_once_count=None, at_least_once_rows=None)

came = {}
for mode in ("aligned", "at_least_once"):
    found = lab.explore("barriers", mode=mode, sink="two_phase", counts=1, words="hello-hello")
    came[f"{mode}_count"] = "wrong" if "counted_once" in found.violated else "right"
    came[f"{mode}_rows"] = found.guarantee
print(said.beside(came))

# %% [raw] tags=["expected"]
#                      it was
# aligned_count        right
# aligned_rows         exactly-once
# at_least_once_count  wrong
# at_least_once_rows   at-least-once
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# The best sink hands on whatever it is given, also a wrong count.
#
# ## A sink that repairs
#
# So the weakest link wins? Look at the third column again: the engine has lost its checkpoint and reads the whole log a
# second time, with new batches. Which sink still keeps *exactly-once*, and why not *two_phase*?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(idempotent=None, two_phase=None)

chains = lab.chains()
print(said.beside({sink: chains["log", "loses its checkpoint", sink].guarantee for sink in said.said}))
assert "no_regression" in chains["log", "loses its checkpoint", "idempotent"].violated

# %% [raw] tags=["expected"]
#             it was
# idempotent  exactly-once
# two_phase   at-least-once
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# Writing the same value to the same key again changes nothing, however often it comes. So *replay + idempotent
# writes* is stronger than its engine: a sink can **raise** the level. It has a price: while the log is read
# again, readers see old values ("a value jumps back"). *two_phase* has no chance here: its transactions
# belong to the lost checkpoint, and the new run is another query with other transactions.
#
# ## Two halves
#
# *At-most-once* says that nothing counts twice, *at-least-once* that nothing is missing. A source that gives the first and
# a sink that gives the second: which one is left? This is the socket with *wal*.

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(lost=None, duplicate=None, guarantee=None)

verdict = lab.replay("pipeline.lost_and_doubled").verdict
print(said.beside(lost=verdict.lost, duplicate=verdict.duplicate, guarantee=verdict.guarantee))

# %% [raw] tags=["expected"]
#            it was
# lost       [2]
# duplicate  [1]
# guarantee  none
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# None. One crash, one record twice and another one never: the two have nothing in common.
#
# > **What popular notes get wrong.** "A chain has the guarantee of its weakest link." Two runs above say otherwise. The
# > guarantees are no ladder: at-most-once and at-least-once together leave *nothing*. And a chain can be stronger than a
# > link: an idempotent sink makes good what the engine repeats. What is true: nobody can make good what is *lost*.
# > Missing in most notes is the simplest good answer, *batch_marker*: store the batch's number in the same
# > transaction as its rows. With a log and a checkpoint, it is exactly-once in both orders, and no reader sees a thing.

# %%
from labkit import lab

chains = lab.chains()
assert chains["socket", "note, then commit", "wal"].guarantee == "none"
assert chains["log", "loses its checkpoint", "idempotent"].guarantee == "exactly-once"
assert chains["log", "commit, then note", "batch_marker"].broken == "nothing"

# %% [markdown]
# ## Your turn: crash and lose nothing
#
# The source is a socket, the sink *two_phase*, every batch has one record. **Find a schedule with a crash, after the first
# batch was planned, in which no record is lost.** Choose the next action below the picture until nothing is left to
# do; a crash is among them. When does it do no harm? The cell after it says how far you have come.

# %%
from labkit import lab

mine = lab.explorer("pipeline", source="socket", records_per_batch=1)
mine

# %%
from labkit import lab

lab.need("mine", cell="the cell above")
lost = list(lab.replay(mine.trace).verdict.lost)
print("there was a crash:", "crash" in mine.trace, "| not come out so far:", lost)

# %% [markdown]
# ## Your own chain
#
# Choose a chain in the first code cell (source, engine, sink), run that cell, then this one: it shows a shortest run that
# breaks something.

# %%
from labkit import lab

lab.need("my_source", "my_engine", "my_sink", cell="the first code cell (the parameters)")
chosen = lab.chains()[my_source, my_engine, my_sink]
print(chosen.guarantee, "- some schedule breaks:", chosen.broken)
lab.show(chosen.counterexample()) if chosen.violated else None

# %% [markdown]
# ## For real
#
# With `really = True` in the first code cell, this kills real Spark, where the simulator says that it does harm, in the
# order *note, then commit*. (It needs Java; `labkit doctor` says whether everything is there.)

# %%
from labkit import lab

lab.need("really", cell="the first code cell (the parameters)")
worst = {"append": "sink.after_pre_commit", "wal": "sink.mid_commit", "two_phase": "sink.after_commit"}
real = lab.crash_each({sink: {"sink": sink, "at": point} for sink, point in worst.items()}) if really else {}
print("\nreal:", {sink: outcome.verdict.guarantee.value for sink, outcome in real.items()} or "not asked for")
print("simulated:", {sink: lab.chains()["log", "note, then commit", sink].guarantee.value for sink in worst})

# %% [markdown] tags=["task"]
# ## Exercise: killed in the middle of a write (`01-predict`)
#
# *append* gets *hello* (offset 0), *world* (1) and *hello* (2) in one batch. It writes partition by partition, *world*
# first. The job is killed when the rows of offsets 1 and 0 are out and the row of offset 2 is not, and then restarted.
# Which offsets are **lost** in the end, and which came **more than once**? Write two lists of offsets in place of the dots;
# the run unlocks then.
#
# *predict, easy, 1 point for predicting, right or wrong; one line.*
#
# <details><summary>Hint 1</summary>The batch had been planned and not finished: what does the restarted job do with
# it?</details>
# <details><summary>Hint 2</summary>A row that is out cannot be taken back by this sink.</details>

# %% tags=["exercise"]
# exercise 01-predict
predicted_01 = {"lost": ..., "duplicate": ...}  # two lists of offsets

# %% tags=["solution"]
# exercise 01-predict
predicted_01 = {"lost": [], "duplicate": [0, 1]}

# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("01-predict")

# %% [raw] tags=["expected"]
# 01-predict: not attempted (1 point); write it, and the run unlocks.

# %% [markdown] tags=["task"]
# ## Exercise: a chain that holds (`01-links`)
#
# Choose one of each: a source (`"log"`, `"socket"`), an engine (`"commit, then note"`, `"note, then commit"`, `"loses its
# checkpoint"`), and a sink (`"append"`, `"idempotent"`, `"batch_marker"`, `"wal"`, `"two_phase"`), so that **every record
# comes out exactly once and no value is seen to jump back**, whenever the job crashes. The check tries every schedule.
#
# *configure, easy, 2 points; one line.*
#
# <details><summary>Hint 1</summary>lab.chains() shows every chain; which squares have no hook?</details>
# <details><summary>Hint 2</summary>The source must be one that can be read again, and the sink must not show a row before
# its batch is safe.</details>

# %% tags=["exercise"]
# exercise 01-links
links = {"source": ..., "engine": ..., "sink": ...}

# %% tags=["solution"]
# exercise 01-links
links = {"source": "log", "engine": "note, then commit", "sink": "two_phase"}

# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("01-links")

# %% [raw] tags=["expected"]
# 01-links: not attempted (2 points); lab.hint("01-links") helps.

# %% [markdown] tags=["task"]
# ## Exercise: the weakest link (`01-weakest`)
#
# "*The guarantee of a chain is that of its weakest link.*" Which of these shows that this is not the whole truth?
#
# - **a** At-most-once and at-least-once are neighbours, so a chain of both is at-most-once.
# - **b** A good sink makes up for a source that cannot be read again.
# - **c** A sink can raise the level: at-least-once before it, exactly-once behind it.
# - **d** If the engine says exactly-once, the sink does not matter.
#
# *explain, easy, 1 point for the right choice; the check gives a reason for each; one line.*
#
# <details><summary>Hint 1</summary>Look for a chain that is better than one of its links.</details>
# <details><summary>Hint 2</summary>What does an idempotent sink make of a batch that runs again?</details>

# %% tags=["exercise"]
# exercise 01-weakest
weakest_answer = ...  # "a", "b", "c" or "d"

# %% tags=["solution"]
# exercise 01-weakest
weakest_answer = "c"

# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("01-weakest")

# %% [raw] tags=["expected"]
# 01-weakest: not attempted (1 point); lab.hint("01-weakest") helps.

# %% [markdown]
# ## What remains true
#
# - *Exactly-once* is about effects. Records are processed again; what counts is whether that can be seen in the end.
# - The guarantee is the whole chain's, in one order of commits, and as long as the checkpoint lives.
# - What the source cannot give again is lost. What comes twice can be repaired, by the sink alone.
# - *Exactly-once in the end* says nothing about what a reader saw on the way: a value may jump back, half a batch may be
#   there. In the grid, only *batch_marker* never shows anything like that with a log and its checkpoint.
#
# Left out here: transactions that time out, drivers that are thought dead and are not, checkpoints that are rolled back.
# Each can turn an *exactly-once* of this grid into something less; the next notebooks show how.
#
# ## Check yourself
#
# **1. A message queue deletes a message when it is delivered. Your engine has checkpoints, your sink two-phase commit.**
#
# <details><summary>a) Exactly-once: engine and sink are the best there are.</summary>The lower half of the grid: what
# was delivered and not yet committed dies with the engine, and the queue cannot give it again.</details>
# <details><summary>b) At-most-once.</summary>Yes. It becomes better only if the queue keeps a message until somebody
# acknowledges it, and that is done after the result is durable.</details>
# <details><summary>c) At-least-once: the engine runs the batch again.</summary>It does run the batch again, and finds
# it empty.</details>
#
# **2. Why is *two_phase* only at-least-once when the sink commits before the batch is noted?**
#
# <details><summary>a) A crash between the two runs the batch again, in a new transaction.</summary>Yes. The first one
# is committed for ever, and nothing tells the second one about it.</details>
# <details><summary>b) The prepared transaction is lost in the crash.</summary>It is durable in the store; that is what
# prepared means.</details>
# <details><summary>c) Spark does not support transactions.</summary>They are the sink's and the store's. What counts is
# the order of commit and note.</details>
#
# **3. An idempotent sink is exactly-once in the grid. A colleague's sink does `n = n + 1` for each record. Is it, too?**
#
# <details><summary>a) Yes, both are upserts.</summary>An upsert is idempotent only if it writes the same value when it
# is repeated. Adding again is a second effect.</details>
# <details><summary>b) No.</summary>Yes: the sink here sets a value that is the same whenever the batch runs. That needs
# the same keys and values from the engine each time.</details>
#
# **4. You crash a job ten times and the result is right each time. What do you know?**
#
# <details><summary>a) It is exactly-once.</summary>The chain with *append* survives a crash at the right moment, too.
# Ten crashes at harmless moments say nothing about the harmful one.</details>
# <details><summary>b) That these ten moments are harmless.</summary>Yes. To refute a guarantee, one harmful moment is
# enough; to trust it, look at all of them.</details>
#
# ---
# Sources: the order of Spark's two logs is that of `MicroBatchExecution`, see the
# [Structured Streaming guide](https://spark.apache.org/docs/latest/streaming); Flink's order is that of
# `CheckpointCoordinator`, see
# [Stateful Stream Processing](https://nightlies.apache.org/flink/flink-docs-stable/docs/concepts/stateful-stream-processing/).
# Why the ends have to help: Saltzer, Reed and Clark,
# [End-to-End Arguments in System Design](https://doi.org/10.1145/357401.357402), 1984.
#
# Next: [Has it arrived?](02_delivery.ipynb) A single step between two processes, and why it is already hard.
