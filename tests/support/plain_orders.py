"""The designs of `sim/orders` a second time: plain, slow, and without a line of the first telling.

A design is its text. Every run is made from the beginning, by a list of choices: crash here or go on, take so many
rows. All lists are tried, one after the other, like the numbers of a counter. Nothing is remembered between runs.
"""

from itertools import permutations

WRITES = ["plan", "state", "staged", "visible", "marker", "decision", "clean"]
STARTS = ["beginning", "plan", "state", "marker", "decision"]
OUTPUTS = ["append", "upsert", "transaction"]
LEFTOVERS = ["", "finishes decided", "finishes staged"]


class Crashed(Exception):
    """The process died."""


def histories(design, *, same_rows, rows=3, crashes=2, fault="none", faults=2):
    """Everything that readers can have seen when all is done: tuples of (offset, value), (-1, 0) for a crash, and
    (-2, 0) for the newest row there is, which is taken back.
    """
    seen = set()
    choices = []
    while True:
        asked = []
        luck = {"crash": crashes, fault: faults}
        seen.add(run(design, list(choices), asked, same_rows, rows, luck))
        # The next list of choices: the last one that has another option takes it.
        choices = (choices + [0] * len(asked))[: len(asked)]
        while choices and choices[-1] + 1 == asked[-1]:
            choices.pop()
            asked.pop()
        if not choices:
            return seen
        choices[-1] += 1


def run(design, choices, asked, same_rows, rows, luck):
    """One run by these choices, and by the first option where there is none; `asked` gets how many options
    there were. `luck` says how often each thing may still happen.
    """
    order, output, recovery = design.split("; ")
    sets = [each.split("+") for each in order.split(" > ")]
    reads = recovery.split(", ")
    disk = {"plans": {}, "states": [], "staged": None, "table": []}
    saw = []
    rules = {"sets": sets, "output": output, "reads": reads, "expires": "expiry" in luck}

    def choose(options):
        asked.append(options)
        return choices.pop(0) if choices else 0

    def happens(what):
        if luck.get(what) and choose(2):
            luck[what] -= 1
            return True
        return False

    def may_crash():
        while output == "transaction" and disk["staged"] and happens("expiry"):
            disk["staged"] = None
        if happens("crash"):
            saw.append((-1, 0))
            raise Crashed

    first = True
    while True:
        try:
            live(rules, disk, saw, may_crash, happens, choose, same_rows, rows, first)
        except Crashed:
            first = False
        else:
            return tuple(saw)


def live(rules, disk, saw, may_crash, happens, choose, same_rows, rows, first):
    """One life of the process, until all rows are done."""
    sets, reads = rules["sets"], rules["reads"]
    if not first:
        finish(rules, disk, saw, may_crash, happens)
    number, offset, count = where(sets, reads, disk)
    if not first and "undoes undecided" in reads:
        undo(rules["output"], number, disk, saw, may_crash)
    while True:
        may_crash()
        if offset >= rows:
            return
        plan = disk["plans"].get(number)
        if plan and plan[0] <= offset < plan[1]:
            end = plan[1]
        elif same_rows:
            end = min(offset + 2, rows)
        else:
            most = min(2, rows - offset)
            end = offset + 1 + (choose(most) if most > 1 else 0)
        step = (number, offset, end, count)
        if written(rules, sets, step, disk, saw, may_crash, happens, leased="from notice" in reads):
            number, offset, count = number + 1, end, count + end - offset
        else:
            number, offset, count = where(sets, reads, disk)


def undo(output, number, disk, saw, may_crash):
    """Takes back what is there of this step and of later ones: a row, a transaction, or all of a key at a time."""
    while disk["table"] and disk["table"][-1] >= number:
        may_crash()
        last = disk["table"][-1]
        while disk["table"] and disk["table"][-1] >= number:
            if output == "transaction" and disk["table"][-1] != last:
                break
            disk["table"].pop()
            saw.append((-2, 0))
            if output == "append":
                break


def written(rules, sets, step, disk, saw, may_crash, happens, leased=False):
    """The writes of a step. False if one was refused, and the step has to be made again."""
    number, reads = step[0], rules["reads"]
    marked = "skips marked" in reads and disk.get("marker", (-1, 0))[0] >= number
    late = told = False
    for each in sets:
        may_crash()
        if leased and not told and not late:
            late = happens("lease")
        if late and "notice" in each:
            return False
        told = told or "notice" in each
        if set(each) <= {"plan", "decision", "notice"} and happens("lag"):
            continue
        if is_expired(rules, each, disk, marked):
            if where(rules["sets"], reads, disk)[0] <= number:
                return False
            continue
        make(each, step, rules, disk, saw, may_crash, happens, marked)
    return True


def is_expired(rules, writes, disk, marked):
    """Whether the store was to commit what it has aborted."""
    staged = any("staged" in each for each in rules["sets"]) and rules["output"] == "transaction"
    return rules["expires"] and staged and "visible" in writes and not marked and disk["staged"] is None


def make(writes, step, rules, disk, saw, may_crash, happens, marked):
    """The writes of one atomic set, and again if no answer came."""
    number, start, end, count = step
    if "visible" in writes and not marked and rules["output"] != "transaction":
        for nth in range(start, end):
            if nth > start:
                may_crash()
            again = True
            while again:
                again = happens("lost-answer")
                saw.append((nth, count + nth - start + 1))
                disk["table"].append(number)
                if again:
                    may_crash()
        return
    again = True
    while again:
        again = "visible" in writes and not marked and happens("lost-answer")
        if "visible" in writes and not marked:
            commit(step, rules, disk, saw)
        for write in writes:
            note(write, step, disk, kept=marked and "visible" in writes)
        if again:
            may_crash()
            marked = "skips marked" in rules["reads"] and disk.get("marker", (-1, 0))[0] >= number


