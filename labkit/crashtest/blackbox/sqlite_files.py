"""Replace what chance writes into the files of SQLite, so that equal states of a database have equal bytes.

SQLite protects its logs (the rollback journal and the write-ahead log) by random numbers and by checksums that depend
on them. `without_chance` only says whether each fits. SQLite also writes much into its logs that it never reads after a
crash. `meaning` says what SQLite would restore from a log when it opens the database, and whether the log has anything
else; a program that looks at a log's length may tell logs of equal meaning apart. In both, counters of transactions are
set to zero: they grow with each start that writes, so otherwise there would always be new states.

Sources: https://sqlite.org/fileformat.html, sections 1.3 (database), 3 (rollback journal) and 4 (write-ahead log);
`hasHotJournal` and `pager_playback` in pager.c, `walIndexRecover` in wal.c.
"""

import struct
from collections.abc import Iterator

JOURNAL, LOG = "-journal", "-wal"
"""The ends of the names of a rollback journal and a write-ahead log; the name of the database comes before them."""
_DATABASE = b"SQLite format 3\0"
_JOURNAL = bytes.fromhex("d9d505f920a163d7")
_UNSYNCED = bytes(12)
"""How a header of a journal begins until it is synced: without its magic number and the number of its records."""
_ALL = 0xFFFFFFFF
"""The number of records in a header that is never synced; it stands for all records that follow."""
_HEADER = 28
_WAL = {0x377F0682: "<", 0x377F0683: ">"}
"""The magic numbers of a write-ahead log, with the byte order of its checksums."""
_MOST_CHECKED = 2**20
"""The largest write-ahead log in bytes whose checksums are computed; a larger one is described by its own bytes."""
_SIZES = frozenset(2**power for power in range(9, 17))
"""The possible sizes of pages and sectors, in bytes."""
_LOCKED_BYTE = 2**30
"""The place in a database whose page SQLite never stores, because its locks lie there."""
_FITS, _STRANGE = b"fits", b"not."
_MORE = b" and more"


def without_chance(body: bytes) -> bytes:
    """Return the bytes of a file of SQLite without its random numbers and counters; other files are unchanged."""
    if is_database(body):
        return _page(1, body)
    if _is_header(body, 0):
        return b"".join(_journal(body))
    return b"".join(_whole_wal(body)) if _is_wal(body) else body


def is_database(body: bytes) -> bool:
    """Return whether `body`, the content of a file, is an SQLite database with at least one page, so not empty."""
    return body.startswith(_DATABASE)


def _is_wal(body: bytes) -> bool:
    return 32 <= len(body) <= _MOST_CHECKED and struct.unpack_from(">I", body)[0] in _WAL


def meaning(body: bytes, database: bytes | None = None) -> bytes:
    """Return a description of what SQLite would restore from a log; for other files, the result of `without_chance`.

    `database` has the bytes of the database to which a rollback journal belongs; None if `body` is no such journal.
    """
    if database is not None and _is_rollback_journal(body, database):
        return b"".join(_rollback(body, database))
    return b"".join(_wal(body)) if _is_wal(body) else without_chance(body)


def with_log(database: bytes, log: bytes) -> bytes:
    """Return the bytes of a database with the pages that SQLite would take from its write-ahead log.

    These are the pages of the transactions that are committed in the log, without counters of transactions. If the log
    is too large to be checked, the result is the database followed by the log.
    """
    if len(log) > _MOST_CHECKED:
        return database + log
    if not _is_wal(log) or not _fits_header(log):
        return database
    size, count, pages = struct.unpack_from(">I", log, 8)[0], 0, dict[int, bytes]()
    for transaction in _committed(log):
        for head, page in transaction:
            number, count = struct.unpack_from(">2I", head)
            pages[number] = page
    every = (pages.get(number, database[(number - 1) * size : number * size]) for number in range(1, count + 1))
    return b"".join(every) if count else database


