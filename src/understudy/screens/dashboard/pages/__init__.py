"""The pages of a run, in the order of the navigation."""

from __future__ import annotations

from understudy.screens.dashboard.page import Page, RunReading
from understudy.screens.dashboard.pages import (
    experience,
    league,
    matches,
    overview,
    replay,
    server,
    strategy,
    training,
    versions,
)

PAGES: tuple[Page, ...] = (
    Page("overview", "Overview", overview.parts),
    Page("training", "Training", training.parts),
    Page("matches", "Matches", matches.parts, matches.offered),
    Page("versions", "Versions", versions.parts),
    Page("league", "League", league.parts, league.offered, beside=league.beside),
    Page("strategy", "Strategy", strategy.parts, strategy.offered, beside=strategy.beside),
    Page("server", "Live server", server.parts, server.offered),
    Page("experience", "Experience", experience.parts, experience.offered),
    Page("replay", "Replay", replay.parts, of_match=replay.of_match),
)


def offered(reading: RunReading) -> tuple[Page, ...]:
    """The pages that this run has something for."""
    return tuple(page for page in PAGES if page.offered(reading))
