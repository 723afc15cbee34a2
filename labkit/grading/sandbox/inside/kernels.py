"""Starts a Jupyter kernel by forking a process that has done all imports, which is faster than starting a new program.

The fork must happen before Jupyter's client starts its threads, because a process with threads cannot be forked safely.
The forked process then waits for the kernel's arguments. One kernel serves exactly one notebook.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import Empty
from typing import Any

from ipykernel import ipkernel
from ipykernel.kernelapp import IPKernelApp
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

_FILE = "-f"
_OPTIONS = ["--HistoryManager.hist_file=:memory:"]
"""The options that nbclient passes to each kernel after `-f` and the name of its connection file."""


def prepare() -> None:
    """Create the Jupyter kernel's application and parse its options once, before any kernel process is forked.

    Otherwise each kernel would repeat this work. The work is short, but it writes to objects all over the memory, and a
    forked process must copy each page of memory to which it writes.
    """
    app: Any = IPKernelApp.instance()
    app.parse_command_line([_FILE, "", *_OPTIONS])
    vars(ipkernel)["sys"] = _NoModules()


class _NoModules:
    """A replacement for the module `sys` in which `sys.modules` is empty.

    From the real `sys.modules`, ipykernel would list the files of all modules for a debugger, which no kernel here has.
    """

    modules: Mapping[str, object] = {}

    def __getattr__(self, name: str) -> object:
        return getattr(sys, name)


class Waiting:
    """A forked process that becomes a Jupyter kernel when it gets its arguments; it has the methods of `Popen`."""

    stdin = stdout = stderr = None

    def __init__(self, first: Callable[[], None]) -> None:
        """Fork the process that will become the kernel; the new process calls `first` immediately."""
        reader, self._tell = os.pipe()
        self._listens, listening = os.pipe()
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            for number in (self._tell, self._listens):
                os.close(number)
            _become_kernel(reader, listening, first)
        # Removed in this process, where the application would change the messages that Jupyter's client logs.
        IPKernelApp.clear_instance()
        for number in (reader, listening):
            os.close(number)

    def start(self, arguments: list[str]) -> None:
        """Send the kernel its command-line arguments, and wait until the kernel listens for connections or dies.

        Without this wait a client could connect too early, and would then lose 0.1 to 0.2 s until its next attempt.
        """
        os.write(self._tell, json.dumps(arguments).encode())
        os.close(self._tell)
        os.read(self._listens, 1)
        os.close(self._listens)

    def poll(self) -> int | None:
        """Return the process's exit code, or None while the process runs."""
        if self.returncode is None:
            with suppress(ChildProcessError):
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self) -> int | None:
        """Wait for the end of the process and return the exit code."""
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal to the process if it still exists."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process (SIGKILL)."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask the process to end (SIGTERM)."""
        self.send_signal(signal.SIGTERM)


def _become_kernel(reader: int, listening: int, first: Callable[[], None]) -> None:
    code = 1
    try:
        os.setsid()
        first()
        arguments = b""
        while part := os.read(reader, 1 << 16):
            arguments += part
        os.close(reader)
        if arguments:
            app: Any = IPKernelApp.instance()
            _take_arguments(app, json.loads(arguments))
            app.initialize()
            app.shell.events.register("post_run_cell", _kept_streams())
            os.close(listening)
            app.start()
            code = 0
    finally:
        os._exit(code)  # never return into the code of the process that forked


def _take_arguments(app: Any, arguments: Sequence[str]) -> None:
    """Give the Jupyter application `app` its command-line arguments.

    If `prepare` has already parsed the same options, only the name of the connection file is new, so it is set without
    parsing the arguments again.
    """
    parse = app.parse_command_line
    if arguments[:1] == [_FILE] and arguments[2:] == _OPTIONS:
        app.cli_config.IPKernelApp.connection_file = arguments[1]
        app.update_config(app.cli_config)
        app.argv = arguments
        app.parse_command_line = lambda _: None
    else:
        app.parse_command_line = lambda _: parse(arguments)


def _kept_streams() -> Callable[[object], None]:
    """Return a function that restores stdout and stderr if a cell replaced them by objects that cannot flush.

    The kernel flushes both streams after every cell. If that failed, the kernel would never reply.
    """
    usual = {name: getattr(sys, name) for name in ("stdout", "stderr")}

    def put_back(_result: object) -> None:
        for name, stream in usual.items():
            try:
                getattr(sys, name).flush()
            except Exception:  # a learner's stream may be anything
                setattr(sys, name, stream)

    return put_back


class _Client(AsyncKernelClient):
    """A variant of Jupyter's kernel client that does not wait 0.2 s for further output of a new kernel.

    Nothing is lost, because Papermill ignores output that belongs to none of its cells.
    """

    async def wait_for_ready(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as in Jupyter
        deadline = time.monotonic() + (timeout or float("inf"))
        while time.monotonic() < deadline:
            self.kernel_info()
            with suppress(Empty):
                await self.shell_channel.get_msg(timeout=1)
                await self.iopub_channel.get_msg(timeout=0.2)
                return
        raise RuntimeError(f"the kernel did not respond in {timeout:g} seconds")


class _Forked(LocalProvisioner):
    """A kernel provisioner that hands a forked process to Jupyter instead of starting a new one."""

    waiting: Waiting
    process: Any

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        self.waiting.start(cmd[3:])  # without python -m ipykernel_launcher
        self.process = self.waiting
        self.pid = self.pgid = self.waiting.pid
        return self.connection_info


def manager_class(waiting: Waiting) -> type[AsyncKernelManager]:
    """Return a Jupyter kernel manager class that uses the forked process as its kernel."""

    class Manager(AsyncKernelManager):
        def client(self, **kw: Any) -> Any:
            self.client_factory = _Client
            return super().client(**kw)

        async def _async_pre_start_kernel(self, **kw: Any) -> Any:
            self.transport = "ipc"
            self._kernel_spec = KernelSpec(
                argv=["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
                display_name="Python 3",
                language="python",
            )
            self.kernel_id = self.kernel_id or kw.pop("kernel_id", "1")
            self.provisioner = _Forked(kernel_id=self.kernel_id, kernel_spec=self._kernel_spec, parent=self)
            self.provisioner.waiting = waiting
            return await super()._async_pre_start_kernel(**kw)

    return Manager
