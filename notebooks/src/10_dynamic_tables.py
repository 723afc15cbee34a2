# ---
# jupyter:
#   labkit:
#     needs: [00_start, 06_sinks]
#     slow: true
# ---

# %% [markdown]
# # What does a query answer that never ends?
#
# The shop's owner asks: how often was each word typed so far? In a database such a question ends with a table. Here
# customers go on typing, and each word changes the answer. How does a job tell others what has changed?
#
# {head}
#
# You will be able to
#
# - say what each output mode of Spark hands over, and why Spark refuses some queries;
# - write a change of a table as messages in three ways, and say what a lost or repeated message does to each;
# - explain a wrong total of a job in which nothing failed, and mend it;
# - say what it costs when a query forgets.
#
# Spark and SQLite are real here. Messages that get lost are **simulated**, and the text says so.

# %%
import json
from pathlib import Path
from tempfile import TemporaryDirectory

from labkit import lab

place = TemporaryDirectory()
shop = Path(place.name)


def append_to(log, text):
    """One more record in a folder that plays a log: each record is a file."""
    log.mkdir(exist_ok=True)
    new = shop / "typing"
    new.write_text(text)
    new.rename(log / f"{len(list(log.iterdir()))}.txt")


spark = lab.spark()

# %% [markdown]
# ## One question, asked once and for ever
#
# The owner's question is one line of SQL. A query over a stream is a **continuous query**: it never ends, and each record may
# change its answer. Its answer is a **dynamic table**, a table that changes while others look at it. The same line over
# a table that is complete runs once and ends: that is the *batch query*.

# %%
question = "SELECT word, count(*) AS n FROM {words} GROUP BY word"  # Spark fills in the table for {words}


def words_in(reader, place):
    return reader.text(place).withColumnRenamed("value", "word")


orders = shop / "orders"
orders.mkdir(exist_ok=True)
counts = spark.sql(question, words=words_in(spark.readStream, str(orders)))

# %% [markdown]
# Spark keeps the counts as its state. After each batch it hands some rows of the table to the sink. Which rows
# these are is the **output mode** of the query:
#
# | output mode | what the sink gets after each batch |
# |---|---|
# | `append`, the default | rows that are new and will never change again |
# | `update` | rows that are new or have changed |
# | `complete` | the whole table |
#
# The next cell prepares a query whose sink notes what it gets.

# %%
from pyspark.errors import AnalysisException

handed = {"append": [], "update": [], "complete": []}


def start(mode):
    def write_batch(rows, number):
        handed[mode].append(sorted(map(tuple, rows.collect())))

    writer = counts.writeStream.outputMode(mode).foreachBatch(write_batch)
    return writer.option("checkpointLocation", str(shop / mode)).start()


# %% [markdown]
# Three customers type *hello*, *world*, *hello*. Each word is a batch of its own. We try all three modes.

# %%
lab.ask("10-rows")

# %% tags=["nbval-check-output"]
running = []
for mode in handed:
    try:
        running.append(start(mode))
    except AnalysisException as error:
        print(str(error).partition(" SQLSTATE")[0])

for word in ["hello", "world", "hello"]:
    append_to(orders, word)
    for query in running:
        query.processAllAvailable()  # waits until the word is counted

for query in running:
    query.stop()
handed

# %% [raw] tags=["expected"]
# [STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION] Invalid streaming output mode: append. This output mode is not supported for streaming aggregations without watermark on streaming DataFrames/DataSets.
# {'append': [],
#  'update': [[('hello', 1)], [('world', 1)], [('hello', 2)]],
#  'complete': [[('hello', 1)],
#   [('hello', 1), ('world', 1)],
#   [('hello', 2), ('world', 1)]]}

# %% tags=["nbval-check-output"]
lab.answer("10-rows", sum(map(len, handed["complete"])))

# %% [raw] tags=["expected"]
# It was 5.
# The table has one row after the first batch, and two after each of the others; complete hands over all of them each time.

# %% tags=["checked"]
assert handed["append"] == []
assert sum(map(len, handed["update"])) == 3

