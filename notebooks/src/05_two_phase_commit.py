# %% [markdown]
# # Who decides, if anybody may crash?
#
# Take 100 here, give 100 there, and the power fails in between. Two systems that cannot see into each other must do
# both or neither. *Two-phase commit* promises that. What exactly does it promise, what does it cost, and what must the
# systems that take part be able to do?
#
# **Everything in this notebook is simulated**: a coordinator, participants with logs, messages that may get lost,
# crashes; and later a streaming job with its outside store, and Kafka's transactions. Every claim is checked by a run or by
# a search through every order of steps. It takes about fifteen minutes. Run the cells from top to bottom; one that needs
# another says which.

# %% tags=["parameters"]
participants = 2  # who takes part in the transfer, besides the coordinator; 3 takes some ten seconds a search

# %% [markdown]
# ## Naive: one says yes, so go ahead
#
# Two branches of a bank take part in a transfer. This coordinator commits as soon as **one** of them has agreed; the other one
# will surely do its part. Can half of the transfer happen? Write your answer in place of `None`, then run the cell.

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("participants", cell="the first code cell")
said = lab.predict({"half a transfer can happen": None})  # "yes" or "no"
naive = lab.explore("two_phase_commit", participants=participants, broken="early")
print(said.beside({"half a transfer can happen": "atomic" in naive.violated}))
print(naive.violated["atomic"])

# %% [raw] tags=["expected"]
#                             it was
# half a transfer can happen  yes
# Nothing was predicted, so nothing is compared.
# participant 0 has committed and participant 1 has aborted: half of the transfer happened, and its money is lost.

# %% [markdown]
# This is a shortest way to it. Step through it with the arrow keys, and watch the logs (solid, durable) and what each
# process only believes (dashed, gone after a crash):

# %%
from labkit import lab

lab.need("naive", cell="the cell above")
lab.show(naive.counterexample("atomic"))

# %% [markdown]
# ## First ask, then decide, then tell
#
# 1. The coordinator asks everybody to **prepare**. This asks for a vote; it does not commit anything.
# 2. Each participant makes its part durable and votes **yes**, or aborts and votes **no**. A yes is a promise: from now on it
#    can commit and it can abort, whichever is decided, even after a crash. It keeps its locks and is **in doubt**.
# 3. With a yes of everybody, the coordinator writes **commit** into its log. With a no, or after waiting long enough, it aborts.
# 4. It tells everybody. Participants carry it out and acknowledge a commit; when all have, the coordinator may forget.
#
# In this run nothing goes wrong; it has eleven steps. For how many of them is participant 0 in doubt, with its locks held?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict({"steps in doubt": None})
vote = "two_phase_commit~1~~start.read-0.read-1.hear-0.hear-1"
quiet = lab.replay(f"{vote}.decide_commit.announce.read-0.read-1.hear-0.hear-1")
print(said.beside({"steps in doubt": quiet.facts["blocked_steps"][0]}))

# %% [raw] tags=["expected"]
#                 it was
# steps in doubt  6
# Nothing was predicted, so nothing is compared.

# %%
from labkit import lab

lab.need("quiet", cell="the cell above")
lab.show(quiet.trace)

# %% [markdown]
# ## Which step is the decision?
#
# In both of these runs everybody has voted yes, the coordinator dies, and it starts again from its log. In the first run it dies
# right **before** it writes *commit* into its log, in the second right **after**, when nobody has been told. What becomes of
# the transfer?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(before=None, after=None)  # "committed" or "aborted"
vote, again = "two_phase_commit~1~~start.read-0.read-1.hear-0.hear-1", "crash_coordinator.restart_coordinator"
before = lab.replay(f"{vote}.{again}.inquire-0.inquire-1.hear-0.hear-1.read-0.read-1")
after = lab.replay(f"{vote}.decide_commit.{again}.announce.read-0.read-1.hear-0.hear-1")
print(said.beside(before=before.state.participants[0].phase, after=after.state.participants[0].phase))

# %% [raw] tags=["expected"]
#         it was
# before  aborted
# after   committed
# Nothing was predicted, so nothing is compared.

# %%
from labkit import lab

