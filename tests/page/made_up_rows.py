"""Rows as `qact eval` writes them, made up: enough for every section of the report."""

import json
import math
import random

NETWORKS = (("qact", "batch", 0.05), ("qact", "tracked", 0.11),
            ("relu", "batch", 0.06), ("relu", "tracked", 0.13))
CORRUPTIONS = ("gaussian_noise", "fog", "contrast")
TONES = ("tone", "gamma4")
SINGLE = {"stream": "single"}


def where(kind, activation, mode, **more):
    return {"kind": kind, "dataset": "mnist-small", "model": "lenet", "activation": activation,
            "placement": "early", "loss": "cross-entropy", "mode": mode, "adapt": "none",
            "stream": "single", "mixture": None, "classifier": "head", "seed": 0, "batch_size": 500, "n": 1000, "prior": None,
            "copies": None, "momentum": None, "model_hash": activation.ljust(16, "0"),
            "weights": "model", "epoch": 3, "data_seed": 0, "source": "generated",
            "official": None, "frost": None, "limit": 0, "clean_hash": "1" * 16,
            "data_hash": "1" * 16, "training": {"lr": 0.1, "epochs": 3},
            "command": "qact eval runs/made-up", **more}


def scores(activation, mode, slope, chance, **how):
    places = [("none", 0)] + [(name, s) for name in (*CORRUPTIONS, *TONES)
                              for s in range(1, 6)]
    for corruption, severity in places:
        for classifier in ("head", "logistic"):
            lost = slope * severity * (1 + chance.uniform(-0.3, 0.3))
            at = {"corruption": corruption, "severity": severity, "classifier": classifier, **how}
            yield where("scores", activation, mode, **at, accuracy=0.97 - lost,
                        ece_marginal=0.02 + lost / 5, ece_top=0.03 + lost / 3, map100=0.9 - lost)
            for which in ("top", "marginal"):
                bins = [{"confidence": (b + 0.5) / 15, "accuracy": (b + 0.5) / 15 * (1 - lost),
                         "count": 10 * b} for b in range(15)]
                yield where("reliability", activation, mode, **at, which=which, bins=bins)


def plane(activation, mode, chance, each):
    def around(centre, severity):
        return round(20 * centre + chance.gauss(0, 1 + severity), 3)

    points = [(s, k, around(math.cos(k), s), around(math.sin(k), s))
              for s in range(6) for k in range(10) for _ in range(each)]
    severity, label, x, y = zip(*points)
    return where("tsne", activation, mode, classifier="none", corruption="gaussian_noise",
                 severity=None, n=len(x), class_names=[], x=x, y=y, label=label,
                 point_severity=severity)


def histograms(activation, mode):
    for index, layer in enumerate(("activation1", "activation2")):
        for what in ("preactivation", "activation", "context"):
            for channel in (-1, 3):
                for severity in (None,) if what == "context" else range(6):
                    middle = 20 + 2 * (severity or 0)
                    counts = [int(1000 * math.exp(-((b - middle) / 8) ** 2)) for b in range(40)]
                    yield where("histogram", activation, mode, classifier="none",
                                corruption="gaussian_noise" if severity else "none",
                                severity=severity, layer=layer, layer_index=index, what=what,
                                channel=channel, low=-4, high=4, counts=counts, below=1, above=2)


def rows(each=2):
    chance = random.Random(0)
    for activation, mode, slope in NETWORKS:
        yield from scores(activation, mode, slope, chance)
        yield plane(activation, mode, chance, each)
    mixture = "+".join(sorted((*CORRUPTIONS, *TONES)))
    for activation, mode, slope in NETWORKS:
        for stream in (SINGLE, {"stream": "mixed", "mixture": mixture}, {"stream": "correlated"}):
            if stream is not SINGLE:
                yield from scores(activation, mode, 1.5 * slope, chance, **stream)
            if mode == "batch":
                yield from scores(activation, mode, 0.9 * slope, chance, adapt="tent", **stream)
    yield from histograms("qact", "batch")
    yield where("config", "qact", "batch", run="made-up",
                config={"data": "a folder/", "data-dir": "", "epochs": 3, "nesterov": True,
                        "lr-steps": [5, 10], "weight-decay": 0.0005})


def write(path, each=2):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(each)))
