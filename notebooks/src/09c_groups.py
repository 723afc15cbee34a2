# ---
# jupyter:
#   labkit:
#     needs: [02_delivery, 08_postgres, 09_kafka]
#     slow: true
# ---

# %% [markdown]
# # Who owns a partition while two consumers believe it?
#
# > **Ticket 13** (invented). *From support:* "Some customers were charged twice last night, seconds apart." *From the
# > payments team:* "Nothing has crashed. One consumer logged a `CommitFailedError`: Kafka refused its late commit. So the late one
# > has done no harm, has it?"
#
# {head}
#
# You will be able to
#
# - say what a consumer repeats or loses if it is killed, stopped, or only slow;
# - say what Kafka refuses to a consumer that was replaced, and what it cannot refuse;
# - put a fence where it counts, and judge how long a receiver must remember ids.
#
# Kafka and PostgreSQL are real, and so are the two consumers, SIGKILL and SIGSTOP.

# %%
from labkit import lab

# %% [markdown]
# ## Three places for a commit
#
# The topic has nine orders, 0 to 8, in one partition. In a consumer group ([09](09_kafka.ipynb)) a partition belongs to one member at a time. A **rebalance** deals out the partitions anew
# when members come or go. Each one begins a new **generation** of the group, with a larger number.
#
# `worker.poll()` returns the next orders, at most three. `worker.charge()` charges one customer: a row in a table, which stands for the card company. Three programs differ in when they commit the
# offset, which says where a successor goes on:


# %%
def commit_before(worker):
    worker.join()
    while orders := worker.poll():
        worker.commit()
        for order in orders:
            worker.charge(order)


def commit_after(worker):
    worker.join()
    while orders := worker.poll():
        for order in orders:
            worker.charge(order)
        worker.commit()


def auto_commit(worker):
    worker.join(enable_auto_commit=True)  # the default of Kafka's clients
    while orders := worker.poll():
        for order in orders:
            worker.charge(order)


# %% [markdown]
# Two processes run each program: A and B, in one group. A is killed when it has charged order 4. B gets the partition and does the rest.

# %% tags=["nbval-check-output"]
killed = lab.rebalance(commit_before, commit_after, auto_commit, kill="charged 4")
for name, outcome in killed.items():
    print(f"{name}: {outcome.charged}")

# %% [raw] tags=["expected"]
# commit_before: A 0 1 2 3 4, then B 6 7 8
# commit_after: A 0 1 2 3 4, then B 3 4 5 6 7 8
# auto_commit: A 0 1 2 3 4, then B 0 1 2 3 4 5 6 7 8

# %% tags=["checked"]
assert killed["commit_before"].verdict.lost == (5,)
assert killed["commit_after"].verdict.duplicate == (3, 4)

# %% [markdown]
# Commit before the work, and a kill loses an order: 5. Commit after it, and the successor repeats what was not committed: that is the
# familiar choice between at-most-once and at-least-once ([02](02_delivery.ipynb)). Auto commit looks at the clock, not at the work: a `poll` commits the offset when 5 s have passed (`auto.commit.interval.ms`). They had not, so B
# began at order 0.
#
# ## Stopped, not dead
#
# Kafka cannot see whether a consumer is dead, so two clocks decide:
#
# | setting | what must come in time | default | here |
# |---|---|---|---|
# | `session.timeout.ms` | a heartbeat, which a background thread sends | 45 s | 3 s |
# | `max.poll.interval.ms` | the next `poll` | 5 minutes | 4 s |
#
# A stopped process does neither: its virtual machine is moved, or its container gets no CPU. After 3 s the group gives its partition to B. Then A is woken and
# goes on in the middle of its loop. It is a zombie ([02](02_delivery.ipynb)): nobody has told it.

# %%
lab.ask("09c-stopped")

# %%
stopped = lab.rebalance(commit_before, commit_after, stop="charged 4")  # SIGSTOP, and SIGCONT when B has ended

