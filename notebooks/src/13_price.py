# ---
# jupyter:
#   labkit:
#     needs: [04_barriers, 05_two_phase_commit, 06_sinks, 07_crash_spark, 09b_timeouts]
#     slow: true
# ---

# %% [markdown]
# # What does the guarantee cost here, on this machine?
#
# > **Ticket 21** (invented). *From the shop:* "The stock page lags two seconds behind, and our clerks wait whenever
# > they change a number." *From finance:* "The bill for storage requests has doubled since you commit every four seconds."
# > The sink is exactly-once now.
#
# Somebody wants to commit more often, somebody else less often. What does each choice cost? We measure it, on your
# machine, while you watch.
#
# {head}
#
# You will be able to
#
# - say what changing an interval costs and what it does not;
# - count what a sink does to the disk, and whether it grows with the batch;
# - choose an interval from three limits, and the cheapest one from two costs.
#
# Seconds differ from machine to machine and from run to run. So ignore the seconds: look at which job is slower, how steep a line is, or what a count says.

# %% tags=["parameters"]
intervals = [0.5, 1, 2]  # seconds between two commits

# %% [markdown]
# ## How long does a reader wait?
#
# **Latency** is the time from the arrival of a record until a reader can have its result. Three small jobs get ten records a second.
# Each is a program of its own and writes into an SQLite database of its own. Every commit is **synced**: it waits until the disk says
# that the data is on it. The jobs differ in their transactions:
#
# | way | a record is written | commit | like |
# |---|---|---|---|
# | append | at once | after each record | a sink without transactions |
# | open | at once, into an open transaction | at the end of the interval | the transaction of a two-phase sink in Flink |
# | gathered | with all others of its interval | at the end of the interval | a micro-batch with a batch marker |
#
# An outside reader looks every 5 ms. The median of a job's waits is its *typical* wait: half of the records wait
# longer. First draw your own line. The question is about *open* and *gathered*, and assumes that a commit takes no
# time.

# %%
from labkit import lab

lab.ask("13-slope")

# %% [markdown]
# This is what you predict, before anything is measured:

# %%
lab.expected_wait("13-slope")

# %%
measured = lab.measure_waits(intervals, question="13-slope")  # about a quarter of a minute
measured

# %% tags=["nbval-check-output"]
lab.answer("13-slope", round(2 * measured.slope("open")) / 2)  # rounded to halves

# %% [raw] tags=["expected"]
# It was 0.5.
# A record may arrive at any moment of the interval. The typical one arrives in its middle, and waits for the other half.

# %% tags=["checked"]
assert 0.25 < measured.slope("open") < 0.75
assert 0.25 < measured.slope("gathered") < 0.75
assert measured.commits("open") == measured.commits("gathered") == [4, 4, 4]
assert measured.commits("append") == [20, 40, 80]
assert all(each.worst > each.typical for each in measured["open"].values())

# %% [markdown]
# The chart shows two lines that rise by about half a second for each second of the interval; the cell rounds to halves. The typical wait is *interval / 2 + commit*.
# The longest wait is *interval + commit*: that record arrived right behind a commit. *append* does not know the interval, and its line stays low
# as long as the disk keeps up. (In Flink, *commit* is all from the barrier to the sink's commit: the whole checkpoint.)
#
# A sink that shows all rows of an interval at once makes its readers wait: with *gathered* they wait as long as with
# *open*. Two-phase commit is one way to build such a sink, and not the reason for the wait.
#
# ## Who else waits?
#
# Another program shares each database: a clerk changes the number of pens in stock. SQLite lets **one** program write at a time, the one
# that has its lock. The clerk came a few times in each interval, and noted how long it waited.

# %%
lab.ask("13-lock")

# %%
measured.others

# %% tags=["nbval-check-output"]
lab.answer("13-lock", measured.others.slowest)

# %% [raw] tags=["expected"]
# It was open.
# The open transaction holds the one lock from its first row to the end of the interval. The other two hold it for a moment only.

