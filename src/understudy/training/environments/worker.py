"""A worker process: plays some of a session's environments with NumPy, without JAX.

Started as `python -m understudy.training.environments.worker`. Messages come on standard input,
answers go to standard output as it was at the start; whatever an environment prints goes to
standard error instead. The end of standard input means that the session has ended.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import BinaryIO

from understudy.core.errors import UnderstudyError
from understudy.policy import weights as weight_files
from understudy.policy.policy import Policy
from understudy.training.environments import wire
from understudy.training.environments.rollout import SideRollout


def work(orders: BinaryIO, answers: BinaryIO) -> None:
    """Play what is ordered until the orders end."""
    received = wire.receive(orders)
    if received is None:
        return
    start, _ = received
    assert isinstance(start, wire.Start)
    rollout = None
    try:
        rollout = start.plan.rollout(start.numbers, restarts=start.restarts)
        while (received := wire.receive(orders)) is not None:
            message, body = received
            assert isinstance(message, wire.Play)
            spec = start.plan.spec
            weights, *snapshots = (
                weight_files.decode(spec, data, what="weights of the session")
                for data in wire.split(body, message.sizes)
            )
            if isinstance(rollout, SideRollout):
                for name, one in zip(message.snapshots, snapshots, strict=True):
                    rollout.add_snapshot(name, Policy(spec, one, 0))
            played = rollout.play(
                Policy(spec, weights, 0), message.steps, gamma=message.gamma, order=message.order
            )
            assert played is not None
            wire.send(answers, *wire.answer_of(played))
    except UnderstudyError as error:
        wire.send(answers, wire.Failed(message=str(error)))
    finally:
        if rollout is not None:
            rollout.close()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the session closes the pipe when it is done
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with answers:
        try:
            work(sys.stdin.buffer, answers)
        except (BrokenPipeError, wire.Broken):
            return  # the session was killed


if __name__ == "__main__":
    main()
