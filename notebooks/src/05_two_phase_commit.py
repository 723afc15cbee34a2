# ---
# jupyter:
#   labkit:
#     needs: [04_barriers]
# ---

# %% [markdown]
# # Who decides, if anybody may crash?
#
# > **Ticket 7** (invented). *From support, on Black Friday:* "Payments of some customers have been pending for six
# > hours. May we press *release*?" The machine that ran the transfer program is broken.
#
# Take 100 here, give 100 there, and the power fails in between. The two branches of a bank cannot see into each other,
# and must do both or neither. What does such a protocol promise, and cost?
#
# {head}
#
# You will be able to
#
# - name the two phases, and the one step that is the decision;
# - say what a *yes* promises, and what it costs;
# - find both phases in a streaming job, and name the methods of a Flink sink that carry them out.
#
# Everything here is simulated: processes with logs on disk, messages that may get lost, crashes.

# %%
from labkit import lab

# %% tags=["parameters"]
participants = 2  # how many take part, besides the coordinator; with 3 a search takes up to a minute

# %% [markdown]
# ## First ask, then decide, then tell
#
# Each branch is a **participant**: it has its own part of the transfer, its own log on disk and its own locks. A lock on an
# account lets nobody else use that account. A **coordinator** asks them all and tells them all. A naive coordinator commits as soon as *one* participant has agreed; the
# other one will surely do its part:

# %% tags=["nbval-check-output"]
naive = lab.explore("two_phase_commit", participants=participants, broken="early")
naive

# %% [raw] tags=["expected"]
# every schedule of two_phase_commit: broken
#   10,396 states, all there are
#   BROKEN atomic, 7 steps: participant 0 has committed and participant 1 has aborted: half of the transfer happened, and its money is lost.

# %% tags=["checked"]
assert "atomic" in naive.violated

# %% [markdown]
# The search shows a schedule that breaks `atomic`, the claim that all parts happen or none. One participant commits,
# the other one says no: half of the transfer happened. Such a transfer is *torn*. **Two-phase commit** asks everybody
# first.
#
# 1. *Phase one.* The coordinator asks everybody to **prepare**. This asks for a **vote**; it does not commit anything.
# 2. Each participant writes its part and its yes into its log, and only then votes yes. Or it aborts, and votes no. A yes is a
#    promise: from now on the participant can commit *and* can abort, whichever is decided, even after a crash. It is
#    **in doubt** until it knows.
# 3. If everybody has voted yes, the coordinator writes *commit* into its log. If one votes no, or says nothing for a
#    long time, it aborts.
# 4. *Phase two.* The coordinator tells everybody. Each participant carries the decision out and releases its locks.
#    Participants acknowledge only a commit, and the coordinator repeats it until all have.
#
# A participant that has not voted yet has promised nothing. After a long silence it may abort alone and vote no. That is safe:
# without its yes nobody can decide to commit. In the run below nothing fails. Solid boxes are on disk.

# %%
lab.show("two_phase_commit.nothing_fails")

# %% tags=["checked"]
assert lab.replay("two_phase_commit.nothing_fails").facts["blocked_steps"] == [6, 6]
for name in ("one_says_no", "no_answer", "dies_before_voting"):
    assert {part.phase for part in lab.replay(f"two_phase_commit.{name}").state.participants} == {"aborted"}

# %% [markdown]
# The run has eleven steps. For six of them participant 0 is in doubt: from its own yes to the commit that reaches it.
#
# ## Which step is the decision?
#
# In both of the next runs everybody has voted yes, and the coordinator has heard both votes. Then it dies. In the first run it
# dies right *before* it writes *commit* into its log, in the second right *after*, when nobody has been told. It starts again,
# and knows only what its log says. A participant in doubt asks it.

# %%
lab.ask("05-writes")

# %%
before = lab.replay("two_phase_commit.dies_before_writing")
after = lab.replay("two_phase_commit.dies_after_writing")
lab.show(before.trace, beside=after.trace)

# %% tags=["nbval-check-output"]
lab.answer("05-writes", ", ".join(run.state.participants[0].phase for run in (before, after)))

# %% [raw] tags=["expected"]
# It was: aborted, committed.
# In the first run the log is empty. The votes, and whom it had asked, were only in the coordinator's memory, so it answers abort. In the second it finds its own record and commits.