# %% [markdown]
# *open* and *gathered* show their rows at the same time, and only *open* makes the clerk wait for the rest of the interval. What waits for an open transaction depends on the store:
#
# | store | who waits | for what | shown in |
# |---|---|---|---|
# | SQLite | every other writer | the one lock | above |
# | PostgreSQL | who changes the **same** row | the row's lock, which a prepared transaction keeps | [08](08_postgres.ipynb) |
# | Kafka | **readers** at `read_committed` of what lies behind | the last stable offset | [09](09_kafka.ipynb) |
#
# Records can also wait in front of the sink. If checkpoints are aligned, a task waits for all its barriers and holds
# records back meanwhile. If they are unaligned, the barrier overtakes records, and the checkpoint stores those.
# **Simulated**, with two sources:

# %% tags=["nbval-check-output"]
aligned, overtaking = lab.replay("barriers.alignment"), lab.replay("barriers.overtaking")
price = {"aligned": aligned.facts, "unaligned": overtaking.facts}
{name: {"held back": facts["held_records"], "stored": facts["stored_records"]} for name, facts in price.items()}

# %% [raw] tags=["expected"]
# {'aligned': {'held back': 1, 'stored': 0},
#  'unaligned': {'held back': 0, 'stored': 3}}

# %% [markdown]
# The aligned checkpoint held one record back and stored none. The unaligned one held back none and stored three.
#
# ## What does a commit cost?
#
# **Throughput** is how many records a job can write in a second. We write the same 300 rows into SQLite: in 300 transactions, in 30, in 3.

# %%
rates = lab.measure_rows([1, 10, 100])
rates

# %% tags=["checked"]
assert [rate.transactions for rate in rates.values()] == [300, 30, 3]
assert rates[1].a_second < rates[100].a_second
assert rates[1].seconds > rates[100].seconds

# %% [markdown]
# With ten or a hundred rows in a transaction the job writes many more rows a second than with one, because the same
# rows need fewer syncs. A hundred rows in one commit take nowhere near a hundred times as long as one. So a synced
# *append* has the smallest latency **and** the smallest throughput. Its queue grows as soon as records come faster than
# commits.
#
# Does a stronger guarantee need more syncs? Four of the lab's sinks write a batch (two tasks) into plain files. We watch the system calls, and count new files, syncs, renames and written bytes. *wal* and *two_phase* are in log-then-commit order. (Where system calls cannot be watched, the card says so, and shows counts of another machine.) First the table for 4 rows:

# %% tags=["nbval-check-output"]
lab.count_effects(sizes=[4])

# %% [raw] tags=["expected"]
# sink          rows  files  syncs  renames  bytes
# append        4     0      0      0        228
# batch_marker  4     1      3      1        228
# wal           4     4      8      4        450
# two_phase     4     3      10     5        318

# %%
lab.ask("13-grows")

# %% tags=["nbval-check-output"]
effects = lab.count_effects(sizes=[4, 400])
effects

# %% [raw] tags=["expected"]
# sink          rows  files  syncs  renames  bytes
# append        4     0      0      0        228
# append        400   0      0      0        23,490
# batch_marker  4     1      3      1        228
# batch_marker  400   1      3      1        23,490
# wal           4     4      8      4        450
# wal           400   4      8      4        37,470
# two_phase     4     3      10     5        318
# two_phase     400   3      10     5        23,580

# %% tags=["nbval-check-output"]
lab.answer("13-grows", effects.growing("two_phase"))

# %% [raw] tags=["expected"]
# It was bytes.
# Promise, decision and commit are made once for each task or batch, whatever it holds. Only the rows themselves take more room.

# %% [markdown]
# The syncs do not follow the guarantee. *append* and *wal* are at-least-once and make none and eight; *batch_marker* and *two_phase* are
# exactly-once and make three and ten. (The one transaction of *batch_marker* is the rename of its file.) None of these numbers
# grows with the rows. *two_phase* writes 90 bytes more than *append*, for 4 rows and for 400: the names of its two transactions. *wal* writes every row **twice**, once into its log, in a shorter form, and once into the table: 222 bytes more than *append* for 4 rows, 13,980 for 400. Unlike the *append* into SQLite above, the *append*
# on plain files syncs nothing: its rows survive a kill, but a power failure takes the newest ones.
#
# And messages? **Simulated**: a coordinator and two participants, nothing fails.

