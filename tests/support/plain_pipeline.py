"""The pipeline told a second time, as `plain_search` says: one dictionary with a list of what is left to do.

Only what can go wrong most often is told: crashes and lost notifications.
"""

from plain_search import clone, reach

PARTITION_OF = {"world": 1, "hello": 2}


def pipeline(
    strategy: str, order: str, words: list[str], size: int, crashes: int, lost: int, source: str = "log"
) -> dict[tuple, dict]:
    """Every state that can be reached, by its hashable form."""
    start = {
        "planned": [],
        "decided": -1,
        "votes": {},
        "logs": [],
        "confirmed": [],
        "drivers": 0,
        "place": "dead",
        "batch": -1,
        "left": [],
        "told": [],
        "notice": -1,
        "seen": [],
        "open": {},
        "prepared": {},
        "committed": {},
        "aborted": {},
        "markers": [],
        "crashes": crashes,
        "lost": lost,
    }
    job = {"strategy": strategy, "order": order, "words": words, "size": size, "source": source}
    return reach(start, lambda state: moves(state, job))


def moves(state: dict, job: dict):
    for move in (start, plan, go_on, finish, end, notify, told, die, lose):
        changed = clone(state)
        if move(changed, job):
            yield changed


def alive(state: dict) -> bool:
    return state["place"] in ("recovering", "running", "ending")


def rows_of(state: dict, job: dict, batch: int) -> dict[int, list[int]]:
    first = state["planned"][batch - 1] if batch else 0
    held: dict[int, list[int]] = {}
    for offset in range(first, state["planned"][batch]):
        held.setdefault(PARTITION_OF[job["words"][offset]], []).append(offset)
    return dict(sorted(held.items()))


def start(state: dict, job: dict) -> bool:
    if state["place"] != "dead":
        return False
    state["drivers"] += 1
    state["place"], state["batch"] = "recovering", -1
    kept = [name for batch in sorted(state["votes"]) if batch <= state["decided"] for name in state["votes"][batch]]
    if job["strategy"] == "two_phase":
        strays = sorted(name for name in [*state["open"], *state["prepared"]] if name not in kept)
        state["left"] = [("commit", name) for name in kept] + [("abort", name) for name in strays]
    if job["strategy"] == "wal":
        for batch in sorted(state["votes"]):
            if state["votes"][batch] and batch <= state["decided"] and batch not in state["confirmed"]:
                state["left"] += flushes(state, job, batch)[1:]
    state["left"].append(("resolved", None))
    return True


def flushes(state: dict, job: dict, batch: int) -> list:
    rows = [offset for offsets in rows_of(state, job, batch).values() for offset in offsets]
    return [("look", batch), *(("flush", (offset, batch)) for offset in rows), ("confirm", batch)]


def next_batch(state: dict, job: dict) -> int | None:
    batch = state["batch"] + 1 if state["batch"] >= 0 else state["decided"] + 1
    read = state["planned"][-1] if state["planned"] else 0
    return batch if batch < len(state["planned"]) or read < len(job["words"]) else None


def plan(state: dict, job: dict) -> bool:
    if state["place"] != "running" or state["left"] or next_batch(state, job) is None:
        return False
    batch = next_batch(state, job)
    if batch < len(state["planned"]) and job["source"] == "socket":
        state["batch"] = batch
        state["left"] = [("store", (batch, []))] if job["order"] == "decision" else []
        state["left"].append(("decide", batch))
        return True
    if batch == len(state["planned"]):
        read = state["planned"][-1] if state["planned"] else 0
        state["planned"].append(min(read + job["size"], len(job["words"])))
    state["batch"] = batch
    held = rows_of(state, job, batch)
    names = [(batch, partition, state["drivers"]) for partition in held]
    state["left"] = [step for name in names for step in task(job, name, held[name[1]])]
    if job["strategy"] == "batch_marker":
        rows = [offset for offsets in held.values() for offset in offsets]
        state["left"] = [("look", batch), *state["left"], ("mark", (rows, batch))]
    if job["order"] == "decision":
        state["left"].append(("store", (batch, names)))
    elif job["strategy"] == "wal":
        state["left"] += flushes(state, job, batch)
    elif job["strategy"] == "two_phase":
        state["left"] += [("commit", name) for name in names]
    state["left"].append(("decide", batch))
    return True


