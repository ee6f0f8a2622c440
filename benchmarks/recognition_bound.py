"""How well an opponent of brawl can be named at all, after 1, 2 and 4 seconds.

    python benchmarks/recognition_bound.py RUN [--matches 5000] [--passes 7] [--greedy] [--json]

Two bounds on what a probe of an agent's latent may reach. The ceiling of its own matches: bots
that have done exactly the same so far cannot be told apart by anyone. The same with scripts as the
agent that run at their opponent and strike in different ways, so that it shows itself soon. Then a
reader that learns nothing but to name: a GRU over all that was seen of the opponent, trained on
four fifths of the recorded matches and judged on seeds that it never saw: no bound, but what
twenty thousand matches teach somebody. Eight minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import machine
import numpy as np
import optax
from equal_time import ours_of

from understudy.analysis.recording import MatchRecording, record
from understudy.analysis.study import ceilings
from understudy.arena.compiling import compiled_duel
from understudy.core.arrays import NDArray
from understudy.games import catalog
from understudy.games.brawl.tables import FRAMES_PER_S
from understudy.games.brawl.view import View
from understudy.match.players import BotPlayer, Player, PolicyPlayer

SECONDS = (1, 2, 4)
FRAMES = SECONDS[-1] * FRAMES_PER_S
SEED = 7
SCRIPT_MATCHES = 100
WIDTH, BATCH, RATE = 128, 128, 2e-3
FIRST_FRAME = 10
"""Nothing can be read off the frames before, and nothing is asked of them."""
scripts = import_module("understudy.games.brawl.bots")  # the package has a function of that name
Params = dict[str, jax.Array]


def rushing(blow: NDArray | None, reach: float) -> Callable[[View], Any]:
    """Runs at its opponent without a pause, and strikes with one blow within reach, or never."""

    def script(view: View) -> Any:
        near = view.reach(reach)
        chosen, when = (scripts.IDLE, near & ~near) if blow is None else (blow, near)
        return scripts.fight(view, chosen, when, scripts.approach(view))

    return script


RUSHING = {
    "light blows": rushing(scripts.LIGHT, 0.6),
    "heavy blows": rushing(scripts.HEAVY, 1.9),
    "low blows": rushing(scripts.LOW, 2.0),
    "no blows": rushing(None, 0.0),
}


def seen_by(player: Player, matches: int) -> MatchRecording:
    """The first seconds of matches against every bot."""
    bots = {name: BotPlayer(bot) for name, bot in catalog.bots("brawl").items()}
    game = catalog.make("brawl")
    return record(
        game, player, bots, matches=matches, frames=FRAMES, seed=SEED, engine=compiled_duel
    )  # fmt: skip


def bounds(seen: MatchRecording) -> dict[int, float]:
    """What nobody can do better than."""
    found = ceilings(seen, frames_per_s=FRAMES_PER_S)
    return {at: round(found[at], 4) for at in SECONDS}


def fresh(features: int, kinds: int) -> Params:
    """The reader before it has read anything."""
    keys = jax.random.split(jax.random.key(SEED), 4)
    shapes = {
        "embed": (features, WIDTH), "gates": (WIDTH, 3 * WIDTH), "hidden": (WIDTH, 3 * WIDTH),
        "named": (WIDTH, kinds),
    }  # fmt: skip
    drawn = {
        name: jax.random.normal(key, shape) / np.sqrt(shape[0])
        for key, (name, shape) in zip(keys, shapes.items(), strict=True)
    }
    return drawn | {"shift": jnp.zeros(WIDTH), "bias": jnp.zeros(3 * WIDTH)}


def read(params: Params, frames: jax.Array) -> jax.Array:
    """frames [T, B, F] to logits [T, B, kinds]."""
    inputs = jax.nn.relu(frames @ params["embed"] + params["shift"])
    inputs = inputs @ params["gates"] + params["bias"]

    def step(hidden: jax.Array, given: jax.Array) -> tuple[jax.Array, jax.Array]:
        update, reset, new = jnp.split(given, 3, -1)
        held, dropped, changed = jnp.split(hidden @ params["hidden"], 3, -1)
        keep = jax.nn.sigmoid(update + held)
        proposed = jnp.tanh(new + jax.nn.sigmoid(reset + dropped) * changed)
        hidden = keep * hidden + (1 - keep) * proposed
        return hidden, hidden

    _, every = jax.lax.scan(step, jnp.zeros((frames.shape[1], WIDTH)), inputs)
    return every @ params["named"]


def loss(params: Params, frames: jax.Array, labels: jax.Array) -> jax.Array:
    """Cross-entropy of all frames but the first few."""
    logits = read(params, frames)[FIRST_FRAME:]
    wanted = jnp.broadcast_to(labels, logits.shape[:2])
    each: jax.Array = optax.softmax_cross_entropy_with_integer_labels(logits, wanted)
    return each.mean()


def reader_accuracy(seen: MatchRecording, *, passes: int) -> dict[int, float]:
    """Of a reader on the fifth of all seeds that it did not learn from."""
    theirs = jnp.asarray(seen.seen[..., -seen.seen.shape[-1] // 2 :])
    labels = jnp.asarray(seen.labels)
    strange = seen.numbers % 5 == 0
    learned, judged = np.flatnonzero(~strange), np.flatnonzero(strange)
    updates = len(learned) // BATCH
    optimiser = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(optax.cosine_decay_schedule(RATE, passes * updates), weight_decay=1e-2),
    )
    params = fresh(theirs.shape[-1], len(seen.opponents))
    state = optimiser.init(params)

    @jax.jit
    def update(params: Params, state: Any, columns: jax.Array) -> tuple[Params, Any]:
        slopes = jax.grad(loss)(params, theirs[:, columns], labels[columns])
        change, state = optimiser.update(slopes, state, params)
        return optax.apply_updates(params, change), state

    rng = np.random.default_rng(SEED)
    for _ in range(passes):
        for columns in rng.permutation(learned)[: updates * BATCH].reshape(updates, BATCH):
            params, state = update(params, state, columns)
    said = np.asarray(jax.jit(partial(read, params))(theirs[:, judged])).argmax(-1)
    right = said == seen.labels[judged]
    return {at: round(float(right[at * FRAMES_PER_S - 1].mean()), 4) for at in SECONDS}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="whose champion meets the bots")
    parser.add_argument("--matches", type=int, default=5000, help="against each bot")
    parser.add_argument("--passes", type=int, default=7, help="of the reader over its matches")
    parser.add_argument("--greedy", action="store_true", help="the agent's likeliest actions")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    player, told = ours_of(arguments.run)
    agent = PolicyPlayer(player.policy, sampled=not arguments.greedy)
    seen = seen_by(agent, arguments.matches)
    result: dict[str, Any] = {
        "scripts": {
            name: bounds(seen_by(BotPlayer(scripts.Scripted(script)), SCRIPT_MATCHES))
            for name, script in RUSHING.items()
        },
        "agent": bounds(seen),
        "reader": reader_accuracy(seen, passes=arguments.passes),
        "matches": arguments.matches,
        "machine": machine.describe("jax", "numpy"),
    }
    if arguments.json:
        print(json.dumps(result))
        return
    print(result["machine"])
    print(f"{'':44}" + "".join(f"{at:>7} s" for at in SECONDS))
    rows = {f"at most, a script with {name}": one for name, one in result["scripts"].items()}
    rows |= {
        f"at most, {arguments.run} version {told['version']}": result["agent"],
        f"a reader of {4 * arguments.matches // 5:,} matches v each": result["reader"],
    }
    for name, one in rows.items():
        print(f"{name:<44}" + "".join(f"{one[at]:>9.1%}" for at in SECONDS))


if __name__ == "__main__":
    main()
