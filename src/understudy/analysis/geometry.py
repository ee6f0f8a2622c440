"""How latents lie: pictures in two dimensions, how tight the clusters are, how far apart.

Every column of the latents is standardised first, so that no single large number decides.
"""

from __future__ import annotations

import numpy as np

from understudy.core.arrays import NDArray

_PERPLEXITY = 30.0
_ROUNDS = 600
"""Nothing moves much after that with hundreds of points."""


def standardised(numbers: NDArray) -> NDArray:
    """numbers [N, D] with mean 0 and spread 1 in each column; a constant column becomes 0."""
    wide = numbers.astype(np.float64)
    spread = wide.std(0)
    scaled: NDArray = (wide - wide.mean(0)) / np.where(spread > 1e-12, spread, 1.0)
    return scaled


def principal(numbers: NDArray) -> tuple[NDArray, NDArray]:
    """numbers [N, D] to places [N, 2] along the two widest directions, and their shares [2]."""
    from sklearn.decomposition import PCA

    fitted = PCA(n_components=2, svd_solver="full")
    places: NDArray = fitted.fit_transform(standardised(numbers))
    return places, np.asarray(fitted.explained_variance_ratio_)


def neighbours(numbers: NDArray, *, seed: int = 0) -> NDArray:
    """numbers [N, D] to places [N, 2] in which who was near stays near (t-SNE)."""
    from sklearn.manifold import TSNE

    perplexity = min(_PERPLEXITY, (len(numbers) - 1) / 3)
    drawn = TSNE(perplexity=perplexity, init="pca", max_iter=_ROUNDS, random_state=seed)
    places: NDArray = drawn.fit_transform(standardised(numbers).astype(np.float32))
    return places


def silhouette(numbers: NDArray, labels: NDArray) -> float:
    """From -1 to 1: how much nearer a match is to its own opponent's than to the next one's."""
    from sklearn.metrics import silhouette_score

    return float(silhouette_score(standardised(numbers), labels))


def distances(numbers: NDArray, labels: NDArray, *, opponents: int) -> NDArray:
    """[O, O] between the mean latents of opponents, in units of the spread within an opponent.

    The spread is the root mean square distance of a match from its own opponent's mean.
    """
    scaled = standardised(numbers)
    means = np.stack([scaled[labels == one].mean(0) for one in range(opponents)])
    spread = np.sqrt(((scaled - means[labels]) ** 2).sum(1).mean())
    apart: NDArray = np.sqrt(((means[:, None] - means[None]) ** 2).sum(-1))
    return apart / max(float(spread), 1e-12)
