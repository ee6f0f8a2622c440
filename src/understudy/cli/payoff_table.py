"""Text of a round robin: standings, the payoff matrix, and cycles."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.cli.output import StyledLine, out_width, table
from understudy.league.payoffs import Cycle, Payoffs, Standing
from understudy.telemetry.layout import Column, hanging
from understudy.telemetry.text import plain

_SHOWN_CYCLES = 5
_STANDINGS = (
    Column(""),
    Column("player", text=True),
    Column("points", drop=3),
    Column("wins", drop=5),
    Column("draws", drop=5),
    Column("losses", drop=5),
    Column("win rate"),
    Column("distinct", drop=6),
    Column("rating", drop=2),
    Column("95%", text=True, drop=2),
)

PageLines = list[str | StyledLine]


def standings_table(places: Sequence[Standing]) -> PageLines:
    """The best first; a rating is where the true one is, with 95% confidence."""
    rows = [
        [
            f"{place}",
            plain(one.name),
            f"{one.points:g}",
            f"{one.tally.wins}",
            f"{one.tally.draws}",
            f"{one.tally.losses}",
            f"{one.tally.win_rate:.1%}",
            f"{one.distinct}",
            f"{one.rating.points:.0f}",
            f"± {one.rating.margin:.0f}{' fixed' if one.fixed else ''}",
        ]
        for place, one in enumerate(places, 1)
    ]
    return table(_STANDINGS, rows)


def payoff_table(payoffs: Payoffs, order: Sequence[str]) -> PageLines:
    """Win rates in percent, rows against columns; players in this order, columns by number.

    Where not all fit, the columns of the weakest players go first.
    """
    places = [payoffs.names.index(name) for name in order]
    bounds = payoffs.lower_bounds()
    columns = [
        Column(""),
        Column("", text=True),
        *(Column(f"{number} ", drop=number) for number in range(1, len(order) + 1)),
    ]
    rows = []
    for number, (i, name) in enumerate(zip(places, order, strict=True), 1):
        row = [f"{number}", plain(name)]
        for j in places:
            tally = payoffs.tally(i, j)
            share = f"{100 * tally.win_rate:.0f}" if tally.matches else "."
            row.append(f"{share}{'*' if bounds[i, j] > 0.5 else ' '}")
        rows.append(row)
    return table(columns, rows)


def cycle_lines(cycles: Sequence[Cycle]) -> list[str]:
    """The first few cycles, and how many more there are."""
    if not cycles:
        return ["Cycles: none that is sure."]
    lines = [f"Cycles: {len(cycles)} (each step is a win rate surely above one half)"]
    for cycle in cycles[:_SHOWN_CYCLES]:
        words = f"{plain(str(cycle))}   every step above {cycle.surety:.1%}"
        lines += hanging(words, width=out_width(), indent=2)
    if len(cycles) > _SHOWN_CYCLES:
        lines.append(f"  ... and {len(cycles) - _SHOWN_CYCLES} more (--json has all)")
    return lines


def found_page(payoffs: Payoffs, places: Sequence[Standing], cycles: Sequence[Cycle]) -> PageLines:
    """Standings, payoff matrix and cycles."""
    anchored = any(one.fixed for one in places)
    held = "fixed ones hold the scale" if anchored else "no scripted bot holds the scale here"
    scale = f"Ratings with 95% intervals; 400 more are ten wins for a loss; {held}."
    rates = "Win rate in %, row v column (draws are not wins; *: surely above one half)"
    return [
        *standings_table(places),
        *hanging(scale, width=out_width(), indent=3, more=0),
        "",
        *hanging(rates, width=out_width(), more=0),
        *payoff_table(payoffs, [one.name for one in places]),
        "",
        *cycle_lines(cycles),
    ]
