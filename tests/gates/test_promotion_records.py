"""Records that cannot be are refused, with the field and what was expected."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from understudy.gates.promotion.records import (
    Assigned,
    Nominated,
    Paired,
    Record,
    Resolved,
    TrialSettings,
)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"alpha": 0.0}, "`alpha` is 0.0: expected a number between 0 and 1"),
        ({"share": 1.0}, "`share` is 1.0"),
        ({"holdout": 1.0}, "`holdout` is 1.0: expected at least 0 and below 1"),
        ({"harm": 1.0}, "`harm` is 1.0: expected evidence above 1"),
        ({"hopeless": 1.5}, "`hopeless` is 1.5"),
        ({"long": 700}, "`long` is 700: expected at least 1 and at most `longest` (600)"),
        ({"cool_down": -1}, "`cool_down` is -1: expected 0 or more"),
    ],
)
def test_settings_that_cannot_judge_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        TrialSettings(**fields)


def test_records_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match=r"`result` is 1.5: expected a number from 0 to 1"):
        Resolved(order=1, result=1.5)
    with pytest.raises(ValueError, match=r"`result` is nan"):
        Resolved(order=1, result=float("nan"))
    with pytest.raises(ValueError, match="expected 0, since the ending is 'aborted'"):
        Resolved(order=1, result=1.0, ending="aborted")
    with pytest.raises(ValueError, match=r"`uniform` is 1.0"):
        Assigned(match="a", arm="canary", version=1, uniform=1.0)
    with pytest.raises(ValueError, match="needs the probability of the canary"):
        Assigned(match="a", arm="canary", version=1, test=3)
    with pytest.raises(ValueError, match=r"`practice` is 1.0: expected at least 0 and below 1"):
        Assigned(match="a", arm="incumbent", version=0, practice=1.0)
    with pytest.raises(ValueError, match="expected no test and the probability of practice"):
        Assigned(match="a", arm="practice", version=1)
    with pytest.raises(ValueError, match=r"has `test` 3 and `practice` 0.2: expected no test"):
        Assigned(match="a", arm="practice", version=1, practice=0.2, share=0.2, test=3)
    with pytest.raises(ValueError, match="2 results of the canary and 1 of the incumbent"):
        Paired(test=1, canary=(1.0, 0.0), incumbent=(1.0,))
    with pytest.raises(ValueError, match=r"a result of a pair is 2.0"):
        Paired(test=1, canary=(1.0,), incumbent=(2.0,))


def test_an_assignment_from_before_there_was_practice_is_read() -> None:
    written = (
        b'{"record":"Assigned","at":1.5,"session":"pc/7/a","match":"m","arm":"incumbent",'
        b'"version":4,"test":3,"share":0.5,"holdout":0.1,"uniform":0.7,"stratum":"map=x"}'
    )
    record = msgspec.json.decode(written, type=Record)
    assert isinstance(record, Assigned)
    assert (record.arm, record.version, record.test, record.practice) == ("incumbent", 4, 3, 0.0)


def test_a_damaged_record_is_refused_when_it_is_read() -> None:
    written = msgspec.json.encode(Nominated(version=3))
    read = msgspec.json.Decoder(Record)
    assert read.decode(written) == Nominated(version=3)
    with pytest.raises(msgspec.ValidationError, match=r"`alpha` is 7.0"):
        read.decode(written.replace(b'"alpha":0.05', b'"alpha":7.0'))
