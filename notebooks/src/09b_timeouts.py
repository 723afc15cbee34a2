# ---
# jupyter:
#   labkit:
#     needs: [04_barriers, 06_sinks, 08_postgres, 09_kafka]
#     slow: true
# ---

# %% [markdown]
# # What do three timeouts cost?
#
# > **Ticket 12** (invented). *From the shop:* "Orders of last night are missing." No machine has crashed, every
# > checkpoint is complete, and the job has been running for weeks. *In its log,* one line among thousands; this one is
# > real, from Flink's Kafka connector of 2021: "timed out or was overridden and data has been potentially lost"
# > ([apache/flink#17152](https://github.com/apache/flink/pull/17152)).
#
# A broker has ended a transaction that was open for too long. Which settings allow that, and how long is long enough?
#
# {head}
#
# You will be able to
#
# - name the three timeouts of such a job, their owners and their defaults;
# - derive how long a transaction must be allowed to stay open;
# - tell which traffic loses records silently, and which traffic makes a noise;
# - judge a store by five demands of two-phase commit.
#
# The broker is a real Kafka: yours, if `LABKIT_KAFKA` names one, or else a private one that starts in a few seconds. (The first time, it fetches Kafka itself: 44 MB.) Where a cell works on a simulator, the text says so.

# %% tags=["parameters"]
timeout = 5  # seconds that a transaction may be open, in the sample configuration

# %% [markdown]
# ## Three timeouts, three owners
#
# | what is limited | property | who sets it | default |
# |---|---|---|---|
# | how long a checkpoint may take | `execution.checkpointing.timeout` | the Flink job | 10 minutes |
# | how long a transaction may be open | `transaction.timeout.ms` | the producer; in Flink, the connector | 1 minute; in Flink's `KafkaSink` 1 hour |
# | which timeout a producer may ask for | `transaction.max.timeout.ms` | the broker | 15 minutes |
#
# The **transaction timeout** is the second one: when it is over, the broker aborts the transaction, pre-committed or not. Two
# settings of the job come into it as well. One is `execution.checkpointing.interval`, which is off by default. The other is
# `execution.checkpointing.min-pause`, the least time from the end of a checkpoint to the start of the next (0 by default).
#
# Flink's sink asks for an hour, the broker allows a quarter of one. This producer asks a real broker:

# %% tags=["nbval-check-output"]
from labkit import lab

kafka = lab.kafka()
kafka.topic(timeout=3600).begin("orders")

# %% [raw] tags=["expected"]
# orders: refused, a transaction timeout of 3600 s is more than the broker's maximum: shorten it, or raise transaction.max.timeout.ms there.

# %% [markdown]
# The broker refuses the producer when it starts. (The sentence is the lab's, the refusal is Kafka's: `INVALID_TRANSACTION_TIMEOUT`.) Nobody loses data here, and nobody can miss it. Then somebody lowers the sink's timeout until the broker accepts it, and that mistake is quiet.
#
# ## A sample configuration
#
# Many course notes show these settings. A transaction may be open for 5 s. A checkpoint is asked for every 10 s and may take 5 s. Between two there is a pause of at least 15 s, which wins over the interval. (The first trial leaves it out.) Three rules say what follows:
#
# - The clock of a transaction starts with its **first record**, not with its beginning and not with its pre-commit.
# - A write into an aborted transaction is refused. The job then starts again from its last checkpoint.
# - A commit of an aborted transaction is refused, too. Flink's sink logs that error, counts it (`failedCommittables`) and goes on.
#
# The same job gets three kinds of traffic between two barriers. *steady* has a record all the time. *burst* has a few right
# after the barrier, then silence. *late* has as many just before the next barrier.

# %%
lab.ask("09b-traffic")

# %% tags=["nbval-check-output"]
trials = lab.try_timeouts(interval=10, transaction=timeout)  # really waits: about half a minute
trials

# %% [raw] tags=["expected"]
# traffic  failed writes  commit     lost
# steady   2              -          0
# burst    0              lost       3
# late     0              committed  0

# %% tags=["nbval-check-output"]
lab.answer("09b-traffic", [kind for kind, trial in trials.items() if trial.verdict.lost])

# %% [raw] tags=["expected"]
# It was burst.
# After the burst nobody wrote, so nobody met a refusal. The checkpoint was complete, and only the commit was refused.

