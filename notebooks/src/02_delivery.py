# ---
# jupyter:
#   labkit:
#     needs: [00_start, 01_guarantees]
# ---

# %% [markdown]
# # Has it arrived?
#
# > **Ticket 3** (invented). *From a shop:* "Several times a day the card terminal says *no answer*. My staff press the
# > button again, and in our other shop they never do. Who is right? The terminal's maker says that its network is
# > reliable."
#
# Was the payment made when no answer came? The same question arises between any two processes of a streaming job:
# source and engine, task and task, engine and sink.
#
# {head}
#
# You will be able to
#
# - say why a sender without an answer knows nothing, and what that costs;
# - say what a receiver must keep, where, and for how long;
# - tell three designs of engines apart by what they keep.
#
# Everything here is **simulated**: processes in a chain, numbered from 0, and the network between them. Process 0 is
# the source. The outside sees only what the last process puts out.

# %%
from labkit import lab

# %% tags=["parameters"]
table = "connection"  # for "your turn" further down: where ids are kept (none, connection, volatile or durable)

# %% [markdown]
# ## Send it once, send it again
#
# Process 0 sends a record once, and the network may lose it. A search tries every schedule:

# %% tags=["nbval-check-output"]
# retry: the sender repeats; dedup: where the receiver keeps ids. What may go wrong is 1 loss, 1 doubled message and
# 1 crash, unless the call says otherwise; here no message is doubled.
lab.explore("delivery", retry=False, dedup="none", duplicates=0, processes=2, records=1)

# %% [raw] tags=["expected"]
# every schedule of delivery: at-most-once
#   23 states, all there are
#   BROKEN no_loss, 2 steps: record 0 has not come out, and nobody has anything left to do.

# %% [markdown]
# If neither the sender nor the network repeats a record, it can get lost, but it never counts twice: at-most-once. So
# the receiver answers with an **acknowledgement**, and the sender repeats until it hears one. Again one message may be
# lost, but nobody crashes.

# %%
lab.ask("02-again")

# %%
again = lab.explore("delivery", dedup="none", duplicates=0, crashes=0, processes=2, records=1)
again

# %% tags=["nbval-check-output"]
lab.answer("02-again", again.guarantee)

# %% [raw] tags=["expected"]
# It was at-least-once.
# A lost record is sent again. A lost answer makes the sender repeat a record that had arrived, so it counts twice.

# %% [markdown]
# Sending again is at-least-once: nothing is missing, and the record may count twice. Below left, the record is lost.
# Right is a *lost answer*: it arrives, its acknowledgement is lost. What does process 0 know in step 2 on the left, and
# in step 5 on the right?

# %%
lab.show("delivery.lost_and_repeated", beside="delivery.lost_acknowledgement")

# %% tags=["checked"]
left = lab.replay("delivery.lost_and_repeated").walk.states[2]
right = lab.replay("delivery.lost_acknowledgement").walk.states[5]
assert left.processes[0] == right.processes[0]
assert not left.hops[0].back
assert not right.hops[0].back
assert (bool(left.out), bool(right.out)) == (False, True)

# %% [markdown]
# Process 0 is in the same state on both sides, and no message has reached it. On the right the record has come out; on
# the left it has not. So until an answer comes, **a sender cannot know whether it has succeeded**. The cure must be on
# the other side: the receiver has to *recognise* what comes again. (In a terminal, `labkit crashtest --fault
# lost-answer` tests it.)
#
# ## Recognise it
#
# Every record gets an id, and the receiver keeps a list of the ids that it has seen. Dropping what is on the list is
# called **deduplication**. Where should the list be? With the *connection* to the sender, as in TCP? In the *memory* of the
# receiver? Or in its *store*, where the result of the record goes?

# %%
lab.ask("02-table")

# %% tags=["nbval-check-output"]
places = {
    "with the connection": "connection",
    "in the memory": "volatile",
    "in the store": "durable",  # in the same step as the result
}
found = {place: lab.explore("delivery", dedup=dedup, processes=2, records=1) for place, dedup in places.items()}
lab.compare(**found)

