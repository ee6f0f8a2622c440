"""The arithmetic of a step of training, counted from the shapes of the network.

Only products of matrices count, each once: what a network needs, not what a program spends on it.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from understudy.policy.strategist import Strategist


def flops_per_step(network: Strategist, inputs: int, outputs: int, epochs: int) -> float:
    """Arithmetic that one step of training takes when every frame is encoded once.

    A frame meets each matrix once: 2 operations (multiply and add) a weight. In each layer its
    query meets the keys, and the weights meet the values, of the `window` frames it sees: 2 + 2
    operations a number of the stream; the pool meets that window once more. Norms, activations and
    softmaxes are left out: they are not products of matrices. A step is one forward in the rollout
    and, in every epoch, one forward and a backward that costs twice that (towards the weights and
    towards the inputs). The game, the opponents and anything computed twice are overhead.
    """
    params = network.init(np.random.default_rng(0), inputs, outputs)
    matrices = sum(one.size for name, one in params.items() if name.endswith((".w", ".score")))
    attended = 4 * network.window * network.width * network.layers
    pooled = 2 * network.window * network.width
    return float((2 * matrices + attended + pooled) * (1 + 3 * epochs))


def peer_flops_per_step(network: Strategist, inputs: int, outputs: int, epochs: int) -> float:
    """The same where each decision encodes its window anew: embedding, layers and the pool's
    scores once for each of its frames, and every frame attends to the whole window."""
    width, window = network.width, network.window
    layer = 4 * width * width + 2 * width * network.feed
    score = width * width // 2 + width // 2  # its pool has a hidden layer
    frame = 2 * (network.opponent * width + network.layers * layer + score)
    attended = 4 * window * width * network.layers
    refined = width * network.latent + network.latent * network.latent
    recurrent = 4 * network.lstm * (inputs + network.latent + network.lstm)
    widths = (network.lstm, *network.head_widths)
    heads = 2 * sum(before * after for before, after in pairwise(widths))
    rest = 2 * (refined + recurrent + heads + widths[-1] * (outputs + 1)) + 2 * window * width
    return float((window * (frame + attended) + rest) * (1 + 3 * epochs))
