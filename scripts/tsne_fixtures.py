"""Writes tests/fixtures/metrics/tsne.json: what scikit-learn's exact t-SNE makes of 400 digits.

Run once, with scikit-learn installed:  python scripts/tsne_fixtures.py
Trustworthiness is scikit-learn's, of 12 neighbours, against the digits' pixels.
"""
import gzip
import json
import pathlib

import numpy as np
import sklearn
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE, trustworthiness

ROOT = pathlib.Path(__file__).resolve().parent.parent
EVERY, NEIGHBOURS = 5, 12  # every fifth test image

raw = gzip.decompress((ROOT / "datasets/mnist-small/t10k-images-idx3-ubyte.gz").read_bytes())
pixels = np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 784)[::EVERY].astype(np.float32) / 255
components = PCA(50, svd_solver="full").fit_transform(pixels)


def plane_from(start, seed):
    """Runs end in different local minima, hence several."""
    found = TSNE(method="exact", init=start, perplexity=30, random_state=seed)
    return np.round(found.fit_transform(components), 3)


def trust(plane):
    return float(trustworthiness(pixels, plane, n_neighbors=NEIGHBOURS))


plane = plane_from("pca", 0)
result = {
    "scikit_learn": sklearn.__version__,
    "every": EVERY,
    "neighbours": NEIGHBOURS,
    "variances": [round(float(v), 5) for v in np.var(components[:, :5], axis=0, ddof=1)],
    "trustworthiness": trust(plane),
    "of_other_starts": [trust(plane_from("random", seed)) for seed in range(4)],
    "of_two_components": trust(components[:, :2]),
    "plane": [[round(float(v), 3) for v in point] for point in plane],
}
path = ROOT / "tests/fixtures/metrics/tsne.json"
path.write_text(json.dumps(result) + "\n")
print({key: value for key, value in result.items() if key != "plane"})
