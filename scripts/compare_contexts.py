#!/usr/bin/env python3
"""Compares learned contexts with what the library does, on digits that no network was trained with.

    build/venv/bin/python scripts/compare_contexts.py --seeds 3    # after make wheel, make test

- `share S`: that share of the channels is ranked in its image, the rest in the batch.
- `gate`: each channel is ranked in both; a learned weight between 0 and 1 mixes the two ranks.
  `mean`: the weight stays 1/2.
- In the mode without a batch, the batch's half is ranked among quantiles that are either those of
  the running context (`tracked`) or learned (`pinball`): one step of quantile regression a batch,
  each quantile by the difference between the share of values below it and its own level.

Of mnist-small's training images every sixth is held out. The corruptions are scripts/choose_demo's:
none is in MNIST-C, and no test image takes part. Prints the table of docs/results.md.
"""

import argparse
import concurrent.futures
import importlib.machinery
import importlib.util
import pathlib
import statistics
import subprocess
import sys
import tempfile

import torch
from torch import Tensor, nn

import qact

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples" / "python"))
import adapt_resnet  # noqa: E402


def load(name: str):
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class Gate(nn.Module):
    """w rank in the image + (1 - w) rank in the batch, w = sigmoid(gate), a gate for each channel."""

    def __init__(self, layer: qact.QuantileActivation, learns: bool) -> None:
        super().__init__()
        self.image = qact.QuantileActivation2d(layer.num_features, scope="image")
        self.batch = qact.QuantileActivation2d(layer.num_features)
        self.gate = nn.Parameter(torch.zeros(layer.num_features, 1, 1), requires_grad=learns)

    def forward(self, x: Tensor) -> Tensor:
        weight = torch.sigmoid(self.gate)
        return weight * self.image(x) + (1 - weight) * self.batch(x)


class Pinball:
    """Follows a layer's normalised input with learned quantiles, (C, levels)."""

    def __init__(self, layer: qact.QuantileActivation, rate: float) -> None:
        self.rate, self.layer = rate, layer
        start = qact.functional.context_standard_normal(layer.num_features)
        self.quantiles = qact.functional.context_quantiles(start)
        layer.register_forward_pre_hook(self.follow)

    def follow(self, layer: qact.QuantileActivation, inputs: tuple) -> None:
        if not layer.training:
            return
        with torch.no_grad():
            x = inputs[0]
            var, mean = torch.var_mean(x, (0, 2, 3), correction=0)
            scale = layer.weight_in / (var + layer.eps).sqrt()
            shift = layer.bias_in - mean * scale
            z = (x * scale[:, None, None] + shift[:, None, None]).transpose(0, 1).flatten(1)
            self.step(z.double().contiguous())

    def step(self, z: Tensor) -> None:
        """The values of each sign have a weight of a half together."""
        levels = self.quantiles.shape[1]
        below = torch.searchsorted(z.sort(1).values, self.quantiles, right=True)
        negatives = (z < 0).sum(1, keepdim=True)
        share = 0.5 * (torch.minimum(below, negatives) / negatives.clamp_min(1)
                       + (below - negatives).clamp_min(0) / (z.shape[1] - negatives).clamp_min(1))
        wanted = torch.arange(1, levels + 1) / (levels + 1)
        moved = self.quantiles - self.rate * (share - wanted)
        self.quantiles = moved.sort(1).values  # steps may cross

    def serve(self) -> None:
        """The layer's running quantiles become the learned ones."""
        quantiles = self.quantiles[self.layer._image_channels:].contiguous()
        self.layer._running_quantiles.get = lambda *_: quantiles


def layers(model: nn.Module) -> list:
    return [m for m in model.modules() if isinstance(m, qact.QuantileActivation)]


def networks(example: Tensor) -> dict:
    """Functions that make them; all have quantile activations in the same places."""
    def make(replace) -> nn.Module:
        model = qact.convert(adapt_resnet.ResNet(), example, sites="split")
        for name, module in list(model.named_modules()):
            if isinstance(module, qact.QuantileActivation):
                model.set_submodule(name, replace(module))
        return model

    def share(of: float):
        return lambda: make(lambda layer: qact.QuantileActivation2d(layer.num_features,
                                                                    image_share=of))

    found = {f"share {of:g}": share(of) for of in (0.0, 0.5, 0.75, 1.0)}
    found["mean"] = lambda: make(lambda layer: Gate(layer, learns=False))
    found["gate"] = lambda: make(lambda layer: Gate(layer, learns=True))
    return found


