"""The world outside of the job `shop`: a list of prices that it looks up, and a post office that receives its mails.

Both are files beside the checkpoint, and neither knows of batches, transactions or crashes. The module does not
import Spark, because the runner edits the prices and the notebook counts the mails.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from labkit.host import durable


class Mail(NamedTuple):
    """One mail that the shop sent: its order, and the price that it states."""

    offset: int
    item: str
    price: int


@dataclass(frozen=True)
class Outside:
    """The outside world of one run: the prices that its job looks up and the mails that it sends, in a folder of files.

    The folder is not part of the checkpoint, so a restart of the job does not reset it.
    """

    folder: Path

    @property
    def prices(self) -> Path:
        """Return the path of the list of prices: one JSON object from items to whole numbers."""
        return self.folder / "prices.json"

    @property
    def mails(self) -> Path:
        """Return the path of the file with one line for every mail sent."""
        return self.folder / "mails.jsonl"

    def open(self, items: Iterable[str]) -> None:
        """Create the folder with the first prices of these items."""
        self.folder.mkdir()
        self._write(first_prices(items))

    def edit(self) -> dict[str, int]:
        """Raise every price by 1, as somebody would who edits the file, and return the new prices."""
        dearer = {item: price + 1 for item, price in self.read().items()}
        self._write(dearer)
        return dearer

    def read(self) -> dict[str, int]:
        """Return the current prices."""
        prices: dict[str, int] = json.loads(self.prices.read_text(encoding="utf-8"))
        return prices

    def send(self, mail: Mail) -> None:
        """Send one mail. Nobody can take it back."""
        line = json.dumps(mail._asdict(), ensure_ascii=False) + "\n"
        # One single write at the end of the file, because several tasks send at the same time.
        file = os.open(self.mails, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)

    def sent(self) -> list[Mail]:
        """Return all mails, sorted by order rather than time, because tasks run concurrently."""
        if not self.mails.exists():
            return []
        lines = self.mails.read_text(encoding="utf-8").splitlines()
        return sorted(Mail(**json.loads(line)) for line in lines)

    def _write(self, prices: dict[str, int]) -> None:
        durable.replace(self.prices, json.dumps(prices, ensure_ascii=False))


def first_prices(items: Iterable[str]) -> dict[str, int]:
    """Return the prices before any edit: 10, 20, 30 and so on, by the first occurrence of each item."""
    return {item: 10 * number for number, item in enumerate(dict.fromkeys(items), start=1)}
