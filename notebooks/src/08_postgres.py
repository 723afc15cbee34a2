# ---
# jupyter:
#   labkit:
#     needs: [05_two_phase_commit, 06_sinks, 07_crash_spark]
#     slow: true
# ---

# %% [markdown]
# # Can a transaction outlive the program that wrote it?
#
# > **Ticket 10** (invented). *From the database's owner:* "Each night the disk is fuller. Autovacuum runs and cleans up
# > nothing, and no connection is older than five minutes. What are you holding?" Last week a job with two-phase commit was
# > switched off.
#
# Two-phase commit asks a store for a transaction that is finished and not yet decided, and that waits for the decision
# even if its program dies. PostgreSQL has such transactions. You make them by hand, in SQL; then a real Spark job is
# killed in the middle of them.
#
# {head}
#
# You will be able to
#
# - prepare a transaction, find it again, and finish it from another program,
# - say what a forgotten one does to others,
# - write a sink for one database that is exactly-once without any of this.
#
# The server is a real PostgreSQL: yours, if `LABKIT_POSTGRES` names one, or a private one that ends with this notebook's kernel.

# %% tags=["parameters"]
failpoint = "sink.after_pre_commit"  # where Spark's two_phase is killed further down: ready

# %%
from labkit import lab

server = lab.postgres()

# %% [markdown]
# ## Two branches of a bank
#
# *North* and *south* have 500 each. A **session** is one connection to the server, as one program would have it. Each
# branch has its own, and commits only its own part. (Both are in one database only so that a reader can add them up.)

# %% tags=["nbval-check-output"]
north, south, reader = server.session("north"), server.session("south"), server.session("reader")
north.run("CREATE TABLE north (balance int)", "INSERT INTO north VALUES (500)")
south.run("CREATE TABLE south (balance int)", "INSERT INTO south VALUES (500)")
total = "SELECT north.balance + south.balance AS total FROM north, south"
reader.run(total)

# %% [raw] tags=["expected"]
# reader: total
# reader: 1000

# %% [markdown]
# The naive way: the program takes 100 in the north, and dies before it gives 100 in the south. For the server, a
# program's death is a connection that breaks: `crash()` does just that.

# %% tags=["nbval-check-output"]
north.run("UPDATE north SET balance = balance - 100")
north.crash()
reader.run(total)

# %% [raw] tags=["expected"]
# reader: total
# reader: 900

# %% [markdown]
# 100 are gone. It does not help if both branches open a transaction, do their work, and only then commit: a program that dies between the two
# commits leaves the same. A plain transaction belongs to its session and dies with it.
#
# ## Prepare, then decide
#
# `PREPARE TRANSACTION 'name'` is PostgreSQL's vote *yes*. It stores the open transaction on disk under that name.
# The result is a **prepared transaction**. The session is free for other work.
# The name is called **gid**, for global identifier.

# %% tags=["nbval-check-output"]
north, south = server.session("north"), server.session("south")
north.run("UPDATE north SET balance = 500")
north.run("BEGIN", "UPDATE north SET balance = balance - 100", "PREPARE TRANSACTION 'transfer-north'")
south.run("BEGIN", "UPDATE south SET balance = balance + 100", "PREPARE TRANSACTION 'transfer-south'")

# %% [raw] tags=["expected"]
# south: BEGIN
# south: UPDATE 1
# south: PREPARE TRANSACTION

# %% [markdown]
# Both branches have prepared. Now both connections break, as they did before.

# %%
lab.ask("08-prepared")

# %%
north.crash()
south.crash()
waiting = reader.run("SELECT gid FROM pg_prepared_xacts WHERE gid LIKE 'transfer-%' ORDER BY gid")
waiting

# %% tags=["nbval-check-output"]
lab.answer("08-prepared", f"{len(waiting.rows)} waiting, total {reader.run(total).value}")

# %% [raw] tags=["expected"]
# It was: 2 waiting, total 1000.
# PREPARE TRANSACTION had taken both transactions away from their sessions, so both outlived them. Neither was committed, so a reader still saw 500 and 500.

