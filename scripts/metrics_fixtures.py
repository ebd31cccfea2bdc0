"""Writes tests/fixtures/metrics/scores.json: inputs, and what established libraries make of them.

Run once, with scikit-learn, torchmetrics and uncertainty-calibration (the verified-calibration
library) installed:  python scripts/metrics_fixtures.py > tests/fixtures/metrics/scores.json
"""
import json

import calibration
import numpy as np
import sklearn.metrics
import torch
import torchmetrics

rng = np.random.default_rng(0)


def round32(x):
    return np.asarray(np.float32(np.round(x, 4)), dtype=np.float64)


def case(name, probabilities, labels):
    p, y = round32(probabilities), np.asarray(labels)
    normalised = p / p.sum(1, keepdims=True)
    onehot = np.eye(p.shape[1])[y]
    top = torchmetrics.classification.MulticlassCalibrationError(p.shape[1], n_bins=15, norm="l1")
    return {
        "name": name,
        "classes": p.shape[1],
        "probabilities": [round(float(v), 4) for v in p.reshape(-1)],
        "labels": [int(v) for v in y],
        "accuracy": float(sklearn.metrics.accuracy_score(y, p.argmax(1))),
        "nll": float(sklearn.metrics.log_loss(y, normalised, labels=range(p.shape[1]))),
        "brier": float(((normalised - onehot) ** 2).sum(1).mean()),
        "ece": float(top(torch.tensor(p), torch.tensor(y))),
        # The library's own choice of bins: one per value where values are few.
        "marginal_library": float(calibration.get_calibration_error(p, y, mode="marginal")),
        "top_library": float(calibration.get_calibration_error(p, y, mode="top-label")),
    }


n, k = 400, 4
labels = rng.integers(0, k, n)
logits = rng.normal(size=(n, k)) + 2.0 * np.eye(k)[labels]
softmax = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
levels = np.floor(rng.uniform(size=(n, k)) * 0.5 * 20 + 10 * np.eye(k)[labels] * rng.uniform(size=(n, 1))) / 20
skewed = rng.integers(0, k - 1, n)  # the last class never occurs
cases = [
    case("softmax", softmax, labels),
    case("one against the rest, 20 levels", np.clip(levels, 0.025, 0.975), labels),
    case("a class missing", softmax, skewed),
]

embeddings = rng.normal(size=(150, 6)) + 1.5 * rng.normal(size=(5, 6))[labels[:150] % 5]
classes = (labels[:150] % 5).astype(int)
embeddings = round32(embeddings)


def retrieval(k):
    """MAP at k: by class size in plain code, by retrieved neighbours with torchmetrics."""
    by_class, by_retrieved = [], []
    for q in range(len(embeddings)):
        others = [i for i in range(len(embeddings)) if i != q]
        distance = np.array([np.sum((embeddings[i] - embeddings[q]) ** 2) for i in others])
        relevant = np.array([classes[i] == classes[q] for i in others])
        order = np.argsort(distance, kind="stable")[:k]
        hits = relevant[order]
        by_retrieved.append(
            float(torchmetrics.functional.retrieval.retrieval_average_precision(
                torch.tensor(np.exp(-distance)), torch.tensor(relevant), top_k=k)))
        precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
        by_class.append(float((precision * hits).sum() / min(k, relevant.sum())))
    return {"k": k, "map": float(np.mean(by_class)), "map_retrieved": float(np.mean(by_retrieved))}


print(json.dumps({
    "versions": {m.__name__: m.__version__ for m in (np, sklearn, torchmetrics)},
    "cases": cases,
    "embeddings": [[round(float(v), 4) for v in row] for row in embeddings],
    "embedding_labels": [int(v) for v in classes],
    "retrieval": [retrieval(1), retrieval(10), retrieval(100)],
}))
