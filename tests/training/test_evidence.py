"""Training with a simulator beside it: the champion is the version that is better by evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from arena.makers import BOTS, CONFIG, GAME, GAMES, NETWORK, SEGMENT

from understudy.core.clock import SystemClock
from understudy.core.config import Config, with_values
from understudy.core.errors import ConfigError
from understudy.games import catalog
from understudy.judging.players import PlayerResolver
from understudy.judging.simulator import Simulator
from understudy.policy.mlp import Mlp
from understudy.promotion.promotion import Promotion
from understudy.registry.pointers import PROMOTION
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS
from understudy.supervise.budget import Budget
from understudy.telemetry.journal import Journal
from understudy.training import evidence
from understudy.training.environments.session import EnvironmentSession
from understudy.training.session import TrainProgress, TrainSession
from understudy.training.train import check, train_agent

ROLLOUT = GAMES * SEGMENT
SETTINGS = {
    "train.opponents": "rest=1,pull=1,moody=1,self=2",
    "train.checkpoint_steps": 2 * ROLLOUT,
    "monitor.csv": False,
    "train.entropy_schedule": "constant",
    "promotion.first_matches": 1,
}


@pytest.fixture(autouse=True, scope="module")
def toy() -> Iterator[None]:
    """The toy of two players is a game that has a name; its rules rest, so any pull is better."""
    entry = catalog.Entry(
        make=lambda: GAME, summary="Pull a rope.", options={}, bots=lambda: BOTS, rules="rest"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "_GAMES", {**catalog._GAMES, "tug": entry})
        yield


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def session(run: str, judged_by: str, **changes: Any) -> TrainSession:
    config: Config = changes.pop("config", with_values(CONFIG, SETTINGS))
    return TrainSession(
        game="tug",
        game_options={},
        run=Path(run),
        network=NETWORK,
        config=with_values(config, {"promotion.evidence": judged_by}),
        budget=Budget(steps=changes.pop("steps", 4 * ROLLOUT)),
        **changes,
    )


class Inline:
    """A simulator in this process, which knows the toy; a step after each iteration."""

    def __init__(
        self, folder: RunFolder, journal: Journal, *, rules: str, options: Mapping[str, str]
    ) -> None:
        self.stopped = False
        promotion = Promotion(folder)
        self.simulator = Simulator(
            folder, promotion, rules=rules, options=options, problem=pytest.fail
        )

    def stop(self, timeout_s: float) -> bool:
        self.stopped = True
        return True


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> list[Inline]:
    started: list[Inline] = []

    def start(*args: Any, **options: Any) -> Inline:
        started.append(Inline(*args, **options))
        return started[-1]

    monkeypatch.setattr(evidence, "start_simulator", start)
    monkeypatch.setattr(evidence, "_LOOK_EVERY_S", 0.0)
    return started


def weights_of(run: str) -> bytes:
    versions = RunFolder.load(Path(run), SystemClock()).versions
    head = versions.head_manifest()
    assert head is not None
    return versions.read(head, WEIGHTS)


def test_a_version_that_is_better_becomes_the_champion(inline: list[Inline]) -> None:
    news: list[str] = []

    def show(progress: TrainProgress) -> None:
        for _ in range(4):
            inline[0].simulator.step()
        news.extend(progress.news)
        progress.news.clear()

    summary = train_agent(session("proven", "simulator"), show=show)
    assert inline[0].stopped
    folder = RunFolder.load(Path("proven"), SystemClock())
    candidate, champion = (folder.pointers.read(name) for name in ("candidate", "champion"))
    assert candidate is not None and candidate.version == summary.version == 2
    assert champion is not None and champion.by == PROMOTION
    assert summary.champion == summary.as_dict()["champion"] == champion.version == 1
    told = [one.split(":")[0] for one in news if one.startswith("version ")]
    assert told[:2] == ["version 1 is tried", "version 1 plays from now on"]

    # Training reads none of it.
    latest = train_agent(session("latest", "matches"), show=lambda progress: None)
    assert latest.champion is None and latest.as_dict()["champion"] == 2
    assert weights_of("proven") == weights_of("latest")

    # A run whose champion moves by evidence goes on so.
    with pytest.raises(ConfigError, match=r"--evidence: the champion of proven moves by evidence"):
        check(session("proven", "matches", resume=True, steps=8 * ROLLOUT))
    check(session("proven", "simulator", resume=True, steps=8 * ROLLOUT))


def test_without_a_champion_the_newest_version_is_judged(inline: list[Inline]) -> None:
    summary = train_agent(session("young", "simulator"), show=lambda progress: None)
    assert summary.champion == 0
    resolver = PlayerResolver("tug", leads=[("--agent", "young")], delay=None, sampled=True)
    assert resolver.resolve("--agent", "young").version == 2
    assert resolver.notes == [
        "young has no champion by evidence yet; this is the newest version, 2"
    ]


def test_a_test_by_matches_ends_since_training_has_none(inline: list[Inline]) -> None:
    train_agent(session("mixed", "simulator"), show=lambda progress: None)
    folder = RunFolder.load(Path("mixed"), SystemClock())
    promotion = Promotion(folder)
    assert promotion.nominate(1, experience=1, reason="a bot tried it")
    longer = session("mixed", "simulator", resume=True, steps=6 * ROLLOUT)
    train_agent(longer, show=lambda progress: None)
    assert promotion.follow().test is None
    assert "tested by simulated matches" in promotion.verdicts[-1].words


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"population.agents": 2}, "leave --evidence simulator or --population out"),
        ({"league.exploits": "runs/x@1"}, "leave --evidence simulator or --exploit out"),
    ],
)
def test_where_champions_are_made_otherwise_evidence_is_refused(
    changes: dict[str, object], expected: str
) -> None:
    config = with_values(with_values(CONFIG, SETTINGS), changes)
    with pytest.raises(ConfigError, match=expected):
        check(session("new", "simulator", config=config))
    assert not Path("new").exists()


def test_an_environment_has_no_simulator() -> None:
    config = with_values(Config(), {"promotion.evidence": "simulator"})
    with pytest.raises(ConfigError, match=r"promotion\.evidence: .* has no simulator"):
        EnvironmentSession(
            environment="gymnasium:CartPole-v1",
            run=Path("new"),
            budget=Budget(steps=100),
            network=Mlp(),
            config=config,
        )
