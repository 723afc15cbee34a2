"""The bank told a second time, as `plain_search` says.

Beside it, the bank without any snapshot, so that it can be searched whether a recorded state can be reached at all.
"""

from itertools import permutations

from plain_search import clone, freeze, reach


def snapshot(algorithm: str, count: int, **budgets: int) -> dict[tuple, dict]:
    """Every state that is reached. `budgets`: transfers, snapshots, reorderings, crashes."""
    return reach(start(count, **budgets), lambda state: everything(state, algorithm, count))


def start(count: int, *, transfers: int, snapshots: int, reorderings: int = 0, crashes: int = 0) -> dict:
    branch = {"account": fresh(), "recorded": None, "waits_for": set(), "saved": set(), "part": None, "paused": False}
    return {
        "branches": {name: clone(branch) for name in range(1, count + 1)},
        "wires": {pair: [] for pair in permutations(range(1, count + 1), 2)},
        "running": False,
        "completed": None,
        "left": {"transfers": transfers, "snapshots": snapshots, "reorderings": reorderings, "crashes": crashes},
    }


def fresh() -> dict:
    return {"balance": 200, "sent": set(), "received": set()}


def everything(state: dict, algorithm: str, count: int):
    """What can follow. A rule that says no has changed nothing, so that its copy serves the next one."""
    rules = {"naive": [_copies], "stop_the_world": [_pauses, _copies_if_still, _resumes], "chandy_lamport": [_records]}
    tries = [(rule, name) for name in range(1, count + 1) for rule in (*rules[algorithm], _dies)]
    tries += [(rule, pair) for pair in state["wires"] for rule in (_pays, _reads, _overtakes)]
    changed = clone(state)
    for rule, what in [*tries, (_all_go_back, None)]:
        if rule(changed, what):
            yield changed
            changed = clone(state)


def _spend(state: dict, budget: str) -> bool:
    if state["left"][budget] == 0:
        return False
    state["left"][budget] -= 1
    return True


def _begin(state: dict) -> bool:
    if state["running"]:
        return True
    state["running"] = _spend(state, "snapshots")
    return state["running"]


def _finish(state: dict) -> None:
    parts = {name: branch["part"] for name, branch in state["branches"].items()}
    if None not in parts.values():
        state["completed"] = parts
        state["running"] = False
        for branch in state["branches"].values():
            branch["part"] = None


def _pays(state: dict, pair: tuple[int, int]) -> bool:
    branch = state["branches"][pair[0]]
    account = branch["account"]
    if account is None or branch["paused"] or account["balance"] < 100 or not _spend(state, "transfers"):
        return False
    number = sum(sent[0] == pair for sent in account["sent"]) + 1
    account["balance"] -= 100
    account["sent"].add((pair, number))
    state["wires"][pair].append((pair, number))
    return True


def _reads(state: dict, pair: tuple[int, int]) -> bool:
    branch, wire = state["branches"][pair[1]], state["wires"][pair]
    if not wire or branch["account"] is None:
        return False
    message = wire.pop(0)
    if message == "marker":
        if branch["recorded"] is None:
            _record(state, pair[1])
        branch["waits_for"].discard(pair[0])
        _whole(state, pair[1])
        return True
    branch["account"]["balance"] += 100
    branch["account"]["received"].add(message)
    if pair[0] in branch["waits_for"]:
        branch["saved"].add(message)
    return True


def _overtakes(state: dict, pair: tuple[int, int]) -> bool:
    wire = state["wires"][pair]
    if len(wire) < 2 or wire[0] == wire[1] or not _spend(state, "reorderings"):
        return False
    wire[0], wire[1] = wire[1], wire[0]
    return True


def _part(account: dict, channels: set) -> dict:
    return {"account": clone(account), "channels": set(channels)}


def _copies(state: dict, name: int) -> bool:
    branch = state["branches"][name]
    if branch["account"] is None or branch["part"] is not None or not _begin(state):
        return False
    branch["part"] = _part(branch["account"], set())
    _finish(state)
    return True


def _pauses(state: dict, name: int) -> bool:
    branch = state["branches"][name]
    if branch["account"] is None or branch["paused"] or branch["part"] is not None or not _begin(state):
        return False
    branch["paused"] = True
    return True


def _copies_if_still(state: dict, name: int) -> bool:
    still = all(branch["paused"] or branch["part"] is not None for branch in state["branches"].values())
    if not still or any(state["wires"].values()) or not state["running"] or not state["branches"][name]["paused"]:
        return False
    return _copies(state, name)


