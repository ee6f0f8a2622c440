"""A file system that remembers what was synced, so that the power can be cut after any effect.

Effects are done for real and recorded. `crashes` are the folders that a power cut may leave now:
file content that was not synced is there, gone or cut short; names that were not synced in their
folder are there or not, each for itself. A rename is one step, as on every journalling file system,
and is safe once either of its folders was synced.
"""

from __future__ import annotations

import contextlib
import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from understudy.core.files import Disk


@dataclass(eq=False)
class File:
    """Content as written, and as the platters have it."""

    now: bytes = b""
    synced: bytes = b""


@dataclass(eq=False)
class Folder:
    """Names as seen, and as the platters have them."""

    now: dict[str, Node] = field(default_factory=dict)
    synced: dict[str, Node] = field(default_factory=dict)


Node: TypeAlias = File | Folder
Change: TypeAlias = tuple[tuple[Folder, str, Node | None], ...]
"""Names set or removed in one step."""
Tree: TypeAlias = dict[str, bytes | None]
"""Paths with their content; None for a folder."""


class FallibleDisk(Disk):
    """Does everything for real under `root`, and keeps the model beside it."""

    def __init__(self, root: Path, after: Callable[[], None] = lambda: None) -> None:
        self._at = root
        self._top = Folder()
        self._pending: list[Change] = []
        self._done = after

    # --- effects -------------------------------------------------------------------------------

    def write(self, path: Path, data: bytes) -> None:
        super().write(path, data)
        folder, name = self._place(path)
        node = folder.now.get(name)
        if node is None:
            node = File()
            self._change((folder, name, node))
        assert isinstance(node, File)
        node.now = data
        self._done()

    def claim(self, source: Path, target: Path) -> None:
        super().claim(source, target)
        folder, name = self._place(target)
        self._change((folder, name, self._node(source)))
        self._done()

    def append(self, path: Path, data: bytes) -> None:
        super().append(path, data)
        if path.parent.name == "journal":
            return  # promises nothing after a power cut
        folder, name = self._place(path)
        node = folder.now.get(name)
        if node is None:
            node = File()
            self._change((folder, name, node))
        assert isinstance(node, File)
        node.now += data
        self._done()

    def sync(self, path: Path) -> None:
        node = self._node(path)
        assert isinstance(node, File)
        node.synced = node.now
        self._done()

    def sync_folder(self, path: Path) -> None:
        if not path.is_relative_to(self._at):
            return
        folder = self._node(path)
        assert isinstance(folder, Folder)
        flushed: list[Change] = []
        touched: set[tuple[Folder, str]] = set()
        for change in reversed(self._pending):
            slots = {(where, name) for where, name, _ in change}
            # What came before in the same place cannot come after it.
            if any(where is folder for where, _ in slots) or slots & touched:
                touched |= slots
                flushed.append(change)
        self._pending = [change for change in self._pending if change not in flushed]
        for change in reversed(flushed):
            for where, name, node in change:
                _set(where.synced, name, node)
        self._done()

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        old, old_name = self._place(source)
        new, new_name = self._place(target)
        self._change((new, new_name, old.now[old_name]), (old, old_name, None))
        self._done()

    def remove(self, path: Path) -> None:
        super().remove(path)
        self._change((*self._place(path), None))
        self._done()

    def make_folder(self, path: Path) -> None:
        super().make_folder(path)
        if path != self._at:
            self._change((*self._place(path), Folder()))
            self._done()

    def remove_folder(self, path: Path) -> None:
        folder = self._node(path)
        assert isinstance(folder, Folder)
        for name in list(folder.now):
            assert isinstance(folder.now[name], File)
            self._change((folder, name, None))
        super().remove_folder(path)
        self._change((*self._place(path), None))
        self._done()

    # --- the cut -------------------------------------------------------------------------------

    def crashes(self, chance: random.Random, mixes: int) -> Iterator[Tree]:
        """What a power cut may leave now: the extremes, then some mixes."""
        yield self._crash(names=lambda: False, content=lambda: 0)
        yield self._crash(names=lambda: True, content=lambda: 0)
        yield self._crash(names=lambda: True, content=lambda: 2)
        for _ in range(mixes):
            yield self._crash(
                names=lambda: chance.random() < 0.5, content=lambda: chance.randrange(3)
            )

    def _crash(self, *, names: Callable[[], bool], content: Callable[[], int]) -> Tree:
        left: dict[tuple[Folder, str], Node | None] = {}
        for change in self._pending:
            if names():
                for folder, name, node in change:
                    left[folder, name] = node

        def tree(folder: Folder, path: str) -> Tree:
            entries = dict(folder.synced)
            for (where, name), node in left.items():
                if where is folder:
                    _set(entries, name, node)
            found: Tree = {}
            for name, node in sorted(entries.items()):
                if isinstance(node, Folder):
                    found[path + name] = None
                    found |= tree(node, f"{path}{name}/")
                elif node.now == node.synced:
                    found[path + name] = node.now
                else:
                    found[path + name] = (node.synced, _cut_short(node), node.now)[content()]
            return found

        return tree(self._top, "")

    # --- the model -----------------------------------------------------------------------------

    def _change(self, *change: tuple[Folder, str, Node | None]) -> None:
        for folder, name, node in change:
            _set(folder.now, name, node)
        self._pending.append(change)

    def _place(self, path: Path) -> tuple[Folder, str]:
        folder = self._node(path.parent)
        assert isinstance(folder, Folder)
        return folder, path.name

    def _node(self, path: Path) -> Node:
        node: Node = self._top
        for name in path.relative_to(self._at).parts:
            assert isinstance(node, Folder)
            node = node.now[name]
        return node


def _set(entries: dict[str, Node], name: str, node: Node | None) -> None:
    if node is None:
        entries.pop(name, None)
    else:
        entries[name] = node


def build(tree: Tree, root: Path) -> None:
    """The folder that a power cut left."""
    root.mkdir()
    for path, content in tree.items():
        if content is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(content)


@contextlib.contextmanager
def quick_folder() -> Iterator[Path]:
    """A folder in memory where there is one: for hundreds of runs that nobody needs afterwards."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as path:
        yield Path(path)


def _cut_short(file: File) -> bytes:
    """Half of what was not synced; what was appended to keeps what it had."""
    kept = len(file.synced) if file.now.startswith(file.synced) else 0
    return file.now[: (kept + len(file.now)) // 2]


class UnsyncedDisk(Disk):
    """A disk that does not wait: for work that nobody will cut off."""

    def sync(self, path: Path) -> None:
        pass

    def sync_folder(self, path: Path) -> None:
        pass
