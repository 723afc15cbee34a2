# ---
# jupyter:
#   labkit:
#     needs: [05_two_phase_commit, 08_postgres, 09_kafka, 09b_timeouts]
# ---

# %% [markdown]
# # What must a store be able to do?
#
# > **Ticket 12** (real). *From a mailing list, in November 2024:* a late commit message "can commit or abort a
# > different, later transaction. Committed transactions can actually be lost." Jepsen had reproduced it "in both
# > Bufstream and Kafka itself" ([Kafka's users list](https://www.mail-
# > archive.com/users@kafka.apache.org/msg43073.html), [report](https://jepsen.io/analyses/bufstream-0.1.0)). And our
# > architect asks: "The new store has transactions, says its brochure. Is that enough?"
#
# The job is ours, and the store is somebody else's. Two-phase commit demands five things of it. For each demand there
# are two runs: a store that keeps it, and a store that does not.
#
# {head}
#
# You will be able to
#
# - name the five demands, and say what goes wrong without each of them;
# - judge files, PostgreSQL and Kafka by them;
# - ask the right questions about a store that nobody here has used yet.
#
# Everything in this notebook is **simulated**: a job with checkpoints and its store, and Kafka's transactions. Notebooks
# [08](08_postgres.ipynb) and [09](09_kafka.ipynb) show real stores.

# %% tags=["parameters"]
expiries = 1  # how many transactions the store in "Your turn" may drop

# %% [markdown]
# ## Out of sight, and open for long
#
# **Demand 1: transactions. Nothing is visible before the commit.** This store keeps the rows of open transactions in the table
# that everybody reads, like files that are staged in the final folder. Three rows are written and pre-committed. The job dies
# right then (at *ready*), before anything is decided. Recovery aborts, and the batch runs again.

# %%
from labkit import lab

lab.ask("09c-open")

# %% tags=["nbval-check-output"]
hidden = lab.simulate("sink.after_pre_commit", sink="two_phase")
open_table = lab.replay("pipeline.raw_table")
print("hidden rows: ", hidden.seen)
print("open table:  ", open_table.seen)

# %% [raw] tags=["expected"]
# hidden rows:  | crash 1 | world=1 hello=1 hello=2
# open table:   world=1 hello=1 hello=2 | crash 1 | world=1 hello=1 hello=2

# %% tags=["nbval-check-output"]
lab.answer("09c-open", open_table.seen.count("="))

# %% [raw] tags=["expected"]
# It was 6.
# Three rows were written and not decided, and lay in sight. They were aborted, and the batch wrote three more.

# %% tags=["checked"]
assert not hidden.verdict.aborted_read
assert len(open_table.verdict.aborted_read) == 3
assert open_table.verdict.guarantee == "exactly-once"  # in the end; but what was read cannot be unread

# %% [markdown]
# The second line shows three rows before the crash. Their transaction was aborted, and a reader has them all the same. In the
# end the table is right. What was read cannot be unread: an alarm was raised, a parcel was sent.
#
# **Demand 2: a transaction stays open for a whole checkpoint interval.** Rows are written during all of that time, so it must be
# allowed to be open as long. In this simulated Kafka a checkpoint starts every two ticks of a clock, and the broker aborts a
# transaction after one tick. A record comes with every tick. First one round, then the search for a run that never ends:

# %% tags=["nbval-check-output"]
once = lab.replay("kafka_log.steady_traffic")
search = lab.explore("kafka_log", partitions=1, crashes=0, interval=2, timeout=1, ticks=2)
{"lost": len(once.verdict.lost), "restarts": once.state.failures, "and so on": search.violated["ends"]}

# %% [raw] tags=["expected"]
# {'lost': 0,
#  'restarts': 1,
#  'and so on': 'the job has failed 2 times, and would fail again.'}

