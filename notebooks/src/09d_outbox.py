# ---
# jupyter:
#   labkit:
#     needs: [02_delivery, 08_postgres, 09_kafka]
#     slow: true
# ---

# %% [markdown]
# # Who tells the warehouse?
#
# > **Ticket 14** (invented). *From the warehouse:* "Order B was paid on Tuesday, and nobody told us. On Thursday we
# > packed an order that is not in your database at all. Your logs show two restarts and no error. Do you send us
# > messages, or guesses?"
#
# The shop writes a paid order into PostgreSQL and a message about it into Kafka. Neither knows of the other, so no
# transaction covers both. Almost every team has such a service.
#
# {head}
#
# You will be able to
#
# - find a dual write in a code review, and say what a crash loses or makes up,
# - build an outbox with a relay, and a receiver that tolerates repeats,
# - read PostgreSQL's log instead of a table, and hand over from a copy of the table without a gap.
#
# PostgreSQL and Kafka are real, and so is each SIGKILL: `shop.run` starts your function in a process of its own.

# %%
from labkit import lab

CHANGES = [(1, "A", "paid"), (2, "B", "paid"), (3, "A", "cancelled")]  # id, order, its new state

# %% [markdown]
# ## Two writes
#
# A **dual write** is a change that one program writes to two systems, one after the other, without a transaction over
# both. One of them must be first. Here are both ways. `shop.at` names a moment, and at *between 2* the process is killed: between the two
# writes for change 2. A new process goes on with change 3, because the customer saw an error page and nobody repeats the request.


# %%
def commit_first(shop, change):
    with shop.db.transaction():
        shop.db.execute("INSERT INTO orders VALUES (%s, %s, %s)", change)
    shop.at(f"between {change[0]}")
    shop.publish(change)  # returns when the broker has acknowledged the message


def publish_first(shop, change):
    shop.publish(change)
    shop.at(f"between {change[0]}")
    with shop.db.transaction():
        shop.db.execute("INSERT INTO orders VALUES (%s, %s, %s)", change)


# %% tags=["nbval-check-output"]
outcomes = {}
for service in (commit_first, publish_first):
    shop = lab.shop()  # a new database, a new topic
    print(shop.run(service, *CHANGES, kill="between 2"))
    outcomes[service.__name__] = shop.outcome()
lab.compare(outcomes)

# %% [raw] tags=["expected"]
# commit_first: the process died by signal 9 at 'between 2'; a new one went on
# publish_first: the process died by signal 9 at 'between 2'; a new one went on
#                guarantee      lost  twice  jumps back  rows  unexplained
# commit_first   at-most-once   1     0      0           2     -
# publish_first  at-least-once  0     0      0           3     1

# %% tags=["checked"]
assert outcomes["commit_first"].verdict.lost == (2,)
assert outcomes["publish_first"].verdict.unexpected == (2,)

# %% [markdown]
# `shop.outcome()` compares the messages in the topic with the orders in the database. With the commit first, B is paid and the warehouse never hears of it.
# With the message first, the warehouse packs an order that nobody has paid: one row is *unexplained*, because no committed order explains it. (Nothing is missing and one row is too many, so the lab says *at-least-once*. But a receiver can drop a repeat by its id, and not a made-up message.) These are the ticket's two complaints, from the same two writes in either order. A retry in the service repairs neither, because the process that should retry is dead.
#
# ## One write
#
# A **transactional outbox** is a table in the service's own database: the message is a row there, written in the transaction of the order.
# So both exist, or neither does. A second program, the **relay**, reads the outbox, publishes each row, and marks it as sent.


# %%
def with_outbox(shop, change):
    with shop.db.transaction():
        shop.db.execute("INSERT INTO orders VALUES (%s, %s, %s)", change)
        shop.at(f"between {change[0]}")
        shop.db.execute("INSERT INTO outbox VALUES (%s, %s, %s)", change)


def relay(shop):
    for change in shop.db.execute("SELECT id, name, state FROM outbox WHERE NOT sent ORDER BY id").fetchall():
        shop.publish(change)
        shop.at(f"published {change[0]}")
        shop.db.execute("UPDATE outbox SET sent = true WHERE id = %s", [change[0]])


# %% [markdown]
# The service is killed between its two inserts for change 2. PostgreSQL rolls both back: B was never paid, no message says it was, and the customer rightly sees an error. Then the relay is killed as well, after the broker has acknowledged message 3 and before it is marked. A new relay starts.

