from __future__ import annotations

import tracemalloc
from dataclasses import fields, replace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from walk.toys import SPEC, episode

from understudy.core.arrays import from_npz, to_npz
from understudy.core.errors import FileFormatError
from understudy.core.spaces import ActionSpace, Discrete, MultiBinary, MultiDiscrete
from understudy.experience import episode as episodes
from understudy.experience.episode import Episode, Meta, Outcome, returns_of, surprise
from understudy.policy.mlp import Mlp
from understudy.policy.spec import PolicySpec

SPACES = st.one_of(
    st.integers(2, 6).map(lambda n: Discrete(tuple(f"a{i}" for i in range(n)))),
    st.lists(st.integers(2, 4), min_size=1, max_size=4).map(lambda s: MultiDiscrete(tuple(s))),
    st.integers(1, 5).map(lambda n: MultiBinary(tuple(f"k{i}" for i in range(n)))),
)


@st.composite
def recorded(draw: st.DrawFn) -> tuple[PolicySpec, Episode]:
    """Any action space, and an episode that fits it."""
    space: ActionSpace = draw(SPACES)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    inputs, length = draw(st.integers(1, 5)), draw(st.integers(1, 7))
    spec = PolicySpec(tuple(f"f{i}" for i in range(inputs)), space, Mlp())
    actions = np.stack([rng.integers(0, size, length) for size in space.parts], 1).astype(np.int32)
    legal = None
    if draw(st.booleans()):
        legal = rng.random((length, space.options)) < 0.5
        starts = np.concatenate([[0], np.cumsum(space.parts)[:-1]])
        np.put_along_axis(legal, actions + starts, True, axis=1)
    sampled = rng.random(length) < 0.5
    tags = draw(st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=3))
    meta = Meta(
        id=draw(st.text(min_size=1, max_size=40)),
        outcome=draw(st.sampled_from(Outcome)),
        finished_at=draw(st.floats(0, 4e9)),
        tags=tags,
        cameo_coin=0.5,
    )
    return spec, Episode(
        meta=meta,
        observations=rng.normal(0.0, 1e6, (length, inputs)).astype(np.float32),
        actions=actions,
        log_probs=np.where(sampled, -rng.random(length), 0.0).astype(np.float32),
        values=rng.normal(size=length).astype(np.float32),
        rewards=rng.normal(size=length).astype(np.float32),
        sampled=sampled,
        versions=rng.integers(0, 10, length),
        legal=legal,
        bootstrap=rng.random(inputs, np.float32) if draw(st.booleans()) else None,
        settled=rng.random(length) < 0.5 if draw(st.booleans()) else None,
        **judged(draw, rng, length),
        **windows(draw, sampled),
    )


def judged(draw: st.DrawFn, rng: np.random.Generator, length: int) -> dict[str, Any]:
    """What a decision gate had to say, or nothing where there was none."""
    if not draw(st.booleans()):
        return {}
    sent = rng.random(length) < 0.5
    return {
        "sent": sent,
        "explored": sent & (rng.random(length) < 0.5),
        "expected": rng.normal(size=length).astype(np.float32),
    }


def windows(draw: st.DrawFn, sampled: np.ndarray) -> dict[str, Any]:
    """Windows of the policy where it sampled, of the rules elsewhere; or none."""
    if not draw(st.booleans()):
        return {}
    numbers = 1 + np.cumsum(np.diff(sampled, prepend=sampled[:1]))
    return {"cameos": np.where(sampled, numbers, -numbers).astype(np.int16)}


