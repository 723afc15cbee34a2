# %% [markdown]
# # Has it arrived?
#
# One process sends a record to another. The network may lose it, double it or delay it, and either process may die. What
# must the two do so that the record counts exactly once? Every link of a stream rests on the answer: source to engine,
# task to task, engine to sink.
#
# Everything here is **simulated**: processes in a chain, numbered from 0, and the network between them. Process 0 is the
# source; what the last process writes is what everybody sees. It takes 15 minutes. The cells stand alone: you can run
# any of them first.

# %% tags=["parameters"]
table = "connection"  # for "your turn" further down: where ids are kept (none, connection, volatile or durable)

# %% [markdown]
# ## Send it once
#
# Process 0 sends the record, and the network loses it. How many records are lost, how many come out twice, and what does
# *any* run of this sender guarantee? Put your answers in place of `None`, then run the cell. It runs without them, too.

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(lost=None, duplicate=None, guarantee=None)

verdict = lab.replay("delivery.lost_without_retry").verdict
any_run = lab.explore("delivery", retry=False, dedup="none", duplicates=0, processes=2, records=1)
print(said.beside(lost=len(verdict.lost), duplicate=len(verdict.duplicate), guarantee=any_run.guarantee))

# %% [raw] tags=["expected"]
#            it was
# lost       1
# duplicate  0
# guarantee  at-most-once
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# ## Send it until it is acknowledged
#
# So the receiver answers, and the sender sends again until it hears the answer. Is that enough? The simulator tries
# every schedule in which at most one message is lost and one is doubled, and one process dies at most once.

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(guarantee=None)

found = lab.explore("delivery", dedup="none", processes=2, records=1)
print(said.beside(guarantee=found.guarantee))
print("some schedule breaks:", found.broken)

# %% [raw] tags=["expected"]
#            it was
# guarantee  at-least-once
# Nothing was predicted, so nothing is compared.
# some schedule breaks: no_duplicate

# %% [markdown]
# Nothing is lost any more; now the record may count twice. Left, the record is lost. Right, the record arrives and the
# *answer* is lost. Step through both: what does process 0 know in step 2 on the left, and in step 5 on the right?

# %%
from labkit import lab

lab.show("delivery.lost_and_repeated", beside="delivery.lost_acknowledgement")

# %% tags=["nbval-check-output"]
from labkit import lab

left = lab.replay("delivery.lost_and_repeated").walk.states[2]
right = lab.replay("delivery.lost_acknowledgement").walk.states[5]
print("process 0 is in the same state:", left.processes[0] == right.processes[0])
print("process 0 can read an answer:", bool(left.hops[0].back), "and", bool(right.hops[0].back))
print("the record has come out:", bool(left.out), "and", bool(right.out))

# %% [raw] tags=["expected"]
# process 0 is in the same state: True
# process 0 can read an answer: False and False
# the record has come out: False and True

# %% [markdown]
# The sender is in the same state in both, so it must do the same in both: send again. **It cannot know whether it has
# succeeded.** If it sends again, a record may come twice; if it does not, one may be lost. So the cure must be on the
# other side: the receiver has to *recognise* what comes again.
#
# ## Recognise it
#
# Every record gets an id, and the receiver keeps a table of the ids that it has seen: nowhere (*none*), in the
# *connection* to its sender, in its memory (*volatile*), or in its store, together with what came of the record
# (*durable*). Which guarantee does each give, whatever the schedule?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(none=None, connection=None, volatile=None, durable=None)

found = {place: lab.explore("delivery", dedup=place, processes=2, records=1) for place in said.said}
print(said.beside({place: search.guarantee for place, search in found.items()}))
assert found["durable"].exhausted
assert found["durable"].broken == "nothing"

# %% [raw] tags=["expected"]
#             it was
# none        at-least-once
# connection  at-least-once
# volatile    at-least-once
# durable     exactly-once
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# Only one of four. Here the receiver dies before it acknowledges: left with a table in memory, right with a table in
# the store. Dashed frames with a bolt are volatile: look what the crash takes.