# %% [markdown]
# Both are still prepared: neither committed nor rolled back, so readers do not see their rows. The view
# `pg_prepared_xacts` lists what waits.
#
# That is what two-phase commit demands first: **nothing is visible before the commit**. A **simulated** store breaks
# this demand and shows such rows to everybody. Three rows are prepared, the job dies, recovery rolls back, and the
# batch runs again:

# %% tags=["nbval-check-output"]
lab.replay("pipeline.raw_table").seen

# %% [raw] tags=["expected"]
# 'world=1 hello=1 hello=2 | crash 1 | world=1 hello=1 hello=2'

# %% [markdown]
# The table ends up right, and a reader has seen six rows. What was read cannot be unread: a parcel was sent.
#
# Back to PostgreSQL. Now SIGKILL for **every process of the server**, and a new start (only if it is the private one):

# %% tags=["nbval-check-output"]
killed = server.kill()
reader = server.session("reader")
lab.said(killed, reader.run("SELECT gid FROM pg_prepared_xacts WHERE gid LIKE 'transfer-%' ORDER BY gid"))

# %% [raw] tags=["expected"]
# the server died by signal 9; another process runs now: yes
# reader: gid
# reader: transfer-north
# reader: transfer-south

# %% [markdown]
# Both names are still there. (SIGKILL is not a power cut.)
#
# ## Somebody else commits
#
# The decision is: commit. Who may carry it out? Any session, if three things hold. It works in the **same database**.
# It belongs to the **same user**, or to a superuser. And it has **no open transaction** of its own. A session outside
# the transfer breaks the last two, one by one:

# %% tags=["nbval-check-output"]
other = server.session("other")
inside = other.run("BEGIN", "COMMIT PREPARED 'transfer-north'")
other.run("ROLLBACK")
stranger = other.run("SET SESSION AUTHORIZATION pg_monitor", "COMMIT PREPARED 'transfer-north'")
other.run("RESET SESSION AUTHORIZATION")
lab.said(inside, stranger)  # both answers on one card

# %% [raw] tags=["expected"]
# other: BEGIN
# other: ERROR 25001: COMMIT PREPARED cannot run inside a transaction block
# other: SET
# other: ERROR 42501: permission denied to finish prepared transaction

# %% [markdown]
# Both are refused. As the same user and outside a transaction, the session may commit, one branch after the other. A reader looks in between:

# %% tags=["nbval-check-output"]
other.run("COMMIT PREPARED 'transfer-north'")
between = reader.run(total)
other.run("COMMIT PREPARED 'transfer-south'")
lab.said(between, reader.run(total))

# %% [raw] tags=["expected"]
# reader: total
# reader: 900
# reader: total
# reader: 1000

# %% tags=["checked"]
assert (between.value, reader.run(total).value) == (900, 1000)

# %% [markdown]
# The first total is a fractured read: part of the transfer without the rest. If the committing session dies in between, it lasts until
# somebody recovers. Two-phase commit promises all or nothing *in the end*, and not that both parts become visible at once.
#
# ### May a commit come twice?
#
# Recovery cannot know how far the dead program came, so it commits again. Compare the answer for a name that never
# existed:

# %% tags=["nbval-check-output"]
again = other.run("COMMIT PREPARED 'transfer-north'")
never = other.run("COMMIT PREPARED 'transfer-west'")
lab.said(again, never)

# %% [raw] tags=["expected"]
# other: ERROR 42704: prepared transaction with identifier "transfer-north" does not exist
# other: ERROR 42704: prepared transaction with identifier "transfer-west" does not exist

# %% [markdown]
# Both answers are error 42704. "It is not there" may mean committed, rolled back, or never prepared. A job that takes
# it for a failure fails at every restart (`lab.show("pipeline.commit_raises_again")`). The way out is a **marker row**:
# a row with the transaction's name, written in that same transaction. The row is there if and only if the transaction
# was committed. Two transactions with marker rows, and one decision each:

# %% tags=["nbval-check-output"]
north, south = server.session("north"), server.session("south")
other.run("CREATE TABLE done (name text PRIMARY KEY)")
north.run("BEGIN", "INSERT INTO done VALUES ('first')", "PREPARE TRANSACTION 'first'")
south.run("BEGIN", "INSERT INTO done VALUES ('second')", "PREPARE TRANSACTION 'second'")
other.run("COMMIT PREPARED 'first'", "ROLLBACK PREPARED 'second'")
reader.run("SELECT name FROM done")

# %% [raw] tags=["expected"]
# reader: name
# reader: first

# %% [markdown]
# ### One database needs no two-phase commit
#
# If all rows of a batch go to **one** database, the marker row is enough, in one plain transaction with them, on the
# two conditions of [06](06_sinks.ipynb). Spark would call this function for each micro-batch, through `foreachBatch`,
# with a DataFrame: loop over `rows.collect()` there. The key of the marker is (query, batch):

# %% tags=["nbval-check-output"]
other.run("CREATE TABLE batches (query text, batch int, PRIMARY KEY (query, batch))")
other.run("CREATE TABLE counts (word text, n int)")


def write_batch(rows, batch):
    with server.connect() as connection:  # psycopg: the block is one transaction
        # ON CONFLICT DO NOTHING: no error where a row with this key is there already
        marker = "INSERT INTO batches VALUES ('word-count', %s) ON CONFLICT DO NOTHING"
        if connection.execute(marker, [batch]).rowcount:  # 0 if this batch was written before
            for word, n in rows:
                connection.execute("INSERT INTO counts VALUES (%s, %s)", [word, n])


write_batch([("hello", 1), ("world", 1)], batch=0)
write_batch([("hello", 1), ("world", 1)], batch=0)  # Spark runs the batch again after a crash
write_batch([("hello", 2)], batch=1)
reader.run("SELECT word, n FROM counts")

# %% [raw] tags=["expected"]
# reader: word   n
# reader: hello  1
# reader: world  1
# reader: hello  2

# %% [markdown]
# The second call found its marker and skipped the batch. Without a key to upsert by, two-phase commit is needed where
# one transaction is not possible: several tasks write through their own sessions, or the batch goes to two systems.
#
# ## The price: who is locked out?
#
# A program updates a row, prepares, and dies. Nobody comes to decide: its transaction is an **orphan**.
# A transaction that changes a row needs the lock of that row, and holds it until it ends.
#
# Another program wants to update the row, and gives up after 0.3 seconds. A third only reads it.

# %%
lab.ask("08-locked")

# %%
north = server.session("north")
north.run("BEGIN", "UPDATE north SET balance = balance - 1", "PREPARE TRANSACTION 'orphan'")
north.crash()
writer = other.run("SET lock_timeout = '300ms'", "UPDATE north SET balance = balance - 1")
looker = reader.run("SELECT balance FROM north")
lab.said(writer, looker)

# %% tags=["nbval-check-output"]
through = [name for name, reply in (("the writer", writer), ("the reader", looker)) if not reply.code]
lab.answer("08-locked", " and ".join(through))

# %% [raw] tags=["expected"]
# It was: the reader.
# The reader took the last committed value. The writer wanted the row's lock, which the orphan holds, and gave up with error 55P03.

# %% tags=["checked"]
assert writer.code == "55P03"  # lock_not_available

# %% [markdown]
# Without `lock_timeout` the writer would wait for ever, since **no timeout of the server ever ends a prepared transaction**.
# Who holds the lock? PostgreSQL's view `pg_locks` knows the transaction, and `pg_prepared_xacts` its name:

# %% tags=["nbval-check-output"]
# Not the manual's join (pg_locks, "Viewing Locks"; pgsql-bugs #9840): that finds an orphan only after a server restart.
reader.run("""SELECT gid, locktype, mode, pid
              FROM pg_prepared_xacts JOIN pg_locks ON transactionid = transaction
              WHERE gid = 'orphan'""")

# %% [raw] tags=["expected"]
# reader: gid     locktype       mode           pid
# reader: orphan  transactionid  ExclusiveLock  -

# %% [markdown]
# `pid` is empty: the owner is no process, so no list of sessions shows it.
#
# ### Finish the orphan
#
# A name should say whose transaction it is: `job/batch/task`, say. SQL takes such a name apart, and writes the
# statements to send:

# %% tags=["nbval-check-output"]
north, other = server.session("north"), server.session("other")
north.run("BEGIN", "UPDATE south SET balance = balance + 0", "PREPARE TRANSACTION 'nightly/7/0'")
statements = other.run("""SELECT format('ROLLBACK PREPARED %L', gid) AS statement
                          FROM pg_prepared_xacts
                          WHERE split_part(gid, '/', 1) = 'nightly' AND database = current_database()""")
other.run(*[row[0] for row in statements.rows])  # each row has one column: a statement
lab.said(statements, reader.run("SELECT gid FROM pg_prepared_xacts"))

# %% [raw] tags=["expected"]
# other: statement
# other: ROLLBACK PREPARED 'nightly/7/0'
# reader: gid
# reader: orphan

# %% [markdown]
# The transaction of *nightly* is gone; *orphan* was not touched. `split_part(gid, '/', 1)` is the first part of the name.
# `format` with `%L` puts a value into quotes, even one that has a quote inside. The view lists all databases of the server; here
# you can finish only those of `current_database()`.

# %% tags=["nbval-check-output"]
other.run("ROLLBACK PREPARED 'orphan'", "UPDATE north SET balance = balance - 1")

# %% [raw] tags=["expected"]
# other: ROLLBACK PREPARED
# other: UPDATE 1

# %% [markdown]
# The writer gets through.
#
# > **You will read:** "*two-phase commit is perfect*". The orphan blocked everybody who wanted to write that row. It
# > also stops PostgreSQL from cleaning up old rows; finally the server refuses new transactions before their numbers
# > wrap around. So the manual means `PREPARE TRANSACTION` for transaction managers only, and it is **off** by default:
# > `max_prepared_transactions = 0`, error 55000. Recovery must *first* finish its orphans, *then* write the batch
# > again, or the write waits for ever for its own dead predecessor.
#
# ## A transaction that may not stay open
#
# Two-phase commit keeps a transaction open for a whole batch. A server can be told to end
# sessions that do nothing inside a transaction: `idle_in_transaction_session_timeout`. Here it is half a second, and the second row comes later.

# %% tags=["nbval-check-output"]
slow = server.session("slow")
slow.run("CREATE TABLE words (word text)", "SET idle_in_transaction_session_timeout = '500ms'")
slow.run("BEGIN", "INSERT INTO words VALUES ('hello')")
slow.wait_for_its_end()  # nothing is sent, until the server has ended the session
late = slow.run("INSERT INTO words VALUES ('world')", "PREPARE TRANSACTION 'slow'")
lab.said(late, reader.run("SELECT count(*) FROM words"))

# %% [raw] tags=["expected"]
# slow: ERROR 25P03: terminating connection due to idle-in-transaction timeout
# reader: count
# reader: 0

# %% [markdown]
# The server ended the session, and with it the open transaction: no row. Such a job never prepares. It loses nothing,
# doubles nothing, and never gets further. A prepared transaction has no session, so such timeouts do not reach it.
#
# | two-phase commit demands | PostgreSQL |
# |---|---|
# | nothing is visible before the commit | yes |
# | open for a whole batch | yes, unless a timeout for sessions is shorter: *slow* |
# | pending until the decision is known | yes, without a timeout: both transfers waited |
# | another process can finish it | yes, by name: *other* did |
# | a second commit changes nothing | an error; a marker row tells |

# %% [markdown]
# ## Now under Spark
#
# A real PySpark job counts *hello*, *world*, *hello* into this server, and is killed by SIGKILL. Three runs:
# *batch_marker* dies when its rows are visible and Spark has not noted the batch.
# *two_phase* dies when both tasks have prepared and `commits/0` is not there; and, at *half*, when `commits/0` is there and one of two tasks has committed.
# Its order is log-then-commit: `commits/0`, Spark's note of batch 0, is the decision. (In *batch_marker* the driver writes alone.)
#
# Recovery runs before the query starts again. In the second run it finds two prepared transactions of the dead driver.

# %%
lab.ask("08-recovery")