# %% [markdown]
# Three outcomes:
#
# - *steady*: the next write was refused. The job started again from its checkpoint, and again. Nothing is lost, and nothing gets done,
#   until somebody gives the job a longer timeout.
# - *burst*: the pre-commit had nothing to send, so nobody noticed. The checkpoint was complete, and the commit came too late.
#   The broker refuses this producer as it refuses a zombie: the producer is *fenced*.
# - *late*: the clock had just started, so all went well.
#
# The quiet one is dangerous. The broker and the job said about it:

# %% tags=["nbval-check-output"]
trials.steps("burst")

# %% [raw] tags=["expected"]
# burst: at-most-once
#   attempt 1: the first record opens the transaction
#   attempt 1: Kafka has aborted the transaction, which was open for more than 5 s
#   attempt 1: pre-committed; the checkpoint is complete, at offset 3
#   attempt 1: commit: lost
#   not exactly-once, because 3 of 3 records got lost, first offset 0 ('record' = 0): no effect of it is left; at-most-once still holds

# %% [markdown]
# A broker looks for such transactions every 10 s by default (`transaction.abort.timed.out.transaction.cleanup.interval.ms`). So a
# timeout is a time after which it *may* abort. To be repeatable, the trial waits for the abort.
#
# > **Found in the wild.** "Ignoring this exception might hide some bugs/issues, because instead of failing we might have a semi silent (with a
# > warning) data loss." So wrote, in 2017, the author of the change that made Flink's Kafka sink go on
# > ([apache/flink#5030](https://github.com/apache/flink/pull/5030)). In 2022 a user's log showed a transaction that "has been open for 42551680 ms",
# > with "the transaction timeout of 10000 ms" ([streamnative/kop#1333](https://github.com/streamnative/kop/issues/1333)).
#
# ## Is an error better than a line in the log?
#
# The job could take the refused commit as an error, as Flink's older class `TwoPhaseCommitSinkFunction` does by default. (The *Kafka* sink on that class, up to connector 3.4, raised the error once. After the restart it only logged it, so records were lost anyway.) Or the sink could commit before
# the decision: commit-then-log, Spark's order. Log-then-commit is Flink's. A simulated store may drop one transaction, and nobody
# crashes. We search every schedule, for both orders and both reactions.

# %%
lab.ask("09b-error")

# %% tags=["nbval-check-output"]
searches = {}
for order, name in {"decision": "log-then-commit", "engine": "commit-then-log"}.items():
    for dropped, reaction in {"ignore": "logs the error", "raise": "raises the error"}.items():
        searches[f"{name}, {reaction}"] = lab.explore("pipeline", order=order, dropped=dropped, expiries=1, crashes=0)
lab.compare(searches)

# %% [raw] tags=["expected"]
#                                    guarantee      states  broken
# log-then-commit, logs the error    at-most-once   112     no_loss, no_fractured_read
# log-then-commit, raises the error  exactly-once   107     ends
# commit-then-log, logs the error    at-most-once   82      no_loss, no_fractured_read
# commit-then-log, raises the error  at-least-once  88      no_duplicate

# %% tags=["nbval-check-output"]
lab.answer("09b-error", list(searches["log-then-commit, raises the error"].violated))

# %% [raw] tags=["expected"]
# It was: It restarts for ever.
# Each restart takes the same checkpoint, and its transaction is gone. So the new job meets the same refusal.

# %% tags=["checked"]
assert [list(search.violated) for search in searches.values()] == [
    ["no_loss", "no_fractured_read"],
    ["ends"],
    ["no_loss", "no_fractured_read"],
    ["no_duplicate"],
]

# %% [markdown]
# None of the four is clean. If the sink only logs the refused commit, rows are lost in either order, because the batch counts
# as done. If it raises the error, the orders part ways. In Flink's, each restart is refused again, for ever. (Such a run delivers
# nothing more, so *exactly-once* is about the runs that end.) In Spark's, the batch just runs again, and nothing is lost. But rows come twice if one of its two tasks had committed before the other failed.
#
# In Flink's order no *automatic* reaction repairs a timeout that is too short. A person can: the input log
# still has the records, between the offsets of two checkpoints. Replay that range once, with ids, so readers can drop what survived.
#
# ## How long is long enough?
#
# Follow one transaction from its first record, right after a barrier. The next checkpoint starts after the interval, and takes up to its own timeout. Then the job may crash before it commits, and be down. The simulator finds the smallest timeout by search, in **ticks** (a tick is one step of its clock):


