"""Two-phase commit told a second time, as `plain_search` says."""

from plain_search import clone, reach


def textbook(count: int) -> dict[tuple, dict]:
    """Gray and Lamport: messages are a set that only grows."""
    start = {"coordinator": "init", "participants": ["working"] * count, "prepared": set(), "messages": set()}
    return reach(start, _textbook)


def _textbook(state: dict):
    messages = state["messages"]
    if state["coordinator"] == "init":
        if len(state["prepared"]) == len(state["participants"]):
            yield state | {"coordinator": "committed", "messages": messages | {"commit"}}
        yield state | {"coordinator": "aborted", "messages": messages | {"abort"}}
    for which, position in enumerate(state["participants"]):
        if state["coordinator"] == "init" and ("prepared", which) in messages:
            yield state | {"prepared": state["prepared"] | {which}}
        if position == "working":
            yield _turned(state, which, "prepared") | {"messages": messages | {("prepared", which)}}
            yield _turned(state, which, "aborted")
        if "commit" in messages:
            yield _turned(state, which, "committed")
        if "abort" in messages:
            yield _turned(state, which, "aborted")


def _turned(state: dict, which: int, position: str) -> dict:
    old = state["participants"]
    return state | {"participants": [position if other == which else old[other] for other in range(len(old))]}


def two_phase(count: int, crashes: int, losses: int) -> dict[tuple, dict]:
    """The protocol with logs, queues, crashes and losses; nothing is broken and everybody comes back."""
    start = {
        "log": [],
        "phase": "working",
        "votes": set(),
        "acks": set(),
        "participants": [{"log": [], "phase": "working"} for _ in range(count)],
        "outward": [[] for _ in range(count)],
        "inward": [[] for _ in range(count)],
        "promised": set(),
        "announced": "working",
        "crashes": crashes,
        "losses": losses,
    }
    return reach(start, lambda state: _everything(state, count))


def _everything(state: dict, count: int):
    for rule in (_start, _give_up, _decide, _announce, _coordinator_dies, _coordinator_returns):
        yield from _tried(rule, state)
    for which in range(count):
        for rule in (_reads, _refuses, _tires, _asks, _dies, _returns, _hears, _repeats, _lost_out, _lost_in):
            yield from _tried(rule, state, which)


def _tried(rule, state: dict, *which: int):
    changed = clone(state)
    if rule(changed, *which):
        yield changed


def _broadcast(state: dict, message: str) -> None:
    for queue in state["outward"]:
        queue.append(message)


def _say(state: dict, decision: str) -> None:
    if state["announced"] == "working":
        state["announced"] = decision


def _forget_memory(state: dict) -> None:
    state["votes"], state["acks"] = set(), set()


def _start(state: dict) -> bool:
    if state["phase"] != "working":
        return False
    state["phase"] = "waiting"
    _broadcast(state, "prepare")
    return True


def _abort(state: dict) -> None:
    state["phase"] = "aborted"
    _forget_memory(state)
    _broadcast(state, "abort")
    _say(state, "aborted")


def _give_up(state: dict) -> bool:
    if state["phase"] != "waiting":
        return False
    _abort(state)
    return True


def _decide(state: dict) -> bool:
    if state["phase"] != "waiting" or len(state["votes"]) < len(state["participants"]):
        return False
    state["phase"] = "decided"
    state["log"].append("commit")
    return True


def _announce(state: dict) -> bool:
    if state["phase"] != "decided":
        return False
    state["phase"] = "committed"
    _forget_memory(state)
    _broadcast(state, "commit")
    _say(state, "committed")
    return True


def _coordinator_dies(state: dict) -> bool:
    if state["phase"] == "down" or not state["crashes"]:
        return False
    state["phase"] = "down"
    _forget_memory(state)
    state["crashes"] -= 1
    return True


def _coordinator_returns(state: dict) -> bool:
    if state["phase"] != "down":
        return False
    if not state["log"]:
        state["phase"] = "aborted"
    else:
        state["phase"] = "forgotten" if "end" in state["log"] else "decided"
    return True


def _finish(state: dict, which: int, word: str) -> None:
    one = state["participants"][which]
    if one["phase"] not in ("committed", "aborted"):
        one["phase"] = {"commit": "committed", "abort": "aborted"}[word]
        one["log"].append(word)


def _reads(state: dict, which: int) -> bool:
    one, queue = state["participants"][which], state["outward"][which]
    if one["phase"] == "down" or not queue:
        return False
    message = queue.pop(0)
    if message == "prepare" and one["phase"] == "working":
        one["phase"] = "in_doubt"
        one["log"].append("prepared")
        state["inward"][which].append("yes")
        state["promised"].add(which)
    elif message == "prepare":
        state["inward"][which].append("no")
    else:
        _finish(state, which, message)
        if message == "commit":
            state["inward"][which].append("ack")
    return True


def _refuses(state: dict, which: int) -> bool:
    queue = state["outward"][which]
    if state["participants"][which]["phase"] != "working" or not queue or queue[0] != "prepare":
        return False
    queue.pop(0)
    _finish(state, which, "abort")
    state["inward"][which].append("no")
    return True


def _tires(state: dict, which: int) -> bool:
    if state["participants"][which]["phase"] != "working":
        return False
    _finish(state, which, "abort")
    return True


def _asks(state: dict, which: int) -> bool:
    if state["participants"][which]["phase"] != "in_doubt" or state["outward"][which] or state["inward"][which]:
        return False
    state["inward"][which].append("inquiry")
    return True


def _dies(state: dict, which: int) -> bool:
    one = state["participants"][which]
    if one["phase"] == "down" or not state["crashes"]:
        return False
    one["phase"] = "down"
    state["crashes"] -= 1
    return True


def _returns(state: dict, which: int) -> bool:
    one = state["participants"][which]
    if one["phase"] != "down":
        return False
    last = one["log"][-1] if one["log"] else None
    if last is None:
        one["log"].append("abort")
    one["phase"] = {None: "aborted", "prepared": "in_doubt", "commit": "committed", "abort": "aborted"}[last]
    return True


def _hears(state: dict, which: int) -> bool:
    if state["phase"] == "down" or not state["inward"][which]:
        return False
    message = state["inward"][which].pop(0)
    if message == "yes" and state["phase"] == "waiting":
        state["votes"].add(which)
    if message == "no" and state["phase"] == "waiting":
        _abort(state)
    if message == "ack" and state["phase"] == "committed":
        state["acks"].add(which)
        if len(state["acks"]) == len(state["participants"]):
            state["phase"] = "forgotten"
            state["log"].append("end")
            _forget_memory(state)
    if message == "inquiry" and state["phase"] == "committed":
        state["outward"][which].append("commit")
    if message == "inquiry" and state["phase"] in ("aborted", "forgotten"):
        state["outward"][which].append("abort")
        _say(state, "aborted")
    return True


def _repeats(state: dict, which: int) -> bool:
    if state["phase"] != "committed" or which in state["acks"] or state["outward"][which] or state["inward"][which]:
        return False
    state["outward"][which].append("commit")
    return True


def _lost_out(state: dict, which: int) -> bool:
    return _lost(state, state["outward"][which])


def _lost_in(state: dict, which: int) -> bool:
    return _lost(state, state["inward"][which])


def _lost(state: dict, queue: list) -> bool:
    if not queue or not state["losses"]:
        return False
    queue.pop(0)
    state["losses"] -= 1
    return True
