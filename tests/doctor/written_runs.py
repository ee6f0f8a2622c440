"""Small runs for the tests of the doctor: a journal of `train` by the writers that training has,
and served runs by a real session without sockets."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bot.minds import publish
from session.sessions import SMALL, game
from walk.toys import SPEC, SetClock

from understudy.core.arrays import NDArray
from understudy.core.clock import SystemClock
from understudy.core.config import Config, with_values
from understudy.doctor.evidence import Evidence, gather
from understudy.doctor.examine import examine
from understudy.doctor.findings import Finding
from understudy.gates.decision import Verdict
from understudy.policy import weights as weight_files
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder
from understudy.run.server_wiring import ServeOptions, ServerWiring
from understudy.run.view import read_view
from understudy.session.inbox import Incoming
from understudy.session.schema import SchemaGame
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Journal

ITERATION = 100_000
"""Steps of an iteration of `WrittenTraining`."""


def evidence_on(folder: RunFolder | Path) -> Evidence:
    """As `understudy doctor` gathers it."""
    opened = folder if isinstance(folder, RunFolder) else RunFolder.load(folder, SystemClock())
    return gather(opened, read_view(opened))


def found(folder: RunFolder | Path) -> dict[str, Finding]:
    """All findings on a run, by check. Each says what, with numbers, and what to do."""
    findings = examine(evidence_on(folder))
    for one in findings:
        assert one.check != "check-failed", one
        assert one.title and one.evidence and one.next_step and one.link.endswith(f"#{one.check}")
    return {one.check: one for one in findings}


class WrittenTraining:
    """The run folder of a `train` in the arena, whose results are given."""

    def __init__(
        self, root: Path, settings: Mapping[str, Any] | None = None, *, spec: PolicySpec = SPEC
    ) -> None:
        self.clock = SetClock()
        config = with_values(Config(), settings or {})
        self.folder = RunFolder.open(root, spec=spec, config=config, clock=self.clock)
        self.journal = Journal(self.folder.journal, "train", self.clock)
        self.journal.write(ev.LearnerStarted(pid=1, version=0, pending=0))
        self.steps = self.version = 0

    def iterate(
        self,
        wins: Mapping[str, float],
        *,
        count: int = 1,
        matches: int = 20,
        draws: bool = False,
        frames: int | None = None,
        returned: float = 0.0,
        varied: float = 0.01,
        seconds: float = 1.0,
        stage: str = "",
    ) -> None:
        """`count` iterations of `matches` matches against each, with these win rates."""
        for turn in range(count):
            self.clock.advance(seconds)
            self.steps += ITERATION
            results = {}
            for name, rate in wins.items():
                # Shares are met exactly over the iterations, without chance.
                won = round((turn + 1) * matches * rate) - round(turn * matches * rate)
                rest = matches - won
                results[name] = (matches, won, rest if draws else 0, 0 if draws else rest)
            length = [frames or 100 + 10 * (turn % 7)] * sum(one[0] for one in results.values())
            self.journal.write(_batch(seconds))
            self.journal.write(
                ev.MatchesTrained(
                    steps=self.steps,
                    results=results,
                    returns=dict.fromkeys(results, returned + varied * (turn % 3)),
                    ended=[("x", 0, one, 0.0) for one in length],
                    stage=stage,
                )
            )

    def judge(self, rates: Mapping[str, float], *, matches: int = 20, seconds: float = 1.0) -> None:
        """A version, and its benchmark."""
        self.clock.advance(seconds)
        self.version += 1
        self.journal.write(
            ev.VersionPublished(version=self.version, parent=None, matches=1, promoted=True)
        )
        self.journal.write(
            ev.CheckpointJudged(
                steps=self.steps,
                version=self.version,
                seconds=seconds,
                opponents={
                    name: ev.OpponentTally(
                        round(rate * matches), 0, matches - round(rate * matches)
                    )
                    for name, rate in rates.items()
                },
            )
        )

    def found(self) -> dict[str, Finding]:
        return found(self.folder)


def _batch(seconds: float) -> ev.BatchTrained:
    return ev.BatchTrained(
        matches=20, replayed=0, steps=ITERATION, seconds=seconds, loss=0.1, policy_loss=0.01,
        value_loss=0.05, entropy=1.0, kl=0.01, explained_variance=0.5, clip_share=0.05,
        gradient_norm=0.3, learning_rate=1e-3, samples_per_insert=3.0,
    )  # fmt: skip


# --- served runs ---------------------------------------------------------------------------------

ACTIONS = [f"chunk {number}" for number in range(12)]


class TestGate:
    """Expects what the first feature says; nothing of the fallback."""

    __test__ = False
    name = "test"

    def __init__(self, threshold: float = 0.0) -> None:
        self._threshold = threshold

    def evaluate(self, observation: NDArray, action: NDArray) -> Verdict:
        if int(action[0]) == len(ACTIONS):
            return Verdict(True, float("nan"), ("nothing to block",))
        return Verdict.of(observation[0], threshold=self._threshold)


def switches() -> SchemaGame:
    """Forty things to do or not, at once: a million million of actions."""
    names = [f"switch {number}" for number in range(40)]
    return game(
        features=["worth", "other"],
        actions={name: ["off", "on"] for name in names},
        fallback=dict.fromkeys(names, "off"),
    )


def chunks() -> SchemaGame:
    """Twelve places to act, or none."""
    return game(features=["worth", "other"], actions=[*ACTIONS, "none"], fallback="none")


@contextlib.contextmanager
def served(
    run: Path,
    settings: Mapping[str, Any] | None = None,
    *,
    gate: str = "open",
    declared: SchemaGame | None = None,
) -> Iterator[ServerWiring]:
    """A real session behind no socket, and without a learner."""
    patient = {
        "live.gate_deadline_ms": 60_000.0,
        "live.messages_per_s": 1e6,
        "live.segment": 64,
    }
    options = ServeOptions(
        translator=declared or chunks(),
        game="skirmish",
        run=run,
        network=SMALL,
        gate=gate,
        learner="off",
        config=with_values(Config(), {**patient, **(settings or {})}),
        seed=3,
    )
    with contextlib.ExitStack() as stack:
        wiring = ServerWiring(options, options.auth(), stack)
        yield wiring
        wiring.close()


def play(
    at: ServerWiring,
    *,
    ticks: int = 400,
    rewarded: bool = True,
    rewards: Sequence[float] = (),
    gap: int = 1,
    client: str = "c",
    territory: str = "t",
) -> None:
    """One territory; each decision gets its reward before the next, or none does. `rewards`:
    the amounts, in turn."""
    rng = np.random.default_rng(0)
    for turn in range(ticks):
        features = [float(rng.uniform(-1, 1)), float(rng.uniform(-1, 1))]
        answer = _ask(
            at, client, type="observation", territory=territory, features=features, tick=gap * turn
        )
        if rewarded:
            chance = float(rng.uniform(-0.5, 0.5))
            worth = rewards[turn % len(rewards)] if rewards else chance
            _ask(at, client, type="reward", decision_id=answer["decision_id"], reward=worth)
    _ask(at, client, type="end", territory=territory)


def _ask(at: ServerWiring, client: str, **message: Any) -> dict[str, Any]:
    (answer,) = at.session.receive([Incoming(client, json.dumps(message).encode())])
    told: dict[str, Any] = json.loads(answer.data)
    assert told["type"] != "error", told
    return told


def publish_certain(run: Path, *options: int, declared: SchemaGame | None = None) -> None:
    """A version that always chooses one action: these options, counted over all parts."""
    named = declared or chunks()
    with contextlib.ExitStack():
        folder = RunFolder.open(
            run,
            spec=PolicySpec(named.features, named.actions, SMALL),
            config=None,
            clock=SystemClock(),
            game="skirmish",
        )
    fresh = weight_files.fresh(folder.spec, np.random.default_rng(0))
    params = {name: np.array(value) for name, value in fresh.params.items()}
    params["policy.b"][list(options)] = 30.0
    publish(folder, 1, weights=weight_files.Weights(**{**vars(fresh), "params": params}))
