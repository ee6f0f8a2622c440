"""Forks bots on one promotion log, kills them with SIGKILL, and says what it did. Run as a script.

One process imports everything once and forks, as in `walk/kill_children.py`.

    kill_children.py effects ROOT      at every effect on the disk, one after another
    kill_children.py bots ROOT         in the middle of a match, with another bot beside it
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from walk.kill_children import DeadlyDisk, fork, wait
from walk.power import UnsyncedDisk
from walk.toys import open_run, settings

from promotion.runs import (
    CANARY,
    HASTY,
    INCUMBENT,
    assigned,
    bot,
    counted,
    folded,
    pointed,
    records,
    resolved,
    summary,
)
from understudy.core import files
from understudy.core.clock import SystemClock
from understudy.gates.promotion import roles
from understudy.gates.promotion.records import Assigned
from understudy.gates.promotion.roles import PromotionState
from understudy.promotion import log as logs
from understudy.promotion.promotion import Promotion
from understudy.registry.run_folder import RunFolder

TWO = settings(promotion__alpha=0.6, promotion__first_share=0.5, promotion__holdout=0.0)
"""Two matches promote a canary: one that the incumbent loses, and one that it wins."""


# --- at every effect -----------------------------------------------------------------------------


def short_life(folder: RunFolder, note: Callable[[str], None]) -> None:
    """Two versions are tested, win and are promoted; old records are compacted on the way."""
    one = bot(folder)
    for version in (3, 4):
        one.nominate(version, experience=version, reason="short")
        for number, uniform in enumerate((INCUMBENT, CANARY)):
            name = f"{version} {number}"
            order, made = one.assign(name, {}, uniform)
            note(f"{order}")
            assert made.arm == ("incumbent", "canary")[number]
            assert one.resolve(order, float(number), "finished")
            note(f"{order} {number}")


def kill_at_every_effect(root: Path) -> dict[str, int]:
    """Once for every effect of a short life: die there, and see that the next bot finds it all."""
    logs.BLOCK = 4
    found: Counter[str] = Counter()
    for effect in itertools.count():
        folder = open_run(root / f"{effect:04d}", TWO)
        told = root / f"{effect:04d}.txt"
        told.touch()

        def live(folder: RunFolder = folder, told: Path = told) -> None:
            with told.open("a", buffering=1) as notes:
                short_life(folder, lambda text: print(text, file=notes))

        with files.using(DeadlyDisk(effect)):
            code = wait(fork(live))
        with files.using(UnsyncedDisk()):
            found.update(check_after(folder, told.read_text().splitlines(), died=code != 0))
        if code == 0:
            return {**found, "effects": effect}
        assert code == -signal.SIGKILL, f"died of {code} at effect {effect}"
    raise AssertionError


def check_after(folder: RunFolder, told: list[str], *, died: bool) -> Iterator[str]:
    """What must hold after a kill; yields what the dead process was in the middle of."""
    before = records(folder)
    uninterrupted = folded(folder)
    if before and pointed(folder) != said(uninterrupted):
        yield "between a verdict and the pointers"
    if any(folder.promotion.glob(".tmp-*")):
        yield "in a record"
    open_before = len(uninterrupted.open)
    if open_before:
        yield "in a match"
    one = bot(folder)
    assert [number for number, _ in records(folder)] == list(range(1, one.state.sequence + 1))
    assert records(folder)[: len(before)] == before, "nothing that was written changes"
    matches = [made.match for made in assigned(folder)]
    assert len(set(matches)) == len(matches)
    numbers = {number for number, record in records(folder) if isinstance(record, Assigned)}
    results = {one.order: one for one in resolved(folder)}
    assert len(results) == len(resolved(folder)), "one result each"
    for line in told:
        order, *result = line.split()
        assert int(order) in numbers
        assert not result or results[int(order)].result == float(result[0])
    assert [one.ending for one in results.values()].count("vanished") == open_before
    check_state(folder, one)
    assert counted(one.state) == len(numbers) == len(results)
    one.assign("after", {}, CANARY)
    check_state(folder, one)
    if not died:
        assert one.state.champion == 4
        assert [verdict.kind for verdict in one.verdicts] == ["nominated", "promoted"] * 2


def check_state(folder: RunFolder, one: Promotion) -> None:
    """The same E and the same roles however the log is read, and pointers that agree with it."""
    state = PromotionState()
    for numbered in records(folder):
        state, _ = roles.fold(state, [numbered])
    assert summary(one.state) == summary(folded(folder)) == summary(state)
    assert pointed(folder) == said(one.state)


def said(state: PromotionState) -> dict[str, int]:
    """Where the log says that the pointers are."""
    return {"champion": state.incumbent, "canary": state.test.version if state.test else 0}


# --- two bots ------------------------------------------------------------------------------------


class HourAhead(SystemClock):
    def time(self) -> float:
        return super().time() + 3600.0


def two_bots(root: Path) -> dict[str, int]:
    """Two bots play at once, one with a clock an hour ahead; one is killed in its last match."""
    early, late = open_run(root, HASTY), RunFolder.load(root, HourAhead())
    promoted = bot(early)
    promoted.nominate(3, experience=1, reason="first")
    at_work, begun = os.pipe()
    here, there = os.pipe(), os.pipe()

    def play(folder: RunFolder, name: str, mine: int, theirs: int) -> None:
        one = bot(folder)
        for number in range(25):
            if number % 5 == 0:  # on a busy machine one could be through before the other begins
                os.write(theirs, b".")
                os.read(mine, 1)
            order, _ = one.assign(f"{name} {number}", {}, INCUMBENT)
            one.resolve(order, 0.5, "finished")
        one.assign(f"{name} last", {}, INCUMBENT)
        os.write(begun, b".")
        signal.pause()

    children = [
        fork(lambda: play(late, "late", here[0], there[1])),
        fork(lambda: play(early, "early", there[0], here[1])),
    ]
    for _ in children:
        os.read(at_work, 1)
    os.kill(children[0], signal.SIGKILL)
    assert wait(children[0]) == -signal.SIGKILL
    again = bot(late)
    endings = Counter(one.ending for one in resolved(early))
    lost = [one.order for one in resolved(early) if one.ending == "vanished"]
    names = {number: one.match for number, one in records(early) if isinstance(one, Assigned)}
    still_open = [name for number, name in names.items() if number in again.state.open]
    check_state(early, again)
    assert [names[order] for order in lost] == ["late last"]
    assert "early last" in still_open, "the match of a bot that lives"
    ordered = [name.split()[0] for name in names.values()]
    turns = sum(one != other for one, other in itertools.pairwise(ordered))
    os.kill(children[1], signal.SIGKILL)
    assert wait(children[1]) == -signal.SIGKILL
    once_more = bot(early)
    assert not once_more.state.open
    assert counted(once_more.state) == len(names) == len(set(names.values()))
    check_state(early, once_more)
    return {"finished": endings["finished"], "turns": turns, "counted": counted(once_more.state)}


def main() -> None:
    how, root = sys.argv[1:]
    with contextlib.redirect_stdout(sys.stderr):
        if how == "effects":
            found = kill_at_every_effect(Path(root))
        else:
            with files.using(UnsyncedDisk()):
                found = two_bots(Path(root))
    assert "jax" not in sys.modules
    print(json.dumps(found))


if __name__ == "__main__":
    main()
