"""What one learner, one object store and one Ray head can feed, and which part gives way first.

    python benchmarks/scale_model.py [--constants FILE] [--only capacity,latency]

Prints the tables of `docs/scale.md`. `CONSTANTS` are figures of `scale_constants.py`, of other
benchmarks, or of others, and each says which; `--constants` replaces some of them by those of a
JSON object. Capacities are divisions. Waiting times are simulated: matches end at random, are
bundled on each machine, put into the store, found by the learner's next poll, learned from one
after the other, published with the next version, and found by a player's next poll.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

HOUR_S = 3600.0
BOTS, DECISIONS_S = 10_000, 1e6
SEGMENT = 128
"""Steps that a worker plays in one call."""


@dataclass(frozen=True)
class Constants:
    """Core-seconds, bytes and requests. A core is one of the machine of `docs/benchmarks.md`."""

    play_cpu_s: float = 0.0371
    """A match of swarm by the bot, 167 decisions: `scale_constants.py --only ring`."""
    learn_cpu_s: float = 0.00292
    """The ring's learner, a match of swarm: `scale_constants.py --only ring`."""
    episode_bytes: float = 16_569
    """A match of swarm on disk and on the wire: `scale_constants.py --only ring`."""
    version_bytes: float = 158_216
    """A version of swarm's network, whole: `scale_constants.py --only ring`."""
    decisions_a_match: float = 167
    """Of swarm: `scale_constants.py --only ring`."""
    schema_cpu_s: float = 183e-6
    """A decision of `serve --schema`: `serve_load.py`."""
    territory_cpu_s: float = 407e-6
    """A decision of `serve territory`: `serve_load.py`."""
    arena_cpu_s: float = 69e-6
    """A step of brawl, preset small, with its learning: `scale_constants.py --only arena`."""
    arena_gpu_steps_s: float = 131_625
    """Steps a second of preset seed on one H200: `docs/benchmarks.md`."""
    environment_cpu_s: float = 35.9e-6
    """A step of CartPole-v1, playing and learning: `scale_constants.py --only environment`."""
    environment_learn_cpu_s: float = 8.5e-6
    """The learner's part of it: `scale_constants.py --only environment`."""
    environment_bytes: float = 55
    """A step of CartPole-v1 on its way to the learner: `scale_constants.py --only environment`."""
    slow_environment_s: float = 1 / 1600
    """A step of a real game that makes 1,600 frames a second: assumed."""
    ray_call_s: float = 0.9e-3
    """A call of an actor with Ray 2.60.0 on two busy cores: measured before this page."""
    ray_bytes_s: float = 1e9
    """Segments from actors to the driver: assumed."""
    relay_play_cpu_s: float = 0.37e-3
    """A relay beside bots, a match of 15 kB: `relay_speed.py`."""
    relay_learn_cpu_s: float = 0.47e-3
    """The relay beside the learner, the same: `relay_speed.py`."""
    store_puts_s: float = 3500.0
    """PUT and DELETE a second of one S3 prefix: published, not measured. LIST is counted here."""
    store_gets_s: float = 5500.0
    """GET a second of one S3 prefix: published, not measured."""
    store_latency_s: float = 0.05
    """A request to a store in the same region: assumed."""
    link_bytes_s: float = 125e6
    """A link of 1 Gbit/s between the learner and the store: assumed."""
    poll_s: float = 1.0
    """How often a relay looks into the store, a LIST each time: its default."""
    publish_s: float = 10.0
    """Between two versions that travel: assumed, for thousands of machines."""


# --- queues ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Flow:
    """Matches by the time, in seconds, at which each stage had them; in the order of learning."""

    ended: np.ndarray
    stored: np.ndarray
    seen: np.ndarray
    learned: np.ndarray
    plays: np.ndarray
    """When a version that learned from it plays on the machine that played it."""
    busy_s: float
    """What the learner worked in all."""

    def at(self, time_s: float) -> dict[str, int]:
        """How many matches each stage holds at a time; together, all that have ended."""
        passed = [int((one <= time_s).sum()) for one in (self.ended, self.stored, self.seen)]
        passed.append(int((self.learned <= time_s).sum()))
        held = [before - after for before, after in pairwise(passed)]
        return dict(zip(("machine", "store", "queue"), held, strict=True)) | {"learned": passed[-1]}


def simulate(
    *,
    machines: int,
    matches_s: float,
    learn_s: float,
    seconds: float,
    bundle_s: float,
    latency_s: float,
    poll_s: float,
    publish_s: float,
    seed: int = 0,
) -> Flow:
    """Matches of all machines through one store and one learner that works on one at a time.

    `matches_s` is the rate of all machines together; an interval of 0 waits for nothing.
    """
    rng = np.random.default_rng(seed)
    count = rng.poisson(matches_s * seconds)
    ended = rng.random(count) * seconds
    machine = rng.integers(machines, size=count)
    phase, poll_phase = rng.random(machines) * bundle_s, rng.random(machines) * poll_s
    stored = next_tick(ended, bundle_s, phase[machine]) + latency_s
    seen = next_tick(stored, poll_s, 0.0) + (latency_s if poll_s else 0.0)
    order = np.lexsort((ended, seen))
    ended, stored, seen = (one[order] for one in (ended, stored, seen))
    learned = served_in_turn(seen, learn_s)
    published = next_tick(learned, publish_s, 0.0) + latency_s
    plays = next_tick(published, poll_s, poll_phase[machine[order]]) + latency_s
    return Flow(ended, stored, seen, learned, plays, learn_s * count)


