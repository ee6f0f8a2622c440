"""Forks bots and learners, kills them with SIGKILL, and says what it did. Run as a script.

One process imports everything once and forks, because a fork takes milliseconds and a start of
Python does not. Nothing here may import JAX.

    kill_children.py random ROOT KILLS SEED      at random points, bot and learner side by side
    kill_children.py effects ROOT                at every effect on the disk, one after another
    kill_children.py poison ROOT                 whenever a certain match is learned from
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from understudy import Understudy
from understudy.core import files
from understudy.core.config import Config
from understudy.core.files import Disk
from understudy.learner import background
from walk.power import UnsyncedDisk
from walk.toys import (
    SPEC,
    Toy,
    check_ingested_once,
    check_registry,
    episode,
    learner,
    manifests,
    open_run,
    settings,
    spool_of,
    work_to_the_end,
)

RANDOM = settings(
    learner__publish_interval_s=0.01,
    learner__batch_matches=5,
    learner__replay_matches=2,
    learner__replay_capacity=10,
)


def fork(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def wait(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# --- at random points ----------------------------------------------------------------------------


def play(root: Path, told: Path) -> None:
    """A bot that finishes one match after another and notes each when `finish` has returned."""
    chance = random.Random()
    notes = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with Understudy.open(
        root, features=SPEC.features, actions=SPEC.actions, network=SPEC.network, learner="off"
    ) as mind:
        for number in itertools.count():
            name = f"{os.getpid()}-{number}"
            with mind.match(name=name) as match:
                for _ in range(chance.randrange(1, 4)):
                    match.decide((0.5, chance.random()), fallback="left")
                    match.reward(1.0)
                if match.finish("victory"):
                    os.write(notes, f"{name}\n".encode())
            time.sleep(chance.uniform(0.0, 0.008))


def learn(root: Path) -> None:
    """The real background learner around a trainer that takes its time."""
    chance = random.Random()
    config = open_run(root, RANDOM).config
    mind = learner(
        open_run(root, RANDOM), Toy(config, meet=lambda ids: time.sleep(chance.uniform(0.0, 0.002)))
    )
    while True:
        if not mind.work():
            time.sleep(0.001)


def kill_at_random(root: Path, kills: int, seed: int) -> dict[str, int]:
    """Keep a bot and a learner alive side by side, and kill one of them again and again."""
    folder = open_run(root, RANDOM)
    told = root / "told.txt"
    works: dict[str, Callable[[], None]] = {
        "bot": lambda: play(root, told),
        "learner": lambda: learn(root),
    }
    chance = random.Random(seed)
    found: Counter[str] = Counter()
    children = {name: fork(work) for name, work in works.items()}
    while found["kills"] < kills or (found["kills"] < 8 * kills and not _eventful(found, told)):
        # On a busy machine a child needs longer to get to work: kills that meet none come later.
        patience = max(1.0, found["kills"] / kills)
        time.sleep(chance.uniform(0.0, 0.06 * patience))
        victim = chance.choice(list(works))
        os.kill(children[victim], signal.SIGKILL)
        assert wait(children[victim]) == -signal.SIGKILL, f"the {victim} died by itself"
        found["kills"] += 1
        if victim == "learner":
            found.update(_left_behind(root))
        children[victim] = fork(works[victim])
    for child in children.values():
        os.kill(child, signal.SIGKILL)
        wait(child)
    work_to_the_end(learner(folder))
    return dict(found)


def _eventful(found: Counter[str], told: Path) -> bool:
    """Whether the kills came where they hurt; on a busy machine that can take some more of them."""
    hits = ("in_training", "in_commit", "between_commit_and_archive")
    return all(found[hit] for hit in hits) and _content(told).count(b"\n") > found["kills"] // 2


def _left_behind(root: Path) -> Iterator[str]:
    """What a killed learner was in the middle of."""
    if any((root / "versions").glob(".tmp-*")):
        yield "in_commit"
    if b'"attempt":["' in _content(root / "suspects.json"):
        yield "in_training"
    folder = open_run(root, RANDOM)
    last = manifests(folder)[-1:]
    waiting = set(spool_of(folder).pending())
    if any(name in waiting for manifest in last for name in manifest.ingested.values()):
        yield "between_commit_and_archive"


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


# --- at every effect -----------------------------------------------------------------------------

EFFECTS = settings(
    learner__batch_matches=2,
    learner__replay_matches=1,
    learner__samples_per_insert=2,
    registry__keep_versions=2,
    registry__keep_bytes=2**30,
    spool__archive_matches=4,
)


class DeadlyDisk(UnsyncedDisk):
    """Kills its own process instead of the effect with the given number; a write is cut in half."""

    def __init__(self, last: int) -> None:
        self._left = last

    def _count(self, dying: Callable[[], object] = lambda: None) -> None:
        self._left -= 1
        if self._left < 0:
            dying()
            os.kill(os.getpid(), signal.SIGKILL)

    def write(self, path: Path, data: bytes) -> None:
        self._count(lambda: Disk().write(path, data[: len(data) // 2]))
        super().write(path, data)

    def claim(self, source: Path, target: Path) -> None:
        self._count()
        super().claim(source, target)

    def append(self, path: Path, data: bytes) -> None:
        self._count(lambda: Disk().append(path, data[: len(data) // 2]))
        super().append(path, data)

    def rename(self, source: Path, target: Path) -> None:
        self._count()
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        self._count()
        super().remove(path)

    def make_folder(self, path: Path) -> None:
        self._count()
        super().make_folder(path)

    def remove_folder(self, path: Path) -> None:
        self._count(lambda: Disk().remove(next(iter(path.iterdir()))))
        super().remove_folder(path)


def short_life(root: Path, config: Config, told: Path) -> None:
    """A bot and a learner in one process: some matches, some versions, archives, pruning."""
    background._TIDY_EVERY = 2
    folder = open_run(root, config)
    spool = spool_of(folder)
    for rounds in range(2):
        mind = learner(folder)
        for number in range(5):
            name = f"{os.getpid()}-{rounds}-{number}"
            spool.put(episode(name, finished_at=time.time()))
            with told.open("a") as notes:
                notes.write(f"{name}\n")
        work_to_the_end(mind)


def kill_at_every_effect(root: Path) -> dict[str, int]:
    """Once for every effect of a short life: die there, live on, and see that nothing is lost."""
    for effect in itertools.count():
        run, told = root / f"{effect:04d}", root / f"{effect:04d}.txt"
        told.touch()
        with files.using(DeadlyDisk(effect)):
            code = wait(fork(lambda: short_life(run, EFFECTS, told)))  # noqa: B023  runs at once
        with files.using(UnsyncedDisk()):
            folder = open_run(run, EFFECTS)
            work_to_the_end(learner(folder))
        check_registry(folder)
        check_ingested_once(folder, set(told.read_text().split()))
        assert not any((run / "quarantine").iterdir())
        if code == 0:
            return {"effects": effect}
        assert code == -signal.SIGKILL, f"died of {code} at effect {effect}"
    raise AssertionError


# --- by an episode -------------------------------------------------------------------------------


def kill_by_poison(root: Path) -> dict[str, int]:
    """A match that ends the learner's process at once; learners are started until one lives."""
    folder = open_run(root, settings())
    spool = spool_of(folder)
    for number in range(12):
        name = "poison" if number == 4 else f"match {number}"
        spool.put(episode(name, finished_at=time.time()))

    def die(ids: Sequence[str]) -> None:
        if "poison" in ids:
            os._exit(9)

    for deaths in range(100):
        code = wait(fork(lambda: work_to_the_end(learner(folder, Toy(folder.config, meet=die)))))
        if code == 0:
            return {"deaths": deaths}
        assert code == 9
    raise AssertionError("it never ends")


def main() -> None:
    how, root, *rest = sys.argv[1:]
    with contextlib.redirect_stdout(sys.stderr):
        if how == "random":
            found = kill_at_random(Path(root), *map(int, rest))
        elif how == "effects":
            found = kill_at_every_effect(Path(root))
        else:
            found = kill_by_poison(Path(root))
    assert "jax" not in sys.modules
    print(json.dumps(found))


if __name__ == "__main__":
    main()
