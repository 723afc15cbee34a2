# ---
# jupyter:
#   labkit:
#     needs: [06_sinks, 07_crash_spark, 12_engines]
#     slow: true
# ---

# %% [markdown]
# # Does *your* sink survive every crash?
#
# > **Ticket 22** (invented). *A pull request, by you:* "Sink for orders. I have killed it ten times by hand, and the
# > table was right each time. Can we merge?"
#
# Ten kills at ten moments say little about all other moments. Here we kill a sink at every place under a simulated
# engine, and at some places under real Spark.
#
# {head}
#
# You will be able to
#
# - find the places at which a sink can be killed, and say what is left at each;
# - say what a key, a marker and one commit repair, and what each of them leaves;
# - have a sink tested on real Spark, and hand over a page that says what was measured and what was not.

# %% tags=["parameters"]
kind = "table"  # what the sinks write to

# %%
from labkit import lab

# %% [markdown]
# ## The first edition
#
# This is your sink's first edition, now with a transaction around its rows. Remember: each statement commits by itself, unless it stands between BEGIN and COMMIT. (`db.execute` returns the rows of the answer as a list.)


# %%
def append(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("BEGIN")
    for row in rows:
        db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
    db.execute("COMMIT")


# %% [markdown]
# The engine keeps Spark's rule. It writes down which rows a batch has, calls the sink, and after the sink's return it notes
# the batch as finished. A batch that is not noted comes again after a restart, with the same number and the same rows.
#
# A *place* is a moment at which a kill can come: under the simulated engine before each request of the sink, and after its return. Between two
# requests nothing changes in the database, so all kills between them leave the database in the same state, and one is
# enough.

# %%
lab.ask("14-append")

# %%
first = lab.try_sink(append, kind)
first

# %% tags=["nbval-check-output"]
*within, returned = (kill == "at-least-once" for kill in first.kills)
lab.answer(
    "14-append", {(False, True): "after its return", (True, False): "before a request"}.get((any(within), returned))
)

# %% [raw] tags=["expected"]
# It was: after its return.
# A kill before COMMIT rolls the transaction back, so the table has no row that the repeat could double. Only a kill after the sink's return leaves rows that the engine hands over once more.

# %% tags=["checked"]
assert not first["a crash at every place"]
assert not first["an older checkpoint"]
assert first["what a reader saw"]
assert first.kills == ["exactly-once"] * 6 + ["at-least-once"]

# %% [markdown]
# The picture shows the first batch, which has three rows, and the result of a kill at each place. The table counts the
# runs of five checks, each of which tries one part of the guarantee:
#
# | check | what is done |
# |---|---|
# | a crash at every place | one kill, one restart, in one batch after the other |
# | what a reader saw | the same; a reader must see no part of a batch meanwhile |
# | a second crash, in the recovery | a kill, and one more while the batch comes again |
# | an older checkpoint | all is done; then batches that were finished come again |
# | a second query | another query writes into the same table, and counts its batches from 0 |
#
# The database is a real SQLite file. Each kill is a SIGKILL of the process that has it open. Another
# process reads after every request that may have changed what others see. Only the engine and its source are simulated.
#
# There is exactly one bad place: your function has returned and the engine has not yet written it down. Your code is no longer running, so no `except` or
# `finally` can help. Ten kills by hand hardly ever come there.
#
# ## The same function on real Spark
#
# `lab.save_sink` writes a function into a file, with the lines that Spark needs around it. `lab.crash_test` is `labkit crashtest`:
# real Spark runs that file, the whole job is killed and started again, and a reader looks from outside.
#
# A test of all places takes many minutes. A short test tries the places that you name, in about half a minute. On real Spark, a place is the moment just before a durable effect, or before a line of your file: here before Spark renames a file to `commits/0`, its note that batch 0 is done. By then
# the sink has returned.

# %%
short = lab.crash_test(lab.save_sink(append, "my_append.py"), only=["rename checkpoint/commits/<n> #1"])
short

# %% tags=["nbval-check-output"]
short.claim, short.violated

# %% [raw] tags=["expected"]
# ('not exactly-once, at best at-least-once', ['duplicate'])

# %% [markdown]
# All ten rows of the batch came twice. If a short test finds something wrong, that is a fact. If it finds nothing, that
# is no guarantee: any other place may break.
#
# ## A key: the same row once more
#
# An order has an `id`. If it is the table's key, a row that comes again replaces itself.


# %%
def by_key(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id PRIMARY KEY, item, amount)")
    for row in rows:
        db.execute("INSERT OR REPLACE INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])


# %%
lab.ask("14-key")

# %%
keyed = lab.try_sink(by_key, kind)
keyed

# %% tags=["nbval-check-output"]
whatever, seen = keyed["a crash at every place"], keyed["what a reader saw"]
lab.answer("14-key", "a reader sees a part of a batch" if whatever and not seen else "another thing")

# %% [raw] tags=["expected"]
# It was: a reader sees a part of a batch.
# Every row commits by itself. From the kill until the repeat is through, a reader finds some rows of the batch and not the others.

# %% tags=["checked"]
assert set(keyed.kills) == {"exactly-once"}
assert keyed["an older checkpoint"]
assert keyed["a second query"]
assert not keyed["a second crash, in the recovery"]

# %% [markdown]
# In the end all rows are there once. Two things make it so. The repeat has the same rows under the same keys: an `id`
# comes from the record, and not from a clock or a random number. And a write sets a value. A write that adds to the old
# value adds twice if the kill comes after it, unless a marker in its transaction says that it has been done.
#
# What still breaks: the end is right, but what a reader sees on the way is not. The check with a second crash fails for
# the same reason, because readers look there, too. A transaction shows all of a batch or nothing, so from here on each
# sink has one.
#
# ## A marker, but where?
#
# Not every table has a key. Then a sink that gets a batch again needs to know that the batch is there. A **marker** is a row
# that says so. It names the query and the batch. Let us write it when the rows are safe.


# %%
def with_marker(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    if db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", [query, batch]):
        return
    db.execute("BEGIN")
    for row in rows:
        db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
    db.execute("COMMIT")
    db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])


# %%
lab.ask("14-marker")

# %%
second = lab.try_sink(with_marker, kind)
second

# %% tags=["nbval-check-output"]
*before, at_marker, returned = second.kills
at_both = at_marker == returned == "at-least-once"
place = "before the marker's INSERT" if at_marker == "at-least-once" else "nowhere"
lab.answer("14-marker", "at both of these" if at_both else place)

# %% [raw] tags=["expected"]
# It was: before the marker's INSERT.
# There the rows are committed and the marker is not. When the sink has returned, the marker is there, and the repeated batch is skipped.

# %% tags=["checked"]
assert set(before) == {"exactly-once"}
assert returned == "exactly-once"
assert second["an older checkpoint"]
assert second["a second query"]

# %% [markdown]
# What still breaks: the marker has moved the bad place, but has not removed it. Now the other way round: the marker
# first, then the rows.


# %%
def other_order(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
    if db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", [query, batch]):
        return
    db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
    db.execute("BEGIN")
    for row in rows:
        db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
    db.execute("COMMIT")


# %%
third = lab.try_sink(other_order, kind)
third

# %% tags=["checked"]
assert third.kills.count("at-most-once") == 5

# %% [markdown]
# Five places lose the batch, between the marker's commit and that of the rows: before BEGIN, before each of three
# INSERTs, and before COMMIT. After such a kill the batch comes again, the sink finds the marker, and skips the batch.
# On real Spark, the kill comes before line 10, the COMMIT:

# %%
short = lab.crash_test(lab.save_sink(other_order, "my_order.py"), only=["my_order.py:10"])
short

# %% tags=["nbval-check-output"]
short.violated

# %% [raw] tags=["expected"]
# ['lost']

# %% [markdown]
# Ten rows are gone, and nothing in the table says so. We have now tried both orders. Write the marker after the rows, and a crash between the two doubles the
# batch. Write it before the rows, and the same crash loses the batch. As long as they are two commits there is a moment in between, and no retry closes it: a
# restarted sink that finds the marker cannot tell whether the rows made it. The way out is to stop choosing an order.
#
# ## One commit for both
#
# Put rows and marker within the same BEGIN and COMMIT. This sink does so. Its marker names the batch alone.


# %%
def marker_of_the_batch(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (batch)")
    db.execute("BEGIN")
    if not db.execute("SELECT 1 FROM marks WHERE batch = ?", [batch]):
        for row in rows:
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
        db.execute("INSERT INTO marks VALUES (?)", [batch])
    db.execute("COMMIT")


# %% [markdown]
# A short test can also do runs without a kill. One is a second query with a fresh checkpoint. The other one breaks a
# condition: the source gives other rows for the same batch. No sink has to survive that, so the report counts it apart.

# %%
runs = ["rename checkpoint/commits/<n> #1", "fresh_checkpoint", "other_rows"]
tested = lab.crash_test(lab.save_sink(marker_of_the_batch, "my_marker.py"), only=runs)
tested

# %% tags=["nbval-check-output"]
{each.id: "lost" in each.violated for each in tested.report.summary.results if each.id in runs[1:]}

# %% [raw] tags=["expected"]
# {'fresh_checkpoint': True, 'other_rows': True}

# %% tags=["checked"]
kills = [each for each in tested.report.summary.results if each.group == "crash"]
assert len(kills) == 1
assert not kills[0].violated

# %% [markdown]
# The kill does no harm, but the second query loses rows. Its batch 0 finds the mark of the first one's batch 0. Nobody sees an error: the query reports its rows, and the table does not grow. So the marker has to name the query, too.
#
# The name does not save the first query if it gets a new, empty checkpoint, which counts from 0 as well. Under the old name it loses rows. Under a
# new one, such as Spark's new `queryId`, it doubles what it reads again ([07](07_crash_spark.ipynb)). So choose a name, change it with
# the checkpoint, and begin the new query where the old one had ended.
#
# The broken condition loses rows, too: the same number gets other rows, and the marker skips them. The same happens
# when an older checkpoint is restored and the source has more records by then. A key of the record helps in both cases.
# That is what your file has recognised since notebook 12.
#
# ## Your own file, on real Spark
#
# The last edition of `my_sink.py`, once more in front of the simulated engine, with its whole history:

# %%
lab.my_sink(after="14")

# %% [markdown]
# If all columns hold, let real Spark judge the same file. In a new cell, the **quick test** takes two to four minutes. It kills at 12 places at most, and
# at up to nine pairs of places, the second one in a recovery. It adds a large batch, an older checkpoint and a second query. It leaves out all other places and pairs:
#
# ```python
# lab.crash_test("my_sink.py:foreach_batch")
# ```
#
# ## What the page says
#
# Beside each report lies `certificate.html`. It is one page for everybody who relies on the table: the guarantee, what was done to
# the job and how often, and what was **not** measured. A test of only some places, such as the quick test, says at best *not refuted*, and names the share. Only a test of every place says *exactly-once*.
# *Unknown* means that a run proved nothing, for example because the test did not see all that the sink does.
#
# Suppose that your test finds nothing. Would it find a defect? Try it on a sink that you know to be wrong. Here each
# wrong one was caught. A test of your own must kill the process, because an exception runs `finally`; and it must
# compare the rows and not their number, because one lost row and one doubled row leave the number as it was.
#
# A certificate has conditions: a number stands for the same records ([06](06_sinks.ipynb)), the store's commit is all or nothing, and there is one writer. It speaks of
# rows in the store: a mail that the function sends is sent again. [14b](14b_files_and_writers.ipynb) goes on with files, with repairs that die, and with two writers.

# %% tags=["exercise"]
# exercise 14-judge
guarantees = {"a": ..., "b": ..., "c": ..., "d": ..., "e": ..., "f": ..., "g": ..., "h": ...}

# %% tags=["solution"]
# exercise 14-judge
guarantees = {
    "a": "at-least-once", "b": "at-least-once", "c": "exactly-once", "d": "at-most-once",
    "e": "exactly-once", "f": "at-most-once", "g": "none", "h": "exactly-once",
}  # fmt: skip

# %% tags=["check", "nbval-check-output"]
lab.check("14-judge")

# %% [raw] tags=["expected"]
# 14-judge: not attempted (4 points); lab.hint("14-judge") gives a hint.


# %% tags=["exercise"]
# exercise 14-kills
def guarantee(requests):
    """What a sink guarantees that makes these requests, over a kill at every place."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 14-kills
def guarantee(requests):
    """What a sink guarantees that makes these requests, over a kill at every place."""

    rows = range(requests.count("ROW"))

    def call(table, some):
        names, held, is_open = iter(rows), [], False
        for request in some:
            if request == "LOOK" and "MARK" in table:
                break
            if request == "BEGIN":
                is_open = True
            elif request == "COMMIT":
                table += held
                held, is_open = [], False
            elif request != "LOOK":
                (held if is_open else table).append("MARK" if request == "MARK" else next(names))

    lost = twice = False
    for place in range(len(requests) + 1):
        table = []
        call(table, requests[:place])
        call(table, requests)
        lost = lost or any(row not in table for row in rows)
        twice = twice or any(table.count(row) > 1 for row in rows)
    if lost:
        return "none" if twice else "at-most-once"
    return "at-least-once" if twice else "exactly-once"


# %% tags=["check", "nbval-check-output"]
lab.check("14-kills")

# %% [raw] tags=["expected"]
# 14-kills: not attempted (4 points); lab.hint("14-kills") gives a hint.


# %% tags=["exercise"]
# exercise 14-table
def write_batch(db, query, batch, rows):
    """Writes the rows of one batch, exactly once."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 14-table
def write_batch(db, query, batch, rows):
    """Writes the rows of one batch, exactly once."""
    # Look, marker and rows in one transaction that locks before it looks; the marker names query and batch.
    db.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER, item TEXT, amount INTEGER)")
    db.execute("CREATE TABLE IF NOT EXISTS finished (of_query TEXT, its_batch INTEGER)")
    db.execute("BEGIN IMMEDIATE")
    known = db.execute("SELECT its_batch FROM finished WHERE of_query = ? AND its_batch = ?", [query, batch])
    if not known:
        db.execute("INSERT INTO finished VALUES (?, ?)", [query, batch])
        for order in rows:
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", [*order.values()])
    db.execute("END")


# %% tags=["check", "nbval-check-output"]
lab.check("14-table")

# %% [raw] tags=["expected"]
# 14-table: not attempted (8 points); lab.hint("14-table") gives a hint.

# %% tags=["check"]
lab.crash_test(lab.save_sink(write_batch, "my_table.py"))  # one or two minutes, when your sink is written

# %% tags=["exercise"]
# exercise 14-report
report_text = ...

# %% tags=["solution"]
# exercise 14-report
report_text = """
The table of orders holds the effect of each order exactly once, and a reader never sees a part of a batch.
This holds under three conditions. The engine repeats a batch that is not noted as finished, with the same rows.
SQLite commits rows and marker together. Nobody else writes to these two tables.
It was measured: a real Spark job was killed at every durable effect, again in its recovery, and with an older checkpoint.
It was not measured what a power cut takes. The marker does not help if the source gives other rows for the same batch:
the old ones stay, and the new ones are lost. Then the plan of the batch has to be kept first.
"""

# %% tags=["check", "nbval-check-output"]
lab.check("14-report")

# %% [raw] tags=["expected"]
# 14-report: not attempted (4 points); lab.hint("14-report") gives a hint.

# %% [markdown]
# ## Check yourself
#
# **1. The marker is in the transaction of the rows, but the sink looks for it *before* BEGIN. When do rows come twice?**
#
# <details><summary>a) After a kill between the look and BEGIN.</summary>Nothing was written, and the repeated batch looks again.</details>
# <details><summary>b) When a second writer looks before the first one commits.</summary>Yes. Both have seen no marker, and both write.</details>
#
# **2. The marker names the batch, and not the query. What goes wrong?**
#
# <details><summary>a) A second query loses rows.</summary>Yes: its batch 0 is taken for the first query's batch 0.</details>
# <details><summary>b) A crash doubles rows.</summary>The marker is in the same transaction, so a repeated batch is known.</details>
#
# **3. A certificate says *unknown*. What do you do?**
#
# <details><summary>a) Take it for exactly-once, since nothing wrong was found.</summary>Not even <i>not refuted</i> means that, and here a run proved nothing at all.</details>
# <details><summary>b) Read why, and test again with what is missing.</summary>Yes: the page names the runs that proved nothing.</details>
#
# ## What this is called in Flink, Spark and Kafka
#
# | here | Flink | Spark | Kafka |
# |---|---|---|---|
# | sink, one batch | `SinkWriter`, what comes between two barriers | function of `foreachBatch` | records of one transaction |
# | query and batch | job, operator and checkpoint id | `queryId` and `batchId` | group, topic, partition and offset |
# | marker | committables in the checkpoint | Delta: `txnAppId` and `txnVersion` | offsets in the transaction |
#
# ## On Monday
#
# - Take the sink that matters most. Write down its durable effects in order, and between which two you have ever killed it.
# - Run the quick test on it: `labkit crashtest FILE:NAME --quick --out report`. Without `--quick` it tries the other places, too.
# - Put `--expect exactly-once` into the build, or `--expect not-refuted` with `--quick`.
# - Give the table's readers the certificate. Discuss what was **not** measured.
#
# ## Closing the ticket
#
# > **Ticket 22, closed.** Approved with a page instead of a feeling: which places were tried, which were not, and under
# > which conditions the table can be trusted. The ten kills by hand had all come at moments at which even the first
# > version is right.
#
# Back: [13, what does the guarantee cost?](13_price.ipynb). Next: [14b, what if there is no COMMIT?](14b_files_and_writers.ipynb)
