"""A bot of one's own in mode `auto`, as a process: it plays until a version has taken over.

python -m tests.walk.takeover_child RUN SECONDS

A match has eight decisions. Where the feature is below 0 the right action is `left`, else `right`;
the rules always go left, so they are right in half of the situations. Five right ones win.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

from understudy import Understudy
from understudy.bot.match import Match
from understudy.policy.mlp import Mlp

SETTINGS = {
    "learner.gather_s": 0.05,
    "learner.niceness": 0,
    "learner.publish_interval_s": 0.05,
    "promotion.cameo_share": 0.2,
    "promotion.practice_share": 0.4,
    "promotion.first_matches": 20,
    "report.status_every_s": 0,
}


def play(match: Match, seed: int) -> str:
    """One match with this luck."""
    luck, right = random.Random(seed), 0
    for _ in range(8):
        here = luck.uniform(-1.0, 1.0)
        action = match.decide([here], fallback="left")
        good = action == ("left" if here < 0.0 else "right")
        match.reward(1.0 if good else -1.0)
        right += good
    return "victory" if right >= 5 else "defeat"


def main(run: Path, seconds: float) -> None:
    """Prints what came of it as JSON."""
    until = time.monotonic() + seconds
    with Understudy.open(
        run,
        features=("here",),
        actions=("left", "right"),
        mode="auto",
        pace="learner",
        network=Mlp(widths=(16,)),
        rules="left",
        seed=5,
        settings=SETTINGS,
    ) as mind:
        assert mind.promotion is not None
        matches = 0
        while not mind.promotion.state.incumbent and time.monotonic() < until:
            matches += 1
            with mind.match(opponent="wall") as match:
                match.finish(play(match, matches))
        champion, compared = mind.promotion.state.incumbent, None
        if champion:
            seeds = range(10**6, 10**6 + 200)
            compared = mind.evaluate(play, 200, version=champion, seeds=seeds).as_dict()
    print(json.dumps({"matches": matches, "champion": champion, "compared": compared}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
