"""Convert a ResNet, train it on digits, shift the data, and let it adapt.

    python adapt_resnet.py                 # about a minute of training for each network
    python adapt_resnet.py --steps 30      # a look
    python adapt_resnet.py --held-out --shift tone

The last one is for questions: what the parts of the shift do, on digits held out of the training
set, so that nothing is chosen on the test set. Prints accuracies, and draws them where the package
vl-convert-python is installed.
"""

import argparse
import base64
import gzip
import json
import pathlib
import zlib

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import qact

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "datasets" / "mnist-small"


# %% The data: digits of 28 x 28, and the shift, which grows with its severity.

def read_idx(path: pathlib.Path) -> Tensor:
    raw = gzip.decompress(path.read_bytes())
    shape = [int.from_bytes(raw[4 + 4 * i:8 + 4 * i], "big") for i in range(raw[3])]
    return torch.frombuffer(bytearray(raw[4 + 4 * raw[3]:]), dtype=torch.uint8).view(shape)


def digits(part: str) -> tuple[Tensor, Tensor]:
    images = read_idx(DIGITS / f"{part}-images-idx3-ubyte.gz").float().div(255).unsqueeze(1)
    return images, read_idx(DIGITS / f"{part}-labels-idx1-ubyte.gz").long()


def shift(images: Tensor, severity: int, parts: str = "all") -> Tensor:
    """A tone curve, less contrast, more light (tone) and some noise."""
    generator = torch.Generator().manual_seed(severity)
    if parts != "noise":
        images = images.pow(1 + 0.4 * severity) * (1 - 0.12 * severity) + 0.08 * severity
    if parts != "tone":
        images = images + torch.randn(images.shape, generator=generator) * 0.03 * severity
    return images.clamp(0, 1)


# %% The network: blocks of two convolutions, one ReLU module for both of their activations.

class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Sequential()
        if inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                          nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, 1, 1, bias=False)
        self.bn1, self.relu = nn.BatchNorm2d(12), nn.ReLU(inplace=True)
        self.layer1 = Block(12, 12, 1)
        self.layer2 = Block(12, 24, 2)
        self.layer3 = Block(24, 48, 2)
        self.fc = nn.Linear(48, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


# %% Training and evaluation

def train(model: nn.Module, images: Tensor, labels: Tensor, steps: int) -> None:
    """SGD over batches of 128; the rate falls to 0."""
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        batch = torch.randint(len(images), (128,))
        optimizer.zero_grad()
        F.cross_entropy(model.train()(images[batch]), labels[batch]).backward()
        optimizer.step()
        schedule.step()


def batch_statistics(model: nn.Module) -> nn.Module:
    """BatchNorm adaptation: each norm takes its statistics from the batch, and remembers none."""
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.train().momentum = 0.0
    return model


@torch.no_grad()
def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    right = [(model(x).argmax(1) == y).sum() for x, y in zip(images.split(250), labels.split(250))]
    return 100 * float(sum(right)) / len(images)


def curves(relu: nn.Module, quantile: nn.Module, images: Tensor, labels: Tensor,
           parts: str) -> dict:
    def of(model: nn.Module) -> list[float]:
        return [accuracy(model, shift(images, severity, parts), labels) for severity in range(6)]

    found = {"ReLU, plain": of(relu.eval()), "QAct, plain": of(quantile.eval())}
    found["ReLU, adapted"] = of(batch_statistics(relu.eval()))
    with qact.set_context_mode(batch_statistics(quantile.eval()), "batch"):
        found["QAct, adapted"] = of(quantile)
    return found


# %% The picture: digits at every severity, and below them how many are recognised.

def png(image: Tensor) -> str:
    """Grey levels in [0, 1], (H, W), as a URL of data."""
    height, width = image.shape
    rows = F.pad((image * 255).to(torch.uint8), (1, 0))  # each begins with its filter's number, 0

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return len(data).to_bytes(4, "big") + kind + data + check.to_bytes(4, "big")

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 0, 0, 0, 0])
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(
        b"IDAT", zlib.compress(rows.numpy().tobytes())) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(data).decode()