def assert_equal(one: Episode, other: Episode) -> None:
    for part in fields(Episode):
        a, b = getattr(one, part.name), getattr(other, part.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
        else:
            assert a == b


@settings(deadline=None)
@given(case=recorded())
def test_what_was_played_is_what_is_read(case: tuple[PolicySpec, Episode]) -> None:
    spec, one = case
    assert_equal(episodes.decode(episodes.encode(one), spec, what="it"), one)


@settings(max_examples=400)
@given(data=st.data())
def test_a_damaged_file_is_read_right_or_refused(data: st.DataObject) -> None:
    good = episode("a", legal=np.ones((3, 2), np.bool_))
    whole = episodes.encode(good)
    damaged = bytearray(whole[: data.draw(st.one_of(st.none(), st.integers(0, len(whole))))])
    if damaged:
        spots = st.tuples(st.integers(0, len(damaged) - 1), st.integers(0, 255))
        for spot, value in data.draw(st.lists(spots, max_size=4)):
            damaged[spot] = value
    tracemalloc.start()
    try:
        back = episodes.decode(bytes(damaged), SPEC, what="it")
    except FileFormatError as error:
        assert str(error).startswith("it: ")
    else:
        assert_equal(back, good)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 2**20


def change(name: str, value: Any) -> bytes:
    """A well-made file with one array replaced, or removed."""
    arrays = from_npz(episodes.encode(episode("a")), what="it")
    if value is None:
        del arrays[name]
    else:
        arrays[name] = value
    return to_npz(arrays)


def meta_bytes(**changes: Any) -> Any:
    good = msgspec.to_builtins(episode("a").meta)
    return np.frombuffer(msgspec.json.encode(good | changes), np.uint8)


NAN = np.array([0.0, np.nan, 0.0], np.float32)


def cameos(*numbers: int, coin: float = 0.5, sampled: tuple[bool, ...] = (True,) * 3) -> bytes:
    """A file with these windows."""
    arrays = from_npz(episodes.encode(episode("a")), what="it")
    arrays["meta"] = meta_bytes(cameo_coin=coin)
    arrays["sampled"] = np.array(sampled)
    arrays["cameos"] = np.array(numbers, np.int16)
    return to_npz(arrays)


BAD_FILES = {
    "no meta": change("meta", None),
    "meta is no JSON": change("meta", np.frombuffer(b"{", np.uint8)),
    "meta is no text": change("meta", np.frombuffer(b'{"id": "\xff"}', np.uint8)),
    "meta is numbers": change("meta", np.array([1.0, np.nan])),
    "meta is text": change("meta", np.array("{}")),
    "wrong schema": change("meta", meta_bytes(schema=99)),
    "unknown field": change("meta", meta_bytes(pickle="yes")),
    "no id": change("meta", meta_bytes(id="")),
    "endless id": change("meta", meta_bytes(id="x" * 5000)),
    "endless tag": change("meta", meta_bytes(tags={"map": "x" * 5000})),
    "unknown outcome": change("meta", meta_bytes(outcome="won")),
    "time is text": change("meta", meta_bytes(finished_at="now")),
    "missing array": change("rewards", None),
    "unknown array": change("extra", np.zeros(3)),
    "not finite": change("rewards", NAN),
    "not finite features": change("observations", np.full((3, 2), np.inf, np.float32)),
    "not finite bootstrap": change("bootstrap", np.full(2, np.nan, np.float32)),
    "wrong type": change("rewards", np.zeros(3, np.float64)),
    "wrong byte order": change("rewards", np.zeros(3, ">f4")),
    "too many features": change("observations", np.zeros((3, 9), np.float32)),
    "too few rows": change("actions", np.zeros((2, 1), np.int32)),
    "rewards without an axis": change("rewards", np.zeros((), np.float32)),
    "rewards of two axes": change("rewards", np.zeros((3, 1), np.float32)),
    "no decision": to_npz({
        "meta": meta_bytes(), "observations": np.zeros((0, 2), np.float32),
        "actions": np.zeros((0, 1), np.int32), "log_probs": np.zeros(0, np.float32),
        "values": np.zeros(0, np.float32), "rewards": np.zeros(0, np.float32),
        "sampled": np.zeros(0, np.bool_), "versions": np.zeros(0, np.int64),
    }),
    "action too high": change("actions", np.full((3, 1), 2, np.int32)),
    "action below zero": change("actions", np.full((3, 1), -1, np.int32)),
    "impossible probability": change("log_probs", np.ones(3, np.float32)),
    "version below zero": change("versions", np.full(3, -1, np.int64)),
    "illegal under its own mask": change("legal", np.array([[False, True]] * 3)),
    "mask of another width": change("legal", np.ones((3, 5), np.bool_)),
    "bootstrap of another width": change("bootstrap", np.zeros(7, np.float32)),
    "sent of another length": change("sent", np.ones(2, np.bool_)),
    "sent as numbers": change("sent", np.ones(3, np.float32)),
    "expected not finite": change("expected", np.full(3, np.inf, np.float32)),
    "explored and nobody knows what was sent": change("explored", np.zeros(3, np.bool_)),
    "explored and not sent": to_npz(
        from_npz(change("sent", np.zeros(3, np.bool_)), what="it")
        | {"explored": np.array([False, True, False])}
    ),
    "windows of another length": cameos(1, 1),
    "windows as long numbers": change("cameos", np.zeros(3, np.int64)),
    "windows that begin at two": cameos(0, 2, 2),
    "a window in two stretches": cameos(1, 0, 1),
    "a window of two players": cameos(1, -1, 0, sampled=(True, False, True)),
    "a window of the policy that the rules decided": cameos(1, 1, 0, sampled=(True, False, True)),
    "a control that the policy decided": cameos(0, -1, -1),
    "windows without a coin": cameos(1, 1, 0, coin=0.0),
    "a coin above one": cameos(0, 0, 0, coin=1.5),
    "of an old bot": to_npz({
        "states": np.zeros((3, 15), np.float32), "actions": np.zeros(3, np.int64),
        "rewards": np.zeros(3, np.float64),
    }),
}  # fmt: skip


@pytest.mark.parametrize("data", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_file_that_does_not_fit_is_refused(data: bytes) -> None:
    with pytest.raises(FileFormatError, match=r"^it: "):
        episodes.decode(data, SPEC, what="it")


def test_a_file_of_an_old_bot_says_how_it_comes_in() -> None:
    with pytest.raises(FileFormatError, match="understudy import"):
        episodes.decode(BAD_FILES["of an old bot"], SPEC, what="it")


def test_a_file_from_before_there_were_gates_is_read_as_it_was() -> None:
    old = {
        "meta", "observations", "actions", "log_probs", "values", "rewards", "sampled", "versions",
    }  # fmt: skip
    data = episodes.encode(episode("a"))
    assert from_npz(data, what="it").keys() == old
    back = episodes.decode(data, SPEC, what="it")
    assert back.sent is back.explored is back.expected is back.cameos is None


def test_a_file_from_before_there_were_cameos_is_read_as_it_was() -> None:
    old = msgspec.to_builtins(episode("a").meta)
    del old["cameo_coin"]
    meta = np.frombuffer(msgspec.json.encode(old), np.uint8)
    back = episodes.decode(change("meta", meta), SPEC, what="it")
    assert (back.meta.cameo_coin, back.cameos) == (0.0, None)


def test_windows_of_both_players_may_follow_each_other() -> None:
    back = episodes.decode(cameos(1, -2, 3, sampled=(True, False, True)), SPEC, what="it")
    np.testing.assert_array_equal(back.cameos, np.array([1, -2, 3], np.int16))


def test_a_gate_that_had_nothing_to_say_expected_nan() -> None:
    data = change("expected", np.array([0.5, np.nan, -1.0], np.float32))
    back = episodes.decode(data, SPEC, what="it")
    np.testing.assert_array_equal(back.expected, np.array([0.5, np.nan, -1.0], np.float32))


def test_an_episode_of_another_run_is_refused() -> None:
    other = replace(episode("a"), actions=np.ones((3, 1), np.int32))
    narrow = PolicySpec(("a", "b", "c"), SPEC.actions, SPEC.network)
    with pytest.raises(FileFormatError, match="observations has shape"):
        episodes.decode(episodes.encode(other), narrow, what="it")


def worth(*values: float) -> dict[str, Any]:
    return {"values": np.array(values, np.float32)}


def test_values_that_foretell_every_return_do_not_surprise() -> None:
    rewards = np.array([1.0, 0.0, -2.0, 4.0], np.float32)
    told = replace(
        episode("a", length=4), rewards=rewards, **worth(*returns_of(rewards.astype(float), 0.5))
    )
    for lam in (0.0, 0.8, 1.0):
        np.testing.assert_allclose(surprise(told, gamma=0.5, lam=lam), [0.0], atol=1e-7)
        np.testing.assert_allclose(surprise(told, gamma=0.5, lam=lam, length=3), 0.0, atol=1e-7)
    assert surprise(told, gamma=1.0, lam=0.8)[0] > 0.1


def test_a_match_that_goes_on_unseen_is_not_taken_for_one_that_ended() -> None:
    ended = replace(episode("a", length=3), rewards=np.zeros(3, np.float32), **worth(5, 5, 5))
    assert surprise(ended, gamma=1.0, lam=0.0).tolist() == [5.0 / 3.0]
    aborted = replace(ended, meta=msgspec.structs.replace(ended.meta, outcome=Outcome.ABORTED))
    segment = replace(aborted, bootstrap=np.zeros(len(SPEC.features), np.float32))
    for unseen in (aborted, segment):
        assert surprise(unseen, gamma=1.0, lam=0.9).tolist() == [0.0]
    # The last decision of an aborted match stands for what came next: nothing is learned from it.
    last = np.array([0.0, 0.0, 7.0], np.float32)
    assert surprise(replace(aborted, rewards=last), gamma=1.0, lam=0.9).tolist() == [0.0]
    assert surprise(replace(segment, rewards=last), gamma=1.0, lam=0.0).tolist() == [7.0 / 3.0]


def test_what_teaches_nothing_is_no_part_of_the_mean() -> None:
    one = replace(
        episode("a", length=4), rewards=np.array([0, 8, 0, 2], np.float32), **worth(1, 1, 1, 1)
    )
    settled = replace(one, settled=np.array([True, False, True, True]))
    # One-step errors are 0, (7), 0, 1; only the last two are chained.
    assert surprise(settled, gamma=1.0, lam=1.0).tolist() == [2.0 / 3.0]
    assert surprise(settled, gamma=1.0, lam=1.0, length=3).tolist() == [0.0, 1.0]