lab.need("after", "before", cell="the cell above")
assert before.state.participants[1].phase == "aborted"
assert after.state.participants[1].phase == "committed"
lab.show(before.trace, beside=after.trace)

# %% [markdown]
# Neither the last yes nor the first message is the decision. The **durable record** is. A coordinator that finds no record
# answers "abort" to whoever asks (*presumed abort*); one that finds it commits, however often it has to start again.

# %% [markdown]
# ## Every crash, every lost message
#
# Two runs prove little. The search goes through every order of steps, with one crash of anybody and one lost message
# anywhere. Then it breaks one rule at a time:
#
# - `forget_vote`: a participant votes yes without writing it into its log;
# - `forget_decision`: the coordinator tells everybody without writing its decision into its log;
# - `heuristic`: a participant in doubt aborts alone when it has waited long enough.
#
# Which of these can tear the transfer in two?

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("participants", cell="the first code cell")
said = lab.predict(nothing=None, forget_vote=None, forget_decision=None, heuristic=None)  # "safe" or "torn"
tries = {rule: lab.explore("two_phase_commit", participants=participants, broken=rule) for rule in said.said}
print(said.beside({rule: "torn" if "atomic" in tried.violated else "safe" for rule, tried in tries.items()}))
assert all(tried.exhausted for tried in tries.values())  # every order of steps was tried
assert not tries["nothing"].violated
print(tries["nothing"])

# %% [raw] tags=["expected"]
#                  it was
# nothing          safe
# forget_vote      torn
# forget_decision  torn
# heuristic        torn
# Nothing was predicted, so nothing is compared.
# 5,332 states, all there are
# No schedule breaks a claim.

# %% [markdown]
# None of the three is safe. Is the simulator itself right? In the abstraction of Gray and Lamport (no crash, no loss) other
# people have counted the states: 288 with three participants.

# %%
from labkit import lab

assert lab.explore("two_phase_commit", participants=3, textbook=True).states == 288

# %% [markdown]
# ## The price: waiting
#
# A participant has voted yes, and the coordinator dies and does **not** come back. Nothing else fails. What may the
# participant do, so that the transfer is never torn: *commit*, *abort*, or *wait*?

# %% tags=["nbval-check-output"]
from labkit import lab

lab.need("participants", cell="the first code cell")
said = lab.predict({"it may": None})
alone = lab.explore("two_phase_commit", participants=participants, losses=0, coordinator_returns=False)
blocked = lab.replay(alone.counterexample("nobody_blocked"))
print(said.beside({"it may": "wait" if not blocked.enabled else blocked.enabled}))
print(blocked.violated["nobody_blocked"])

# %% [raw] tags=["expected"]
#         it was
# it may  wait
# Nothing was predicted, so nothing is compared.
# participant 0 holds its locks for ever: its log is prepared, and the coordinator is down.

# %%
from labkit import lab

lab.need("participants", cell="the first code cell")
lab.need("alone", cell="the cell above")
assert "atomic" not in alone.violated  # nothing is torn; they wait
lab.show(lab.explore("two_phase_commit", participants=participants, broken="heuristic").counterexample("atomic"))

# %% [markdown]
# Who has promised cannot know: the coordinator may have told somebody else to commit. The player above shows one that
# ran out of patience. So two-phase commit never tears a transfer, and it **blocks**: locks are held until the coordinator is
# back.
#
# ## Your turn
#
# Nobody may crash here, but three messages may get lost. **Find a run in which both branches commit and participant 1 is in
# doubt for at least fifteen steps.** `?` shows the keys. Run the cell below it to see how many steps you have reached.

# %%
from labkit import lab

steering = lab.explorer("two_phase_commit", participants=2, crashes=0, losses=3)
steering

# %%
from labkit import lab

lab.need("steering", cell="the cell above")
print(lab.replay(steering.trace))