# %%
from labkit import lab

lab.show("delivery.table_in_memory", beside="delivery.table_in_the_store")

# %% [markdown]
# > **What popular notes get wrong.** "TCP takes care of duplicates." It does, *within one connection*: the connection
# > numbers what it carries, and drops what comes twice. But a connection dies with either of its ends. After a crash the
# > sender sends again on a new connection, which knows nothing of the old one.

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(without_a_crash=None, with_one_crash=None)

safe, unsafe = (lab.explore("delivery", dedup="connection", crashes=n, processes=2, records=1) for n in (0, 1))
print(said.beside(without_a_crash=safe.guarantee, with_one_crash=unsafe.guarantee))
print(lab.table({name: lab.replay(f"delivery.{name}") for name in ("living_connection", "broken_connection")}))

# %% [raw] tags=["expected"]
#                  it was
# without_a_crash  exactly-once
# with_one_crash   at-least-once
# Nothing was predicted, so nothing is compared.
#                    guarantee      lost  duplicate  jumped back
# living_connection  exactly-once   0     0          0
# broken_connection  at-least-once  0     1          0

# %% [markdown]
# ## Effects, not executions
#
# The receiver has the record, works on it, and dies before it has written anything. Its sender sends again. The table is
# durable. How often is the record worked on, and how often does it come out?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(worked_on=None, came_out=None)

walk = lab.replay("delivery.worked_on_twice")
print(said.beside(worked_on=walk.facts["executions"][0], came_out=walk.verdict.rows))
assert walk.verdict.guarantee == "exactly-once"

# %% [raw] tags=["expected"]
#            it was
# worked_on  2
# came_out   1
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# *Exactly once* never meant that something is done only once. It means that it *counts* once.
#
# ## Which step may move?
#
# The receiver does three things: write what came of the record, note its id, acknowledge. The rule is: the first two in
# **one** durable step, then the third. Break the rule in five ways. What does each cost: *loss*, or a *duplicate*?
#
# | broken rule | what the receiver does |
# |---|---|
# | ack_early | acknowledges when the record arrives |
# | note_early | notes the id when the record arrives |
# | note_late | notes the id in a second step, after the write |
# | highest_only | keeps the largest id only, to save space |
# | collect_early | forgets ids that may still come again |

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(ack_early=None, note_early=None, note_late=None, highest_only=None, collect_early=None)

names = {"at-most-once": "loss", "at-least-once": "duplicate", "exactly-once": "nothing"}
found = {rule: lab.explore("delivery", broken=rule, processes=2, records=2, window=2) for rule in said.said}
print(said.beside({rule: names[search.guarantee] for rule, search in found.items()}))

# %% [raw] tags=["expected"]
#                it was
# ack_early      loss
# note_early     loss
# note_late      duplicate
# highest_only   loss
# collect_early  duplicate
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# Early is loss, late is a duplicate: wherever there are two steps, a crash can come between them. And
# *highest_only* loses without any crash: record 0 is lost on the way, record 1 arrives, and when record 0 comes at last,
# its id is smaller.

# %%
from labkit import lab

lab.show("delivery.only_the_largest_id")

# %% [markdown]
# ## A chain of processes
#
# With more than two processes there are two designs, and they are often mixed up.
#
# 1. **Wait for all.** A process acknowledges only when everything after it is done, so its sender waits, and the sender's
#    sender, too. Nobody keeps ids.
# 2. **MillWheel's.** Each production gets an id. Id, state and output are written durably in one step, then the sender
#    is told: a *strong production*. The sender is free at once, and the next process deduplicates. A *weak production*
#    leaves that durable step out and waits, as in the first design, but ids are still checked.
#
# Three processes, and process 1 dies when the record has come out and nobody upstream knows. Which of the four guarantees
# that it counts once? (A *fresh id*: what is produced again gets a new id, as from a counter or a random number.)

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(
    waiting_for_all=None, strong_production=None, weak_production=None, weak_production_with_a_fresh_id=None
)