# %% tags=["nbval-check-output"]
def smallest(job):
    """The first timeout, in ticks, with which no order of steps loses a record."""
    settings = {"partitions": 1, "isolation": "read_committed", "ticks": 9, "crashes": 0}
    settings.update(job)
    ticks = 1
    while "no_loss" in lab.explore("kafka_log", timeout=ticks, **settings).violated:
        ticks += 1
    return ticks


jobs = {
    "interval 2, checkpoint 1": {"records": 1, "interval": 2},
    "and down for 2": {"records": 1, "interval": 2, "crashes": 1, "downtime": 2},
    "and one checkpoint may expire": {"records": 1, "interval": 2, "lapses": 1},  # lapses: how many
    "interval 1, checkpoint 3": {"records": 2, "interval": 1, "checkpoint_timeout": 3},  # two checkpoints in a row
}
{name: smallest(job) for name, job in jobs.items()}

# %% [raw] tags=["expected"]
# {'interval 2, checkpoint 1': 4,
#  'and down for 2': 6,
#  'and one checkpoint may expire': 6,
#  'interval 1, checkpoint 3': 7}

# %% [markdown]
# Each timeout must be above the job's sum:
#
# - 2 + 1 = 3, so 4 is enough.
# - 2 + 1 + 2 = 5, so 6.
# - 2 + 2 + 1 = 5, so 6. The first checkpoint expires, and its transaction waits for the next checkpoint, one interval later.
# - 3 + 3 = 6, so 7. A checkpoint starts only when the one before is over, so the longer of interval and checkpoint counts.
#
# Without a pause, **needed = (tolerated + 1) × max(interval, checkpoint) + checkpoint + downtime**. A transaction can be open as long
# as that, so its timeout must be longer.
# *tolerated* is `execution.checkpointing.tolerable-failed-checkpoints`. Its default is 0: then an expired checkpoint makes the job fail over, and
# the job goes back to its last checkpoint. That restart
# aborts the pre-committed transaction, and its records are read again. With a higher number the job goes on. The
# transaction of the expired checkpoint stays pre-committed, and commits with the next checkpoint. A sink that aborted it would lose rows, because the source does not go back:

# %% tags=["nbval-check-output"]
lab.compare(rides_along=lab.replay("pipeline.expired_checkpoint"), aborted=lab.replay("pipeline.expired_and_aborted"))

# %% [raw] tags=["expected"]
#              guarantee     lost  twice  jumps back  rows
# rides_along  exactly-once  0     0      0           3
# aborted      at-most-once  1     0      0           2

# %% [markdown]
# Back to the sample: interval 10 s, checkpoint timeout 5 s, no checkpoint
# tolerated, no downtime. The pause of 15 s counts from the end of a checkpoint. So the next checkpoint starts after the
# interval, or after checkpoint and pause, whichever is longer.

# %%
lab.ask("09b-needed")

# %%
sample = lab.timeouts(interval=10, pause=15, checkpoint=5, transaction=timeout)
sample

# %% tags=["nbval-check-output"]
lab.answer("09b-needed", sample.needed)

# %% [raw] tags=["expected"]
# It was 25.
# The next checkpoint starts 5 + 15 = 20 s after the one before, which is more than 10 s. It takes up to 5 s more.

# %% [markdown]
# So 5 s are too few. The pause decides: without it the sum would be 10 + 5 = 15 s. With 60 s the job is
# safe. Does it stay safe if a restart may take 60 s?

# %%
restart = lab.timeouts(interval=10, pause=15, checkpoint=5, transaction=60, downtime=60)
restart

# %% tags=["checked"]
assert (sample.fit, sample.needed) == ("can lose data", 25)
assert (restart.fit, restart.needed) == ("can lose data", 85)
assert lab.timeouts(interval=10, pause=15, checkpoint=5, transaction=60).fit == "safe"
defaults = lab.timeouts(interval=60, checkpoint=600, transaction=900)  # Flink 2 and Kafka 4, whatever the interval
assert (defaults.fit, defaults.needed) == ("can lose data", 1200)
assert lab.timeouts(interval=10, pause=15, checkpoint=5, transaction=3600).fit == "refused at start"

