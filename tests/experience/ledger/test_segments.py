"""Segments as a session makes them: full, broken, cut and ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from understudy.core.errors import InputError
from understudy.experience.episode import Outcome
from understudy.experience.ledger import Closing, pack_legal, unpack_legal

from .decisions import Spooled, decision, keys_of, ledger_at, open_some, seen, settled


def test_a_full_segment_leaves_with_everything_that_was_known(tmp_path: Path) -> None:
    spooled = Spooled()
    ledger = ledger_at(tmp_path, spooled)
    ledger.open(
        [decision(key, version=key, sent=key != 2, explored=key == 3) for key in ledger.take_ids(3)]
    )
    ledger.close(settled(1, 2))
    ledger.close(settled(3))
    assert not spooled, "what was seen after the last one is not known yet"
    assert ledger.territories() == {"north": "c1"}
    open_some(ledger, 1)
    (episode,) = spooled
    assert keys_of(episode) == (1, 2, 3)
    np.testing.assert_array_equal(episode.rewards, [0.125, 0.25, 0.375])
    np.testing.assert_array_equal(episode.versions, [1, 2, 3])
    np.testing.assert_array_equal(episode.actions[:, 0], [1, 0, 1])
    np.testing.assert_array_equal(episode.bootstrap, [4, 0.5])
    np.testing.assert_array_equal(episode.sent, [True, False, True])
    np.testing.assert_array_equal(episode.explored, [False, False, True])
    np.testing.assert_array_equal(episode.expected, [0.125] * 3)
    assert episode.legal is None
    assert episode.meta.tags == {"territory": "north", "client": "c1"}
    assert episode.meta.outcome is Outcome.ABORTED


def test_masks_come_back_as_they_were(tmp_path: Path) -> None:
    spooled = Spooled()
    ledger = ledger_at(tmp_path, spooled)
    keys = ledger.take_ids(2)
    mask = pack_legal(np.array([False, True]))
    ledger.open([decision(keys[0], action=(1,), legal=mask), decision(keys[1])])
    ledger.close(settled(*keys))
    ledger.cut("north", seen(0))
    (episode,) = spooled
    assert episode.legal is not None
    np.testing.assert_array_equal(episode.legal, [[False, True], [True, True]])
    for options in (1, 7, 8, 9, 513):
        legal = np.random.default_rng(options).random(options) < 0.5
        np.testing.assert_array_equal(unpack_legal(pack_legal(legal), options), legal)


def test_a_territory_that_ends_is_terminal(tmp_path: Path) -> None:
    spooled = Spooled()
    ledger = ledger_at(tmp_path, spooled)
    first, second = open_some(ledger, 2)
    ledger.close([*settled(first), *settled(second, terminal=True, outcome="defeat")])
    (episode,) = spooled
    assert episode.meta.outcome is Outcome.DEFEAT
    assert episode.bootstrap is None and len(episode) == 2


def test_a_late_reward_still_counts_and_order_is_kept(tmp_path: Path) -> None:
    spooled = Spooled()
    ledger = ledger_at(tmp_path, spooled)
    keys = open_some(ledger, 4)
    ledger.close(settled(*reversed(keys[1:])))
    assert not spooled
    ledger.close(settled(keys[0]))
    assert spooled.keys == [tuple(keys[:3])]


def test_what_expires_breaks_the_segment_and_stands_in_as_what_was_seen_next(
    tmp_path: Path,
) -> None:
    spooled = Spooled()
    ledger = ledger_at(tmp_path, spooled)
    keys = open_some(ledger, 3)
    ledger.close([*settled(keys[0], keys[2]), Closing(id=keys[1], state="expired")])
    assert spooled.keys == [(keys[0],)]
    assert spooled[0].bootstrap is not None and spooled[0].bootstrap[0] == keys[1]
    ledger.cut("north", b"")
    assert not ledger.territories()
    assert spooled.keys == [(keys[0],), (keys[2],)]
    assert spooled[1].bootstrap is None and spooled[1].meta.outcome is Outcome.ABORTED


def test_a_cut_waits_for_the_reward_and_the_first_one_holds(tmp_path: Path) -> None:
    spooled = Spooled()
    ledger = ledger_at(tmp_path, spooled)
    ledger.cut("nowhere", seen(1))
    (key,) = open_some(ledger, 1)
    ledger.cut("north", seen(70))
    ledger.cut("north", seen(71))
    open_some(ledger, 1)
    assert not spooled
    ledger.close(settled(key))
    assert spooled.keys == [(key,)]
    assert spooled[0].bootstrap is not None and spooled[0].bootstrap[0] == 70
    with pytest.raises(InputError, match="bootstrap_observation: 3 bytes, expected 8"):
        ledger.cut("north", b"123")


def test_a_segment_ends_where_the_player_changes(tmp_path: Path) -> None:
    spooled = Spooled()
    ledger = ledger_at(tmp_path, spooled, segment=8)
    by_rules: dict[str, Any] = {"rules": True, "sampled": False, "log_prob": 0.0}
    open_some(ledger, 2)
    open_some(ledger, 2, **by_rules)
    open_some(ledger, 2)
    ledger.close(settled(1, 2, 3, 4, 5))
    policy, rules = spooled
    assert (keys_of(policy), keys_of(rules)) == ((1, 2), (3, 4))
    np.testing.assert_array_equal(policy.bootstrap, [3, 0.5])
    np.testing.assert_array_equal(rules.bootstrap, [5, 0.5])
    assert policy.sampled.all()
    assert policy.sent is not None


def test_the_rules_are_recorded_without_a_gate_and_with_the_version_beside_them(
    tmp_path: Path,
) -> None:
    spooled = Spooled()
    ledger = ledger_at(tmp_path, spooled)
    open_some(ledger, 2, rules=True, sampled=False, log_prob=0.0)
    ledger.close(settled(1, 2))
    ledger.cut("north", seen(3))
    (episode,) = spooled
    assert not episode.sampled.any()
    assert (episode.sent, episode.explored, episode.expected) == (None, None, None)
    np.testing.assert_array_equal(episode.versions, [3, 3])


def test_decisions_of_the_rules_end_like_all_others_and_outlive_the_process(
    tmp_path: Path,
) -> None:
    spooled = Spooled()
    ledger = ledger_at(tmp_path, spooled)
    open_some(ledger, 3, rules=True, sampled=False, log_prob=0.0)
    ledger.close([*settled(1), Closing(id=2, state="expired")])
    ledger.stop()
    again = ledger_at(tmp_path, spooled)
    assert [again.state_of(key) for key in (1, 2, 3)] == ["settled", "expired", "open"]
    left = again.opened(3)
    assert left is not None
    assert left.rules
    again.close(settled(3))
    again.cut("north")
    assert spooled.keys == [(1,), (3,)]
    assert all(one.sent is None for one in spooled)