def _committed(log: bytes) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yield each committed transaction of a write-ahead log: the head and the page of each of its frames.

    SQLite reads the frames up to the first invalid one, and ignores those of them that follow the last commit.
    """
    begun = list[tuple[bytes, bytes]]()
    for head, page, fits in _frames(log):
        number, pages = struct.unpack_from(">2I", head)
        if fits != (True, True) or not number:
            return
        begun.append((head, page))
        if pages:  # the last frame of a transaction has the size of the database
            yield begun
            begun = []


def _page(number: int, page: bytes) -> bytes:
    """Return a page of a database; in page 1, the two places with the counter of transactions are set to zero."""
    return page[:24] + bytes(4) + page[28:92] + bytes(4) + page[96:] if number == 1 and len(page) >= 96 else page


def _is_rollback_journal(body: bytes, database: bytes) -> bool:
    """Return whether SQLite may have written both files; its journals are empty, or begin with a magic number or 0."""
    if not database:  # until its first transaction ends; other programs make empty files as well
        return _is_header(body, 0)
    return database.startswith(_DATABASE) and (not body or not body[0] or body.startswith(_JOURNAL))


def _is_header(body: bytes, place: int) -> bool:
    if not body.startswith((_JOURNAL, _UNSYNCED), place) or len(body) < place + _HEADER:
        return False
    sector, size = struct.unpack_from(">2I", body, place + 20)
    return sector in _SIZES and size in _SIZES


def _rollback(body: bytes, database: bytes) -> Iterator[bytes]:
    """Yield what SQLite restores from a rollback journal: the old pages that differ from those of the database.

    SQLite only looks at a journal if the database has a page and the journal's first byte is not zero (it is *hot*).
    A journal that ends with the name of a super-journal belongs to a transaction over several databases. Its
    parts are those that `_journal` yields.
    """
    if not database or not body or not body[0]:
        yield b"journal that SQLite ignores" + (_MORE if body else b"")
        return
    if body.endswith(_JOURNAL):
        yield from _journal(body)
        return
    yield b"hot journal"
    if not _is_header(body, 0):
        return
    pages, size, old = _records(body)
    yield _MORE if pages else b""
    if old * size != len(database):
        yield b" %d pages of %d bytes" % (old, size)
    for number, page in sorted(pages.items()):
        if number <= old and _page(number, page) != _page(number, database[(number - 1) * size : number * size]):
            yield b" page %d " % number + _page(number, page)


def _records(body: bytes) -> tuple[dict[int, bytes], int, int]:
    """Return the contents of a hot journal: its old pages by number, a page's size, and the old number of pages."""
    place, pages = 0, dict[int, bytes]()
    size, old = struct.unpack_from(">I", body, 24)[0], struct.unpack_from(">I", body, 16)[0]
    while body.startswith(_JOURNAL, place) and _is_header(body, place):
        records, nonce, _, sector = struct.unpack_from(">4I", body, place + 8)
        place += sector
        while records and len(body) >= place + size + 8:
            number, page = struct.unpack_from(">I", body, place)[0], body[place + 4 : place + 4 + size]
            fits = struct.unpack_from(">I", body, place + 4 + size)[0] == _sum(nonce, page)
            if number in (0, _LOCKED_BYTE // size + 1) or not (fits or number > old or number in pages):
                return pages, size, old
            pages.setdefault(number, page)
            place += size + 8
            records -= records != _ALL
        place = -(-place // sector) * sector
    return pages, size, old


def _sum(nonce: int, page: bytes) -> int:
    return (nonce + sum(page[len(page) - 200 : 0 : -200])) % 2**32


def _journal(body: bytes) -> Iterator[bytes]:
    """Yield a rollback journal in parts: each header without its random number (nonce), and each old page.

    A mark after each page replaces its checksum, and says whether the checksum is right. A journal may have several
    headers, each at the beginning of a sector. The bytes after the last record are yielded unchanged.
    """
    place = 0
    while _is_header(body, place):
        nonce, _, sector, size = struct.unpack_from(">4I", body, place + 12)
        yield body[place : place + 12] + body[place + 16 : place + sector]
        place += sector
        while len(body) >= place + size + 8 and not _is_header(body, -(-place // sector) * sector):
            number, page = struct.unpack_from(">I", body, place)[0], body[place + 4 : place + 4 + size]
            fits = struct.unpack_from(">I", body, place + 4 + size)[0] == _sum(nonce, page)
            yield body[place : place + 4] + _page(number, page) + (_FITS if fits else _STRANGE)
            place += size + 8
        if _is_header(body, -(-place // sector) * sector):
            place = -(-place // sector) * sector
    yield body[place:]


def _wal(body: bytes) -> Iterator[bytes]:
    """Yield a write-ahead log in parts: its format's version, its page size, and each frame up to the last commit."""
    if not _fits_header(body):
        yield b"log that SQLite ignores"
        return
    yield b"log %d %d" % struct.unpack_from(">2I", body, 4)
    counted = 32
    for transaction in _committed(body):
        for head, page in transaction:
            yield head[:8] + page
            counted += len(head) + len(page)
    yield _MORE if len(body) > counted else b""


def _whole_wal(body: bytes) -> Iterator[bytes]:
    """Yield a write-ahead log in parts: its header and all frames, without counters, random numbers and checksums."""
    yield body[:12] + (_FITS if _fits_header(body) else _STRANGE)
    place = 32
    for head, page, fits in _frames(body):
        yield head[:8] + b"".join(_FITS if each else _STRANGE for each in fits)
        yield page
        place += len(head) + len(page)
    yield body[place:]


def _fits_header(body: bytes) -> bool:
    magic, _, size = struct.unpack_from(">3I", body)
    return size in _SIZES and struct.pack(">2I", *_checksum(_WAL[magic], body[:24], (0, 0))) == body[24:32]


def _frames(body: bytes) -> Iterator[tuple[bytes, bytes, tuple[bool, bool]]]:
    """Yield each frame of a write-ahead log, even those that SQLite ignores: its head, its page, and two flags.

    The flags say whether the frame's random numbers (salts) are those of the log's header, and whether its checksum is
    right. The checksum is computed over this frame and all frames before it. The last page may be cut.
    """
    magic, _, size = struct.unpack_from(">3I", body)
    order, salts, place = _WAL[magic], body[16:24], 32
    checked = _checksum(order, body[:24], (0, 0))
    while size in _SIZES and len(body) >= place + 24:
        head, page = body[place : place + 24], body[place + 24 : place + 24 + size]
        is_whole = len(page) == size
        checked = _checksum(order, head[:8] + page, checked) if is_whole else checked
        valid = head[8:16] == salts, is_whole and struct.pack(">2I", *checked) == head[16:24]
        yield head, _page(struct.unpack_from(">I", head)[0], page), valid
        place += 24 + size


def _checksum(order: str, text: bytes, begun: tuple[int, int]) -> tuple[int, int]:
    one, two = begun
    words = struct.unpack(f"{order}{len(text) // 4}I", text)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) % 2**32
        two = (two + second + one) % 2**32
    return one, two