# %% tags=["nbval-check-output"]
from collections import Counter

steps = Counter(str(step).partition("(")[0] for step in lab.replay("two_phase_commit.nothing_fails").walk.actions)
{"participants read": steps["read"], "coordinator hears": steps["hear"]}

# %% [raw] tags=["expected"]
# {'participants read': 4, 'coordinator hears': 4}

# %% [markdown]
# The output counts eight messages: each participant reads two (*vote*, *commit*) and answers both. The number of rows
# does not matter. So the price of two-phase commit is paid for each **interval**: with an interval twice as long it is
# half as much a second.
#
# ## What does a crash cost?
#
# A longer interval saves commits. After a crash its records are read again. Real Spark, twelve records, killed at *ready* in its first batch:
# all tasks are ready, and `commits/0` is not there. *append* has shown its rows by then, *two_phase* has not. Two jobs with *append* take 6 and 12 records a batch; each record that is read again becomes a second row.
# A job with *two_phase* takes all twelve.

# %%
killed = {"at": "sink.after_pre_commit", "input": lab.TWELVE_WORDS}
crashed = lab.crash_each(
    {
        "append, 6": killed | {"sink": "append", "records_per_batch": 6},
        "append, 12": killed | {"sink": "append", "records_per_batch": 12},
        "two_phase, 12": killed | {"sink": "two_phase", "records_per_batch": 12},
    }
)
lab.compare(crashed)

# %% tags=["nbval-check-output"]
{name: len(run.verdict.duplicate) for name, run in crashed.items()}

# %% [raw] tags=["expected"]
# {'append, 6': 6, 'append, 12': 12, 'two_phase, 12': 0}

# %% [markdown]
# The numbers of *append* show how much was read again: a whole batch, 6 and 12 records. *two_phase* read its twelve again, too, and no reader saw it. A batch that is planned is repeated whole. A job that
# reads all the time, as in Flink, repeats about half an interval on average, and then catches up on what came meanwhile. At most it repeats an interval and the checkpoint that was not finished.
#
# What did the readers get? Two times belong together: for how long somebody could have read a wrong value, and for how long right rows were kept back.

# %%
{name: run.exposure.sentence() for name, run in crashed.items() if name.endswith("12")}

# %% tags=["checked"]
worst = {name: run.exposure.worst()[1] for name, run in crashed.items()}
assert all(worst[name].wrong.most > 0 and worst[name].lasts for name in worst if name.startswith("append"))
assert all(each.wrong.most == 0 for each in crashed["two_phase, 12"].exposure.keys.values())
assert worst["two_phase, 12"].held.most > 0

# %% [markdown]
# The first line shows a wrong value up to the end, and no waiting. The second shows no wrong value, and waiting through the whole restart. That is the trade: *append* pays with wrong values,
# *two_phase* with latency.
#
# > **You will read:** "*exactly-once makes every row slow to write*". It costs latency, about half an interval, and syncs and messages for each interval and task, not for
# > each row. Larger transactions raise the throughput. And "*a write-ahead log costs nothing, since the sink would write the rows anyway*": it writes each row twice.
#
# ## The settings, with a number in each row
#
# Four numbers of the table below say how long a transaction can stay open ([09b](09b_timeouts.ipynb)). Interval 10 s, and up to 5 s for a checkpoint:

# %% tags=["nbval-check-output"]
job = {"interval": 10, "checkpoint": 5, "transaction": 600}
{
    "plain": lab.timeouts(**job).needed,
    "pause of 15 s": lab.timeouts(**job, pause=15).needed,
    "one failure tolerated": lab.timeouts(**job, tolerated=1).needed,
    "down for a minute": lab.timeouts(**job, downtime=60).needed,
}

# %% [raw] tags=["expected"]
# {'plain': 15.0,
#  'pause of 15 s': 25.0,
#  'one failure tolerated': 25.0,
#  'down for a minute': 75}

