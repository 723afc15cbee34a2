# ---
# jupyter:
#   labkit:
#     slow: true
# ---

# %% [markdown]
# # When does a reader of Kafka see a record?
#
# A job reads a topic, works, and writes to another topic, in transactions. Between the first byte and a reader who may rely on
# it lie ten steps, two kinds of readers, and three timeouts. Where can a record come too early, too late, or never?
#
# **Nothing in this notebook is simulated**, except where a cell says so. The broker is a real Kafka: yours, if
# `LABKIT_KAFKA` names one, or else a private one that starts in a few seconds and is gone when this notebook's kernel
# ends (the very first time its program is fetched, 44 MB). It takes about fifteen minutes. Run the cells from top to bottom;
# one that needs another says which.

# %% tags=["parameters"]
timeout = 5  # seconds that a transaction may be open, in the sample configuration

# %% [markdown]
# ## Naive: read with the defaults
#
# A writer puts *hello* into a transaction and dies; the transaction is aborted. A reader has an isolation level: the
# default is **read_uncommitted**, the other one is **read_committed**. Who has *hello* in the end: *both*, *neither*, or
# which one? Write your answer in place of `None`, then run the cell. It runs without it, too.

# %% tags=["nbval-check-output"]
from labkit import lab

kafka = lab.kafka()
said = lab.predict({"has hello in the end": None})
topic = kafka.topic()
print(topic.begin("t"), topic.write("t", "hello"), topic.hang_up("t"), topic.abort("t"), sep="\n")
look = topic.look()
print(look)
levels = {"read_uncommitted": look.uncommitted, "read_committed": look.committed}
print(said.beside({"has hello in the end": " ".join(level for level, words in levels.items() if words)}))

# %% [raw] tags=["expected"]
# t: begun
# t: written
# t: its writer is gone
# t: aborted
#                   can read up to             gets
# read_uncommitted  2, the end                 hello
# read_committed    2, the last stable offset  -
# open transactions: none
#                       it was
# has hello in the end  read_uncommitted
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# What was aborted stays in the log for ever, and a reader with the default gets it, for ever. All the work of a
# transactional writer is undone by a reader who does not ask for *read_committed*.
#
# ## Ten steps
#
# Now a whole job: it copies *hello* and *world* from one topic to another, in Flink's order (the stored checkpoint is the
# decision, the commit follows). It is a small real job in this kernel, which stops after each step so that both readers
# can look. The first record goes into transaction 0; then comes a barrier; the second one goes into transaction 1.
#
# 1. The job starts; its checkpoint says where.
# 2. It reads *hello*.
# 3. It initialises the transactional id of transaction 0.
# 4. It writes *hello*.
# 5. The barrier: it flushes, so that the broker has everything (pre-commit).
# 6. It writes *world* into transaction 1.
# 7. It stores its checkpoint: the next offset, and the handle of transaction 0. **This is the decision.**
# 8. It asks for the commit of transaction 0. The coordinator writes that into its own log, and answers.
# 9. The coordinator writes a marker into the topic.
# 10. The job tells its consumer group the offset.
#
# After which step does each reader get *hello*?

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("kafka", cell="the cell that starts Kafka")
said = lab.predict(read_uncommitted=None, read_committed=None)  # a number from 1 to 10 each
steps = lab.ten_steps(kafka)
print(said.beside({level: steps.first("hello", level) for level in said.said}))

# %% [raw] tags=["expected"]
#                   it was
# read_uncommitted  4
# read_committed    9
# Nothing was predicted, so nothing is compared.

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("steps", cell="the cell above")
print(steps)

# %% [raw] tags=["expected"]
#     step                                          open  read_uncommitted  read_committed
# 1   starts: its checkpoint says offset 0          -     -                 -
# 2   reads hello at offset 0                       -     -                 -
# 3   initialises the id of transaction 0           -     -                 -
# 4   writes hello: transaction 0 is open           0     hello             -
# 5   barrier: flushes transaction 0                0     hello             -
# 6   writes world into transaction 1               0, 1  hello world       -
# 7   stores its checkpoint: offset 1, commit 0     0, 1  hello world       -
# 8   asks for the commit; the coordinator logs it  ?     ?                 ?
# 9   the marker of transaction 0 is in the log     1     hello world       hello
# 10  tells its group the offset, for monitoring    1     hello world       hello

