"""A tiny run, episodes for it and a trainer without JAX: what the durability proofs are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from understudy.core import config as configs
from understudy.core import files
from understudy.core.arrays import from_npz, read_npz, to_npz
from understudy.core.clock import Clock, SystemClock
from understudy.core.config import Config
from understudy.core.spaces import Discrete
from understudy.experience.episode import Episode, Meta, Outcome
from understudy.experience.spool import Spool
from understudy.learner.ring import RingLearner
from understudy.learner.slow_games import batch_settings
from understudy.policy import weights as weight_files
from understudy.policy.mlp import Mlp
from understudy.policy.spec import PolicySpec
from understudy.policy.weights import Weights
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import LEARNER, WEIGHTS, Manifest
from understudy.telemetry import events
from understudy.telemetry.journal import Journal, Reader

from .power import UnsyncedDisk

SPEC = PolicySpec(("a", "b"), Discrete(("left", "right")), Mlp(widths=(2,)))
START = 1_700_000_000.0


class SetClock:
    """A clock that stands still until it is set."""

    def __init__(self, now: float = START) -> None:
        self.now = now
        self.ran = 0.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.ran

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self.ran += seconds


def settings(**values: Any) -> Config:
    """Nothing waits, nothing is thrown away, nothing is sampled again, unless asked for."""
    quick: dict[str, Any] = {
        "learner.publish_interval_s": 0.0,
        "learner.gather_s": 0.0,
        "learner.epochs": 1,
        "learner.replay_matches": 0,
        "registry.keep_versions": 1_000_000,
        "registry.keep_bytes": 0,
    }
    dotted = {key.replace("__", "."): value for key, value in values.items()}
    return configs.with_values(Config(), quick | dotted)


def episode(name: str, *, length: int = 3, finished_at: float = START, **changes: Any) -> Episode:
    """An episode of the tiny run whose id is `name`."""
    arrays: dict[str, Any] = {
        "observations": np.arange(2 * length, dtype=np.float32).reshape(length, 2),
        "actions": np.zeros((length, 1), np.int32),
        "log_probs": np.full(length, -0.7, np.float32),
        "values": np.zeros(length, np.float32),
        "rewards": np.ones(length, np.float32),
        "sampled": np.ones(length, np.bool_),
        "versions": np.zeros(length, np.int64),
    }
    meta = Meta(id=name, outcome=Outcome.VICTORY, finished_at=finished_at)
    return Episode(**{"meta": meta, **arrays, **changes})


class Tally(msgspec.Struct):
    """What a version has seen with its ancestors: how often each episode, as new and at all."""

    ingested: dict[str, int] = {}
    sampled: dict[str, int] = {}


class Toy:
    """Learns nothing, but remembers what it was shown; a version carries that memory."""

    def __init__(
        self, config: Config, meet: Callable[[Sequence[str]], None] = lambda ids: None
    ) -> None:
        self._config = config.learner
        self._meet = meet
        self._weights = weight_files.encode(weight_files.fresh(SPEC, np.random.default_rng(0)))
        self.tally = Tally()
        self.slowed = 0
        self.judged: tuple[bool, Weights | None] = (False, None)
        self.restored: list[str] = []

    def train(
        self,
        new: Sequence[Episode],
        replayed: Sequence[Episode],
        *,
        version: int,
        by_evidence: bool = False,
        champion: Weights | None = None,
    ) -> dict[str, float]:
        self.judged = by_evidence, champion
        self._meet([one.meta.id for one in (*new, *replayed)])
        fresh = Counter(one.meta.id for one in new)
        epochs = batch_settings(self._config, new, by_evidence=by_evidence).epochs
        seen = Counter(one.meta.id for one in (*new, *replayed) for _ in range(epochs))
        self.tally = Tally(
            dict(Counter(self.tally.ingested) + fresh), dict(Counter(self.tally.sampled) + seen)
        )
        names = (
            "loss policy_loss value_loss entropy kl explained_variance behaviour_kl clip_share "
            "behaviour_kl_max gradient_norm learning_rate"
        )
        return {**dict.fromkeys(names.split(), 0.0), "steps": float(sum(map(len, new)))}

    def snapshot(self) -> dict[str, bytes]:
        memory = np.frombuffer(msgspec.json.encode(self.tally), np.uint8)
        return {WEIGHTS: self._weights, LEARNER: to_npz({"tally": memory})}

    def restore(self, contents: Mapping[str, bytes] | None, *, what: str) -> None:
        self.restored.append(what)
        self.slowed = 0  # how careful to be is part of a version
        self.tally = Tally() if contents is None else _tally(contents[LEARNER])

    def slow_down(self) -> None:
        self.slowed += 1


def _tally(data: bytes) -> Tally:
    memory = from_npz(data, what="tally")["tally"]
    return msgspec.json.decode(memory.tobytes(), type=Tally)


def open_run(root: Path, config: Config, clock: Clock | None = None) -> RunFolder:
    return RunFolder.open(root, spec=SPEC, config=config, clock=clock or SystemClock())


def spool_of(folder: RunFolder) -> Spool:
    return Spool(folder.root, SPEC, folder.clock)


def learner(folder: RunFolder, toy: Toy | None = None) -> RingLearner:
    journal = Journal(folder.journal, "learner", folder.clock)
    return RingLearner(folder, toy or Toy(folder.config), journal)


def work_to_the_end(background: RingLearner) -> None:
    while background.work(hurry=True):
        pass
    background.publish_rest()


def matches_of(version: int, name: str, *, won: int, lost: int) -> list[Episode]:
    """Finished matches in which this version decided."""
    results = [Outcome.VICTORY] * won + [Outcome.DEFEAT] * lost
    decided = np.full(3, version, np.int64)
    made = [episode(f"{name} {number}", versions=decided) for number in range(len(results))]
    return [
        replace(one, meta=msgspec.structs.replace(one.meta, outcome=result))
        for one, result in zip(made, results, strict=True)
    ]


def a_bad_night(folder: RunFolder, clock: SetClock) -> int:
    """Two versions a second: half a minute of good play, then much more of bad play. The number of
    the last version that played well."""
    spool, mind, good = spool_of(folder), learner(folder), 60
    with files.using(UnsyncedDisk()):
        for number in range(3 * good):
            won = 4 if mind.version <= good else 1
            for one in matches_of(mind.version, str(number), won=won, lost=5 - won):
                spool.put(one)
            work_to_the_end(mind)
            clock.advance(0.5)
    return good


# --- looking at what came of it -------------------------------------------------------------------


def manifests(folder: RunFolder) -> list[Manifest]:
    return [folder.versions.manifest(number) for number in folder.versions.numbers()]


def tally_of(folder: RunFolder, number: int) -> Tally:
    manifest = folder.versions.manifest(number)
    return _tally(folder.versions.read(manifest, LEARNER))


def head_tally(folder: RunFolder) -> Tally:
    head = folder.versions.head()
    return Tally() if head is None else tally_of(folder, head)


def metas(where: Path) -> Iterator[Meta]:
    """The metas of all episodes in a folder of the spool."""
    for path in sorted(where.glob("*.npz")):
        yield msgspec.json.decode(read_npz(path)["meta"].tobytes(), type=Meta)


def counts(root: Path) -> tuple[int, int, int]:
    """How many episodes lie in buffer, archive and quarantine."""
    buffer, archive, quarantine = (
        len(list((root / where).glob("*.npz"))) for where in ("buffer", "archive", "quarantine")
    )
    return buffer, archive, quarantine


def reasons(folder: RunFolder) -> dict[str, str]:
    """Why each quarantined file lies there."""
    where = folder.root / "quarantine"
    return {
        path.name: msgspec.json.decode((where / f"{path.name}.reason.json").read_bytes())["reason"]
        for path in where.glob("*.npz")
    }


def problems(folder: RunFolder) -> list[str]:
    """What the journal complains about."""
    found = Reader(folder.journal).new()
    return [entry.e.message for entry in found if isinstance(entry.e, events.Problem)]


def check_registry(folder: RunFolder) -> None:
    """Every version verifies and can play; every pointer names one of them."""
    numbers = folder.versions.numbers()
    for number in numbers:
        folder.versions.verify(number)
        assert folder.versions.policy(number).version == number
    for name in ("candidate", "champion"):
        record = folder.pointers.read(name)
        if name == "champion" and folder.by_evidence:
            assert record is not None and record.version == 0, "the rules play without evidence"
            continue
        assert (record is None) == (not numbers)
        assert record is None or record.version in numbers


def check_ingested_once(folder: RunFolder, ids: set[str]) -> None:
    """Nothing waits, all of `ids` were ingested, and nothing was ingested twice."""
    counted = Counter(key for manifest in manifests(folder) for key in manifest.ingested)
    assert set(counted.values()) <= {1}, "an episode is named by two versions"
    tally = head_tally(folder).ingested
    assert set(tally.values()) <= {1}, "an episode was ingested twice by one line of versions"
    assert ids <= tally.keys(), "an episode was lost"
    assert list(metas(folder.root / "buffer")) == []
