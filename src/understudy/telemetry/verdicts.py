"""The words for every kind of verdict: what changes in who plays, and what the verdict means."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol


class VerdictWords(NamedTuple):
    """One kind of verdict in words."""

    news: str
    """What changes in who plays, from `version` on; may name the `run`."""
    meaning: str
    """What the verdict says of the version."""


VERDICTS = {
    "nominated": VerdictWords("version {version} is tried", "its test began"),
    "refused": VerdictWords("version {version} is refused", "it was not tested or promoted"),
    "promoted": VerdictWords("version {version} plays from now on", "it became the champion"),
    "asks": VerdictWords(
        "version {version} is better; `understudy promotion approve {version} --run {run}` lets it "
        "play",
        "the evidence that it is better is enough, and a person is asked",
    ),
    "continued": VerdictWords(
        "version {version} is tried on, before it plays every match",
        "its evidence is no longer enough, so its test goes on",
    ),
    "harmful": VerdictWords(
        "version {version} is no longer tried, it is worse",
        "stopped: the evidence that it is worse was enough",
    ),
    "hopeless": VerdictWords(
        "version {version} is no longer tried, it would hardly be promoted",
        "stopped: the evidence for it fell so low that it would hardly be promoted",
    ),
    "undecided": VerdictWords(
        "version {version} is no longer tried, no difference was found",
        "the test ended without enough evidence for either side",
    ),
    "misfit": VerdictWords(
        "version {version} is no longer tested, its matches do not fit the coin",
        "closed: the arms came more or less often than the recorded coin explains",
    ),
    "stopped": VerdictWords("version {version} is no longer tried", "a person stopped the test"),
    "closed": VerdictWords(
        "version {version} is no longer tried",
        "the test ended because what it compared had changed",
    ),
    "alarm": VerdictWords(
        "version {version} plays half as often, and is tested again",
        "its results fell below what it had promised, so it is rechecked against the rules",
    ),
    "kept": VerdictWords(
        "version {version} keeps its place",
        "the recheck did not show that it is worse than the rules: it stays champion",
    ),
    "rolled back": VerdictWords(
        "version {version} plays no longer",
        "its recheck showed that it is worse than the rules, or a person said so: it plays no more",
    ),
    "paused": VerdictWords("no version is tried or promoted", "promotion was paused"),
    "resumed": VerdictWords("versions are tried and promoted again", "promotion goes on"),
    "practising": VerdictWords(
        "versions from {version} on practise",
        "the newest version plays a share of matches to learn, which count for no test",
    ),
    "suspended": VerdictWords(
        "no version practises for a while",
        "practice was suspended: the evidence that it is worse was enough",
    ),
}
"""By kind (`gates.promotion.state.VerdictKind`)."""


class _Verdict(Protocol):
    @property
    def version(self) -> int: ...

    @property
    def kind(self) -> str: ...

    @property
    def words(self) -> str: ...


def verdict_line(verdict: _Verdict, run: Path) -> str:
    """A verdict in one line: what changes in who plays, and why."""
    line = VERDICTS[verdict.kind].news.format(version=verdict.version, run=run)
    return f"{line}: {verdict.words}" if verdict.words else line
