"""A session of play, with nobody who learns: what is played, counted and kept."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judging.swarm_versions import NETWORK, commit, run_of_swarm, settings

from understudy.core.clock import SystemClock
from understudy.core.config import Config, with_values
from understudy.core.errors import ConfigError, RunFolderError
from understudy.experience.episode import Episode
from understudy.experience.spool import Spool
from understudy.games import catalog
from understudy.gates.promotion.records import Ordered
from understudy.match.evaluate import evaluate
from understudy.match.live_match import TRAINING, LiveMatch, match_seeds
from understudy.match.players import BotPlayer
from understudy.match.tally import Tally
from understudy.policy.mlp import Mlp
from understudy.policy.policy import Policy
from understudy.promotion.promotion import Promotion
from understudy.registry import run_folder
from understudy.registry.run_folder import RunFolder
from understudy.run.play import PlayProgress, PlaySession, adapted, play
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Reader


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def session(**changes: Any) -> PlaySession:
    kept: dict[str, Any] = {
        "game": "swarm",
        "run": Path("runs/one"),
        "difficulty": "easy",
        "matches": 3,
        "seed": 1,
        "learner": "off",
        "network": Mlp((8,)),
        "config": Config(),
    }
    return PlaySession(**{**kept, **changes})


def silent(progress: PlayProgress) -> None:
    pass


def episodes(run: Path) -> list[Episode]:
    folder = RunFolder.load(run, SystemClock())
    spool = Spool(run, folder.spec, folder.clock)
    return [spool.load(name) for name in spool.pending()]


def test_a_session_plays_what_was_asked_for_and_keeps_it() -> None:
    seen: list[int] = []
    summary = play(session(), show=lambda progress: seen.append(progress.played))
    assert seen == [1, 2, 3]
    assert not summary.interrupted
    told = summary.as_dict()
    assert told["matches"] == 3 and told["versions"] == 0
    assert told["episodes"] == {"written": 3, "ingested": 0, "archived": 0, "quarantined": 0}
    assert "eval" not in told
    assert run_folder.latest() == Path("runs/one")
    for episode in episodes(Path("runs/one")):
        assert episode.meta.outcome in {"victory", "defeat", "tie"}
        assert episode.meta.tags["difficulty"] == "easy"
        assert episode.legal is not None and episode.sampled.all()


def test_versions_that_are_in_no_journal_are_counted() -> None:
    """As those that `understudy relay` brings while a session plays."""
    play(session(matches=1, network=NETWORK), show=silent)
    folder = RunFolder.load(Path("runs/one"), SystemClock())

    def bring(progress: PlayProgress) -> None:
        commit(folder, 1, "DEFENSIVE")

    told = play(session(matches=1, network=NETWORK), show=bring).as_dict()
    assert told["versions"] == 1


def test_a_run_that_is_continued_meets_new_matches() -> None:
    for _ in range(2):
        play(session(matches=2), show=silent)
    kept = episodes(Path("runs/one"))
    assert len({episode.meta.id for episode in kept}) == 4
    assert len({episode.observations[0].tobytes() for episode in kept}) == 4


def test_frozen_matches_measure_the_start_the_end_and_the_rules() -> None:
    summary = play(session(matches=1, evaluate=8, difficulty="adaptive"), show=silent)
    told = summary.as_dict()
    keys = {"matches", "wins", "draws", "losses", "win_rate", "interval"}
    for name in ("eval", "start", "rules"):
        tally = told[name]
        assert isinstance(tally, dict) and tally.keys() == keys
        assert tally["matches"] == 8
    assert told["eval"] == told["start"]  # nobody learned
    measured = summary.status.last_evaluation
    assert measured is not None
    assert (measured.version, measured.matches, measured.opponent) == (0, 8, "hard")
    again = play(session(matches=1, evaluate=8, difficulty="hard"), show=silent).as_dict()
    assert again["rules"] == told["rules"]


def test_adaptive_difficulty_follows_the_win_rate() -> None:
    rates = (0.0, 0.099, 0.1, 0.299, 0.3, 0.699, 0.7, 1.0)
    expected = ["easy"] * 2 + ["medium"] * 2 + ["hard"] * 2 + ["very_hard"] * 2
    assert [adapted(rate) for rate in rates] == expected


def test_in_shadow_the_rules_play_every_match() -> None:
    summary = play(session(mode="shadow", difficulty="hard", matches=4), show=silent)
    tally = summary.by_player["the rules"]
    assert tally.matches == 4 and list(summary.by_player) == ["the rules"]
    # The rules play as in frozen matches on the same seeds.
    game = catalog.make("swarm", difficulty="hard")
    seeds = match_seeds(1, np.arange(4), purpose=TRAINING)
    assert evaluate(game, BotPlayer(catalog.bots("swarm")["rules"]), seeds) == tally
    for episode in episodes(Path("runs/one")):
        assert not episode.sampled.any()
    told = summary.as_dict()
    assert told["mode"] == "shadow" and "playing" not in told
    assert told["by_player"] == {"the rules": tally.as_dict()}


def test_in_auto_the_coin_gives_matches_to_the_rules_and_to_the_version_that_is_tested() -> None:
    config = with_values(settings(), {"promotion.first_share": 0.5})
    folder = run_of_swarm(Path("runs/one"), config=config)
    commit(folder, 1, "DEFENSIVE")
    promotion = Promotion(folder)
    promotion.declare(rules="random", score=None)
    assert promotion.nominate(1, experience=100, reason="a test asks for it")
    seen: list[PlayProgress] = []
    chosen = {"mode": "auto", "rules": "random", "network": NETWORK, "config": config}
    summary = play(session(matches=12, **chosen), show=seen.append)
    state = Promotion(folder).state
    assert summary.by_player.keys() == {"the rules", "version 1"}
    for version, name in enumerate(("the rules", "version 1")):
        tally = summary.by_player[name]
        assert state.records[version].matches == tally.matches
        assert state.records[version].total == tally.wins + tally.draws / 2
    status = seen[-1].promotion
    assert status is not None and status.plays == 0
    (test,) = status.tests
    assert [one.version for one in (test.canary, test.incumbent)] == [1, 0]
    for arm in (test.canary, test.incumbent):
        assert arm.mean == pytest.approx(state.records[arm.version].mean)
    told = summary.as_dict()
    assert told["playing"] == "the rules"
    assert told["why"] == "no version has shown yet that it is better"
    played_by = {tuple(set(one.versions[one.sampled].tolist())) for one in episodes(folder.root)}
    assert played_by == {(), (1,)}


def test_a_match_that_a_version_gave_to_the_rules_is_its_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = settings(first_share=1 - 1e-9)
    folder = run_of_swarm(Path("runs/one"), config=config)
    commit(folder, 1, "DEFENSIVE")
    promotion = Promotion(folder)
    promotion.declare(rules="rules", score=None)
    assert promotion.nominate(1, experience=100, reason="a test asks for it")
    act, acts = Policy.act, 0

    def failing(self: Policy, *given: Any, **options: Any) -> Any:
        nonlocal acts
        acts += self.version == 1
        if acts == 20:
            raise ValueError("a broken version")
        return act(self, *given, **options)

    monkeypatch.setattr(Policy, "act", failing)
    monkeypatch.setattr(LiveMatch, "outcome", lambda self: "victory")
    chosen = {"mode": "auto", "network": NETWORK, "config": config}
    summary = play(session(matches=2, **chosen), show=silent)
    assert {one: str(tally) for one, tally in summary.by_player.items()} == {
        "version 1": str(Tally(1, 0, 1))
    }
    state = promotion.follow()
    assert (state.records[1].matches, state.records[1].total) == (2, 1.0)
    assert [(one.player, one.wins, one.losses) for one in summary.status.played if not one.tag] == [
        ("version 1", 1, 1)
    ]


def test_verdicts_are_news_and_a_promoted_version_plays() -> None:
    folder = run_of_swarm(Path("runs/one"))
    commit(folder, 1, "DEFENSIVE")
    news: list[str] = []

    def order(progress: PlayProgress) -> None:
        news.extend(progress.news)
        progress.news.clear()
        if progress.played == 1:
            Promotion(folder).order(Ordered(order="approve", version=1))

    summary = play(
        session(matches=8, mode="auto", network=NETWORK, config=settings(), evaluate=4), show=order
    )
    assert summary.promotion is not None and summary.promotion.plays == 1
    assert summary.by_player["version 1"].matches >= 4
    assert any(one.startswith("version 1 plays from now on: ") for one in news)
    told = summary.as_dict()
    assert told["playing"] == "version 1"
    assert isinstance(told["champion"], dict) and told["champion"]["matches"] == 4


@pytest.mark.parametrize(
    ("policy", "playing", "why"),
    [
        ("auto", "version 1", "a person pinned it"),
        ("latest", "the newest version", "promotion.policy is 'latest'"),
    ],
)
def test_what_decides_instead_of_evidence_is_said(policy: str, playing: str, why: str) -> None:
    folder = run_of_swarm(Path("runs/one"))
    commit(folder, 1, "DEFENSIVE")
    news: list[str] = []

    def pin(progress: PlayProgress) -> None:
        news.extend(progress.news)
        progress.news.clear()
        if policy == "auto" and progress.played == 1:
            folder.pointers.pin("champion", 1, by="rollback")

    config = settings(policy=policy)
    chosen = {"mode": "auto", "network": NETWORK, "config": config, "evaluate": 2}
    summary = play(session(matches=3, **chosen), show=pin)
    told = summary.as_dict()
    assert (told["playing"], told["why"]) == (playing, why)
    assert summary.by_player["version 1"].matches == (2 if policy == "auto" else 3)
    assert (summary.champion is not None) == (policy == "auto")
    said = "from now on version 1, pinned by a person, plays every match"
    assert (said in news) == (policy == "auto")


def test_in_mode_play_the_champion_plays_and_nothing_is_learned() -> None:
    folder = run_of_swarm(Path("runs/one"))
    commit(folder, 1, "DEFENSIVE")
    folder.pointers.move("champion", 1, by="test")
    chosen = {"mode": "play", "network": NETWORK, "config": settings(), "lockstep": True}
    summary = play(session(matches=2, **chosen), show=silent)
    assert summary.by_player.keys() == {"version 1"}
    assert episodes(folder.root) == [] and folder.versions.numbers() == [1]


@pytest.mark.parametrize("before", ["matches", "simulator"])
def test_a_test_ends_where_the_evidence_is_another(
    before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped:
        def stop(self, timeout_s: float) -> bool:
            return True

    monkeypatch.setattr("understudy.run.play.start_simulator", lambda *a, **b: Stopped())
    simulator = before == "simulator"
    config = settings(evidence="matches" if simulator else "simulator")
    folder = run_of_swarm(Path("runs/one"))
    commit(folder, 1, "DEFENSIVE")
    promotion = Promotion(folder)
    promotion.declare(rules="rules", score=None)
    assert promotion.nominate(1, experience=1, reason="a test asks for it", simulator=simulator)
    play(session(matches=1, mode="auto", network=NETWORK, config=config), show=silent)
    assert promotion.follow().test is None
    assert promotion.verdicts[-1].kind == "stopped"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"mode": "learn", "rules": "rules"}, "--rules: in mode learn"),
        ({"mode": "auto", "rules": "ruls"}, "--rules: swarm has the bots .* Did you mean 'rules'"),
        ({"mode": "atuo"}, "--mode: expected one of .* Did you mean 'auto'"),
        ({"learner": "proces"}, "--learner: expected one of .* Did you mean 'process'"),
        ({"pace": "slow"}, "--pace: expected one of free, learner, got 'slow'"),
        ({"minutes": 1.0}, "give one of them"),
        ({"matches": None}, "give one of them"),
        ({"matches": 0}, "--matches: expected 1 or more, got 0"),
        ({"matches": None, "minutes": 0.0}, "--minutes"),
        ({"matches": None, "minutes": float("nan")}, "--minutes"),
        ({"evaluate": -1}, "--eval"),
    ],
)
def test_an_impossible_session_is_an_error(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        session(**changes)


def test_minutes_bound_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    summary = play(session(matches=None, minutes=0.5 / 60), show=silent)
    assert summary.status.matches >= 1


def test_a_run_folder_of_something_else_is_refused() -> None:
    play(session(matches=1), show=silent)
    with pytest.raises(RunFolderError, match="network"):
        play(session(network=Mlp((4,))), show=silent)


def press_after(monkeypatch: pytest.MonkeyPatch, acts: int) -> None:
    """Ctrl-C in mid-match, after so many frames."""
    count = 0
    act = LiveMatch.act

    def pressed(self: LiveMatch, action: Any) -> float:
        nonlocal count
        count += 1
        if count == acts:
            signal.raise_signal(signal.SIGINT)
        return act(self, action)

    monkeypatch.setattr(LiveMatch, "act", pressed)


def test_ctrl_c_ends_early_and_keeps_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGINT)
    press_after(monkeypatch, 300)
    summary = play(session(matches=100, evaluate=8), show=silent)
    assert signal.getsignal(signal.SIGINT) is before
    assert summary.interrupted and summary.as_dict()["interrupted"] is True
    assert summary.after is None
    kept = episodes(Path("runs/one"))
    assert sum(episode.meta.outcome == "aborted" for episode in kept) == 1
    assert sum(len(episode) for episode in kept) == 300
    assert summary.status.matches == summary.status.episodes.written == len(kept)
    assert summary.status.aborted == 1
    assert isinstance(Reader(Path("runs/one/journal")).new()[-1].e, ev.BotStopped)


def test_ctrl_c_pressed_again_loses_nothing_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one comes while the aborted match is being written."""
    press_after(monkeypatch, 300)
    put, pressed = Spool.put, 0

    def put_under_fire(self: Spool, episode: Episode) -> str:
        nonlocal pressed
        if episode.meta.outcome == "aborted" and not pressed:
            pressed += 1
            signal.raise_signal(signal.SIGINT)
        return put(self, episode)

    monkeypatch.setattr(Spool, "put", put_under_fire)
    summary = play(session(matches=100), show=silent)
    assert pressed == 1 and summary.interrupted
    kept = episodes(Path("runs/one"))
    assert sum(len(episode) for episode in kept) == 300
    assert kept[-1].meta.outcome == "aborted"


def test_ctrl_c_while_it_measures_skips_the_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    from understudy.run import play as module

    def interrupted(session: PlaySession, policy: object, **show: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(module, "frozen", interrupted)
    summary = play(session(matches=1, evaluate=8), show=silent)
    assert summary.interrupted and summary.after is None
    assert summary.status.matches == 1


def test_all_versions_that_practise_are_one_player() -> None:
    config = settings(practice_share=0.6, first_matches=10**6)
    folder = run_of_swarm(Path("runs/one"), config=config)
    commit(folder, 1, "DEFENSIVE", matches=300)

    def publish(progress: PlayProgress) -> None:
        commit(folder, progress.played + 1, "DEFENSIVE", matches=300)

    chosen = {"mode": "auto", "network": NETWORK, "config": config}
    summary = play(session(matches=12, **chosen), show=publish)
    assert summary.by_player.keys() == {"the rules", "practice"}
    rows = {one.player: one.matches for one in summary.status.played if not one.tag}
    assert rows == {name: summary.by_player[key].matches for name, key in
                    (("rules", "the rules"), ("practice", "practice"))}  # fmt: skip
    told = summary.as_dict()
    assert told["stage"] == "practice" and str(told["line"]).startswith("the rules play")