# %% [markdown]
# Spark refuses `append` at the start. The row `hello, 1` is not final: the next *hello* would change it, and an
# appended row cannot be taken back. `update` hands over three rows, one for each change. `complete` hands over one row, then two,
# then two. Its price grows with the table.
#
# Is the answer right, while it changes? We take the rows of `update` in order, and each row replaces the row of its word. Beside
# that we ask the batch query about the first record, the first two, and all three:

# %% tags=["nbval-check-output"]
table = {}
for n, changes in enumerate(handed["update"], start=1):
    table.update(changes)
    first_n = [str(orders / f"{number}.txt") for number in range(n)]
    batch_query = dict(spark.sql(question, words=words_in(spark.read, first_n)).collect())
    print("first", n, table, "equal" if table == batch_query else "different")

# %% [raw] tags=["expected"]
# first 1 {'hello': 1} equal
# first 2 {'hello': 1, 'world': 1} equal
# first 3 {'hello': 2, 'world': 1} equal

# %% [markdown]
# The tables are equal each time. That is what Spark promises after each *batch*, here one record: its table equals the
# batch query over the input so far, a prefix. (Flink SQL may show other answers on the way, and is right in the end.) The rest of
# this notebook shows how a copy, a combination of two tables, or forgetting loses that.
#
# ## A change as a message
#
# A sink, another job or a cache keeps a copy of the table. So the changes travel as messages. The stream of all changes
# of a table is its **changelog**. There are three ways to write one.
#
# - *Append-only*: `+ hello 1` adds a row. Nothing is ever taken away.
# - *Retract*: a change is two messages. `- hello 1` takes the old row back; such a message is a **retraction**. Then `+ hello 2`
#   adds the new row. The table needs no key, so a retraction names the whole row.
# - *Upsert*: `= hello 2` replaces the row of its key, and `x hello` deletes the row of this key. Sender and receiver must agree on
#   the key.
#
# **Simulated**: the query counts *hello*, *world*, *hello*, and a receiver keeps the table. In `+hello:1@0` the number behind
# `@` is the offset of the record that caused the message.

# %% tags=["nbval-check-output"]
streams = {way: lab.replay(f"changelog.{way}_stream") for way in ("append", "retract", "upsert")}
{way: list(map(str, run.state.topic)) for way, run in streams.items()}

# %% [raw] tags=["expected"]
# {'append': ['+hello:1@0', '+world:1@1', '+hello:2@2'],
#  'retract': ['+hello:1@0', '+world:1@1', '-hello:1@2', '+hello:2@2'],
#  'upsert': ['=hello:1@0', '=world:1@1', '=hello:2@2']}

# %% tags=["checked"]
assert [len(run.state.topic) for run in streams.values()] == [3, 4, 3]
assert not any(run.violated for run in streams.values())

# %% [markdown]
# The second list shows four messages for three records, since the second *hello* takes two. The append-only stream has
# three. Its receiver ends with `hello 1` *and* `hello 2`: that is the history of the counts, not the counts. So an append-only
# stream fits results that never change.
#
# Now *hello* is typed three times, and the network loses one message: of the retract stream `- hello 1`, of the upsert stream `= hello 2`.

# %%
lab.ask("10-lost")

# %%
retraction = lab.replay("changelog.lost_retraction")
upsert = lab.replay("changelog.lost_upsert")

# %% tags=["nbval-check-output"]
lab.answer("10-lost", sum(row.value for row in retraction.state.consumer.table))

# %% [raw] tags=["expected"]
# It was 4.
# hello = 1 was never taken back, so it stands beside hello = 3. No later message speaks of it.

# %% [markdown]
# A reader adds up all counts of the table after each message. The sum should be the number of words typed so far.

# %% tags=["nbval-check-output"]
lab.totals("changelog.retract_stream", "changelog.lost_retraction", "changelog.lost_upsert")

# %% [raw] tags=["expected"]
# retract stream   + hello 1  + world 1         - hello 1  + hello 2
#   batch query    1          2                 3          3
#   reader         1          2                 1 between  3
# lost retraction  + hello 1  - hello 1 (lost)  + hello 2  - hello 2  + hello 3
#   batch query    1          2                 2          3          3
#   reader         1          1 between         3 wrong    1 between  4 wrong
# lost upsert      = hello 1  = hello 2 (lost)  = hello 3
#   batch query    1          2                 3
#   reader         1          1 wrong           3