# %% tags=["nbval-check-output"]
lab.answer("09c-stopped", len(stopped["commit_after"].verdict.duplicate))

# %% [raw] tags=["expected"]
# It was 3.
# B charged 3, 4 and 5 again, because A had committed offset 3. But order 5 was new when B charged it: A charged it a second time when it woke up.

# %% tags=["nbval-check-output"]
for name, outcome in stopped.items():
    print(f"{name}: {outcome.charged}")
lab.compare(stopped)

# %% [raw] tags=["expected"]
# commit_before: A 0 1 2 3 4, then B 6 7 8, then A 5
# commit_after: A 0 1 2 3 4, then B 3 4 5 6 7 8, then A 5
#                guarantee      lost  twice  jumps back  rows
# commit_before  exactly-once   0     0      1           9
# commit_after   at-least-once  0     3      2           12

# %% [markdown]
# A kill doubled two orders, a stop three: B repeated what A had done, and A repeated what B had done. With *commit_before* nothing is missing this time, but order 5 comes after 8.
# If 5 to 8 were new addresses of one customer, the oldest would win. Then A asked Kafka for its commit:

# %% tags=["nbval-check-output"]
print("A ended with", stopped["commit_after"].ends[0])
print("the group's offset:", stopped["commit_after"].offset)

# %% [raw] tags=["expected"]
# A ended with CommitFailedError
# the group's offset: 9

# %% [markdown]
# A commit carries the generation in which its sender was a member, and Kafka refuses an old one. So A could not set the group back from 9 to 6. That is a fence, around the *offset* alone: the charge
# went to somebody else, before the commit, and Kafka never saw it.
#
# Nor does a zombie hear at once that it was replaced. When we woke *auto_commit*, its client even handed out 6, 7 and 8, still in the old generation: it had fetched them before A was stopped.
# `max.poll.records` limits what a `poll` returns, but not what the client has in its memory.
#
# ### Only slow
#
# Now nobody is stopped. A waits inside of its loop, as for a slow database, and its background thread sends heartbeats. But the next `poll` is late, so the group goes on without A:

# %% tags=["nbval-check-output"]
slow = lab.rebalance(commit_after, auto_commit, slow="charged 4")
print("commit_after:", slow["commit_after"].charged)
for name, outcome in slow.items():
    print(f"{name}: A ended with {outcome.ends[0] or 'no error'}")

# %% [raw] tags=["expected"]
# commit_after: A 0 1 2 3 4, then B 3 4 5 6 7 8, then A 5
# commit_after: A ended with CommitFailedError
# auto_commit: A ended with no error

# %% tags=["checked"]
assert {0, 1, 2, 3, 4, 5} <= set(slow["auto_commit"].verdict.duplicate)

# %% [markdown]
# With *auto_commit*, B charged everything again from order 0, and A sometimes charges 6, 7 and 8 as well, as above. One batch that takes longer than `max.poll.interval.ms` is enough. Longer timeouts make this rarer, and let a partition wait longer for a dead consumer. They do not make it impossible.
#
# > **Found in the wild.** With auto commit no exception reaches the program. A user's log of 2020 has one line per lost partition, at the level WARNING: "Auto offset commit failed
# > for group ml-continue-shopping-live-etl: CommitFailedError" ([dpkp/kafka-python#2179](https://github.com/dpkp/kafka-python/issues/2179)).
#
# Could A ask Kafka before each charge whether it is still the owner? It may be stopped between the answer and the charge ([14b](14b_files_and_writers.ipynb)). Only the store, which does the work, can compare at that moment.
#
# ## Let the store decide
#
# The charges go into our own PostgreSQL now. It has one row for the partition, `progress`: the newest `generation` that wrote, and the offset that is `following` (both 0 at first).
# In the first program the store compares generations, in the second one positions. Both compare in the transaction of the charges, and the `UPDATE` locks the row until it ends.


