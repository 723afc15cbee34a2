"""Threads, a pool of threads, a pool of processes, an asynchronous task, and a program that is called."""

import asyncio
import multiprocessing
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path


def touch(name: str) -> None:
    Path(name).touch()  # effect: thread.* pool.* process.*


async def later(name: str) -> None:
    await asyncio.to_thread(touch, "thread.async")
    Path(name).touch()  # effect: async


if __name__ == "__main__":
    thread = threading.Thread(target=touch, args=("thread.1",))
    thread.start()
    thread.join()
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(touch, ["pool.1", "pool.2"]))
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes:
        list(processes.map(touch, ["process.1", "process.2"]))
    with multiprocessing.get_context("fork").Pool(1) as forked:
        forked.map(touch, ["process.3"])
    asyncio.run(later("async"))
    subprocess.run([sys.executable, __file__.replace("threads", "files")], check=True)
