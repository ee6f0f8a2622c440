"""One agent of a population: its run folder, its settings, and the evidence about it.

A version holds all that the agent resumes from, the evidence of the round included. All agents
commit after the same iterations; after a crash between two commits `aligned` takes all of them back
to the newest steps that each of them has.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import msgspec
import numpy as np

from understudy.arena.population import Member
from understudy.arena.results import Iteration, Result
from understudy.core import files
from understudy.core.arrays import NDArray
from understudy.core.chance import fold
from understudy.core.errors import FileFormatError, NotFinite, RunFolderError
from understudy.games.rewards import within_limits
from understudy.league.lineage import Settings
from understudy.league.selection import Counts
from understudy.policy.layers import Params
from understudy.registry.checkpoints import MATCHES, STEPS, Checkpoints
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.training.learning import batch_trained, matches_trained
from understudy.training.recording import RecordingWriter
from understudy.training.schedule import LearningSchedule

RESULT_TERMS = frozenset({"win", "loss", "result"})
"""Rewards for the result itself, which `shaping` leaves alone."""
_FILE = "population.json"
_ITERATIONS = "iterations"


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a version of an agent holds beside what was learned."""

    evidence: dict[str, Counts] = {}
    """Against scripted opponents since the last round."""
    broken: bool = False
    """Whether learning gave numbers that are not finite since then."""


def name_of(agent: int) -> str:
    """The agent's folder in that of the population; agents count from 1."""
    return f"agent-{agent}"


def seed_of(seed: int, *words: int) -> int:
    """A seed of an agent's own: as `learner.seed` it gives the same agent in a run alone."""
    key = np.full(1, seed & 0xFFFFFFFF, np.uint32)
    for word in words:
        key = fold(key, word)
    return int(key[0] >> np.uint32(1))


def shaped(names: Sequence[str], weights: NDArray, shaping: float) -> NDArray:
    """Weights [K] of reward terms, with every term but that of the result times `shaping`; none
    leaves the limits of settings, so the agent's own config is valid without the population."""
    factors = [1.0 if name in RESULT_TERMS else shaping for name in names]
    return within_limits(np.asarray(weights * np.array(factors), np.float32))


class Agent:
    """An agent at work; use it under the learner's lock of its folder."""

    def __init__(
        self,
        number: int,
        folder: RunFolder,
        journal: Journal,
        checkpoints: Checkpoints,
        schedule: LearningSchedule,
        member: Member,
    ) -> None:
        self.number = number
        self.folder = folder
        self.journal = journal
        self.member = member
        self._checkpoints = checkpoints
        self._schedule = schedule
        self._recordings = RecordingWriter(folder, journal)
        self.counters = dict(checkpoints.counters)
        kept = _decoded(checkpoints)
        self.evidence: dict[str, Counts] = dict(kept.evidence)
        self.broken = kept.broken
        self._metrics: dict[str, float] = {}

    @property
    def steps(self) -> int:
        """Trained on so far."""
        return self.counters.get(STEPS, 0)

    @property
    def version(self) -> int:
        """The newest one."""
        return self._checkpoints.version

    @property
    def due(self) -> bool:
        """Whether a version should be kept, whatever the round."""
        return self._checkpoints.due(self.steps)

    def weights_at(self, steps: int) -> Params:
        """As they were after so many steps; as they are now where no version holds those."""
        if steps != self.steps:
            held = [number for number, at in _steps(self.folder).items() if at == steps]
            if held:
                return self.folder.versions.policy(max(held)).weights.params
        return self.member.trainer.weights().params

    def follow(self, settings: Settings, share: float) -> None:
        """Learn by these settings, as they are when this share of the budget is spent."""
        config, trainer = self.folder.config, self.member.trainer
        rate, entropy = settings.learning_rate, settings.entropy_weight
        if config.train.schedule == "linear":
            rate += (config.learner.learning_rate_min - rate) * share
        if config.train.entropy_schedule == "linear":
            entropy *= self._schedule.spend_bonus(share)
        trainer.learning_rate, trainer.entropy_weight = rate, entropy

    def note(self, found: Iteration | NotFinite, *, seconds: float) -> None:
        """Count and journal one iteration; steps are counted as they are played, so that all agents
        have the same."""
        recorded = self.member.recorder.take()
        self._recordings.write(recorded, version=self.version, steps=self.steps)
        grown = {STEPS: self.member.steps_an_iteration, _ITERATIONS: 1, MATCHES: 0}
        if isinstance(found, NotFinite):
            self.broken = True
            self.journal.write(events.Problem(where="training", message=str(found)))
        else:
            grown[MATCHES] = found.matches
        for key, by in grown.items():
            self.counters[key] = self.counters.get(key, 0) + by
        if isinstance(found, Iteration):
            self._learn_of(found, seconds)

    def _learn_of(self, found: Iteration, seconds: float) -> None:
        self._metrics = found.metrics
        for name in self.member.bots:
            one, known = found.results[name], self.evidence.get(name, (0, 0, 0))
            self.evidence[name] = (known[0] + one.wins, known[1] + one.draws, known[2] + one.losses)
        self.journal.write(
            batch_trained(
                found,
                steps=self.member.steps_an_iteration,
                seconds=seconds,
                learning_rate=self.member.trainer.learning_rate,
                passes=self.member.plan.config.epochs,
            )
        )
        self.journal.write(matches_trained(_by_agent(found), steps=self.steps, stage=""))

    def new_round(self, folder: RunFolder) -> None:
        """Evidence counts anew, with the settings of `folder`."""
        self.evidence, self.broken, self.folder = {}, False, folder

    def become(self, contents: dict[str, bytes], *, parent: int, seed: int) -> None:
        """A copy of another agent: what it learned, optimiser and normaliser too; new matches."""
        self.member.trainer.restore(contents, what=name_of(parent))
        self.member.restart(seed)

    def commit(self) -> None:
        """What was learned becomes the next version."""
        kept = _Kept(self.evidence, self.broken)
        extras = {_FILE: msgspec.json.encode(kept)}
        self._checkpoints.save(self.member.trainer, self.counters, self._metrics, extras=extras)


