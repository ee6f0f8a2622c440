"""Checks of files, memory, processor and time: does the machine keep up with the run?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from understudy.doctor.comparing import WindowMean, first, mean_of
from understudy.doctor.evidence import Evidence
from understudy.doctor.findings import Finding, section

_MIB, _GIB = 2**20, 2**30
_LEAST_FREE = _GIB
_LEAST_FREE_SHARE = 0.02
_LARGE_FOLDER = 5 * _GIB
_LEAST_MEMORY_SHARE = 0.05
_LEARNER_SHARE = 0.6
_GROWTH, _GROWTH_MB, _GROWN_VERSIONS = 2.0, 500.0, 200
_BEHIND_BATCHES = 10
_BEHIND_SHARE = 0.2
_STARVED = 0.3
_SLOW_WARNING = 0.5
_SLOWER = 3.0
_MATCHES = 100


def disk_nearly_full(evidence: Evidence) -> Iterator[Finding]:
    """The disk of the run folder has hardly any room."""
    free, total = evidence.machine.disk_free, evidence.machine.disk_total
    if free is None or not total:
        return
    if free >= _LEAST_FREE and free / total >= _LEAST_FREE_SHARE:
        return
    if free >= 20 * _LEAST_FREE:  # 2% of a large disk
        return
    yield Finding(
        check="disk-nearly-full",
        weight="problem" if free < _LEAST_FREE // 4 else "warning",
        certainty="certain",
        title="The disk of the run folder is nearly full.",
        evidence=(f"{free / _GIB:.2f} of {total / _GIB:,.0f} GiB are free.", *_sizes(evidence)),
        next_step="Make room, or keep less: spool.archive_bytes, registry.keep_bytes. Matches that "
        "cannot be saved are lost to learning; the bot plays on.",
        link=section("disk-nearly-full"),
    )


def folder_too_large(evidence: Evidence) -> Iterator[Finding]:
    """A part of the run folder has grown beyond any need."""
    large = {name: size for name, size in evidence.machine.folders.items() if size >= _LARGE_FOLDER}
    for name, size in sorted(large.items()):
        yield Finding(
            check="folder-too-large",
            weight="note",
            certainty="certain",
            title=f"The folder {name} of this run has grown to {size / _GIB:.1f} GiB.",
            evidence=_sizes(evidence),
            next_step="See registry.keep_versions and registry.keep_bytes for versions, "
            "league.max_saved for snapshots, train.record for recordings, and the retention of "
            "journals in docs/settings.md.",
            link=section("folder-too-large"),
        )


def _sizes(evidence: Evidence) -> tuple[str, ...]:
    status = evidence.status
    sizes = {
        **evidence.machine.folders,
        "buffer": status.buffer_bytes,
        "archive": status.archive_bytes,
        "quarantine": status.quarantine_bytes,
    }
    largest = sorted(sizes.items(), key=lambda one: -one[1])[:4]
    shown = ", ".join(f"{name} {size / _MIB:,.0f} MiB" for name, size in largest if size)
    return (f"The run folder: {shown}.",) if shown else ()


def memory_short(evidence: Evidence) -> Iterator[Finding]:
    """The machine is out of memory, or the learner takes most of it."""
    machine = evidence.machine
    free, total, learner = machine.memory_available, machine.memory_total, machine.learner_memory
    if free is None or not total or learner is None:
        return
    short, greedy = free / total < _LEAST_MEMORY_SHARE, learner / total > _LEARNER_SHARE
    if not (greedy or (short and learner / total > 0.1)):
        return
    yield Finding(
        check="memory-short",
        weight="warning",
        certainty="certain",
        title="The learner takes most of this machine's memory.",
        evidence=(
            f"It holds {learner / _GIB:.1f} of {total / _GIB:.1f} GiB; {free / _GIB:.1f} GiB are "
            "available.",
        ),
        next_step="Hold less: learner.replay_capacity or continuous.capacity, train.games, "
        "train.segment, or a smaller network.",
        link=section("memory-short"),
    )


def memory_grows(evidence: Evidence) -> Iterator[Finding]:
    """The learner's memory grows without end."""
    trend = evidence.trend("memory_mb")
    if trend.weight < _GROWN_VERSIONS:
        return
    # The first versions compile programs and fill the replay; from a quarter on it should stand.
    bins = trend.bins[len(trend.bins) // 4 :]
    quarter = max(len(bins) // 4, 1)
    parts = [mean_of(bins[at : at + quarter]) for at in range(0, 4 * quarter, quarter)]
    start, now = parts[0].mean, parts[-1].mean
    steady = all(a.mean < b.mean for a, b in pairwise(parts))
    if not steady or now < _GROWTH * start or now - start < _GROWTH_MB:
        return
    yield Finding(
        check="memory-grows",
        weight="warning",
        certainty="likely",
        title="The learner's memory grows and grows.",
        evidence=(
            "Resident memory, by quarters of the later versions: "
            + ", ".join(f"{one.mean:,.0f}" for one in parts)
            + " MiB.",
        ),
        next_step="Restart the learner for now (nothing is lost), and report it with this line.",
        link=section("memory-grows"),
    )


def learner_starved(evidence: Evidence) -> Iterator[Finding]:
    """Experience waits, and the learner has hardly any of the processor.

    A learner that keeps up is idle most of the time; that is no lack.
    """
    status, config = evidence.status, evidence.config.learner
    written, waiting = status.episodes.written, status.buffer_file_count
    if evidence.kind != "ring" or waiting < _BEHIND_BATCHES * config.batch_matches:
        return
    if waiting / max(written, 1) < _BEHIND_SHARE or status.learning not in ("on", "stalled"):
        return
    share = evidence.machine.learner_cpu_share
    share = status.learner_cpu_share if share is None else share
    if share is None or share >= _STARVED:
        return
    yield Finding(
        check="learner-starved",
        weight="warning",
        certainty="likely",
        title="The learner gets too little of the processor to keep up.",
        evidence=(
            f"It has had {share:.0%} of a core; {waiting:,} matches wait, of {written:,} that were "
            "saved.",
            *_rates(evidence),
        ),
        next_step="Give the learner a core of its own or another machine (understudy learner "
        f"--run {evidence.folder.root}), lower learner.niceness (now {config.niceness}), or play "
        "no faster than it learns: play --pace learner.",
        link=section("learner-starved"),
    )


def _rates(evidence: Evidence) -> list[str]:
    """Matches a second that are played and that are learned from, of the last hundred."""
    played, learned = evidence.trend("match_s"), evidence.trend("steps_s")
    last = played.last(_MATCHES)
    if len(last) < 2 or not learned.bins:
        return []
    span = last[-1].t - last[0].t
    decisions = evidence.trend("decisions").mean(of=evidence.trend("decisions").last(_MATCHES))
    steps = learned.mean(of=learned.last(10.0))
    if span <= 0.0 or not decisions or steps is None:
        return []
    count = sum(one.weight for one in last[1:])
    passes = evidence.config.learner.samples_per_insert
    return [
        f"{count / span:.1f} matches a second are played, of {decisions:.0f} decisions each; while "
        f"it trains, the learner takes {steps:,.0f} decisions a second, and each of them up to "
        f"{passes} times."
    ]


def slow_decisions(evidence: Evidence) -> Iterator[Finding]:
    """Decisions take long, or longer and longer."""
    slow, usual = evidence.trend("decision_p99_us"), evidence.trend("decision_p50_us")
    if evidence.kind != "ring" or evidence.trend("decisions").weight < _MATCHES or not slow.bins:
        return
    limit_ms = evidence.config.promotion.slow_ms
    eighth = slow.weight / 8
    now = mean_of(slow.last(eighth))
    if now.mean / 1e3 >= _SLOW_WARNING * limit_ms:
        yield Finding(
            check="slow-decisions",
            weight="warning",
            certainty="certain",
            title=f"The slowest decisions take {now.mean / 1e3:.0f} ms.",
            evidence=(
                f"p99 of late {now.mean / 1e3:.1f} ms, p50 {_last(evidence) / 1e3:.2f} ms; from "
                f"promotion.slow_ms = {limit_ms:g} ms on, three times in a row, the rules take "
                "over.",
            ),
            next_step="A smaller network (--network mlp), a learner with one thread and a larger "
            "learner.niceness, or fewer programs beside the bot.",
            link=section("slow-decisions"),
        )
        return
    start, later = mean_of(first(usual, eighth)), mean_of(usual.last(eighth))
    if _grew(start, later):
        yield Finding(
            check="slow-decisions",
            weight="note",
            certainty="possible",
            title=f"Decisions take {later.mean / start.mean:.1f} times as long as at the start.",
            evidence=(
                f"p50 {start.mean / 1e3:.2f} ms at the start, {later.mean / 1e3:.2f} ms of late.",
            ),
            next_step="Look for other programs on this machine. If it goes on growing, report it.",
            link=section("slow-decisions"),
        )


def _last(evidence: Evidence) -> float:
    trend = evidence.trend("decision_p50_us")
    return trend.mean(of=trend.last(trend.weight / 8)) or 0.0


def _grew(start: WindowMean, later: WindowMean) -> bool:
    """By a factor that matters, and to more than a tenth of a millisecond."""
    return later.mean > max(_SLOWER * start.mean, 500.0)


CHECKS = (
    disk_nearly_full,
    folder_too_large,
    memory_short,
    memory_grows,
    learner_starved,
    slow_decisions,
)
