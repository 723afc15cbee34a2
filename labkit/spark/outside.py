"""What lies outside of the job `shop`: a list of prices, which it looks up, and a post office, which it sends mails to.

Both are files beside the checkpoint, and neither knows of batches, transactions or crashes. This module must not
import Spark: the runner edits the prices, and the notebook counts the mails.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from labkit.host import durable


class Mail(NamedTuple):
    """One mail that was sent: for which order, at which price."""

    offset: int
    item: str
    price: int


@dataclass(frozen=True)
class Outside:
    """The prices and the mails of one run, in a folder that its checkpoint knows nothing of."""

    folder: Path

    @property
    def prices(self) -> Path:
        """The list of prices: one JSON object, items and whole numbers."""
        return self.folder / "prices.json"

    @property
    def mails(self) -> Path:
        """The post office's book: one line for every mail that was sent."""
        return self.folder / "mails.jsonl"

    def open(self, items: Iterable[str]) -> None:
        """Makes the folder, with the first prices of these items in it."""
        self.folder.mkdir()
        self._write(first_prices(items))

    def edit(self) -> dict[str, int]:
        """Makes every item dearer by 1, as somebody does who edits the file; gives the new prices."""
        dearer = {item: price + 1 for item, price in self.read().items()}
        self._write(dearer)
        return dearer

    def read(self) -> dict[str, int]:
        """The prices as they are now."""
        prices: dict[str, int] = json.loads(self.prices.read_text(encoding="utf-8"))
        return prices

    def send(self, mail: Mail) -> None:
        """Sends one mail. Nobody can take it back."""
        line = json.dumps(mail._asdict(), ensure_ascii=False) + "\n"
        # One write at the end of the file: several tasks send at once.
        file = os.open(self.mails, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)

    def sent(self) -> list[Mail]:
        """Every mail that was sent, in order of the orders and not of time: tasks run side by side."""
        if not self.mails.exists():
            return []
        lines = self.mails.read_text(encoding="utf-8").splitlines()
        return sorted(Mail(**json.loads(line)) for line in lines)

    def _write(self, prices: dict[str, int]) -> None:
        durable.replace(self.prices, json.dumps(prices, ensure_ascii=False))


def first_prices(items: Iterable[str]) -> dict[str, int]:
    """The prices before anybody edits them: 10, 20, 30 and so on, in the order in which the items first come."""
    return {item: 10 * number for number, item in enumerate(dict.fromkeys(items), start=1)}
