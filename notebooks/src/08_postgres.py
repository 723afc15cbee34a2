# ---
# jupyter:
#   labkit:
#     slow: true
# ---

# %% [markdown]
# # Can a transaction outlive the program that wrote it?
#
# Two-phase commit asks a database for something unusual: a transaction that is finished, but not decided, and that
# waits for the decision even if the program dies, the connection breaks or the machine loses power. PostgreSQL has it.
# First you do it by hand, in SQL; then a real Spark job is killed in the middle of it.
#
# **Nothing in this notebook is simulated**, except where a cell says so. The server is a real PostgreSQL: yours, if
# `LABKIT_POSTGRES` names one, or else a private one that starts in a second or two and is gone when this notebook's
# kernel ends. It takes about fifteen minutes. Run the cells from top to bottom; one that needs another says which.

# %% tags=["parameters"]
failpoint = "sink.after_pre_commit"  # where Spark's two_phase is killed further down: all prepared, nothing decided

# %% [markdown]
# ## Two branches of a bank
#
# *North* and *south* have 500 each. They stand for two systems: each has a connection of its own and can only commit its
# own part. (Here both tables are in one database, so that you can add them up in one query.) A session prints what the
# server answers.

# %% tags=["nbval-check-output"]
from labkit import lab

server = lab.postgres()
north, south, reader = (server.session(name) for name in ("north", "south", "reader"))
print(north.run("CREATE TABLE north (balance int)", "INSERT INTO north VALUES (500)"))
print(south.run("CREATE TABLE south (balance int)", "INSERT INTO south VALUES (500)"))
total = "SELECT north.balance + south.balance AS total FROM north, south"
print(reader.run(total))

# %% [raw] tags=["expected"]
# north: CREATE TABLE
# north: INSERT 0 1
# south: CREATE TABLE
# south: INSERT 0 1
# reader: total
# reader: 1000

# %% [markdown]
# ## Naive: one after the other
#
# Take 100 in the north, give 100 in the south. The program dies in between; for the server that is a connection which
# breaks, and `crash()` does just that. What is the total afterwards? Write your answer in place of `None`, then run the
# cell. It runs without it, too.

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("server", cell="the cell that makes the two branches")
said = lab.predict({"total afterwards": None})
print(north.run("UPDATE north SET balance = balance - 100"))
north.crash()
print(said.beside({"total afterwards": reader.run(total).value}))

# %% [raw] tags=["expected"]
# north: UPDATE 1
#                   it was
# total afterwards  900
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# ## Less naive: two open transactions
#
# Now each branch opens a transaction, both do their work, and only then both commit. That narrows the window. The program
# dies between the two commits. Can somebody else commit the second one later?

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("server", cell="the cell that makes the two branches")
said = lab.predict({"total afterwards": None})
north = server.session("north")
print(north.run("UPDATE north SET balance = 500", "BEGIN", "UPDATE north SET balance = balance - 100"))
print(south.run("BEGIN", "UPDATE south SET balance = balance + 100"))
print(north.run("COMMIT"))
south.crash()  # before its COMMIT
print(said.beside({"total afterwards": reader.run(total).value}))

# %% [raw] tags=["expected"]
# north: UPDATE 1
# north: BEGIN
# north: UPDATE 1
# south: BEGIN
# south: UPDATE 1
# north: COMMIT
#                   it was
# total afterwards  900
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# An open transaction belongs to its connection and dies with it. There is nothing left that anybody could commit.
#
# ## Prepare, then decide
#
# `PREPARE TRANSACTION 'name'` is PostgreSQL's vote *yes*. It takes the transaction away from its connection and writes it to
# disk under a name; it is neither committed nor rolled back. Both branches prepare, then **both connections break**. How
# many transactions are left, and what is the total that a reader sees?

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("server", cell="the cell that makes the two branches")
north, south = server.session("north"), server.session("south")
north.run("UPDATE north SET balance = 500")
print(north.run("BEGIN", "UPDATE north SET balance = balance - 100", "PREPARE TRANSACTION 'transfer-north'"))
print(south.run("BEGIN", "UPDATE south SET balance = balance + 100", "PREPARE TRANSACTION 'transfer-south'"))

