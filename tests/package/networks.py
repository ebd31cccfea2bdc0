"""Small networks of the usual kinds, for convert."""

import torch
import torch.nn.functional as F
from torch import nn


def conv(inputs, outputs, stride=1):
    return nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)


class Block(nn.Module):
    """A ResNet's: one ReLU for both activations."""

    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.conv1, self.bn1 = conv(inputs, outputs, stride), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = conv(outputs, outputs), nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride > 1:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                            nn.BatchNorm2d(outputs))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, pool=False):
        super().__init__()
        self.conv1, self.bn1, self.relu = conv(1, 8), nn.BatchNorm2d(8), nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(2) if pool else nn.Identity()
        self.layer1 = nn.Sequential(Block(8, 8), Block(8, 8))
        self.layer2 = nn.Sequential(Block(8, 16, 2))
        self.fc = nn.Linear(16, 4)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer2(self.layer1(x))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Functional(nn.Module):
    """Calls of functions and methods, and a BatchNorm that two calls share."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = conv(1, 6), nn.BatchNorm2d(6)
        self.fc = nn.Linear(6, 4)

    def forward(self, x):
        x = F.relu(self.bn(self.conv(x)))
        x = torch.relu(self.bn(x))
        return self.fc(x.relu().mean((2, 3)))