def corrupt(folder: pathlib.Path, program: pathlib.Path) -> None:
    """Writes the held-out digits, and their corrupted versions."""
    chosen = load("choose_demo")
    chosen.make_dataset(folder / "digits")
    subprocess.run([program, "corrupt", "--data", f"{folder / 'digits'}/", "-o", folder / "c",
                    "--corruptions", ",".join(chosen.CORRUPTIONS)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def read_corrupted(folder: pathlib.Path) -> dict:
    """{(corruption, severity): images}."""
    import numpy
    chosen = load("choose_demo")
    found = {}
    for corruption in chosen.CORRUPTIONS:
        images = torch.from_numpy(numpy.load(folder / "c" / f"{corruption}.npy"))
        images = images.reshape(5, -1, 1, 28, 28).float() / 255
        for severity in chosen.SEVERITIES:
            found[corruption, severity] = images[severity - 1]
    return found


def read(folder: pathlib.Path, part: str) -> tuple[Tensor, Tensor]:
    def idx(kind: str, header: int) -> Tensor:
        raw = bytearray((folder / "digits" / f"{part}-{kind}-ubyte").read_bytes())
        return torch.frombuffer(raw, dtype=torch.uint8)[header:]

    return idx("images-idx3", 16).view(-1, 1, 28, 28).float() / 255, idx("labels-idx1", 8).long()


def scores(model: nn.Module, clean: Tensor, shifted: dict, labels: Tensor, limit: int) -> list:
    """Accuracy on clean images, and its mean over corruptions and severities, in per cent."""
    def of(images: Tensor) -> float:
        return adapt_resnet.accuracy(model, images[:limit], labels[:limit])

    return [of(clean), statistics.mean(of(images) for images in shifted.values())]


def compare(folder: pathlib.Path, options: argparse.Namespace, name: str, seed: int) -> dict:
    """{contexts: scores} of one network."""
    torch.set_num_threads(1)
    shifted = read_corrupted(folder)
    images, labels = read(folder, "train")
    clean, truth = read(folder, "t10k")
    torch.manual_seed(seed)
    model = networks(images[:2])[name]()
    learned = [Pinball(layer, options.rate) for layer in layers(model) if layer.scope == "batch"]
    adapt_resnet.train(model, images, labels, options.steps)
    qact.update_contexts(images[:128 * 40].split(128), model)
    found = {}

    def note(contexts: str) -> None:
        found[contexts] = scores(model, clean, shifted, truth, options.limit)
        print(name, contexts, seed, found[contexts], file=sys.stderr, flush=True)

    model.eval()
    note("tracked")
    if name in ("share 0.5", "gate"):
        for quantiles in learned:
            quantiles.serve()
        note("pinball")
    for layer in layers(model):
        layer.context_mode = "batch"
    adapt_resnet.batch_statistics(model)
    note("batch")
    return found


def run(options: argparse.Namespace, folder: pathlib.Path) -> dict:
    corrupt(folder, options.program)
    names = list(networks(torch.zeros(2, 1, 28, 28)))
    jobs = [(name, seed) for seed in range(options.seeds) for name in names]
    found: dict = {}
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(compare, folder, options, *job) for job in jobs]
        for (name, _), job in zip(jobs, runs):
            for contexts, score in job.result().items():
                found.setdefault((name, contexts), []).append(score)
    return {key: found[key] for key in sorted(found, key=lambda key: names.index(key[0]))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build" / "qact", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2, help="networks at a time, one thread each")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--limit", type=int, default=500, help="held-out images")
    parser.add_argument("--rate", type=float, default=0.3, help="of the pinball steps")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(options, pathlib.Path(folder))
    print("| network | contexts | clean | corrupted |")
    print("|---|---|---|---|")
    for (name, mode), values in found.items():
        columns = list(zip(*values))
        cells = [f"{statistics.mean(c):.1f} +- {statistics.pstdev(c):.1f}" for c in columns]
        print(f"| {name} | {mode} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
