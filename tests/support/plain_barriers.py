"""Barriers told a second time, as `plain_search` says.

Nothing is broken here, nobody cancels, and there is no minimum pause.
"""

from plain_search import clone, reach

END = "end"


class Job:
    """One configuration: its words, who reads what, and the rules of its mode."""

    def __init__(self, words: list[str], sources: int, counts: int, mode: str, **more: object) -> None:
        self.logs = [[(s, offset) for offset in range(len(words[s::sources]))] for s in range(sources)]
        self.word = {(s, offset): word for s in range(sources) for offset, word in enumerate(words[s::sources])}
        order = list(dict.fromkeys(words))
        self.reader = {record: order.index(word) % counts for record, word in self.word.items()}
        self.sources, self.counts, self.mode = range(sources), range(counts), mode
        self.sink = counts
        self.two_phase = more.get("sink", "two_phase") == "two_phase"
        self.instant = more.get("copying", "instant") == "instant"
        self.checkpoints, self.concurrent = (more.get("checkpoints", 1), more.get("concurrent", 1))
        self.crashes, self.expiries = more.get("crashes", 1), more.get("expiries", 0)

    def states(self) -> dict[tuple, dict]:
        start = {
            "triggered": 0,
            "kept": None,
            "seen": [],
            "prepared": [],
            "crashes": self.crashes,
            "expiries": self.expiries,
        }
        self.load(start)
        return reach(start, self.successors)

    def load(self, state: dict) -> None:
        """The job starts from the checkpoint that is kept."""
        kept = state["kept"]
        number = kept["id"] if kept else 0
        state["up"], state["pending"] = True, []
        state["sources"] = [
            {"next": kept["parts"][f"s{s}"] if kept else 0, "epoch": number, "ended": False} for s in self.sources
        ]
        state["tasks"] = []
        for t in [*self.counts, self.sink]:
            inputs = self.counts if t == self.sink else self.sources
            have = list(kept["parts"][f"t{t}"]) if kept else []
            state["tasks"].append(
                {
                    "queues": [list(kept["flight"].get(str((t, i)), [])) if kept else [] for i in inputs],
                    "came": [number for _ in inputs],
                    "done": number,
                    "have": have,
                    "sealed": list(have) if t == self.sink else [],
                }
            )

    def successors(self, state: dict):
        if not state["up"]:
            self.restart(restarted := clone(state))
            yield restarted
            return
        if self.over(state):
            return
        rules = [(self.trigger,), (self.announce,), (self.crash,), (self.ask_sink,)]
        for checkpoint in state["pending"]:
            rules += [(self.complete, checkpoint["id"]), (self.expire, checkpoint["id"])]
        rules += [(self.store, name) for name in self.names()]
        rules += [(rule, s) for s in self.sources for rule in (self.read, self.inject, self.finish)]
        rules += [(self.take, t, i) for t in self.counts for i in self.sources]
        rules += [(self.take, self.sink, i) for i in self.counts]
        for rule, *given in rules:
            changed = clone(state)
            if rule(changed, *given):
                yield changed

    def names(self) -> list[str]:
        return [f"s{s}" for s in self.sources] + [f"t{t}" for t in [*self.counts, self.sink]]

    def ended(self, state: dict, name: str) -> bool:
        """Whether a task need not acknowledge any more."""
        if name[0] == "s":
            return state["sources"][int(name[1:])]["ended"]
        t = int(name[1:])
        return set(state["tasks"][t]["came"]) == {END} and not (t == self.sink and self.two_phase)

    def over(self, state: dict) -> bool:
        if set(state["tasks"][self.sink]["came"]) != {END}:
            return False
        sink = state["tasks"][self.sink]
        return not self.two_phase or (sink["have"] == sink["sealed"] and not state["prepared"])

    # The coordinator.

    def trigger(self, state: dict) -> bool:
        if len(state["pending"]) >= self.concurrent:
            return False
        if state["triggered"] >= self.checkpoints and not self.needs_last(state):
            return False
        state["triggered"] += 1
        new = {"id": state["triggered"], "parts": {}, "flight": {}, "taken": set(), "acked": set()}
        for name in self.names():
            if self.ended(state, name):
                self.excuse(state, new, name)
        state["pending"].append(new)
        return True

    def needs_last(self, state: dict) -> bool:
        if state["pending"] or not self.two_phase or not all(source["ended"] for source in state["sources"]):
            return False
        sink = state["tasks"][self.sink]
        kept = state["kept"]["id"] if state["kept"] else 0
        undecided = [number for number, _ in state["prepared"] if number > kept]
        return set(sink["came"]) != {END} or sink["have"] != sink["sealed"] or bool(undecided)

    def excuse(self, state: dict, checkpoint: dict, name: str) -> None:
        held = state["sources"][int(name[1:])]["next"] if name[0] == "s" else state["tasks"][int(name[1:])]["have"]
        checkpoint["parts"][name] = clone(held)
        checkpoint["taken"].add(name)
        checkpoint["acked"].add(name)

    def wanted(self, state: dict, number: int) -> dict | None:
        return next((checkpoint for checkpoint in state["pending"] if checkpoint["id"] == number), None)

    def complete(self, state: dict, number: int) -> bool:
        checkpoint = self.wanted(state, number)
        if checkpoint["acked"] != set(self.names()):
            return False
        state["kept"] = checkpoint
        state["pending"] = [other for other in state["pending"] if other["id"] > number]
        return True

    def expire(self, state: dict, number: int) -> bool:
        state["pending"].remove(self.wanted(state, number))
        state["expiries"] -= 1
        return state["expiries"] >= 0

    def store(self, state: dict, name: str) -> bool:
        for checkpoint in state["pending"]:
            if name in checkpoint["taken"] - checkpoint["acked"]:
                checkpoint["acked"].add(name)
                return True
        return False

    def announce(self, state: dict) -> bool:
        return self.commit(state)

    def commit(self, state: dict) -> bool:
        number = state["kept"]["id"] if state["kept"] else 0
        due = [rows for sealed, rows in state["prepared"] if sealed <= number]
        state["prepared"] = [[sealed, rows] for sealed, rows in state["prepared"] if sealed > number]
        state["seen"] = sorted(state["seen"] + [row for rows in due for row in rows])
        return bool(due)

    def crash(self, state: dict) -> bool:
        state["up"] = False
        for lost in ("pending", "sources", "tasks"):
            del state[lost]
        state["crashes"] -= 1
        return state["crashes"] >= 0

    def restart(self, state: dict) -> None:
        self.commit(state)
        state["prepared"] = []
        self.load(state)

    # Sources.

    def read(self, state: dict, s: int) -> bool:
        source = state["sources"][s]
        if source["next"] == len(self.logs[s]):
            return False
        record = self.logs[s][source["next"]]
        source["next"] += 1
        state["tasks"][self.reader[record]]["queues"][s].append(record)
        return True

    def inject(self, state: dict, s: int) -> bool:
        source = state["sources"][s]
        later = [checkpoint for checkpoint in state["pending"] if checkpoint["id"] > source["epoch"]]
        if source["ended"] or not later:
            return False
        number = source["epoch"] = later[0]["id"]
        later[0]["parts"][f"s{s}"] = source["next"]
        self.part_is_whole(later[0], f"s{s}")
        for t in self.counts:
            self.send_barrier(state, t, s, number)
        return True

    def finish(self, state: dict, s: int) -> bool:
        source = state["sources"][s]
        if source["ended"] or source["next"] < len(self.logs[s]):
            return False
        source["ended"] = True
        for checkpoint in state["pending"]:
            if checkpoint["id"] > source["epoch"]:
                self.excuse(state, checkpoint, f"s{s}")
        for t in self.counts:
            state["tasks"][t]["queues"][s].append(END)
        return True

    def part_is_whole(self, checkpoint: dict, name: str) -> None:
        checkpoint["taken"].add(name)
        if self.instant:
            checkpoint["acked"].add(name)

    def send_barrier(self, state: dict, t: int, i: int, number: int) -> None:
        queue = state["tasks"][t]["queues"][i]
        if self.mode != "unaligned":
            queue.append(number)
            return
        place = 0
        while place < len(queue) and isinstance(queue[place], int):
            place += 1
        checkpoint = self.wanted(state, number)
        if checkpoint and queue[place:]:
            checkpoint["flight"][str((t, i))] = checkpoint["flight"].get(str((t, i)), []) + queue[place:]
        queue.insert(place, number)

    # Counts and the sink.

    def take(self, state: dict, t: int, i: int) -> bool:
        task = state["tasks"][t]
        if not task["queues"][i] or self.blocked(task, i):
            return False
        item = task["queues"][i].pop(0)
        if isinstance(item, tuple):
            self.count(state, t, i, item)
            return True
        recording = any(came != END and came < task["done"] for came in task["came"])
        task["came"][i] = item
        number = self.next_copy(task, item)
        if number:
            self.copy_state(state, t, number)
        if self.mode == "unaligned":
            if (number or recording) and all(came == END or came >= task["done"] for came in task["came"]):
                self.whole(state, t)
        elif number:
            self.whole(state, t)
        if number and t != self.sink:
            self.send_barrier(state, self.sink, t, number)
        if set(task["came"]) == {END}:
            self.end(state, t)
        return True

    def whole(self, state: dict, t: int) -> None:
        checkpoint = self.wanted(state, state["tasks"][t]["done"])
        if checkpoint:
            self.part_is_whole(checkpoint, f"t{t}")

    def blocked(self, task: dict, i: int) -> bool:
        if self.mode != "aligned" or task["came"][i] == END:
            return False
        newest = max(came for came in task["came"] if came != END)
        return newest > task["done"] and task["came"][i] == newest

    def next_copy(self, task: dict, item) -> int:
        """The checkpoint that is due at this task, or 0."""
        if self.mode == "unaligned":
            return item if item != END and item > task["done"] else 0
        live = [came for came in task["came"] if came != END]
        if not live or (self.mode == "aligned" and len(set(live)) > 1):
            return 0
        return min(live) if min(live) > task["done"] else 0

    def count(self, state: dict, t: int, i: int, record) -> None:
        task = state["tasks"][t]
        task["have"] = sorted([*task["have"], record])
        if self.mode == "unaligned" and task["came"][i] != END and task["came"][i] < task["done"]:
            checkpoint = self.wanted(state, task["done"])
            if checkpoint:
                checkpoint["flight"][str((t, i))] = [*checkpoint["flight"].get(str((t, i)), []), record]
        if t != self.sink:
            state["tasks"][self.sink]["queues"][t].append(record)
        elif not self.two_phase:
            state["seen"] = sorted([*state["seen"], record])

    def copy_state(self, state: dict, t: int, number: int) -> None:
        task = state["tasks"][t]
        task["done"] = number
        checkpoint = self.wanted(state, number)
        if checkpoint:
            checkpoint["parts"][f"t{t}"] = list(task["have"])
        if t == self.sink:
            rows = list(task["have"])
            for row in task["sealed"]:
                rows.remove(row)
            if rows and self.two_phase:
                state["prepared"].append([number, rows])
            task["sealed"] = list(task["have"])

    def end(self, state: dict, t: int) -> None:
        task = state["tasks"][t]
        if t == self.sink and self.two_phase:
            return
        for checkpoint in state["pending"]:
            if checkpoint["id"] > task["done"]:
                self.excuse(state, checkpoint, f"t{t}")
        if t != self.sink:
            state["tasks"][self.sink]["queues"][t].append(END)

    def ask_sink(self, state: dict) -> bool:
        """When the sink has had everything, no barrier can reach it: it is asked directly."""
        sink = state["tasks"][self.sink]
        later = [checkpoint for checkpoint in state["pending"] if checkpoint["id"] > sink["done"]]
        if set(sink["came"]) != {END} or not later or not self.two_phase:
            return False
        self.copy_state(state, self.sink, later[0]["id"])
        self.whole(state, self.sink)
        return True