# %% tags=["checked"]
assert before.state.participants[1].phase == "aborted"
assert after.state.participants[1].phase == "committed"

# %% [markdown]
# The first transfer is aborted, the second is committed. Neither the last yes nor the first message is the decision. The
# **durable record** is. Before it everything may be aborted; after it nothing may.
#
# A coordinator that finds no record answers "abort" to whoever asks. That is **presumed abort**, and it saves work. An abort
# needs no record and no acknowledgement: a coordinator that has forgotten it gives the same answer. A commit needs both. The
# coordinator may forget its record only when all have acknowledged. Else a participant that asks late would hear "abort".
#
# ## Every crash, every lost message
#
# The search goes through every order of the steps, with one crash of anybody and one lost message anywhere. **In this search
# everybody who crashes comes back.**

# %% tags=["nbval-check-output"]
lab.explore("two_phase_commit", participants=participants)

# %% [raw] tags=["expected"]
# every schedule of two_phase_commit: holds
#   5,332 states, all there are

# %% tags=["checked"]
# The state count of Gray and Lamport's abstraction, which others have counted, too (Stateright, examples/2pc.rs).
assert lab.explore("two_phase_commit", participants=3, textbook=True).states == 288

# %% [markdown]
# No schedule breaks a claim: nothing is torn, and, since everybody comes back, nobody is in doubt in the end. Now change one
# thing at a time:
#
# - `forget_vote`: a participant votes yes without writing it into its log;
# - `forget_decision`: the coordinator tells everybody without writing its decision into its log;
# - `heuristic`: a participant that has waited long enough for the decision aborts;
# - `two_crashes`: two crashes instead of one, also of the same process, and no lost message.

# %%
lab.ask("05-rules")

# %%
changed = {
    "forget_vote": lab.explore("two_phase_commit", participants=participants, broken="forget_vote"),
    "forget_decision": lab.explore("two_phase_commit", participants=participants, broken="forget_decision"),
    "heuristic": lab.explore("two_phase_commit", participants=participants, broken="heuristic"),
    "two_crashes": lab.explore("two_phase_commit", participants=participants, crashes=2, losses=0),
}
lab.compare(changed)

# %% tags=["nbval-check-output"]
lab.answer("05-rules", [name for name, search in changed.items() if "atomic" in search.violated])

# %% [raw] tags=["expected"]
# It was: forget_vote, forget_decision, heuristic.
# A crash erases a yes that is not in a log, and a decision that is not in a log. A participant that aborts on its own may contradict the decision that another one has carried out. Even two crashes erase nothing that is in a log.

# %% tags=["checked"]
assert all(search.exhausted for search in changed.values())

# %% [markdown]
# `atomic` breaks in the first three lines. Mistakes tear a transfer; crashes alone do not.
#
# ## The coordinator stays away
#
# Both participants have voted yes. The coordinator dies and does *not* come back. No message is lost, nobody else crashes, and
# the participants may ask as often as they like.

# %%
lab.ask("05-doubt")

# %%
waiting = lab.replay("two_phase_commit.coordinator_gone")
waiting

# %% tags=["nbval-check-output"]
lab.answer("05-doubt", [part.phase for part in waiting.state.participants].count("in_doubt"))

# %% [raw] tags=["expected"]
# It was 2.
# Both have promised that they can commit and can abort. Only the coordinator's log knows which, so both wait.

# %% tags=["checked"]
assert not waiting.enabled
# What no run here shows, the table of names: Flink's TwoPhaseCommitSinkFunction (1.x: snapshotState pre-commits and then
# begins; initializeState commits, then aborts), SinkWriterOperator.prepareSnapshotPreBarrier, CommitterOperator (2.x);
# release notes of 2.0; Spark's V2TableWriteExec and MicroBatchExecution (4.x); Kafka's TransactionCoordinator.
alone = lab.explore("two_phase_commit", participants=participants, losses=0, coordinator_returns=False)
assert "atomic" not in alone.violated
assert "nobody_blocked" in alone.violated