# %% [markdown]
# A ring (`between`) marks a total between the two messages of one change, a cross (`wrong`) a wrong total after a whole change.
# The first run shows a ring, though nothing failed. Between `- hello 1` and `+ hello 2` the table has no *hello*. A table with only
# *world* was never the answer of any batch query. A receiver avoids it by applying both messages in one transaction.
#
# The second run shows crosses to the end: the row `hello 1` stays for ever. The third run is wrong for one message, and then right.
# An upsert carries the whole new row, so the next change of the key repairs what was lost. No later retraction names the row that a
# lost one left behind.
#
# ## What each stream needs
#
# **Simulated**: five things may happen, each once. *Right* means that in every schedule the receiver has the batch query's table **in the
# end**, when all was read. The receiver stores its position in one transaction with its table.

# %% tags=["nbval-check-output"]
happens = {
    "a message is lost": "losses",
    "a message comes twice": "repeats",
    "a message overtakes": "swaps",
    "the query dies": "query_crashes",
    "the receiver dies": "crashes",
}
ways = ("retract", "upsert")
lines = [["", *ways]]
for said, what in happens.items():
    budget = {"crashes": 0} | {what: 1}
    tried = [lab.explore("changelog", encoding=way, words="hello-hello-hello", **budget) for way in ways]
    lines.append([said, *("wrong" if "ends_equal" in search.violated else "right" for search in tried)])
print(lab.columns(lines))

# %% [raw] tags=["expected"]
#                        retract  upsert
# a message is lost      wrong    wrong
# a message comes twice  wrong    right
# a message overtakes    wrong    wrong
# the query dies         wrong    right
# the receiver dies      right    right

# %% [markdown]
# Upsert is right three times, retract once.
#
# - *Lost*: both are wrong. The upsert stream is wrong until the next change of that key, which may never come.
# - *Twice*: a second copy right after its upsert changes nothing. A second `+ hello 2` is a second row.
# - *Overtaken*: the older upsert replaces the newer one. So all changes of a key must keep their order, for example in one
#   partition of Kafka.
# - *The query dies*: it goes back to its checkpoint and sends its messages again. For upserts a reader sees a jump back,
#   then the right value. For retractions the sink must drop what it has already: it keeps the batch's number with its rows, as
#   *batch_marker* does.
# - *The receiver dies*: table and position are one transaction.
#
# A query sends `- hello 1` and `+ hello 2`, dies, and sends both again:

# %% tags=["nbval-check-output"]
print(lab.replay("changelog.replayed_retractions").violated["equals_batch"])

# %% [raw] tags=["expected"]
# after 2 records hello = 2 (2 times) is in the table: it has hello = 2 (2 times), the batch query hello = 2.

# %% [markdown]
# Two rows: the repeated `- hello 1` found no row, and the repeated `+ hello 2` added one.
#
# ## Two queries, and a total that never was
#
# The shop moves money between accounts. Each transfer takes an amount from a giver and adds it to a taker. So *credits minus
# debits* is always 0. Two continuous queries read **one** log: one sums what each account got, the other what each account gave. Each upserts into
# SQLite under its own name, in one transaction a batch. Credits is run after each transfer, debits after every other one.

# %%
import sqlite3
from contextlib import closing

transfers = [("anna", "bert", 10), ("bert", "carl", 20), ("carl", "anna", 30), ("anna", "carl", 40)]
bank = shop / "bank.db"


def sql(*commands):
    """Runs commands in one transaction; the number that the last one finds."""
    with closing(sqlite3.connect(bank)) as database, database:
        for command in commands:
            rows = database.execute(*command).fetchall()
    return rows[0][0] if rows else None


sql(("CREATE TABLE IF NOT EXISTS sums (side TEXT, account TEXT, total INT, PRIMARY KEY (side, account))",))


