"""Checks of the learner's process and of the files between it and the bot."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from understudy.doctor.evidence import Evidence
from understudy.doctor.findings import Finding, section
from understudy.telemetry import events as ev
from understudy.telemetry.status import patience, stalled

_DEATHS, _VERSIONS_A_DEATH = 3, 100
_PILE_BATCHES = 20
_QUARANTINED = 5
_QUARANTINED_SHARE = 0.05
_UNSAVED_SHARE = 0.01
_TOO_OLD, _TOO_OLD_SHARE = 20, 0.2
_REUSED = 32.0
"""Samples of each match; the default allows 8, and training 480 times on one is memorising."""
_AT_WORK = {"starting", "training", "idle", "waiting for experience"}


def stalled_learning(evidence: Evidence) -> Iterator[Finding]:
    """Experience waits and no version comes."""
    words = stalled(evidence.status)
    if words and _waits_by_the_disk(evidence):
        yield Finding(
            check="stalled",
            weight="problem",
            certainty="certain",
            title="Experience waits, and no new version comes.",
            evidence=(f"{words[0].upper()}{words[1:]}.",),
            next_step=f"Read {evidence.folder.logs}, where the learner says what went wrong. If it "
            "hangs, end the session and run the learner by itself: understudy learner --run "
            f"{evidence.folder.root}",
            link=section("stalled"),
        )


def learner_died(evidence: Evidence) -> Iterator[Finding]:
    """The learner's process ends by itself, again and again."""
    status = evidence.status
    if status.learner_deaths < _DEATHS:
        return
    last = [one for one in status.problems if one.where == "learner"][-1:]
    rare = status.versions >= _VERSIONS_A_DEATH * status.learner_deaths
    helpless = status.learner == "dead" or not status.versions
    yield Finding(
        check="learner-died",
        weight="problem" if helpless else "note" if rare else "warning",
        certainty="certain",
        title=f"The learner died {status.learner_deaths:,} times.",
        evidence=(
            f"It is now: {status.learner}; versions published: {status.versions:,}.",
            *(f"The last time: {one.message}." for one in last),
        ),
        next_step=f"Run it by itself to see why: understudy learner --run {evidence.folder.root}. "
        f"Its last words are in {evidence.folder.logs}; exit code -9 is a lack of memory as a "
        "rule.",
        link=section("learner-died"),
    )


def files_piling_up(evidence: Evidence) -> Iterator[Finding]:
    """More episodes wait than the learner takes in many batches."""
    status, config = evidence.status, evidence.config.learner
    pile = _PILE_BATCHES * config.batch_matches
    if evidence.kind != "ring" or status.buffer_file_count < pile or status.paused_since:
        return
    root, relayed = evidence.folder.root, bool(status.relay_to)
    if status.learner in _AT_WORK:
        next_step = (
            'Let the bot wait for its learner: Understudy.open(pace="learner") or play '
            "--pace learner; or raise learner.batch_matches."
        )
    elif relayed:
        next_step = (
            "See that a relay runs here and reaches its store: "
            f"understudy relay {root} {status.relay_to}"
        )
    else:
        next_step = f"Start a learner: understudy learner --run {root}"
    yield Finding(
        check="files-piling-up",
        weight="note" if status.learner == "not started" and not relayed else "warning",
        certainty="certain",
        title=f"Episodes pile up: {status.buffer_file_count:,} wait to be "
        f"{'sent' if relayed else 'learned from'}.",
        evidence=(
            f"A batch takes {config.batch_matches}; {status.episodes.ingested:,} of "
            f"{status.episodes.written:,} were learned from. The learner: {status.learner}.",
        ),
        next_step=next_step,
        link=section("files-piling-up"),
    )


def quarantine_fills(evidence: Evidence) -> Iterator[Finding]:
    """Files that cannot be learned from."""
    status = evidence.status
    count = status.episodes.quarantined
    share = count / max(status.episodes.written + status.episodes.ingested, count, 1)
    if count < _QUARANTINED or share < _QUARANTINED_SHARE:
        return
    last = [one for one in status.problems if one.where == "quarantine"][-1:]
    yield Finding(
        check="quarantine-fills",
        weight="problem" if share > 0.5 else "warning",
        certainty="certain",
        title=f"{count:,} episodes were set aside as damaged or poisonous.",
        evidence=tuple(f"The last: {one.message}." for one in last)
        or (f"{share:.0%} of all episodes.",),
        next_step=f"Read {evidence.folder.root / 'quarantine'}: a .reason.json lies beside each "
        "file.",
        link=section("quarantine-fills"),
    )