# %% [raw] tags=["expected"]
#                      guarantee      states  broken
# with the connection  at-least-once  227     no_duplicate
# in the memory        at-least-once  250     no_duplicate
# in the store         exactly-once   191     nothing

# %% tags=["nbval-check-output"]
lab.answer("02-table", [place for place in found if found[place].guarantee == "exactly-once"])

# %% [raw] tags=["expected"]
# It was: in the store.
# A crash erases the memory and the connection, and the result stays. Only a list that lives as long as the result recognises a repeated record.

# %% tags=["checked"]
durable = found["in the store"]
assert durable.exhausted
assert durable.broken == "nothing"

# %% [markdown]
# Only the list in the store makes it exactly-once (`lab.show("delivery.table_in_memory", beside="delivery.table_in_the_store")`).
# There the id is written in the same step as the result. A connection dies with either of its ends.
#
# > **You will read:** "TCP takes care of duplicates". TCP does, *within one connection*. After a crash a new connection
# > knows nothing of the old one, as the first row above shows.
#
# Flink nevertheless relies on TCP between its own tasks and keeps no list of ids: when a connection breaks, the job
# fails, and all connected tasks go back to the last checkpoint together. The receivers forget what they made of the
# records since then, and get those records again.
#
# ## One step or two?
#
# The receiver has the record, works on it, and dies before it has written anything. The sender repeats. The receiver
# works on the record a second time, and the record comes out once:

# %% tags=["nbval-check-output"]
twice = lab.replay("delivery.worked_on_twice")
{"worked on": twice.facts["executions"], "came out": twice.verdict.rows}

# %% [raw] tags=["expected"]
# {'worked on': [2], 'came out': 1}

# %% [markdown]
# This is exactly-once: about effects, not about executions. The receiver has three things to do: put out what came of
# the record, note the id, acknowledge. The rule: the first two in **one** durable step, then the third. Five receivers
# break the rule:
#
# | receiver | what it does |
# |---|---|
# | ack_early | acknowledges when the record arrives |
# | note_early | notes the id when the record arrives |
# | note_late | notes the id in a second step, after the result |
# | highest_only | keeps only the largest id, to save space |
# | collect_early | forgets ids that may still come again |

# %% tags=["nbval-check-output"]
rules = ["ack_early", "note_early", "note_late", "highest_only", "collect_early"]
# window=2: the sender may have two records under way at once
lab.compare(**{rule: lab.explore("delivery", broken=rule, processes=2, records=2, window=2) for rule in rules})

# %% [raw] tags=["expected"]
#                guarantee      states  broken
# ack_early      at-most-once   2,015   kept, no_regression, no_loss
# note_early     at-most-once   2,637   kept, no_regression, no_loss
# note_late      at-least-once  3,642   no_duplicate, no_regression
# highest_only   at-most-once   1,963   no_loss, kept
# collect_early  at-least-once  16,300  no_duplicate, no_regression

# %% [markdown]
# Acknowledge or note too early, and a crash loses the record (`kept`: every record is durable somewhere, or out). Note too late,
# or forget too soon, and it counts twice. *highest_only* loses without any crash: record 0 is lost on the way, record 1
# arrives, and when record 0 finally comes, its id is smaller.
#
# > **Found in the wild.** In 2025 Jepsen found that NATS JetStream 2.12.1 lost acknowledged messages when power failed, because by
# > default it wrote to disk every two minutes and acknowledged at once
# > ([report](https://jepsen.io/analyses/nats-2.12.1)). That is *ack_early*.
#
# When may an id be forgotten? When nobody can send it again. The sender knows that: once it has heard the
# acknowledgement, it never repeats. So the sender must tell the receiver, or stop repeating after an agreed time.
#
# ## A chain of processes
#
# Now three processes: 0 sends to 1, and 1 to 2. What process 1 sends on is called its **production**. Three designs:
#
# 1. **Waiting for all.** A process acknowledges only when everything after it is done. Nobody stores ids or
#    productions. Apache Storm works like this: a record counts as processed when all records that were made from it are
#    processed. If that takes longer than `topology.message.timeout.secs` (default 30), the source sends it again.
# 2. **Strong productions** (Google's MillWheel). The id of the incoming record, the process's state and its productions
#    are written in one durable step. Only then does the process acknowledge the record. After a crash the process sends
#    the written productions again, with the same ids.
# 3. **Weak productions** (MillWheel, too). As in design 1, the process sends its production on without writing it down,
#    and waits. But it notes the id in its store only when all processes after it are done, later than the rule says.
#    The last process puts the result out and notes the id in one step.
#
# With weak productions a process that has crashed makes its production again. An id that it derives from the record is
# the same as before. An id from a counter is fresh.

