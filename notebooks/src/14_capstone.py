# ---
# jupyter:
#   labkit:
#     needs: [06_sinks, 07_crash_spark, 12_engines]
#     slow: true
# ---

# %% [markdown]
# # Does *your* sink survive every crash?
#
# A shop has a function that somebody wrote on a Friday. Can the table be trusted?
#
# {head}
#
# You will be able to
#
# - find the places at which a sink of your own can be killed, and say what is left at each;
# - repair it in the exercises, for a table, for a folder of files, and for two writers;
# - have it tested on real Spark, and hand over a page that says what was measured and what was not.

# %% tags=["parameters"]
kind = "table"  # what the first sinks write to

# %%
from labkit import lab

# %% [markdown]
# ## The sink of a Friday
#
# A sink is a function that gets one batch. It gets a database as `db`, the query's name, the batch's number, and its rows.
# Each statement commits by itself, unless it stands between BEGIN and COMMIT.


# %%
def append(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("BEGIN")
    for row in rows:
        db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
    db.execute("COMMIT")


# %% [markdown]
# The engine keeps Spark's rule. It writes down which rows a batch has, and calls the sink. Behind the sink's return it notes
# the batch as finished. Both notes stand in the checkpoint: a place of the engine's own, outside of the sink's database.
# A batch that is not noted as finished comes again after a restart, with the same number. It has the same rows, as long as the
# source can give them again. Their order may be another one.
#
# A **place** is a moment at which a kill can come: before each request of the sink, and behind its return. Between two
# requests nothing changes in the database, so no other moment needs a kill of its own.
#
# Three words say what is left in the end. *Exactly-once*: each row is there once. *At-least-once*: none is lost, and some may
# be there twice. *At-most-once*: none is there twice, and some may be lost.

# %%
lab.ask("14-append")

# %%
first = lab.try_sink(append, kind)
first

# %% tags=["nbval-check-output"]
lab.answer("14-append", first.kills.count("at-least-once"))

# %% [raw] tags=["expected"]
# It was 1.
# A kill before COMMIT rolls the transaction back, so the table has no row that the repeat could double. Only a kill behind the sink's return leaves rows that the engine hands over once more.

# %% tags=["checked"]
assert not first["a crash at every place"]
assert not first["an older checkpoint"]
assert first["what a reader saw"]
assert first.kills == ["exactly-once"] * 6 + ["at-least-once"]

# %% [markdown]
# The picture is the first batch, which has three rows, with what came of a kill at each place. `first.kills` is the same as a
# list. The table counts the runs of five **axes**, the parts of the guarantee that are tried apart:
#
# | axis | what is done |
# |---|---|
# | a crash at every place | one kill, one restart |
# | what a reader saw | nothing more; a reader must see no part of a batch meanwhile |
# | a second crash | a kill, and one more while the batch comes again |
# | an older checkpoint | all is done; then batches that were finished come again |
# | a second query | another query writes into the same table, and counts its batches from 0 |
#
# The database is a real SQLite file. One process has it open, and each kill is a SIGKILL of that process. Another
# process reads after every request. Only the engine and its source are simulated.
#
# A reader saw nothing wrong: a transaction shows all of a batch or none of it. Rows come twice at one place only: behind the
# return, before the engine's note. Whoever calls the function alone, without an engine that repeats, never meets it.
#
# ## The same function on real Spark
#
# `lab.save_sink` writes a function into a file, with the lines that Spark needs around it. `lab.crash_test` is `labkit crashtest`:
# real Spark runs that file, the whole job is killed and started again, and a reader looks from outside.
#
# A whole test takes two to three minutes. A **short test** tries the places that you name, and takes about 20 seconds.
# The name `b0.call.returns` means: batch 0, and the call of the sink has returned.

# %%
short = lab.crash_test(lab.save_sink(append, "my_sink.py"), only=["b0.call.returns"])
short

# %% tags=["nbval-check-output"]
short.guarantee.value, short.violated

# %% [raw] tags=["expected"]
# ('unknown', ['duplicate'])

# %% [markdown]
# Here a batch has ten rows, and all ten came twice. A short test can show that something breaks. It gives no guarantee,
# whatever it finds: any other place may break, too.
#
# ## A marker, but where?
#
# A sink that gets a batch again needs to know that the batch is there. A **marker** is a row that says so. It names the query
# and the batch. Let us write it when the rows are safe.


# %%
def marker_behind(db, query, batch, rows):
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
second = lab.try_sink(marker_behind, kind)
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
# Now the same on real Spark. A **durable effect** is a change that outlives its process: a COMMIT is one, and an INSERT within
# a transaction is none. The picture of each card numbers what a call does: two CREATEs, ten INSERTs, the COMMIT as 13, the
# marker as 14. So `b0.call.13.after` lies between COMMIT and marker.

# %%
short = lab.crash_test(lab.save_sink(marker_behind), only=["b0.call.13.after", "b0.call.returns"])
short

# %% tags=["nbval-check-output"]
"duplicate" in short.violated, "lost" in short.violated

# %% [raw] tags=["expected"]
# (True, False)

# %% tags=["checked"]
behind_commit, behind_marker = [each for each in short.report.summary.results if each.points]
assert behind_commit.violated
assert not behind_marker.violated

# %% [markdown]
# What still breaks: the marker has moved the place, and has not removed it. The card's picture is the figure to print. Now the other way round: the marker first, the
# rows behind it.


# %%
def marker_first(db, query, batch, rows):
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
lab.ask("14-first")

# %%
third = lab.try_sink(marker_first, kind)
third

# %% tags=["nbval-check-output"]
[worst] = set(third.kills) - {"exactly-once"}
lab.answer("14-first", worst)

# %% [raw] tags=["expected"]
# It was at-most-once.
# A kill between marker and rows leaves a marker without rows. The batch is skipped for ever.

# %% tags=["checked"]
assert third.kills.count("at-most-once") == 5

# %% [markdown]
# Five places lose the batch, between the marker's commit and that of the rows: before BEGIN, before each of three INSERTs, and
# before COMMIT. The batch comes again there, finds its marker, and is skipped. On real Spark the marker is effect 3:

# %%
short = lab.crash_test(lab.save_sink(marker_first), only=["b0.call.3.after"])
short

# %% tags=["nbval-check-output"]
short.violated

# %% [raw] tags=["expected"]
# ['lost']

# %% [markdown]
# What still breaks: ten rows are lost. So the order of two commits chooses the harm: behind the rows the marker lets them come
# twice, before them it lets them get lost. No order removes it, as in [12, the table of orders](12_engines.ipynb).
#
# What removes it is one commit for both: rows and marker within the same BEGIN and COMMIT. This sink does so. Its marker names
# the batch alone.


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
# This time the whole test: two to three minutes. It kills behind each durable effect of two batches, at the edges of calls, and
# once more in a recovery. It adds a large batch, which is written in more parts, and Spark's own older checkpoint and second query.
# Two conditions are tried apart, and do not count. The source gives other rows for the same batch. A driver is stopped and replaced.

# %%
tested = lab.crash_test(lab.save_sink(marker_of_the_batch))
tested

# %% tags=["nbval-check-output"]
tested.guarantee.value, tested.certificate.exists()

# %% [raw] tags=["expected"]
# ('at-most-once', True)

# %% tags=["checked"]
assert "lost" in tested.violated
assert "duplicate" not in tested.violated
kills = [each for each in tested.report.summary.results if each.group in ("crash", "second crash")]
assert len(kills) > 8
assert not any(each.violated or each.unknown for each in kills)

# %% [markdown]
# What still breaks: it survives every kill that was tried, and loses the second query's rows. Batch 0 of that query finds the
# mark of the first one's batch 0. So the marker has to name the query, too.
#
# Beside the report lies `certificate.html`. It is one page for whoever relies on the table: the guarantee, what was done to
# the job and how often, and what was **not** measured. A test that saw too little says *unknown*
# there, and not *exactly-once*. Where there is no Java, the card says that nothing was tested.
#
# Whatever a certificate claims has conditions. The engine repeats an unfinished batch with the same rows. One commit of the
# store is all or nothing. And nobody writes but the newest writer.
#
# ## A writer that comes back
#
# A stopped writer hangs, is replaced, and goes on later. What helps is an epoch: a number that
# grows with every writer, kept in the store.
#
# Here the older writer is stopped (a real SIGSTOP) at one place after the other. The engine starts a newer one with a
# larger epoch, which does the older one's batches. Then the older one goes on (SIGCONT), at the
# place where it was stopped. A writer that is fenced may write nothing any more, and the sink tells it so. This sink looks
# first whether somebody newer was there.


# %%
def looks_first(db, epoch, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, epoch, batch)")
    if db.execute("SELECT 1 FROM marks WHERE query = ? AND epoch > ?", [query, epoch]):
        return "fenced"
    if not db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", [query, batch]):
        db.execute("BEGIN")
        for row in rows:
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
        db.execute("INSERT INTO marks VALUES (?, ?, ?)", [query, epoch, batch])
        db.execute("COMMIT")
    return "written"


writers = lab.try_sink(looks_first, "writers")
writers

# %% tags=["nbval-check-output"]
writers["a crash at every place"], writers["a stopped writer goes on"]

# %% [raw] tags=["expected"]
# (True, False)

# %% tags=["checked"]
assert writers.kills == ["exactly-once"] * 4 + ["at-least-once"] * 2 + ["exactly-once"] * 5

# %% [markdown]
# Stopped before BEGIN, the older writer has looked already, and its rows come twice. BEGIN alone
# helps nothing: in SQLite it takes no lock until the first change. From the first INSERT on, the lock makes the newer writer wait.
# So the look belongs behind the lock. `BEGIN IMMEDIATE` takes it at once.
#
# ## Files: stage, then rename
#
# A folder has no COMMIT. A file that is being written can be torn: half of it is there. A rename is all or nothing. To
# **stage** is to write a file under a name that no reader knows, and a rename makes it visible at once.
#
# A batch of several files needs one rename for all of them. So one small file names all others: the **manifest**. Readers
# read what it names, and nothing else. A torn file of rows does no harm, since the manifest does not name it yet; when the
# batch comes again, it is written anew. A torn manifest is another thing: half a list of JSON cannot be read, so all older
# batches are gone with it. So the manifest itself is staged and renamed, and readers find the old one or the new one.
#
# Here is a sink that writes it in place. A write has one more place for a kill: its middle.


# %%
def in_place(folder, query, batch, rows):
    import json

    name = f"{query}-{batch}.jsonl"
    known = json.loads(folder.read("manifest.json")) if "manifest.json" in folder.names() else []
    if name not in known:
        folder.write(name, "".join(json.dumps(row) + "\n" for row in rows))
        folder.write("manifest.json", json.dumps([*known, name]))


# %% [markdown]
# In batch 1 the file of rows is effects 1 and 2. Effect 3 makes the manifest empty, and 4 fills it. The kill comes between.

# %%
short = lab.crash_test(lab.save_sink(in_place, "my_files.py", "folder"), only=["b1.call.3.after"])
short

# %% tags=["nbval-check-output"]
short.violated

# %% [raw] tags=["expected"]
# ['stuck']

# %% [markdown]
# What still breaks: nobody can read the manifest any more, the sink neither, and the job fails again at every start.
#
# **Your turn.** Write sinks that survive. Below `14-table` and `14-folder` a cell makes the whole test of your own file. Read its
# page, and write your report.

# %% [markdown] tags=["task"]
# ## Exercise: eight sinks (`14-judge`)
#
# Judge by reading. Fill in for each letter `"exactly-once"`, `"at-least-once"`, `"at-most-once"` or `"none"`. `"none"` means
# that rows can get lost **and** come twice. What counts are kills, older checkpoints, and a second query. The numbers `id` of rows never
# come again in another batch; they grow from batch to batch. A second query begins when the first has ended, and has larger ones.
#
# Some use these two functions; the tables exist already:
#
# ```python
# def insert(db, rows):
#     for row in rows:
#         db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
#
# def is_marked(db, query, batch):
#     return db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", [query, batch])
# ```
#
# ```python
# def a(db, query, batch, rows):
#     db.execute("BEGIN")
#     insert(db, rows)
#     db.execute("COMMIT")
#
# def b(db, query, batch, rows):
#     if not is_marked(db, query, batch):
#         db.execute("BEGIN")
#         insert(db, rows)
#         db.execute("COMMIT")
#         db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
#
# def c(db, query, batch, rows):
#     for row in rows:
#         db.execute("BEGIN")
#         db.execute("DELETE FROM orders WHERE id = ?", [row["id"]])
#         insert(db, [row])
#         db.execute("COMMIT")
#
# def d(db, query, batch, rows):
#     if not is_marked(db, query, batch):
#         db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
#         db.execute("BEGIN")
#         insert(db, rows)
#         db.execute("COMMIT")
# ```
#
# ```python
# def e(db, query, batch, rows):
#     for row in rows:
#         if not db.execute("SELECT 1 FROM orders WHERE id = ?", [row["id"]]):
#             insert(db, [row])
#
# def f(db, query, batch, rows):
#     db.execute("BEGIN")
#     if not db.execute("SELECT 1 FROM marks WHERE batch = ?", [batch]):
#         insert(db, rows)
#         db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
#     db.execute("COMMIT")
#
# def g(db, query, batch, rows):
#     if not is_marked(db, query, batch):
#         [[there]] = db.execute("SELECT count(*) FROM orders WHERE id >= ?", [min(row["id"] for row in rows)])
#         insert(db, rows[there:])
#         db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
#
# def h(db, query, batch, rows):
#     db.execute("BEGIN")
#     if not db.execute("SELECT 1 FROM orders WHERE id >= ?", [max(row["id"] for row in rows)]):
#         insert(db, rows)
#     db.execute("COMMIT")
# ```
#
# *explain, medium, 4 points; about 4 lines.*
#
# <details><summary>Hint 1</summary>Put a crash between every two statements that commit. Which rows come again, and which never come?</details>
# <details><summary>Hint 2</summary>A repeated batch may have its rows in another order. More: <code>lab.hint("14-judge")</code>.</details>

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
# 14-judge: not attempted (4 points); lab.hint("14-judge") helps.

# %% [markdown] tags=["task"]
# ## Exercise: a table that survives (`14-table`)
#
# Write `write_batch(db, query, batch, rows)`. `db.execute(statement, parameters)` gives rows as lists. A row is a dict, as
# `{"id": 1, "item": "pen", "amount": 2}`; two rows may differ in their `id` alone, and a second query may have smaller ones. Readers read `orders`. You may make tables of
# your own. Remember nothing in Python: behind a crash it is gone. An item is any text, and two queries may have names that are
# nearly alike. However old a checkpoint is, and whatever other queries did meanwhile, must not matter.
#
# For example, behind `write_batch(db, "orders", 0, [{"id": 1, "item": "pen", "amount": 2}])` a reader finds `[[1, "pen", 2]]`, and behind a second
# call with the same arguments the same.
#
# The check kills at every place, and again in each recovery. Points come by axis: a crash 2, what a reader saw 2, a second
# crash 2, an older checkpoint 1, a second query 1. It takes some seconds.
#
# *complete, medium, 8 points; about 9 lines.*
#
# <details><summary>Hint 1</summary>What tells the sink, after a restart, that a batch is in the table? It must be there when the rows are.</details>
# <details><summary>Hint 2</summary>One commit for both. More: <code>lab.hint("14-table")</code>.</details>


# %% tags=["exercise"]
# exercise 14-table
def write_batch(db, query, batch, rows):
    """Writes the rows of one batch, exactly once."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 14-table
def write_batch(db, query, batch, rows):
    """Writes the rows of one batch, exactly once."""
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
# 14-table: not attempted (8 points); lab.hint("14-table") helps.

# %% tags=["check"]
lab.crash_test(lab.save_sink(write_batch, "my_table.py"))  # two to three minutes, when your sink is written

# %% [markdown] tags=["task"]
# ## Exercise: files and a manifest (`14-folder`)
#
# Write `write_files(folder, query, batch, rows)`. Readers read `manifest.json`, a JSON list of names, and of each named file one JSON
# object a line. `folder` has `names()`, `read(name)`, `write(name, text)`, `rename(old, new)` and `remove(name)`. A kill may come in
# the middle of a `write`; a `rename` is all or nothing, and replaces a file of the new name. A name has letters, digits, `_`, `-` and
# dots, and does not begin with a dot. Put nothing but files of your own there. In the end the manifest must name each of them.
#
# `lab.try_sink(write_files, "folder")` draws what came of each kill.
# For example, behind `write_files(folder, "orders", 0, [{"id": 1, "item": "pen", "amount": 2}])` a reader finds that one row, also after a
# second call.
#
# Points come by axis: a crash 2, what a reader saw 2, a second crash 1, nothing left over 1, an older checkpoint 1, a second query 1.
#
# *complete, hard, 8 points; about 8 lines.*
#
# <details><summary>Hint 1</summary>Which call makes a whole file visible at once?</details>
# <details><summary>Hint 2</summary>The new manifest gets another name first. More: <code>lab.hint("14-folder")</code>.</details>


# %% tags=["exercise"]
# exercise 14-folder
def write_files(folder, query, batch, rows):
    """Writes the rows of one batch into files, exactly once."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 14-folder
def write_files(folder, query, batch, rows):
    """Writes the rows of one batch into files, exactly once."""
    from json import dumps, loads

    own, listed = f"{batch}-of-{query}", []
    if "manifest.json" in folder.names():
        listed = loads(folder.read("manifest.json"))
    if own not in listed:
        folder.write(own, "\n".join(map(dumps, rows)))
        folder.write("manifest.part", dumps([*listed, own]))
        folder.rename("manifest.part", "manifest.json")


# %% tags=["check", "nbval-check-output"]
lab.check("14-folder")

# %% [raw] tags=["expected"]
# 14-folder: not attempted (8 points); lab.hint("14-folder") helps.

# %% tags=["check"]
lab.crash_test(lab.save_sink(write_files, "my_folder.py", "folder"))  # the same for a folder

# %% [markdown] tags=["task"]
# ## Exercise: a writer that comes back (`14-writers`)
#
# Write `write_fenced(db, epoch, query, batch, rows)`. Two writers use one table, one after the other. The newer one has the larger
# `epoch`; each query has writers of its own. The older one may be stopped at any place, and may go on when the newer one has written. The newer one may have planned other rows for a
# batch. It must write nothing any more, and get the text `"fenced"` back, in this call and in all that follow. Any other writer gets `"written"`.
#
# For example, behind `write_fenced(db, 2, "orders", 0, [])` a call of `write_fenced(db, 1, "orders", 1, rows)` returns `"fenced"`.
#
# While an open transaction of a stopped writer holds the lock, the engine tries the newer one again. Points: a crash 1, a stopped writer goes on 3, a second query 1.
#
# *complete, hard, 5 points; about 14 lines.*
#
# <details><summary>Hint 1</summary>When may the epoch change between the look and the rows?</details>
# <details><summary>Hint 2</summary>Look at the epoch, raise it, and insert, in one transaction. More: <code>lab.hint("14-writers")</code>.</details>


# %% tags=["exercise"]
# exercise 14-writers
def write_fenced(db, epoch, query, batch, rows):
    """Writes the rows of one batch, unless a newer writer was there."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 14-writers
def write_fenced(db, epoch, query, batch, rows):
    """Writes the rows of one batch, unless a newer writer was there."""
    db.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER, item TEXT, amount INTEGER)")
    db.execute("CREATE TABLE IF NOT EXISTS finished (of_query TEXT, its_batch INTEGER)")
    db.execute("CREATE TABLE IF NOT EXISTS writers (of_query TEXT, newest INTEGER)")
    db.execute("BEGIN IMMEDIATE")
    [[newest]] = db.execute("SELECT max(newest) FROM writers WHERE of_query = ?", [query])
    if newest is not None and newest > epoch:
        db.execute("ROLLBACK")
        return "fenced"
    db.execute("INSERT INTO writers VALUES (?, ?)", [query, epoch])
    known = db.execute("SELECT its_batch FROM finished WHERE of_query = ? AND its_batch = ?", [query, batch])
    if not known:
        db.execute("INSERT INTO finished VALUES (?, ?)", [query, batch])
        for order in rows:
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", [*order.values()])
    db.execute("END")
    return "written"  # by the newest one


# %% tags=["check", "nbval-check-output"]
lab.check("14-writers")

# %% [raw] tags=["expected"]
# 14-writers: not attempted (5 points); lab.hint("14-writers") helps.

# %% [markdown] tags=["task"]
# ## Exercise: what your sink guarantees (`14-report`)
#
# Write about 200 words for the person who pays for the sink. Say which guarantee it has, under which three conditions, what was
# measured, and one thing that it does not survive. A person reads it.
#
# *explain, medium, 4 points; by hand.*
#
# <details><summary>Hint 1</summary>The last part of the certificate says what was not measured.</details>
# <details><summary>Hint 2</summary>Who repeats what after a restart? More: <code>lab.hint("14-report")</code>.</details>

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
# 14-report: not attempted (4 points); lab.hint("14-report") helps.

# %% [markdown]
# ## Check yourself
#
# **1. A sink writes in one transaction, without a marker. Where does a kill double its rows?**
#
# <details><summary>a) In the middle of the transaction.</summary>It is rolled back there, and nothing is left.</details>
# <details><summary>b) When it has committed, and the engine has not noted the batch.</summary>Yes. The batch comes again, and is not known.</details>
#
# **2. The marker names the batch, and not the query. What goes wrong?**
#
# <details><summary>a) A second query loses rows.</summary>Yes: its batch 0 is taken for the first query's batch 0.</details>
# <details><summary>b) A crash doubles rows.</summary>The marker is in the same transaction, so a repeated batch is known.</details>
#
# **3. A certificate, or a short test, says *unknown*. What do you do?**
#
# <details><summary>a) Take it for exactly-once, since nothing wrong was found.</summary>What was not seen is no proof. Read which effect was not seen.</details>
# <details><summary>b) Read why, and test again with what is missing.</summary>Yes: a short test lacks all other places.</details>
#
# ## What this is called in Flink, Spark and Kafka
#
# | here | Flink | Spark | Kafka |
# |---|---|---|---|
# | sink, one batch | `SinkWriter`, what comes between two barriers | function of `foreachBatch` | records of one transaction |
# | query and batch | job, operator and checkpoint id | `queryId` and `batchId` | group, topic, partition and offset |
# | marker | committables in the checkpoint | Delta: `txnAppId` and `txnVersion` | offsets in the transaction |
# | stage, then rename | `FileSink`: in-progress, pending, finished | file sink: `_spark_metadata` is its manifest | - |
# | epoch | - | - | `transactional.id` and its producer epoch |
#
# ## On Monday
#
# - Take the sink that matters most. Write down its durable effects in order, and between which two you have ever killed it.
# - Run `labkit crashtest FILE:NAME --quick --out report` on it, or `labkit crashtest --command ...` on the whole pipeline.
# - Put `--expect exactly-once` into the build.
# - Give the certificate to whoever reads the table. Talk about its last part.
#
# Back: [13, what does the guarantee cost?](13_price.ipynb)
