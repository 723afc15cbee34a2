# ---
# jupyter:
#   labkit:
#     needs: [04_barriers, 05_two_phase_commit, 07_crash_spark]
#     slow: true
# ---

# %% [markdown]
# # When does a reader of Kafka see a record?
#
# > **Ticket 11** (invented). *From the dashboard's team:* "Nothing new for forty minutes. Consumer lag is 0, the job
# > reports one commit after the other, and `kafka-console-consumer` shows fresh records. Have you lost our data?"
#
# The shop's words arrive in Kafka, and its counts go back into Kafka, in transactions. Some records a reader must never
# see. The rest should not be late.
#
# {head}
#
# You will be able to
#
# - find out who holds up a reader that gets nothing,
# - say where a restarted job reads on, and what the offsets of a consumer group are for.
#
# This is a real Kafka: yours, if `LABKIT_KAFKA` names one, or a private one that ends with this
# notebook's kernel. (The first time, it fetches Kafka itself: 44 MB.)

# %%
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError
from labkit import lab

kafka = lab.kafka()

# %% [markdown]
# ## Two kinds of readers
#
# Kafka keeps records in a **topic**, a log with a name. A topic has one or more **partitions**, each a log of its own, in which every record has an offset.
# The server is a **broker**; a writer is a producer, and a reader is a consumer.
#
# A producer may put records into a transaction, under a **transactional id**: a name of your choice that a restarted program takes again.
# Here a producer writes *hello*, and does not commit yet:

# %%
topic = kafka.topic().name
producer = KafkaProducer(bootstrap_servers=kafka.address, transactional_id=f"{topic}.shop")
producer.init_transactions()
producer.begin_transaction()
producer.send(topic, b"hello")
producer.flush()


def read(isolation_level):
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=kafka.address,
        isolation_level=isolation_level,
        auto_offset_reset="earliest",  # from the first record; more of it below
        consumer_timeout_ms=1500,  # the loop ends when nothing comes for so long
    )
    words = [record.value.decode() for record in consumer]
    consumer.close()
    return words


# %% [markdown]
# A reader chooses its **isolation level**. **`read_uncommitted`** gives every record as soon as the broker has it.
# **`read_committed`** gives records of committed transactions, and records that were written without a transaction. The default is the first in Java and kafka-python (used here), the second in librdkafka (confluent-kafka).

# %% tags=["nbval-check-output"]
{"read_uncommitted": read("read_uncommitted"), "read_committed": read("read_committed")}

# %% [raw] tags=["expected"]
# {'read_uncommitted': ['hello'], 'read_committed': []}

# %% [markdown]
# The first reader has *hello*, although nothing is decided. Now the producer aborts, and both read again:

# %% tags=["nbval-check-output"]
producer.abort_transaction()
{"read_uncommitted": read("read_uncommitted"), "read_committed": read("read_committed")}

# %% [raw] tags=["expected"]
# {'read_uncommitted': ['hello'], 'read_committed': []}

# %% [markdown]
# `read_uncommitted` still gives *hello*. An abort removes nothing from the log: it adds a **transaction marker**, a small entry that says "aborted", and `read_committed`
# skips what it covers. A commit adds one, too. Each takes an offset.
#
# A second producer takes the same transactional id, as a restarted program would. The first one has written *world* and then wants to commit:

# %% tags=["nbval-check-output"]
producer.begin_transaction()
producer.send(topic, b"world")
producer.flush()
successor = KafkaProducer(bootstrap_servers=kafka.address, transactional_id=f"{topic}.shop")
successor.init_transactions()
try:
    producer.commit_transaction()
except KafkaError as error:
    print(type(error).__name__)
read("read_committed")

# %% [raw] tags=["expected"]
# ProducerFencedError
# []