def stale_experience(evidence: Evidence) -> Iterator[Finding]:
    """Episodes are too old before they are learned from."""
    status, config = evidence.status, evidence.config.learner
    skipped = status.files_skipped_old
    share = skipped / max(status.episodes.archived, skipped, 1)
    lag = evidence.trend("version_lag").mean()
    if skipped >= _TOO_OLD and share >= _TOO_OLD_SHARE:
        yield Finding(
            check="stale-experience",
            weight="warning",
            certainty="certain",
            title=f"{share:.0%} of the episodes were too old to learn from.",
            evidence=(
                f"{skipped:,} of {status.episodes.archived:,} were archived without training: "
                f"older than learner.max_age_s={config.max_age_s:g}.",
            ),
            next_step="Keep a learner running beside the bot, or raise learner.max_age_s.",
            link=section("stale-experience"),
        )
    elif (
        evidence.kind == "ring"
        and not evidence.folder.by_evidence  # there the distance counts (`far-from-what-played`)
        and lag is not None
        and lag > max(config.max_version_lag, 1)
    ):
        yield Finding(
            check="stale-experience",
            weight="warning",
            certainty="likely",
            title="Experience is many versions old when it is learned from.",
            evidence=(
                f"Decisions were {lag:.0f} versions old on average; beyond "
                f"learner.max_version_lag={config.max_version_lag} they teach the value only.",
            ),
            next_step="Publish less often (learner.publish_interval_s), or let the bot wait for "
            'its learner (pace="learner").',
            link=section("stale-experience"),
        )


def over_reused(evidence: Evidence) -> Iterator[Finding]:
    """Each match is trained on so often that it is memorised."""
    trend = evidence.trend("samples_per_insert")
    now = trend.mean(of=trend.last(1))
    if evidence.kind != "ring" or now is None or now < _REUSED:
        return
    yield Finding(
        check="over-reused",
        weight="warning",
        certainty="likely",
        title=f"Each match is trained on {now:.0f} times: that memorises matches.",
        evidence=(
            f"learner.samples_per_insert={evidence.config.learner.samples_per_insert}, "
            f"learner.epochs={evidence.config.learner.epochs} (default: 8 and 4).",
        ),
        next_step="Lower learner.samples_per_insert and learner.epochs.",
        link=section("over-reused"),
    )


def unsaved_matches(evidence: Evidence) -> Iterator[Finding]:
    """The disk refused episodes."""
    status = evidence.status
    if not status.unsaved:
        return
    ended = [one.e for one in evidence.view.recent if isinstance(one.e, ev.MatchFinished)]
    newest = any(one.recorded and not one.saved for one in ended)
    often = status.unsaved >= _UNSAVED_SHARE * status.matches
    yield Finding(
        check="unsaved-matches",
        weight="warning" if newest or often else "note",
        certainty="certain",
        title=f"{status.unsaved:,} matches could not be saved.",
        evidence=(f"Of {status.matches:,} matches.",),
        next_step=f"Look at the space and the permissions of {evidence.folder.root}.",
        link=section("unsaved-matches"),
    )


def _waits_by_the_disk(evidence: Evidence) -> bool:
    """Whether files of the buffer are as old as the journal says. Sessions in lockstep have a clock
    of their own, years behind: their files are new."""
    waited = patience(evidence.config).stalled_s
    times: list[float] = []
    for path in (evidence.folder.root / "buffer").glob("*.npz"):
        with contextlib.suppress(OSError):  # it was archived this moment
            times.append(path.stat().st_mtime)
    return bool(times) and evidence.status.at - min(times) > waited


CHECKS = (
    stalled_learning,
    learner_died,
    files_piling_up,
    quarantine_fills,
    stale_experience,
    over_reused,
    unsaved_matches,
)
