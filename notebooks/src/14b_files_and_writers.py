# ---
# jupyter:
#   labkit:
#     needs: [14_capstone]
#     slow: true
# ---

# %% [markdown]
# # What if there is no COMMIT, and a second writer?
#
# > **Ticket 23** (invented). *From the data lake:* "Since last night some readers of `orders/` fail, and others see
# > fewer orders than yesterday. Two jobs seem to have been at work." At 23:40 a driver had stopped answering, and
# > somebody had started a second one.
#
# A folder has no COMMIT, and a writer that only seemed dead goes on. Both end in the same question: what is visible at
# once, and who may make it so?
#
# {head}
#
# You will be able to
#
# - make a batch of files visible at once, and say what a reader finds after each kill;
# - clean up after a call that died, even if the cleaning dies, too;
# - say why no kill shows what a stopped writer does when it goes on;
# - write a sink for a folder that survives, and one that keeps an older writer out.

# %% tags=["parameters"]
kind = "folder"  # what the first sinks write to

# %%
from labkit import lab

# %% [markdown]
# ## A file can be torn
#
# A folder has no transaction. A file that is being written can be **torn**: half of it is there. So a write has one more place
# for a kill, its middle. A rename is all or nothing, for one file only.
#
# A batch may have several files. So one small file names all others: the **manifest**. Readers read the files that it names, and no
# others. This sink writes a file with its rows. Then it overwrites the manifest.


# %%
def in_place(folder, query, batch, rows):
    import json

    name = f"{query}-{batch}.jsonl"
    known = json.loads(folder.read("manifest.json")) if "manifest.json" in folder.names() else []
    if name not in known:
        folder.write(name, "".join(json.dumps(row) + "\n" for row in rows))
        folder.write("manifest.json", json.dumps([*known, name]))


# %%
lab.ask("14b-torn")

# %%
torn = lab.try_sink(in_place, kind)
torn

# %% tags=["nbval-check-output"]
lab.answer("14b-torn", "in the manifest" if "in the middle of write('manifest.json'" in str(torn) else "nowhere")

# %% [raw] tags=["expected"]
# It was: in the manifest.
# A torn file of rows is named by nobody yet, and is written anew. A torn manifest is what readers read.

# %% tags=["checked"]
assert torn.kills == ["exactly-once"] * 4
assert not torn["a crash at every place"]

# %% [markdown]
# As in [14](14_capstone.ipynb), each kill is a real SIGKILL, the folder is a real one, and the engine is simulated. The first four
# places of the picture do no harm. One of them is the middle of the file of rows: the manifest does not name that file yet. When
# the batch comes again, it is written anew, under the same name.
#
# Half a list of JSON cannot be read. So with a torn manifest all older batches are gone, too, and the sink itself cannot read it: the job fails again at
# every start, it is *stuck*. (On real Spark: `lab.crash_test(lab.save_sink(in_place, "my_files.py", "folder"), only=["write my_files.files/manifest.json #2"], batches=2)`.)
#
# ## Stage, then rename
#
# To **stage** is to write a file under a name that no reader knows. A rename then makes it visible at once. So a reader finds the old
# manifest or the new one, and never a half. This sink does so, and it has three files for three rows. It names them first.


# %%
def second_way(folder, query, batch, rows):
    import json

    known = json.loads(folder.read("manifest.json")) if "manifest.json" in folder.names() else []
    names = [f"{query}-{batch}-{number}.jsonl" for number in range(len(rows))]
    if names[0] not in known:
        folder.write("manifest.new", json.dumps([*known, *names]))
        folder.rename("manifest.new", "manifest.json")
        for number, row in enumerate(rows):
            folder.write(names[number], json.dumps(row) + "\n")


# %%
lab.ask("14b-order")

# %%
early = lab.try_sink(second_way, kind)
early

# %% tags=["nbval-check-output"]
missing = "there is no orders-0-0.jsonl" in str(early)
lab.answer(
    "14b-order",
    ("a reader may fail without any kill" if not early.kills else "a reader fails only after a kill")
    if missing
    else "nothing",
)