# %% [markdown]
# ## The same in a streaming job
#
# | two-phase commit | a streaming job with checkpoints |
# |---|---|
# | participant | a task of the sink, with a transaction in an outside store |
# | its yes | *pre-commit* at the barrier; the handle of the transaction goes into the checkpoint |
# | coordinator | the checkpoint coordinator |
# | decision record | the stored checkpoint |
# | told to commit | the notification that the checkpoint is complete |
# | no record means abort | recovery aborts every transaction that the restored checkpoint does not name |
#
# The coordinator is the job's own. The participant is somebody else's system, and here the trouble begins: **two-phase commit
# demands five things of it.** Below, each is broken alone, by a small run, beside a run that keeps it.
#
# ### 1. Transactions: nothing is visible before the commit
#
# The first store keeps rows of open transactions out of sight. In the second, uncommitted rows lie in the table that
# everybody reads, like files that are staged in the final folder. The job dies between pre-commit and commit. How many
# rows did a reader see of a transaction that was aborted?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(kept=None, broken=None)  # a number each
kept, broken = lab.simulate("sink.after_pre_commit", sink="two_phase"), lab.replay("pipeline.raw_table")
print(said.beside(kept=len(kept.verdict.aborted_read), broken=len(broken.verdict.aborted_read)))
print("kept:  ", kept.seen)
print("broken:", broken.seen)
assert broken.verdict.guarantee == "exactly-once"  # in the end; but what was read cannot be unread

# %% [raw] tags=["expected"]
#         it was
# kept    0
# broken  3
# Nothing was predicted, so nothing is compared.
# kept:   | crash 1 | world=1 hello=1 hello=2
# broken: world=1 hello=1 hello=2 | crash 1 | world=1 hello=1 hello=2

# %% [markdown]
# ### 2. A transaction stays open for a whole checkpoint interval
#
# Rows are written during the whole interval, so the transaction is open as long. In this simulated Kafka a checkpoint
# starts every two ticks of a clock, and the broker aborts a transaction after one. A record comes with every tick. Is
# anything lost, and how does the job fare?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict({"lost in the first run": None, "the second run ends": None})  # a number; "yes" or "no"
once = lab.replay("kafka_log.steady_traffic")
often = lab.explore("kafka_log", partitions=1, crashes=0, interval=2, timeout=1, ticks=2).counterexample("ends")
lost, ends = len(once.verdict.lost), "ends" not in lab.replay(often).violated
print(said.beside({"lost in the first run": lost, "the second run ends": ends}))

# %% [raw] tags=["expected"]
#                        it was
# lost in the first run  0
# the second run ends    no
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# The next write is refused, the job starts again from its checkpoint, and so on: no loss, and no progress either. (With
# PostgreSQL, `idle_in_transaction_session_timeout` is such a timeout. That is not run here.)
#
# ### 3. A sealed transaction stays until the notification, also across a failure
#
# All have pre-committed and the checkpoint is stored: decided. Before the sink is told, the store drops a transaction after its
# timeout. When the commit comes, the sink logs the error and goes on. How many of the three records are lost?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(kept=None, broken=None)  # a number each
kept, broken = lab.replay("pipeline.decide_then_commit"), lab.replay("pipeline.transaction_timeout")
print(said.beside(kept=len(kept.verdict.lost), broken=len(broken.verdict.lost)))
stuck = lab.replay("pipeline.timeout_in_a_loop").violated["ends"]
print("If the commit raises instead:", stuck)

# %% [raw] tags=["expected"]
#         it was
# kept    0
# broken  1
# Nothing was predicted, so nothing is compared.
# If the commit raises instead: drivers have ended with an error 2 times, and each new one meets it again.

# %%
from labkit import lab

assert lab.replay("pipeline.transaction_timeout").verdict.guarantee == "at-most-once"
lab.show("pipeline.transaction_timeout")

# %% [markdown]
# How long must a timeout be? In the simulated Kafka a checkpoint starts every 2 ticks and takes at most 1, and nobody crashes.
# The clock of a transaction starts with its first record. What is the smallest timeout with which no order of steps loses
# a record?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict({"smallest timeout": None})
kafka = {"partitions": 1, "isolation": "read_committed", "interval": 2, "checkpoint_timeout": 1, "ticks": 8}
tried = {ticks: lab.explore("kafka_log", **kafka, crashes=0, timeout=ticks) for ticks in range(1, 7)}
losing = [ticks for ticks, search in tried.items() if "no_loss" in search.violated]
print(said.beside({"smallest timeout": losing[-1] + 1}))
print("timeouts that lose records:", losing)

