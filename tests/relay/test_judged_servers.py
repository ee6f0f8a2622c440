"""`serve --promotion auto` behind a relay: segments of several servers are judged once, where the
learner is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from promotion.runs import assigned, folded, records, resolved
from session.played import ATTACK, RETREAT
from walk.power import UnsyncedDisk
from walk.toys import metas

from relay.judged import brought, own_log
from relay.judged_servers import ServedWorld, by_shard
from relay.makers import FailingStore, Failure
from understudy.core import files
from understudy.gates.promotion.records import Assigned, Nominated, Ordered, Resolved
from understudy.promotion.promotion import Promotion
from understudy.promotion.served import HARM_SPREAD
from understudy.registry.versions import WEIGHTS

ALL_CANARY = {"promotion.first_share": 0.999, "promotion.share": 0.999}
SHARDS = {"shard=0/2", "shard=1/2"}


@pytest.fixture(autouse=True)
def unsynced() -> Iterator[None]:
    with files.using(UnsyncedDisk()):
        yield


def test_a_version_takes_over_by_segments_of_two_servers(tmp_path: Path) -> None:
    world = ServedWorld(tmp_path)
    world.play(15.0)
    world.publish(1)
    world.play(400.0, until=lambda: all(one.game.champion() == 1 for one in world.placed))
    assert [one.game.champion() for one in world.placed] == [1, 1], world.learner.problems
    world.stop()
    state = world.check()
    assert state.champion == 1 and state.score == (0.0, 1.0)
    tested = [one for one in assigned(world.learner.folder) if one.test]
    assert {one.stratum for one in tested} == SHARDS, "evidence of both, compared by shard"
    (nominated,) = (one for _, one in records(world.learner.folder) if isinstance(one, Nominated))
    assert nominated.settings.harm_spread == HARM_SPREAD, "as beside a server"
    assert any("segments" in one for one in world.learner.problems), "in words of a server"
    came = Counter(one.id for one in metas(world.learner.folder.root / "buffer"))
    assert len(came) > 20 and set(came.values()) == {1}, "no two servers name a segment alike"
    for one in world.placed:
        assert any("version 1 plays from now on" in words for words in one.game.said)
        assert one.game.problems == [] and one.machine.problems == []
        assert not any(isinstance(made, Nominated) for _, made in own_log(one.machine))


def test_versions_practise_on_all_servers_and_are_tried_once_practice_leads(
    tmp_path: Path,
) -> None:
    world = ServedWorld(tmp_path, settings={"promotion.practice_share": 0.3})
    world.publish(1, RETREAT)
    world.play(60.0, until=lambda: folded(world.learner.folder).practice.begun)
    world.publish(2, ATTACK)

    def tested() -> bool:
        return folded(world.learner.folder).test is not None

    world.play(300.0, until=tested)
    state = folded(world.learner.folder)
    assert state.test is not None and state.test.version == 2
    arms = {
        (one.arm, one.stratum)
        for one in assigned(world.learner.folder)
        if one.arm == "practice" and one.version == 2
    }
    assert arms == {("practice", one) for one in SHARDS}
    assert state.practice.lead >= 3.0, "not as soon as it looks better"


def test_a_worse_version_is_stopped_though_the_places_differ(tmp_path: Path) -> None:
    level = {0: 0.2, 1: 0.8}

    def reward(action: str, shard: int) -> float:
        noise = 0.02 * (world.clock.now * 7.3 % 1.0 - 0.5)
        return level[shard] + noise - 0.1 * (action == ATTACK)

    world = ServedWorld(tmp_path, reward=reward)
    world.play(15.0)
    world.nominate(1)
    world.play(300.0, until=lambda: folded(world.learner.folder).test is None)
    assert folded(world.learner.folder).roles == {1: "retired"}
    assert any("it is worse" in one for one in world.learner.problems), world.learner.problems


def test_a_server_that_was_killed_voids_what_it_left_and_goes_on(tmp_path: Path) -> None:
    world = ServedWorld(tmp_path)
    world.play(5.0)
    world.nominate(1)
    world.play(15.0)
    victim, other = world.placed
    left = set(victim.game.segments._open)
    assert left
    victim.die()
    world.placed = [other]
    before = by_shard(world.learner.folder)
    world.play(20.0)
    after = by_shard(world.learner.folder)
    assert after["shard=1/2"] > before["shard=1/2"] + 5, "it holds up no other"
    assert after["shard=0/2"] == before["shard=0/2"]
    victim.open_again()
    world.placed = [victim, other]
    world.play(20.0)
    world.stop()
    world.check()
    lost = [
        result
        for made, result in brought(records(world.learner.folder), victim.machine)
        if isinstance(made, Assigned) and result is not None and "session ended" in result.words
    ]
    assert len(lost) >= len(left) and {one.ending for one in lost} == {"void"}
    assert by_shard(world.learner.folder)["shard=0/2"] > before["shard=0/2"] + 5


def test_a_server_without_the_network_counts_when_it_comes_in_its_own_order(
    tmp_path: Path,
) -> None:
    world = ServedWorld(tmp_path)
    world.play(5.0)
    world.nominate(1)
    world.play(40.0, silent=(0,))
    silent = world.placed[0]
    waits = [one for _, one in own_log(silent.machine) if isinstance(one, Assigned)]
    here = by_shard(world.learner.folder)
    assert len(waits) > here["shard=0/2"] + 10 and here["shard=1/2"] > 10
    world.settle()
    world.stop()
    world.check()
    mine = [one.match for one in assigned(world.learner.folder) if one.stratum == "shard=0/2"]
    assert mine == [one.match for _, one in own_log(silent.machine) if isinstance(one, Assigned)]


def test_a_stop_where_the_learner_is_holds_on_all_servers_in_the_middle_of_segments(
    tmp_path: Path,
) -> None:
    world = ServedWorld(tmp_path, settings=ALL_CANARY)
    world.play(5.0)
    world.nominate(1)
    world.play(
        60.0,
        until=lambda: all(one.game.segments.playing == {"canary": 4} for one in world.placed),
    )
    Promotion(world.learner.folder).order(Ordered(order="stop", version=1))
    world.settle()
    for one in world.placed:
        assert {answer["by"] for answer in one.game.decide()} == {"rules"}
    world.stop()
    world.check()
    ends = [one for one in resolved(world.learner.folder) if "player was stopped" in one.words]
    assert len(ends) == 8 and {one.ending for one in ends} == {"void"}


def test_a_version_that_one_server_cannot_load_loses_there_and_a_champion_counts_for_no_arm(
    tmp_path: Path,
) -> None:
    world = ServedWorld(tmp_path, settings={"promotion.long": 10_000, "promotion.longest": 10_000})
    world.play(5.0)
    first = world.placed[0]
    for number, plays in ((1, "canary"), (2, "champion")):
        world.publish(number)
        world.publish(number + 10, RETREAT)  # so that the newest, in memory, is another one
        promotion = Promotion(world.learner.folder)
        if plays == "canary":
            assert promotion.nominate(number, experience=1, reason="a test")
        else:
            promotion.order(Ordered(order="approve", version=number))
        promotion.close()
        world.players[0].look()
        world.learner.look()
        world.players[0].look()
        (first.game.folder.versions.folder(number) / WEIGHTS).write_bytes(b"damaged")
        world.play(30.0)
    ends = {
        (made.version, result.ending)
        for made, result in brought(records(world.learner.folder), first.machine)
        if isinstance(made, Assigned) and result is not None and "loaded" in result.words
    }
    assert ends == {(1, "fault"), (2, "void")}


def test_servers_with_one_seed_throw_different_coins(tmp_path: Path) -> None:
    world = ServedWorld(tmp_path, same_coins=False)
    world.settle()
    world.play(15.0)
    coins = [
        [one.uniform for _, one in own_log(placed.machine) if isinstance(one, Assigned)]
        for placed in world.placed
    ]
    assert all(len(one) > 3 for one in coins) and not set(coins[0]) & set(coins[1])


def test_servers_that_are_judged_together_share_the_rate_of_segments(tmp_path: Path) -> None:
    quick = {"live.promotion_segment": 16, "live.promotion_segments_per_s": 2.0}
    world = ServedWorld(tmp_path, settings=quick)
    world.settle()
    world.play(40.0)
    for one in world.placed:
        made = [record for _, record in own_log(one.machine) if isinstance(record, Assigned)]
        assert 25 <= len(made) <= 42, "an N-th of the setting each"


@pytest.mark.parametrize("how", ["before", "after", "killed"])
@pytest.mark.parametrize("whose", [0, 2])
def test_no_failure_of_the_store_loses_or_repeats_a_segment(
    tmp_path: Path, how: Failure, whose: int
) -> None:
    quick = {"live.promotion_segment": 16, "live.promotion_segments_per_s": 1000.0}

    def story(root: Path, stores: tuple[FailingStore, ...]) -> ServedWorld:
        world = ServedWorld(root, stores=stores, settings=quick, reward=lambda *_: 0.5)
        world.play(3.0)
        world.nominate(1)
        world.play(4.0)
        world.placed[1].die()
        world.placed[1].open_again()
        world.play(3.0)
        world.stop()
        world.stop()
        return world

    asked = [FailingStore(tmp_path / "whole" / "store") for _ in range(3)]
    story(tmp_path / "whole", tuple(asked))
    step = max(asked[whose].asked // 4, 1)
    for at in range(whose, asked[whose].asked, step):
        root = tmp_path / f"{at}"
        stores = [FailingStore(root / "store") for _ in range(3)]
        stores[whose] = FailingStore(root / "store", at=at, how=how)
        world = story(root, tuple(stores))
        state = world.check()
        assert state.test is not None and state.test.trial.arm_counts.sum() > 3
        endings = [
            one.words for _, one in records(world.learner.folder) if isinstance(one, Resolved)
        ]
        assert endings.count("its session ended without a result") >= 4