# %% [markdown]
# The card shows participant 0 with its locks held for ever, and participant 1 is no better off. Nothing is torn, but
# every other transfer from these accounts has to wait. A participant in doubt is **blocked**: the coordinator may have
# told somebody else to commit, and another one may have voted no. Here is one that runs out of patience and aborts
# alone (`heuristic`):

# %%
lab.show("two_phase_commit.aborts_alone")

# %% [markdown]
# The commit was decided, so half of the transfer happened. Such an abort by a timeout is called a *heuristic* decision.
# A participant may give up as long as it has not voted yes, and the coordinator as long as it has not written its
# record. After that, neither may.
#
# > **You will read:**
# >
# > - "*In the prepare phase the coordinator sends the commit.*" It asks for a vote. The commit comes after the durable record.
# > - "*Two-phase commit is perfect.*" It blocks while somebody is in doubt. It also needs stores that can keep the
# >   promise of a yes ([09b](09b_timeouts.ipynb)).
#
# ## Try it yourself
#
# Nobody may crash here, but three messages may get lost. Find a run in which both branches commit and participant 1 is in doubt
# for at least fifteen steps. The cell below the player counts them.

# %%
steering = lab.explorer("two_phase_commit", participants=2, crashes=0, losses=3)
steering

# %%
lab.replay(steering.trace)

# %% [markdown]
# ## The same in a streaming job
#
# | two-phase commit | a streaming job with checkpoints, as in Flink |
# |---|---|
# | participant | a task of the sink, with a transaction in an outside store; other tasks vote, too, and have nothing to commit |
# | its yes | *pre-commit* at the barrier, and the task's acknowledgement; the transaction's **handle**, a name by which any process can finish it, goes into the checkpoint |
# | coordinator | the checkpoint coordinator in the JobManager |
# | decision record | the completed checkpoint; with high availability its entry in the store of completed checkpoints; `_metadata` alone decides nothing ([12](12_engines.ipynb)) |
# | told to commit | the notification that the checkpoint is complete |
# | no record means abort | *recovery* aborts every undecided transaction that it can find; Kafka's sink finds them by name |
# | in doubt | the job is down after the pre-commit: locks and rows wait for its restart |
#
# So Flink first stores the decision, then the sink commits: *log-then-commit*. Suppose the job dies halfway through its commits.
# The new job cannot know how far the old one came, so it commits **all** of the checkpoint's transactions again. A second commit
# must therefore change nothing: a participant's commit is *idempotent*.
#
# What must the outside store be able to do? [08](08_postgres.ipynb) and [09](09_kafka.ipynb) show two stores,
# [09b](09b_timeouts.ipynb) has the list.