# %%
lab.ask("02-designs")

# %% tags=["nbval-check-output"]
designs = {
    # Three processes, unless the call says otherwise. Design 1 writes no production either ("weak"), and keeps no ids.
    "waiting for all": lab.explore("delivery", records=1, productions="weak", dedup="none"),
    "strong": lab.explore("delivery", records=1),  # a durable list, unless dedup says otherwise
    "weak, same id again": lab.explore("delivery", records=1, productions="weak"),
    "weak, fresh id": lab.explore("delivery", records=1, productions="weak", ids="fresh"),
}
lab.compare(**designs)

# %% [raw] tags=["expected"]
#                      guarantee      states  broken
# waiting for all      at-least-once  2,389   no_duplicate
# strong               exactly-once   1,663   nothing
# weak, same id again  exactly-once   873     nothing
# weak, fresh id       at-least-once  1,428   no_duplicate

# %% tags=["nbval-check-output"]
lab.answer("02-designs", [name for name in designs if designs[name].guarantee == "exactly-once"])

# %% [raw] tags=["expected"]
# It was: strong, weak, same id again.
# Process 1 produces the record a second time, or sends it a second time. Process 2 recognises it if it keeps ids, and if the id is the same.

# %% tags=["checked"]
runs = ["waiting_for_all", "strong_production", "weak_production", "weak_production_with_a_fresh_id"]
seen = [lab.replay(f"delivery.{name}").verdict.guarantee for name in runs]
assert seen == [search.guarantee for search in designs.values()]

# %% [markdown]
# *Waiting for all* loses nothing. The record may count twice, because it is sent again and nobody has kept its id:
# Storm's basic promise is at-least-once. A weak production is safe on one condition: when it is made again, it is the
# *same* production with the same id. Then the next process recognises the repeat, and a late note does no harm. And if
# a strong process left its productions out of the durable step, a crash would lose them: the sender was told already,
# as with *ack_early*.
#
# What does waiting cost? In a chain of four, 3, 2 and 1 die, one after the other, before the record is out. How often
# do the processes 1, 2 and 3 work on the record?

# %% tags=["nbval-check-output"]
weak, strong = lab.replay("delivery.cascade"), lab.replay("delivery.cascade_is_stopped")
{
    "work, weak": weak.facts["executions"],
    "work, strong": strong.facts["executions"],
    "steps that process 0 waits": [walk.facts["waiting_steps"][0] for walk in (weak, strong)],
}

# %% [raw] tags=["expected"]
# {'work, weak': [2, 2, 2],
#  'work, strong': [1, 1, 2],
#  'steps that process 0 waits': [29, 15]}

# %% [markdown]
# With weak productions everybody works twice, and process 0 must be able to repeat the record for 29 steps. With strong
# productions only process 3 works twice, because 1 and 2 have stored theirs, and 15 steps are enough. The price is a
# durable write in each process.
#
# ## Who may send?
#
# A **zombie** is a process that was taken for dead and replaced, and wakes up. It goes on writing next to its
# successor. An id stops it only if both use the *same* id. The next two runs use the job of notebook 00. Two drivers
# write the same batch of three rows, each in transactions of its own. A transaction's name is its id here. It holds the
# driver's number, so their ids differ. One store refuses nobody. The other has **fencing**: the store knows who was
# replaced and refuses the old one.