# %%
lab.ask("09d-relay-dies")

# %%
shop = lab.shop()
service = shop.run(with_outbox, *CHANGES, kill="between 2")
shop.sell((4, "C", "paid"))  # the same two inserts, in this process
lab.said(service, shop.run(relay, kill="published 3"))

# %% tags=["nbval-check-output"]
lab.answer("09d-relay-dies", len(shop.messages()))

# %% [raw] tags=["expected"]
# It was 4.
# Row 3 was not marked, so the new relay published it again, with the same id; it cannot know that the broker has it.

# %% tags=["nbval-check-output"]
shop.messages()

# %% [raw] tags=["expected"]
# [(1, 'A', 'paid'),
#  (3, 'A', 'cancelled'),
#  (3, 'A', 'cancelled'),
#  (4, 'C', 'paid')]

# %% [markdown]
# The relay performs two writes too, into Kafka and into PostgreSQL. But now one order is harmless: published first and marked second, a crash repeats a message and loses none. Marked first, it would lose one. What comes twice has the **same id**, because the id was stored before anybody published anything.
#
# ### The receiver
#
# The warehouse notes each id that it has processed, in the same transaction as its parcel. (Its tables are in the
# same server here; no transaction touches both sides.) It is killed as well: after the transaction for message 3, and before its offset is
# committed to Kafka. So message 3 comes to it three times.


# %%
def warehouse(shop):
    for number, name, state in shop.receive():  # commits the offset of a message when asked for the next one
        with shop.db.transaction():
            new = shop.db.execute("INSERT INTO seen VALUES (%s) ON CONFLICT DO NOTHING", [number]).rowcount
            if new:
                shop.db.execute("INSERT INTO parcels VALUES (%s, %s, %s)", [number, name, state])
        shop.at(f"booked {number}")


# %% tags=["nbval-check-output"]
print(shop.run(warehouse, kill="booked 3"))
lab.compare(topic=shop.outcome(), warehouse=shop.outcome(shop.parcels()))

# %% [raw] tags=["expected"]
# warehouse: the process died by signal 9 at 'booked 3'; a new one went on
#            guarantee      lost  twice  jumps back  rows
# topic      at-least-once  0     1      0           4
# warehouse  exactly-once   0     0      0           3

# %% tags=["checked"]
assert shop.outcome().verdict.duplicate == (3,)
assert shop.outcome(shop.parcels()).verdict.guarantee == "exactly-once"

# %% [markdown]
# The topic is at-least-once, and the warehouse books each change once. That is the whole bargain: **the sender repeats, the receiver
# recognises**. If the ids were new at each publish, or noted in a transaction of their own, the bargain would break ([02](02_delivery.ipynb)).
#
# ## The largest id
#
# Marking costs an update for each message. Many relays only remember the largest id that they have sent, and ask for `id > last`. Watch what a slow transaction does to
# them. *slow* has inserted message 1 and not committed. The shop sells B: message 2. The relay looks; *slow* commits; the relay looks again. Nobody crashes.

# %%
lab.ask("09d-largest")

# %%
shop = lab.shop()
shop.open_slot()  # used further down
slow = shop.session("slow")
slow.run("BEGIN", "INSERT INTO orders VALUES (1, 'A', 'paid')", "INSERT INTO outbox VALUES (1, 'A', 'paid')")
shop.sell((2, "B", "paid"))
sent = shop.rows()  # the relay's first look: the committed rows of the outbox
last = max(number for number, _, _ in sent)
slow.run("COMMIT")
sent += [change for change in shop.rows() if change[0] > last]

# %% tags=["nbval-check-output"]
lab.answer("09d-largest", len(shop.outcome(sent).verdict.lost))

# %% [raw] tags=["expected"]
# It was 1.
# At its first look only message 2 was visible, so the relay noted 2. Message 1 became visible later with a smaller id, and nobody asks for it any more.

# %% [markdown]
# An id says when a row was *numbered*, a commit decides when it is *visible*, and the two orders can differ. With a column `sent`, the relay asks each row: no gap. This
# loss needs two transactions at the same time, so a test with one connection never shows it.
#
# ## Read the log instead
#
# PostgreSQL can also list its changes in the order of their commits: its write-ahead log holds both. **Change data capture** (CDC) turns the committed changes of a database into messages.
# In PostgreSQL it rests on **logical decoding**, which turns that log into rows again. A **replication slot** is the server's bookmark for one reader of the log: it keeps the place that the reader has confirmed, and all of the log after it.
# `shop.open_slot()` above has created one, with `pgoutput`, PostgreSQL's own plug-in for the format of the rows. (The server must run with `wal_level = logical`, as the lab's does; the default of PostgreSQL 18 is `replica`.) What does the slot deliver for the same two sales?

