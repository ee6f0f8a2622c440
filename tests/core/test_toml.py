from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.core import toml

plain = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=8),
)
tables = st.recursive(
    st.dictionaries(st.text(max_size=6), plain, max_size=3),
    lambda inner: st.dictionaries(
        st.text(max_size=6),
        st.one_of(
            plain,
            inner,
            st.lists(inner, max_size=3),
            st.lists(st.one_of(plain, inner), max_size=3),
            st.lists(st.lists(plain, max_size=2), max_size=2),
        ),
        max_size=4,
    ),
    max_leaves=12,
)


@given(tables)
@settings(max_examples=200)
def test_what_is_written_reads_back_as_it_was(table: dict[str, Any]) -> None:
    assert tomllib.loads(toml.dumps(table)) == table


@given(tables)
@settings(max_examples=50)
def test_comments_change_nothing(table: dict[str, Any]) -> None:
    told = toml.dumps(table, comment=lambda path: "of two\nlines, with [a.b] = 'c'")
    assert tomllib.loads(told) == table


def test_how_it_looks() -> None:
    table = {
        "a": {"x": 1, "inner": {"a b": 2.0}, "stages": [{"n": "one"}, {"n": "two"}], "none": []},
        "b": {"c": {"d": True}},
    }
    words = {("a", "x"): "An x.", ("a", "stages"): "In order.", ("a", "stages", "n"): "A name."}
    assert toml.dumps(table, comment=lambda path: words.get(path, "")) == (
        "[a]\n# An x.\nx = 1\nnone = []\n\n"
        '[a.inner]\n"a b" = 2.0\n\n'
        '# In order.\n[[a.stages]]\n# A name.\nn = "one"\n\n'
        '# In order.\n[[a.stages]]\n# A name.\nn = "two"\n\n'
        "[b.c]\nd = true\n"
    )


def test_what_toml_has_not_is_an_error() -> None:
    with pytest.raises(TypeError, match="TOML has no NoneType"):
        toml.dumps({"a": None})