# %% [markdown]
# The result shows no loss and no progress. The next write is refused, the job starts again from its checkpoint, and the write
# is refused again. (After a burst nobody writes, and a broker like this one loses it silently: [09b](09b_timeouts.ipynb).)
# PostgreSQL can limit how long an open transaction is *idle*: `idle_in_transaction_session_timeout`. [Notebook 08](08_postgres.ipynb)
# sets half a second, and the next row comes later. A job whose store closes idle transactions after half a second makes no progress.
#
# ## Sealed, and kept
#
# **Demand 3: a sealed transaction stays until the notification, also across a failure.** Sealed means pre-committed: it takes no more
# rows. The notification tells the sink to commit. All have pre-committed and the checkpoint is stored: decided. In the first run the job dies before the sink is told, and the store waits. In the second run
# nobody dies. The store drops one transaction after its timeout, before the sink is told; the sink logs the error and goes
# on. In the third run the same happens, the job dies, and the new sink raises the error.

# %% tags=["nbval-check-output"]
lab.compare(
    first=lab.replay("pipeline.decide_then_commit"),
    second=lab.replay("pipeline.transaction_timeout"),
    third=lab.replay("pipeline.timeout_in_a_loop"),
)

# %% [raw] tags=["expected"]
#         guarantee     lost  twice  jumps back  rows
# first   exactly-once  0     0      0           3
# second  at-most-once  1     0      0           2
# third   at-most-once  1     0      0           0

# %% [markdown]
# The second run has lost a row: the checkpoint says that it is done, so nobody writes it again. The third job meets the
# same error at every restart, for ever. (The lab judges such a run as it stands; what [09b](09b_timeouts.ipynb) calls exactly-once there is only the runs that end.) One row is gone for good. A yes is a promise, and a store with a timeout breaks the promise. How long the timeout must be
# stands in [notebook 09b](09b_timeouts.ipynb). PostgreSQL has no timeout for prepared transactions. It keeps them, and their locks, for ever.
#
# ## Finished by somebody else
#
# **Demand 4: another process can finish it.** The job dies after the decision. The new job must commit a transaction that it has
# not opened. For that the checkpoint holds a handle: the name under which any process can finish the transaction. In
# PostgreSQL the handle is the name in `PREPARE TRANSACTION 'name'`. In Kafka it is three things: transactional id, producer id and epoch.
#
# A plain `BEGIN` has no handle. It belongs to its connection, and ends with it. In Kafka there is another trap. Every
# fresh producer first calls `init_transactions` for its transactional id. Record 0 is in
# a decided transaction, record 1 comes after the restart. One new job commits first, the other one calls `init_transactions` first.

# %%
lab.ask("09c-first")

# %% tags=["nbval-check-output"]
commits_first = lab.replay("kafka_log.commit_after_restart")
initialises_first = lab.replay("kafka_log.initialised_first")
lab.compare(commits_first=commits_first, initialises_first=initialises_first)

# %% [raw] tags=["expected"]
#                    guarantee     lost  twice  jumps back  rows
# commits_first      exactly-once  0     0      0           2
# initialises_first  at-most-once  1     0      0           1

# %% tags=["nbval-check-output"]
lost = {"the one that commits first": commits_first, "the one that initialises first": initialises_first}
lab.answer("09c-first", [job for job, run in lost.items() if run.verdict.lost])

# %% [raw] tags=["expected"]
# It was: the one that initialises first.
# init_transactions aborts what is open under its id, also what was decided, and the commit that follows finds nothing to commit.

# %% [markdown]
# `init_transactions` aborts what is open under its id, decided or not. So recovery must commit what is decided *before* it initialises any id. (On the wire that is one request,
# `EndTxn`. No public producer API sends it for another producer's transaction: Flink's connector sets the producer's private fields, and the
# lab sends the request itself. KIP-939 is the official way, and not finished in Kafka 4.3. With it a transaction never expires, so Kafka gets PostgreSQL's orphans.)
#
# **Demand 5: a commit may come twice.** Somebody dies half-way through the commits. The next recovery cannot know how far they
# got, so it commits **all** again. Three stores:
#
# - *first* takes a second commit as done;
# - *second* answers it with an error;
# - *third* is a Kafka with one transactional id for all transactions, as every ordinary producer has it. The commit is sent twice, and the second arrives late. It meets
#   whatever is open under that id by then.

