"""Whether an answer is ever a mixture: 100,000 decisions while versions are swapped all the time.

    python benchmarks/serve_versions.py [--answers 100000] [--rate 2000] [--json]

A second process commits versions of wildly different weights as fast as it can; the server adopts
them as it goes. Afterwards every answer is recomputed from the version that it names: the
probability of its action must be the one that this version gives, from the weights on disk. That
the test can tell a mixture is checked too: hardly any answer may fit the version before, or that
version's first layers under this one's last.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import machine
import msgspec
import numpy as np
import open_loop
import served
import territory_messages

from understudy.core.clock import SystemClock
from understudy.core.ops import NUMPY
from understudy.policy import distributions
from understudy.policy import weights as weight_files
from understudy.policy.policy import Policy
from understudy.policy.weights import Weights, fresh, normalise
from understudy.registry.pointers import LATEST
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS, Manifest

CONNECTIONS = 100
TOLERANCE = 1e-4
"""Of a probability, relatively: one row alone and among others may differ in the last bits."""


class Answer(msgspec.Struct):
    """What is read of a `decision`."""

    action: str
    confidence: float
    version: int
    degraded: bool


def commit_for_ever(run: Path) -> None:
    """New versions until stdin ends; what a learner in a great hurry would do."""
    folder = RunFolder.load(run, SystemClock())
    number = folder.versions.head() or 0
    while not _stdin_ended():
        number += 1
        manifest = Manifest(
            number=number, parent=number - 1 or None, created_at=time.time(), spec=folder.spec
        )
        data = weight_files.encode(wild(folder, number))
        folder.versions.commit(manifest, {WEIGHTS: data})
        folder.pointers.move("champion", number, by=LATEST)


def _stdin_ended() -> bool:
    import select

    ready, _, _ = select.select([sys.stdin], [], [], 0.02)
    return bool(ready)


def wild(folder: RunFolder, seed: int) -> Weights:
    """Weights under which actions are far from equally likely, different ones for each seed."""
    rng = np.random.default_rng(seed)
    plain = fresh(folder.spec, rng)
    params = {name: rng.normal(0.0, 0.3, p.shape).astype(np.float32) for name, p in
              plain.params.items()}  # fmt: skip
    return replace(plain, params=params)


def probabilities(policy: Policy, features: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """features [B, F], actions [B] to the probability [B] that the policy gives them."""
    weights = policy.weights
    logits, _, _ = policy.spec.network.step(
        NUMPY, weights.params, normalise(NUMPY, weights, features), policy.begin(len(features))
    )
    space = policy.spec.actions
    log_p = distributions.log_prob(NUMPY, space, logits, actions[:, None], None)
    return np.asarray(np.exp(log_p))


def judge(
    run: Path, features: np.ndarray, answers: Sequence[Answer]
) -> tuple[int, int, int, list[int]]:
    """Answers that fit no version; that fit the one before; that fit a mixture; the versions."""
    folder = RunFolder.load(run, SystemClock())
    names = msgspec.to_builtins(folder.spec.actions)["names"]
    codes = {name: code for code, name in enumerate(names)}
    by_version: Mapping[int, list[int]] = defaultdict(list)
    for index, answer in enumerate(answers):
        by_version[answer.version].append(index)
    torn = old = mixed = 0
    for version, rows in by_version.items():
        actions = np.array([codes[answers[row].action] for row in rows], np.int32)
        said = np.array([answers[row].confidence for row in rows])
        seen = features[rows]
        policy = folder.versions.policy(version)
        before = folder.versions.policy(max(version - 1, 1))
        torn += int((~_equal(probabilities(policy, seen, actions), said)).sum())
        if version > 1:
            old += int(_equal(probabilities(before, seen, actions), said).sum())
            mixed += int(_equal(probabilities(_torn(before, policy), seen, actions), said).sum())
    return torn, old, mixed, sorted(by_version)


def _torn(before: Policy, after: Policy) -> Policy:
    """The first layers of one version under the last of the next."""
    params = {
        name: (before if name.startswith("trunk") else after).weights.params[name]
        for name in after.weights.params
    }
    return Policy(after.spec, replace(after.weights, params=params), after.version)


def _equal(expected: np.ndarray, said: np.ndarray) -> np.ndarray:
    return np.asarray(np.abs(expected - said) <= TOLERANCE * expected + 1e-7)


def measure(count: int, rate: float) -> dict[str, object]:
    order = open_loop.spread(count, CONNECTIONS)
    messages = territory_messages.generic(order)
    features = np.array(
        [msgspec.json.decode(message)["features"] for message in messages], np.float32
    )
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        schema, run = root / "load.toml", root / "run"
        schema.write_text(territory_messages.SCHEMA, encoding="utf-8")
        command = [sys.executable, __file__, "--commit", str(run)]
        with (
            served.understudy(run, "--schema", str(schema), "--learner", "off") as server,
            subprocess.Popen(command, stdin=subprocess.PIPE) as committing,
        ):
            _await_version(run)
            outcome = open_loop.drive(
                server.url, messages, rate=rate, order=order, hello=territory_messages.HELLO
            )
            assert committing.stdin is not None
            committing.stdin.close()
        given = [
            (row, msgspec.json.decode(data, type=Answer))
            for row, data in enumerate(outcome.answers)
            if data is not None and b'"decision"' in data
        ]
        rows = [row for row, one in given if one.version > 0 and not one.degraded]
        answers = [one for _, one in given if one.version > 0 and not one.degraded]
        torn, old, mixed, versions = judge(run, features[rows], answers)
    return {
        "machine": machine.describe("numpy", "msgspec"),
        "messages": count,
        "judged": len(answers),
        "degraded": sum(one.degraded for _, one in given),
        "unanswered": count - len(given),
        "versions": len(versions),
        "seconds": outcome.seconds,
        "p99_ms": outcome.of(99),
        "torn": torn,
        "fit_the_version_before": old,
        "fit_a_mixture": mixed,
    }


def _await_version(run: Path) -> None:
    while RunFolder.load(run, SystemClock()).pointers.read("champion") is None:
        time.sleep(0.05)
    time.sleep(1.0)  # until it is played


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=2000.0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--commit", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.commit:
        commit_for_ever(arguments.commit)
        return
    result = measure(arguments.answers, arguments.rate)
    judged = result["judged"]
    assert isinstance(judged, int)
    lines = [
        f"{'answers that were recomputed':44}{judged:>9,}",
        f"{'versions that they name':44}{result['versions']:>9}",
        f"{'answers that match no whole version':44}{result['torn']:>9}   goal: 0",
        f"{'answers that fit the version before as well':44}{result['fit_the_version_before']:>9}",
        f"{'answers that fit a mixture of the two':44}{result['fit_a_mixture']:>9}",
        f"{f'p99 meanwhile, at {arguments.rate:,.0f}/s':44}{result['p99_ms']:>6.1f} ms",
    ]
    missed = [] if result["torn"] == 0 else [f"{result['torn']} answers match no whole version"]
    if judged < arguments.answers * 0.99:
        missed.append(f"{judged:,} answers of {arguments.answers:,} could be judged")
    served.report(result, lines, missed, as_json=arguments.json)


if __name__ == "__main__":
    main()