# %% [markdown]
# *open* are the transactions that the coordinator calls unfinished; one that is initialised and empty is not among them, and
# pre-committed looks like open: **Kafka has no vote**. Step 8 has question marks because the answer to a commit comes
# *before* the marker, so a reader right behind it may see either. And *world* waits for the next checkpoint: what a
# reader at *read_committed* sees is a whole checkpoint interval behind.
#
# The same way **simulated**, to step through, with the coordinator's log:

# %%
from labkit import lab

lab.show("kafka_log.kafka_to_kafka")

# %% [markdown]
# ## Who waits for whom?
#
# Three writers share a topic. *slow* writes one record into a transaction and goes away. Somebody writes a record without
# any transaction. *quick* writes one, and commits. How many of the three records does a reader at *read_committed* get?
# Your answer goes into the second cell.

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("kafka", cell="the cell that starts Kafka")
shared = kafka.topic()
print(shared.begin("slow"), shared.write("slow", "one"), shared.hang_up("slow"), sep="\n")
print(shared.plain("two"))
print(
    shared.begin("quick"), shared.write("quick", "three"), shared.pre_commit("quick"), shared.commit("quick"), sep="\n"
)

# %% [raw] tags=["expected"]
# slow: begun
# slow: written
# slow: its writer is gone
# written without a transaction
# quick: begun
# quick: written
# quick: pre-committed
# quick: committed

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("shared", cell="the cell above")
said = lab.predict({"records at read_committed": None})
waiting = shared.look()
print(waiting)
print(said.beside({"records at read_committed": len(waiting.committed)}))

# %% [raw] tags=["expected"]
#                   can read up to             gets
# read_uncommitted  4, the end                 one two three
# read_committed    0, the last stable offset  -
# open transactions: slow
#                            it was
# records at read_committed  0
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# None. A reader at *read_committed* stops at the **last stable offset**, where the first open transaction begins. Everything
# behind it waits, also what is committed, also what never was in a transaction. A dead writer holds up all readers of the
# partition, until somebody aborts its transaction or its timeout does:

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("shared", cell="the cell in which three writers share a topic")
print(shared.abort("slow"))
print(shared.look())
assert shared.look().committed == ["two", "three"]

# %% [raw] tags=["expected"]
# slow: aborted
#                   can read up to             gets
# read_uncommitted  5, the end                 one two three
# read_committed    5, the last stable offset  two three
# open transactions: none

# %% [markdown]
# So an empty topic is not yet a lost record. Look for open transactions first.
#
# ## Another process commits, and commits again
#
# The handle in the checkpoint is a transactional id with the number and the epoch of its producer. With it any process can commit,
# if it does *not* initialise the id first, which would abort. The writer is gone; recovery asks for the commit, dies before it
# hears the answer, and asks again. How does the coordinator answer the second time: *with an error* or *without*?

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("kafka", cell="the cell that starts Kafka")
said = lab.predict({"second answer": None})
topic = kafka.topic()
topic.begin("t")
print(topic.write("t", "hello"), topic.pre_commit("t"), topic.ask_to_commit("t"), sep="\n")
print(second := topic.ask_to_commit("t"))
print(said.beside({"second answer": "without" if second.endswith("NoError") else "with an error"}))
assert topic.commit("t") == "t: already committed"  # and its marker is in the log
assert topic.look().committed == ["hello"]

# %% [raw] tags=["expected"]
# t: written
# t: pre-committed
# t: the coordinator answers NoError
# t: the coordinator answers NoError
#                it was
# second answer  without
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# ## The clock
#
# Unlike PostgreSQL, Kafka aborts a transaction that is open for too long, **pre-committed or not**. Here it may be open for two
# seconds. *early* writes at once and pre-commits. *late* begins at the same time and writes when *early* has expired. Both
# then commit, as was decided. What comes of each: *committed* or *lost*? Your answer goes into the second cell.

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("kafka", cell="the cell that starts Kafka")
hasty = kafka.topic(timeout=2)
print(hasty.begin("early"), hasty.begin("late"), sep="\n")
print(hasty.write("early", "hello"), hasty.pre_commit("early"), hasty.wait_until_aborted("early"), sep="\n")