# %%
def by_generation(worker):
    worker.join()
    worker.db.execute("SET idle_in_transaction_session_timeout = '2s'")  # used further down
    while orders := worker.poll():
        with worker.db.transaction():
            mine = "UPDATE progress SET generation = %s WHERE generation <= %s"
            if not worker.db.execute(mine, [worker.generation, worker.generation]).rowcount:
                raise PermissionError("a newer generation was here")
            for order in orders:
                worker.charge(order)
        worker.at(f"stored {orders[0]}")
        worker.commit()


# %%
def by_position(worker):
    worker.join()
    while orders := worker.poll():
        with worker.db.transaction():
            new = "UPDATE progress SET following = %s WHERE following = %s"
            if worker.db.execute(new, [orders[-1] + 1, orders[0]]).rowcount:
                for order in orders:
                    worker.charge(order)
        worker.at(f"stored {orders[0]}")
        worker.commit()


# %% [markdown]
# `worker.generation` is the group's generation at the last `poll`, and `worker.at` names a moment for a kill. A is stopped with the orders 3 to 5 in its hands:

# %% tags=["nbval-check-output"]
fenced = lab.rebalance(by_generation, by_position, stop="polled 3")
for name, outcome in fenced.items():
    print(f"{name}: {outcome.charged}; A ended with {outcome.ends[0]}")

# %% [raw] tags=["expected"]
# by_generation: A 0 1 2, then B 3 4 5 6 7 8; A ended with PermissionError
# by_position: A 0 1 2, then B 3 4 5 6 7 8; A ended with CommitFailedError

# %% [markdown]
# Both kept the zombie's batch out. The first one compares *who* sends: a newer generation was here, and A ended before its commit. This is a fence, with the generation as its epoch. It learns a generation only with that owner's first write (see Check 1 below). The second one compares *what* is sent: 3 to 5 are done.
#
# Do they do the same, then? Now A is killed when its transaction for 3 to 5 has committed, and its offset has not.

# %%
lab.ask("09c-halves")

# %%
halves = lab.rebalance(by_generation, by_position, kill="stored 3")

# %% tags=["nbval-check-output"]
lab.answer("09c-halves", [name for name, each in halves.items() if each.verdict.guarantee == "exactly-once"])

# %% [raw] tags=["expected"]
# It was by_position.
# B is the rightful owner and reads 3 to 5 again. Its generation is the newest, so only the position tells that they are done.

# %% tags=["nbval-check-output"]
lab.compare(halves)

# %% [raw] tags=["expected"]
#                guarantee      lost  twice  jumps back  rows
# by_generation  at-least-once  0     3      2           12
# by_position    exactly-once   0     0      0           9

# %% [markdown]
# A generation refuses an old owner, whatever it sends: also a deletion, or a sum from its memory, which have no position. A position recognises a repeat, whoever sends it. Kafka's manual describes positions in the store as
# "storing offsets outside Kafka"; the exercise below joins it to the fence.
#
# Do not copy *by_position* as it is, though. It wants `following` to be exactly the first order. If `following` is in the middle of a batch, or a gap in the offsets lets a batch begin after it, the program skips the charges
# **and commits the offset**. The new orders of the batch are lost, and so is every later one, because `following` does not move again. No run above had such a batch. A safe program
# raises an error there, or charges what is new, as in the exercise.
#
# ### Stopped with the lock
#
# What if A is stopped *within* its transaction? It keeps the lock of the row. B owns the partition, and waits for a process that is asleep. That is why *by_generation* has set a timeout: PostgreSQL ends a
# session that is idle in a transaction for 2 s, and rolls its transaction back. (The default is never.)

# %% tags=["nbval-check-output"]
locked = lab.rebalance(by_generation, stop="charged 4")["by_generation"]
print(f"{locked.charged}; A ended with {locked.ends[0]}")

# %% [raw] tags=["expected"]
# A 0 1 2, then B 3 4 5 6 7 8; A ended with IdleInTransactionSessionTimeout