# %% [markdown]
# And a Flink job that was cancelled and started again, without its last checkpoint and with it (**simulated**):

# %% tags=["nbval-check-output"]
{name: lab.replay(f"barriers.{name}").facts["visible"] for name in ("cancelled", "retained")}

# %% [raw] tags=["expected"]
# {'cancelled': 'hello=3 world=1', 'retained': 'hello=2 world=1'}

# %% [markdown]
# The settings of [notebook 04b](04b_stops.ipynb) again, each with what it costs, and the number that you have seen above:
#
# | setting | costs | number |
# |---|---|---|
# | a longer `interval` | latency | ½ s typical, 1 s at most, for each second (measured) |
# | a longer `interval`, counted in records | reading again after a crash | 6 with batches of 6, 12 with batches of 12 (measured) |
# | a shorter `interval`, counted in records | commits | for 300 records: 300 with one each, 3 with a hundred (measured) |
# | a longer `min-pause` | an interval that is longer than it says | 25 s open instead of 15 s, with a pause of 15 s |
# | a larger `tolerable-failed-checkpoints` | a transaction that is open for one more interval | 25 s instead of 15 s, with one |
# | a longer `timeout` of a checkpoint | a transaction that is open longer | 5 of the 15 s |
# | a `transaction.timeout.ms` that is too short | lost rows | needed: over 75 s, if the job can be down 60 s |
# | `mode`: aligned | records held back | 1 (simulated) |
# | `unaligned.enabled` | a larger checkpoint | 3 records stored (simulated) |
# | `externalized-checkpoint-retention`: nothing kept | what was shown is shown again | *hello* 3 times instead of 2 (simulated) |
#
# ## The cheapest interval
#
# Let a job stand still for *cost* seconds while it commits. It crashes about every *between* seconds, and reads half an
# interval again, at the same speed as the first time. So of each second it loses
#
# $$\frac{cost}{interval} + \frac{interval}{2 \cdot between}$$
#
# Longer intervals lower the first part and raise the second. The sum is smallest where both are equal. With a commit of 0.5 s and a crash every 900 s that is an interval of 30 s:
# 1.7 % for commits and 1.7 % for reading again. Latency is not in this sum. So take the shortest of
# four intervals: the cheapest, and the longest that latency, reading again and the transaction timeout each allow.
#
# **Your turn.** Change `intervals` at the top, and run everything again. Or measure another store: `lab.measure_rows(store="files")`, or `"postgres"` and `"kafka"` where `labkit services up`
# has started them.


# %% tags=["exercise"]
# exercise 13-wait
def waits(first, second):
    """The typical and the longest wait of a record, in seconds."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 13-wait
def waits(first, second):
    """The typical and the longest wait of a record, in seconds."""
    # Typical: the middle of an interval. Longest: right after a commit.
    interval, commit = first[0] + second[0], first[1] + second[1]
    return [interval / 2 + commit, interval + commit]


# %% tags=["check", "nbval-check-output"]
lab.check("13-wait")

# %% [raw] tags=["expected"]
# 13-wait: not attempted (3 points); lab.hint("13-wait") gives a hint.


# %% tags=["exercise"]
# exercise 13-longest
def longest(job):
    """The longest interval in whole seconds that keeps all limits, or None."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 13-longest