# %% tags=["nbval-check-output"]
shop.peek()

# %% [raw] tags=["expected"]
# [(2, 'B', 'paid'), (1, 'A', 'paid')]

# %% [markdown]
# Message 2 comes first, since it was committed first; and message 1 is there. (Debezium reads the same log, and can use the same plug-in. It is **not** run here: you see PostgreSQL's part alone, through its SQL functions.)
#
# A place in the log is an LSN, a log sequence number. Two calls read, one only confirms:
#
# | call | PostgreSQL's function | |
# |---|---|---|
# | `shop.get()` | `pg_logical_slot_get_binary_changes` | reads, and confirms what it has read |
# | `shop.peek()` | `pg_logical_slot_peek_binary_changes` | only reads |
# | `shop.confirm(lsn)` | `pg_replication_slot_advance` | confirms |
#
# So a relay can confirm before it publishes, or after. Both are killed when they have published message 1 of three.


# %%
def confirm_before(shop):
    for change, _ in shop.get():
        shop.publish(change)
        shop.at(f"published {change[0]}")


def confirm_after(shop):
    for change, lsn in shop.peek():  # the LSN of the commit: here each transaction has one message
        shop.publish(change)
        shop.at(f"published {change[0]}")
        shop.confirm(lsn)


# %%
lab.ask("09d-confirmed")

# %%
outcomes = {}
for reader in (confirm_before, confirm_after):
    shop = lab.shop()
    shop.open_slot()
    for change in CHANGES:
        shop.sell(change)
    print(shop.run(reader, kill="published 1"))
    outcomes[reader.__name__] = shop.outcome()

# %% tags=["nbval-check-output"]
lab.answer("09d-confirmed", len(outcomes["confirm_before"].verdict.lost))

# %% [raw] tags=["expected"]
# It was 2.
# Reading had confirmed all three, so the slot has nothing for the new process. The other relay had confirmed none, and published message 1 twice.

# %% tags=["nbval-check-output"]
lab.compare(outcomes)

# %% [raw] tags=["expected"]
#                 guarantee      lost  twice  jumps back  rows
# confirm_before  at-most-once   2     0      0           1
# confirm_after   at-least-once  0     1      0           4

# %% tags=["checked"]
assert outcomes["confirm_before"].verdict.lost == (2, 3)
assert outcomes["confirm_after"].verdict.duplicate == (1,)

# %% [markdown]
# The slot is a bookmark in another system, so confirming is again a second write, and the same rule holds: publish, then confirm. With change data capture the service needs no dual write and the table no `sent`; the receiver does **still** need ids. PostgreSQL's manual says the same of a server crash: a slot's place is stored only at a checkpoint, so a restarted server may send recent changes again. Debezium's manual promises at-least-once after a fault: "consumers should always anticipate some duplicate events".
#
# ### From the table to the log
#
# A slot begins where it was created. Rows that are older must be copied from the table, as a snapshot, while the shop goes on selling. Three ways to do it; in each, B is sold between the two steps.

# %% tags=["nbval-check-output"]
outcomes = {}
for way in ("table, then slot", "slot, then table", "table as of the slot"):
    shop = lab.shop()
    shop.sell(CHANGES[0])
    if way == "table, then slot":
        copied = shop.rows()
        shop.sell(CHANGES[1])
        shop.open_slot()
    else:
        exported = shop.open_slot()  # the name of a snapshot of that moment
        shop.sell(CHANGES[1])
        copied = shop.rows() if way == "slot, then table" else shop.rows(exported)
    shop.sell(CHANGES[2])
    outcomes[way] = shop.outcome(copied + shop.peek())
lab.compare(outcomes)

# %% [raw] tags=["expected"]
#                       guarantee      lost  twice  jumps back  rows
# table, then slot      at-most-once   1     0      0           2
# slot, then table      at-least-once  0     1      0           4
# table as of the slot  exactly-once   0     0      0           3

# %% tags=["checked"]
assert [each.verdict.guarantee for each in outcomes.values()] == ["at-most-once", "at-least-once", "exactly-once"]

