"""Mode `auto` over a relay: evidence of several machines is judged once, on the learner's."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bot.minds import mind
from promotion.runs import folded, records, summary
from walk.power import UnsyncedDisk
from walk.toys import SPEC

from relay.judged import Bot, World, brought, judge, own_prefix, player, story
from relay.makers import FailingStore, Failure
from understudy.core import files
from understudy.core.errors import RunFolderError
from understudy.gates.promotion.records import Assigned, Nominated, Ordered, Resolved
from understudy.promotion.promotion import Promotion
from understudy.relay import bucket
from understudy.relay import judge as judges
from understudy.run import controls

CHANCES = {0: 0.2, 1: 0.9}
CANARY, INCUMBENT = 0.15, 0.99
"""Coins beside a holdout of a tenth."""


@pytest.fixture(autouse=True)
def unsynced() -> Iterator[None]:
    with files.using(UnsyncedDisk()):
        yield


def test_a_version_becomes_champion_by_evidence_of_two_machines(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.settle()  # the declarations arrive
    world.arrive(4)
    world.publish(1)
    for _ in range(60):
        for bot in world.bots:
            bot.play(3, CHANCES)
        world.settle(1)
        if folded(world.learner.folder).champion:
            break
    world.settle()
    state = world.check()
    assert state.champion == 1, world.learner.problems
    log = records(world.learner.folder)
    nominated = [record for _, record in log if isinstance(record, Nominated)]
    assert [one.version for one in nominated] == [1], "the learner's side nominates"
    for one in world.players:
        tested = [made for made, _ in brought(log, one) if isinstance(made, Assigned) and made.test]
        assert len(tested) > 5, "evidence of both"
        assert not any(isinstance(record, Nominated) for record, _ in own_prefix(one))
        assert one.problems == []
        assert one.folder.versions.policy(1).version == 1
    world.bots[0].play(20, CHANCES)
    assert {
        made.version for made, _ in own_prefix(world.players[0]) if isinstance(made, Assigned)
    } == {0, 1}
    assert world.store.list(bucket.RESULTS) == []


@pytest.mark.parametrize("how", ["before", "after", "killed"])
@pytest.mark.parametrize("whose", [0, 1, 2])
def test_no_failure_of_the_store_loses_or_repeats_evidence(
    tmp_path: Path, how: Failure, whose: int
) -> None:
    asked = FailingStore(tmp_path / "whole" / "store")
    story(World(tmp_path / "whole", (asked,) * 3))
    step = max(asked.asked // 3 // 6, 1)
    for at in range(whose, asked.asked // 3 + 1, step):
        root = tmp_path / f"{at}"
        failing = FailingStore(root / "store", at=at, how=how)
        sound = FailingStore(root / "store")
        stores = [sound, sound, sound]
        stores[whose] = failing
        world = World(root, tuple(stores))
        story(world)
        world.settle()
        state = world.check()
        assert state.test is not None and state.test.trial.arm_counts.sum() > 3
        endings = [
            one.ending for _, one in records(world.learner.folder) if isinstance(one, Resolved)
        ]
        assert endings.count("vanished") == 1, "a lost match counts 0"


@pytest.mark.skipif(os.name != "posix", reason="forks children and kills them")
@pytest.mark.parametrize("whose", ["player", "learner"])
def test_a_kill_at_any_effect_leaves_the_same_evidence(tmp_path: Path, whose: str) -> None:
    script = Path(__file__).with_name("judged_children.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), whose],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout)
    assert found["kills"] > 20
    assert whose == "player" or found["between an assignment and its result"] >= 3


def test_a_silent_machine_holds_up_no_other_and_counts_when_it_comes(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.settle()
    world.nominate(1)
    slow, quick = world.bots
    order, assigned = slow.begin(CANARY)
    slow.play(2, CHANCES)
    quick.play(5, CHANCES)
    world.settle()
    counted = sum(one.matches for one in folded(world.learner.folder).records.values())
    assert counted == 5, "the open match holds up those of its own machine alone"
    slow.promotion.resolve(order, 1.0, "finished")
    world.settle()
    state = world.check()
    assert sum(one.matches for one in state.records.values()) == 8
    mine = [
        made.match
        for made, _ in brought(records(world.learner.folder), world.players[0])
        if isinstance(made, Assigned)
    ]
    assert mine[0] == assigned.match, "in its own order"


def test_a_stale_match_is_kept_and_counts_for_no_other_test(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.settle()
    world.nominate(1)
    order, assigned = world.bots[0].begin(CANARY)
    assert assigned.arm == "canary" and assigned.version == 1
    Promotion(world.learner.folder).order(Ordered(order="stop", version=1))
    world.nominate(2)
    before = folded(world.learner.folder)
    assert before.test is not None and before.test.version == 2
    world.bots[0].promotion.resolve(order, 1.0, "finished")
    world.settle()
    state = world.check()
    assert state.test is not None and not state.test.trial.arm_counts.any()
    assert state.records[1].matches == 1


def test_matches_under_other_rules_are_void(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.settle()
    order, _ = world.bots[0].begin(INCUMBENT)
    Bot(world.players[1], seed=3, rules="better rules")
    world.settle()
    assert folded(world.learner.folder).rules == "better rules"
    world.bots[0].promotion.resolve(order, 1.0, "finished")
    world.settle()
    endings = [one.ending for _, one in records(world.learner.folder) if isinstance(one, Resolved)]
    assert endings == ["void"]
    number, assigned = world.bots[0].begin(CANARY)
    assert (number, assigned.version) == (0, 0), "other rules: outside of any test"


def test_the_rules_play_uncounted_until_the_declaration_has_arrived(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert world.bots[0].begin()[0] == 0
    world.settle()
    assert world.bots[0].begin()[0] > 0


def test_a_start_that_is_repeated_brings_nothing_twice(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.settle()
    world.bots[0].play(2)
    world.players[0].look()
    world.learner.restart()
    world.learner.side.start()
    world.learner.side.start()
    world.settle()
    world.check()


def test_a_copied_player_counts_nothing_twice(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.settle()
    world.nominate(1)
    world.bots[0].play(4, CHANCES)
    world.settle()
    shutil.copytree(tmp_path / "player0", tmp_path / "copy")
    copy = player(tmp_path / "copy", world.store)
    assert copy.name != world.players[0].name
    Bot(copy, seed=9).play(2, CHANCES)
    before = folded(world.learner.folder)
    copy.look()
    world.settle()
    state = folded(world.learner.folder)
    matches = [one.match for _, one in records(world.learner.folder) if isinstance(one, Assigned)]
    assert len(matches) == len(set(matches)) == 6
    assert sum(one.matches for one in state.records.values()) == 6
    assert sum(one.matches for one in before.records.values()) == 4


def test_an_empty_run_folder_takes_the_evidence_of_a_lost_learner_over(tmp_path: Path) -> None:
    world = World(tmp_path)
    story(world)
    world.settle()
    before = summary(folded(world.learner.folder))
    shutil.rmtree(tmp_path / "learner")
    world.bots[0].play(2, CHANCES)
    world.players[0].look()
    world.learner = judge(tmp_path / "heir", world.store)
    world.learner.side.start()
    assert summary(folded(world.learner.folder)) == before
    world.settle()
    state = world.check()
    assert sum(one.matches for one in state.records.values()) > 14


def test_a_match_that_was_open_in_a_copied_run_folder_holds_up_no_machine(tmp_path: Path) -> None:
    """A run that was judged by itself moves to a relay with a copy of its folder."""
    world = World(tmp_path)
    alone = Promotion(world.learner.folder)
    alone.declare(rules="rules", score=None)
    order, _ = alone.assign("open", {}, INCUMBENT)
    assert order
    alone.close()
    world.settle()
    world.bots[0].play(3)
    world.settle()
    state = folded(world.learner.folder)
    assert not state.open
    assert sum(one.matches for one in state.records.values()) == 4, "it is lost, and counts 0"


def test_a_log_that_was_judged_elsewhere_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    story(world)
    world.settle()
    other = judge(tmp_path / "other", world.store)
    Promotion(other.folder).declare(rules="mine", score=None)
    other.folder.versions.copied(1, world.learner.folder.versions.contents(1))
    with pytest.raises(RunFolderError, match="is not the one in store"):
        other.side.start()


def test_parts_of_the_log_are_few_and_old_ones_leave_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judges, "_PART", 16)
    monkeypatch.setattr("understudy.relay.learner._COMMITS", 2)
    world = World(tmp_path)
    world.settle()
    for _ in range(30):
        world.bots[0].play(1)
        world.settle(1)
    world.check()
    commit = bucket.newest_commit(world.store)
    assert commit is not None and commit.log_end == len(records(world.learner.folder)) > 60
    assert len(commit.log) <= commit.log_end // 8 + 5
    assert all(a.last + 1 == b.first for a, b in itertools.pairwise(commit.log))
    kept = {one.key for one in world.store.list(bucket.LOG)}
    assert {one.key for one in commit.log} <= kept and len(kept) < 30


def test_a_pin_on_the_learners_machine_holds_for_all(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.settle()
    world.nominate(1)
    controls.roll_back(world.learner.folder, 1)
    world.settle()
    _, assigned = world.bots[0].begin(INCUMBENT)
    assert (assigned.version, assigned.forced) == (1, True)
    world.learner.folder.pointers.release("champion")
    world.settle()
    _, assigned = world.bots[0].begin(INCUMBENT)
    assert (assigned.version, assigned.forced) == (0, False)


def test_a_players_machine_takes_no_orders(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.settle()
    world.nominate(1)
    with pytest.raises(RunFolderError, match="judged on the learner's machine"):
        controls.order(world.players[0].folder, "stop")


def test_a_bot_in_mode_auto_plays_the_canary_of_the_learners_machine(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.settle()
    with mind(
        tmp_path / "player0",
        mode="auto",
        features=SPEC.features,
        actions=SPEC.actions,
        network=SPEC.network,
        rules="rules",
    ) as bot:
        world.nominate(1)
        bot.refresh()
        roles = set()
        for _ in range(12):
            with bot.match() as match:
                match.decide([1.0, 2.0], fallback="left")
                match.finish("victory")
                roles.add(match.role)
    assert roles == {"canary", "rules"}
    world.settle()
    assert world.check().test is not None
