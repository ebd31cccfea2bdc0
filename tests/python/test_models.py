"""The networks against Python versions of them: the same names, the same logits, both ways."""

import json
import os
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("QACT_LIBRARY", ROOT / "build" / "libqact_ops.so")).resolve().parent
PROGRAM = BUILD / "tests" / "model_interchange"

DTYPES = {"F32": torch.float32, "I64": torch.int64}


def save(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.detach().contiguous().numpy().tobytes()
        dtype = {v: k for k, v in DTYPES.items()}[tensor.dtype]
        header[name] = {
            "dtype": dtype,
            "shape": list(tensor.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def load(path):
    raw = path.read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        values = np.frombuffer(raw[begin:end], {"F32": "<f4", "I64": "<i8"}[entry["dtype"]])
        tensors[name] = torch.from_numpy(values.copy()).reshape(entry["shape"])
    return tensors


def conv(inputs, outputs, side, stride=1, bias=False):
    return nn.Conv2d(inputs, outputs, side, stride, padding=side // 2, bias=bias)


class Basic(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = conv(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = conv(outputs, outputs, 3), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride > 1:
            self.shortcut = nn.Sequential(
                conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)
            )

    def forward(self, x, act):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return act(y + self.shortcut(x))


class ResNet18(nn.Module):
    """With ReLU inside the blocks and `act` elsewhere, as in the reference placement."""

    def __init__(self, act=F.relu):
        super().__init__()
        self.act = act
        self.conv1, self.bn1 = conv(3, 64, 3), nn.BatchNorm2d(64)
        self.layer1 = nn.Sequential(Basic(64, 64, 1), Basic(64, 64, 1))
        self.layer2 = nn.Sequential(Basic(64, 128, 2), Basic(128, 128, 1))
        self.layer3 = nn.Sequential(Basic(128, 256, 2), Basic(256, 256, 1))
        self.layer4 = nn.Sequential(Basic(256, 512, 2), Basic(512, 512, 1))
        self.linear = nn.Linear(512, 10)

    def forward(self, x):
        x = self.act(self.bn1(self.conv1(x)))
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            for block in layer:
                x = block(x, self.act)
        return self.linear(self.act(F.avg_pool2d(x, 4).flatten(1)))


class PreluResNet18(ResNet18):
    """A slope for each channel of each site, under the names that our network has for them."""

    def __init__(self):
        super().__init__()
        self.stem_activation, self.pooled_activation = nn.PReLU(64), nn.PReLU(512)
        for block in self.blocks():
            block.outer_activation = nn.PReLU(block.conv2.out_channels)
        for module in self.modules():
            if isinstance(module, nn.PReLU):
                nn.init.uniform_(module.weight, -0.2, 0.5)

    def blocks(self):
        return [*self.layer1, *self.layer2, *self.layer3, *self.layer4]

    def forward(self, x):
        x = self.stem_activation(self.bn1(self.conv1(x)))
        for block in self.blocks():
            x = block(x, block.outer_activation)
        return self.linear(self.pooled_activation(F.avg_pool2d(x, 4).flatten(1)))


class Vgg16(nn.Module):
    def __init__(self):
        super().__init__()
        layers, inputs = [], 3
        for outputs, count in (64, 2), (128, 2), (256, 3), (512, 3), (512, 3):
            for _ in range(count):
                layers += [conv(inputs, outputs, 3, bias=True), nn.BatchNorm2d(outputs), nn.ReLU()]
                inputs = outputs
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(512, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class Bottleneck(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(inputs), conv(inputs, 48, 1)
        self.bn2, self.conv2 = nn.BatchNorm2d(48), conv(48, 12, 3)

    def forward(self, x):
        y = self.conv1(F.relu(self.bn1(x)))
        return torch.cat([self.conv2(F.relu(self.bn2(y))), x], 1)


class Transition(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.bn, self.conv = nn.BatchNorm2d(inputs), conv(inputs, inputs // 2, 1)

    def forward(self, x):
        return F.avg_pool2d(self.conv(F.relu(self.bn(x))), 2)


class DenseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = conv(3, 24, 3)
        width = 24
        for stage, count in enumerate((6, 12, 24, 16), 1):
            blocks = nn.Sequential(*(Bottleneck(width + 12 * i) for i in range(count)))
            setattr(self, f"dense{stage}", blocks)
            width += 12 * count
            if stage < 4:
                setattr(self, f"trans{stage}", Transition(width))
                width //= 2
        self.bn, self.linear = nn.BatchNorm2d(width), nn.Linear(width, 10)

    def forward(self, x):
        x = self.conv1(x)
        for stage in 1, 2, 3:
            x = getattr(self, f"trans{stage}")(getattr(self, f"dense{stage}")(x))
        x = F.relu(self.bn(self.dense4(x)))
        return self.linear(F.avg_pool2d(x, 4).flatten(1))


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 32, 5), nn.BatchNorm2d(32)
        self.conv2, self.bn2 = nn.Conv2d(32, 64, 5), nn.BatchNorm2d(64)
        self.fc1, self.bn3 = nn.Linear(64 * 5 * 5, 512), nn.BatchNorm1d(512)
        self.fc2, self.bn4 = nn.Linear(512, 256), nn.BatchNorm1d(256)
        self.fc3 = nn.Linear(256, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        x = F.relu(self.bn3(self.fc1(x.flatten(1))))
        return self.fc3(F.relu(self.bn4(self.fc2(x))))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.bn1 = nn.Linear(3 * 32 * 32, 512), nn.BatchNorm1d(512)
        self.fc2, self.bn2 = nn.Linear(512, 512), nn.BatchNorm1d(512)
        self.fc3, self.bn3 = nn.Linear(512, 512), nn.BatchNorm1d(512)
        self.fc4 = nn.Linear(512, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.fc1(x.flatten(1))))
        x = F.relu(self.bn2(self.fc2(x)))
        return self.fc4(F.relu(self.bn3(self.fc3(x))))


class Preactivated(nn.Module):
    def __init__(self, inputs, outputs, stride, norm):
        super().__init__()
        self.bn1, self.conv1 = norm(inputs), conv(inputs, outputs, 3, stride)
        self.bn2, self.conv2 = norm(outputs), conv(outputs, outputs, 3)
        self.stride, self.padding = stride, outputs - inputs

    def residual(self, activated):
        return self.conv2(F.relu(self.bn2(self.conv1(activated))))


class PaddedBlock(Preactivated):
    def forward(self, x):
        y = self.residual(F.relu(self.bn1(x)))
        if self.stride > 1:
            x = F.avg_pool2d(x, self.stride)
            x = torch.cat([x, x.new_zeros(x.shape[0], self.padding, *x.shape[2:])], 1)
        return x + y


class WideBlock(Preactivated):
    def __init__(self, inputs, outputs, stride, norm):
        super().__init__(inputs, outputs, stride, norm)
        if inputs != outputs:
            self.convShortcut = conv(inputs, outputs, 1, stride)

    def forward(self, x):
        activated = F.relu(self.bn1(x))
        if self.padding:
            x = self.convShortcut(activated)
        return x + self.residual(activated)


def stage(block, inputs, outputs, stride, count, norm):
    blocks = [block(inputs, outputs, stride, norm)]
    blocks += [block(outputs, outputs, 1, norm) for _ in range(count - 1)]
    return nn.Sequential(*blocks)


class ResNet26(nn.Module):
    def __init__(self, norm=nn.BatchNorm2d):
        super().__init__()
        self.conv1 = conv(3, 16, 3)
        self.layer1 = stage(PaddedBlock, 16, 16, 1, 4, norm)
        self.layer2 = stage(PaddedBlock, 16, 32, 2, 4, norm)
        self.layer3 = stage(PaddedBlock, 32, 64, 2, 4, norm)
        self.bn, self.fc = norm(64), nn.Linear(64, 10)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.conv1(x))))
        return self.fc(F.avg_pool2d(F.relu(self.bn(x)), 8).flatten(1))


class Wide(nn.Module):
    def __init__(self, *arguments):
        super().__init__()
        self.layer = stage(WideBlock, *arguments)

    def forward(self, x):
        return self.layer(x)


class Wrn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = conv(3, 16, 3)
        self.block1 = Wide(16, 64, 1, 6, nn.BatchNorm2d)
        self.block2 = Wide(64, 128, 2, 6, nn.BatchNorm2d)
        self.block3 = Wide(128, 256, 2, 6, nn.BatchNorm2d)
        self.bn1, self.fc = nn.BatchNorm2d(256), nn.Linear(256, 10)

    def forward(self, x):
        x = self.block3(self.block2(self.block1(self.conv1(x))))
        return self.fc(F.avg_pool2d(F.relu(self.bn1(x)), 8).flatten(1))


CASES = {
    "resnet18": (ResNet18, []),
    "resnet18 selu": (lambda: ResNet18(F.selu), ["activation=selu"]),
    "resnet18 prelu": (PreluResNet18, ["activation=prelu"]),
    "vgg16": (Vgg16, []),
    "densenet": (DenseNet, []),
    "lenet": (LeNet, []),
    "mlp": (Mlp, []),
    "resnet26": (ResNet26, []),
    "resnet26 group": (lambda: ResNet26(lambda c: nn.GroupNorm(8, c)), ["norm=group"]),
    "wrn-40-4": (Wrn, []),
}


def settle(network):
    """Running statistics of a real batch: with those of a fresh network a deep one is mute."""
    for module in network.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.momentum = None
    with torch.no_grad():
        network.train()(torch.randn(8, 3, 32, 32))
    network.eval()


def run(*arguments):
    subprocess.run([PROGRAM, *arguments], check=True)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("made_in", ["python", "cpp"])
def test_logits_agree(case, made_in, tmp_path):
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not built")
    torch.manual_seed(1)
    make, options = CASES[case]
    name, network = case.split()[0], make().eval()
    weights, images, output = (tmp_path / part for part in ("weights", "images", "output"))
    if made_in == "cpp":
        run("make", name, weights, *options)
        network.load_state_dict(load(weights))
    else:
        settle(network)
        save(weights, network.state_dict())
    x = torch.randn(3, 3, 32, 32)
    save(images, {"images": x})
    run("logits", name, weights, images, output, *options)
    with torch.no_grad():
        expected = network(x)
    assert expected.std(0).max() > 0.01, "the images must matter"
    torch.testing.assert_close(load(output)["logits"], expected, rtol=1e-5, atol=1e-5)