# %% [raw] tags=["expected"]
# It was: a reader may fail without any kill.
# Between the rename and the last file the manifest promises files that are not there.

# %% [markdown]
# It broke in the first run, before anything was killed. With a kill it would be worse: the batch comes again, finds its
# names in the manifest, and is skipped. It is the same mistake as in 14: the marker was written first.
#
# So the manifest comes last. Its rename is the COMMIT of the batch, and its names are the marker: a batch that is named is done. Say that a kill comes
# between the second file and the third. A reader of the manifest finds nothing of the batch until it has come again, but a reader that lists the folder
# finds two files of three. So sink and readers give the guarantee only together.
#
# The names matter, too. A name made of query, batch and number is written over when the batch comes again; one with a random part never is, so
# each kill leaves its files behind. *Nothing is left over* is therefore a check of its own for a folder: cleaning up belongs to the sink. What a manifest names
# already must never be written over or removed.
#
# ## A repair that dies, too
#
# Staging is of use for a table, too, where a batch is too large to be sent within one transaction. This sink puts its rows into a
# table that nobody reads, one by one. One transaction brings them from there into `orders`. If `begun` has a row, the call cleans up.


# %%
def cleans_up(db, query, batch, rows):
    this = [query, batch]
    for table in ("orders (id, item, amount)", "staged (id, item, amount)", "begun (batch)", "marks (query, batch)"):
        db.execute(f"CREATE TABLE IF NOT EXISTS {table}")
    if db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", this):
        return
    if db.execute("SELECT 1 FROM begun"):
        db.execute("DELETE FROM begun")
        db.execute("DELETE FROM staged")
    db.execute("INSERT INTO begun VALUES (?)", [batch])
    for row in rows:
        db.execute("INSERT INTO staged VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
    db.execute("BEGIN")
    db.execute("INSERT INTO orders SELECT * FROM staged")
    db.execute("INSERT INTO marks VALUES (?, ?)", this)
    db.execute("DELETE FROM staged")
    db.execute("COMMIT")


# %%
repaired = lab.try_sink(cleans_up, "table")
repaired

# %% tags=["nbval-check-output"]
repaired["a crash at every place"], repaired["a second crash, in the recovery"]

# %% [raw] tags=["expected"]
# (True, False)

# %% tags=["checked"]
assert set(repaired.kills) == {"exactly-once"}
assert repaired["what a reader saw"]
assert repaired["an older checkpoint"]
assert repaired["a second query"]

# %% [markdown]
# No single kill does any harm, but two do. The first comes while rows are staged. The next call deletes `begun`, and is killed
# before it deletes the staged rows. The third call finds no `begun`, so it stages all rows beside the old ones. On real Spark one string names both kills: before line 14, which moves the rows, then before line 9, which deletes the staged ones (a minute, in a new cell):
#
# ```python
# lab.crash_test(lab.save_sink(cleans_up, "my_repair.py"), only=["my_repair.py:14 then my_repair.py:9"], batches=1)
# ```
#
# A repair may be killed, too, and then begins again. So each of its steps may come twice, and the sign that there is work to do must go last. In this sink that is `begun`, which must be deleted after `staged`. Then every kill leaves a state from which the same steps begin again. The same holds for a function `recover(checkpoint)` beside the sink: `labkit crashtest` calls it before a restart, and kills the job in it, too.
#
# ## A writer that comes back
#
# A driver hangs, and somebody starts a second one. From outside, a stopped process and a dead one look alike. A killed
# writer never writes again, so no kill shows what comes now: the first one goes on, at the place where it was stopped.
#
# What helps is an epoch: a number that grows with every writer. Each writer gets the next one when it starts, for example from a counter in the same store, and writes it into the store with its rows. A writer that finds a larger one there is fenced: it may write nothing any more, and the sink tells it so. This sink first checks for somebody newer.
#
# The older writer is stopped (a real SIGSTOP) at one place after the other. The engine starts a newer one with a
# larger epoch, which does the older one's batches. Then the older one goes on (SIGCONT).


# %%
def with_epoch(db, epoch, query, batch, rows):
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


# %%
lab.ask("14b-stopped")

# %%
writers = lab.try_sink(with_epoch, "writers")
writers

# %% tags=["nbval-check-output"]
stops = [number for number, kill in enumerate(writers.kills) if kill != "exactly-once"]
lab.answer("14b-stopped", str(stops))

# %% [raw] tags=["expected"]
# It was: after its looks, before its first INSERT.
# It has looked already, and writes what the newer one has written. Stopped before, it would still find the newer one's marker.

# %% tags=["checked"]
assert writers["a crash at every place"]
assert not writers["a stopped writer goes on"]
assert writers.kills == ["exactly-once"] * 4 + ["at-least-once"] * 2 + ["exactly-once"] * 5

# %% [markdown]
# Every kill goes well, and a stopped writer does not. That is the gap between marker and rows once more: what was true at the look need not be true at the write.
# At nine of the eleven places the rows are right all the same. Only the first three end in `"fenced"`. At the next one the older writer still finds the marker of the newer one. After
# its first INSERT it holds SQLite's lock, so the newer one gets *database is locked*, and comes again when the older one has committed. So one place shows little: a test must stop the writer at every place, let it go on with its next
# batch, and ask what it was told, `"fenced"` or `"written"`.
#
# With a plain BEGIN before the look, rows never come twice. In SQLite the look then holds a read lock (or, with a write-ahead log, a snapshot), and one of the two writers gets *database is locked* at its INSERT or COMMIT. It does not learn why:
# only when its engine calls it again, it finds the larger epoch and gets `"fenced"`. `BEGIN IMMEDIATE` takes the lock for writers before the look, so the second one waits, and then sees what is true. The newer writer stores
# its epoch in the same way, in its first transaction and before it does anything else, whether it has rows to write or not. It cleans up only after that: what nobody names may be a stopped writer's, not a dead one's.
#
# Why is a lock alone not enough? The lock of a stopped process stays, and everybody waits. If it is taken away after some time, the stopped writer does not
# know, and goes on. The epoch is for that case: the store itself compares it, in the transaction of the rows.
#
# > **Found in the wild.** Early delta-rs guarded commits to S3 by a lock that expires. "When S3 pauses during a commit to the extent that the lock is expired",
# > the commit is reported as failed and "will actually be completed", so the retry doubles it
# > ([delta-io/delta-rs#268](https://github.com/delta-io/delta-rs/issues/268), 2021).
#
# And in a folder? Our `folder.rename` replaces what is there: a look and a rename are two moments, however near to each other they
# stand. But a file system can *create a name only if nobody has it*: `link` and `open(..., "x")` fail otherwise, in the write itself. So number
# the manifests. A writer that has read manifest 7 creates manifest 8. Say that two writers have read manifest 7, and the older one comes
# second, because it was stopped before its write. First with `rename`, then with `link`:


# %%
import os
from pathlib import Path
from tempfile import TemporaryDirectory


def commit(folder, writer, publish):
    staged = folder / f".{writer}"
    staged.write_text(writer)
    publish(staged, folder / "manifest.8")


# %% tags=["nbval-check-output"]
with TemporaryDirectory() as name:
    place = Path(name)
    for publish in (os.rename, os.link):
        commit(place, "newer", publish)
        try:
            commit(place, "older", publish)
        except FileExistsError as error:
            print(type(error).__name__)
        print(publish.__name__, (place / "manifest.8").read_text())
        (place / "manifest.8").unlink()

# %% [raw] tags=["expected"]
# rename older
# FileExistsError
# link newer

# %% [markdown]
# With `rename` the older manifest replaces the newer one, whose rows are lost. With `link` the file system refuses the older writer. It must read
# manifest 8 before it may try again, and finds there that its batch is done, and by a newer epoch. Delta's log works like this
# (`_delta_log/N.json`), so Delta demands of a store that only one writer can create a name. S3 can since 2024 (`If-None-Match`). Where the store cannot, one process does all renames, and it must never exist twice. (A reviewer of delta-rs, on the plain rename: "it is not safe to use for delta commits",
# [#1868](https://github.com/delta-io/delta-rs/pull/1868).)
#
# **Your turn.** Write a folder that survives, and a sink that two writers may use. A cell below `14b-folder` makes the whole
# test of your own file on real Spark; its picture is the one to print.


# %% tags=["exercise"]
# exercise 14b-folder
def write_files(folder, query, batch, rows):
    """Writes the rows of one batch into files, exactly once."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 14b-folder
def write_files(folder, query, batch, rows):
    """Writes the rows of one batch into files, exactly once."""
    # The manifest comes last and by rename: its names are the marker, its rename the commit.
    from json import dumps, loads

    own, listed = f"{batch}-of-{query}", []
    if "manifest.json" in folder.names():
        listed = loads(folder.read("manifest.json"))
    if own not in listed:
        folder.write(own, "\n".join(map(dumps, rows)))
        folder.write("manifest.part", dumps([*listed, own]))
        folder.rename("manifest.part", "manifest.json")


# %% tags=["check", "nbval-check-output"]
lab.check("14b-folder")

# %% [raw] tags=["expected"]
# 14b-folder: not attempted (8 points); lab.hint("14b-folder") gives a hint.

# %% tags=["check"]
lab.crash_test(lab.save_sink(write_files, "my_folder.py", "folder"))  # the same for a folder


# %% tags=["exercise"]
# exercise 14b-writers
def write_fenced(db, epoch, query, batch, rows):
    """Writes the rows of one batch, unless a newer writer was there."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 14b-writers
def write_fenced(db, epoch, query, batch, rows):
    """Writes the rows of one batch, unless a newer writer was there."""
    # The epoch is compared and stored within the transaction of the rows, under its lock.
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
lab.check("14b-writers")

# %% [raw] tags=["expected"]
# 14b-writers: not attempted (5 points); lab.hint("14b-writers") gives a hint.

# %% [markdown]
# ## Check yourself
#
# **1. Each file of a batch is staged and renamed. Why is there a manifest, too?**
#
# <details><summary>a) A rename may be torn.</summary>A rename is all or nothing.</details>
# <details><summary>b) A batch has several files, and a rename makes one visible.</summary>Yes: the manifest's rename makes all of them visible at once.</details>
#
# **2. A sink survived every kill. What does that say of a second writer?**
#
# <details><summary>a) Nothing: a killed writer never writes again.</summary>Yes. What two writers do at once is another fault.</details>
# <details><summary>b) The marker keeps the second one out.</summary>Only where nobody can write between the look at it and the rows.</details>
#
# **3. The writer asks for the newest epoch just before its transaction. Is that enough?**
#
# <details><summary>a) Yes, if it asks each time.</summary>It may be stopped between the answer and the transaction.</details>
# <details><summary>b) No, it must ask inside, once it has the lock.</summary>Yes. Then nobody raises the epoch until it has written.</details>
#
# ## What this is called in Flink, Spark and Kafka
#
# | here | Flink | Spark | Kafka |
# |---|---|---|---|
# | stage, then rename | `FileSink`: in-progress, pending, finished | file sink: `_spark_metadata` is its manifest | - |
# | epoch | for messages between its own processes: `JobMasterId` | - | `transactional.id` and its producer epoch |
#
# ## On Monday
#
# - List a folder that a job writes to. Which files does nobody name, and who reads by listing?
# - Stop a driver with SIGSTOP, start a second one, and continue the first. Which rows are there twice?
# - Look where your sink asks whether it is still the owner: within the transaction, or before it?
#
# ## Closing the ticket
#
# > **Ticket 23, closed.** The driver was stopped, not dead. It went on after the second one, and its list replaced the
# > newer one. The list is staged and renamed now, so nobody reads half of it, and each list has a number of its own
# > that only one writer can create. A kill would never have shown this: a killed writer does not come back.
#
# Back: [14, does your sink survive every crash?](14_capstone.ipynb). Next: [14c, how do you repair a table?](14c_repair.ipynb)
