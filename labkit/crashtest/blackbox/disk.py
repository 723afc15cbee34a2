"""A model of folders on a disk: the names and contents that programs see, and those that have already reached the disk.

The contents of a file reach the disk when the file is synced. The creation, rename or removal of a name reaches the
disk when the folder is synced. Until then a loss of power may undo each of them. POSIX guarantees no more; LazyFS
(Ramos et al., PVLDB 17(11), 2024) and ALICE (Pillai et al., OSDI 2014) use the same rules.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from labkit.crashtest.blackbox.durability import is_rebuilt
from labkit.host.syscalls.calls import Call, CallKind

ALL_LOST, NAMES_KEPT, CONTENTS_KEPT = "all lost", "names kept", "contents kept"
NEWEST_KEPT, TORN = "newest kept", "torn"
EXTREMES = {
    ALL_LOST: "everything that was not synced is lost",
    NAMES_KEPT: "names reached the disk, and contents that were not synced did not",
    CONTENTS_KEPT: "contents reached the disk, and names in folders that were not synced did not",
    NEWEST_KEPT: "only the newest of all that was not synced reached the disk",
    TORN: "everything reached the disk, but only half of the newest write that was not synced",
}
"""The extreme states that the test tries at each point, by name; the text says what reached the disk."""

Content = bytes | Path
"""The contents of a file in the model: its bytes, or the path of a copy of the file."""


def bytes_of(content: Content) -> bytes:
    return content if isinstance(content, bytes) else content.read_bytes()


class Written(NamedTuple):
    """A write that no sync has made durable yet, so that a loss of power may undo it."""

    number: int
    """The running number of the system call that wrote, among the recorded calls of the run."""
    offset: int
    size: int
    before: Content

    def half(self, now: Content) -> bytes:
        """Return what the file contains if only the first half of this write reached the disk.

        `now` is the content of the file with the whole write.
        """
        before, middle = bytes_of(self.before), self.offset + self.size // 2
        head = before[: self.offset].ljust(self.offset, b"\0")
        return head + bytes_of(now)[self.offset : middle] + before[middle:]


@dataclass(eq=False)
class File:
    """A file: the bytes that programs see in it, and the bytes on the disk."""

    now: Content = b""
    on_disk: Content = b""
    newest: "Written | None" = None
    """The latest write that has not reached the disk."""


@dataclass(eq=False)
class Link:
    """A symbolic link in the disk model."""

    to: str


@dataclass(eq=False)
class Folder:
    """A folder: the names that programs see now, and the names that have reached the disk."""

    now: dict[str, "Node"] = field(default_factory=dict)
    on_disk: dict[str, "Node"] = field(default_factory=dict)


Node = File | Link | Folder


class Entry(NamedTuple):
    """A change of one name in a folder; without a `node`, the name is removed."""

    folder: Folder
    name: str
    node: Node | None


Naming = tuple[Entry, ...]
"""The creation, removal or rename of a file. A power cut leaves either the whole change or nothing of it."""


class NotModelled(Exception):
    """Raised for a system call if the model does not know what a power cut leaves of its effect."""


def _unseen(change: str, created: str = "this file") -> NotModelled:
    return NotModelled(
        f"labkit did not see how {created} was created, so it cannot tell what a power cut leaves of {change}"
    )


Look = Callable[[Folder], Mapping[str, Node]]
"""A function that chooses which names of a folder count: those now, or those on the disk."""
Read = Callable[[File], Content]
"""A function that chooses which contents of a file count: those now, or those on the disk."""

_now = attrgetter("now")
_on_disk = attrgetter("on_disk")


class Disk:
    """A model of several folders: what programs see there, and what has reached the disk and survives a power cut."""

    def __init__(self, copies: Mapping[Path, Path]) -> None:
        """Fill the model from `copies`, a copy of each folder before the run; all their content counts as synced."""
        self.roots = {folder: _load(copy) for folder, copy in copies.items()}
        self._disks = {folder.stat().st_dev for folder in copies if folder.exists()}
        self.on_its_way: list[Naming] = []
        """The changes of names that have not reached the disk, oldest first."""
        self.not_modelled: dict[str, list[str]] = {}

    def take(self, call: Call, brought: Content | None = None) -> None:
        """Apply a system call to the model, or note that the model does not know the call's consequences.

        `brought` is the content of a file that the call moves or links from outside into the folders.
        """
        try:
            self._take(call, brought)
        except NotModelled as why:
            paths = self.not_modelled.setdefault(str(why), [])
            paths.append(call.target or call.path)

    def _take(self, call: Call, brought: Content | None) -> None:
        if call.kind is CallKind.SYNC:
            self._sync(call)
        elif call.kind in (CallKind.WRITE, CallKind.TRUNCATE):
            self._write(call)
        elif call.kind is CallKind.CREATE:
            self._name(self._entry(call.path, File()))
        elif call.kind is CallKind.MKDIR:
            self._name(self._entry(call.path, Folder()))
        elif call.kind is CallKind.UNLINK:
            self._name(self._entry(call.path, None))
        elif call.kind is CallKind.LINK:
            self._link(call, brought)
        elif call.kind is CallKind.RENAME:
            self._rename(call, brought)

    # Contents.

    def _write(self, call: Call) -> None:
        file = self.node(call.path)
        if not isinstance(file, File):
            raise _unseen("a write to it")
        before = file.now
        file.now = _changed(before, call)
        if call.synced:
            file.on_disk = _changed(file.on_disk, call)
        elif call.kind is CallKind.WRITE:
            file.newest = Written(call.number, call.offset, call.size, before)

    def _sync(self, call: Call) -> None:
        if call.name == "syncfs" and len(self._disks) > 1:
            raise NotModelled(
                "the watched folders lie on several file systems, and labkit does not know which of them syncfs synced"
            )
        if call.name in ("sync", "syncfs"):
            for file in self.files():
                _settle(file)
            self._reach_the_disk(None)
        elif isinstance(node := self.node(call.path), File):
            _settle(node)
        elif isinstance(node, Folder):
            self._reach_the_disk(node)

    # Names.

    def _name(self, *entries: Entry) -> None:
        for entry in entries:
            _put(entry.folder.now, entry)
        self.on_its_way.append(entries)

    def _link(self, call: Call, brought: Content | None) -> None:
        node: Node | None = self.node(call.path)
        if call.name.startswith("symlink"):
            node = Link(call.path)
        elif node is None and brought is not None:
            node = File(brought, brought)
        if node is None:
            raise _unseen("a link to it")
        self._name(self._entry(call.target, node))

    def _rename(self, call: Call, brought: Content | None) -> None:
        node = self.node(call.path)
        if node is None and brought is not None:
            node = File(brought, brought)
        moved_out = self._entry(call.path, None) if self._is_inside(call.path) else None
        if not self._is_inside(call.target):
            if moved_out is not None:
                self._name(moved_out)
            return
        if node is None:
            raise _unseen("its new name")
        replaced = self.node(call.target)
        moved_in = self._entry(call.target, node)
        if call.name == "renameat2(RENAME_EXCHANGE)" and moved_out is not None:
            moved_out = moved_out._replace(node=replaced)
        if replaced is not node or moved_out is None:  # two names of one file: nothing happens
            self._name(*([moved_out] if moved_out else []), moved_in)

    def _reach_the_disk(self, folder: Folder | None) -> None:
        pending = []
        for naming in self.on_its_way:
            if folder is None or any(each.folder is folder for each in naming):
                for entry in naming:
                    _put(entry.folder.on_disk, entry)
            else:
                pending.append(naming)
        self.on_its_way = pending

    # Looking.

    def node(self, path: str) -> Node | None:
        """Return the file, link or folder that programs see at a path; None if nothing is there."""
        for root, top in self.roots.items():
            if PurePosixPath(path).is_relative_to(root):
                node: Node | None = top
                for part in PurePosixPath(path).relative_to(root).parts:
                    node = node.now.get(part) if isinstance(node, Folder) else None
                return node
        return None

    def files(self) -> Iterator[File]:
        """Yield every file of the model that has a name: either a name that programs see, or one on the disk."""
        seen: set[Node] = set()
        waiting: list[Node] = list(self.roots.values())
        for naming in self.on_its_way:
            waiting += [each.node for each in naming if each.node is not None]
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            if isinstance(node, Folder):
                waiting += [*node.now.values(), *node.on_disk.values()]
            elif isinstance(node, File):
                yield node

    def trees(self, names: Look = _now, contents: Read = _now) -> "tuple[Tree, ...]":
        """Return the contents of each folder, without the shared-memory files of databases.

        `names` and `contents` choose the view: what programs see now (the default), or what is on the disk.
        """
        every = (_tree(root, names, contents) for root in self.roots.values())
        return tuple({name: content for name, content in each.items() if not is_rebuilt(name)} for each in every)

    def extremes(self) -> "Iterator[tuple[str, tuple[Tree, ...]]]":
        """Yield the extreme states that a power cut may leave, such as the one that loses all that was not synced.

        Each is a pair: the state's name, one of the keys of `EXTREMES`, and the contents of each folder.
        """
        yield ALL_LOST, self.trees(_on_disk, _on_disk)
        yield NAMES_KEPT, self.trees(_now, _on_disk)
        yield CONTENTS_KEPT, self.trees(_on_disk, _now)
        if self.on_its_way:
            newest = self.on_its_way[-1]

            def names(folder: Folder) -> Mapping[str, Node]:
                visible = dict(folder.on_disk)
                for entry in newest:
                    if entry.folder is folder:
                        _put(visible, entry)
                return visible

            brought = {id(each.node) for each in newest}
            yield NEWEST_KEPT, self.trees(names, lambda file: file.now if id(file) in brought else file.on_disk)
        written = {each.newest.number: each for each in self.files() if each.newest and each.newest.size > 1}
        torn = written[max(written)] if written else None
        if torn is not None and torn.newest is not None:
            half = torn.newest.half(torn.now)
            yield TORN, self.trees(_now, lambda file: half if file is torn else file.now)

    def _is_inside(self, path: str) -> bool:
        return any(PurePosixPath(path).is_relative_to(root) for root in self.roots)

    def _entry(self, path: str, node: Node | None) -> Entry:
        parent, name = PurePosixPath(path).parent, PurePosixPath(path).name
        if Path(path) in self.roots:
            raise NotModelled(
                "the tested command makes or removes a watched folder, and labkit cannot model that; let --reset keep "
                "the folder and empty it"
            )
        folder = self.node(str(parent))
        if not isinstance(folder, Folder):
            raise _unseen("a name in it", "this file's folder")
        return Entry(folder, name, node)


def _settle(file: File) -> None:
    file.on_disk, file.newest = file.now, None


def _put(names: dict[str, Node], entry: Entry) -> None:
    if entry.node is None:
        names.pop(entry.name, None)
    else:
        names[entry.name] = entry.node


def _changed(before: Content, call: Call) -> bytes:
    content = bytes_of(before)
    if call.kind is CallKind.TRUNCATE:
        if call.size < 0:
            raise NotModelled(
                "labkit cannot tell what a power cut leaves after fallocate moved or cleared a part of a file"
            )
        return content[: call.size].ljust(call.size, b"\0")
    if call.content is None or call.offset < 0:
        raise NotModelled(
            "labkit could not read the bytes of a write (as with splice), so it cannot tell what a power cut leaves"
        )
    head = content[: call.offset].ljust(call.offset, b"\0")
    return head + call.content + content[call.offset + len(call.content) :]


def _load(copy: Path) -> Folder:
    folder = Folder()
    # A folder that the command has not made yet holds nothing.
    for path in sorted(copy.iterdir()) if copy.is_dir() else ():
        node: Node
        if path.is_symlink():
            node = Link(str(path.readlink()))
        elif path.is_dir():
            node = _load(path)
        elif path.is_file():
            node = File(path, path)
        else:
            continue  # a pipe or a socket holds nothing that could be lost
        folder.now[path.name] = folder.on_disk[path.name] = node
    return folder


# Folders of the model as flat mappings: compare, describe and build them on a real disk.

Tree = Mapping[str, Content | Link | None]
"""Everything below a folder: the contents or link at each path relative to the folder. None stands for a folder."""


def _tree(folder: Folder, names: Look, contents: Read) -> Tree:
    entries: dict[str, Content | Link | None] = {}
    for name, node in names(folder).items():
        if isinstance(node, Folder):
            entries[name] = None
            entries |= {f"{name}/{inner}": content for inner, content in _tree(node, names, contents).items()}
        else:
            entries[name] = contents(node) if isinstance(node, File) else node
    return entries


def same(one: Content | Link | None, other: Content | Link | None) -> bool:
    """Return whether two entries of a folder are of the same kind, with the same bytes or the same link target."""
    if isinstance(one, Link) and isinstance(other, Link):
        return one.to == other.to
    if isinstance(one, bytes | Path) and isinstance(other, bytes | Path):
        return one == other or bytes_of(one) == bytes_of(other)
    return one is other is None


def lost(now: Sequence[Tree], then: Sequence[Tree]) -> str:
    """Return, as text, how the folders after a power cut (`then`) differ from what programs saw before it (`now`)."""
    differences: dict[str, list[str]] = {"not there": [], "there again": [], "empty": [], "not as written": []}
    for own, other in zip(now, then, strict=True):
        changed = [name for name in own if name in other and not same(own[name], other[name])]
        differences["not there"] += [name for name in own if name not in other]
        differences["there again"] += [name for name in other if name not in own]
        differences["empty"] += [name for name in changed if other[name] == b""]
        differences["not as written"] += [name for name in changed if other[name] != b""]
    return "; ".join(
        f"{', '.join(names[:4])}{' ...' if names[4:] else ''} {what}" for what, names in differences.items() if names
    )


def build(folder: Path, wanted: Tree) -> None:
    """Make the contents of the real folder equal to `wanted`; files that are equal already stay untouched."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.rglob("*"), reverse=True):  # entries of a folder come before the folder
        name = str(path.relative_to(folder))
        if name not in wanted or not _is_of_kind(path, wanted[name]):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for name, content in sorted(wanted.items()):
        path = folder / name
        if content is None:
            path.mkdir(exist_ok=True)
        elif isinstance(content, Link):
            if not path.is_symlink() or str(path.readlink()) != content.to:
                path.unlink(missing_ok=True)
                path.symlink_to(content.to)
        elif not path.exists() or path.read_bytes() != bytes_of(content):
            path.write_bytes(bytes_of(content))
            if isinstance(content, Path):
                shutil.copymode(content, path)


def _is_of_kind(path: Path, content: Content | Link | None) -> bool:
    if isinstance(content, Link) or path.is_symlink():
        return isinstance(content, Link) and path.is_symlink()
    return path.is_dir() == (content is None)