# %% [markdown]
# The restart counts in full: 85 s.
#
# And the defaults? A checkpoint may take 10 minutes, so with any interval up to that 10 + 10 = 20 minutes are needed, and the broker allows 15. **Flink's default checkpoint timeout
# and Kafka's default maximum cannot be safe together**: shorten the one or raise the other.
#
# > **You will read:** "*set the transaction timeout to 5 s, with a checkpoint every 10 s and a pause of 15 s*". That can
# > lose data without a crash. The timeout must be longer than *needed*, and there the pause makes that 25 s.
#
# ## The end of the input
#
# An input may end. The last rows lie behind the last barrier: if the job stops there, no later checkpoint commits them. A
# simulated query has a similar gap: it stops right after the decision on its last batch, and before the sink is told:

# %% tags=["nbval-check-output"]
lab.compare(stops_at_once=lab.replay("pipeline.abrupt_end"), tells_the_sink_first=lab.simulate(sink="two_phase"))

# %% [raw] tags=["expected"]
#                       guarantee     lost  twice  jumps back  rows
# stops_at_once         unknown       0     0      0           0
# tells_the_sink_first  exactly-once  0     0      0           3

# %% [markdown]
# No row, and *unknown*: the transactions are prepared, and nobody has ended them. The rows are
# not lost yet, and nobody can say whether they will come. In Kafka they are lost when the transaction timeout is over. Flink takes a final checkpoint when its input ends, and its tasks
# wait for it (since 1.14, by default since 1.15). A job that stops or dies before it, and is never restarted, leaves its last transaction open.
#
# ## May I use this store?
#
# "The new store has transactions", says its brochure. Is that enough? Five demands that a brochure should answer:
#
# | demand | files | PostgreSQL ([08](08_postgres.ipynb)) | Kafka ([09](09_kafka.ipynb)) | a store that breaks it |
# |---|---|---|---|---|
# | 1 nothing is visible before the commit | a staging folder | yes | at `read_committed` | shows rows that are aborted later |
# | 2 open for a whole interval | yes | unless a session timeout is set | until the transaction timeout | lets no batch finish: *steady* |
# | 3 pre-committed, it waits for the commit, across a restart | until somebody cleans up | yes, with its locks | until the transaction timeout | loses rows: *burst* |
# | 4 another process can finish it | yes, a path | yes, by name | yes, but no public API | loses what was decided |
# | 5 a second commit changes nothing | a renamed file counts as done | an error; a marker row tells | yes, with an id for each checkpoint | stops recovery, or commits the next transaction |
#
# Three more demands are often left out: recovery finds open transactions that no checkpoint names, the store refuses zombies, and while one transaction waits, the next can be open.
#
# ## Your turn
#
# **Simulated**, so that you choose each step: *lose a record although its checkpoint is complete.* A transaction expires after
# one tick, and two ticks may pass. Then find the last moment at which the same tick does no harm. `?` shows the keys.

# %%
steering = lab.explorer("kafka_log", partitions=1, ticks=2, crashes=1)
steering

# %%
lab.replay(steering.trace)


# %% tags=["exercise"]
# exercise 09b-timeout
def transaction_timeout(interval, checkpoint, tolerated, downtime, pause):
    """For how many ticks a transaction must be allowed to be open."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 09b-timeout
def transaction_timeout(interval, checkpoint, tolerated, downtime, pause):
    """For how many ticks a transaction must be allowed to be open."""
    # The worst path: tolerated failures and the checkpoint itself, its own duration, the downtime; longer by one tick.
    return (tolerated + 1) * max(interval, checkpoint + pause) + checkpoint + downtime + 1


# %% tags=["check", "nbval-check-output"]
lab.check("09b-timeout")

# %% [raw] tags=["expected"]
# 09b-timeout: not attempted (4 points); lab.hint("09b-timeout") gives a hint.


# %% tags=["exercise"]
# exercise 09b-demands
def broken(store, job):
    """The demands, from 1 to 5, that the store breaks for this job."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 09b-demands
def broken(store, job):
    """The demands, from 1 to 5, that the store breaks for this job."""
    # Each demand is one comparison of what the store does with what this job needs.
    waits = job["checkpoint"] + job["downtime"]
    found = []
    if store["shows"] == "everything":
        found.append(1)
    if store["open"] is not None and store["open"] <= job["interval"]:
        found.append(2)
    if store["sealed"] is not None and store["sealed"] <= waits:
        found.append(3)
    if store["ends"] == "its session":
        found.append(4)
    if store["again"] != "nothing":
        found.append(5)
    return found


# %% tags=["check", "nbval-check-output"]
lab.check("09b-demands")

# %% [raw] tags=["expected"]
# 09b-demands: not attempted (4 points); lab.hint("09b-demands") gives a hint.