# %%
lab.postgres()  # ends what you did by hand
cases = {
    "batch_marker": {"at": "sink.after_commit", "sink": "batch_marker"},
    "two_phase": {"at": failpoint, "sink": "two_phase"},
    "two_phase, half": {"at": "sink.mid_commit", "sink": "two_phase"},
}
runs = lab.crash_each({name: case | {"store": "postgres"} for name, case in cases.items()})
lab.compare(runs)

# %% tags=["nbval-check-output"]
did = {name: [step.split()[0] for step in run.crashes[0]["recovery"]] for name, run in runs.items()}
lab.answer("08-recovery", did["two_phase"][0])

# %% [raw] tags=["expected"]
# It was: rolls both back.
# commits/0 was missing, so nothing was decided. Recovery rolled both back, Spark ran the batch again, and its rows came once.

# %% tags=["nbval-check-output"]
did

# %% [raw] tags=["expected"]
# {'batch_marker': [],
#  'two_phase': ['aborted', 'aborted'],
#  'two_phase, half': ['committed', 'committed']}

# %% tags=["checked"]
assert all(run.crashes[0]["signal"] == 9 for run in runs.values())
assert [run.verdict.guarantee for run in runs.values()] == 3 * ["exactly-once"]
assert [run.crashes[0]["commit_log"] for run in runs.values()] == [[], [], [0]]

# %% [markdown]
# All three end exactly-once. *batch_marker* had shown its rows; the batch ran again, found its marker, and was skipped. Without `commits/0` nothing was
# decided, so recovery rolled both transactions back and the batch ran again. With `commits/0` recovery commits both by name. One was committed already, and its marker row says so.
#
# This is what a reader saw in the last run, each row as word=count:

# %% tags=["nbval-check-output"]
runs["two_phase, half"].seen

# %% [raw] tags=["expected"]
# 'world=1 | crash 1 | hello=1 hello=2'

# %% tags=["checked"]
assert list(runs["two_phase, half"].verdict.fractured_read) == [1]
assert not runs["batch_marker"].verdict.fractured_read  # one transaction has no halves

# %% [markdown]
# *world* was visible alone for as long as the driver was dead: a fractured read (`lab.show("pipeline.half_committed")` steps through it).
#
# ## Your turn
#
# Leave an orphan with `session.run("BEGIN", ..., "PREPARE TRANSACTION 'mine'")`, and end it from another session.

# %% tags=["exercise"]
# exercise 08-predict
predicted_08 = {"rows_while_down": ..., "rows_in_the_end": ...}  # two numbers

# %% tags=["solution"]
# exercise 08-predict
predicted_08 = {"rows_while_down": 3, "rows_in_the_end": 5}

# %% tags=["check", "nbval-check-output"]
lab.check("08-predict")

# %% [raw] tags=["expected"]
# 08-predict: not attempted (not graded); write it, and the run unlocks.

# %% tags=["exercise"]
# exercise 08-finish
finish_sql = ...  # a text in quotes; three of them on each side, if it has several lines

# %% tags=["solution"]
# exercise 08-finish
finish_sql = """
SELECT format(CASE WHEN split_part(gid, '/', 2)::int <= decided THEN 'COMMIT PREPARED %L' ELSE 'ROLLBACK PREPARED %L' END,
              gid)
FROM pg_prepared_xacts, job
WHERE database = current_database() AND split_part(gid, '/', 1) = name
"""

# %% tags=["check", "nbval-check-output"]
lab.check("08-finish")

# %% [raw] tags=["expected"]
# 08-finish: not attempted (4 points); lab.hint("08-finish") gives a hint.