# %% [raw] tags=["expected"]
# early: begun
# late: begun
# early: written
# early: pre-committed
# early: aborted by the coordinator, whose time was over

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("hasty", cell="the cell above")
said = lab.predict(early=None, late=None)
print(hasty.write("late", "world"), hasty.pre_commit("late"), sep="\n")
print(hasty.ask_to_commit("early"))
outcomes = {name: hasty.commit(name).partition(": ")[2] for name in ("late", "early")}
print(hasty.look())
print(said.beside(outcomes))

# %% [raw] tags=["expected"]
# late: written
# late: pre-committed
# early: the coordinator answers ProducerFencedError
#                   can read up to             gets
# read_uncommitted  4, the end                 hello world
# read_committed    4, the last stable offset  world
# open transactions: none
#        it was
# early  lost
# late   committed
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# The clock starts with the **first record**, not with the beginning and not with the pre-commit. *early* was decided and is
# lost: the coordinator has raised the epoch of its producer and refuses the old handle as if it came from a zombie
# (*fenced*), and no reader at *read_committed* will ever get *hello*.
#
# ## A sample configuration
#
# Many course notes show these settings: a transaction may be open for 5 s, a checkpoint comes every 10 s, with a
# pause of at least 15 s between two. Ask the checker what it thinks, if a checkpoint takes at most 1 s:

# %% tags=["nbval-check-output"]
import textwrap

from labkit import lab

lab.need("timeout", cell="the first code cell")
sample = lab.timeouts(interval=10, pause=15, checkpoint=1, transaction=timeout)
print(sample.fit, textwrap.fill(sample.because, 100), sep=":\n")
assert sample.fit == "can lose data" or timeout > sample.needed

# %% [raw] tags=["expected"]
# can lose data:
# a transaction can be open for 17 s and is aborted after 5 s: steady traffic meets it as a failing
# write, a crash loop without loss; a burst and then silence is lost, since the checkpoint completes
# and only the commit is refused; what comes just before a barrier survives

# %% [markdown]
# Now run it. Three kinds of traffic between two checkpoints, each in a topic of its own:
#
# - *steady*: a record at once, and the next one when 5 s are over;
# - *burst*: a record at once, then silence until the barrier, which pre-commits; the checkpoint completes;
# - *late*: nothing at first, and a record just before the barrier.
#
# What will become of each: *fails* (the write is refused, so the job restarts from its checkpoint and nothing is lost, but again and
# again), *lost* (the checkpoint is complete and the record is gone), or *committed*? Your answer goes into the second
# cell; the first one takes these 5 s.

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("kafka", "timeout", cell="the cell with the parameters, and the one that starts Kafka")
sampled = {name: kafka.topic(timeout=timeout) for name in ("steady", "burst", "late")}
began = [topic.begin("t") for topic in sampled.values()]
wrote = [sampled[name].write("t", "hello") for name in ("steady", "burst")]
waited = [sampled[name].wait_until_aborted("t") for name in ("steady", "burst")]
print(*waited, sep="\n")

# %% [raw] tags=["expected"]
# t: aborted by the coordinator, whose time was over
# t: aborted by the coordinator, whose time was over

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("sampled", cell="the cell above")
said = lab.predict(steady=None, burst=None, late=None)
record = {name: sampled[name].write("t", "world").split(",")[0] for name in ("steady", "late")}
vote = {name: topic.pre_commit("t").split(",")[0] for name, topic in sampled.items()}
came = {name: sampled[name].commit("t").removeprefix("t: ") for name in ("late", "burst")}
came["steady"] = "fails" if "refused" in vote["steady"] else "goes on"
print("the next record:", record)
print("at the barrier: ", vote)
print(said.beside(came))

# %% [raw] tags=["expected"]
# the next record: {'steady': 't: refused', 'late': 't: written'}
# at the barrier:  {'steady': 't: refused', 'burst': 't: pre-committed', 'late': 't: pre-committed'}
#         it was
# steady  fails
# burst   lost
# late    committed
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# The burst is the dangerous one: the pre-commit had nothing to send, so nobody noticed, the checkpoint completed, and only the
# commit was refused. A connector that logs this error and goes on has lost the record silently. The 5 s above were
# real, and the barrier was simply the next call. Here are the same three **simulated**, with a checkpoint every 10 s:

# %% tags=["nbval-check-output"]
from labkit import lab