def task(job: dict, name: tuple, offsets: list[int]) -> list:
    if job["strategy"] in ("append", "idempotent"):
        return [("write", (offset, name[0])) for offset in offsets]
    if job["strategy"] == "batch_marker":
        return [("hand_over", offset) for offset in offsets]
    if job["strategy"] == "wal":
        return [*(("log", offset) for offset in offsets), ("seal", name)]
    return [*(("insert", (name, offset)) for offset in offsets), ("prepare", name)]


def waiting(state: dict) -> list[int]:
    return sorted(batch for batch in state["votes"] if batch <= state["decided"])


def settling(state: dict, job: dict) -> list:
    steps = []
    for batch in waiting(state):
        votes = [("commit", name) for name in state["votes"][batch]]
        if state["votes"][batch]:
            steps += votes if job["strategy"] == "two_phase" else flushes(state, job, batch)
        steps.append(("forget", batch))
    return steps


def go_on(state: dict, job: dict) -> bool:
    if not alive(state) or not state["left"]:
        return False
    if state["left"][0][0] == "store" and waiting(state):
        if state["told"]:
            return False
        state["told"] = settling(state, job)
        return True
    step, what = state["left"].pop(0)
    carry_out(state, job, step, what, "left")
    return True


def carry_out(state: dict, job: dict, step: str, what, where: str) -> None:
    if step in ("write", "flush"):
        state["seen"].append((*what, state["drivers"]))
    elif step == "insert":
        name, offset = what
        state["open"].setdefault(name, []).append(offset)
    elif step == "prepare":
        state["prepared"][what] = state["open"].pop(what)
    elif step == "seal":
        state["logs"] = sorted({*state["logs"], what[:2]})
    elif step == "look":
        if what in state["markers"] or what in state["confirmed"]:
            while state[where][0][0] in ("hand_over", "mark", "flush", "confirm"):
                state[where].pop(0)
    elif step == "commit":
        if what in state["prepared"]:
            rows = state["prepared"].pop(what)
            state["committed"][what] = rows
            state["seen"] += [(offset, what[0], what[2]) for offset in rows]
    else:
        settle_down(state, job, step, what)


def settle_down(state: dict, job: dict, step: str, what) -> None:
    if step == "abort":
        state["aborted"][what] = state["open"].pop(what) if what in state["open"] else state["prepared"].pop(what)
    elif step == "confirm":
        state["confirmed"] = sorted({what, *(batch for batch in state["confirmed"] if batch > what)})
        state["logs"] = [log for log in state["logs"] if log[0] >= what]
    elif step == "mark":
        rows, batch = what
        state["seen"] += [(offset, batch, state["drivers"]) for offset in rows]
        state["markers"].append(batch)
    elif step == "store":
        batch, names = what
        state["votes"][batch] = names
    elif step == "decide":
        state["decided"] = what
        if job["order"] == "decision":
            state["notice"] = what
    elif step == "forget":
        del state["votes"][what]
    elif step == "resolved":
        state["votes"] = {}
        state["place"] = "running"


def finish(state: dict, job: dict) -> bool:
    if state["place"] != "running" or state["left"] or state["told"] or next_batch(state, job) is not None:
        return False
    state["place"], state["notice"] = "ending", -1
    state["left"] = settling(state, job) if job["order"] == "decision" else [("tell", None)]
    return True


def end(state: dict, job: dict) -> bool:
    if state["place"] != "ending" or state["left"]:
        return False
    state["place"], state["batch"] = "ended", -1
    return True


def notify(state: dict, job: dict) -> bool:
    if state["notice"] < 0 or state["told"]:
        return False
    state["told"], state["notice"] = settling(state, job), -1
    return True


def told(state: dict, job: dict) -> bool:
    if not state["told"]:
        return False
    step, what = state["told"].pop(0)
    carry_out(state, job, step, what, "told")
    return True


def die(state: dict, job: dict) -> bool:
    if not alive(state) or not state["crashes"]:
        return False
    state["seen"].append(("crash", state["crashes"]))
    state["crashes"] -= 1
    state["place"], state["batch"], state["notice"] = "dead", -1, -1
    state["left"], state["told"] = [], []
    return True


def lose(state: dict, job: dict) -> bool:
    if state["notice"] < 0 or not state["lost"]:
        return False
    state["notice"] = -1
    state["lost"] -= 1
    return True