# %% [raw] tags=["expected"]
#                   it was
# smallest timeout  4
# Nothing was predicted, so nothing is compared.
# timeouts that lose records: [1, 2, 3]

# %% [markdown]
# It must be longer than interval and duration together. And if the job may crash once and be down for 2 ticks? Is 4 still
# enough, is 5, is 6?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict({"4 is enough": None, "5 is enough": None, "6 is enough": None})  # "yes" or "no"
kafka = {"partitions": 1, "isolation": "read_committed", "interval": 2, "checkpoint_timeout": 1, "ticks": 8}
down = {ticks: lab.explore("kafka_log", **kafka, crashes=1, downtime=2, timeout=ticks) for ticks in (4, 5, 6)}
print(said.beside({f"{ticks} is enough": "no_loss" not in search.violated for ticks, search in down.items()}))

# %% [raw] tags=["expected"]
#              it was
# 4 is enough  no
# 5 is enough  no
# 6 is enough  yes
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# Interval, duration and downtime count together: the timeout must be longer than the sum.
#
# ### 4. Another process can finish it
#
# The job dies after the decision. The new job must commit a transaction that it has not opened. In Kafka it can, with the
# stored handle, *unless* it first does what every fresh producer does: initialise its transactional id. How many of the two
# records are lost?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(kept=None, broken=None)  # a number each
kept, broken = lab.replay("kafka_log.commit_after_restart"), lab.replay("kafka_log.initialised_first")
print(said.beside(kept=len(kept.verdict.lost), broken=len(broken.verdict.lost)))
assert kept.verdict.guarantee == "exactly-once"

# %% [raw] tags=["expected"]
#         it was
# kept    0
# broken  1
# Nothing was predicted, so nothing is compared.

# %% [markdown]
# Initialising an id aborts what is open under it. It may only come after the commit. (PostgreSQL has `PREPARE TRANSACTION` for this demand: it detaches the
# transaction from its session, and any session may commit it.)
#
# ### 5. A commit may come twice
#
# The job dies half-way through its commits. Recovery cannot know how far they got, so it commits **all** again. Three stores: one
# that takes the second commit as done, one that raises an error, and a Kafka with *one* transactional id for all transactions,
# where a late commit meets the next one. What goes wrong in each: *nothing*, *stuck* or *doubled*?

# %% tags=["nbval-check-output"]
from labkit import lab

said = lab.predict(kept=None, raises=None, one_id=None)
names = ("pipeline.second_crash", "pipeline.commit_raises_again", "kafka_log.reused_id")
claims = {"ends": "stuck", "no_duplicate": "doubled"}
runs = dict(zip(said.said, map(lab.replay, names), strict=True))
wrong = {name: [claims[claim] for claim in claims if claim in run.violated] for name, run in runs.items()}
print(said.beside({name: "".join(found) or "nothing" for name, found in wrong.items()}))

# %% [raw] tags=["expected"]
#         it was
# kept    nothing
# raises  stuck
# one_id  doubled
# Nothing was predicted, so nothing is compared.

# %%
from labkit import lab

lab.need("runs", cell="the cell above")
print(runs["raises"].violated["ends"])
print(runs["one_id"].violated["decided_first"])

# %% [markdown]
# ### Three more that lists often leave out
#
# *Find your orphans*: a transaction that was opened after the barrier is in no checkpoint, and recovery must find it by
# its name. *Refuse zombies*: a job that was thought dead must not write into its successor's transaction. *Two transactions at
# once*: while the sealed one waits, the next one must take the new records.

# %% tags=["nbval-check-output"]
from labkit import lab

orphan = lab.explore("kafka_log", partitions=1, isolation="read_committed", broken="forget_lingering")
print("orphan:", orphan.violated["nothing_open"])
print("zombie, refused:", lab.replay("kafka_log.zombie_fenced").verdict.guarantee)
print("zombie, let in: ", lab.replay("kafka_log.zombie").verdict.guarantee)
for name in ("late_commit", "reused_id"):
    print(f"sealed, and now ({name}):", lab.replay(f"kafka_log.{name}").until("pre_commit").enabled[0])

# %% [raw] tags=["expected"]
# orphan: the transaction t1/e0 is open for ever: the last stable offset of partition 0 stays at 1, before record 1.
# zombie, refused: exactly-once
# zombie, let in:  at-least-once
# sealed, and now (late_commit): begin(1)
# sealed, and now (reused_id): complete(0)