names = ("steady_traffic", "burst_then_silence", "just_before_the_barrier")
print(lab.table({name: lab.replay(f"kafka_log.{name}") for name in names}))

# %% [raw] tags=["expected"]
#                          guarantee     lost  duplicate  jumped back
# steady_traffic           exactly-once  0     0          0
# burst_then_silence       at-most-once  2     0          0
# just_before_the_barrier  exactly-once  0     0          0

# %% [markdown]
# Three timeouts must fit together: how long a checkpoint may take, how long a transaction may be open, and the broker's
# maximum for that (`transaction.max.timeout.ms`, 15 minutes by default). Which of these can lose data, which is *refused at
# start*, which is *safe*?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict({"60 s": None, "60 s, and a restart may take 60 s": None, "1 h": None})
settings = {"interval": 10, "pause": 15, "checkpoint": 1}
fits = [lab.timeouts(**settings, transaction=60), lab.timeouts(**settings, transaction=60, downtime=60)]
fits.append(lab.timeouts(**settings, transaction=3600))
print(said.beside({name: found.fit for name, found in zip(said.said, fits, strict=True)}))

# %% [raw] tags=["expected"]
#                                    it was
# 60 s                               safe
# 60 s, and a restart may take 60 s  can lose data
# 1 h                                refused at start
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# The last one is the checker's word. Now ask a real broker (the sentence is the lab's, the refusal is Kafka's):

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("kafka", cell="the cell that starts Kafka")
print(kafka.topic(timeout=3600).begin("t").replace("maximum: ", "maximum:\n"))

# %% [raw] tags=["expected"]
# t: refused, a transaction timeout of 3600 s is more than the broker's maximum:
# shorten it, or raise transaction.max.timeout.ms there.

# %% [markdown]
# ## Must the job commit offsets to Kafka?
#
# The copy job told its consumer group the offset in step 10. Let us falsify that: the job copies two of four records and
# stops; somebody sets the group's offset back to 0, or forward to 4; the job starts again. Once it looks into its
# **checkpoint** for where to read on, once it asks the **group**. Which guarantee has each of the four runs?

# %%
copy_predictions = {"checkpoint, set to 0": None, "checkpoint, set to 4": None}
copy_predictions |= {"group, set to 0": None, "group, set to 4": None}

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("kafka", "copy_predictions", cell="the cell that starts Kafka, and the cell above")
copies = {}
for name in copy_predictions:
    trusts, says = name.split(", set to ")
    copies[name] = lab.copy_topic(kafka, trusts=trusts, group_says=int(says))
print(lab.table(copies, copy_predictions))
print("read on from offset:", [copied.started_at for copied in copies.values()])

# %% [raw] tags=["expected"]
#                       guarantee      lost  duplicate  jumped back
# checkpoint, set to 0  exactly-once   0     0          0
# checkpoint, set to 4  exactly-once   0     0          0
# group, set to 0       at-least-once  0     2          0
# group, set to 4       at-most-once   2     0          0
# read on from offset: [2, 2, 0, 4]

# %%
from labkit import lab

lab.need("copies", cell="the cell above")
assert [copied.verdict.guarantee for copied in copies.values()][:2] == ["exactly-once", "exactly-once"]

# %% [markdown]
# > **What popular notes get wrong.** "*The consumer must commit its offsets to Kafka with each checkpoint, for correctness.*" A job
# > that recovers from its checkpoint never asks for them: falsified, they change nothing. They are for monitoring. A job that
# > *does* rely on the group (Kafka Streams, and every consume-transform-produce loop without a checkpoint) must put them into
# > the transaction that holds its records. Also wrong: the sample configuration above; it can lose data.
#
# ## Now under Spark
#
# A real PySpark job counts *hello*, *world*, *hello* into this broker, is killed by SIGKILL and restarted from its checkpoint.
# Three runs with *two_phase*: killed after the decision and restarted at once; killed there and restarted after Kafka has aborted
# everything; and in Spark's own order (the sink commits first, then `commits/0` is written), killed between pre-commit and
# commit, and also restarted too late. Which guarantee has each? Together they take about a minute.

# %%
my_predictions = {"decided, at once": None, "decided, too late": None, "engine order, too late": None}

# %%
from labkit import lab

