"""A workflow of DBOS that dies after its charge is recorded, and is started again with a new version.

The arguments are the change and the version: `inserted` puts a step of another name before the charge, `same-name` a
second charge. It needs DBOS and nothing of labkit.
"""

import os
import signal
import sys
from pathlib import Path

from dbos import DBOS, SetWorkflowID, error

CHANGE, VERSION = sys.argv[1:]
DBOS(
    config={
        "name": "orders",
        "application_version": "1",  # the same for both, so that the new version recovers old runs
        "executor_id": "local",
        "system_database_url": "sqlite:///dbos.db",
        "run_admin_server": False,
        "log_level": "CRITICAL",
    }
)


def take(message):
    with Path("accepted").open("a") as accepted:
        print(message, file=accepted)


@DBOS.step()
def charge(what):
    take(f"charge for the {what}")
    return f"{what} is paid"


@DBOS.step()
def voucher():
    take("voucher")
    return "a voucher"


@DBOS.step()
def mail(results):
    if VERSION == "old":
        os.kill(os.getpid(), signal.SIGKILL)
    take(f"mail: {', '.join(results)}")


@DBOS.workflow()
def order():
    results = []
    if VERSION == "new":
        results.append(voucher() if CHANGE == "inserted" else charge("wrapping"))
    mail([*results, charge("lamp")])


DBOS.launch()
with SetWorkflowID("run 7"):
    try:
        order()
        print("finished")
    except error.DBOSUnexpectedStepError as refused:
        print(f"{type(refused).__name__}: {refused}")
print(Path("accepted").read_text(), end="")
DBOS.destroy()