# %% [markdown]
# With an id for each checkpoint the next transaction can begin at once; with one id everything waits for the checkpoint. (In
# version 2 of Kafka's protocol the late commit of demand 5 is refused: `kafka_log.reused_id_with_new_epochs`.)
#
# ## Is it perfect, then?

# %% tags=["nbval-check-output"]
from labkit import lab

print("the store's timeout:  lost", list(lab.replay("pipeline.transaction_timeout").verdict.lost))
print("an older checkpoint: twice", list(lab.replay("pipeline.older_checkpoint").verdict.duplicate))
alone = lab.explore("two_phase_commit", losses=0, coordinator_returns=False)
print("no coordinator:", alone.violated["nobody_blocked"])

# %% [raw] tags=["expected"]
# the store's timeout:  lost [1]
# an older checkpoint: twice [1]
# no coordinator: participant 0 holds its locks for ever: its log is prepared, and the coordinator is down.

# %% [markdown]
# > **What popular notes get wrong.** "*Two-phase commit is perfect.*" It **loses** records when the outside store forgets a
# > transaction between decision and commit; it **doubles** them when somebody restores an older checkpoint, which knows nothing of
# > what was committed since; and it **blocks** while somebody is in doubt. Also wrong: "*in the prepare phase the coordinator sends
# > the commit*". It asks for a vote, and the commit comes after the decision is durable.

# %% [markdown] tags=["task"]
# ## Exercise: a participant comes back (`05-recovery`)
#
# A participant has died and starts again. Its memory is gone, its log is not. Write `recover(log)`: the log is a list with
# its newest entry last, made of `"prepared"` (it has voted yes), `"commit"` and `"abort"` (its outcome). Return what it
# does: `"abort"` (it undoes its part and logs that), `"commit"` (it does its part and logs that), or `"wait"` (it keeps its
# locks and asks the coordinator). If the outcome is in the log already, return it once more. Nobody should wait who need
# not.
#
# The check tries every order of steps, with crashes of anybody and lost messages.
#
# *complete, medium, 4 points; about 5 lines.*
#
# <details><summary>Hint 1</summary>Which of the four logs that a participant can have leaves it a choice of its
# own?</details>
# <details><summary>Hint 2</summary>Its newest entry is the last. Before its yes it may abort alone; after its yes it has
# promised. More: <code>lab.hint("05-recovery")</code>.</details>


# %% tags=["exercise"]
# exercise 05-recovery
def recover(log):
    """What a participant does that starts again: "abort", "commit" or "wait"."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 05-recovery
def recover(log):
    """What a participant does that starts again: "abort", "commit" or "wait"."""
    if not log:
        return "abort"
    return "wait" if log[-1] == "prepared" else log[-1]


# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("05-recovery")

# %% [raw] tags=["expected"]
# 05-recovery: not attempted (4 points); lab.hint("05-recovery") helps.

# %% [markdown] tags=["task"]
# ## Exercise: all or nothing, as a property (`05-atomic`)
#
# Write the property that two-phase commit is there for. `atomic(logs)` gets the log of every participant, a list of entries
# with the newest last: `"prepared"`, `"commit"`, `"abort"`, and `"abort_alone"` for an abort that a participant has decided
# without asking. Return whether the transfer is still in one piece. It is torn when one participant has committed and
# another has aborted; one whose outcome is still open tears nothing.
#
# The check asks it about **every state** of systems that follow all rules and of broken ones, and about logs put together:
# it must reject each state in which the transfer is torn, and accept all others.
#
# *invariant, medium, 3 points; about 4 lines.*
#
# <details><summary>Hint 1</summary>It must hold in every state of a good system, also when one has committed and others
# have not yet.</details>
# <details><summary>Hint 2</summary>Which two entries must never be in two logs at the same time? More:
# <code>lab.hint("05-atomic")</code>.</details>


# %% tags=["exercise"]
# exercise 05-atomic
def atomic(logs):
    """Whether no part of the transfer is done while another is undone."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 05-atomic
