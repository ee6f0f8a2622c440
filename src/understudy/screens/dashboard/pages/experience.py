"""Experience: what waits to be learned from and how old it is, how often it is used, what was set
aside and why, and what the run folder takes on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from understudy.screens.dashboard.page import PagePart, RunReading, empty, part
from understudy.screens.dashboard.run_files import (
    DiskPart,
    Quarantine,
    SpoolAges,
    disk_use,
    quarantine,
    recent_decisions,
    spool_ages,
)
from understudy.screens.html.elements import Element, HtmlNode, tag
from understudy.screens.html.histogram import HistogramBucket, histogram
from understudy.screens.html.parts import chart_row, key_figures_list, table
from understudy.screens.html.share_bars import BarShare, share_bars
from understudy.telemetry.events import BatchTrained
from understudy.telemetry.text import duration, many, size, stamp

_AGES_S = (60.0, 300.0, 900.0, 3600.0, 6 * 3600.0, 86_400.0, 7 * 86_400.0)
"""Bounds of the buckets of ages."""
_LAGS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Lower bounds of the buckets of version lag, after that of 0."""
_KINDS, _PARTS, _MOST_SAMPLES = 8, 12, 20


def offered(reading: RunReading) -> bool:
    """Training in the arena keeps no episodes."""
    return reading.kind != "training"


def parts(reading: RunReading) -> Iterator[PagePart]:
    ages = spool_ages(reading)
    yield _figures(reading, ages)
    yield _how_old(reading, ages)
    yield _use(reading, ages)
    yield _quarantine(reading, quarantine(reading))
    disk = disk_use(reading)
    yield _kept(reading, ages, {one.name: one for one in disk})
    yield _disk(disk)


def _figures(reading: RunReading, ages: SpoolAges) -> PagePart:
    status, unit = reading.status, reading.unit
    figures: list[tuple[str, HtmlNode, HtmlNode]] = [
        ("Waiting", f"{status.buffer_file_count:,}", _under(status.buffer_bytes, ages.buffer)),
        ("Learned from", f"{status.files_processed:,}", f"{unit}, in all versions"),
        ("In the archive", f"{status.archive_file_count:,}", size(status.archive_bytes)),
        ("Can be sampled again", f"{len(ages.replay):,}", "the replay of the newest version"),
        ("Skipped as too old", f"{status.files_skipped_old:,}", "archived without training"),
        ("Set aside", f"{status.quarantine_file_count:,}", "in quarantine"),
    ]
    if ages.imported:
        figures.append(("Imported", f"{ages.imported:,}", "matches from outside"))
    if status.unsaved:
        figures.append(("Not saved", f"{status.unsaved:,}", "matches whose episode was lost"))
    return part(
        "figures",
        "Where experience is",
        key_figures_list(figures),
        words="What was played waits in the buffer, is learned from, and then lies in the "
        f"archive. Good: few {unit} wait, none for long, and nothing is set aside.",
    )


def _under(count: int, saved: Sequence[float]) -> HtmlNode:
    if not saved:
        return size(count)
    oldest = tag("time", "", **{"data-at": f"{min(saved):.0f}"})
    return tag("span", f"{size(count)}; the oldest came ", oldest)


def _how_old(reading: RunReading, ages: SpoolAges) -> PagePart:
    now, unit = reading.status.at, reading.unit
    buffer = age_histogram(
        [now - t for t in ages.buffer],
        title="Waiting in the buffer",
        explains="How long ago they were saved. Good: all within a minute or two.",
        unit=unit,
    )
    replay = age_histogram(
        [now - t for t in ages.replay],
        title="In the replay",
        explains="What may be sampled again, by age. Good: young, since the policy has changed "
        "since then.",
        unit=unit,
    )
    charts = chart_row([buffer, replay, _staleness(reading)])
    if not charts:
        return empty("ages", "How old it is", "Nothing waits, and nothing can be sampled again.")
    bound = _age_bound(reading)
    return part(
        "ages",
        "How old it is",
        *charts,
        words=f"Ages as of the last change of this page. Older than {_bound(bound)} is not "
        "learned from.",
    )


def _age_bound(reading: RunReading) -> float:
    config = reading.folder.config
    return config.continuous.max_age_s if reading.kind == "server" else config.learner.max_age_s