# %% [markdown]
# *Table, then slot* loses B: it was sold after the copy and before the bookmark. *Slot, then table* has B in both, with the same id, which a receiver that recognises ids tolerates. The third way
# reads the table as it was when the slot was created (`CREATE_REPLICATION_SLOT ... (SNAPSHOT 'export')`, then `SET TRANSACTION SNAPSHOT`): each row is in one of the two.
# If the copier dies halfway, it must begin again, and its receiver gets rows twice after all.
#
# > **You will read:** "*with Debezium you get exactly-once for free*". Its manual says exactly-once in normal
# > operation and at-least-once after a fault. The receiver decides.
#
# ### A slot that nobody reads
#
# A slot keeps the log until its reader confirms. If the reader is switched off and forgotten, the log fills the disk of the database. `pg_replication_slots` lists such slots. `max_slot_wal_keep_size` limits
# what a slot keeps (the default is no limit), but then a reader that is late enough can no longer go on. It has a gap, as after a dropped slot, and must copy the table again.


# %% tags=["exercise"]
# exercise 09d-relay
def relay_step(rows, published, refused):
    """The relay's next step: ["publish", id], ["mark", id] or ["wait"]."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 09d-relay
def relay_step(rows, published, refused):
    """The relay's next step: ["publish", id], ["mark", id] or ["wait"]."""
    # The oldest row of an order that is not held up. A row is marked before the next one of its order is published.
    held_up = set()
    for number, order in rows:
        if order in held_up:
            continue
        if number in published:
            return ["mark", number]
        if number not in refused:
            return ["publish", number]
        held_up.add(order)
    return ["wait"]


# %% tags=["check", "nbval-check-output"]
lab.check("09d-relay")

# %% [raw] tags=["expected"]
# 09d-relay: not attempted (4 points); lab.hint("09d-relay") gives a hint.

# %% [markdown]
# ## Check yourself
#
# **A colleague replaces the dual write by: publish inside the transaction, before COMMIT. What does that gain?**
#
# <details><summary>a) Everything: the transaction covers both.</summary>No. Kafka takes no part in PostgreSQL's transaction: a rollback does not take the message back.</details>
# <details><summary>b) Nothing: it is <i>publish first</i>.</summary>Yes. A crash before COMMIT leaves a message about an order that does not exist.</details>
#
# ## What this is called
#
# | here | PostgreSQL | Debezium | Kafka |
# |---|---|---|---|
# | outbox | a table of yours | outbox event router | - |
# | relay | a program of yours | the connector, in Kafka Connect | producer |
# | id | primary key | header `id` of the router; else the LSN in each event | - |
# | order of an order's messages | order of commits | `aggregateid` becomes the key | the key chooses the partition |
# | bookmark | replication slot, `confirmed_flush_lsn` | also an offset in Kafka Connect | offset of a consumer group |
# | copy of the table | exported snapshot | `snapshot.mode`, default `initial` | - |
#
# ## On Monday
#
# - Search your services for a commit and a `send` in one function. Each is a dual write.
# - Give each message an id that is stored before the first publish, and ask each receiver where it notes ids.
# - Search relays for `WHERE id >`: they lose what commits late.
# - `SELECT slot_name, active, wal_status, confirmed_flush_lsn FROM pg_replication_slots`: alert on a slot that is not active.
#
# ## Closing the ticket
#
# > **Ticket 14, closed.** Both were guesses. The service committed first, and a restart between its two writes lost B's message. On
# > Wednesday somebody had "repaired" that by publishing first, so the next restart made up an order. Now the message is a row in the transaction of
# > the order, a relay publishes it and marks it afterwards, and the warehouse drops ids that it has seen. B was sent by hand.
#
# Sources: PostgreSQL 18's manual on [logical decoding](https://www.postgresql.org/docs/18/logicaldecoding-explanation.html),
# [replication slots](https://www.postgresql.org/docs/18/view-pg-replication-slots.html) and the
# [formats of pgoutput](https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html); Debezium's manual (development version, 2026) on its
# [PostgreSQL connector](https://debezium.io/documentation/reference/connectors/postgresql.html) and
# [outbox event router](https://debezium.io/documentation/reference/transformations/outbox-event-router.html);
# C. Richardson, [transactional outbox](https://microservices.io/patterns/data/transactional-outbox.html).
#
# In [12](12_engines.ipynb), `lab.orders()["outbox"]` compares this order of writes with those of Flink and Spark.
# Next: [10, what does a query answer that never ends?](10_dynamic_tables.ipynb)
