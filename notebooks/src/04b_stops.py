# ---
# jupyter:
#   labkit:
#     needs: [04_barriers]
# ---

# %% [markdown]
# # What does a stopped job start from?
#
# > **Ticket 6** (invented). *From the shop, Monday 09:10:* "Every order of Friday evening is in the report twice." *From
# > the release log:* "Friday 18:02, cancelled the job for the new version. Monday 08:30, started it." No crash, no error,
# > and the sink is two-phase.
#
# Not every restart follows a crash. Somebody stops a job to deploy a new version, or goes back to the old one. A
# command and a setting then decide what the next start begins with.
#
# {head}
#
# You will be able to
#
# - say what is left of a job that was cancelled, stopped or has failed, and what its next start repeats;
# - stop a job for a deployment, and start it again, so that no row is lost or comes twice;
# - choose what happens when a checkpoint takes too long.
#
# Everything here is simulated, after Apache Flink.

# %%
from labkit import lab

# %% [markdown]
# ## Cancelled on Friday
#
# The job reads *hello*, *hello*, *world* and puts out a row for each. Its sink is two-phase: it keeps rows in a transaction, seals it at the barrier
# and commits it when the checkpoint is complete. Checkpoint 1 comes after the first *hello*. It is complete, and a reader has
# that row. Then somebody cancels the job.
#
# When a job is cancelled, Flink deletes its checkpoints, by default. On Monday the job is started again.

# %%
lab.ask("04b-start")

# %%
monday = lab.replay("barriers.cancelled")
monday

# %% tags=["nbval-check-output"]
lab.answer("04b-start", monday.facts["visible"])

# %% [raw] tags=["expected"]
# It was: hello=3 world=1.
# Nothing said how far the job had come, so it read all records again, and the row of Friday was committed already.

# %% tags=["checked"]
assert monday.facts["counts"] == "hello=2 world=1"
assert list(monday.violated) == ["no_duplicate"]

# %% [markdown]
# The job itself counts right, but a reader finds one *hello* too many, just as the shop found orders twice. The sink
# kept its promise: what was decided was committed, once. But the decision was in the checkpoint, and with the
# checkpoint the job forgot that it had ever run.
#
# **Retention** is the setting that says what a job leaves when it is cancelled or fails for good:
# `execution.checkpointing.externalized-checkpoint-retention`. The default `NO_EXTERNALIZED_CHECKPOINTS` leaves nothing.
# `DELETE_ON_CANCELLATION` keeps the checkpoint of a failed job only, `RETAIN_ON_CANCELLATION` that of a cancelled one,
# too. (A restart after a crash uses the latest checkpoint under any of them.)
#
# Two more starts. *kept* is the same job, and its checkpoint was retained. In *back* two checkpoints were complete. The
# new version turned out to be bad, so somebody starts the old version from its own checkpoint, the first one.

# %%
lab.ask("04b-back")

# %% tags=["nbval-check-output"]
starts = {"kept": lab.replay("barriers.retained"), "back": lab.replay("barriers.older_checkpoint")}
lab.compare(starts, facts=["visible"])

# %% [raw] tags=["expected"]
#       visible          broken
# kept  hello=2 world=1  nothing
# back  hello=3 world=1  latest, decided_first, no_duplicate

# %% tags=["nbval-check-output"]
lab.answer("04b-back", [name for name, run in starts.items() if "no_duplicate" in run.violated])

# %% [raw] tags=["expected"]
# It was back.
# Between the two checkpoints the sink committed a row, and the older one does not know of it.

# %% tags=["checked"]
assert not starts["kept"].violated
assert starts["back"].facts["counts"] == "hello=2 world=1"