# %%
lab.ask("09c-again")

# %% tags=["nbval-check-output"]
first, second = lab.replay("pipeline.second_crash"), lab.replay("pipeline.commit_raises_again")
third = lab.replay("kafka_log.reused_id")
lab.compare(first=first, second=second, third=third)

# %% [raw] tags=["expected"]
#         guarantee      lost  twice  jumps back  rows
# first   exactly-once   0     0      0           3
# second  unknown        0     0      0           1
# third   at-least-once  0     1      0           3

# %% tags=["nbval-check-output"]
lab.answer("09c-again", [claim for claim in second.violated if claim in ("ends", "no_duplicate", "no_loss")])

# %% [raw] tags=["expected"]
# It was: It never gets past its recovery.
# Each new job commits all decided transactions again, and meets the one that is committed already.

# %% tags=["nbval-check-output"]
print("second:", second.violated["ends"])
print("third: ", third.violated["decided_first"])

# %% [raw] tags=["expected"]
# second: drivers have ended with an error 2 times, and each new one meets it again.
# third:  record 1 is committed, but it belongs to checkpoint 1, and the last complete one is 0.

# %% tags=["checked"]
assert "no_duplicate" in third.violated
assert not {"ends", "no_duplicate", "no_loss"} & set(first.violated)
assert lab.replay("kafka_log.reused_id_with_new_epochs").verdict.guarantee == "exactly-once"

# %% [markdown]
# The first store is clean. The second stops every new job; *unknown*, because two rows still wait in a prepared
# transaction. The third commits the *next* transaction, which
# nobody has decided; the job dies, and its record comes twice. That is Jepsen's case in the ticket. The remedy is an id for each checkpoint. Kafka has another one since
# KIP-890, `transaction.version=2`, the default since 4.0 with clients of 4.0. Each transaction has an epoch of its own, and the
# late commit is refused. Older clients, and the lab's Python client, do not have it.
#
# ## Three more, and the limits
#
# Three demands are often left out:
#
# - *Find your orphans.* A transaction that was opened after the barrier is in no checkpoint. Such an orphan must be found by
#   its name.
# - *Refuse zombies.* A job that was thought dead must not write into its successor's transaction. Refusing it is called fencing.
# - *Two transactions at once.* While the sealed one waits, the next one must take the new records.

# %% tags=["nbval-check-output"]
# forget_lingering: recovery looks for no orphans; t1/e0 is a transaction's id and epoch
orphans = lab.explore("kafka_log", partitions=1, isolation="read_committed", broken="forget_lingering")
print(orphans.violated["nothing_open"])

# %% [raw] tags=["expected"]
# the transaction t1/e0 is open for ever: the last stable offset of partition 0 stays at 1, before record 1.

# %% tags=["nbval-check-output"]
lab.compare(zombie_refused=lab.replay("kafka_log.zombie_fenced"), zombie_let_in=lab.replay("kafka_log.zombie"))

# %% [raw] tags=["expected"]
#                 guarantee      lost  twice  jumps back  rows
# zombie_refused  exactly-once   0     0      0           2
# zombie_let_in   at-least-once  0     2      0           4

# %% tags=["nbval-check-output"]
each_its_own = lab.replay("kafka_log.late_commit").until("pre_commit")  # the run up to its first pre-commit
one_id = lab.replay("kafka_log.reused_id").until("pre_commit")
{"an id for each checkpoint": each_its_own.enabled[0], "one id": one_id.enabled[0]}  # the first possible step

# %% [raw] tags=["expected"]
# {'an id for each checkpoint': 'begin(1)', 'one id': 'complete(0)'}

# %% [markdown]
# The first result shows an orphan that holds back every reader behind it. The card shows the records of a zombie that come
# twice. Kafka compares epochs; the second store does not. There the zombie writes both records into the open transaction of the
# new job. The last result shows what can happen next, when a transaction is sealed. With an id for each checkpoint the next
# transaction begins at once (`begin(1)`). With one id everything waits for the checkpoint (`complete(0)`).
#
# And if a store keeps all eight? Two things remain. Somebody may restore an older checkpoint, and a coordinator may stay away:

# %% tags=["nbval-check-output"]
lab.compare(latest=lab.replay("pipeline.decide_then_commit"), older=lab.replay("pipeline.older_checkpoint"))

# %% [raw] tags=["expected"]
#         guarantee      lost  twice  jumps back  rows
# latest  exactly-once   0     0      0           3
# older   at-least-once  0     1      0           4

# %% tags=["nbval-check-output"]
print(lab.explore("two_phase_commit", losses=0, coordinator_returns=False).violated["nobody_blocked"])

# %% [raw] tags=["expected"]
# participant 0 holds its locks for ever: its log is prepared, and the coordinator is down.

# %% [markdown]
# > **You will read:** "*two-phase commit is perfect*". It **loses** records when the store breaks demand 3. It **doubles** records when somebody restores an older checkpoint, which knows nothing of what was
# > committed since. And it **blocks** while somebody is in doubt and the coordinator is away. Also wrong: "*in the prepare phase the
# > coordinator sends the commit*". It asks for a vote, and the commit comes after the decision is on disk.
#
# ## Three stores, five demands
#
# | demand | plain files | PostgreSQL | Kafka |
# |---|---|---|---|
# | 1 hidden until the commit | a staging folder, not the final one | yes | only for readers at `read_committed` |
# | 2 open for an interval | yes | yes, unless a session timeout is set | until `transaction.timeout.ms` is over |
# | 3 kept until the notice | **weak**: until somebody cleans the staging folder | yes, with its locks, for ever (if `max_prepared_transactions` is more than 0) | **weak**: until `transaction.timeout.ms` is over |
# | 4 finished by another | yes, a path | yes, by name: same database, same user or a superuser | yes on the wire; no public API |
# | 5 a second commit | a file that is renamed already counts as done | **weak**: an error that says only "not there"; a marker row tells | yes, with an id for each checkpoint |
#
# ## Your turn
#
# **Simulated**: this store drops up to one transaction, and a job with two-phase commit writes into it. *Find a run that loses a row
# although nobody crashes.* `?` shows the keys, and the cell below tells how your run ended.

# %%
steering = lab.explorer("pipeline", dropped="ignore", expiries=expiries, crashes=0)
steering

# %%
lab.replay(steering.trace)


# %% tags=["exercise"]
# exercise 09c-demands
def broken(store, job):
    """The demands, from 1 to 5, that the store breaks for this job."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 09c-demands
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
lab.check("09c-demands")

# %% [raw] tags=["expected"]
# 09c-demands: not attempted (4 points); lab.hint("09c-demands") gives a hint.


# %% tags=["exercise"]
# exercise 09c-early
def clean(read, ends):
    """Whether nobody read a row of a transaction that is aborted now."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 09c-early
def clean(read, ends):
    """Whether nobody read a row of a transaction that is aborted now."""
    # A row may be read early if its transaction commits in the end; it may not if it aborts.
    return all(ends.get(transaction) != "aborted" for _, transaction in read)


# %% tags=["check", "nbval-check-output"]
lab.check("09c-early")

# %% [raw] tags=["expected"]
# 09c-early: not attempted (3 points); lab.hint("09c-early") gives a hint.

