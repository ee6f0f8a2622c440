"""How scripted players do in the stand-in, by the build of the opponent.

python -m understudy.adapters.sc2.stand_in.balance [--matches 100] [--first-seed 5000000]
"""

from __future__ import annotations

import argparse

from understudy.adapters.sc2.stand_in import players
from understudy.adapters.sc2.stand_in.players import BUILDS, STRATEGIES, Player
from understudy.telemetry.text import say

FIRST_SEED = 5_000_000
"""Seeds from here on were first played after the rules were frozen."""
SCRIPTED: dict[str, Player] = {
    "rules": players.template_rules,
    "scripted": players.scripted,
    **{name: players.constant(name) for name in STRATEGIES},
}


def win_rates(player: Player, *, matches: int, first_seed: int = FIRST_SEED) -> dict[str, float]:
    """The share of matches won against each build, `matches` of each."""
    seeds = range(first_seed, first_seed + matches)
    return {
        build: sum(players.play(player, seed, build)[0] == "Victory" for seed in seeds) / matches
        for build in BUILDS
    }


def mean(rates: dict[str, float]) -> float:
    """Over all builds, which are equally likely."""
    return sum(rates.values()) / len(rates)


def main() -> None:
    """Prints the table of docs/starcraft2.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matches", type=int, default=100, help="against each build")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    asked = parser.parse_args()
    say(f"| wins | all | {' | '.join(BUILDS)} |")
    say(f"|---|---|{'---|' * len(BUILDS)}")
    for name, player in SCRIPTED.items():
        rates = win_rates(player, matches=asked.matches, first_seed=asked.first_seed)
        cells = " | ".join(f"{rate:.0%}" for rate in rates.values())
        say(f"| {name} | {mean(rates):.1%} | {cells} |")


if __name__ == "__main__":
    main()