STYLES = {"QAct, adapted": ("#2f7ed8", [1, 0]), "ReLU, adapted": ("#d9742b", [1, 0]),
          "QAct, plain": ("#2f7ed8", [5, 4]), "ReLU, plain": ("#d9742b", [5, 4])}


def chart(found: dict, examples: Tensor) -> dict:
    """In Vega-Lite. examples: a few digits."""
    rows = [{"curve": name, "severity": severity, "accuracy": value}
            for name, values in found.items() for severity, value in enumerate(values)]
    urls = [{"severity": severity, "url": png(shift(examples, severity).flatten(0, 2))}
            for severity in range(6)]
    severity = {"field": "severity", "type": "quantitative",
                "scale": {"domain": [0, 5], "padding": 24, "nice": False}}
    size = 28 * 1.5
    digits = {
        "width": 440, "height": size * len(examples), "data": {"values": urls},
        "view": {"stroke": None},
        "mark": {"type": "image", "width": size, "height": size * len(examples)},
        "encoding": {"x": {**severity, "axis": None}, "y": {"value": size * len(examples) / 2},
                     "url": {"field": "url", "type": "nominal"}},
    }
    lines = {
        "width": 440, "height": 230, "data": {"values": rows}, "view": {"stroke": None},
        "mark": {"type": "line", "strokeWidth": 2.5, "point": {"size": 60}},
        "encoding": {
            "x": {**severity, "axis": {"values": [*range(6)], "grid": False,
                                       "title": "severity of the shift"}},
            "y": {"field": "accuracy", "type": "quantitative", "title": "accuracy, %",
                  "scale": {"domain": [0, 100]}},
            "color": {"field": "curve", "title": None, "scale": {
                "domain": [*STYLES], "range": [colour for colour, _ in STYLES.values()]}},
            "strokeDash": {"field": "curve", "title": None, "scale": {
                "domain": [*STYLES], "range": [dash for _, dash in STYLES.values()]}},
        },
    }
    return {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "background": "white",
            "padding": 12, "spacing": 8, "vconcat": [digits, lines], "bounds": "flush",
            "config": {"axis": {"labelFontSize": 13, "titleFontSize": 14, "titleFontWeight": "normal"},
                       "legend": {"labelFontSize": 13, "symbolSize": 500, "symbolStrokeWidth": 2.5,
                                  "symbolType": "stroke", "orient": "right"}}}


def draw(found: dict, examples: Tensor, path: pathlib.Path) -> None:
    try:
        import vl_convert
    except ImportError:
        print("no picture: pip install vl-convert-python")
        return
    path.write_bytes(vl_convert.vegalite_to_png(json.dumps(chart(found, examples)), scale=1.5))
    print(f"wrote {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400, help="of training, each network")
    parser.add_argument("--test-images", type=int, default=1000)
    parser.add_argument("--shift", choices=("all", "tone", "noise"), default="all",
                        help="which part of the shift")
    parser.add_argument("--held-out", action="store_true",
                        help="test on the last of the training digits, which are not trained on")
    parser.add_argument("--no-dither", action="store_true",
                        help="leave pixels of the background tied")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("adapt.png"))
    options = parser.parse_args()
    torch.manual_seed(0)
    images, labels = digits("train")
    tested = digits("t10k")
    if options.held_out:
        count = options.test_images
        tested = images[-count:], labels[-count:]
        images, labels = images[:-count], labels[:-count]
    relu = ResNet()
    quantile = qact.convert(relu, images[:2], sites="split")
    print("quantile activations:", [name for name, module in quantile.named_modules()
                                    if isinstance(module, qact.QuantileActivation)])
    if not options.no_dither:
        relu, quantile = (nn.Sequential(qact.Dither(), model) for model in (relu, quantile))
    for model in (relu, quantile):
        torch.manual_seed(1)
        train(model, images, labels, options.steps)
    images, labels = (part[:options.test_images] for part in tested)
    found = curves(relu, quantile, images, labels, options.shift)
    print(f"{'severity':15}" + "".join(f"{severity:7}" for severity in range(6)))
    for name, values in found.items():
        print(f"{name:15}" + "".join(f"{value:7.1f}" for value in values))
    draw(found, images[:3], options.output)


if __name__ == "__main__":
    main()