def commit(step, rules, disk, saw):
    """Rows of a transaction; what is prepared is committed once."""
    number, start, end, count = step
    if any("staged" in each for each in rules["sets"]) and disk["staged"] is None:
        return
    saw.extend((nth, count + nth - start + 1) for nth in range(start, end))
    disk["table"] += [number] * (end - start)
    disk["staged"] = None


def note(write, step, disk, kept):
    """One write beside visible output; `kept`: the marker stays as it is, since the store knows the step."""
    number, start, end, count = step
    if write == "plan":
        disk["plans"] = {n: p for n, p in disk["plans"].items() if n < number}
        disk["plans"][number] = (start, end)
    if write == "state":
        disk["states"] = [each for each in disk["states"] if each[0] < number]
        disk["states"].append((number, end, count + end - start))
    if write == "staged":
        disk["staged"] = step
    if write == "clean":
        disk["staged"] = None
    if write in ("decision", "notice") or (write == "marker" and not kept):
        disk[write] = (number, end)


def finish(rules, disk, saw, may_crash, happens):
    """What a restart does with staged output: finishes it, or drops it."""
    staged, sets, reads = disk["staged"], rules["sets"], rules["reads"]
    if staged is None:
        return
    runs_again = staged[0] >= where(sets, reads, disk)[0]
    if "finishes staged" not in reads and ("finishes decided" not in reads or runs_again):
        disk["staged"] = None
        return
    place = next(n for n, each in enumerate(sets) if "staged" in each)
    written(rules, sets[place + 1 :], staged, disk, saw, may_crash, happens)


def where(sets, reads, disk):
    """The number, the first offset and the count of the step with which a process goes on."""
    done = (-1, 0)
    if "from plan" in reads and disk["plans"]:
        last = max(disk["plans"])
        done = (last - 1, disk["plans"][last][0])
    if "from state" in reads and disk["states"]:
        done = disk["states"][-1][:2]
    for note in ("marker", "decision", "notice"):
        if f"from {note}" in reads:
            done = disk.get(note, (-1, 0))
    number, offset = done[0] + 1, done[1]
    if not any("state" in each for each in sets):
        return number, offset, offset
    count = 0
    for each in disk["states"]:
        if "newest state" in reads or each[0] < number:
            count = each[2]
    return number, offset, count


def designs(most):
    """The texts of all designs of at most so many writes, as a set."""
    found = set()
    for order in orders(most):
        for output in OUTPUTS:
            if not fits(order, output):
                continue
            for recovery in recoveries():
                if is_read(order, recovery):
                    found.add(f"{order}; {output}; {recovery}")
    return found


def orders(most):
    """Every order of every choice of writes, with at most one run of neighbours that is atomic."""
    found = set()
    for size in range(1, most + 1):
        for each in permutations(WRITES, size):
            found.add(" > ".join(each))
            for start in range(size):
                for end in range(start + 2, size + 1):
                    joined = "+".join(sorted(each[start:end], key=WRITES.index))
                    found.add(" > ".join([*each[:start], joined, *each[end:]]))
    return found


def recoveries():
    for start in STARTS:
        for newest in ["", "newest state"]:
            for skips in ["", "skips marked"]:
                for leftover in LEFTOVERS:
                    said = [f"from {start}", newest, skips, leftover]
                    yield ", ".join(each for each in said if each)
            yield ", ".join(each for each in [f"from {start}", newest, "undoes undecided"] if each)


def places(order):
    return {w: n for n, each in enumerate(order.split(" > ")) for w in each.split("+")}


def fits(order, output):
    """The rules of `docs/order_of_writes.md` that speak of writes alone, told again."""
    place, sets = places(order), order.split(" > ")
    if "visible" not in place:
        return False
    no = [
        sets[place["visible"]] != "visible" and output != "transaction",
        "staged" in place and place["staged"] >= place["visible"],
        "clean" in place and "staged" not in place,
        "clean" in place and place["clean"] < place["visible"],
        "clean" in place and output == "transaction",
        "plan" in place and sets[0] != "plan",
    ]
    return not any(no)


def is_read(order, recovery):
    """Whether a restart reads all that is written and nothing else."""
    place = places(order)
    start = recovery.split(", ")[0].removeprefix("from ")
    no = [
        start != "beginning" and start not in place,
        "newest" in recovery and ("state" not in place or start == "state"),
        "skips" in recovery and "marker" not in place,
        "finishes" in recovery and "staged" not in place,
        "staged" in place and "finishes" not in recovery,
        "decision" in place and start != "decision",
        "state" in place and start == "beginning" and "newest" not in recovery,
        "marker" in place and start != "marker" and "skips" not in recovery,
        "skips" in recovery and start == "marker" and "staged" not in place,
        "undoes" in recovery and start in ("state", "marker", "decision") and place.get(start, 0) <= place["visible"],
    ]
    return not any(no)


def classes(texts, **world):
    """How many of these designs a reader can tell apart, each tried with the same rows again and with others."""
    return len(
        {
            (
                "; upsert;" in text,
                frozenset(histories(text, same_rows=True, **world)),
                frozenset(histories(text, same_rows=False, **world)),
            )
            for text in texts
        }
    )
