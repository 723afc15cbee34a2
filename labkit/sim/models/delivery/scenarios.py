"""The named runs of the delivery simulator, each with a sentence on what to watch for.

A scenario lists its faults action by action; after them the run goes on to its end without further faults.
"""

from labkit.sim.blueprint import Scenario

_ONE = {"processes": 2, "records": 1}
_TWO = {"processes": 2, "window": 2}
_CHAIN = {"records": 1}
_WEAK = {"records": 1, "productions": "weak"}
_LONG = {"processes": 4, "records": 1, "crashes": 3}
_ARRIVES = "send(0) receive(1) store(1)"
_LOST_ACK = "send(0) receive(1) produce(1) send(1) receive(2) store(2) ack(2) drop_ack(1)"

SCENARIOS: dict[str, Scenario[str]] = {
    "lost_without_retry": Scenario(
        "Nobody repeats what is lost: at-most-once.", {**_ONE, "retry": False, "dedup": "none"}, "send(0) drop(1)"
    ),
    "lost_and_repeated": Scenario(
        "The record is lost once and sent again: retry alone makes up for a loss.",
        {**_ONE, "dedup": "none"},
        "send(0) drop(1)",
    ),
    "lost_acknowledgement": Scenario(
        "The sender cannot tell a lost acknowledgement from a lost record, sends again, and the record counts twice.",
        {**_ONE, "dedup": "none"},
        f"{_ARRIVES} ack(1) drop_ack(0)",
    ),
    "known_again": Scenario(
        "The same loss, but the receiver knows the id, drops the record, and acknowledges it again: exactly-once.",
        _ONE,
        f"{_ARRIVES} ack(1) drop_ack(0)",
    ),
    "late_acknowledgement": Scenario(
        "Nothing is lost, only late: the timeout comes too early, and without deduplication the record counts twice.",
        {**_ONE, "dedup": "none", "delays": 1},
        "send(0) send_early(0)",
    ),
    "doubled_by_the_network": Scenario(
        "The network delivers the record twice: duplicates come even where nobody repeats anything.",
        {**_ONE, "retry": False, "dedup": "none"},
        "send(0) duplicate(1)",
    ),
    "overtaken": Scenario(
        "Two records are under way and the second overtakes: both count once, and a reader sees hello go back.",
        {**_TWO, "reorders": 1},
        "send(0) send(0) reorder(1)",
    ),
    "retry_reorders": Scenario(
        "The first of two is lost and sent again behind the second: retry changes the order.",
        _TWO,
        "send(0) send(0) drop(1)",
    ),
    "table_in_memory": Scenario(
        "The receiver dies before it acknowledges, and its table of ids dies with it: the record counts twice.",
        {**_ONE, "dedup": "volatile"},
        f"{_ARRIVES} crash(1)",
    ),
    "table_in_the_store": Scenario(
        "The same crash, but the id was written together with what came of the record: it is known again.",
        _ONE,
        f"{_ARRIVES} crash(1)",
    ),
    "collected_too_early": Scenario(
        "The id is forgotten while a second copy is still under way: the copy counts as a new record.",
        {**_ONE, "broken": "collect_early"},
        "send(0) duplicate(1) receive(1) store(1) ack(1) collect(1)",
    ),
    "collected_in_time": Scenario(
        "The id is forgotten when nobody can send the record again: the table does not grow for ever.",
        {**_ONE, "collects": True},
        f"{_ARRIVES} ack(1) hear(0) collect(1)",
    ),
    "living_connection": Scenario(
        "The connection delivers a doubled record once: while it lives, it deduplicates.",
        {**_ONE, "dedup": "connection"},
        "send(0) duplicate(1)",
    ),
    "broken_connection": Scenario(
        "After a crash the sender sends again on a new connection, which knows nothing: the record counts twice.",
        {**_ONE, "dedup": "connection"},
        f"{_ARRIVES} crash(1)",
    ),
    "worked_on_twice": Scenario(
        "The receiver dies before its write and works on the record again: two executions, one effect.",
        _ONE,
        "send(0) receive(1) crash(1)",
    ),
    "strong_production": Scenario(
        "Process 1 dies after its durable write: it sends on what it had written, and works on nothing again.",
        _CHAIN,
        "send(0) receive(1) store(1) send(1) receive(2) store(2) crash(1)",
    ),
    "weak_production": Scenario(
        "Process 1 dies before it noted the id, and works again; process 2 knows the production by its derived id.",
        _WEAK,
        f"{_LOST_ACK} crash(1)",
    ),
    "weak_production_with_a_fresh_id": Scenario(
        "The same, but the production made again has a new id: process 2 cannot know it, and the record counts twice.",
        {**_WEAK, "ids": "fresh"},
        f"{_LOST_ACK} crash(1)",
    ),
    "waiting_for_all": Scenario(
        "Each waits until all after it are done, and nobody keeps ids: nothing is lost, and the record counts twice.",
        {**_WEAK, "dedup": "none"},
        f"{_LOST_ACK} crash(1)",
    ),
    "cascade": Scenario(
        "Everybody waits for the last process; as three die, one before the other, each must work again.",
        {**_LONG, "productions": "weak"},
        "send(0) receive(1) produce(1) send(1) receive(2) produce(2) send(2) receive(3) crash(3) crash(2) crash(1)",
    ),
    "cascade_is_stopped": Scenario(
        "The same three die, but what each made is durable: only the last, which had not written, works again.",
        _LONG,
        "send(0) receive(1) store(1) send(1) receive(2) store(2) send(2) receive(3) crash(3) crash(2) crash(1)",
    ),
    "second_of_four": Scenario(
        "Process 2 dies behind a record that is out: process 1 sends again, and process 3 knows the production.",
        {"processes": 4, "records": 1, "productions": "weak"},
        "send(0) receive(1) produce(1) send(1) receive(2) produce(2) send(2) receive(3) store(3) crash(2)",
    ),
    "acknowledged_too_early": Scenario(
        "The receiver acknowledges before its write, and dies: nobody has the record any more.",
        {**_ONE, "broken": "ack_early"},
        "send(0) receive(1) hear(0) crash(1)",
    ),
    "noted_too_early": Scenario(
        "The id is noted before anything came of the record, and a crash comes between: it is taken for a duplicate.",
        {**_ONE, "broken": "note_early"},
        "send(0) receive(1) crash(1)",
    ),
    "noted_too_late": Scenario(
        "The record is out, its id is not noted, and a crash comes between: it counts twice.",
        {**_ONE, "broken": "note_late"},
        f"{_ARRIVES} crash(1)",
    ),
    "only_the_largest_id": Scenario(
        "Record 0 is sent again behind record 1, its id is smaller than the largest one: it is dropped and lost.",
        {**_TWO, "broken": "highest_only"},
        "send(0) send(0) drop(1)",
    ),
}
