"""Makes tests/fixtures/corrupt from the libraries the corruptions were published with.

    python -m venv venv && venv/bin/pip install "numpy<2" scipy scikit-image \\
        opencv-python-headless==4.8.1.78 Pillow Wand      # and Debian's libmagickwand-6.q16-6
    venv/bin/python scripts/corruption_fixtures.py tests/fixtures/corrupt

exact.npy: for each set below, corruption, severity and image, every `stride`-th value of the
result from an offset of its own; exact.json names them in order. Random corruptions take the draws
that the library takes (corruption_draw.py).
distribution.json: statistics of the change (result - image) made by each random corruption, with
their standard errors. The images come from corruption_images.py. Frost takes five synthetic
textures; with --frost DIR, the published images instead.
"""

import argparse
import json
import pathlib
import sys

import cv2
import numpy as np

import corruption_oracle as oracle
from corruption_draw import Draw
from corruption_images import image

# scale, side, channels
SETS = {"cifar": (32, 3), "tiny": (64, 3), "imagenet": (96, 3), "mnist": (28, 1)}
EXACT = [
    "contrast",
    "brightness",
    "saturate",
    "pixelate",
    "jpeg_compression",
    "defocus_blur",
    "zoom_blur",
    "gaussian_blur",
]
EXACT_MNIST = EXACT + ["scale", "stripe", "canny_edges"]
RANDOM = [
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "speckle_noise",
    "glass_blur",
    "motion_blur",
    "snow",
    "frost",
    "fog",
    "elastic_transform",
    "spatter",
]
RANDOM_MNIST = RANDOM + ["shear", "rotate", "translate", "dotted_line", "zigzag"]
ONE_SEVERITY = ["stripe", "canny_edges", "dotted_line", "zigzag"]
# Noise is drawn from tables of probabilities: its draws are not the originals'.
NOISE = ["gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"]
EXACT_COUNT = {"cifar": (100, 29), "tiny": (10, 61), "imagenet": (3, 61), "mnist": (20, 13)}
DRAWN_COUNT = {"cifar": (30, 29), "tiny": (6, 61), "imagenet": (2, 61), "mnist": (20, 13)}
RANDOM_COUNT = {"cifar": 1000, "tiny": 200, "imagenet": 60, "mnist": 400}
GROUPS = 20
BINS = 8


def severities(name):
    return [1] if name in ONE_SEVERITY else [1, 2, 3, 4, 5]


def images(scale, count):
    side, channels = SETS[scale]
    out = [image(i, side, channels) for i in range(count)]
    return [p[..., 0] for p in out] if channels == 1 else out


GAMMA = bytes.fromhex("00000004") + b"gAMA" + bytes.fromhex("0000b18f0bfc6105")


def synthetic_texture(index, gamma):
    """An image as a PNG file, which says its gamma as the first published texture does."""
    file = cv2.imencode(".png", image(1000 + index, 300 + 20 * index)[..., ::-1])[1].tobytes()
    header = 33  # the signature and IHDR
    return file[:header] + (GAMMA if gamma else b"") + file[header:]


def textures(scale, folder):
    if folder:
        names = ["frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg"]
        files = [(pathlib.Path(folder) / name).read_bytes() for name in names]
    else:
        files = [synthetic_texture(i, gamma=i == 0) for i in range(5)]
    files = [np.frombuffer(file, np.uint8) for file in files]
    if scale == "mnist":
        return [cv2.imdecode(file, cv2.IMREAD_GRAYSCALE) for file in files]
    read = [cv2.imdecode(file, cv2.IMREAD_COLOR) for file in files]
    return [np.ascontiguousarray(ice[..., ::-1]) for ice in read]


def brightened(index, x):
    """Every other image in colour twice as bright: much of it is white, where rounding shows."""
    return np.minimum(2 * x.astype(int), 255).astype(np.uint8) if x.ndim == 3 and index % 2 else x