walks = {name: lab.replay(f"delivery.{name}") for name in said.said}
print(said.beside({name: walk.verdict.guarantee for name, walk in walks.items()}))

# %% [raw] tags=["expected"]
#                                  it was
# waiting_for_all                  at-least-once
# strong_production                exactly-once
# weak_production                  exactly-once
# weak_production_with_a_fresh_id  at-least-once
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# Waiting for all loses nothing and counts twice. A weak production is right only if it is the *same* production, with
# the same id, when it is made again. These were four runs; the search of all schedules says the same:

# %% tags=["nbval-check-output"]
from labkit import lab

weak = {"productions": "weak"}
waits, fresh = {**weak, "dedup": "none"}, {**weak, "ids": "fresh"}
designs = {"waiting for all": waits, "strong": {}, "weak": weak, "weak, fresh ids": fresh}
found = {name: lab.explore("delivery", records=1, **chosen) for name, chosen in designs.items()}
print(lab.columns([(name, search.guarantee, f"{search.states:,} states") for name, search in found.items()]))

# %% [raw] tags=["expected"]
# waiting for all  at-least-once  2,389 states
# strong           exactly-once   1,663 states
# weak             exactly-once   873 states
# weak, fresh ids  at-least-once  1,428 states

# %% [markdown]
# ## What waiting costs
#
# Four processes; 3, 2 and 1 die, one after the other, before the record has come out. How often does each of the
# processes 1, 2 and 3 work on the record, with weak and with strong productions? (Write lists, as `[1, 1, 1]`.)

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(weak=None, strong=None)

weak, strong = lab.replay("delivery.cascade"), lab.replay("delivery.cascade_is_stopped")
print(said.beside(weak=weak.facts["executions"], strong=strong.facts["executions"]))
steps = [walk.facts["waiting_steps"][0] for walk in (weak, strong)]
print(f"process 0 must be able to send it again for {steps[0]} and for {steps[1]} steps")

# %% [raw] tags=["expected"]
#         it was
# weak    [2, 2, 2]
# strong  [1, 1, 2]
# Nothing was predicted, so nothing is compared.
# process 0 must be able to send it again for 29 and for 15 steps

# %%
from labkit import lab

lab.show("delivery.cascade")

# %% [markdown]
# With weak productions a failure at the end is felt at the beginning: everybody works again. Strong productions stop it
# where it happens, and pay for that with a durable write in each process.
#
# ## Your turn: make it count twice
#
# The connection deduplicates, the network behaves, and one process may die. **Find a schedule in which the record comes
# out twice.** How few steps do you need? (Choose another place for the table in the first code cell: for which one is it
# impossible?)

# %%
from labkit import lab

lab.need("table", cell="the first code cell (the parameters)")
mine = lab.explorer("delivery", dedup=table, processes=2, records=1, drops=0, duplicates=0)
mine

# %%
from labkit import lab

lab.need("mine", cell="the cell above")
walk = lab.replay(mine.trace)
print(f"{len(walk.trace.actions)} steps, the record came out {walk.verdict.rows} times")
shortest = lab.explore("delivery", dedup="connection", processes=2, records=1, drops=0, duplicates=0)
print("the shortest such run has", len(shortest.counterexample().actions), "steps")

# %% [markdown] tags=["task"]
# ## Exercise: executions and effects (`02-predict`)
#
# The receiver takes a record, works on it, and dies **before** its durable write. It starts again, and the record comes
# again. How often has it worked on the record (`executions`), and how many rows are out in the end (`effects`)?
#
# *predict, easy, 1 point for predicting, right or wrong; one line.*
#
# <details><summary>Hint 1</summary>Which of the two does the durable write of output and id protect?</details>
# <details><summary>Hint 2</summary>A crash before the write takes the work, and nobody has noted the id.</details>

