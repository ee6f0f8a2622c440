"""Promotion in a served game: how soon a worse version is stopped, how often an equal one promoted.

    python benchmarks/serve_promotion.py [--runs 9] [--equal 4000] [--json]

20 territories make 10 decisions a second each, 200 in all, in simulated time. The scale of scores
is 10 standard deviations of a decision's reward wide.

*Worse*: the real session, ledger and promotion log, with rewards that the client tells. The version
is worse by 0.2 standard deviations; the time is from its nomination to its stop.

*Equal*: the real gate over simulated segments of 100 decisions, thousands of tests side by side. A
territory has a state that lasts (an autoregressive drift of one standard deviation and 30 seconds),
and each segment inherits what the player before it left: the wash-out removes only a part of it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import machine
import msgspec
import numpy as np
import served

from understudy.core.arrays import NDArray
from understudy.core.config import Config, with_values
from understudy.experience.episode import Episode
from understudy.experience.ledger import Ledger
from understudy.gates.decision import OpenGate
from understudy.gates.promotion import trial as gate
from understudy.gates.promotion.records import TrialSettings
from understudy.policy.mlp import Mlp
from understudy.policy.policy import Policy, untrained
from understudy.policy.spec import PolicySpec
from understudy.policy.weights import Weights, encode
from understudy.registry.checkpoints import INGESTED
from understudy.registry.pointers import LATEST
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS, Manifest
from understudy.run.segment_writer import HARM_SPREAD, open_segments
from understudy.session import schema
from understudy.session.inbox import Incoming
from understudy.session.segments import PlayerSegments
from understudy.session.session import Session
from understudy.telemetry.journal import Journal

TERRITORIES = 20
STEP_S = 0.1
DEVIATION = 0.1
"""Of a decision's reward; the scale is from 0 to 1."""
WORSE = 0.2 * DEVIATION
GOAL_S = 120.0
GOAL_EQUAL = 0.055
_LONGEST_S = 600.0
_CARRY = 0.8
"""Of the state at the end of a segment, what is left in the counted part of the next one."""
GAME = {
    "game": {
        "name": "bench",
        "features": ["a", "b"],
        "actions": ["hold", "go"],
        "fallback": "hold",
    }
}