# %%
def catch_up(name, query, log):
    """Runs a query over what is new in the log, and upserts what has changed under that name."""

    def write_batch(rows, number):
        sql(*(("INSERT OR REPLACE INTO sums VALUES (?, ?, ?)", (name, *row)) for row in rows.collect()))

    moved = spark.readStream.schema("giver string, taker string, amount int").json(str(log))
    writer = spark.sql(query, moved=moved).writeStream.outputMode("update").foreachBatch(write_batch)
    writer = writer.option("checkpointLocation", str(shop / name)).trigger(availableNow=True)
    writer.start().awaitTermination()


# %%
lab.ask("10-zeros")

# %% tags=["nbval-check-output"]
got = "SELECT taker, sum(amount) FROM {moved} GROUP BY taker"
gave = "SELECT giver, sum(amount) FROM {moved} GROUP BY giver"
difference = "SELECT sum(CASE side WHEN 'credits' THEN total ELSE -total END) FROM sums"

totals = []
for number, (giver, taker, amount) in enumerate(transfers):
    append_to(shop / "moves", json.dumps({"giver": giver, "taker": taker, "amount": amount}))
    catch_up("credits", got, shop / "moves")
    if number % 2:
        catch_up("debits", gave, shop / "moves")
    totals.append(sql((difference,)))
totals

# %% [raw] tags=["expected"]
# [10, 0, 30, 0]

# %% tags=["nbval-check-output"]
lab.answer("10-zeros", totals.count(0))

# %% [raw] tags=["expected"]
# It was 2.
# After the first and the third transfer, debits lacked one transfer that credits had.

# %% tags=["checked"]
with closing(sqlite3.connect(bank)) as database:
    found = {
        side: dict(database.execute("SELECT account, total FROM sums WHERE side = ?", (side,)))
        for side in ("credits", "debits")
    }
moved = spark.read.schema("giver string, taker string, amount int").json(str(shop / "moves"))
assert found["credits"] == dict(spark.sql(got, moved=moved).collect()) == {"anna": 30, "bert": 10, "carl": 60}
assert found["debits"] == dict(spark.sql(gave, moved=moved).collect()) == {"anna": 50, "bert": 20, "carl": 30}

# %% [markdown]
# Two totals were never true: 10 and 30. Nothing crashed, and nothing was lost. Each side **alone** equals the
# batch query over the transfers that it has read. But credits had seen three transfers and debits two, so the total mixes two moments. Such tables are not *internally consistent*.
#
# The cure is **one** query, whose batch changes both sides in one transaction:

# %% tags=["nbval-check-output"]
balances = """
    SELECT account, sum(change)
    FROM (SELECT stack(2, taker, amount, giver, -amount) AS (account, change) FROM {moved})
    GROUP BY account
"""
totals = []
for giver, taker, amount in transfers:
    append_to(shop / "again", json.dumps({"giver": giver, "taker": taker, "amount": amount}))
    catch_up("balances", balances, shop / "again")
    totals.append(sql(("SELECT sum(total) FROM sums WHERE side = 'balances'",)))
totals

# %% [raw] tags=["expected"]
# [0, 0, 0, 0]

# %% [markdown]
# 0 after each transfer. `stack` makes two rows of each transfer, one for the taker and one for the giver. Both are in
# the same batch, so in the same transaction: a reader in the middle of a batch sees neither.
#
# ## A query that forgets
#
# The state of a count has a row for each word, for ever. To bound it, a query must forget. One way is time: each record says
# when it was typed, and the query counts for every five minutes. A **watermark** is a time behind which the query expects no more
# records. Here it lies ten minutes behind the newest time seen.
#
# When the watermark has passed the end of five minutes, their counts are final. Spark hands them over, drops their state, and accepts
# `append`. We type *hello* at 12:01 and 12:03, and *world* at 12:21. The watermark is now 12:11. Then comes a record of 12:04, too late.

# %%
by_time = """
    SELECT date_format(window.start, 'HH:mm') AS since, word, n
    FROM (SELECT window(at, '5 minutes') AS window, word, count(*) AS n FROM {words} GROUP BY 1, 2)
"""
timed, final = shop / "timed", []
times = "at timestamp, word string"
# Spark's default, off in the lab: when the watermark has moved, one more batch hands over what is final
spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")