# %% tags=["exercise"]
# exercise 05-recovery
def recover(log):
    """What a restarted participant does: "abort", "commit" or "wait"."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 05-recovery
def recover(log):
    """What a restarted participant does: "abort", "commit" or "wait"."""
    # No entry: nothing was promised, so abort. Prepared: only the coordinator knows. Otherwise the decision is there.
    if not log:
        return "abort"
    return "wait" if log[-1] == "prepared" else log[-1]


# %% tags=["check", "nbval-check-output"]
lab.check("05-recovery")

# %% [raw] tags=["expected"]
# 05-recovery: not attempted (4 points); lab.hint("05-recovery") gives a hint.


# %% tags=["exercise"]
# exercise 05-atomic
def atomic(logs):
    """Whether no part of the transfer is done while another is undone."""
    raise NotImplementedError


# %% tags=["solution"]
# exercise 05-atomic
def atomic(logs):
    """Whether no part of the transfer is done while another is undone."""
    # Parts without an entry have done nothing yet. Torn is: one part committed, another one aborted.
    outcomes = {log[-1] for log in logs if log}
    return not ("commit" in outcomes and outcomes & {"abort", "abort_alone"})


# %% tags=["check", "nbval-check-output"]
lab.check("05-atomic")

# %% [raw] tags=["expected"]
# 05-atomic: not attempted (3 points); lab.hint("05-atomic") gives a hint.

# %% tags=["exercise"]
# exercise 05-blocked
blocked_answer = ...  # "a", "b", "c" or "d"

# %% tags=["solution"]
# exercise 05-blocked
blocked_answer = "b"

# %% tags=["check", "nbval-check-output"]
lab.check("05-blocked")

# %% [raw] tags=["expected"]
# 05-blocked: not attempted (not graded); lab.hint("05-blocked") gives a hint.

# %% [markdown]
# ## What remains true
#
# - The decision is one durable record.
# - A yes is a promise that binds until the decision is known. The price is waiting.
# - A participant's commit must be idempotent, since it may come twice.
#
# ## What this is called in Flink, Spark and Kafka
#
# | here | Flink, old: `TwoPhaseCommitSinkFunction` | Flink today: `Sink` with `SupportsCommitter` | called by |
# |---|---|---|---|
# | write | `invoke` | `SinkWriter.write` | the sink's task, for each record |
# | open the next transaction | `beginTransaction` | up to the writer | the sink's task, after each pre-commit |
# | vote yes | `preCommit` | `prepareCommit` of the writer | the sink's task, at the barrier |
# | commit | `commit` | `Committer.commit` | at `notifyCheckpointComplete`, today in a committer operator of its own |
# | commit again after a restart | `recoverAndCommit` | `Committer.commit` | the same, when it starts from a checkpoint |
# | abort after a restart | `recoverAndAbort` | up to the writer | the sink's task, when it starts |
#
# Flink 2.0 took the old class out of its public interface. Notebooks 08 and 09 explain the last two columns of the next table.
#
# | here | Spark | Kafka | PostgreSQL |
# |---|---|---|---|
# | vote yes | `DataWriter.commit`, a *yes* by another name | none: a producer only flushes | `PREPARE TRANSACTION` |
# | decision | the sink's own commit; `commits/N` comes after it, and only ends batch N | `PrepareCommit` in the transaction log | it is a participant only |
# | commit | `StreamingWrite.commit`, on the driver, before `commits/N`; may come twice for a batch | `EndTxn` | `COMMIT PREPARED` |
# | handle | not stored by Spark | transactional id, producer id, epoch | the name given to `PREPARE` |
#
# ## On Monday
#
# - Ask of each sink: where is its decision record, and who reads it after a crash?
# - Look for transactions in doubt, such as rows in PostgreSQL's `pg_prepared_xacts`. They hold locks. Before you end one
#   by hand, look up what its job has decided.
#
# ## Check yourself
#
# **1. A participant writes its yes into its log and dies at once. Perhaps its vote was never sent. It starts again. What may it do?**
#
# <details><summary>a) Abort, and vote no.</summary>Its log does not say whether the vote was sent. If it was, the others may
# have committed.</details>
# <details><summary>b) Ask, and wait.</summary>Yes. With the yes in its log it is in doubt, whether anybody has heard the vote or not.</details>
# <details><summary>c) Commit, as it had decided.</summary>Its yes does not speak for the others. One of them may have voted no.</details>
#
# **2. The coordinator finds an empty log after its crash. Everybody had voted yes. What does it answer?**
#
# <details><summary>a) Commit, since all had agreed.</summary>It does not know that any more: the votes were in its memory.</details>
# <details><summary>b) Abort.</summary>Yes. No record means abort. That is safe, because it tells nobody to commit before the record
# is durable.</details>
#
# **3. Why must recovery commit again what may have been committed already?**
#
# <details><summary>a) Because it cannot know how far the dead job had come.</summary>Yes; hence the demand that a second commit
# changes nothing.</details>
# <details><summary>b) Because the first commits were undone by the crash.</summary>A commit in the outside store outlives the
# job.</details>
#
# ## Closing the ticket
#
# > **Ticket 7, closed.** Nobody presses *release*. Both sides have voted yes, so each is in doubt, and only the
# > coordinator's log says what was decided. Its disk was put into another machine: the transfers with a record were
# > committed, those without one aborted. The wait was the protocol's price, not its failure. From now on that log is on
# > a disk that outlives the machine.
#
# ---
# Sources: J. Gray and L. Lamport, [Consensus on Transaction Commit](https://arxiv.org/abs/cs/0408036);
# Flink's `TwoPhaseCommitSinkFunction` (1.x),
# `Committer`, `CheckpointListener` and the release notes of 2.0; PostgreSQL's
# [PREPARE TRANSACTION](https://www.postgresql.org/docs/current/sql-prepare-transaction.html).
#
# Next: [06, what does a reader see?](06_sinks.ipynb)
