"""A graph of three nodes, each of which appends a file of orders to the output.

The arguments say which checkpointer keeps its progress (`sqlite` or `postgres`), and what a start does: `if-next`
resumes only a graph that names a next node, `always` resumes whatever was begun.
"""

import os
import sys
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TypedDict

from langgraph.graph import END, START, StateGraph

CHECKPOINTER, RESUME = sys.argv[1:]
THREAD = {"configurable": {"thread_id": "orders"}}
ORDERS = sorted((Path(__file__).parent / "orders").iterdir())


class State(TypedDict):
    done: int


def node(path):
    def append(state):
        with open("output/orders.jsonl", "ab") as output:
            output.write(path.read_bytes())
            output.flush()
            os.fsync(output.fileno())
        return {"done": state["done"] + 1}

    return append


@contextmanager
def checkpointer():
    if CHECKPOINTER == "sqlite":
        from langgraph.checkpoint.sqlite import SqliteSaver

        with SqliteSaver.from_conn_string("checkpoint/graph.db") as saver:
            yield saver
    else:
        from langgraph.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string("") as saver:  # PGHOST names the server
            saver.setup()
            yield saver


for folder in ("output", "checkpoint"):
    Path(folder).mkdir(exist_ok=True)
builder = StateGraph(State)
names = [START, *(f"load_{path.stem}" for path in ORDERS), END]
for name, path in zip(names[1:], ORDERS, strict=False):
    builder.add_node(name, node(path))
for before, after in pairwise(names):
    builder.add_edge(before, after)
with checkpointer() as saver:
    graph = builder.compile(checkpointer=saver)
    state = graph.get_state(THREAD)
    if not state.values:
        graph.invoke({"done": 0}, THREAD, durability="sync")
    elif state.next or RESUME == "always":
        graph.invoke(None, THREAD, durability="sync")