def next_tick(times: np.ndarray, every: float, phase: np.ndarray | float) -> np.ndarray:
    """The first of `phase`, `phase + every` ... that is not before each time."""
    if not every:
        return times
    ticks: np.ndarray = np.ceil((times - phase) / every) * every + phase
    return ticks


def served_in_turn(arrivals: np.ndarray, service_s: float) -> np.ndarray:
    """When each is done, where one is worked on at a time: arrivals in order.

    Done is the later of arrival and the one before, plus the service (Lindley): as one expression,
    the largest of arrival[j] + (i - j + 1) * service over all j up to i.
    """
    steps = np.arange(len(arrivals)) * service_s
    done: np.ndarray = np.maximum.accumulate(arrivals - steps) + steps + service_s
    return done


# --- plans ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Load:
    """What a part has to do and what one of it can do, in one unit."""

    part: str
    needed: float
    can: float

    @property
    def used(self) -> float:
        return self.needed / self.can


def bots_plan(c: Constants, *, bots: int, machines: int, matches_h: float) -> list[Load]:
    """Bots that play `matches_h` an hour each, a relay on every machine, one learner; most used
    first. A machine makes at most one bundle between two looks at the store."""
    rate = bots * matches_h / HOUR_S
    bundles = min(rate, machines / c.poll_s)
    versions = machines / max(c.publish_s, c.poll_s)
    looks = (machines + 1) / c.poll_s
    loads = [
        Load("learner's core", rate * c.learn_cpu_s, 1.0),
        Load("its relay's core", rate * c.relay_learn_cpu_s, 1.0),
        Load("store: LIST, PUT, DELETE", looks + 2.0 * bundles, c.store_puts_s),
        Load("store: GET", bundles + versions, c.store_gets_s),
        Load("learner's link", rate * c.episode_bytes, c.link_bytes_s),
    ]
    return sorted(loads, key=lambda load: -load.used)


def decisions_plan(c: Constants, *, decisions_s: float, share: float) -> list[tuple[str, float]]:
    """Parts that so many served decisions a second need, where `share` of them is learned from."""
    matches = decisions_s / c.decisions_a_match
    return [
        ("cores that serve --schema", decisions_s * c.schema_cpu_s),
        ("cores that serve territory", decisions_s * c.territory_cpu_s),
        ("cores of a learner", matches * share * c.learn_cpu_s),
        ("Gbit/s to the store", 8e-9 * matches * share * c.episode_bytes),
    ]


def workers_fed(c: Constants, *, step_s: float, steps: int) -> float:
    """Workers after which the driver is the slower part: one iteration is a segment of `steps` of
    each worker; the driver calls each, receives its segment and learns from it."""
    driver = c.ray_call_s + steps * (
        c.environment_learn_cpu_s + c.environment_bytes / c.ray_bytes_s
    )
    return steps * step_s / driver


# --- tables ---------------------------------------------------------------------------------------


def constants_table(c: Constants) -> list[str]:
    import ast
    import inspect

    tree = ast.parse(inspect.getsource(Constants)).body[0]
    assert isinstance(tree, ast.ClassDef)
    told = [node.value for node in tree.body if isinstance(node, ast.Expr)][1:]
    said = [str(node.value) for node in told if isinstance(node, ast.Constant)]
    rows = [
        (one.name, _number(getattr(c, one.name)), text)
        for one, text in zip(fields(c), said, strict=True)
    ]
    return table(("constant", "value", "what, and where from"), rows)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def capacity_table(c: Constants) -> list[str]:
    slow = workers_fed(c, step_s=c.slow_environment_s, steps=SEGMENT)
    played = c.environment_cpu_s - c.environment_learn_cpu_s
    quick = workers_fed(c, step_s=played, steps=SEGMENT)
    rows = [
        (
            "learner of the ring, swarm",
            f"{1 / c.learn_cpu_s:,.0f} matches/s a core",
            f"{c.decisions_a_match / c.learn_cpu_s:,.0f} decisions/s; bots that play without a "
            f"pause on {c.play_cpu_s / c.learn_cpu_s:.0f} cores",
        ),
        (
            "the learner's link",
            f"{c.link_bytes_s / c.episode_bytes:,.0f} matches/s",
            f"{8e-9 * c.link_bytes_s:g} Gbit/s",
        ),
        (
            "the learner's relay",
            f"{1 / c.relay_learn_cpu_s:,.0f} matches/s a core",
            f"beside a bot: {1 / c.relay_play_cpu_s:,.0f}",
        ),
        (
            "a prefix of the store",
            f"{c.store_puts_s * c.poll_s:,.0f} machines that look",
            f"every {c.poll_s:g} s; or {c.store_puts_s / 2:,.0f} bundles/s (PUT and DELETE)",
        ),
        (
            "`serve --schema`",
            f"{1 / c.schema_cpu_s:,.0f} decisions/s a core",
            f"`serve territory`: {1 / c.territory_cpu_s:,.0f}",
        ),
        (
            "the arena, brawl, preset small",
            f"{1 / c.arena_cpu_s:,.0f} steps/s a core",
            f"preset seed on one H200: {c.arena_gpu_steps_s:,.0f} steps/s",
        ),
        (
            "CartPole-v1 in one process",
            f"{1 / c.environment_cpu_s:,.0f} steps/s a core",
            f"{c.environment_learn_cpu_s / c.environment_cpu_s:.0%} of it is the learner",
        ),
        (
            "a Ray driver, 1,600 frames/s",
            f"{slow:,.0f} workers",
            f"asynchronous, segments of {SEGMENT} steps, the learner on one core",
        ),
        ("a Ray driver, CartPole-v1", f"{quick:,.1f} workers", "the same"),
    ]
    return table(("part", "one of it can", ""), rows)