# %% [markdown]
# ## Check yourself
#
# **1. The transaction timeout is one minute. Nothing has been written for two minutes, then a record comes, and the barrier three
# seconds later. What happens?**
#
# <details><summary>a) The transaction has expired.</summary>Its clock starts with the first record, so it is three seconds
# old.</details>
# <details><summary>b) It is committed.</summary>Yes, as <i>late</i> above.</details>
#
# **2. The metric `failedCommittables` says 1. What do you do? (Two are right.)**
#
# <details><summary>a) Replay the lost offsets from the input log.</summary>Yes: they lie between that checkpoint and the one before.</details>
# <details><summary>b) Restart from the newest checkpoint.</summary>It says that the records are done.</details>
# <details><summary>c) Restart from an older, retained checkpoint.</summary>Yes, if readers can bear the rest twice. Then choose a longer timeout.</details>
#
# **3. The broker allows 15 minutes. The job is down for an hour, after its checkpoint was stored. What happens to the rows of that
# checkpoint?**
#
# <details><summary>a) The restarted job writes them again.</summary>It starts behind them: the checkpoint's offsets say that they
# are done.</details>
# <details><summary>b) They are lost, or the job cannot start.</summary>Yes: lost if the refused commit is only logged, an endless
# error if it raises.</details>
# <details><summary>c) Nothing; they were pre-committed.</summary>A pre-commit binds only a store that keeps its promise.</details>
#
# ## What this is called in Flink, Spark and Kafka
#
# | here | Flink | Spark | Kafka |
# |---|---|---|---|
# | interval | `execution.checkpointing.interval` (off) | `trigger(processingTime=...)` | - |
# | checkpoint timeout | `execution.checkpointing.timeout` (10 min) | - (a batch takes as long as it takes) | - |
# | pause | `execution.checkpointing.min-pause` (0) | - | - |
# | tolerated | `execution.checkpointing.tolerable-failed-checkpoints` (0) | - (a failed batch fails the query) | - |
# | transaction timeout | property `transaction.timeout.ms` of `KafkaSink` (1 h) | - (Spark's Kafka sink has no transactions) | `transaction.timeout.ms` of the producer (60 s) |
# | broker's maximum | - | - | `transaction.max.timeout.ms` (15 min) |
# | a refused commit is logged and counted | `KafkaCommitter` (5.0): `signalFailedWithKnownReason` | - | `PRODUCER_FENCED`, `INVALID_TXN_STATE` |
# | a refused commit raises | 1.x `TwoPhaseCommitSinkFunction`; on recovery `ignoreFailuresAfterTransactionTimeout()` swallows it | - | - |
# | the final checkpoint | since 1.14, by default since 1.15 | - (the last batch commits before its `commits/N`) | - |
#
# ## On Monday
#
# - Write down six numbers of your job: interval, pause, checkpoint timeout, tolerated failures, longest restart, transaction
#   timeout. Then ask: `labkit timeouts --interval 10 --checkpoint 5 --transaction 60`.
# - Look up the broker's `transaction.max.timeout.ms` before you raise the sink's.
# - Alert on `failedCommittables` above 0 (Flink 1.19 and newer), and read the job's log then. Records may be lost, and the errors have several names: fenced,
#   invalid state, unknown producer id. A zombie, or a recovery that reuses transactional ids (Flink's `POOLING`), is fenced without any loss; so compare input and topic.
# - Agree with operations how long a job may be down. That time is in the sum.
#
# ## Closing the ticket
#
# > **Ticket 12, closed.** Flink's default of an hour had been refused, so somebody had set the broker's 15 minutes. A transaction could be open for 20. The orders are still
# > in the input log, between the offsets of two checkpoints. We replayed that range into the topic, and readers dropped
# > by order id what had survived. The checkpoint timeout is five minutes now, and `failedCommittables` above 0 rings
# > the pager.
#
# ## Sources
#
# Apache Flink: `CheckpointingOptions` (the defaults) and `CheckpointFailureManager` (which failures count). Its Kafka connector:
# `KafkaSinkBuilder` (one hour), `KafkaCommitter` (5.0), and `FlinkKafkaProducer.recoverAndCommit` (3.4). Apache Kafka: `TransactionCoordinator` (when the clock
# starts, how often the broker looks) and
# [KIP-98](https://cwiki.apache.org/confluence/display/KAFKA/KIP-98+-+Exactly+Once+Delivery+and+Transactional+Messaging).
#
# Next: [09c, who owns a partition?](09c_groups.ipynb)