lab.need("kafka", "my_predictions", cell="the cell that starts Kafka, and the cell above")
decided = {"at": "engine.after_commit_log", "sink": "two_phase", "store": "kafka"}
cases = {"decided, at once": decided, "decided, too late": decided | {"between": "expire"}}
cases["engine order, too late"] = cases["decided, too late"] | {"at": "sink.after_pre_commit", "order": "engine"}
runs = lab.crash_each(cases)

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("runs", "my_predictions", cell="the cell above")
print(lab.table(runs, my_predictions))
for name, run in runs.items():
    crash = run.crashes[0]
    aborted = len(crash.get("server", {}).get("aborted", []))
    print(f"{name:24} commits {crash['commit_log']}, aborted by Kafka: {aborted}")

# %% [raw] tags=["expected"]
#                         guarantee     lost  duplicate  jumped back
# decided, at once        exactly-once  0     0          0
# decided, too late       at-most-once  3     0          0
# engine order, too late  exactly-once  0     0          0
# decided, at once         commits [0], aborted by Kafka: 0
# decided, too late        commits [0], aborted by Kafka: 2
# engine order, too late   commits [], aborted by Kafka: 2

# %% [markdown]
# The same timeout, and opposite outcomes. Where the decision comes first, nobody runs the batch again, and what Kafka has dropped
# is **lost**. Where the decision comes last, nothing was decided yet, and the batch runs again. That does
# not make Spark's own order the better one: there, a crash just *after* the commit doubles rows, as
# [notebook 07](07_crash_spark.ipynb) shows.
#
# ## Your turn
#
# **Simulated**, so that you choose each step: *lose a record although its checkpoint is complete.* A transaction expires after
# one tick, and two ticks may pass. Then find the last moment at which the same tick does no harm. `?` shows the keys.

# %%
from labkit import lab

steering = lab.explorer("kafka_log", partitions=1, ticks=2, crashes=1)
steering

# %%
from labkit import lab

lab.need("steering", cell="the cell above")
print(lab.replay(steering.trace))

# %% [markdown] tags=["task"]
# ## Exercise: a burst, and then silence (`09-predict`)
#
# In the simulated run *burst_then_silence* two records (offsets 0 and 1) come at once, then nothing. Kafka aborts the
# transaction after 5 s, the checkpoint comes after 10 s and completes. Which offsets does a reader at *read_committed* miss
# in the end, and how often does the job restart?
#
# *predict, easy, 1 point for predicting, right or wrong; one line.*
#
# <details><summary>Hint 1</summary>Who notices that the transaction is gone, and when?</details>
# <details><summary>Hint 2</summary>The refused commit is only logged.</details>

# %% tags=["exercise"]
# exercise 09-predict
predicted_09 = {"lost": ..., "restarts": ...}  # a list of offsets, and a number

# %% tags=["solution"]
# exercise 09-predict
predicted_09 = {"lost": [0, 1], "restarts": 0}

# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("09-predict")

# %% [raw] tags=["expected"]
# 09-predict: not attempted (1 point); write it, and the run unlocks.

# %% [markdown] tags=["task"]
# ## Exercise: how long may a transaction be open? (`09-timeout`)
#
# Choose the timeout of a transaction for any job, as a formula. `transaction_timeout(interval, checkpoint, tolerated,
# downtime)` gets whole numbers of ticks: a checkpoint starts every `interval` ticks and may take up to `checkpoint` ticks,
# `tolerated` checkpoints in a row may expire (their transactions then ride along with the next), and after a crash the job
# is down for up to `downtime` ticks. A checkpoint starts only when the one before is over. Return the transaction timeout
# in ticks: the broker aborts a transaction that many ticks after its first record.
#
# The check searches every schedule of a simulated Kafka: **no record may be lost**, and the answer may be at most twice as
# long as needed.
#
# *configure, hard, 4 points; one line.*
#
# <details><summary>Hint 1</summary>The clock starts with the first record, and that may come right after a
# barrier.</details>
# <details><summary>Hint 2</summary>An expired checkpoint leaves its transaction to the next, which starts when interval and
# expiry are over. More: <code>lab.hint("09-timeout")</code>.</details>


