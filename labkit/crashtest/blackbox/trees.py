"""Folders of the disk model as flat mappings of paths to contents: compare, describe and build them on a real disk."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from labkit.crashtest.blackbox.disk import Content, File, Folder, Link, Node, bytes_of

Tree = Mapping[str, Content | Link | None]
"""Everything below a folder: the contents or link at each path relative to the folder. None stands for a folder."""

Look = Callable[[Folder], Mapping[str, Node]]
"""A function that chooses which names of a folder count: those now, or those on the disk."""
Read = Callable[[File], Content]
"""A function that chooses which contents of a file count: those now, or those on the disk."""


def now_named(folder: Folder) -> Mapping[str, Node]:
    """Return the names of a folder that programs see now, whether or not they have reached the disk."""
    return folder.now


def tree(folder: Folder, names: Look, contents: Read = lambda file: file.now) -> Tree:
    """Return everything below a folder of the disk model, with the names and contents that the two functions choose."""
    entries: dict[str, Content | Link | None] = {}
    for name, node in names(folder).items():
        if isinstance(node, Folder):
            entries[name] = None
            below = tree(node, names, contents)
            entries |= {f"{name}/{inner}": content for inner, content in below.items()}
        else:
            entries[name] = contents(node) if isinstance(node, File) else node
    return entries


def same(one: Content | Link | None, other: Content | Link | None) -> bool:
    """Return whether two entries (files, links, or None for a folder) have the same kind, and the same bytes or link
    target.
    """
    if isinstance(one, Link) and isinstance(other, Link):
        return one.to == other.to
    if isinstance(one, bytes | Path) and isinstance(other, bytes | Path):
        return one == other or bytes_of(one) == bytes_of(other)
    return one is other is None


def alike(one: Sequence[Tree], other: Sequence[Tree]) -> bool:
    """Return whether several folders have the same trees, compared pairwise in order."""
    return all(
        first.keys() == second.keys() and all(same(first[name], second[name]) for name in first)
        for first, second in zip(one, other, strict=True)
    )


def lost(now: Sequence[Tree], then: Sequence[Tree]) -> str:
    """Return in words how the folders after a loss of power (`then`) differ from what programs saw before (`now`)."""
    words = []
    for own, other in zip(now, then, strict=True):
        missing = [name for name in own if name not in other]
        back = [name for name in other if name not in own]
        changed = [name for name in own if name in other and not same(own[name], other[name])]
        empty = [name for name in changed if other[name] == b""]
        rest = [name for name in changed if name not in empty]
        differences = {"not there": missing, "there again": back, "empty": empty, "not as written": rest}
        words += [
            f"{', '.join(names[:4])}{' ...' if names[4:] else ''} {what}"
            for what, names in differences.items()
            if names
        ]
    return "; ".join(words)


def build(folder: Path, wanted: Tree) -> None:
    """Make a real folder equal to a tree. Files that are already equal stay untouched and keep their permissions."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.rglob("*"), reverse=True):  # entries of a folder come before the folder
        name = str(path.relative_to(folder))
        if name not in wanted or _kind(path) is not _kind_of(wanted[name]):
            _remove(path)
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


def _kind(path: Path) -> type[Folder | File | Link]:
    if path.is_symlink():
        return Link
    return Folder if path.is_dir() else File


def _kind_of(content: Content | Link | None) -> type[Folder | File | Link]:
    if isinstance(content, Link):
        return Link
    return Folder if content is None else File


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
