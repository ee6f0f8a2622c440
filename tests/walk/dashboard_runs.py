"""Runs for the tests of the dashboard: one by evidence whose test goes on, one with a match that
can be replayed."""

from __future__ import annotations

from pathlib import Path

from judging.swarm_versions import NETWORK, commit, run_of_swarm
from promotion.scripted import ScriptedRun

from understudy import Config, Understudy
from understudy.core import files
from understudy.core.config import with_values
from understudy.games import catalog
from understudy.match.live_match import LiveMatch
from understudy.match.replaying import replay_tags
from understudy.registry.pointers import LATEST

from .power import UnsyncedDisk

PROMOTED, TESTED = 1, 2
"""Versions of the run by evidence."""


def run_by_evidence(root: Path) -> None:
    """Version 1 was promoted; version 2 is tested against it."""
    with files.using(UnsyncedDisk()):
        run = ScriptedRun(root, seed=1)
        run.nominate(PROMOTED)
        run.play(400, {0: 0.3, PROMOTED: 0.9}, until="promoted", opponent="Zerg")
        run.nominate(TESTED)
        run.play(12, {0: 0.3, PROMOTED: 0.7, TESTED: 0.7}, opponent="Terran")


def run_with_replays(root: Path) -> None:
    """Swarm: matches of three versions, of which the first is no longer kept."""
    game = catalog.make("swarm")
    config = with_values(Config(), {"report.status_every_s": 0})
    folder = run_of_swarm(root, config=config)
    for number, strategy in enumerate(("DEFENSIVE", "AGGRESSIVE", "TECH"), start=1):
        commit(folder, number, strategy)
        folder.pointers.move("champion", number, by=LATEST)
        live = LiveMatch(game, number)
        with (
            Understudy.open(
                root, features=game.features, actions=game.actions, network=NETWORK, mode="learn",
                learner="off", game=f"swarm {game.version}",
                config=config,
            ) as mind,
            mind.match(**live.tags, **replay_tags(game, number)) as match,
        ):  # fmt: skip
            while not live.over:
                action = match.decide(live.observe(), legal=live.legal())
                match.reward(live.act(game.actions.names.index(action)))  # type: ignore[union-attr]
            match.finish(live.outcome())
    assert folder.versions.prune(keep_newest=2, keep={}) == [1]
