"""What is known of a run's promotion at one moment: who plays, what is tried, and every verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from understudy.gates.promotion.practice import PracticeArm
from understudy.gates.promotion.records import (
    RULES,
    Assigned,
    PolicyName,
    Resolved,
    TrialSettings,
)
from understudy.gates.promotion.running import Reign, RunningTest, VersionRecord

VerdictKind: TypeAlias = Literal[
    "nominated", "refused", "promoted", "asks", "continued", "harmful", "hopeless", "undecided",
    "misfit", "stopped", "closed", "alarm", "kept", "rolled back", "paused", "resumed",
    "practising", "suspended",
]  # fmt: skip


class PromotionVerdict(NamedTuple):
    """Something that the gate decided, and the record at which it did."""

    sequence: int
    version: int
    kind: VerdictKind
    words: str
    test: int = 0


@dataclass
class PromotionState:
    """Who plays, what is tried, and what is known of every version.

    `fold` changes only a copy of its own, and replaces the parts, which are frozen; `fold_owned`
    changes the state itself.
    """

    sequence: int = 0
    """The last record that was folded."""
    rules: str | None = None
    score: tuple[float, float] | None = None
    policy: PolicyName = "auto"
    harm: float = 4.0
    """Evidence that practice is worse at which it is suspended."""
    paused: bool = False
    changed: int = 0
    """The record at which the rules or the scale last changed."""
    settings: TrialSettings = field(default_factory=TrialSettings)
    """Of the test that began last: for a champion that a person approves."""
    reigns: list[Reign] = field(default_factory=lambda: [Reign(RULES, TrialSettings())])
    """The rules, the last former champions whose evidence stands, and the incumbent."""
    test: RunningTest | None = None
    recheck: RunningTest | None = None
    cool_down: int = 0
    """Matches without a test from now on: after a rollback, and after several harmful versions."""
    harmful: int = 0
    """Tests in a row that ended as harmful."""
    records: dict[int, VersionRecord] = field(default_factory=dict)
    """Of the rules and of every version in `roles`. By policy `latest` a run plays any number of
    others."""
    roles: dict[int, str] = field(default_factory=dict)
    """Of every version that was ever tested or promoted: canary, champion, former, retired."""
    experience: int = 0
    """Of the version that was nominated last."""
    open: dict[int, Assigned] = field(default_factory=dict)
    """Assigned and not counted yet, by number, in the order of assignment."""
    resolved: dict[int, Resolved] = field(default_factory=dict)
    """Their endings, as far as they are over."""
    practice: PracticeArm = field(default_factory=PracticeArm)

    @property
    def incumbent(self) -> int:
        return self.reigns[-1].version

    @property
    def champion(self) -> int | None:
        """None: the rules play."""
        return self.incumbent or None

    @property
    def needed(self) -> set[int]:
        """The versions that may play next, by evidence or after a rollback."""
        tested = () if self.test is None else (self.test.version,)
        return {*(one.version for one in self.reigns), *tested} - {RULES}

    @property
    def is_paused(self) -> bool:
        """No version is promoted or begins a test; harm stops and rollbacks go on."""
        return self.paused or self.policy == "paused"