# %% [markdown]
# A's charges of 3 and 4 were rolled back, and B went on. The fence is safe without the timeout as well, but then the partition stands still as long as A sleeps.
#
# And the real card company? It compares no generation. It takes a key with each call, by which it recognises a repeat ([11](11_side_effects.ipynb)). If the output goes to Kafka, `send_offsets_to_transaction(offsets, consumer.group_metadata())`
# puts the generation into the transaction of the output (KIP-447).
#
# ## How long is an id remembered?
#
# A position is one number, because offsets have an order. Ids of payments have none, so a receiver needs a list of them, and nobody keeps a list for ever. A **deduplication window** is what is left of the list: the last *n* ids, or those of
# the last minutes. Three receivers forget differently:


# %%
def with_window(worker, forget):
    worker.join()
    while orders := worker.poll():
        for order in orders:
            with worker.db.transaction():
                worker.db.execute(forget)
                new = "INSERT INTO seen (id) VALUES (%s) ON CONFLICT DO NOTHING"
                if worker.db.execute(new, [order]).rowcount:
                    worker.charge(order)
        worker.commit()


WINDOWS = {
    "the last 3 ids": "DELETE FROM seen WHERE place <= (SELECT max(place) FROM seen) - 3",  # place counts the rows
    "1 second": "DELETE FROM seen WHERE at < clock_timestamp() - interval '1 second'",
    "1 minute": "DELETE FROM seen WHERE at < clock_timestamp() - interval '1 minute'",
}

# %%
lab.ask("09c-windows")

# %%
windows = lab.rebalance(with_window, each=WINDOWS, stop="polled 3", longer=2)  # A sleeps 2 s longer

# %% tags=["nbval-check-output"]
lab.answer("09c-windows", [name for name, each in windows.items() if each.verdict.duplicate])

# %% [raw] tags=["expected"]
# It was: the last 3 ids, 1 second.
# B's later orders have pushed 3 to 5 out of the list of three, and 2 s are longer than 1 s. A minute was enough, this time.

# %% tags=["nbval-check-output"]
for name, outcome in windows.items():
    print(f"{name}: {outcome.charged}")

# %% [raw] tags=["expected"]
# the last 3 ids: A 0 1 2, then B 3 4 5 6 7 8, then A 3 4 5
# 1 second: A 0 1 2, then B 3 4 5 6 7 8, then A 3 4 5
# 1 minute: A 0 1 2, then B 3 4 5 6 7 8

# %% tags=["checked"]
assert windows["1 second"].verdict.duplicate == (3, 4, 5)

# %% [markdown]
# A window makes exactly-once true *for a while*. It must last longer than any copy can be late, and three kinds of copies have no limit: those of a zombie, of a backfill ([14c](14c_repair.ipynb)), and of
# a message that somebody sends again by hand. A list of *n* ids is the weaker kind: the busier the stream, the sooner it forgets.
#
# | who remembers | what | how long |
# |---|---|---|
# | a Kafka broker | sequence numbers of each producer id, per partition | the last 5 batches; the id for 1 day without a write (`producer.id.expiration.ms`) |
# | Amazon SQS, FIFO | message deduplication id | 5 minutes |
# | Spark, `dropDuplicatesWithinWatermark` | the columns named | "as long as the time distance of earliest and latest events are smaller than the delay threshold" |
# | Flink SQL | the key of a query's state | `table.exec.state.ttl`; default 0, never forgotten |
#
# A Kafka producer that starts again gets a new producer id, unless it has a `transactional.id`. So the broker recognises the client's own retries,
# but not your program's: an order that it sends twice is two records.
#
# > **Share groups** (KIP-932; not run here). Several members read one partition at the same time: Kafka lends each record to one of them
# > for 30 s, and again to another one if no acknowledgement comes, at most five times
# > ([defaults](https://kafka.apache.org/43/configuration/group-configs/)). That is at-least-once, and a member that is stopped for a minute
# > charges late as above. There is no order and so no position to compare: only ids help.


