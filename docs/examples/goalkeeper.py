"""A goalkeeper whose rules play until a version is better by evidence.

python docs/examples/goalkeeper.py [RUN]

The rules always dive left, so they are right half of the time. The example plays shoot-outs until a
version has taken over, and then compares that version with the rules on seeds that were not played.
"""

import random
import sys

from understudy import Understudy

FEATURES = ["ball"]  # where the shot goes: -1 is far left, 1 is far right
ACTIONS = ["left", "right"]
MOST_MATCHES = 20_000


def rules(ball):
    return "left"


def play(match, seed):
    """Eight shots; five saves win."""
    luck, saves = random.Random(seed), 0
    for _shot in range(8):
        ball = luck.uniform(-1.0, 1.0)
        action = match.decide([ball], fallback=rules(ball))
        saved = (action == "left") == (ball < 0.0)
        match.reward(1.0 if saved else -1.0)  # it belongs to the decision above
        saves += saved
    return "victory" if saves >= 5 else "defeat"


def main(run):
    with Understudy.open(
        run,
        features=FEATURES,
        actions=ACTIONS,
        mode="auto",
        pace="learner",  # a match takes milliseconds here: wait for the learner
    ) as mind:
        for seed in range(MOST_MATCHES):
            with mind.match(opponent="shooter") as match:
                match.finish(play(match, seed))
            if match.role == "champion":
                champion = match.version
                break
        else:
            sys.exit(f"no version has taken over in {MOST_MATCHES:,} matches")
        fresh = range(MOST_MATCHES, MOST_MATCHES + 200)
        print(f"{seed + 1} matches until version {champion} took over")
        print(mind.evaluate(play, 200, version=champion, seeds=fresh))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "runs/goalkeeper")