# %% tags=["exercise"]
# exercise 09-timeout
def transaction_timeout(interval, checkpoint, tolerated, downtime):
    """For how many ticks a transaction must be allowed to be open."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 09-timeout
def transaction_timeout(interval, checkpoint, tolerated, downtime):
    """For how many ticks a transaction must be allowed to be open."""
    return (tolerated + 1) * max(interval, checkpoint) + checkpoint + downtime + 1


# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("09-timeout")

# %% [raw] tags=["expected"]
# 09-timeout: not attempted (4 points); lab.hint("09-timeout") helps.

# %% [markdown] tags=["task"]
# ## Exercise: whose offsets count (`09-offsets`)
#
# A job with checkpoints copies from Kafka to Kafka. What are the offsets of its consumer group for?
#
# - **a** Without them the job would start at the beginning after a crash.
# - **b** For whoever watches how far it is; recovery does not look at them.
# - **c** They must be committed in the same transaction as the records.
# - **d** They make `read_committed` possible.
#
# *explain, easy, 1 point for the right choice; the check gives a reason for each; one line.*
#
# <details><summary>Hint 1</summary>Which of them did the job look at when it started again?</details>
# <details><summary>Hint 2</summary>Look at the four copies above.</details>

# %% tags=["exercise"]
# exercise 09-offsets
offsets_answer = ...  # "a", "b", "c" or "d"

# %% tags=["solution"]
# exercise 09-offsets
offsets_answer = "b"

# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("09-offsets")

# %% [raw] tags=["expected"]
# 09-offsets: not attempted (1 point); lab.hint("09-offsets") helps.

# %% [markdown]
# ## What remains true
#
# - *read_uncommitted*, the default, shows what is aborted. Readers must ask for *read_committed*.
# - *read_committed* waits: for the decision, for the marker, and for every open transaction before it in the partition.
# - A Kafka transaction is a promise with a time limit. The clock starts with its first record.
# - Timeout > interval, checkpoint and downtime together, and at most the broker's maximum: `labkit timeouts` checks it.
# - Progress belongs into the checkpoint, or into the transaction. The group's offset is for monitoring.
#
# ## Check yourself
#
# **1. A reader at read_committed gets nothing, although the job says that it has committed. What do you look at first?**
#
# <details><summary>a) Whether an older transaction of the partition is open.</summary>Yes: everything behind it waits, whoever
# wrote it.</details>
# <details><summary>b) Whether the records were lost.</summary>Not yet. They may lie behind the last stable offset.</details>
#
# **2. The transaction timeout is one minute. Nothing has been written for two minutes, then a record comes, and the barrier three
# seconds later. What happens?**
#
# <details><summary>a) The transaction has expired.</summary>Its clock starts with the first record, so it is three seconds
# old.</details>
# <details><summary>b) It is committed.</summary>Yes, as <i>late</i> above.</details>
#
# **3. The commit of a decided transaction is refused, because Kafka has aborted it. What should a job do?**
#
# <details><summary>a) Log the error and go on.</summary>Then the records are lost and nobody knows.</details>
# <details><summary>b) Restart from the checkpoint.</summary>The checkpoint says that they are done. It meets the same refusal again
# and again.</details>
# <details><summary>c) Nothing helps any more; it should have been prevented.</summary>Yes. Report it loudly, go back to an older
# checkpoint by hand, and choose a timeout that is long enough.</details>
#
# **4. Somebody resets the offsets of your Spark job's consumer group to 0. What happens at its restart?**
#
# <details><summary>a) It reads everything again.</summary>Only a job that trusts the group does.</details>
# <details><summary>b) Nothing.</summary>Yes: it reads on from the offsets in its checkpoint.</details>
#
# ## Sources
#
# Kafka's [KIP-98](https://cwiki.apache.org/confluence/display/KAFKA/KIP-98+-+Exactly+Once+Delivery+and+Transactional+Messaging)
# (transactions, markers, the last stable offset),
# [KIP-447](https://cwiki.apache.org/confluence/display/KAFKA/KIP-447%3A+Producer+scalability+for+exactly+once+semantics) (offsets in
# a transaction) and [KIP-664](https://cwiki.apache.org/confluence/display/KAFKA/KIP-664%3A+Provide+tooling+to+detect+and+abort+hanging+transactions)
# (describing open ones); `TransactionCoordinator` in Apache Kafka; `KafkaCommitter` and `FlinkKafkaInternalProducer` in Flink's
# Kafka connector.
#
# Back: [05, which demands two-phase commit makes](05_two_phase_commit.ipynb) and
# [08, the same demands in PostgreSQL](08_postgres.ipynb).