class SimulatedClock:
    """Moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


def worse_stopped_after_s(root: Path, seed: int) -> float:
    """Seconds from the nomination of a version that is worse to its stop; inf: it was not."""
    clock, rng = SimulatedClock(), np.random.default_rng(seed)
    game = schema.from_table(GAME)
    spec = PolicySpec(game.features, game.actions, Mlp(widths=(8,)))
    config = with_values(Config(), {"live.promotion": "auto", "live.score": (0.0, 1.0)})
    folder = RunFolder.open(root, spec=spec, config=config, clock=clock)
    newest = [untrained(spec, 0)]
    writer = open_segments(
        folder,
        newest=lambda: newest[0],
        journal=Journal(folder.journal, "server", clock),
        say=lambda words: None,
        problem=_raise,
        seed=seed,
        background=False,
    )

    def put(episode: Episode) -> None:
        writer.remember(episode)

    live = config.live
    ledger = Ledger(
        root / "ledger", spec, segment=live.segment, clock=clock, put=put, sync_ms=50.0,
        background=False,
    )  # fmt: skip
    session = Session(
        game,
        policy=lambda: writer.policy,
        gate=OpenGate(),
        ledger=ledger,
        config=live,
        clock=clock,
        seed=seed,
        segments=PlayerSegments(writer, live),
    )
    began: float | None = None
    for tick in range(round(_LONGEST_S / STEP_S)):
        _step(session, rng, tick)
        writer.work()
        clock.now += STEP_S
        if tick % 10 == 0:
            session.tick()
        if tick == 200:
            newest[0] = _published(folder)
        running = writer.is_testing
        if began is None and running:
            began = clock.now
        if began is not None and not running:
            ledger.stop()
            stopped = writer.incumbent.version == 0
            return clock.now - began if stopped else float("inf")
    ledger.stop()
    return float("inf")


def _step(session: Session, rng: np.random.Generator, tick: int) -> None:
    observed = [
        b'{"type":"observation","territory":"t%d","features":[1.0,2.0],"tick":%d}' % (one, tick)
        for one in range(TERRITORIES)
    ]
    answers = session.receive([Incoming("c", one) for one in observed])
    decided = [msgspec.json.decode(one.data) for one in answers]
    noise = rng.normal(0.5, DEVIATION, TERRITORIES)
    told = [
        {
            "type": "reward",
            "decision_id": one["decision_id"],
            "reward": float(luck) - WORSE * (one["by"] == "policy"),
        }
        for one, luck in zip(decided, noise, strict=True)
    ]
    session.receive([Incoming("c", msgspec.json.encode(one)) for one in told])


def _published(folder: RunFolder) -> Policy:
    spec = folder.spec
    first = spec.network.init(np.random.default_rng(1), len(spec.features), spec.actions.options)
    zeros, ones = np.zeros(len(spec.features), np.float32), np.ones(len(spec.features), np.float32)
    params = {name: np.zeros_like(value) for name, value in first.items()}
    params["policy.b"] = np.array([0.0, 2.0], np.float32)
    weights = Weights(params=params, obs_mean=zeros, obs_scale=ones, value_scale=np.float32(1.0))
    manifest = Manifest(number=1, parent=None, created_at=0.0, spec=spec, counters={INGESTED: 50})
    folder.versions.commit(manifest, {WEIGHTS: encode(weights)})
    folder.pointers.move("candidate", 1, by=LATEST)
    return folder.versions.policy(1)


def _raise(words: str, error: Exception | None = None) -> None:
    raise RuntimeError(words) from error


def equal_verdicts(runs: int, seed: int) -> dict[str, float]:
    """How tests of an equal version end, as shares; results carry over between segments."""
    rng = np.random.default_rng(seed)
    settings = TrialSettings(harm_spread=HARM_SPREAD)
    trial = gate.new_trial(shape=(runs,))
    verdicts = np.zeros(runs, np.int64)
    state = rng.normal(0.0, DEVIATION, (TERRITORIES, runs))
    for turn in range(settings.longest):
        where = turn % TERRITORIES
        drift = rng.normal(0.0, DEVIATION * np.sqrt(1.0 - _CARRY**2), runs)
        state[where] = _CARRY * state[where] + drift
        noise = rng.normal(0.0, DEVIATION / np.sqrt(80.0), runs)
        shares = gate.canary_share(trial, settings)
        arms = (rng.random(runs) < shares).astype(np.float64)
        results = np.clip(0.5 + state[where] + noise, 0.0, 1.0)
        trial, looks = gate.advance(
            trial,
            settings,
            alpha=settings.alpha,
            arms=arms[None],
            shares=shares[None],
            results=results[None],
            strata=np.zeros((1, runs), np.int64),
        )
        verdicts = np.where(verdicts == gate.CONTINUE, looks.verdict[0], verdicts)
    return {
        "promoted": _share(verdicts == gate.BETTER),
        "stopped": _share(verdicts == gate.HARM),
        "hopeless": _share(verdicts == gate.HOPELESS),
        "undecided": _share(verdicts == gate.FUTILE),
    }


def _share(which: NDArray) -> float:
    return float(which.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--equal", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    took = []
    for run in range(arguments.runs):
        with tempfile.TemporaryDirectory() as folder:
            took.append(worse_stopped_after_s(Path(folder), arguments.seed + run))
    median = float(np.median(took))
    equal = equal_verdicts(arguments.equal, arguments.seed)
    result = {"machine": machine.describe("numpy"), "worse_s": took, "equal": equal}
    lines = [
        f"worse by 0.2 deviations, {len(took)} runs: stopped after {median:.0f} s (median), "
        f"{max(took):.0f} s at most; goal {GOAL_S:.0f} s",
        f"equal, with carry-over, {arguments.equal} tests: {json.dumps(equal)}; "
        f"goal promoted at most {GOAL_EQUAL}",
    ]
    missed = []
    if median > GOAL_S:
        missed.append(f"a worse version was stopped after {median:.0f} s")
    if equal["promoted"] > GOAL_EQUAL:
        missed.append(f"{equal['promoted']:.1%} of equal versions were promoted")
    served.report(result, lines, missed, as_json=arguments.json)


if __name__ == "__main__":
    main()
