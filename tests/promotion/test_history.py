from __future__ import annotations

import re

import numpy as np
import pytest

from understudy.gates.promotion import trial as gate
from understudy.gates.promotion.evidence import evidence
from understudy.gates.promotion.records import Declared, Nominated, Ordered, Resolved
from understudy.promotion.history import TrialHistory, history

from .scripted import ScriptedLog


def counted(trial: TrialHistory) -> tuple[int, int]:
    """Matches of the canary and of the incumbent."""
    arms = trial.columns.arms
    return int(arms.sum()), int((1 - arms).sum())


def told_in(words: str) -> tuple[int, int]:
    """The same as the words of the verdict tell it."""
    found = re.search(r"in (\d+) matches, .*? in (\d+);", words)
    assert found is not None, words
    return int(found[1]), int(found[2])


@pytest.mark.parametrize("seed", range(4))
def test_every_test_is_recomputed_with_the_matches_behind_its_verdict(seed: int) -> None:
    log = ScriptedLog(seed=seed)
    chances = {0: 0.5, **{version: (0.1, 0.9, 0.5)[version % 3] for version in range(1, 9)}}
    for version in range(1, 9):
        if log.state.test is None and not log.state.cool_down:
            log.nominate(version, long=60, longest=80, spend="reign")
        log.play(40, chances, stratum=f"opponent={version % 2}")
        if log.state.champion:
            chances[log.state.champion] = 0.1  # it breaks down
    told = history(log.records)
    assert told.verdicts == tuple(log.verdicts)
    ended = [one for one in told.trials if one.ending is not None]
    assert len(ended) >= 2
    for one in ended:
        assert one.ending is not None
        if one.ending.kind in (
            "promoted",
            "harmful",
            "hopeless",
            "undecided",
            "kept",
            "rolled back",
        ):
            assert counted(one) == told_in(one.ending.words)
            assert (one.looks.verdict[:-1] == gate.CONTINUE).all()
            assert one.looks.verdict[-1] != gate.CONTINUE
    assert len({one.running.alpha for one in told.trials if not one.recheck}) > 1


def test_a_running_test_has_the_evidence_of_the_state() -> None:
    log = ScriptedLog(seed=3)
    log.nominate(4)
    log.play(50, {0: 0.5, 4: 0.6}, stratum="a")
    log.play(30, {0: 0.5, 4: 0.6}, stratum="b")
    assert log.state.test is not None
    [one] = history(log.records).trials
    assert one.ending is None and sum(counted(one)) == 80
    assert one.looks.better[-1] == evidence(log.state.test.trial.better)
    assert one.looks.worse[-1] == evidence(log.state.test.trial.worse)


def test_while_a_person_is_asked_the_evidence_against_it_is_that_of_the_state() -> None:
    log = ScriptedLog(seed=3)
    log.append(Declared(rules="v1", policy="manual"))
    log.nominate(4)
    log.play(300, {0: 0.2, 4: 0.9}, until="asks")
    log.play(20, {0: 0.5, 4: 0.5})
    test = log.state.test
    assert test is not None and test.asks
    [one] = history(log.records).trials
    assert one.looks.worse[-1] == pytest.approx(float(evidence(test.trial.worse)))
    assert one.looks.better[-1] == evidence(test.trial.better)


def test_a_test_that_goes_on_without_a_person_has_the_evidence_of_the_state() -> None:
    log = ScriptedLog(seed=3)
    log.append(Declared(rules="v1", policy="manual"))
    log.nominate(4, alarm=1e9)
    log.play(300, {0: 0.2, 4: 0.9}, until="asks")
    late, _ = log.assign()
    log.play(5, {0: 0.9, 4: 0.1})
    log.append(Resolved(order=late, result=0.0))
    log.play(25, {0: 0.9, 4: 0.1})
    log.append(Declared(rules="v1", policy="auto"))
    assert log.verdicts[-1].kind == "continued"
    late, _ = log.assign()
    log.play(2, {0: 0.5, 4: 0.5})
    log.append(Resolved(order=late, result=0.0))
    test = log.state.test
    assert test is not None and not test.asks
    [one] = history(log.records).trials
    assert one.looks.worse[-1] == pytest.approx(float(evidence(test.trial.worse)))
    assert one.looks.better[-1] == evidence(test.trial.better)


def test_an_open_match_holds_up_those_after_it_also_where_a_person_stops_the_test() -> None:
    log = ScriptedLog(seed=1)
    log.nominate(4)
    log.play(6, {0: 0.5, 4: 0.5})
    waiting, _ = log.assign()
    log.play(5, {0: 0.5, 4: 0.5})
    assert sum(counted(history(log.records).trials[0])) == 6
    log.assign()
    assert sum(counted(history(log.records).trials[0])) == 6
    log.append(Ordered(order="stop"))
    log.append(Resolved(order=waiting, result=1.0))
    log.append(Resolved(order=waiting, result=0.0))  # noted, not counted
    [one] = history(log.records).trials
    assert one.ending is not None and one.ending.kind == "stopped"
    assert counted(one) == told_in(one.ending.words) and sum(counted(one)) == 6
    matches = {match.order: match for match in history(log.records).matches}
    assert matches[waiting].result == 1.0


def test_void_matches_and_the_holdout_count_for_no_test() -> None:
    log = ScriptedLog(seed=5)
    log.nominate(4)
    log.play(600, {0: 0.2, 4: 0.9}, until="promoted")
    log.nominate(5)
    log.play(40, {0: 0.2, 4: 0.9, 5: 0.9})
    order, _ = log.assign()
    log.append(Resolved(order=order, ending="void"))
    told = history(log.records)
    test = told.trials[-1]
    since = [one for one in told.matches if one.order > test.running.number]
    assert {one.assigned.arm for one in since} == {"canary", "incumbent", "holdout"}
    assert {one.assigned.arm for one in test.matches} == {"canary", "incumbent"}
    assert sum(counted(test)) == sum(one.assigned.arm != "holdout" for one in since[:-1])


def test_a_champion_that_breaks_down_is_rechecked_and_rolled_back() -> None:
    log = ScriptedLog(seed=2)
    log.nominate(4)
    log.play(600, {0: 0.4, 4: 0.9}, until="promoted")
    log.play(600, {0: 0.4, 4: 0.1}, until="rolled back")
    told = history(log.records)
    test, recheck = told.of(4)
    assert not test.recheck and recheck.recheck and recheck.running.against == 0
    assert recheck.reason.startswith("its results have fallen below")
    assert recheck.ending is not None and recheck.ending.kind == "rolled back"
    assert recheck.looks.worse[-1] >= recheck.running.settings.harm > recheck.looks.worse[-2]


def test_pairs_end_with_the_one_that_decided() -> None:
    log = ScriptedLog()
    test = log.append(Nominated(version=7, simulator=True))
    log.pair(test, [1.0, 0.0, 1.0], [0.0, 0.0, 1.0])
    log.pair(test, [1.0] * 30, [0.0] * 30)
    [one] = history(log.records).trials
    assert one.ending is not None and one.ending.kind == "promoted"
    assert one.pairs[:3].tolist() == [[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    assert len(one.pairs) == len(one.looks.better) < 33
    assert one.looks.better[-2] < 20.0 <= one.looks.better[-1]


def test_an_empty_log_is_a_run_of_the_rules() -> None:
    told = history([])
    assert (told.state.incumbent, told.matches, told.trials) == (0, (), ())
    log = ScriptedLog()
    log.nominate(4)
    [one] = history(log.records).trials
    assert not one.matches and np.shape(one.looks.better) == (0,)