# %% [markdown]
# This is *fencing*: the broker refuses a writer that was replaced. `init_transactions` raises the **epoch** of the transactional id, a number that only grows; an older one is refused.
# It also *aborts* the open transaction of that id: *world* is not there. So recovery must commit what was decided *before* it calls `init_transactions` for that id
# (`lab.show("kafka_log.initialised_first")` loses a record).
#
# ## Ten steps from topic to topic
#
# Now a whole job: it copies *hello* and *world* from one topic to another, in log-then-commit order. This real job stops after each step so that both readers can look. *hello* goes into transaction 0; then comes a barrier; *world* goes into transaction 1. Each has an id of its own, so both can be open.
#
# | step | what happens | who does it in Flink |
# |---|---|---|
# | 1 | the job starts; its checkpoint says where | JobManager, source |
# | 2 | it reads *hello* | source |
# | 3 | it initialises the transactional id of transaction 0 | sink's writer |
# | 4 | it writes *hello*; the first record opens the transaction | sink's writer |
# | 5 | the barrier: it flushes, so that the broker has everything (pre-commit) | sink's writer; the task acknowledges |
# | 6 | it initialises the next id, and writes *world* into transaction 1 | sink's writer |
# | 7 | it stores its checkpoint: the next offset, and the handle of transaction 0. **The decision** | JobManager |
# | 8 | it asks for the commit; the coordinator notes it in its own log, and answers | sink's committer, after the JobManager's notice |
# | 9 | the coordinator writes the transaction marker into the topic | Kafka |
# | 10 | the job tells Kafka how far it has read | source |
#
# The **transaction coordinator** is the part of the broker that keeps account of transactions.

# %%
lab.ask("09-step")

# %% tags=["nbval-check-output"]
steps = lab.ten_steps(kafka)
steps

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
# 10  tells its group the offset                    1     hello world       hello

# %% tags=["nbval-check-output"]
lab.answer("09-step", steps.first("hello", "read_committed"))

# %% [raw] tags=["expected"]
# It was 9.
# A reader at read_committed needs the transaction marker in the topic. The decision (7) is the job's own, and the answer to the commit (8) comes before the marker is written.

# %% [markdown]
# *open* lists the transactions that the coordinator calls unfinished. Nothing changes there at step 5: for Kafka a pre-committed transaction is an open one. **Kafka has no vote.**
# Step 8 has question marks: the answer comes *before* the marker, so a look may find either.
# *world* waits for the next checkpoint, so a reader at `read_committed` lags by up to a checkpoint interval, and the checkpoint's own time.
#
# ### What recovery needs
#
# The handle in the checkpoint holds three things: the transactional id, the producer id and the epoch. (The broker chose the producer id.) With them any process can send the request to commit, which Kafka calls `EndTxn`.
# Let the writer go away. Recovery asks for the commit, dies before it hears the answer, and asks again:

# %% tags=["nbval-check-output"]
copy = kafka.topic()
copy.begin("t")  # a transaction; hang_up: its writer goes away
lab.said(
    copy.write("t", "hello"),
    copy.pre_commit("t"),
    copy.hang_up("t"),
    copy.ask_to_commit("t"),
    copy.ask_to_commit("t"),
)

# %% [raw] tags=["expected"]
# t: written
# t: pre-committed
# t: its writer is gone
# t: the coordinator answers NoError
# t: the coordinator answers NoError

# %% tags=["checked"]
assert copy.commit("t") == "t: already committed"  # and its marker is in the log
assert copy.look().committed == ["hello"]

# %% [markdown]
# Both answers are `NoError`: the second commit changes nothing. But this transaction has its own id. An ordinary producer has **one**
# id for all its transactions, so a late second commit meets whatever is open under that id by then. Two **simulated** jobs:

# %% tags=["nbval-check-output"]
lab.compare(an_id_each=lab.replay("kafka_log.late_commit"), one_id=lab.replay("kafka_log.reused_id"))

# %% [raw] tags=["expected"]
#             guarantee      lost  twice  jumps back  rows
# an_id_each  exactly-once   0     0      0           2
# one_id      at-least-once  0     1      0           3

# %% tags=["checked"]
assert lab.replay("kafka_log.reused_id_with_new_epochs").verdict.guarantee == "exactly-once"