def bots_table(c: Constants) -> list[str]:
    plans = (
        (100, 6.0, 1.0),
        (1000, 6.0, 1.0),
        (10_000, 6.0, 1.0),
        (10_000, 6.0, 5.0),
        (1000, 60.0, 1.0),
        (1000, 600.0, 1.0),
    )
    rows = []
    for machines, matches_h, poll_s in plans:
        polled = replace(c, poll_s=poll_s)
        loads = bots_plan(polled, bots=BOTS, machines=machines, matches_h=matches_h)
        used = ", ".join(f"{one.part} {one.used:.1%}" for one in loads[:3])
        rate = f"{BOTS * matches_h / HOUR_S:,.1f}"
        rows.append((f"{machines:,}", f"{matches_h:g}", f"{poll_s:g} s", rate, used))
    head = ("machines", "matches an hour of a bot", "a look every", "matches/s")
    return table((*head, "the three parts used most"), rows)


def decisions_table(c: Constants) -> list[str]:
    rows = []
    for share in (1.0, 0.05, 0.01):
        plan = dict(decisions_plan(c, decisions_s=DECISIONS_S, share=share))
        rows.append((f"{share:.0%}", *(f"{value:,.1f}" for value in plan.values())))
    return table(("learned from", *dict(decisions_plan(c, decisions_s=1.0, share=1.0))), rows)


def latency_table(c: Constants) -> list[str]:
    rows = []
    for used in (0.05, 0.5, 0.9, 0.99, 1.1):
        flow = simulate(
            machines=1000,
            matches_s=used / c.learn_cpu_s,
            learn_s=c.learn_cpu_s,
            seconds=600.0,
            bundle_s=c.poll_s,
            latency_s=c.store_latency_s,
            poll_s=c.poll_s,
            publish_s=c.publish_s,
        )
        took = flow.plays - flow.ended
        queues = f"{flow.at(300.0)['queue']:,} / {flow.at(600.0)['queue']:,}"
        middle, late = np.median(took), np.percentile(took, 95)
        rate = f"{used / c.learn_cpu_s:,.0f}"
        rows.append((f"{used:.0%}", rate, f"{middle:.1f} s", f"{late:.1f} s", queues))
    head = ("learner used", "matches/s", "end of a match to playing, median", "95%")
    return table((*head, "waiting after 5 / 10 min"), rows)


def check_table(c: Constants) -> list[str]:
    """The setting of `relay_speed.py`: a store on loopback, a version every half second at most."""
    flow = simulate(
        machines=2,
        matches_s=0.2,
        learn_s=c.learn_cpu_s,
        seconds=10_000.0,
        bundle_s=1.0,
        latency_s=0.01,
        poll_s=1.0,
        publish_s=0.5,
    )
    took = flow.plays - flow.ended
    rows = [
        ("simulated", f"{np.median(took):.1f} s", f"{np.percentile(took, 90):.1f} s"),
        ("measured, on busy cores (`relay_speed.py`)", "3.2 s", "4.5 s"),
    ]
    return table(("end of a match to playing on another machine", "median", "90%"), rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Markdown."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


TABLES: dict[str, Callable[[Constants], list[str]]] = {
    "constants": constants_table,
    "capacity": capacity_table,
    "bots": bots_table,
    "decisions": decisions_table,
    "latency": latency_table,
    "check": check_table,
}


def read(path: Path | None) -> Constants:
    """The constants, with those of a JSON file in their place."""
    given: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path else {}
    unknown = given.keys() - {one.name for one in fields(Constants)}
    if unknown:
        raise SystemExit(f"{path}: no such constant: {', '.join(sorted(unknown))}")
    return replace(Constants(), **given)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--constants", type=Path)
    parser.add_argument("--only", default=",".join(TABLES))
    options = parser.parse_args()
    constants = read(options.constants)
    for name in options.only.split(","):
        print(f"\n{name}\n", *TABLES[name](constants), sep="\n")


if __name__ == "__main__":
    main()