# %% [raw] tags=["expected"]
# north: BEGIN
# north: UPDATE 1
# north: PREPARE TRANSACTION
# south: BEGIN
# south: UPDATE 1
# south: PREPARE TRANSACTION

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("north", "south", cell="the cell above")
said = lab.predict({"transactions left": None, "total": None})
for session in (north, south):
    session.crash()
waiting = "SELECT gid FROM pg_prepared_xacts WHERE gid LIKE 'transfer-%' ORDER BY gid"
print(said.beside({"transactions left": len(reader.run(waiting).rows), "total": reader.run(total).value}))

# %% [raw] tags=["expected"]
#                    it was
# transactions left  2
# total              1000
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# The view `pg_prepared_xacts` lists what waits. A broken connection is a mild death, though. The next cell sends SIGKILL to
# **every process of the server** and starts it again (only if it is the private one). What is left?

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("waiting", cell="the cell above")
said = lab.predict({"transactions left": None})
print(server.kill())
reader = server.session("reader")
print(reader.run(waiting))
print(said.beside({"transactions left": len(reader.run(waiting).rows)}))

# %% [raw] tags=["expected"]
# the server died by signal 9; another process runs now: yes
# reader: gid
# reader: transfer-north
# reader: transfer-south
#                    it was
# transactions left  2
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# They wait, after the death of their writers and of the server. (SIGKILL is not a power cut: what the operating system
# had not yet written to disk survives it. PostgreSQL waits for the disk as well, which this run cannot show.)
#
# ## Somebody else commits
#
# The decision is: commit. A session that had nothing to do with the transfer carries it out, one branch after the other. What
# does a reader see between the two, and what in the end?

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("waiting", cell="the cell in which both branches prepare")
said = lab.predict({"between the two": None, "in the end": None})
other = server.session("other")
print(other.run("COMMIT PREPARED 'transfer-north'"))
between = reader.run(total).value
print(other.run("COMMIT PREPARED 'transfer-south'"))
print(said.beside({"between the two": between, "in the end": reader.run(total).value}))

# %% [raw] tags=["expected"]
# other: COMMIT PREPARED
# other: COMMIT PREPARED
#                  it was
# between the two  900
# in the end       1000
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# A **fractured read**: 900 for a moment. If the one who commits dies in between, the moment lasts until somebody
# recovers. Two-phase commit promises all or nothing *in the end*; it does not promise that both become visible at once.
#
# ## May a commit come twice?
#
# Recovery often cannot know how far the dead program came, so it commits again. PostgreSQL's answers to a second commit,
# and to the commit of a transaction that never was. Can you tell the two apart?

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("other", cell="the cell above")
again = other.run("COMMIT PREPARED 'transfer-north'")
never = other.run("COMMIT PREPARED 'transfer-west'")
print(again, never, sep="\n")
assert again.code == never.code

# %% [raw] tags=["expected"]
# other: ERROR 42704: prepared transaction with identifier "transfer-north" does not exist
# other: ERROR 42704: prepared transaction with identifier "transfer-west" does not exist

# %% [markdown]
# *It is not there* may mean committed, rolled back or never prepared. The way out is a **marker**: a row with the name of the
# transaction, written in that same transaction. It is there if and only if the transaction was committed. Two transactions
# with markers and one decision each:

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("other", cell="the cell in which somebody else commits")
north, south = server.session("north"), server.session("south")
other.run("CREATE TABLE done (name text PRIMARY KEY)")
north.run("BEGIN", "INSERT INTO done VALUES ('first')", "PREPARE TRANSACTION 'first'")
south.run("BEGIN", "INSERT INTO done VALUES ('second')", "PREPARE TRANSACTION 'second'")
print(other.run("COMMIT PREPARED 'first'", "ROLLBACK PREPARED 'second'"))
print(reader.run("SELECT name FROM done"))

