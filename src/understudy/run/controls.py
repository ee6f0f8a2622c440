"""What a person may change in a run: its champion, its tests, and whether it learns.

Commands, the monitor and the dashboard call these. Each returns what to tell the person, and raises
`RunFolderError` or `ConfigError` where there is nothing to change.
"""

from __future__ import annotations

from pathlib import Path

from understudy.core.clock import SystemClock
from understudy.core.errors import ConfigError, RunFolderError
from understudy.core.pause import switch_pause
from understudy.gates.promotion.records import RULES, Order, Ordered
from understudy.gates.promotion.roles import PromotionVerdict
from understudy.promotion.promotion import Promotion, role_changed
from understudy.promotion.report import read_brief
from understudy.promotion.served import judges_segments
from understudy.registry.retention import kept, scores_of
from understudy.registry.rewards import score_text
from understudy.registry.run_folder import RunFolder
from understudy.registry.scores import last_good
from understudy.telemetry.journal import Journal
from understudy.telemetry.promotion_lines import playing_text
from understudy.telemetry.status_reader import StatusReader
from understudy.telemetry.verdicts import VERDICTS


def roll_back(folder: RunFolder, version: int, *, why: str = "") -> str:
    """Pin a version as champion."""
    folder.versions.existing(version)
    folder.versions.verify(version)
    folder.pointers.pin("champion", version, by="rollback")
    again = f"understudy models release --run {folder.root}"
    if folder.by_evidence:
        which = "segment" if judges_segments(folder) else "match of mode auto"
        return (
            f"Version {version} is pinned as champion{why}. It plays every {which}, "
            f"from the next one on, and nothing is tried. To let evidence decide again: {again}"
        )
    return f"Version {version} plays now and is pinned{why}. To let newer ones play again: {again}"


def rollback_target(folder: RunFolder) -> tuple[int, str]:
    """Where a rollback without a number goes, and why there."""
    champion = folder.pointers.read("champion")
    if champion is not None and not champion.version:
        raise RunFolderError(
            f"{folder.root}: the rules play, and no version did before them; name the version that "
            "is to be pinned as champion"
        )
    if champion is not None:
        found = last_good(scores_of(folder), kept(folder), before=champion.version)
        if found is not None:
            version, score = found
            span = f"versions {score.first} to {score.last}" if score.first < score.last else "it"
            return version, f": the last that played well ({span}: {score_text(score)})"
        parent = folder.versions.manifest(champion.version).parent
        if parent is not None:
            return parent, f": the parent of {champion.version}; no earlier one has a good score"
    raise RunFolderError(f"{folder.root}: there is no earlier version to go back to")


def release_champion(folder: RunFolder) -> tuple[int, str]:
    """Unpin the champion; returns the version that plays then, too."""
    folder.pointers.release("champion")
    if folder.by_evidence:
        now = read_brief(folder, Promotion(folder))  # following the log moves the pointer
        which = "segment" if now.served else "match of mode auto"
        plays = now.in_units(playing_text(now))
        return now.incumbent, f"Evidence decides again: from the next {which} on {plays}."
    champion = folder.pointers.read("champion")
    if champion is None:
        raise RunFolderError(f"{folder.root}: no version plays yet")
    return champion.version, f"Version {champion.version} plays until the next one is promoted."


def order(folder: RunFolder, word: Order, *, version: int = RULES, words: str = "") -> list[str]:
    """A person's word on promotion; `words` says why, and is kept with the verdict. `version` is
    for `approve` alone."""
    check_promotion(folder)
    if word == "approve" and version != RULES:
        folder.versions.existing(version)
        folder.versions.verify(version)
    journal = Journal(folder.journal, "person", folder.clock)
    promotion = Promotion(folder, tell=lambda verdict: _journal_verdict(journal, verdict))
    before, state = len(promotion.verdicts), promotion.state
    if word in ("pause", "resume") and state.paused == (word == "pause"):
        already = "is paused already" if state.paused else "is not paused"
        raise RunFolderError(f"{folder.root}: promotion {already}")
    if word == "stop" and state.test is None:
        raise RunFolderError(f"{folder.root}: nothing to stop: no version is being tested")
    if word == "approve" and version == state.incumbent:
        already = f"version {version} is the champion" if version else "the rules play"
        raise RunFolderError(f"{folder.root}: {already} already")
    promotion.order(Ordered(order=word, version=version, words=words))
    verdicts = [one for one in promotion.verdicts[before:] if one.kind != "nominated"]
    for one in verdicts:  # another process was faster
        if (one.kind, one.sequence) == ("refused", promotion.state.sequence):
            raise RunFolderError(f"{folder.root}: {one.words}")
    now = read_brief(folder, promotion)
    told = []
    for one in verdicts:
        named = f"Version {one.version}: " if one.version else ""
        said = now.in_units(f"{named}{VERDICTS[one.kind].meaning}.")
        told.append(said[0].upper() + said[1:])
    if word == "pause":
        told.append(
            "A running test goes on; a harmful version is stopped, and a champion may fall."
        )
    told.append(now.in_units(f"From the next match on {playing_text(now)}."))
    if now.pinned not in (None, version) and word == "approve":
        told.append(f"To let version {version} play: understudy models release --run {folder.root}")
    return told


def check_promotion(folder: RunFolder) -> None:
    """Raises `RunFolderError` where evidence moves no champion."""
    if not folder.by_evidence:
        raise RunFolderError(
            f"{folder.root}: no promotion log: the newest version plays here. A bot opened with "
            "mode='auto' begins one"
        )


def _journal_verdict(journal: Journal, verdict: PromotionVerdict) -> None:
    if verdict.kind != "refused":
        journal.write(role_changed(verdict))


def switch_learning(run: Path, *, paused: bool) -> tuple[Path, bool]:
    """Pause learning in a run, or let it go on; False: it was so already.

    Raises:
        ConfigError: A run that cannot be paused.
    """
    clock = SystemClock()
    root = RunFolder.load(run, clock).root
    status = StatusReader(root, clock).read()
    if paused and status.steps and not status.mode:
        raise ConfigError(
            f"{root}: a run of `understudy train`, which has no pause: Ctrl-C stops it, and "
            f"`understudy train ... --run {root} --resume` goes on"
        )
    return root, switch_pause(root, paused=paused, clock=clock)