def atomic(logs):
    """Whether no part of the transfer is done while another is undone."""
    outcomes = {log[-1] for log in logs if log}
    return not ("commit" in outcomes and outcomes & {"abort", "abort_alone"})


# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("05-atomic")

# %% [raw] tags=["expected"]
# 05-atomic: not attempted (3 points); lab.hint("05-atomic") helps.

# %% [markdown] tags=["task"]
# ## Exercise: in doubt (`05-blocked`)
#
# A participant has voted yes; then the coordinator dies. What may the participant do?
#
# - **a** Abort when it has waited long enough.
# - **b** Commit, since it has voted yes.
# - **c** Keep its locks and wait for the decision.
# - **d** Do what the majority of the others does.
#
# *explain, medium, 1 point for the right choice; the check gives a reason for each; one line.*
#
# <details><summary>Hint 1</summary>What could the coordinator have told somebody else before it died?</details>
# <details><summary>Hint 2</summary>Step through aborts_alone.</details>

# %% tags=["exercise"]
# exercise 05-blocked
blocked_answer = ...  # "a", "b", "c" or "d"

# %% tags=["solution"]
# exercise 05-blocked
blocked_answer = "c"

# %% tags=["check", "nbval-check-output"]
from labkit import lab

lab.check("05-blocked")

# %% [raw] tags=["expected"]
# 05-blocked: not attempted (1 point); lab.hint("05-blocked") helps.

# %% [markdown]
# ## What remains true
#
# - The decision is one durable record. Before it everything may be aborted, after it nothing may.
# - A yes is a promise that binds until the decision is known. The price is waiting.
# - Exactly-once through two-phase commit is a property of the job **and** of the outside system: five demands and three more.
#
# ## Check yourself
#
# **1. A participant has voted yes and hears nothing for an hour. What may it do?**
#
# <details><summary>a) Abort; an hour is long enough.</summary>The coordinator may have told another participant to commit. The run
# with the rule <code>heuristic</code> shows the torn transfer.</details>
# <details><summary>b) Ask, and wait.</summary>Yes. It may ask the coordinator as often as it likes.</details>
# <details><summary>c) Commit; it has voted yes.</summary>Its yes does not speak for the others. One of them may have voted no.</details>
#
# **2. The coordinator finds an empty log after its crash. Everybody had voted yes. What does it answer?**
#
# <details><summary>a) Commit, since all had agreed.</summary>It does not know that any more: the votes were in its memory.</details>
# <details><summary>b) Abort.</summary>Yes. No record means abort, and that is safe, because it tells nobody to commit before the
# record is durable.</details>
#
# **3. By default Kafka's brokers allow a transaction fifteen minutes at most. The job is down for an hour, after its checkpoint was
# stored. What happens to the rows of that checkpoint?**
#
# <details><summary>a) The restarted job writes them again.</summary>It starts behind them: the checkpoint's offsets say that they
# are done.</details>
# <details><summary>b) They are lost, or the job cannot start.</summary>Yes: lost if the refused commit is only logged, an endless
# error if it raises. Both were shown under demand 3.</details>
# <details><summary>c) Nothing; they were pre-committed.</summary>A pre-commit binds only a store that keeps its promise.</details>
#
# **4. Why must recovery commit again what may have been committed already?**
#
# <details><summary>a) Because it cannot know how far the dead job had come.</summary>Yes; hence the demand that a second commit
# changes nothing.</details>
# <details><summary>b) Because the first commits were undone by the crash.</summary>A commit in the outside store outlives the
# job.</details>
#
# ## Sources
#
# J. Gray and L. Lamport, *Consensus on Transaction Commit* ([arXiv:cs/0408036](https://arxiv.org/abs/cs/0408036)); the state
# count is also that of `examples/2pc.rs` in [Stateright](https://github.com/stateright/stateright); in Apache Flink
# `TwoPhaseCommitSinkFunction`, `Committer` and `CheckpointListener`; Kafka's
# [KIP-890](https://cwiki.apache.org/confluence/display/KAFKA/KIP-890%3A+Transactions+Server-Side+Defense) on late commits;
# PostgreSQL's [PREPARE TRANSACTION](https://www.postgresql.org/docs/current/sql-prepare-transaction.html).
#
# Next: [06, what does a reader see?](06_sinks.ipynb)
