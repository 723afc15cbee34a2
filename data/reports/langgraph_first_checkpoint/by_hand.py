"""One kill by hand, without labkit: what LangGraph remembers of a run that dies before its first checkpoint.

Needs langgraph and langgraph-checkpoint-sqlite. The first node writes a line to a file; the process dies when the first
checkpoint is about to be written, but not before the node has run, where the durability lets it. Exit code 1: with some
durability a node has run, and nothing is known of the run; 0: with none.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from typing import TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

THREAD = {"configurable": {"thread_id": "one"}}
PATIENCE = 3
"""Seconds that the first checkpoint waits for the node."""


class State(TypedDict):
    done: list[str]


class Killed(SqliteSaver):
    """Kills this process before its first checkpoint, if possible after the first node."""

    def put(self, *arguments):
        until = time.monotonic() + PATIENCE
        while not os.path.exists("mail") and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)


def send_mail(state):
    with open("mail", "a") as file:
        file.write("sent\n")
    return {"done": [*state["done"], "send_mail"]}


def graph(saver):
    builder = StateGraph(State)
    builder.add_node("send_mail", send_mail)
    builder.add_edge(START, "send_mail")
    builder.add_edge("send_mail", END)
    return builder.compile(checkpointer=saver)


def main():
    if len(sys.argv) == 2:
        with Killed.from_conn_string("graph.db") as saver:
            graph(saver).invoke({"done": []}, THREAD, durability=sys.argv[1])
        sys.exit("nobody killed this process")
    print("langgraph", version("langgraph"), "with checkpoint-sqlite", version("langgraph-checkpoint-sqlite"))
    unknown = {}
    for durability in ["sync", "async", "exit"]:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, os.path.abspath(__file__), durability]
            first = subprocess.run(command, cwd=folder, capture_output=True, check=False)
            killed = "SIGKILL" if first.returncode == -signal.SIGKILL else f"exit {first.returncode}"
            mail = os.path.exists(f"{folder}/mail")
            with SqliteSaver.from_conn_string(f"{folder}/graph.db") as saver:
                state = graph(saver).get_state(THREAD)
                checkpoints = len(list(saver.list(THREAD)))
            print(
                f'"{durability}": {killed}, mail {"sent" if mail else "not sent"}, {checkpoints} checkpoints,', end=" "
            )
            print(f"next = {state.next}, values = {state.values}, created_at = {state.created_at}")
            unknown[durability] = mail and not checkpoints
    found = [name for name, is_found in unknown.items() if is_found]
    print("found: a node has run of which nothing is known, with" if found else "not found: no node has run", *found)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