# %% [markdown]
# ## Check yourself
#
# **1. A store has transactions that end with their connection. Which demand does it break first?**
#
# <details><summary>a) Demand 1, nothing is visible before the commit.</summary>Its rows are hidden well enough.</details>
# <details><summary>b) Demand 4, another process can finish it.</summary>Yes. After a crash the connection is gone, and the transaction with
# it. So what was promised by the yes is gone, too.</details>
# <details><summary>c) Demand 5, a commit may come twice.</summary>After a crash there is nothing left to commit even once.</details>
#
# **2. A store drops a sealed transaction after 15 minutes. Your job is never down for longer than five. Is that enough?**
#
# <details><summary>a) Yes, 15 is more than five.</summary>The transaction is also open for the interval and the checkpoint before.</details>
# <details><summary>b) Only if interval, checkpoint and downtime together are shorter.</summary>Yes, see [09b](09b_timeouts.ipynb).</details>
#
# **3. In PostgreSQL, `COMMIT PREPARED 'orders-7'` answers that there is no such transaction. What does that mean?**
#
# <details><summary>a) It was committed before.</summary>Perhaps. It may also have been rolled back, or never prepared.</details>
# <details><summary>b) Nothing, without a record of your own.</summary>Yes. Only a marker row, written in the same
# transaction, tells that it was committed.</details>
#
# **4. Which store needs no coordinator at all?**
#
# <details><summary>a) One that takes the rows and the batch number in one transaction.</summary>Yes: <i>batch_marker</i> in
# <a href="06_sinks.ipynb">notebook 06</a>. There is one writer and one commit, and nothing waits for a decision.</details>
# <details><summary>b) One with very long timeouts.</summary>Long timeouts make a loss rare. The five demands remain.</details>
#
# ## What this is called in Flink, Spark and Kafka
#
# | here | Flink | Spark | Kafka | PostgreSQL |
# |---|---|---|---|---|
# | handle | committable, in the state of the `Committer`'s operator | `WriterCommitMessage`, kept nowhere after a crash | transactional id, producer id, epoch | the name (`gid`) in `pg_prepared_xacts` |
# | finish after a restart | re-commit at restore; 1.x `recoverAndCommit` | the batch runs again | `EndTxn` | `COMMIT PREPARED` |
# | a commit that comes twice | `Committer`: must be idempotent; `signalAlreadyCommitted` | `commit` may be called twice for one batch | no error for the same epoch | error 42704, no such transaction |
# | orphans | names by prefix, subtask and checkpoint; since connector 4 also by listing, where ids are pooled and used again | - | `ListTransactions` | `SELECT * FROM pg_prepared_xacts` |
# | fencing | of its own messages (`JobMasterId`); of rows, only the store | of its own logs (`CONCURRENT_STREAM_LOG_UPDATE`); of rows, only the store | the producer's epoch, `PRODUCER_FENCED` | a row with an epoch, in your own transaction |
# | the limit of demand 3 | - | - | `transaction.timeout.ms` | no time limit; `max_prepared_transactions` is 0 by default: raise it, or nothing can be prepared |
#
# ## On Monday
#
# - Take the data sheet of your store and go through the five demands, then the three more. Write down where each answer comes from.
# - Kill the job between decision and commit, wait longer than any timeout, and start it again. Are all rows there?
# - Run `SELECT * FROM pg_prepared_xacts` or `kafka-transactions.sh list`: whose are the old ones?
# - In Flink: set `setTransactionalIdPrefix` to a name that no other job uses, or one job aborts the transactions of another.
#
# ## Closing the ticket
#
# > **Ticket 12, closed.** "It has transactions" is one answer of eight. Our list goes to the vendor: hidden until the
# > commit, open for an interval, kept until the notification, finished by another process, safe to commit twice; and
# > orphans, zombies, two at a time. Jepsen's case is the fifth: one id for all transactions. Kafka 4 gives each
# > transaction an epoch of its own, so there the answer depends on the client's version.
#
# ## Sources
#
# Apache Flink: `Committer`, `CommitterOperator` and `CheckpointListener`; in its Kafka connector `FlinkKafkaInternalProducer`. Kafka:
# [KIP-890](https://cwiki.apache.org/confluence/display/KAFKA/KIP-890%3A+Transactions+Server-Side+Defense) on late commits, and
# [KIP-939](https://cwiki.apache.org/confluence/display/KAFKA/KIP-939%3A+Support+Participation+in+2PC) on taking part in two-phase commit.
# PostgreSQL: [PREPARE TRANSACTION](https://www.postgresql.org/docs/current/sql-prepare-transaction.html). Apache Spark 4.2, Flink 2.
#
# Back: [05, who decides?](05_two_phase_commit.ipynb) and [06, what does a reader see?](06_sinks.ipynb).
# Next: [09d, who tells the warehouse?](09d_outbox.ipynb)