def aligned(folders: Sequence[RunFolder]) -> int:
    """Take all agents back to the newest steps that each of them has a version of; those steps.

    A crash between two agents' commits leaves some of them one version ahead: that one goes. More
    than that is training without the others, which is never removed: an error says where it is.
    """
    kept = [_steps(folder) for folder in folders]
    common = set.intersection(*(set(one.values()) for one in kept))
    steps = max(common, default=0)
    ahead = [sorted(number for number, at in one.items() if at > steps) for one in kept]
    # With nothing in common it was a crash in the first commit if some agent has no version.
    apart = not common and all(folder.versions.numbers() for folder in folders)
    strayed = [
        2 if any(_alone(folder, number) for number in numbers) else int(apart or len(numbers) > 1)
        for folder, numbers in zip(folders, ahead, strict=True)
    ]
    if any(strayed):
        which = strayed.index(max(strayed))  # rather one that surely was trained alone
        raise _strayed(folders[which], ahead[which], steps)
    for folder, numbers in zip(folders, ahead, strict=True):
        for number in numbers:
            files.remove_folder(folder.versions.folder(number))
    return steps


def _alone(folder: RunFolder, number: int) -> bool:
    """Whether a version came of training without the others."""
    return _FILE not in folder.versions.manifest(number).files


def _strayed(folder: RunFolder, numbers: Sequence[int], steps: int) -> RunFolderError:
    root, which = folder.root, ", ".join(map(str, numbers)) or "none"
    rest = (
        f"or move those versions out of {folder.versions.root} to go on with the population"
        if steps
        else "or name another folder for a new population with --run"
    )
    return RunFolderError(
        f"{root}: all agents have {steps:,} steps in common, and the versions of this one after "
        f"those ({which}) would be lost; was it trained alone? Go on with it alone "
        f"(--resume --run {root}), {rest}"
    )


def _steps(folder: RunFolder) -> dict[int, int]:
    """Every version that is whole, with its steps."""
    found = {}
    for number in folder.versions.numbers():
        try:
            found[number] = folder.versions.verify(number).counters.get(STEPS, 0)
        except (FileFormatError, FileNotFoundError):
            continue
    return found


def _decoded(checkpoints: Checkpoints) -> _Kept:
    if _FILE not in checkpoints.extras:
        return _Kept()
    try:
        return msgspec.json.decode(checkpoints.extras[_FILE], type=_Kept)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FileFormatError(f"version {checkpoints.version}: {_FILE}: {error}") from error


def _by_agent(found: Iteration) -> Iteration:
    """The same, with each opponent under its agent's name, whatever round it is from."""
    results: dict[str, Result] = {}
    for name, result in found.results.items():
        plain = name.partition("@")[0]
        results[plain] = results[plain] + result if plain in results else result
    ended = [
        dataclasses.replace(one, opponent=one.opponent.partition("@")[0]) for one in found.ended
    ]
    return dataclasses.replace(found, results=results, ended=ended)