# %% [markdown]
# The kept checkpoint knows the offset and what was committed, so nothing comes twice. *back* also breaks `latest` (the
# job does not run from the latest checkpoint) and `decided_first` (a row is visible more often than that checkpoint
# holds it). An **older** checkpoint is right for its own moment. The sink has committed more since, and nobody takes
# that back: what lies between the two checkpoints comes a second time. So a rollback needs a plan for the rows: a sink
# that replaces them by key, readers that drop what they have seen, or somebody who deletes them first.
#
# ## Stopped, with a savepoint
#
# A retained checkpoint is the emergency exit. For a planned stop Flink has the **savepoint**: a copy of the job's state that a person asks for, owns and deletes.
# Flink's manual compares them with a database: savepoints are its backups, checkpoints its recovery log.
#
# ```
# flink stop --savepointPath /savepoints JOB     # takes a savepoint and stops, in one step
# flink run -s /savepoints/savepoint-... NEW.jar
# ```
#
# *Stop with savepoint* also commits what the sink has sealed, so nothing is read again. (Do not add `--drain`: it also
# puts out every unfinished window, and the manual wants it only if the job never starts again.) After `flink cancel`,
# the next start reads again whatever came after the retained checkpoint, or the whole input if none was retained.
#
# `flink savepoint JOB` takes one and lets the job run. Since Flink 1.15 such an *intermediate* savepoint commits
# nothing in the sink, and no recovery uses it. So if the first job fails later, it goes back to a checkpoint from
# *before* the savepoint and writes those rows again, perhaps with other values. A second job that was started from the
# savepoint may still commit the transactions sealed in it, so readers may find rows of both. That is why the manual
# advises a new `uid` for the second job's sink, which then starts without them.
#
# How does the new version find its state? By the ids of its operators, which a program sets with `uid("...")`. Ids that
# nobody has set depend on the structure of the program, so one more step in it may change them. State that matches no
# operator makes the start fail. With `--allowNonRestoredState` Flink skips that state instead: if it was a count, the
# count begins at nothing, without an error.
#
# | the job | what is left | the next start |
# |---|---|---|
# | crashes, and Flink restarts it | the latest complete checkpoint | goes on from there by itself |
# | fails for good | nothing, or with `DELETE_ON_` or `RETAIN_ON_CANCELLATION` its checkpoint | `flink run -s` with that path; without it from nothing |
# | is cancelled | nothing, or with `RETAIN_ON_CANCELLATION` its checkpoint | the same |
# | is stopped with a savepoint | the savepoint, and its rows are committed | `flink run -s` with that path |
# | has read all its input | nothing; a last checkpoint has committed its rows | reads all input again |
#
# ## When a checkpoint takes too long
#
# A checkpoint that takes too long *expires*: the JobManager gives it up. By default Flink then fails the job, which
# restarts from the last complete checkpoint. If failures are *tolerated*, the job lives on. What becomes of the
# transaction sealed for that checkpoint? Here two jobs tolerate one expired checkpoint. One sink leaves its transaction
# for the next checkpoint, the other one rolls it back.

# %%
lab.ask("04b-sealed")

# %% tags=["nbval-check-output"]
left = lab.replay("barriers.expired")
rolled_back = lab.replay("barriers.expired_and_aborted")
lab.compare(left=left, rolled_back=rolled_back, facts=["visible"])

# %% [raw] tags=["expected"]
#              visible          broken
# left         hello=2 world=1  nothing
# rolled_back  hello=1 world=1  no_loss

# %% tags=["nbval-check-output"]
sinks = {"the one that leaves it": left, "the one that rolls it back": rolled_back}
lab.answer("04b-sealed", [name for name, run in sinks.items() if "no_loss" in run.violated])

# %% [raw] tags=["expected"]
# It was: the one that rolls it back.
# The job did not restart, so its source did not go back, and nobody sent the row again.

# %% tags=["checked"]
assert [list(run.violated) for run in (left, rolled_back)] == [[], ["no_loss"]]
# What no run here shows, of Flink 2.x, the same in 1.20: "by default, checkpointing is disabled", tolerated failures 0,
# expiry counts (docs, Checkpointing; CheckpointConfig; CheckpointFailureManager); timeout 10 min, pause 0, retention
# NO_EXTERNALIZED_CHECKPOINTS (CheckpointingOptions), which cleans up in every terminal state (CheckpointRetentionPolicy
# .NEVER_RETAIN_AFTER_TERMINATION; FLINK-12273); parts in the JobManager's heap without a directory (docs, Checkpoints).
# Savepoints: docs, Savepoints (intermediate ones, uid, -n, stop) and Checkpoints vs. Savepoints (backups, recovery logs).

# %% [markdown]
# A checkpoint that expires sends no source back, so nobody sends the row again. The sealed transaction must wait and
# commit with the next checkpoint. Only a *restart* aborts; then the sources go back.
#
# ## Which settings decide
#
# All names begin with `execution.checkpointing.`; the defaults are those of Flink 2 (`CheckpointingOptions`), and were the same in 1.20.
#
# | setting | decides | default | `lab.show("barriers...")` |
# |---|---|---|---|
# | `interval` | how much is read again after a crash | none: **checkpoints are off** | `crash_at_the_third` |
# | `min-pause` | least time between one checkpoint's end and the next start | 0 | `minimum_pause` |
# | `max-concurrent-checkpoints` | how many at once | 1 | `two_in_flight` |
# | `timeout` | when a checkpoint expires | 10 minutes | `expired` |
# | `tolerable-failed-checkpoints` | how many in a row may fail | 0: the job fails with the first | `expired` (one tolerated) |
# | `mode` | whether to align (or `AT_LEAST_ONCE`) | `EXACTLY_ONCE` | `alignment`, `no_alignment` |
# | `unaligned.enabled` | let barriers overtake, in mode `EXACTLY_ONCE` | `false` | `overtaking` |
# | `externalized-checkpoint-retention` | what an ended job leaves | `NO_EXTERNALIZED_CHECKPOINTS`: nothing | `cancelled` |
# | `savepoint-dir` | where savepoints go, if no command says so | none | - |
#
# > **In the other region** (not run here). When a region fails, its job starts in another one from copies: of the checkpoint, the
# > store and the input log. Nobody copies these three at one moment. If the store's copy is older than the checkpoint's, rows are
# > missing, since the job does not read them again. If it is newer, the job writes rows again that are there. The log's copy may
# > lack its newest records, and its offsets may be others: who goes on from the old offsets repeats records or
# > skips some ([IBM on MirrorMaker 2](https://ibm.github.io/event-automation/es/mirroring/mirrormaker)). So copy the store last and make it
# > recognise repeats, or keep the position in the store.
#
# ## Try it yourself
#
# The job may be cancelled once and its checkpoint is kept. Find a run in which a row is there twice all the same. (The sink here shows rows
# at once.) At which moment must somebody press *cancel*?

