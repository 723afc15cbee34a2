"""One kill by hand, without labkit: `get_state().next` is empty after a kill, although two nodes never ran.

Needs langgraph and langgraph-checkpoint-sqlite. The first process is killed after the writes of its first node are
committed and before the checkpoint that follows; the second one asks what is left.
"""

import os
import signal
import subprocess
import sys
import tempfile
from importlib.metadata import version
from typing import TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

THREAD = {"configurable": {"thread_id": "one"}}


class State(TypedDict):
    done: list[str]


def node(name):
    return lambda state: {"done": [*state["done"], name]}


class Killed(SqliteSaver):
    """Kills this process when the writes of the first node are committed, before the checkpoint that follows."""

    def put_writes(self, config, writes, task_id, task_path=""):
        super().put_writes(config, writes, task_id, task_path)
        if ("done", ["first"]) in writes:
            os.kill(os.getpid(), signal.SIGKILL)


def graph(saver):
    builder = StateGraph(State)
    names = ["first", "second", "third"]
    for name in names:
        builder.add_node(name, node(name))
    for before, after in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(before, after)
    return builder.compile(checkpointer=saver)


def main():
    if len(sys.argv) == 2:
        with Killed.from_conn_string(sys.argv[1]) as saver:
            graph(saver).invoke({"done": []}, THREAD, durability="sync")
        sys.exit("nobody killed this process")
    print("langgraph", version("langgraph"), "with checkpoint-sqlite", version("langgraph-checkpoint-sqlite"))
    with tempfile.TemporaryDirectory() as folder:
        database = f"{folder}/graph.db"
        first = subprocess.run([sys.executable, __file__, database], check=False)
        print("first process:", "SIGKILL" if first.returncode == -signal.SIGKILL else f"exit {first.returncode}")
        with SqliteSaver.from_conn_string(database) as saver:
            again = graph(saver)
            state = again.get_state(THREAD)
            print("second process: next =", state.next, "values =", state.values)
            print("invoke(None) all the same:", again.invoke(None, THREAD, durability="sync"))


if __name__ == "__main__":
    main()