# %% [raw] tags=["expected"]
# other: COMMIT PREPARED
# other: ROLLBACK PREPARED
# reader: name
# reader: first

# %% [markdown]
# ## The price: who is locked out?
#
# A program prepares and dies, and nobody comes to decide: an **orphan**. Another program wants to update the same row, and a
# third one only reads it. Who gets through: the *writer*, the *reader*, *both* or *nobody*?

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("other", cell="the cell in which somebody else commits")
said = lab.predict({"gets through": None})
north = server.session("north")
north.run("BEGIN", "UPDATE north SET balance = balance - 1", "PREPARE TRANSACTION 'orphan'")
north.crash()
writes = other.run("SET lock_timeout = '300ms'", "UPDATE north SET balance = balance - 1")
tried = {"writer": writes, "reader": reader.run("SELECT count(*) FROM north")}
print(writes)
print(said.beside({"gets through": " ".join(name for name, reply in tried.items() if not reply.code)}))

# %% [raw] tags=["expected"]
# other: SET
# other: ERROR 55P03: canceling statement due to lock timeout
#               it was
# gets through  reader
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# Without `lock_timeout` the writer would wait for ever, since **no timeout ever ends a prepared transaction**. Whoever
# wants to change a row that an unfinished transaction has changed waits for that transaction. And its owner is no process:

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("writes", cell="the cell above")
owner = "FROM pg_locks JOIN pg_prepared_xacts ON transactionid = transaction WHERE gid = 'orphan'"
print(reader.run(f"SELECT gid, locktype, mode, pid {owner}"))
print(other.run("ROLLBACK PREPARED 'orphan'", "UPDATE north SET balance = balance - 1"))
assert writes.code == "55P03"  # lock_not_available

# %% [raw] tags=["expected"]
# reader: gid     locktype       mode           pid
# reader: orphan  transactionid  ExclusiveLock  -
# other: ROLLBACK PREPARED
# other: UPDATE 1

# %% [markdown]
# > **What popular notes get wrong.** "*Two-phase commit is perfect.*" The orphan above blocked everybody who wanted to write that
# > row, and would have done so for a year; it also keeps PostgreSQL from cleaning up old rows. That is why prepared
# > transactions are **off** by default (`max_prepared_transactions = 0`). For recovery it means: *first* finish every
# > orphan of your own, *then* replay. In the other order the replayed update waits for its own predecessor.
#
# ## A transaction that may not stay open
#
# Two-phase commit keeps a transaction open for a whole batch or checkpoint interval. A server can be told to end
# sessions that are idle in one (`idle_in_transaction_session_timeout`). Here it is half a second, and the second row comes later.
# How many rows are there in the end, and how many prepared transactions?

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("server", cell="the cell that makes the two branches")
said = lab.predict(rows=None, prepared=None)
slow = server.session("slow")
slow.run("CREATE TABLE words (word text)", "SET idle_in_transaction_session_timeout = '500ms'")
print(slow.run("BEGIN", "INSERT INTO words VALUES ('hello')"))
slow.wait_for_its_end()  # nothing is sent, until the server has ended the session
print(slow.run("INSERT INTO words VALUES ('world')", "PREPARE TRANSACTION 'slow'"))
prepared = reader.run("SELECT gid FROM pg_prepared_xacts WHERE gid = 'slow'").rows
print(said.beside(rows=reader.run("SELECT count(*) FROM words").value, prepared=len(prepared)))