def age_histogram(ages: Sequence[float], *, title: str, explains: str, unit: str) -> Element | None:
    """Ages in seconds, in buckets from a minute to a week; None where there are none."""
    bounds = [0.0, *_AGES_S]
    names = [f"<{_bound(one)}" for one in _AGES_S] + [f">{_bound(_AGES_S[-1])}"]
    counts = [sum(low <= max(age, 0.0) < high for age in ages) for low, high in pairwise(bounds)]
    counts.append(sum(age >= _AGES_S[-1] for age in ages))
    last = max((index for index, count in enumerate(counts) if count), default=0)
    buckets = [HistogramBucket(*one) for one in zip(names, counts, strict=True)]
    return histogram(buckets[: max(last + 1, 4)], title=title, explains=explains, unit=unit)


def _bound(seconds: float) -> str:
    return duration(seconds).partition(" ")[0]


def _staleness(reading: RunReading) -> Element | None:
    """How many versions old the decisions were that were learned from, or that will be."""
    lags = _batch_lags(reading)
    words, unit = "the last batches", "decisions"
    if not lags:
        recent = recent_decisions(reading)
        if recent is None:
            return None
        drawn = recent.decisions.versions[recent.decisions.sampled]
        lags = Counter(lag_bucket(max(reading.status.version - int(one), 0)) for one in drawn)
        words = f"the newest {recent.episodes} {reading.unit} on disk, against the newest version"
    if not lags:
        return None  # the rules made all decisions
    bound = reading.folder.config.learner.max_version_lag
    ordered = [one for one in _lag_names() if _lag_order(one) <= max(map(_lag_order, lags))]
    ordered += sorted(lags.keys() - set(ordered), key=_lag_order)
    bound_words = (
        "" if reading.folder.by_evidence else f" Beyond {bound} they teach the value alone."
    )
    return histogram(
        [HistogramBucket(name, lags.get(name, 0)) for name in ordered],
        title="Versions behind",
        explains=f"How many versions ago the decisions were made, in {words}. Good: mostly 0 or a "
        f"few.{bound_words}",
        unit=unit,
    )


def _batch_lags(reading: RunReading) -> Mapping[str, int]:
    found: Counter[str] = Counter()
    for entry in reading.view.recent:
        if isinstance(entry.e, BatchTrained):
            found.update(entry.e.version_lag)
    return found


def lag_bucket(lag: int) -> str:
    """`0`, `1`, `2-3`, `4-7`, … `128+`, as batches in the journal have them."""
    if lag < _LAGS[1]:
        return str(lag)
    low = max(one for one in _LAGS if one <= lag)
    return f"{low}+" if low == _LAGS[-1] else f"{low}-{2 * low - 1}"


def _lag_names() -> list[str]:
    return ["0", *(lag_bucket(low) for low in _LAGS)]


def _lag_order(name: str) -> int:
    digits = name.partition("-")[0].rstrip("+")
    return int(digits) if digits.isdecimal() else 10**9


def _use(reading: RunReading, ages: SpoolAges) -> PagePart:
    config = reading.folder.config
    server = reading.kind == "server"
    bound = config.continuous.samples_per_insert if server else config.learner.samples_per_insert
    over_time = reading.charts.of(
        "Samples per insert",
        f"How often each decision was trained on, over time. The bound is {bound:g}: more would be "
        "memorising.",
        {"samples_per_insert": "samples"},
    )
    drawn = _samples(
        ages.samples,
        reading.unit,
        "How often items of each were drawn so far; a segment has several items."
        if server
        else f"How often each was sampled so far; none more than {bound:g} times.",
    )
    charts = chart_row([over_time, drawn])
    if not charts:
        return empty("use", "How often it is used", "Nothing has been learned from yet.")
    return part("use", "How often it is used", *charts)


def _samples(samples: Sequence[int], unit: str, explains: str) -> Element | None:
    counts = Counter(min(one, _MOST_SAMPLES) for one in samples)
    return histogram(
        [
            HistogramBucket(f"{one}+" if one == _MOST_SAMPLES else str(one), counts[one])
            for one in range(max(counts, default=0) + 1)
        ],
        title=f"Samples of {unit} in the replay",
        explains=explains,
        unit=unit,
    )


