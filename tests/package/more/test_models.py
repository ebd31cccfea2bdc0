"""convert on torchvision's and timm's networks. A step of each must lower the loss, or at least
leave it finite: four images teach little."""

import pytest
import torch
import torch.nn.functional as F
import torchvision_operators  # noqa: F401  (before torchvision)
import timm
import torchvision.models

import qact
import qact.timm

# Layers of split, reference and all.
VISION = {"resnet18": (5, 9, 17), "vgg11_bn": (2, 10, 10), "densenet121": (14, 5, 121),
          "mobilenet_v2": (3, 15, 35)}
TIMM = {"resnet18": (5, 9, 17), "resnetv2_50": (11, 5, 49)}


def check(model, expected):
    x, labels = torch.randn(4, 3, 64, 64), torch.tensor([0, 1, 2, 3])
    counts = []
    for sites in ("split", "reference", "all"):
        converted = qact.convert(model, x, sites=sites)
        counts.append(sum(isinstance(m, qact.QuantileActivation) for m in converted.modules()))
        loss = F.cross_entropy(converted.train()(x), labels)
        loss.backward()
        assert loss.isfinite()
        converted.eval()(x[:1])
    assert tuple(counts) == expected


@pytest.mark.parametrize("name", VISION)
def test_torchvision(name):
    check(getattr(torchvision.models, name)(num_classes=10), VISION[name])


@pytest.mark.parametrize("name", TIMM)
def test_timm(name):
    check(timm.create_model(name, num_classes=10), TIMM[name])


def test_a_checkpoint_of_torchvision_loads():
    model = torchvision.models.resnet18(num_classes=10)
    converted = qact.convert(model, torch.randn(2, 3, 64, 64), sites="split")
    missing, unexpected = converted.load_state_dict(model.state_dict(), strict=False)
    assert unexpected == [] and all("_qact" in name for name in missing)


def test_registered_with_timm():
    qact.timm.register()
    model = timm.create_model("resnetv2_50", num_classes=10, norm_layer="qact")
    assert sum(isinstance(m, qact.QuantileActivation) for m in model.modules()) == 49
    model(torch.randn(2, 3, 64, 64)).sum().backward()
    with pytest.raises(ValueError, match="expected a norm with an activation"):
        qact.timm.NormAct2d(8, apply_act=False)