def _resumes(state: dict, name: int) -> bool:
    branch = state["branches"][name]
    if not branch["paused"] or state["running"]:
        return False
    branch["paused"] = False
    return True


def _records(state: dict, name: int) -> bool:
    branch = state["branches"][name]
    if branch["account"] is None or branch["recorded"] is not None or branch["part"] is not None:
        return False
    if not _begin(state):
        return False
    _record(state, name)
    return True


def _record(state: dict, name: int) -> None:
    _begin(state)
    branch = state["branches"][name]
    branch["recorded"] = clone(branch["account"])
    branch["waits_for"] = set(state["branches"]) - {name}
    for other in branch["waits_for"]:
        state["wires"][name, other].append("marker")


def _whole(state: dict, name: int) -> None:
    branch = state["branches"][name]
    if not branch["waits_for"]:
        branch["part"] = _part(branch["recorded"], branch["saved"])
        branch["recorded"], branch["saved"] = None, set()
        _finish(state)


def _dies(state: dict, name: int) -> bool:
    branch = state["branches"][name]
    if branch["account"] is None or not _spend(state, "crashes"):
        return False
    branch.update(account=None, recorded=None, waits_for=set(), saved=set(), paused=False)
    return True


def _all_go_back(state: dict, _nothing: None) -> bool:
    if all(branch["account"] is not None for branch in state["branches"].values()):
        return False
    for name, branch in state["branches"].items():
        part = state["completed"][name] if state["completed"] else _part(fresh(), set())
        branch.update(
            account=clone(part["account"]), recorded=None, waits_for=set(), saved=set(), part=None, paused=False
        )
    for pair, wire in state["wires"].items():
        part = state["completed"][pair[1]] if state["completed"] else _part(fresh(), set())
        wire[:] = sorted(message for message in part["channels"] if message[0] == pair)
    state["running"] = False
    return True


class Bank:
    """Money alone, without a snapshot: accounts, and what is under way as a set. Which states can follow a state?

    Transfers of a channel arrive in order unless `fifo` is false.
    """

    def __init__(self, transfers: int, *, fifo: bool = True) -> None:
        self.transfers, self.fifo = transfers, fifo
        self._after: dict[tuple, set[tuple]] = {}

    def after(self, state: dict) -> set[tuple]:
        """Every state that can be reached from one, in its hashable form, itself included."""
        first = freeze(state)
        if first not in self._after:
            self._after[first] = set(reach(state, self._next))
        return self._after[first]

    def _next(self, state: dict):
        sent = sum(len(account["sent"]) for account in state["accounts"].values())
        for pair in permutations(state["accounts"], 2):
            following = clone(state)
            account = following["accounts"][pair[0]]
            if sent < self.transfers and account["balance"] >= 100:
                transfer = (pair, sum(each[0] == pair for each in account["sent"]) + 1)
                account["balance"] -= 100
                account["sent"].add(transfer)
                following["under_way"].add(transfer)
                yield following
        for transfer in state["under_way"]:
            earlier = {other for other in state["under_way"] if other[0] == transfer[0] and other[1] < transfer[1]}
            if self.fifo and earlier:
                continue
            following = clone(state)
            account = following["accounts"][transfer[0][1]]
            account["balance"] += 100
            account["received"].add(transfer)
            following["under_way"].remove(transfer)
            yield following


def money_of(state: dict) -> dict:
    """The bank of a state with all its branches up: accounts and transfers under way, without markers."""
    return {
        "accounts": {name: branch["account"] for name, branch in state["branches"].items()},
        "under_way": {message for wire in state["wires"].values() for message in wire if message != "marker"},
    }


def recorded(completed: dict) -> dict:
    """The bank that a completed snapshot holds."""
    return {
        "accounts": {name: part["account"] for name, part in completed.items()},
        "under_way": set().union(*(part["channels"] for part in completed.values())),
    }


def first_snapshots(algorithm: str, count: int, **budgets: int) -> list[tuple[dict, dict, dict]]:
    """Every way in which a first snapshot comes about without a crash: the bank when it begins, what it holds, the
    bank when it is complete."""
    found = []

    def before_the_end(state: dict):
        for following in everything(state, algorithm, count):
            if following["running"] and not state["running"]:
                following["began"] = money_of(state)
            if following["completed"]:
                found.append((following["began"], recorded(following["completed"]), money_of(following)))
            else:
                yield following

    reach(start(count, **{"snapshots": 1, **budgets}) | {"began": None}, before_the_end)
    return found