# %% tags=["exercise"]
# exercise 02-predict
predicted_02 = {"executions": ..., "effects": ...}  # two numbers

# %% tags=["solution"]
# exercise 02-predict
predicted_02 = {"executions": 2, "effects": 1}

# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("02-predict")

# %% [raw] tags=["expected"]
# 02-predict: not attempted (1 point); write it, and the run unlocks.

# %% [markdown] tags=["task"]
# ## Exercise: know it again (`02-dedup`)
#
# Write the receiver. `receive(id, table, memory)` is asked for every message that comes: `id` is the message's id, `table`
# the list of ids in the durable table, `memory` the list of ids in memory, which a crash empties. Return the steps that the
# receiver takes, in order:
#
# - `"output"`: what comes of the message is put out, for everybody to see;
# - `"note"`: the id goes into the durable table;
# - `"output and note"`: both in one durable step;
# - `"remember"`: the id goes into memory;
# - `"acknowledge"`: the sender is told. A sender repeats until it is.
#
# Between any two steps the receiver may die. The check tries every schedule with crashes, lost and doubled messages: each
# record must come out once, and the sender must come to an end.
#
# *complete, medium, 4 points; about 3 lines.*
#
# <details><summary>Hint 1</summary>A crash can come between any two steps. Which two of them must not be apart?</details>
# <details><summary>Hint 2</summary>What is in memory is gone after a crash, and the sender sends again whatever was not
# acknowledged. More: <code>lab.hint("02-dedup")</code>.</details>


