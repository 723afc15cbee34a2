"""The named runs of the changelog simulator, each with a sentence on what to watch for.

A scenario lists its important steps; after them the run goes on to its end without further faults.
"""

from labkit.sim.blueprint import Scenario

_QUIET = {"crashes": 0}
_TWICE = {"words": "hello-hello", **_QUIET}
_UPSERT = {"encoding": "upsert"}
_TWO_STEPS = {**_UPSERT, "writes": "delete_insert", "words": "hello-hello"}
_FIRST = "process(0) arrive apply(0)"

SCENARIOS: dict[str, Scenario[str]] = {
    "append_stream": Scenario(
        "hello = 1 stays when hello = 2 comes: rows are only added, so the table is the history of each count.",
        {**_QUIET, "encoding": "append"},
        "",
    ),
    "retract_stream": Scenario(
        "The second hello is two messages, -hello:1 and +hello:2; between them the table has no hello.", {**_QUIET}, ""
    ),
    "upsert_stream": Scenario(
        "The second hello is one message, =hello:2; the key says which row it replaces.", {**_QUIET, **_UPSERT}, ""
    ),
    "lost_retraction": Scenario(
        "-hello:1 is lost: hello = 1 stays beside every later count, since no other message speaks of it.",
        {**_QUIET, "losses": 1, "hits": "retractions", "words": "hello-hello-hello"},
        f"{_FIRST} process(1) lose",
    ),
    "repeated_retraction": Scenario(
        "-hello:1 comes twice; a consumer that ignores a retraction without a row is not harmed.",
        {**_TWICE, "repeats": 1, "hits": "retractions"},
        f"{_FIRST} process(1) repeat",
    ),
    "repeated_retraction_owed": Scenario(
        "The same for a consumer that keeps the second one as owed: every sum over its table is 1 too small.",
        {**_TWICE, "repeats": 1, "hits": "retractions", "unknown": "owed"},
        f"{_FIRST} process(1) repeat",
    ),
    "overtaken_retraction": Scenario(
        "+hello:2 arrives before -hello:1: for a moment hello has two rows, and then the right one.",
        {**_TWICE, "swaps": 1, "hits": "retractions"},
        f"{_FIRST} process(1) overtake apply(1)",
    ),
    "retraction_before_its_row": Scenario(
        "-hello:1 arrives before +hello:1 and is ignored; the row that it meant comes later and stays.",
        {**_TWICE, "swaps": 1, "hits": "retractions"},
        "process(0) process(1) overtake",
    ),
    "retraction_before_its_row_owed": Scenario(
        "The same for a consumer that keeps it as owed: the row that comes later is taken back, and all is right.",
        {**_TWICE, "swaps": 1, "hits": "retractions", "unknown": "owed"},
        "process(0) process(1) overtake",
    ),
    "lost_upsert": Scenario(
        "=hello:2 is lost and hello = 1 is stale; the next change of the key puts it right.",
        {**_QUIET, **_UPSERT, "losses": 1, "words": "hello-hello-hello"},
        f"{_FIRST} process(1) lose",
    ),
    "late_upsert": Scenario(
        "=hello:1 arrives after =hello:2 and replaces it: an upsert says nothing of what it replaces.",
        {**_TWICE, **_UPSERT, "swaps": 1},
        "process(0) process(1) overtake",
    ),
    "lost_delete": Scenario(
        "Only words that came once are in the result; hello leaves it, its delete is lost, and hello = 1 stays.",
        {**_TWICE, **_UPSERT, "losses": 1, "hits": "retractions", "at_most": 1},
        f"{_FIRST} process(1) lose",
    ),
    "replayed_retractions": Scenario(
        "The query dies and sends from its checkpoint again: -hello:1 finds no row, and +hello:2 is there twice.",
        {**_TWICE, "query_crashes": 1},
        f"{_FIRST} checkpoint(1) process(1) arrive arrive apply(1) apply(2) crash_query",
    ),
    "replayed_upserts": Scenario(
        "The same as an upsert stream: a repeated upsert changes nothing, though a reader can see an older count.",
        {**_TWICE, **_UPSERT, "query_crashes": 1},
        f"{_FIRST} process(1) arrive apply(1) crash_query",
    ),
    "between_delete_and_insert": Scenario(
        "The consumer dies after the delete. Its position was not stored, so it reads the message again: hello is "
        "missing only while it is down.",
        {**_TWO_STEPS},
        f"{_FIRST} process(1) arrive delete(1) crash",
    ),
    "position_stored_with_the_delete": Scenario(
        "The same, but the position was stored with the delete: the insert never comes, and hello is gone.",
        {**_TWO_STEPS, "broken": "stored_at_delete"},
        f"{_FIRST} process(1) arrive delete(1) crash",
    ),
    "applied_twice": Scenario(
        "The consumer stores its position after its table, dies in between and adds hello = 1 a second time.",
        {"position": "after", "words": "hello"},
        f"{_FIRST} crash",
    ),
    "expired_state": Scenario(
        "The query forgets hello and counts it from 1 again: it is not the batch query any more.",
        {**_TWICE, "expiries": 1},
        f"{_FIRST} expire(0)",
    ),
}
