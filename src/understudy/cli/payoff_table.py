"""Text of a round robin: standings, the payoff matrix, and cycles."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.league.payoffs import Cycle, Payoffs, Standing
from understudy.telemetry.text import plain

_SHOWN_CYCLES = 5


def standings_table(places: Sequence[Standing]) -> list[str]:
    """The best first; a rating is where the true one is, with 95% confidence."""
    names = [plain(one.name) for one in places]
    width = max(len("player"), *map(len, names))
    lines = [
        f"{'':>3} {'player':<{width}}  {'points':>7}  {'wins':>5} {'draws':>5} {'losses':>6}"
        f"  {'win rate':>8}  {'distinct':>8}  {'rating':>6}"
    ]
    for place, (name, one) in enumerate(zip(names, places, strict=True), 1):
        tally = one.tally
        held = " fixed" if one.fixed else ""
        lines.append(
            f"{place:>3} {name:<{width}}  {one.points:>7g}  {tally.wins:>5} {tally.draws:>5}"
            f" {tally.losses:>6}  {tally.win_rate:>8.1%}  {one.distinct:>8}"
            f"  {one.rating.points:>6.0f}"
            f" ± {one.rating.margin:.0f}{held}"
        )
    return lines


def payoff_table(payoffs: Payoffs, order: Sequence[str]) -> list[str]:
    """Win rates in percent, rows against columns; players in this order, columns by number."""
    places = [payoffs.names.index(name) for name in order]
    bounds = payoffs.lower_bounds()
    width = max(len(plain(name)) for name in order)
    head = "".join(f"{number:>4} " for number in range(1, len(order) + 1))
    lines = [f"{'':>3} {'':<{width}} {head}".rstrip()]
    for number, (i, name) in enumerate(zip(places, order, strict=True), 1):
        cells = ""
        for j in places:
            tally = payoffs.tally(i, j)
            share = f"{100 * tally.win_rate:.0f}" if tally.matches else "."
            cells += f"{share:>4}{'*' if bounds[i, j] > 0.5 else ' '}"
        lines.append(f"{number:>3} {plain(name):<{width}} {cells}".rstrip())
    return lines


def cycle_lines(cycles: Sequence[Cycle]) -> list[str]:
    """The first few cycles, and how many more there are."""
    if not cycles:
        return ["Cycles: none that is sure."]
    lines = [f"Cycles: {len(cycles)} (each step is a win rate surely above one half)"]
    lines += [
        f"  {plain(str(cycle))}   every step above {cycle.surety:.1%}"
        for cycle in cycles[:_SHOWN_CYCLES]
    ]
    if len(cycles) > _SHOWN_CYCLES:
        lines.append(f"  ... and {len(cycles) - _SHOWN_CYCLES} more (--json has all)")
    return lines


def found_page(payoffs: Payoffs, places: Sequence[Standing], cycles: Sequence[Cycle]) -> list[str]:
    """Standings, payoff matrix and cycles."""
    anchored = any(one.fixed for one in places)
    held = "fixed ones hold the scale" if anchored else "no scripted bot holds the scale here"
    return [
        *standings_table(places),
        f"    Ratings with 95% intervals; 400 more are ten wins for a loss; {held}.",
        "",
        "Win rate in %, row v column (draws are not wins; *: surely above one half)",
        *payoff_table(payoffs, [one.name for one in places]),
        "",
        *cycle_lines(cycles),
    ]