# %% tags=["exercise"]
# exercise 02-dedup
def receive(id, table, memory):
    """The steps with which a receiver takes a message."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 02-dedup
def receive(id, table, memory):
    """The steps with which a receiver takes a message."""
    return ["acknowledge"] if id in table else ["output and note", "acknowledge"]


# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("02-dedup")

# %% [raw] tags=["expected"]
# 02-dedup: not attempted (4 points); lab.hint("02-dedup") helps.

# %% [markdown] tags=["task"]
# ## Exercise: a chain that waits (`02-chain`)
#
# In this chain no process but the last may write durably: productions are **weak**, so each waits until everything
# downstream is done. Choose whether senders repeat (`retry`), where ids are kept (`dedup`: `"none"`, `"connection"`,
# `"volatile"`, `"durable"`), and what names a production that is made again (`ids`: `"derived"` from the record, or
# `"fresh"`), so that **every record comes out exactly once** although anybody may crash and a message may get lost.
#
# *configure, medium, 2 points; one line.*
#
# <details><summary>Hint 1</summary>A production that is made again after a crash: by what can the next process know
# it?</details>
# <details><summary>Hint 2</summary>Where does the last process keep the ids that it has seen, if it may die too?</details>

# %% tags=["exercise"]
# exercise 02-chain
chain_settings = {"retry": ..., "dedup": ..., "ids": ...}

# %% tags=["solution"]
# exercise 02-chain
chain_settings = {"retry": True, "dedup": "durable", "ids": "derived"}

# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("02-chain")

# %% [raw] tags=["expected"]
# 02-chain: not attempted (2 points); lab.hint("02-chain") helps.

# %% [markdown] tags=["task"]
# ## Exercise: does TCP take care of it? (`02-tcp`)
#
# A receiver dies after its write and before its acknowledgement; the sender sends again. What keeps the record from
# counting twice?
#
# - **a** TCP: it delivers every byte once.
# - **b** An id of the message, noted durably together with what came of it.
# - **c** A timeout that is long enough.
# - **d** Acknowledging before the write.
#
# *explain, easy, 1 point for the right choice; the check gives a reason for each; one line.*
#
# <details><summary>Hint 1</summary>What does each of the four know after a crash?</details>
# <details><summary>Hint 2</summary>Look at delivery.broken_connection and delivery.table_in_the_store.</details>

# %% tags=["exercise"]
# exercise 02-tcp
tcp_answer = ...  # "a", "b", "c" or "d"

# %% tags=["solution"]
# exercise 02-tcp
tcp_answer = "b"

# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("02-tcp")

# %% [raw] tags=["expected"]
# 02-tcp: not attempted (1 point); lab.hint("02-tcp") helps.

# %% [markdown]
# ## What remains true
#
# - A sender cannot know that it has succeeded. So it sends again, and the receiver must recognise what comes again.
# - Recognising needs an id that is the *same* each time, and a table that lives as long as what came of the record: both
#   in one durable step, then the acknowledgement.
# - Ids may be forgotten when nobody can send them again, not before.
# - Exactly-once says nothing about *order*. With two records under way, each may count once and still come out in the
#   wrong order:

# %% tags=["nbval-check-output"]
from labkit import lab

print(lab.table({"sent again, behind the next": lab.replay("delivery.retry_reorders")}))

# %% [raw] tags=["expected"]
#                              guarantee     lost  duplicate  jumped back
# sent again, behind the next  exactly-once  0     0          1

# %% [markdown]
# Left out here: the state of the processes between (only what comes out at the end is judged), how large a table becomes,
# and two senders that believe to be the same one.
#
# ## Check yourself
#
# **1. A payment request times out. What do you know?**
#
# <details><summary>a) It was not carried out.</summary>That is the left run above. The right one looks the same from
# where you stand, and there the payment was made.</details>
# <details><summary>b) Nothing, so I must not repeat it.</summary>Then a lost request is never made up for: at-most-once.
# </details>
# <details><summary>c) Nothing, so I repeat it with the same id.</summary>Yes, if the other side keeps the ids as long as
# the payments.</details>
#
# **2. Your service keeps the ids of the last hour in memory. When does a record count twice?**
#
# <details><summary>a) When the service restarts between the write and the acknowledgement.</summary>Yes: the table is
# gone, what came of the record is not. That is <i>volatile</i>.</details>
# <details><summary>b) When a sender repeats something after two hours.</summary>Yes, too: that is
# <i>collect_early</i>.</details>
# <details><summary>c) Never, an hour is long enough.</summary>No run above has more than about
# twenty steps between record and duplicate, and none of them needs an hour.</details>
#
# **3. A colleague writes the result to the database, and then the id to a table in the same database, in two
# transactions. What can happen?**
#
# <details><summary>a) Loss.</summary>The result is there first, so it cannot be missing.</details>
# <details><summary>b) A duplicate.</summary>Yes: <i>note_late</i>. A crash between the two, and the result comes again.
# One transaction for both repairs it.</details>
#
# **4. Ids are random numbers, drawn when a process produces a record. Its receiver has a durable table. What is wrong?**
#
# <details><summary>a) Two records may draw the same number.</summary>With enough bits that is no practical matter.</details>
# <details><summary>b) After a crash the same record is produced again under another number.</summary>Yes, if the first
# number was not made durable before it was sent: the fresh id above. Strong productions write it down first.</details>
#
# ---
# Sources: strong and weak productions are from Akidau et al.,
# [MillWheel: Fault-Tolerant Stream Processing at Internet Scale](https://research.google/pubs/millwheel-fault-tolerant-stream-processing-at-internet-scale),
# VLDB 2013; what TCP promises within a connection is in [RFC 9293](https://www.rfc-editor.org/rfc/rfc9293); why the ends
# must do it themselves: Saltzer, Reed and Clark,
# [End-to-End Arguments in System Design](https://doi.org/10.1145/357401.357402), 1984.
#
# Next: [How do you copy a bank that does not stand still?](03_snapshots.ipynb) Ids make one step safe. For a whole job,
# it must be known what everybody had done.
