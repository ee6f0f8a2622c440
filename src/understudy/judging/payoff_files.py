"""What a round robin leaves in a folder: payoffs as CSV and as a picture, standings as CSV."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from understudy.core import files
from understudy.core.dependencies import needs
from understudy.league.payoffs import Payoffs, Standing
from understudy.telemetry.table import csv_bytes

_LEGIBLE = 24
"""With more players than this, the numbers in the cells of the picture would be dust."""
_LABEL = 28


def check_installed() -> None:
    """Raises MissingDependency without Matplotlib: before the first match, not after the last."""
    with needs("--out needs Matplotlib", extra="plots"):
        import matplotlib.figure  # noqa: F401


def write_payoffs(folder: Path, payoffs: Payoffs, places: Sequence[Standing], title: str) -> None:
    """payoffs.csv, standings.csv and payoffs.png, players in the order of their places."""
    picture = payoff_picture(payoffs, [one.name for one in places], title)
    files.make_folders(folder)
    files.write_atomic(folder / "payoffs.csv", payoff_csv(payoffs))
    files.write_atomic(folder / "standings.csv", standing_csv(places))
    files.write_atomic(folder / "payoffs.png", picture)


def payoff_csv(payoffs: Payoffs) -> bytes:
    """One row for each player and opponent that met: so every pair twice, from both sides."""
    head = "player,opponent,matches,wins,draws,losses,win_rate,win_rate_low,win_rate_high"
    rows = []
    for i, name in enumerate(payoffs.names):
        for j, other in enumerate(payoffs.names):
            tally = payoffs.tally(i, j)
            if tally.matches:
                low, high = tally.interval
                rates = (f"{value:.4f}" for value in (tally.win_rate, low, high))
                counts = (tally.matches, tally.wins, tally.draws, tally.losses)
                rows.append([name, other, *counts, *rates])
    return csv_bytes([head.split(","), *rows])


def standing_csv(places: Iterable[Standing]) -> bytes:
    """One row for each player, the best first."""
    head = "place,player,points,matches,wins,draws,losses,rating,rating_margin,mu,sigma,fixed"
    rows = [
        [
            place, one.name, one.points, one.tally.matches, one.tally.wins, one.tally.draws,
            one.tally.losses, f"{one.rating.points:.1f}", f"{one.rating.margin:.1f}",
            f"{one.rating.mu:.4f}", f"{one.rating.sigma:.4f}", int(one.fixed),
        ]
        for place, one in enumerate(places, 1)
    ]  # fmt: skip
    return csv_bytes([head.split(","), *rows])


def payoff_picture(payoffs: Payoffs, order: Sequence[str], title: str) -> bytes:
    """A PNG of win rates: the row's player against the column's, in this order."""
    from matplotlib.figure import Figure

    places = [payoffs.names.index(name) for name in order]
    tallies = [[payoffs.tally(i, j) for j in places] for i in places]
    shares = [
        [tally.win_rate if tally.matches else float("nan") for tally in row] for row in tallies
    ]
    labels = [_label(name) for name in order]
    side = 1.5 + 0.45 * len(order) + 0.09 * max(map(len, labels))
    figure = Figure(figsize=(side + 1.0, side), layout="constrained", dpi=120)
    axes = figure.add_subplot()
    image = axes.imshow(shares, cmap="RdBu", vmin=0.0, vmax=1.0)
    axes.set_xticks(range(len(order)), labels, rotation=90)
    axes.set_yticks(range(len(order)), labels)
    axes.set_xlabel("opponent")
    axes.set_ylabel("player")
    axes.set_title(title)
    for i, row in enumerate(tallies if len(order) <= _LEGIBLE else ()):
        for j, tally in enumerate(row):
            if tally.matches:
                share = tally.win_rate
                ink = "white" if abs(share - 0.5) > 0.35 else "black"
                axes.text(j, i, f"{100 * share:.0f}", ha="center", va="center", size=8, color=ink)
    figure.colorbar(image, label="win rate of the player (draws are not wins)", shrink=0.8)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _label(name: str) -> str:
    """The end of a long path says most; a dollar sign would begin a formula."""
    short = name if len(name) <= _LABEL else f"...{name[3 - _LABEL :]}"
    return short.replace("$", r"\$")