def typed(at, word):
    append_to(timed, json.dumps({"at": f"2026-01-05 {at}:00", "word": word}))


# %%
def write_batch(rows, number):
    final.extend(sorted(map(tuple, rows.collect())))


def run():
    stream = spark.readStream.schema(times).json(str(timed))
    counted = spark.sql(by_time, words=stream.withWatermark("at", "10 minutes"))
    writer = counted.writeStream.outputMode("append").foreachBatch(write_batch).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(shop / "by-time")).start()
    query.awaitTermination()
    return sum(each["stateOperators"][0]["numRowsDroppedByWatermark"] for each in query.recentProgress)


# %% tags=["nbval-check-output"]
for at, word in [("12:01", "hello"), ("12:03", "hello"), ("12:21", "world")]:
    typed(at, word)
run()
typed("12:04", "hello")
late = run()

batch_query = spark.sql(by_time, words=spark.read.schema(times).json(str(timed)))
{
    "handed over": final,
    "batch query": sorted(map(tuple, batch_query.collect())),
    "late and dropped": late,
}

# %% [raw] tags=["expected"]
# {'handed over': [('12:00', 'hello', 2)],
#  'batch query': [('12:00', 'hello', 3), ('12:20', 'world', 1)],
#  'late and dropped': 1}

# %% [markdown]
# The first line shows 2, and the batch query finds 3: Spark dropped the late record without an error. The row of 12:20 is not handed over
# yet, because the watermark has not passed 12:25. So a watermark delays every row, and drops what is later
# than expected.
#
# Another way to forget is to drop the state of a key that has been silent for long. **Simulated**, as a retract stream: the query forgets
# *hello* after its first record, and *hello* comes again.

# %% tags=["nbval-check-output"]
print(lab.replay("changelog.expired_state").violated["equals_batch"])

# %% [raw] tags=["expected"]
# after 2 records hello = 1 (2 times) is in the table: it has hello = 1 (2 times), the batch query hello = 2.

# %% [markdown]
# The sentence shows two rows `hello 1`: the count began at 1 again, and no retraction came between them. No message was lost. A query that forgets is no longer the batch query.
#
# > **What popular notes get wrong.** "*A stream and a table are the same thing.*" Only as long as no change is lost or overtaken, none comes twice
# > without a key, and no state is forgotten.
#
# ## Try it yourself
#
# **Simulated**: an upsert stream whose messages may overtake once, and nothing is lost. *Find a run whose table is wrong in the
# end.* The player calls the receiver *consumer*.

# %%
steering = lab.explorer("changelog", encoding="upsert", words="hello-hello", crashes=0, swaps=1)
steering

# %%
lab.replay(steering.trace)


# %% tags=["exercise"]
# exercise 10-messages
def messages(way, word, before, after):
    """The messages of one change, or "refused"."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 10-messages
def messages(way, word, before, after):
    """The messages of one change, or "refused"."""
    if before == after:
        return []
    if way == "upsert":
        return [["x", word, before]] if after is None else [["=", word, after]]
    if way == "append" and before is not None:
        return "refused"
    taken = [] if before is None else [["-", word, before]]
    return taken if after is None else [*taken, ["+", word, after]]


# %% tags=["check", "nbval-check-output"]
lab.check("10-messages")

# %% [raw] tags=["expected"]
# 10-messages: not attempted (4 points); lab.hint("10-messages") gives a hint.


# %% tags=["exercise"]
# exercise 10-apply
def apply(rows, message):
    """The rows of the table after the message."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 10-apply
def apply(rows, message):
    """The rows of the table after the message."""
    sign, word, count = message
    if sign in ("=", "x"):
        rows = [row for row in rows if row[0] != word]
    if sign == "-" and [word, count] in rows:
        rows.remove([word, count])
    return [*rows, [word, count]] if sign in ("+", "=") else rows


# %% tags=["check", "nbval-check-output"]
lab.check("10-apply")

# %% [raw] tags=["expected"]
# 10-apply: not attempted (4 points); lab.hint("10-apply") gives a hint.


