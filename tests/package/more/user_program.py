"""A program as a user writes it, for test_types.py: every public name, annotated."""

import copy

import torch
from torch import Tensor, nn

import qact


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.activation = qact.QuantileActivation2d(8, image_share=0.5, context_mode="tracked")
        self.fc = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.fc(self.activation(self.conv(x)).mean((2, 3)))
        return y


def place(site: qact.Site) -> bool:
    return site.early and site.channels > 4


x = torch.randn(4, 3, 8, 8)
net = Net()
net(x).sum().backward()
with qact.set_context_mode(net.eval(), "prior", prior=8.0):
    out: Tensor = net(x)
qact.update_contexts([x], net)
qact.reset_running_stats(net)
frozen: nn.Module = qact.freeze(copy.deepcopy(net))

block = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
converted: nn.Module = qact.convert(block, x, sites="reference", levels=50)
chosen: nn.Module = qact.convert(block, (x,), sites=place)

y, stats, context = qact.functional.quantile_layer(x, track=True)
level: Tensor = qact.functional.quantile_activation(x, levels=10)
quantiles: Tensor = qact.functional.context_quantiles(context)
labels = torch.tensor([0, 0, 1, 1])
loss: Tensor = qact.losses.hard_triplet(out, labels) + qact.losses.watershed(out, labels)
probabilities: Tensor = qact.QuantileClassifier(8, 4)(torch.randn(16, 8))
count: int = net.activation.levels
print(qact.__version__, y.shape, level.shape, quantiles.shape, loss.shape, probabilities.shape,
      count)