# %% [raw] tags=["expected"]
# slow: BEGIN
# slow: INSERT 0 1
# slow: ERROR 25P03: terminating connection due to idle-in-transaction timeout
#           it was
# rows      0
# prepared  0
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# It never prepares: no loss, no duplicate, and no progress either, however often it is repeated.
#
# | two-phase commit demands | PostgreSQL | seen above |
# |---|---|---|
# | transactions | yes | |
# | open for a whole interval | yes, unless a timeout for idle sessions is shorter | *slow* never prepares |
# | pending until the decision is known | yes, without a timeout, through a SIGKILL of the server | two waited |
# | any process can finish it | yes, by name | *other* did |
# | a second commit changes nothing | an error, the same as for one that never was | a marker row tells |
#
# ## Now under Spark
#
# A real PySpark job counts *hello*, *world*, *hello* into this server. It is killed by SIGKILL and restarted from its
# checkpoint, four times:
#
# | sink | killed when |
# |---|---|
# | append | all rows are written, and visible; Spark has not noted it |
# | batch_marker | all rows are written with their marker, and visible; Spark has not noted it |
# | two_phase | all tasks have prepared, and nothing is decided |
# | two_phase, half committed | it is decided, and one of two tasks has committed |
#
# Which guarantee has each? All four take about half a minute on a quiet machine.

# %%
my_predictions = {"append": None, "batch_marker": None, "two_phase": None, "two_phase, half committed": None}

# %%
from labkit import lab

lab.need("failpoint", "my_predictions", cell="the first code cell, and the cell above")
cases = {"append": {"at": "sink.after_pre_commit", "sink": "append"}}
cases["batch_marker"] = {"at": "sink.after_commit", "sink": "batch_marker"}
cases["two_phase"] = {"at": failpoint, "sink": "two_phase"}
cases["two_phase, half committed"] = {"at": "sink.mid_commit", "sink": "two_phase"}
lab.postgres()  # ends what you did by hand
runs = lab.crash_each({name: case | {"store": "postgres"} for name, case in cases.items()})

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("runs", "my_predictions", cell="the cell above")
print(lab.table(runs, my_predictions))
assert all(run.crashes[0]["signal"] == 9 for run in runs.values())

# %% [raw] tags=["expected"]
#                            guarantee      lost  duplicate  jumped back
# append                     at-least-once  0     3          1
# batch_marker               exactly-once   0     0          0
# two_phase                  exactly-once   0     0          0
# two_phase, half committed  exactly-once   0     0          0

# %% [markdown]
# *append* and *batch_marker* died at the same moment: rows visible, `commits/0` not there, so the batch runs again. The
# difference is one row: *batch_marker* writes (query, batch) into the transaction that holds its rows, the marker from
# above. The second time it finds the marker and skips the batch. That is exactly-once **without** two-phase commit, if all
# rows go through one transaction.
#
# What did recovery find in `pg_prepared_xacts`, and what did it do?

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("runs", cell="the cell that runs Spark")
for name in ("two_phase", "two_phase, half committed"):
    crash = runs[name].crashes[0]
    did = [step.split()[0] for step in crash["recovery"]]
    print(f"{name:25} commits {crash['commit_log']}  recovery: {', '.join(did)}")

# %% [raw] tags=["expected"]
# two_phase                 commits []  recovery: aborted, aborted
# two_phase, half committed commits [0]  recovery: committed, committed

# %% [markdown]
# Without `commits/0` nothing was decided: both prepared transactions are rolled back, and the batch runs again. With it,
# recovery commits both by name, the one that was committed already, too: its marker says so.
#
# While the driver was dead, between the two commits, a reader could see only part of the batch:

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("runs", cell="the cell that runs Spark")
half = runs["two_phase, half committed"]
print(half.seen)
print("visible without the rest of their batch: offsets", list(half.verdict.fractured_read))
assert not runs["batch_marker"].verdict.fractured_read  # one transaction has no halves

# %% [raw] tags=["expected"]
# world=1 | crash 1 | hello=1 hello=2
# visible without the rest of their batch: offsets [1]

# %% [markdown]
# The same crash **simulated**, to step through:

# %%
from labkit import lab

