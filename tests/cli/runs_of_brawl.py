"""Run folders of brawl with a version or two, as a trainer would leave them."""

from __future__ import annotations

from pathlib import Path

from understudy.core.clock import SystemClock
from understudy.games import catalog
from understudy.policy import weights
from understudy.policy.mlp import Mlp
from understudy.policy.policy import untrained
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS, Manifest


def brawl_run(root: Path, *, versions: int = 2, **options: str) -> Path:
    """Untrained versions 1, 2, ... of which the last is champion; all play differently."""
    game = catalog.make("brawl", **options)
    spec = PolicySpec(game.features, game.actions, Mlp((8,)))
    clock = SystemClock()
    folder = RunFolder.open(
        root, spec=spec, config=None, clock=clock, game=f"brawl {game.version}",
        game_options=options,
    )  # fmt: skip
    for number in range(1, versions + 1):
        manifest = Manifest(
            number=number, parent=number - 1 or None, created_at=clock.time(), spec=spec
        )
        policy = untrained(spec, seed=number)
        folder.versions.commit(manifest, {WEIGHTS: weights.encode(policy.weights)})
        folder.pointers.move("champion", number, by="latest")
    return root
