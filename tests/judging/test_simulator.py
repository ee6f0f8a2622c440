"""The simulator: pairs promote what is better, refuse what is worse, and are counted once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from match.tug import Steady, Tug

from understudy.core.statistics import STAKES
from understudy.games import catalog
from understudy.gates.promotion.evidence import evidence
from understudy.gates.promotion.records import Nominated, Ordered, Paired, Record
from understudy.judging.simulator import Simulator, pairs_a_record, play_pairs
from understudy.match.evaluate import evaluate
from understudy.match.live_match import EVALUATION, SIMULATION, TRAINING, match_seeds
from understudy.match.players import BotPlayer, PolicyPlayer
from understudy.promotion.log import PromotionLog
from understudy.promotion.promotion import Promotion
from understudy.registry.run_folder import RunFolder

from .swarm_versions import OPTIONS, WORST, commit, run_of_swarm, settings

PAIRS = pairs_a_record(catalog.make("swarm"))


def simulator(folder: RunFolder, *, rules: str = WORST) -> tuple[Simulator, Promotion, list[str]]:
    promotion, problems = Promotion(folder), list[str]()
    if promotion.state.rules is None:
        promotion.declare(rules=rules, score=None)
    one = Simulator(folder, promotion, rules=rules, options=OPTIONS, problem=problems.append)
    return one, promotion, problems


def records(folder: RunFolder) -> list[Record]:
    return [record for _, record in PromotionLog(folder.promotion).new()]


def run_to_the_end(one: Simulator) -> int:
    """Steps until there is nothing to do."""
    steps = 0
    while one.step():
        steps += 1
        assert steps < 100
    return steps


def champion(folder: RunFolder) -> int:
    pointer = folder.pointers.read("champion")
    assert pointer is not None
    return pointer.version


def under_test(promotion: Promotion) -> int | None:
    test = promotion.state.test
    return None if test is None else test.version


def test_a_better_version_is_promoted_and_the_next_one_is_tested_against_it(tmp_path: Path) -> None:
    folder = run_of_swarm(tmp_path)
    commit(folder, 1, "DEFENSIVE")
    one, promotion, problems = simulator(folder)
    run_to_the_end(one)
    assert champion(folder) == promotion.state.incumbent == 1
    assert [verdict.kind for verdict in promotion.verdicts] == ["nominated", "promoted"]
    nominated, *pairs = [one for one in records(folder) if isinstance(one, Nominated | Paired)]
    assert isinstance(nominated, Nominated) and nominated.simulator
    assert nominated.experience == 100
    # The evidence is what the formula says of the pairs in the log.
    capital = np.zeros(len(STAKES))
    for record in pairs:
        assert isinstance(record, Paired) and len(record.canary) == PAIRS
        for canary, incumbent in zip(record.canary, record.incumbent, strict=True):
            if evidence(capital) < 20.0:
                capital = capital + np.log1p(np.array(STAKES) * (canary - incumbent))
    assert evidence(capital) >= 20.0
    # The same strategy is not better than itself: undecided or stopped, never promoted.
    commit(folder, 2, "DEFENSIVE", matches=119)
    assert not one.step()  # too little experience since the last one
    commit(folder, 3, "DEFENSIVE", matches=121)
    assert one.step() and promotion.state.test is not None
    assert (promotion.state.test.version, promotion.state.test.against) == (3, 1)
    assert one.step()
    newest = records(folder)[-1]
    assert isinstance(newest, Paired) and newest.seed != pairs[0].seed  # type: ignore[union-attr]
    assert problems == []


def test_a_worse_version_is_not_promoted_and_never_tested_again(tmp_path: Path) -> None:
    folder = run_of_swarm(tmp_path, config=settings(long=16, longest=32))
    commit(folder, 1, "TECH")
    one, promotion, _ = simulator(folder, rules="rules")
    assert run_to_the_end(one) <= 1 + 32 // PAIRS
    assert champion(folder) == promotion.state.incumbent == 0
    assert promotion.state.test is None
    assert promotion.verdicts[-1].kind in ("harmful", "undecided")
    commit(folder, 2, "TECH", matches=200)
    run_to_the_end(one)
    assert [v.version for v in promotion.verdicts if v.kind == "nominated"] == [1, 2]


def test_another_simulator_goes_on_with_the_same_pairs(tmp_path: Path) -> None:
    """Killed before any record, and replaced: the log is that of one that was never killed."""

    def results(root: Path, *, replaced: bool) -> list[tuple[object, ...]]:
        folder = run_of_swarm(root, config=settings(alpha=1e-3))
        commit(folder, 1, "DEFENSIVE")
        one, _, _ = simulator(folder)
        while one.step():
            if replaced:
                one, _, _ = simulator(folder)
        assert champion(folder) == 1
        return [
            (record.canary, record.incumbent, record.seed)
            for record in records(folder)
            if isinstance(record, Paired)
        ]

    whole, pieces = (results(tmp_path / str(one), replaced=one) for one in (False, True))
    assert whole == pieces and len(whole) > 1


def test_pairs_that_another_simulator_wrote_are_not_counted_again(tmp_path: Path) -> None:
    folder = run_of_swarm(tmp_path, config=settings(alpha=1e-3))
    commit(folder, 1, "DEFENSIVE")
    first, promotion, _ = simulator(folder)
    _, other, _ = simulator(folder)
    assert first.step() and first.step()
    test = promotion.state.test
    assert test is not None and test.paired == PAIRS
    seeds, draw = np.zeros(PAIRS, np.uint32), np.full(PAIRS, 0.5)
    again = other.pair(test.number, first=0, seeds=seeds, results=(draw, draw))
    assert not again
    assert not other.pair(test.number + 1, first=PAIRS, seeds=seeds, results=(draw, draw))
    assert sum(isinstance(record, Paired) for record in records(folder)) == 1


def test_while_promotion_is_paused_a_test_goes_on_and_no_other_one_begins(tmp_path: Path) -> None:
    folder = run_of_swarm(tmp_path)
    commit(folder, 1, "TECH")
    one, promotion, _ = simulator(folder, rules="rules")
    promotion.order(Ordered(order="pause"))
    assert not one.step()
    promotion.order(Ordered(order="resume"))
    assert one.step() and under_test(promotion) == 1
    promotion.order(Ordered(order="pause"))
    assert run_to_the_end(one)
    assert under_test(promotion) is None and promotion.state.incumbent == 0
    assert promotion.verdicts[-1].kind in ("harmful", "hopeless"), "it is worse"
    commit(folder, 2, "TECH", matches=200)
    assert not one.step()


def test_while_a_person_decides_who_plays_nothing_is_tested(tmp_path: Path) -> None:
    folder = run_of_swarm(tmp_path)
    commit(folder, 1, "DEFENSIVE")
    one, promotion, _ = simulator(folder)
    folder.pointers.pin("champion", 1, by="rollback")
    assert not one.step() and under_test(promotion) is None
    folder.pointers.release("champion")
    assert one.step() and under_test(promotion) == 1
    folder.pointers.pin("champion", 1, by="rollback")
    assert not one.step()
    latest = run_of_swarm(tmp_path / "latest", config=settings(policy="latest"))
    commit(latest, 1, "DEFENSIVE")
    one, promotion, _ = simulator(latest)
    assert not one.step() and under_test(promotion) is None


@pytest.mark.parametrize("broken", ["weights", "file"])
def test_a_version_that_cannot_play_is_passed_over_and_reported_once(
    tmp_path: Path, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run_of_swarm(tmp_path)
    commit(folder, 1, "DEFENSIVE", finite=broken != "weights")
    if broken == "file":
        (folder.versions.root / "00000001" / "weights.npz").unlink()
        manifest = folder.versions.manifest(1)
        monkeypatch.setattr(folder.versions, "head_manifest", lambda: manifest)
    one, promotion, problems = simulator(folder)
    assert not one.step() and not one.step()
    assert len(problems) == 1 and problems[0].startswith("version 1 is not tested: ")
    assert ("value.b" in problems[0]) == (broken == "weights")
    assert promotion.verdicts == []


def test_pairs_are_the_frozen_matches_of_both_on_the_same_seeds(tmp_path: Path) -> None:
    folder = run_of_swarm(tmp_path)
    commit(folder, 1, "DEFENSIVE")
    game = catalog.make("swarm", **OPTIONS)
    player = PolicyPlayer(folder.versions.policy(1), sampled=True)
    rules = BotPlayer(catalog.bots("swarm")["rules"])
    seeds = match_seeds(3, np.arange(12), purpose=SIMULATION, series=5)
    canary, incumbent = play_pairs(game, player, rules, seeds)
    for results, one in ((canary, player), (incumbent, rules)):
        tally = evaluate(game, one, seeds)
        assert results.shape == (12,)
        assert ((results == 1.0).sum(), (results == 0.5).sum()) == (tally.wins, tally.draws)


def test_a_record_has_fewer_pairs_of_longer_matches() -> None:
    assert pairs_a_record(catalog.make("brawl")) < PAIRS


def test_two_players_meet_from_both_sides() -> None:
    seeds = match_seeds(3, np.arange(9), purpose=SIMULATION)
    strong, weak = BotPlayer(Steady(1)), BotPlayer(Steady(0))
    canary, incumbent = play_pairs(Tug(), strong, weak, seeds)
    assert canary.tolist() == [1.0] * 9 and incumbent.tolist() == [0.0] * 9
    canary, incumbent = play_pairs(Tug(), weak, weak, seeds)
    assert canary.tolist() == incumbent.tolist() == [0.5] * 9


def test_seeds_of_a_test_are_those_of_no_other_match() -> None:
    indices = np.arange(5_000)
    series = [
        match_seeds(7, indices, purpose=purpose, series=number)
        for purpose, number in ((TRAINING, 0), (EVALUATION, 0), (SIMULATION, 3), (SIMULATION, 4))
    ]
    for place, one in enumerate(series):
        for other in series[place + 1 :]:
            assert len(np.intersect1d(one, other)) < 5  # 2^32 is not infinite


def test_beside_a_bot_it_waits_until_practice_looks_better(tmp_path: Path) -> None:
    folder = run_of_swarm(tmp_path, config=settings(practice_share=0.2))
    commit(folder, 1, "DEFENSIVE")
    alone, promotion, problems = simulator(folder)
    beside = Simulator(
        folder, promotion, rules=WORST, options=OPTIONS, problem=problems.append, practises=True
    )
    assert not beside.step() and promotion.state.test is None
    for number in range(20):
        for coin in (0.0, 0.999):
            order, _ = promotion.assign(f"{number}/{coin}", {}, coin, practice=1)
            promotion.resolve(order, 1.0 - round(coin), "finished")
    assert promotion.state.practice.promising
    assert beside.step() and under_test(promotion) == 1
    order, during = promotion.assign("during", {}, 0.0, practice=1)
    assert during.arm == "practice", "practice goes on while pairs are played"
    promotion.resolve(order, 1.0, "finished")
    assert alone.step() and problems == []