# %% tags=["exercise"]
# exercise 08-early
def clean(read, ends):
    """Whether nobody read a row of a transaction that is aborted now."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 08-early
def clean(read, ends):
    """Whether nobody read a row of a transaction that is aborted now."""
    # A row may be read early if its transaction commits in the end; it may not if it aborts.
    return all(ends.get(transaction) != "aborted" for _, transaction in read)


# %% tags=["check", "nbval-check-output"]
lab.check("08-early")

# %% [raw] tags=["expected"]
# 08-early: not attempted (3 points); lab.hint("08-early") gives a hint.

# %% tags=["exercise"]
# exercise 08-orphan
orphan_answer = ...  # "a", "b", "c" or "d"

# %% tags=["solution"]
# exercise 08-orphan
orphan_answer = "c"

# %% tags=["check", "nbval-check-output"]
lab.check("08-orphan")

# %% [raw] tags=["expected"]
# 08-orphan: not attempted (not graded); lab.hint("08-orphan") gives a hint.

# %% [markdown]
# ## Check yourself
#
# **1. A program prepares and is never started again. When does PostgreSQL end its transaction?**
#
# <details><summary>a) When the connection breaks.</summary>No. Both connections broke above; both transactions waited.</details>
# <details><summary>b) After idle_in_transaction_session_timeout.</summary>No. That ends sessions.</details>
# <details><summary>c) Never.</summary>Yes. Somebody must say COMMIT PREPARED or ROLLBACK PREPARED.</details>
#
# **2. Recovery says COMMIT PREPARED and gets error 42704, "does not exist". What should it do?**
#
# <details><summary>a) Treat it as committed.</summary>No. It may have been rolled back; then its rows would be missing.</details>
# <details><summary>b) Run the batch again.</summary>No. It may have been committed; then its rows would come twice.</details>
# <details><summary>c) Look for the marker row.</summary>Yes. That row was written in the same transaction.</details>
#
# ## What this is called in Flink, Spark and Kafka
#
# | here | PostgreSQL | Flink | Spark | Kafka |
# |---|---|---|---|---|
# | pre-commit, the vote | `PREPARE TRANSACTION` | `prepareCommit` (up to 1.x `preCommit`); to databases, the JDBC connector by XA, the standard of transaction managers | `DataWriter.commit` in the task | a flush; there is no vote |
# | the name by which it is finished | gid, under 200 bytes | committable | `WriterCommitMessage`, which Spark does not store | transactional id, producer id, epoch |
# | commit | `COMMIT PREPARED` | `Committer.commit` | `StreamingWrite.commit` | `EndTxn` |
# | list of what waits | `pg_prepared_xacts` | state of the committer | - | `ListTransactions` |
# | owner's setting | `max_prepared_transactions`, default 0 | - | - | `transaction.timeout.ms` |
# | marker row | a table of yours | - | `batchId` in `foreachBatch`; Delta's `txnAppId`, `txnVersion` | - |
#
# (Flink's base class was `TwoPhaseCommitSinkFunction` until 2.0 took it out of the public API. Today it is `Sink` with `SupportsCommitter`.)
#
# ## On Monday
#
# - `SELECT gid, prepared, owner, database FROM pg_prepared_xacts ORDER BY prepared`: watch what is old.
# - Before you finish one by hand, look for the decision in the job's checkpoint.
# - Set `lock_timeout` in programs that write the same tables.
# - For one database and repeatable batches, choose the marker row: it leaves no orphans.
#
# ## Closing the ticket
#
# > **Ticket 10, closed.** A transaction that the job had prepared. It belongs to no session, survives restarts, keeps
# > its locks, and "will prevent cleanup until it is either committed or rolled back"
# > ([pganalyze](https://github.com/pganalyze/pganalyze-docs/pull/154)). `pg_prepared_xacts` named it. The job's
# > checkpoint said that its batch was decided, so we said COMMIT PREPARED. ROLLBACK would have lost the batch. There is
# > an alert now on prepared transactions older than ten minutes.
#
# Sources: PostgreSQL 18's manual on [PREPARE TRANSACTION](https://www.postgresql.org/docs/current/sql-prepare-transaction.html),
# [COMMIT PREPARED](https://www.postgresql.org/docs/current/sql-commit-prepared.html),
# [pg_prepared_xacts](https://www.postgresql.org/docs/current/view-pg-prepared-xacts.html),
# [pg_locks](https://www.postgresql.org/docs/current/view-pg-locks.html); Flink's release notes of 2.0; PySpark 4.2, `StreamingCheckpointManager`.
#
# Next: [09, when does a reader of Kafka see a record?](09_kafka.ipynb)
