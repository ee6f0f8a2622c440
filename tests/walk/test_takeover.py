"""The takeover with real processes: the bot of docs/examples goes from its rules to a champion,
though its learner is killed on the way."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from understudy import Understudy
from understudy.core import config as configs
from understudy.core.clock import SystemClock
from understudy.core.config import Config
from understudy.core.spaces import Discrete
from understudy.policy.mlp import Mlp
from understudy.policy.spec import PolicySpec
from understudy.promotion.history import read_history
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Reader

from . import toys

pytest.importorskip("jax")

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "goalkeeper.py"
PATIENCE_S = 240.0
SETTINGS = {  # every stage, in some hundred matches
    "learner.gather_s": 0.0,
    "learner.imitation_entropy": 0.6,
    "learner.imitation_fade_matches": 5.0,
    "learner.kl_target": 0.05,
    "learner.learning_rate": 0.005,
    "learner.learning_rate_max": 0.01,
    "learner.gamma": 0.0,
    "learner.publish_interval_s": 0.0,
    "promotion.alpha": 0.1,
    "promotion.cameo_share": 0.3,
    "promotion.first_matches": 20,
    "promotion.long": 100,
    "promotion.longest": 200,
    "promotion.practice_share": 0.4,
    "registry.keep_versions": 1_000_000,
}
COMPILING = {  # the second learner finds what the first one compiled; nothing is optimised
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    "XLA_FLAGS": "--xla_backend_optimization_level=0",
}


def journal(run: Path) -> list[events.Event]:
    return [entry.e for entry in Reader(run / "journal").new()]


def kill_learner_in_practice(run: Path, bot: subprocess.Popen[str]) -> int:
    """SIGKILL, as soon as a version practises; the process that was killed."""
    reader, until, learner = Reader(run / "journal"), time.monotonic() + PATIENCE_S, 0
    while True:
        for entry in reader.new():
            if isinstance(entry.e, events.LearnerStarted):
                learner = entry.e.pid
            elif isinstance(entry.e, events.RoleChanged) and entry.e.kind == "practising":
                psutil.Process(learner).kill()
                return learner
        assert bot.poll() is None and time.monotonic() < until, "no version practised"
        time.sleep(0.02)


def ids(run: Path) -> Iterator[str]:
    """Of all episodes that are kept."""
    for where in ("buffer", "archive"):
        yield from (meta.id for meta in toys.metas(run / where))


def test_from_rules_to_champion_though_the_learner_is_killed(tmp_path: Path) -> None:
    example: dict[str, Any] = runpy.run_path(str(EXAMPLE))
    run, clock = tmp_path / "run", SystemClock()
    spec = PolicySpec(tuple(example["FEATURES"]), Discrete(tuple(example["ACTIONS"])), Mlp((16,)))
    config = configs.with_values(Config(), SETTINGS)
    RunFolder.open(run, spec=spec, config=config, clock=clock)  # a run keeps its settings
    with subprocess.Popen(
        [sys.executable, str(EXAMPLE), str(run)],
        env={**os.environ, **COMPILING, "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled")},
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as bot:
        try:
            killed = kill_learner_in_practice(run, bot)
            printed, _ = bot.communicate(timeout=PATIENCE_S)
        except BaseException:
            bot.terminate()  # it takes its learner along
            raise
    assert bot.returncode == 0, printed

    folder = RunFolder.load(run, clock)
    history = read_history(folder)
    champion = history.state.incumbent
    kinds = [one.kind for one in history.verdicts if one.version == champion]
    assert champion and kinds[-2:] == ["nominated", "promoted"], "it was promoted by evidence"

    written = journal(run)
    started = [one.pid for one in written if isinstance(one, events.LearnerStarted)]
    assert len(started) >= 2 and started[0] == killed, "the learner came back"
    finished = [one for one in written if isinstance(one, events.MatchFinished)]
    assert Counter(ids(run)) == Counter(one.id for one in finished), "a match is lost or doubled"
    learned = Counter(name for one in toys.manifests(folder) for name in one.ingested)
    assert set(learned.values()) == {1}, "a match was learned from twice"
    assert toys.counts(run)[2] == 0, "a match is in quarantine"

    roles = {one.role for one in finished}
    assert roles >= {"rules", "practice", "canary", "champion"}
    by_rules = [one for one in finished if one.role == "rules"]
    assert any(one.fallback < one.decisions for one in by_rules), "the rules' matches had cameos"

    with Understudy.open(
        run, features=example["FEATURES"], actions=example["ACTIONS"], mode="play"
    ) as mind:
        seeds = range(10**6, 10**6 + 200)
        compared = mind.evaluate(example["play"], 200, version=champion, seeds=seeds)
    assert compared.low > 0.0, f"on fresh seeds it does not beat the rules: {compared}"
