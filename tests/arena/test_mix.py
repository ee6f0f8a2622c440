from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.arena.mix import Mix, parse, union
from understudy.core.errors import ConfigError

BOTS = ("constant", "random", "based")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("based=1.5,random=1,constant=0.5", {"based": 1.5, "random": 1.0, "constant": 0.5}),
        ("based", {"based": 1.0}),
        ("all", {"constant": 1.0, "random": 1.0, "based": 1.0}),
        ("all=2, based=5", {"constant": 2.0, "random": 2.0, "based": 5.0}),
        ("self=2,based=3", {"based": 3.0, "self": 2.0}),
        (" based = 1 , self ", {"based": 1.0, "self": 1.0}),
        ("all,random=0,self=0", {"constant": 1.0, "based": 1.0}),
    ],
)
def test_a_mix_is_names_with_weights(text: str, expected: dict[str, float]) -> None:
    mix = parse(text, BOTS)
    assert dict(zip(mix.names, mix.weights, strict=True)) == expected
    assert mix.meets_itself == ("self" in expected)
    assert mix.scripted == tuple(name for name in expected if name != "self")
    assert not mix.meets_itself or mix.names[-1] == "self"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("agent.py=1", "runs and exported files are opponents in eval, tournament and watch"),
        ("bsed=1", r"train.opponents: expected some of constant, .*self, all; got 'bsed'.*'based'"),
        ("based=much", "train.opponents: the weight of based must be 0 or more, got 'much'"),
        ("based=-1", "the weight of based must be 0 or more, got '-1'"),
        ("based=nan", "the weight of based"),
        ("based=inf", "the weight of based"),
        ("self=1", "train.opponents: expected at least one scripted bot"),
        ("self=1,based=0", "expected at least one scripted bot"),
        ("", "got ''"),
        ("based,,random", "got ''"),
    ],
)
def test_a_wrong_mix_is_told(text: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        parse(text, BOTS)


def test_an_error_names_where_the_mix_came_from() -> None:
    with pytest.raises(ConfigError, match=r"^train\.opponents: "):
        parse("nobody", BOTS, flag="train.opponents")


@given(
    weights=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6),
    own=st.floats(1e-3, 1e3),
    share=st.floats(0, 1),
)
def test_bounds_share_out_every_draw(weights: list[float], own: float, share: float) -> None:
    names = (*(str(index) for index in range(len(weights))), "self")
    mix = Mix(names, (*weights, own))
    assert mix.own_share == pytest.approx(own / (own + sum(weights)))
    for given_share in (mix.own_share, share, 0.0):
        bounds = mix.bounds(given_share)
        kept = np.array([*np.array(weights) / sum(weights) * (1 - given_share), given_share])
        assert bounds.dtype == np.float32 and bounds[-1] == 1.0
        np.testing.assert_allclose(np.diff(bounds, prepend=0.0), kept, atol=1e-6)
    assert bounds[-2] == 1.0, "where nobody may meet `self`, no draw below 1 may reach it"


def test_a_mix_among_more_bots_meets_the_same_ones_as_often() -> None:
    mix = parse("based=3,self=1", BOTS)
    among = mix.among(BOTS, with_self=True)
    assert among == Mix((*BOTS, "self"), (0.0, 0.0, 3.0, 1.0))
    np.testing.assert_allclose(among.bounds(among.own_share), [0, 0, 0.75, 1])
    alone = parse("based", BOTS).among(BOTS, with_self=True)
    assert alone.own_share == 0.0
    np.testing.assert_allclose(alone.bounds(0.0), [0, 0, 1, 1])
    assert parse("based", BOTS).among(BOTS, with_self=False) == Mix(BOTS, (0.0, 0.0, 1.0))


def test_a_curriculum_meets_whoever_one_of_its_mixes_names() -> None:
    mixes = [parse(text, BOTS) for text in ("constant", "based=9,constant=1", "random,self")]
    assert union(mixes) == (("constant", "based", "random"), True)
    assert union(mixes[:2]) == (("constant", "based"), False)
