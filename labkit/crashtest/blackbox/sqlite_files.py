"""Replace what chance writes into the files of SQLite, so that equal states of a database have equal bytes.

SQLite protects its logs (the rollback journal and the write-ahead log) by random numbers and by checksums that depend
on them. Only whether these fit matters: a record that does not fit is ignored. So each number and checksum is replaced
by a word that says whether it fits. Counters of transactions become zero, because they grow with each start that writes
anything, so that new states would never end.

Source: https://sqlite.org/fileformat.html, sections 1.3 (database), 3 (rollback journal) and 4 (write-ahead log).
"""

import struct
from collections.abc import Iterator

_DATABASE = b"SQLite format 3\0"
_JOURNAL = bytes.fromhex("d9d505f920a163d7")
_UNSYNCED = bytes(12)
"""How a header of a journal begins until it is synced: without its magic number and the number of its records."""
_HEADER = 28
_WAL = {0x377F0682: "<", 0x377F0683: ">"}
"""The magic numbers of a write-ahead log, with the byte order of its checksums."""
_SIZES = frozenset(2**power for power in range(9, 17))
"""The possible sizes of pages and sectors, in bytes."""
_FITS, _STRANGE = b"fits", b"not."


def without_chance(body: bytes) -> bytes:
    """Return the bytes of a file without what chance or a counter decides; unchanged unless SQLite wrote the file."""
    if body.startswith(_DATABASE):
        return _page(1, body)
    if _is_header(body, 0):
        return b"".join(_journal(body))
    if len(body) >= 32 and struct.unpack_from(">I", body)[0] in _WAL:
        return b"".join(_wal(body))
    return body


def _page(number: int, page: bytes) -> bytes:
    """Return a page of a database; the first one has the counter of transactions, at two places."""
    return page[:24] + bytes(4) + page[28:92] + bytes(4) + page[96:] if number == 1 and len(page) >= 96 else page


def _is_header(body: bytes, place: int) -> bool:
    if not body.startswith((_JOURNAL, _UNSYNCED), place) or len(body) < place + _HEADER:
        return False
    sector, size = struct.unpack_from(">2I", body, place + 20)
    return sector in _SIZES and size in _SIZES


def _journal(body: bytes) -> Iterator[bytes]:
    """Yield a rollback journal in parts: a header with a random number (nonce), and old pages with their checksums.

    A journal may have several headers, each at the beginning of a sector. What follows the last record is unchanged.
    """
    place = 0
    while _is_header(body, place):
        nonce, _, sector, size = struct.unpack_from(">4I", body, place + 12)
        yield body[place : place + 12] + body[place + 16 : place + sector]
        place += sector
        while len(body) >= place + size + 8 and not _is_header(body, -(-place // sector) * sector):
            number, page = struct.unpack_from(">I", body, place)[0], body[place + 4 : place + 4 + size]
            [checksum] = struct.unpack_from(">I", body, place + 4 + size)
            fits = checksum == (nonce + sum(page[size - 200 : 0 : -200])) % 2**32
            yield body[place : place + 4] + _page(number, page) + (_FITS if fits else _STRANGE)
            place += size + 8
        if _is_header(body, -(-place // sector) * sector):
            place = -(-place // sector) * sector
    yield body[place:]


def _wal(body: bytes) -> Iterator[bytes]:
    """Yield a write-ahead log in parts: its header without numbers that grow, and each frame with a new page.

    The random numbers (salts) of a frame fit if they are those of the header. Its checksum also covers all frames
    before it.
    """
    magic, _, size = struct.unpack_from(">3I", body)
    order, salts = _WAL[magic], body[16:24]
    checked = _checksum(order, body[:24], (0, 0))
    yield body[:12] + (_FITS if struct.pack(">2I", *checked) == body[24:32] else _STRANGE)
    place = 32
    while size in _SIZES and len(body) >= place + 24:
        head, page = body[place : place + 24], body[place + 24 : place + 24 + size]
        checked = _checksum(order, head[:8] + page, checked) if len(page) == size else (0, 0)
        fits = head[8:16] == salts, struct.pack(">2I", *checked) == head[16:24]
        yield head[:8] + b"".join(_FITS if each else _STRANGE for each in fits)
        yield _page(struct.unpack_from(">I", head)[0], page)
        place += 24 + size
    yield body[place:]


def _checksum(order: str, text: bytes, begun: tuple[int, int]) -> tuple[int, int]:
    one, two = begun
    words = struct.unpack(f"{order}{len(text) // 4}I", text)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) % 2**32
        two = (two + second + one) % 2**32
    return one, two