lab.show("pipeline.half_committed")

# %% [markdown]
# ## Back with fewer tasks
#
# Four tasks prepare a transaction each. Two of the four are committed, then the driver dies, and the job comes back with
# **two** tasks; in its second batch it dies at the same point once more. How many transactions does each recovery
# commit, and which guarantee is left? (Real Spark and PostgreSQL again, about half a minute.)

# %%
from labkit import lab

lab.need("runs", cell="the cell that runs Spark")
said = lab.predict({"committed after the first crash": None, "after the second": None, "guarantee": None})
case = {"sink": "two_phase", "store": "postgres", "input": lab.TWELVE_WORDS, "records_per_batch": 4}
rescaled = lab.crash(["sink.mid_commit@0", "sink.mid_commit@1"], partitions=4, later_partitions=2, **case)

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("rescaled", cell="the cell above")
first, second = (sum(step.startswith("committed") for step in crash["recovery"]) for crash in rescaled.crashes)
found = {"committed after the first crash": first, "after the second": second}
print(said.beside(found | {"guarantee": rescaled.verdict.guarantee}))
assert all(crash["signal"] == 9 for crash in rescaled.crashes)

# %% [raw] tags=["expected"]
#                                  it was
# committed after the first crash  4
# after the second                 2
# guarantee                        exactly-once
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# A handle is a name and needs no task: the driver that comes back commits all four, though it has only two tasks
# itself. Which tasks there are matters to Spark's *state*, not to the transactions. And the state cannot be cut anew. Spark was
# told to use two partitions after the crash, and the third batch was planned then. Its plan says what was used:

# %% tags=["nbval-check-output"]
import json

from labkit import lab

lab.need("rescaled", cell="the cell that restarts with fewer tasks")
settings = json.loads(rescaled.checkpoint_file("offsets/2").splitlines()[1])["conf"]
print("partitions of the state in the third batch:", settings["spark.sql.shuffle.partitions"])
assert 2 not in rescaled.crashes[0]["offset_log"]  # the first driver had not planned it

# %% [raw] tags=["expected"]
# partitions of the state in the third batch: 4

# %% [markdown]
# ## Your turn
#
# **Simulated**, too, and you choose each step: *let the job die between its two commits, then let its
# recovery die as well, and finish.* Can you find an order of steps in which a row comes twice, or never? `?` shows the keys.

# %%
from labkit import lab

steering = lab.explorer("pipeline", strategy="two_phase", crashes=2)
steering

# %%
from labkit import lab

lab.need("steering", cell="the cell above")
print(lab.replay(steering.trace).seen)

# %% [markdown]
# And on the real server: leave an orphan with `session.run("BEGIN", ..., "PREPARE TRANSACTION 'mine'")`, and end it from another
# session. What you leave behind is rolled back when `lab.postgres()` is called again, or with the private server.

# %% [markdown] tags=["task"]
# ## Exercise: prepared, and nobody there (`08-predict`)
#
# *two_phase* on PostgreSQL, three records in one batch, killed between pre-commit and commit: all is prepared, nothing
# decided. How many rows does a reader find while the job is down, and how many in the end? (The check runs it in the
# simulator, which agrees with the real run above.)
#
# *predict, easy, 1 point for predicting, right or wrong; one line.*
#
# <details><summary>Hint 1</summary>Who sees the rows of a prepared transaction?</details>
# <details><summary>Hint 2</summary>Was anything decided?</details>

# %% tags=["exercise"]
# exercise 08-predict
predicted_08 = {"rows_while_down": ..., "rows_in_the_end": ...}  # two numbers

# %% tags=["solution"]
# exercise 08-predict
predicted_08 = {"rows_while_down": 0, "rows_in_the_end": 3}

# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("08-predict")

# %% [raw] tags=["expected"]
# 08-predict: not attempted (1 point); write it, and the run unlocks.