# %%
lab.explorer("barriers", words="hello-hello", sources=1, sink="append", retention="keep", cancels=1, crashes=0)

# %% tags=["exercise"]
# exercise 04b-settings
job_settings = {"mode": ..., "sink": ..., "retention": ...}

# %% tags=["solution"]
# exercise 04b-settings
job_settings = {"mode": "aligned", "sink": "two_phase", "retention": "keep"}

# %% tags=["check", "nbval-check-output"]
lab.check("04b-settings")

# %% [raw] tags=["expected"]
# 04b-settings: not attempted (2 points); lab.hint("04b-settings") gives a hint.

# %% [markdown]
# ## What this is called in Flink and Spark
#
# | here | Flink | Spark |
# |---|---|---|
# | stop for a deployment | `flink stop`, a savepoint | `query.stop()`; the checkpoint folder stays |
# | start again | `flink run -s PATH` | the same `checkpointLocation` |
# | retained checkpoint | a folder `chk-N` with `_metadata` | the folder always stays; nobody deletes it for you |
# | which state belongs to what | `uid` of an operator | the operator's number in the query |
# | expired checkpoint | `timeout`, `tolerable-failed-checkpoints` | none: a batch takes as long as it takes |
#
# ## On Monday
#
# - Is checkpointing on? Set a directory that outlives the machines, and `RETAIN_ON_CANCELLATION`.
# - Write the deployment down as two commands, `flink stop` and `flink run -s`, and take *cancel* out of the script.
# - Give each operator with state a `uid`. Alert on every use of `--allowNonRestoredState`.
# - With 0 tolerated failures one slow write restarts the job. Tolerate a few only after raising the time that the store
#   keeps a transaction open ([09b](09b_timeouts.ipynb)): with each, the sealed one waits for another interval. Alert on
#   each.
#
# ## Check yourself
#
# **1. A script cancels the job and starts it from the newest retained checkpoint. Its sink shows rows at once. What may a reader see?**
#
# <details><summary>a) Each row once.</summary>Only if nothing came between the checkpoint and the cancelling.</details>
# <details><summary>b) Some rows twice.</summary>Yes: those after the checkpoint are read again, and such a sink takes nothing back.</details>
#
# **2. A checkpoint expires and the job lives on. What should the sink do with the sealed transaction?**
#
# <details><summary>a) Commit it at once.</summary>If the job dies now, the rows come again.</details>
# <details><summary>b) Keep it, and commit it with the next checkpoint.</summary>Yes. A later checkpoint includes everything before
# it.</details>
#
# **3. The new version is bad, and you start the old one from the savepoint taken before deploying. What do you tell the
# shop?**
#
# <details><summary>a) Nothing; a savepoint is exactly-once.</summary>It is, for its own moment. The bad version has committed rows since.</details>
# <details><summary>b) Which rows will come again, and how they are told apart.</summary>Yes: all that the bad version has committed since that savepoint.</details>
#
# ## Closing the ticket
#
# > **Ticket 6, closed.** Cancelling had deleted the checkpoints, as it does by default, so Monday's job started from
# > nothing and read the whole input log again, which reached back to Friday evening. The rows that were there twice
# > have been deleted by order id. A deployment is now `flink stop` with a savepoint and `flink run -s`; retention is
# > `RETAIN_ON_CANCELLATION`, for the day on which somebody cancels all the same.
#
# ---
# Sources: Flink on
# [savepoints](https://nightlies.apache.org/flink/flink-docs-stable/docs/ops/state/savepoints/),
# [checkpoints and savepoints compared](https://nightlies.apache.org/flink/flink-docs-stable/docs/ops/state/checkpoints_vs_savepoints/),
# [storage and retention](https://nightlies.apache.org/flink/flink-docs-stable/docs/ops/state/checkpoints/).
#
# Back: [04, what does a checkpoint hold?](04_barriers.ipynb) Next: [05, who decides?](05_two_phase_commit.ipynb)