# %% [markdown]
# With one id the late request committed the next, undecided transaction. A crash then repeated its record.
#
# > **Found in the wild.** A late commit "can commit or abort a different, later transaction. Committed transactions can actually be lost." Jepsen reproduced it in
# > 2024 "in both Bufstream and Kafka itself" ([users' list](https://www.mail-archive.com/users@kafka.apache.org/msg43073.html),
# > [report](https://jepsen.io/analyses/bufstream-0.1.0)). Remedies: an id for each checkpoint, or for each transaction an epoch
# > (KIP-890, the default with brokers and clients from 4.0 on).
#
# **No public producer API** commits another producer's transaction: Flink sets the three private values by reflection
# (`FlinkKafkaInternalProducer.resumeTransaction`), and the lab sends `EndTxn` itself. KIP-939 is to make this official; its transactions never expire.
#
# ## Who waits for whom?
#
# A reader at `read_committed` gets records in the order of their offsets. How far may it read while a transaction is open?
#
# Three writers share a partition. *slow* writes *one* into a transaction and goes away. Somebody writes *two* without
# any transaction. *quick* writes *three*, and commits.

# %% tags=["nbval-check-output"]
shared = kafka.topic()
lab.said(
    shared.begin("slow"),
    shared.write("slow", "one"),
    shared.hang_up("slow"),
    shared.plain("two"),
    shared.begin("quick"),
    shared.write("quick", "three"),
    shared.pre_commit("quick"),
    shared.commit("quick"),
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

# %%
lab.ask("09-waits")

# %%
waiting = shared.look()
waiting

# %% tags=["nbval-check-output"]
lab.answer("09-waits", len(waiting.committed))

# %% [raw] tags=["expected"]
# It was 0.
# The first open transaction begins at offset 0, with slow's record. The reader stops there, and the two other records lie after it.

# %% [markdown]
# A reader at `read_committed` stops at the **last stable offset**: where the first open transaction of the partition begins, or at the end if none is open. Here that is 0: *slow* holds up everybody. Even what never was in a transaction waits behind its record.
# That lasts until somebody aborts its transaction:

# %% tags=["nbval-check-output"]
lab.said(shared.abort("slow"), shared.look())

# %% [raw] tags=["expected"]
# slow: aborted
#                   can read up to             gets
# read_uncommitted  5, the end                 one two three
# read_committed    5, the last stable offset  two three
# open transactions: none

# %% tags=["checked"]
assert shared.look().committed == ["two", "three"]

# %% [markdown]
# Nothing was lost. Unlike PostgreSQL, Kafka aborts a transaction that is open for too long, pre-committed or not: see [09b](09b_timeouts.ipynb).
#
# ## Where does a restarted job read on?
#
# A **consumer group** is a name under which Kafka stores offsets: how far the consumers of that name have read. The copy job told its group the offset in step 10.
#
# The job copies two of four records and stops. Somebody sets the group's offset back to 0, or forward to 4. Then the job starts again.
# Once it looks into its checkpoint for where to read on; once it asks the group.

# %%
lab.ask("09-group")

# %%
copies = {
    "checkpoint, group set to 0": lab.copy_topic(kafka, trusts="checkpoint", group_says=0),
    "checkpoint, group set to 4": lab.copy_topic(kafka, trusts="checkpoint", group_says=4),
    "group, set to 0": lab.copy_topic(kafka, trusts="group", group_says=0),
    "group, set to 4": lab.copy_topic(kafka, trusts="group", group_says=4),
}
lab.compare(copies)

# %% tags=["nbval-check-output"]
lab.answer("09-group", [name for name, copied in copies.items() if copied.verdict.guarantee == "exactly-once"])

# %% [raw] tags=["expected"]
# It was: checkpoint, group set to 0, checkpoint, group set to 4.
# The checkpoint said 2, whatever the group said. The job that asked its group read two records again when it was told 0, and skipped two when it was told 4.

# %% tags=["nbval-check-output"]
{name: copied.started_at for name, copied in copies.items()}

# %% [raw] tags=["expected"]
# {'checkpoint, group set to 0': 2,
#  'checkpoint, group set to 4': 2,
#  'group, set to 0': 0,
#  'group, set to 4': 4}

# %% [markdown]
# These are the offsets at which each job read on.
#
# > **You will read:** "*the consumer must commit its offsets to Kafka with each checkpoint, for correctness*". A job
# > that recovers from its checkpoint never asks for them. They are for monitoring: a dashboard sees how far the job is. Spark's source commits none. For exactly-once, a job that
# > *does* rely on the group (Kafka Streams, and every consume-transform-produce loop without a checkpoint) must put them into
# > the transaction of its records.
#
# ### And without a checkpoint?
#
# A consumer that has no stored offset asks its setting **`auto.offset.reset`**. The default, `latest`, begins after the last record, so everything
# that was there before is missed; `earliest` begins with the first. Spark does not use this setting: its option `startingOffsets` decides (default for a stream: `latest`), and only for a query **without** a checkpoint. Afterwards the checkpoint decides alone.
#
# ## Now under Spark
#
# A real PySpark job reads *hello*, *world*, *hello* from one topic and writes counts into another, with `two_phase`. The input also holds an aborted record, which the source skips. (In yours, set the option `kafka.isolation.level` to `read_committed`.)
#
# We kill the job by SIGKILL and change something before its restart:
#
# | run | killed | before the restart |
# |---|---|---|
# | the group lies | after the decision | the group, to which this job commits its offsets, is set to the end |
# | a new partition | after the decision | the topic gets a second partition, with records in it |
# | too late | after the decision | Kafka has aborted what was open for 8 s |
# | commit-then-log, too late | before any commit | the same |

# %%
decided = {"at": "engine.after_commit_log", "job": "kafka", "sink": "two_phase", "store": "kafka"}
batches = {"records_per_batch": 3, "later_records_per_batch": 20}
undecided = {"at": "sink.after_pre_commit", "job": "kafka", "sink": "two_phase", "store": "kafka", "order": "engine"}
runs = lab.crash_each(
    {
        "the group lies": decided | {"between": "falsify-group", "commit_group": True, "records_per_batch": 2},
        "a new partition": decided | {"between": "add-partition", "input": lab.TWELVE_WORDS} | batches,
        "too late": decided | {"between": "expire"},
        "commit-then-log, too late": undecided | {"between": "expire"},
    }
)
lab.compare(runs)

# %% tags=["nbval-check-output"]
{name: runs[name].crashes[0]["source"] for name in ("the group lies", "a new partition")}

# %% [raw] tags=["expected"]
# {'the group lies': {'between': 'falsify-group', 'group': {'0': 5}},
#  'a new partition': {'between': 'add-partition', 'ends': {'0': 11, '1': 5}}}

# %% tags=["checked"]
assert all(run.crashes[0]["signal"] == 9 for run in runs.values())
assert [run.verdict.guarantee for run in runs.values()] == 2 * ["exactly-once"] + ["at-most-once", "exactly-once"]
assert [len(run.crashes[0].get("server", {}).get("aborted", [])) for run in runs.values()] == [0, 0, 2, 2]

# %% [markdown]
# In the first two rows the checkpoint said where to read on. The group's lie, 5, changed nothing. (5 is the end: three records, the aborted one, and its marker.)
# The new partition was read from its **beginning**. It must be: a reader that begins at its end misses the records (here three) that were written before.
# Spark and Flink's `KafkaSource` do so by themselves.
#
# The last two rows had the same timeout. With `commits/0` written (log-then-commit, the default here), nobody ran the batch again, and what Kafka had aborted was **lost**.
# The lab's recovery reported that and went on, like Flink's sink. Without `commits/0` nothing was decided, and the batch ran again. That does not make commit-then-log better:
# there, a crash just *after* the commit doubles this sink's rows ([07](07_crash_spark.ipynb)).
#
# These sinks are the lab's. Spark's own `format("kafka")` is at-least-once, so give every record an id, such as its partition and offset in the input: with it, readers can drop repeats.

# %% tags=["exercise"]
# exercise 09-predict
predicted_09 = {"records_while_down": ..., "records_in_the_end": ...}  # two numbers

# %% tags=["solution"]
# exercise 09-predict
predicted_09 = {"records_while_down": 1, "records_in_the_end": 2}

# %% tags=["check", "nbval-check-output"]
lab.check("09-predict")

# %% [raw] tags=["expected"]
# 09-predict: not attempted (not graded); write it, and the run unlocks.


# %% tags=["exercise"]
# exercise 09-visible
def visible(log):
    """The offsets that a reader at read_committed gets."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 09-visible
def visible(log):
    """The offsets that a reader at read_committed gets."""
    # Up to the first open transaction, in the order of offsets: what is plain, or ends in a commit.
    found = []
    for offset, (what, name) in enumerate(log):
        if what == "plain":
            found.append(offset)
        if what == "write":
            ends = [each for each, whose in log[offset:] if whose == name and each != "write"]
            if not ends:
                return found
            if ends[0] == "commit":
                found.append(offset)
    return found


# %% tags=["check", "nbval-check-output"]
lab.check("09-visible")

# %% [raw] tags=["expected"]
# 09-visible: not attempted (4 points); lab.hint("09-visible") gives a hint.

# %% tags=["exercise"]
# exercise 09-offsets
offsets_answer = ...  # "a", "b", "c" or "d"

# %% tags=["solution"]
# exercise 09-offsets
offsets_answer = "d"

# %% tags=["check", "nbval-check-output"]
lab.check("09-offsets")

# %% [raw] tags=["expected"]
# 09-offsets: not attempted (not graded); lab.hint("09-offsets") gives a hint.

# %% [markdown]
# ## Check yourself
#
# **The commit of a decided transaction is refused, because Kafka has aborted it. What brings its records back?**
#
# <details><summary>a) A restart from that checkpoint.</summary>No. It meets the same refusal.</details>
# <details><summary>b) Nothing; they are gone.</summary>From the topic, yes. But the input log still has them.</details>
# <details><summary>c) A person, who replays the lost offsets.</summary>Yes: from the previous checkpoint to this one ([09b](09b_timeouts.ipynb)). Flink's sink goes
# on, and counts the loss in its metric <code>failedCommittables</code>.</details>
#
# ## What this is called in Flink, Spark and Kafka
#
# | here | Kafka | Flink | Spark |
# |---|---|---|---|
# | isolation level | `isolation.level`; the reader's; default `read_uncommitted` in Java | property of `KafkaSource` | option `kafka.isolation.level` |
# | where to begin without a checkpoint | `auto.offset.reset`, default `latest`; the consumer's | `setStartingOffsets`, default `earliest` | `startingOffsets`, default `latest` for streams |
# | new partition | - | `partition.discovery.interval.ms`, default 5 minutes since 1.18 | found by every batch |
# | transactional id | `transactional.id`; the producer's | `setTransactionalIdPrefix`, needed for exactly-once | - |
# | handle | id, producer id, epoch | committable of `KafkaCommitter` | - |
# | guarantee of the sink | - | `KafkaSink`, default none (in SQL at-least-once); `EXACTLY_ONCE` by `setDeliveryGuarantee` | at-least-once |
#
# ## On Monday
#
# - Look for `isolation.level` in **every** reader of a transactional topic; if it is absent, look up the client's default.
# - If a reader stands still: `kafka-transactions.sh describe-producers --topic T --partition P` shows who holds it up, by producer id and start offset. `list` has the transactional id that `describe` needs; `abort` takes the start offset.
# - A group's lag is for dashboards; the checkpoint is the truth.
# - Set `startingOffsets` or `auto.offset.reset` on purpose, before the first start.
#
# ## Closing the ticket
#
# > **Ticket 11, closed.** Nothing is lost. Somebody's test had begun a transaction on that partition and died. Readers at `read_committed` stop in front of it. The dashboard shows the consumer's own lag (`records-lag`), counted up to that place, so 0; a lag counted to the end of the log would have grown. The console consumer reads uncommitted records by default. `kafka-transactions.sh describe-producers` named the producer, and after an
# > abort the dashboard had everything.
#
# Sources: [KIP-98](https://cwiki.apache.org/confluence/display/KAFKA/KIP-98+-+Exactly+Once+Delivery+and+Transactional+Messaging),
# [KIP-447](https://cwiki.apache.org/confluence/display/KAFKA/KIP-447%3A+Producer+scalability+for+exactly+once+semantics),
# [KIP-664](https://cwiki.apache.org/confluence/display/KAFKA/KIP-664%3A+Provide+tooling+to+detect+and+abort+hanging+transactions); [KIP-890](https://cwiki.apache.org/confluence/display/KAFKA/KIP-890%3A+Transactions+Server-Side+Defense) (late commits); KIP-939 (apache/kafka#19193, off by default);
# [FLIP-288](https://cwiki.apache.org/confluence/display/FLINK/FLIP-288:+Enable+Dynamic+Partition+Discovery+by+Default+in+Kafka+Source); Spark 4.2's Kafka guide.
#
# Next: [09b, what do three timeouts cost?](09b_timeouts.ipynb)