# %% [markdown] tags=["task"]
# ## Exercise: an orphan in the morning (`08-orphan`)
#
# In the morning `pg_prepared_xacts` lists a transaction of a job that died at night. It holds locks, and somebody
# complains. What do you do?
#
# - **a** Wait; PostgreSQL ends it after a while.
# - **b** `ROLLBACK PREPARED`, since the job is dead.
# - **c** Start the job again with its checkpoint, and let its recovery end the transaction.
# - **d** `COMMIT PREPARED`, since the rows were written.
#
# *explain, medium, 1 point for the right choice; the check gives a reason for each; one line.*
#
# <details><summary>Hint 1</summary>Who knows whether it was decided?</details>
# <details><summary>Hint 2</summary>Look at what labkit.spark.start does before the query starts.</details>

# %% tags=["exercise"]
# exercise 08-orphan
orphan_answer = ...  # "a", "b", "c" or "d"

# %% tags=["solution"]
# exercise 08-orphan
orphan_answer = "c"

# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("08-orphan")

# %% [raw] tags=["expected"]
# 08-orphan: not attempted (1 point); lab.hint("08-orphan") helps.

# %% [markdown]
# ## What remains true
#
# - A prepared transaction needs neither its program nor its connection, and it survives the server's death.
# - It holds its locks until somebody decides. Whoever prepares must recover, and must recover before replaying.
# - Commits of several transactions are not one step: readers can see a part.
# - A transaction is finished by its name: a job may come back with other tasks than those that prepared.
# - A marker in the same transaction says what was committed, and where one transaction is enough, it is all you need.
#
# ## Check yourself
#
# **1. A program prepares and is never started again. When does PostgreSQL end its transaction?**
#
# <details><summary>a) When the connection breaks.</summary>PREPARE TRANSACTION has taken it away from its connection. Both
# connections broke above, and both transactions waited.</details>
# <details><summary>b) After idle_in_transaction_session_timeout.</summary>That ends sessions. A prepared transaction has no
# session.</details>
# <details><summary>c) Never.</summary>Yes. Somebody must say COMMIT PREPARED or ROLLBACK PREPARED.</details>
#
# **2. Recovery says COMMIT PREPARED and gets error 42704, "does not exist". What should it do?**
#
# <details><summary>a) Treat it as committed.</summary>It may have been rolled back, or never prepared. Then its rows would be
# missing.</details>
# <details><summary>b) Run the batch again.</summary>If it had been committed, its rows would come twice.</details>
# <details><summary>c) Look for the marker.</summary>Yes: a row that was written in the same transaction.</details>
#
# **3. After a crash a job first replays its upserts and then looks for orphans. What happens?**
#
# <details><summary>a) It waits for its own dead predecessor.</summary>Yes: the orphan holds the locks of the same
# keys.</details>
# <details><summary>b) The replayed values win.</summary>They cannot be written before the orphan lets go of its
# locks.</details>
#
# **4. All rows of a batch go to one PostgreSQL through one connection. Which is the simplest exactly-once?**
#
# <details><summary>a) PREPARE TRANSACTION.</summary>It works, and leaves orphans to look after.</details>
# <details><summary>b) One plain transaction with a marker.</summary>Yes, <i>batch_marker</i> above: the same kill, no prepared
# transaction.</details>
#
# ## Sources
#
# PostgreSQL's manual: [PREPARE TRANSACTION](https://www.postgresql.org/docs/current/sql-prepare-transaction.html),
# [COMMIT PREPARED](https://www.postgresql.org/docs/current/sql-commit-prepared.html),
# [pg_prepared_xacts](https://www.postgresql.org/docs/current/view-pg-prepared-xacts.html) and
# [pg_locks](https://www.postgresql.org/docs/current/view-pg-locks.html); in Apache Flink `TwoPhaseCommitSinkFunction`, whose contract says that a commit must be able to succeed in the end.
#
# Next: [09, when does a reader of Kafka see a record?](09_kafka.ipynb)