# %% tags=["exercise"]
# exercise 09c-fence
def admit(newest, following, generation, offsets):
    """The store's answer to a request: "fenced", or [newest, following, accepted]."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 09c-fence
def admit(newest, following, generation, offsets):
    """The store's answer to a request: "fenced", or [newest, following, accepted]."""
    # The generation decides who may write, and each offset whether it is new; neither replaces the other.
    if generation < newest:
        return "fenced"
    accepted = [offset for offset in offsets if offset >= following]
    return [generation, accepted[-1] + 1 if accepted else following, accepted]


# %% tags=["check", "nbval-check-output"]
lab.check("09c-fence")

# %% [raw] tags=["expected"]
# 09c-fence: not attempted (4 points); lab.hint("09c-fence") gives a hint.

# %% [markdown]
# ## Check yourself
#
# **1. A new owner asks the store for `following`, to go on there. Its first write comes a minute later. When must the store learn its generation?**
#
# <details><summary>a) With the first write, as in <code>by_generation</code>.</summary>Until then the store accepts the old owner, and both may write the same orders.</details>
# <details><summary>b) Before it reads <code>following</code>.</summary>Yes. From then on only the new owner can move it.</details>
#
# **2. Is a position, compared in the transaction, enough without a generation?**
#
# <details><summary>a) Yes, always.</summary>A zombie's deletion has no position, and a sum from its memory may be old.</details>
# <details><summary>b) Where each row depends on its record alone.</summary>Yes. Whoever stores 3 first stores the same row.</details>
#
# ## What this is called
#
# | here | Kafka's clients | Kafka's newer protocol (KIP-848) | Spark, Flink |
# |---|---|---|---|
# | generation | `generationId` | member epoch | they assign partitions themselves, and ask no group |
# | session timeout | `session.timeout.ms`, the consumer's | `group.consumer.session.timeout.ms`, the broker's, 45 s | - |
# | late commit refused | `CommitFailedException` (kafka-python: `CommitFailedError`) | the same | - |
#
# ## On Monday
#
# - Count `CommitFailedError`, and the warnings of auto commit: each stands for a batch that may be done twice.
# - Compare your slowest batch with `max.poll.interval.ms`; a smaller `max.poll.records` makes batches shorter.
# - In a sandbox, stop a consumer by SIGSTOP until its group has rebalanced, then wake it. Which rows are there twice?
# - For each list of ids: how long is it kept, and who may come later?
#
# ## Closing the ticket
#
# > **Ticket 13, closed.** A batch took longer than `max.poll.interval.ms`, and another consumer charged the same customers. Kafka refused the first one's *offset*; its charges were out. Now each
# > charge has a key that the card company remembers longer than our longest backfill reaches back, and our own table compares generation and position.
#
# Sources: Kafka 4.3's [consumer settings](https://kafka.apache.org/43/configuration/consumer-configs/), `NUM_BATCHES_TO_RETAIN` in its `ProducerStateEntry`, its pages on the
# [newer protocol](https://kafka.apache.org/43/operations/consumer-rebalance-protocol/), and the manual of its [consumer](https://kafka.apache.org/43/javadoc/org/apache/kafka/clients/consumer/KafkaConsumer.html); [KIP-98](https://cwiki.apache.org/confluence/display/KAFKA/KIP-98+-+Exactly+Once+Delivery+and+Transactional+Messaging) (producer ids); [KIP-447](https://cwiki.apache.org/confluence/display/KAFKA/KIP-447%3A+Producer+scalability+for+exactly+once+semantics);
# [SQS](https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-key-terms.html);
# [Spark](https://spark.apache.org/docs/latest/api/python/reference/pyspark.sql/api/pyspark.sql.DataFrame.dropDuplicatesWithinWatermark.html);
# [Flink](https://nightlies.apache.org/flink/flink-docs-master/docs/dev/table/config/).
#
# Next: [09d, who tells the warehouse?](09d_outbox.ipynb)