def longest(job):
    """The longest interval in whole seconds that keeps all limits, or None."""
    # The smallest of the three limits, each solved for the interval.
    most = min(job["latency"] - job["commit"], job["again"] // job["rate"], job["timeout"] - job["commit"] - 1)
    return most if most >= 1 else None


# %% tags=["check", "nbval-check-output"]
lab.check("13-longest")

# %% [raw] tags=["expected"]
# 13-longest: not attempted (4 points); lab.hint("13-longest") gives a hint.


# %% tags=["exercise"]
# exercise 13-best
def best_interval(cost, between):
    """The interval, in seconds, at which a job loses least of its time."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 13-best
def best_interval(cost, between):
    """The interval, in seconds, at which a job loses least of its time."""
    # Where both parts are equal: cost / interval == interval / (2 * between).
    return (2 * cost * between) ** 0.5


# %% tags=["check", "nbval-check-output"]
lab.check("13-best")

# %% [raw] tags=["expected"]
# 13-best: not attempted (5 points); lab.hint("13-best") gives a hint.

# %% [markdown]
# ## Check yourself
#
# **1. Readers of an exactly-once sink get rows 5 s late, typically. The interval is 10 s. What helps, if they may see nothing undecided?**
#
# <details><summary>a) A sink without two-phase commit, with one transaction an interval.</summary>It shows its rows at the same moment: <i>gathered</i> waited as long as <i>open</i>.</details>
# <details><summary>b) A shorter interval.</summary>Yes. The typical wait is half of it. The price is more commits.</details>
# <details><summary>c) A faster disk.</summary>That makes the commit faster. The 5 s are half of the interval.</details>
#
# **2. Each batch of a *two_phase* sink gets ten times as many rows. What becomes of its syncs a batch?**
#
# <details><summary>a) They stay as they are.</summary>Yes: ten for 4 rows, and ten for 400.</details>
# <details><summary>b) Ten times as many.</summary>Rows are not synced one by one. A task promises once, for all of its rows.</details>
#
# **3. An interval of 1 s becomes one of 10 s. What is *better* then?**
#
# <details><summary>a) Latency.</summary>It is ten times as long.</details>
# <details><summary>b) What is read again after a crash.</summary>It is about ten times as much.</details>
# <details><summary>c) The commits of an hour.</summary>Yes: a tenth, with their syncs and messages.</details>
#
# **4. Two jobs write to one SQLite file, each with an open transaction for 10 s. What happens?**
#
# <details><summary>a) Each slows the other a little.</summary>There is one lock. One job waits while the transaction of the other is open.</details>
# <details><summary>b) They take turns, an interval each.</summary>Yes, at best. Gather the rows, and write them in one short transaction.</details>
#
# ## What this is called in Flink, Spark and Kafka
#
# | here | Flink | Spark | Kafka |
# |---|---|---|---|
# | interval | `execution.checkpointing.interval` | `trigger(processingTime="2 seconds")` | Kafka Streams: `commit.interval.ms` |
# | rows a transaction | what comes between two barriers | `maxOffsetsPerTrigger` limits a batch | records between `beginTransaction` and `commitTransaction` |
# | *open* | sink with `SupportsCommitter` | - | transactional producer |
# | *gathered* | - | `foreachBatch` with a batch marker | - |
# | held back in front of a task | alignment; `unaligned.enabled` | - | - |
# | held back from a reader | until the notification | until the sink's commit | last stable offset, at `read_committed` |
#
# ## On Monday
#
# - Read the interval of your job, and draw the line *interval / 2 + commit*. Does the measured latency lie on it? If it lies above, look for a queue.
# - Count the syncs or commits a second of your sink before you buy a faster disk.
# - Ask who else writes to the store: do they wait for your open transaction?
# - Write down three limits: latency, records read again, transaction timeout. Your interval is the shortest of four: the cheapest, and the longest that each limit allows.
#
# ## Closing the ticket
#
# > **Ticket 21, closed.** The page lags by half an interval and the commit, and both sinks that gather an interval lag
# > alike: two seconds with an interval of four. The clerks waited for the open transaction, not for the interval: rows are
# > now gathered, and written in one short transaction. The bill grows with the number of commits. An interval of eight
# > seconds halves it, but the page lags four then. The shop, whose clerks wait no more, chose eight, and knows what a crash
# > then reads again.
#
# ---
# Sources: J. W. Young, A first order approximation to the optimum checkpoint interval, Communications of the ACM 17(9), 1974; SQLite:
# [Write-Ahead Logging](https://www.sqlite.org/wal.html), on one writer at a time and on synced commits; Apache Flink: [Checkpointing](https://nightlies.apache.org/flink/flink-docs-stable/docs/dev/datastream/fault-tolerance/checkpointing/).
#
# Back: [09b, what do three timeouts cost?](09b_timeouts.ipynb)
