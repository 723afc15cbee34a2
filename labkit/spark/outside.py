"""The external systems of the job `shop`: a list of prices that it looks up, and the mails that it has sent.

Both are files outside of the checkpoint, so no recovery undoes their changes. The module does not import Spark, because
the runner edits the prices and a notebook counts the mails.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from labkit.host import durable


class Mail(NamedTuple):
    """One mail of the job `shop` to a customer: the offset of the order, its item, and the price."""

    offset: int
    item: str
    price: int


@dataclass(frozen=True)
class Outside:
    """A directory outside of the checkpoint, with the price list of the job `shop` and the mails that the job sent."""

    folder: Path

    @property
    def prices(self) -> Path:
        """Return the path of the price list, a JSON object from item to price (an integer)."""
        return self.folder / "prices.json"

    @property
    def mails(self) -> Path:
        """Return the path of the file with the mails, one JSON object per line."""
        return self.folder / "mails.jsonl"

    def open(self, items: Iterable[str]) -> None:
        """Create the directory with the original prices of these items (`first_prices`)."""
        self.folder.mkdir()
        self._write(first_prices(items))

    def edit(self) -> dict[str, int]:
        """Raise every price by 1, and return the new price list as a dict from item to price."""
        raised = {item: price + 1 for item, price in self.read().items()}
        self._write(raised)
        return raised

    def read(self) -> dict[str, int]:
        """Return the current price list as a dict from item to price."""
        prices: dict[str, int] = json.loads(self.prices.read_text(encoding="utf-8"))
        return prices

    def send(self, mail: Mail) -> None:
        """Send one mail by appending it to the file of mails."""
        line = json.dumps(mail._asdict(), ensure_ascii=False) + "\n"
        # One single write at the end of the file, because several tasks send at the same time.
        file = os.open(self.mails, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)

    def sent(self) -> list[Mail]:
        """Return all mails that were sent, sorted by the offset of the order."""
        if not self.mails.exists():
            return []
        lines = self.mails.read_text(encoding="utf-8").splitlines()
        return sorted(Mail(**json.loads(line)) for line in lines)

    def _write(self, prices: dict[str, int]) -> None:
        durable.replace(self.prices, json.dumps(prices, ensure_ascii=False))


def first_prices(items: Iterable[str]) -> dict[str, int]:
    """Return the original price list as a dict: 10 for the first distinct item, 20 for the second, and so on."""
    return {item: 10 * number for number, item in enumerate(dict.fromkeys(items), start=1)}