def exact(full, folder):
    values, names = [], []
    for scale in EXACT_COUNT:
        ice = textures(scale, folder)
        drawn = [n for n in (RANDOM_MNIST if scale == "mnist" else RANDOM) if n not in NOISE]
        for name in (EXACT_MNIST if scale == "mnist" else EXACT) + drawn:
            count, stride = (DRAWN_COUNT if name in drawn else EXACT_COUNT)[scale]
            stride = 1 if full else stride
            extra = {"textures": ice} if name == "frost" else {}
            for severity in severities(name):
                side, channels = SETS[scale]
                names.append(
                    dict(name=name, severity=severity, side=side, channels=channels,
                         images=count, stride=stride)
                )
                for i, x in enumerate(images(scale, count)):
                    draw = Draw(0, name, severity, i)
                    out = oracle.corrupt(name, brightened(i, x), scale, severity, draw, **extra)
                    values.append(out.reshape(-1)[i % stride :: stride])
            print(scale, name, file=sys.stderr)
    return np.concatenate(values), names


def moments(change):
    """What one image adds to the sums from which the statistics follow."""
    planes = np.moveaxis(change.reshape(change.shape[0], change.shape[1], -1), 2, 0)
    side = planes.shape[1]
    power = (np.abs(np.fft.fft2(planes)) ** 2).mean(axis=0) / side**4
    k = np.abs(np.fft.fftfreq(side) * side)
    radius = np.sqrt(k[:, None] ** 2 + k**2)
    ring = np.minimum((radius * BINS / (side / 2)).astype(int), BINS - 1)
    spectrum = np.bincount(ring.ravel(), power.ravel(), BINS)
    flat = planes.reshape(len(planes), -1)
    products = (flat @ flat.T) / flat.shape[1]
    return np.concatenate([flat.mean(axis=1), products.ravel(), spectrum])


def statistics(m, channels):
    mean = m[:channels]
    products = m[channels : channels + channels**2].reshape(channels, channels)
    spectrum = m[channels + channels**2 :]
    overall = mean.mean()
    deviation = np.sqrt(np.trace(products) / channels - overall**2)
    covariance = products - np.outer(mean, mean)
    spread = np.sqrt(np.maximum(np.diag(covariance), 1e-12))
    pairs = [(0, 1), (0, 2), (1, 2)] if channels == 3 else []
    correlation = [covariance[a, b] / spread[a] / spread[b] for a, b in pairs]
    return np.concatenate([[overall, deviation], spectrum, correlation])


def distribution(frost_folder, only):
    rows = []
    for scale, count in RANDOM_COUNT.items():
        side, channels = SETS[scale]
        inputs = images(scale, count)
        ice = textures(scale, frost_folder)
        for name in RANDOM_MNIST if scale == "mnist" else RANDOM:
            if only and name not in only:
                continue
            for severity in severities(name):
                rng = np.random.default_rng([severity, len(rows)])
                extra = {"textures": ice} if name == "frost" else {}
                found = []
                for x in inputs:
                    out = oracle.corrupt(name, x, scale, severity, rng, **extra)
                    found.append(moments(out.astype(float) - x))
                found = np.array(found).reshape(GROUPS, count // GROUPS, -1).mean(axis=1)
                value = statistics(found.mean(axis=0), channels)
                # The jackknife over groups of images.
                without = [
                    statistics(np.delete(found, g, axis=0).mean(axis=0), channels)
                    for g in range(GROUPS)
                ]
                error = np.sqrt(np.var(without, axis=0) * (GROUPS - 1))
                rows.append(
                    dict(name=name, severity=severity, side=side, channels=channels,
                         images=count, value=[float(f"{v:.6g}") for v in value],
                         error=[float(f"{v:.3g}") for v in error])
                )
            print(scale, name, file=sys.stderr)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--full", action="store_true", help="every value of the exact ones")
    parser.add_argument("--frost", help="folder of the published textures")
    parser.add_argument("--only", nargs="*", help="these of the random corruptions")
    parser.add_argument("--part", choices=["exact", "distribution", "all"], default="all")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.part != "distribution":
        values, names = exact(options.full, options.frost)
        np.save(options.folder / "exact.npy", values)
        lines = ",\n".join(json.dumps(row) for row in names)
        (options.folder / "exact.json").write_text(f"[\n{lines}\n]\n")
    if options.part != "exact":
        rows = distribution(options.frost, options.only)
        lines = ",\n".join(json.dumps(row) for row in rows)
        (options.folder / "distribution.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