# %% tags=["nbval-check-output"]
lab.compare(open_store=lab.replay("pipeline.zombie_begins"), fencing=lab.replay("pipeline.zombie_begins_fenced"))

# %% [raw] tags=["expected"]
#             guarantee      lost  twice  jumps back  rows
# open_store  at-least-once  0     3      1           6
# fencing     exactly-once   0     0      0           3

# %% [markdown]
# Without fencing the rows are there twice: the zombie wrote the batch again, in a transaction of its own. With fencing
# they are there once. MillWheel uses a token for it: each successor gets a higher number than its predecessor and shows
# it with every write. The store refuses an old number.
#
# ## Your own sink, second edition
#
# Open `my_sink.py` in JupyterLab's file browser (notebook 00 has written it). The engine repeats batches as a sender repeats a message.
# **Change the sink so that it recognises an order that comes again**, by its `id`, and run this cell. Change nothing
# else yet: what a reader sees on the way may stay wrong.

# %%
lab.my_sink(after="02")

# %% [markdown]
# <details><summary>One way</summary>Make <code>id</code> the key: <code>CREATE TABLE IF NOT EXISTS orders (id PRIMARY KEY, item,
# amount)</code>, and write <code>INSERT OR REPLACE INTO orders ...</code>. SQLite then keeps the list of ids, and each
# id is stored in one step with its row.</details>
#
# ## Your turn: make it count twice
#
# The list is in the connection, the network behaves, and one process may die. **Find a schedule in which the record
# comes out twice.** How few steps do you need? For which `table` (in the cell near the top) is it impossible?

# %%
mine = lab.explorer("delivery", dedup=table, processes=2, records=1, drops=0, duplicates=0)
mine

# %%
lab.replay(mine.trace)

# %% tags=["checked"]
shortest = lab.explore("delivery", dedup="connection", processes=2, records=1, drops=0, duplicates=0)
assert len(shortest.counterexample().actions) == 8

# %% tags=["exercise"]
# exercise 02-predict
predicted_02 = {"executions": ..., "effects": ...}  # a list of three numbers, and a number

# %% tags=["solution"]
# exercise 02-predict
predicted_02 = {"executions": [1, 2, 1], "effects": 1}

# %% tags=["check", "nbval-check-output"]
lab.check("02-predict")

# %% [raw] tags=["expected"]
# 02-predict: not attempted (not graded); write it, and the run unlocks.