def _quarantine(reading: RunReading, found: Quarantine) -> PagePart:
    heading = "Quarantine"
    if not found.newest:
        return empty("quarantine", heading, "Nothing was set aside.")
    kinds = share_bars(
        [
            BarShare(name, count, f"{count:,}", tone="warning")
            for name, count in found.kinds.most_common(_KINDS)
        ],
        title="By kind of reason",
        explains=f"All {sum(found.kinds.values()):,} files that lie in quarantine.",
    )
    rows: list[tuple[HtmlNode, ...]] = [
        (
            tag("time", stamp(one.why.at), **{"data-at": f"{one.why.at:.0f}"})
            if one.why.at
            else "",
            tag(
                "span",
                one.why.reason.removeprefix(f"{one.name}: "),
                tag("span", one.name, class_="under"),
            ),
            one.sender,
            size(one.bytes),
        )
        for one in found.newest
    ]
    listed = table(
        f"The newest {len(rows)}, with the reason, the file, and the tags of the match that it is "
        "of, where they can be read.",
        ("when", "reason and file", "from", "size"),
        rows,
        kinds="w..n",
    )
    return part(
        "quarantine",
        heading,
        *chart_row([kinds]),
        tag("div", listed, class_="roomy"),
        words="Files that cannot be learned from are set aside, and learning goes on. Good: none; "
        "many of one kind mean a bug in what writes them.",
    )


def _kept(reading: RunReading, ages: SpoolAges, disk: Mapping[str, DiskPart]) -> PagePart:
    """Bounds of what is kept, what there is now, and what went."""
    status, config = reading.status, reading.folder.config
    spool, bounds, registry = config.spool, config.retention, config.registry
    archive = DiskPart("archive", status.archive_file_count, status.archive_bytes)
    aside = DiskPart("quarantine", status.quarantine_file_count, status.quarantine_bytes)
    archive_bound = (
        f"{spool.archive_matches:,} files, {size(spool.archive_bytes)}, "
        f"{_bound(spool.archive_age_s)}"
    )
    aside_bound = f"{bounds.quarantine_files:,} files, {size(bounds.quarantine_bytes)}"
    journal_bound = f"{bounds.journal_days:g} days, {size(bounds.journal_bytes)}"
    version_bound = (
        f"the newest {registry.keep_versions:,}, and {size(registry.keep_bytes)} of older ones"
    )
    journals = f"{status.journals_deleted:,} files, {size(status.journal_bytes_deleted)}"
    rows = [
        ("Archive", _on_disk(archive), archive_bound, _went(status.episodes.archived, archive)),
        ("Quarantine", _on_disk(aside), aside_bound, _went(status.episodes.quarantined, aside)),
        ("Journal", _on_disk(disk.get("journal")), journal_bound,
         journals if status.journals_deleted else "none"),
        ("Replay", _replayed(reading, ages), _replay_bound(reading), ""),
        ("Versions", _on_disk(disk.get("versions")), version_bound, ""),
    ]  # fmt: skip
    return part(
        "kept",
        "What is kept, and for how long",
        table(
            "Whatever is reached first; the oldest go first. What was learned stays in the "
            "versions.",
            ("what", "now", "bound", "went"),
            rows,
            kinds="w...",
        ),
    )


def _on_disk(found: DiskPart | None) -> str:
    if found is None:
        return "nothing"
    return f"{many(found.files, 'file', 'files')}, {size(found.bytes)}"


def _went(came: int, kept: DiskPart) -> str:
    """How many files left again; those of a journal that was lost are not known."""
    gone = came - kept.files
    return f"about {gone:,} files" if gone > 0 else "none"


def _replayed(reading: RunReading, ages: SpoolAges) -> str:
    told = reading.status.continuous
    if reading.kind == "server":
        return "nothing" if told is None else f"{told.buffer:,} items"
    return many(len(ages.replay), "match", "matches")


def _replay_bound(reading: RunReading) -> str:
    config = reading.folder.config
    if reading.kind == "server":
        return f"{config.continuous.capacity:,} items"
    return f"{config.learner.replay_capacity:,} matches"


def _disk(found: Sequence[DiskPart]) -> PagePart:
    if not found:
        return empty("disk", "Disk", "The run folder is empty.")
    total = sum(one.bytes for one in found)
    more = "at least " if any(one.more for one in found) else ""
    return part(
        "disk",
        "Disk",
        *chart_row([_disk_bars(found)]),
        words=f"The run folder takes {more}{size(total)} in "
        f"{sum(one.files for one in found):,} files.",
    )


def _disk_bars(found: Iterable[DiskPart]) -> Element | None:
    rows = []
    for one in [*found][:_PARTS]:
        more = "+" if one.more else ""
        rows.append(
            BarShare(one.name, one.bytes, f"{size(one.bytes)}{more}", f"{one.files:,}{more} files")
        )
    return share_bars(rows, title="By part", explains="The folders of the run, the largest first.")