# %% tags=["exercise"]
# exercise 10-prefix
def right(table, words):
    """Whether the table is what the batch query gives for these words."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 10-prefix
def right(table, words):
    """Whether the table is what the batch query gives for these words."""
    counted = [[word, words.count(word)] for word in set(words)]
    return sorted(table) == sorted(counted)


# %% tags=["check", "nbval-check-output"]
lab.check("10-prefix")

# %% [raw] tags=["expected"]
# 10-prefix: not attempted (3 points); lab.hint("10-prefix") gives a hint.

# %% [markdown]
# ## Check yourself
#
# **1. Why may a count for every five minutes use `append`, and a plain count not?**
#
# <details><summary>a) It has fewer rows.</summary>No. One row that changes later is enough to be refused.</details>
# <details><summary>b) With a watermark its rows become final.</summary>Yes. Spark hands a row over when no record can change it any
# more. A plain count may change with the next record.</details>
#
# **2. What must a receiver of an upsert stream know that a receiver of a retract stream need not know?**
#
# <details><summary>a) The key of the table.</summary>Yes. The key says which row is replaced. A retraction names the whole
# row.</details>
# <details><summary>b) The old value of the row.</summary>No. The old row is replaced, whatever it was.</details>
# <details><summary>c) How many messages belong together.</summary>That is a worry of retract streams: a change is two
# messages there.</details>
#
# **3. A dashboard shows orders minus payments, from two jobs. It is wrong for seconds, and then right. What is the first suspicion?**
#
# <details><summary>a) One of the jobs crashed and ran a batch again.</summary>Possible, and not needed.</details>
# <details><summary>b) The two jobs stand at different offsets.</summary>Yes. Each table is right for its own moment. Their difference
# belongs to no moment.</details>
#
# **4. A query with a watermark shows lower counts than a report made at night. Which of them is broken?**
#
# <details><summary>a) Neither.</summary>Yes. The report counts late records too. Spark says that it dropped some, not how many:
# <code>numRowsDroppedByWatermark</code> counts after a first aggregation.</details>
# <details><summary>b) The query: it must equal the batch query.</summary>It did, until it was allowed to forget.</details>
#
# ## What this is called in Flink, Spark and Kafka
#
# | here | Flink | Spark | Kafka Streams |
# |---|---|---|---|
# | dynamic table | dynamic table | result table | `KTable` |
# | changelog | changelog stream, `toChangelogStream` | - | changelog topic, a compacted topic |
# | `+ hello 1`, `- hello 1` | row kinds `+I`, `-U`, `+U`, `-D` | - | - |
# | `= hello 2`, `x hello` | upsert mode, with a primary key | rows of `update` mode, with your `MERGE` | a record with a key; deleted by a null value (tombstone) |
# | how results leave | changelog mode of the sink | output mode; default `append` | - |
# | watermark | `WatermarkStrategy` | `withWatermark` | stream time and grace period |
# | silent keys are forgotten | `table.exec.state.ttl`; 0, for ever, by default | TTL of a state variable in `transformWithState` | retention of a window store |
#
# ## On Monday
#
# - Look up the output mode of each Spark query. With `update`, does the sink upsert by the query's own key? With `append`, is a crash between two
#   batches harmless ([06](06_sinks.ipynb))?
# - Alert if `numRowsDroppedByWatermark` in the `stateOperators` of `query.lastProgress` is not 0.
# - List the reports that combine tables of two jobs. Join them in one job.
# - In Flink: look up `table.exec.state.ttl`. What does your report show when a key comes back after that time?
#
# ## Sources
#
# Spark 4's guide to Structured Streaming (*Output Modes*, *Watermarking*); prefix consistency: [SIGMOD 2018](https://doi.org/10.1145/3183713.3190664). Flink's pages *Dynamic Tables* and *Configuration*.
# Jamie Brandon, [Internal consistency in streaming systems](https://www.scattered-thoughts.net/writing/internal-consistency-in-streaming-systems/), 2021.
#
# Back: [06, what does a reader of your sink see?](06_sinks.ipynb)