# %% tags=["exercise"]
# exercise 02-dedup
def receive(id, table, memory):
    """The steps with which a receiver takes a message."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 02-dedup
def receive(id, table, memory):
    """The steps with which a receiver takes a message."""
    # Result and id in one durable step, and only then the sender is told. A repeat was only not heard: tell it again.
    return ["acknowledge"] if id in table else ["output and note", "acknowledge"]


# %% tags=["check", "nbval-check-output"]
lab.check("02-dedup")

# %% [raw] tags=["expected"]
# 02-dedup: not attempted (4 points); lab.hint("02-dedup") gives a hint.

# %% tags=["exercise"]
# exercise 02-chain
chain_settings = {"retry": ..., "dedup": ..., "ids": ...}

# %% tags=["solution"]
# exercise 02-chain
chain_settings = {"retry": True, "dedup": "durable", "ids": "derived"}

# %% tags=["check", "nbval-check-output"]
lab.check("02-chain")

# %% [raw] tags=["expected"]
# 02-chain: not attempted (2 points); lab.hint("02-chain") gives a hint.

# %% tags=["exercise"]
# exercise 02-tcp
tcp_answer = ...  # "a", "b", "c" or "d"

# %% tags=["solution"]
# exercise 02-tcp
tcp_answer = "c"

# %% tags=["check", "nbval-check-output"]
lab.check("02-tcp")

# %% [raw] tags=["expected"]
# 02-tcp: not attempted (not graded); lab.hint("02-tcp") gives a hint.

# %% [markdown]
# ## What is not promised
#
# Exactly-once says nothing about *order*. With two records under way, the first may be sent again after the second. If they
# set one value, to 1 and to 2, each counts once, and a reader sees the value jump back (`lab.show("delivery.retry_reorders")`).
#
# ## Check yourself
#
# **1. A payment request times out. What do you know?**
#
# <details><summary>a) It was not carried out.</summary>No. That is the left run above. The right one looks the same from
# where you stand, and there the payment was made.</details>
# <details><summary>b) Nothing, so I must not repeat it.</summary>No. Then a lost request stays lost.</details>
# <details><summary>c) Nothing, so I repeat it with the same id.</summary>Right, if the other side keeps the ids as long as
# the payments.</details>
#
# **2. Your service keeps the ids of the last hour in memory. When does a record count twice? (Two are right.)**
#
# <details><summary>a) When the service restarts between the write and the acknowledgement.</summary>Right. The list is gone,
# the result is not.</details>
# <details><summary>b) When a sender repeats something after two hours.</summary>Right. That is <i>collect_early</i>.</details>
# <details><summary>c) Never, an hour is long enough.</summary>No. A restart empties the list at once, and only the sender
# knows how long it goes on repeating.</details>
#
# **3. Ids are random numbers, drawn when a process produces a record. Its receiver has a durable list. What is wrong?**
#
# <details><summary>a) Two records may draw the same number.</summary>No, not with enough bits.</details>
# <details><summary>b) After a crash the same record is produced under another number.</summary>Right, unless the first number
# was written down before it was sent, as strong productions do.</details>
#
# ## What this is called in Flink, Spark and Kafka
#
# | here | Storm, MillWheel, Dataflow | Flink, Spark | Kafka 4 |
# |---|---|---|---|
# | acknowledgement | Storm: `ack`, when the whole *tuple tree* is processed | Flink, between tasks: that of TCP | producer `acks` |
# | repeat | Storm: the spout replays. MillWheel, Dataflow: *upstream backup* | Flink: the connected tasks go back together. Spark: the failed task runs again | producer retries |
# | list of ids | Dataflow, by default: a catalog in each receiver; MillWheel: a Bloom filter and a store | - | the last five batches of each producer id; a restarted producer without transactional id gets a new one |
# | fencing | MillWheel: sequencer token | engines fence their own notes ([12](12_engines.ipynb)); rows can be fenced only by the store | producer epoch; refusal `PRODUCER_FENCED` |
#
# ## On Monday
#
# **Look at** one call of yours that is repeated after a timeout: an HTTP request, an insert. Does it carry an id? Is the id
# the same in every attempt? Does the other side store it in the same transaction as the result?
#
# **Set** the id where the record is born (order number, log offset), never where it is sent. Keep ids longer than any
# sender repeats.
#
# ## Closing the ticket
#
# > **Ticket 3, closed.** Neither shop. A terminal without an answer cannot tell a lost payment from a lost answer: a
# > shop that never presses again loses some sales, and a shop that does may charge a customer twice. Pressing again is
# > right if both requests carry the same id, and the bank keeps that id with the payment. Our terminal drew a fresh id
# > for each press. It now draws one for each sale.
#
# ---
# Sources: Akidau et al.,
# [MillWheel](https://research.google/pubs/millwheel-fault-tolerant-stream-processing-at-internet-scale), VLDB 2013; Storm 2,
# [Guaranteeing Message Processing](https://storm.apache.org/releases/current/Guaranteeing-message-processing.html);
# [Exactly-once in Dataflow](https://cloud.google.com/dataflow/docs/concepts/exactly-once); TCP:
# [RFC 9293](https://www.rfc-editor.org/rfc/rfc9293); Saltzer, Reed and Clark,
# [End-to-End Arguments in System Design](https://doi.org/10.1145/357401.357402), 1984.
#
# Next: [How do you copy a bank that does not stand still?](03_snapshots.ipynb)
