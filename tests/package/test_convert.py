"""convert and checkpoints of BatchNorm."""

import copy

import pytest
import torch
import torch.nn.functional as F
from networks import Functional, ResNet
from torch import nn

import qact

X = (16, 1, 12, 12)


def layers(model):
    return {name: m for name, m in model.named_modules() if isinstance(m, qact.QuantileActivation)}


def fit(model, steps=6):
    torch.manual_seed(1)
    x, labels = torch.randn(X), torch.randint(4, (X[0],))
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model.train()(x), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_each_call_of_a_shared_relu_is_a_layer_of_its_own():
    model = ResNet()
    converted = qact.convert(model, torch.randn(X), sites="all")
    assert set(layers(converted)) == {
        "bn1", "layer1.0.bn1", "layer1.0.relu_qact", "layer1.1.bn1", "layer1.1.relu_qact",
        "layer2.0.bn1", "layer2.0.relu_qact"}
    assert not any(isinstance(m, nn.ReLU) for m in converted.modules())
    assert sum(isinstance(m, nn.ReLU) for m in model.modules()) == 4, "the model itself is kept"
    losses = fit(converted)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("pool", [False, True])
@pytest.mark.parametrize("sites,expected", [
    ("reference", {"bn1", "layer1.0.relu_qact", "layer1.1.relu_qact", "layer2.0.relu_qact"}),
    ("early", {"bn1", "layer1.0.relu_qact", "layer1.1.relu_qact"}),
    ("split", {"bn1", "layer1.0.bn1", "layer1.0.relu_qact", "layer1.1.bn1",
               "layer1.1.relu_qact"})])
def test_placements(sites, expected, pool):
    converted = qact.convert(ResNet(pool), torch.randn(X), sites=sites)
    assert set(layers(converted)) == expected
    assert {m.image_share for m in layers(converted).values()} == {0.5 if sites == "split" else 0.0}
    relus = sum(node.op == "call_module" and isinstance(converted.get_submodule(node.target), nn.ReLU)
                for node in converted.graph.nodes)
    assert relus + len(expected) == 7
    assert converted(torch.randn(X)).shape == (16, 4)


def test_a_function_chooses_sites_and_options():
    seen = []

    def choose(site):
        seen.append((site.name, site.stage, site.trunk, site.channels))
        return {"levels": 9} if site.name == "relu" else site.stage == 1

    converted = qact.convert(ResNet(), torch.randn(X), sites=choose, momentum=0.2)
    assert seen[:3] == [("relu", 0, True, 8), ("layer1.0.relu", 0, False, 8),
                        ("layer1.0.relu", 0, True, 8)]
    assert {name: (m.levels, m.momentum) for name, m in layers(converted).items()} == {
        "bn1": (9, 0.2), "layer2.0.bn1": (100, 0.2), "layer2.0.relu_qact": (100, 0.2)}


def test_batch_norm_is_absorbed_with_its_state():
    model = ResNet()
    model(torch.randn(X))
    nn.init.uniform_(model.bn1.weight)
    converted = qact.convert(model, torch.randn(X), sites="early")
    for ours, theirs in (("weight_in", "weight"), ("bias_in", "bias"),
                         ("running_mean_in", "running_mean"), ("running_var_in", "running_var")):
        assert torch.equal(getattr(converted.bn1, ours), getattr(model.bn1, theirs))
    # The inner norm is the BatchNorm's: ranks of its output.
    x = torch.randn(X)
    z = model.bn1.train()(model.conv1(x))
    found = converted.bn1(model.conv1(x))
    expected, _, _ = qact.functional.quantile_layer(z)
    torch.testing.assert_close(found, expected, atol=0.05, rtol=0)


def test_a_checkpoint_of_the_model_before_loads():
    model = ResNet()
    model(torch.randn(X))
    converted = qact.convert(ResNet(), torch.randn(X), sites="all")
    fresh = copy.deepcopy(converted.layer1.get_submodule("0").relu_qact.state_dict())
    missing, unexpected = converted.load_state_dict(model.state_dict(), strict=False)
    assert unexpected == [] and all("relu_qact" in name for name in missing)
    assert torch.equal(converted.bn1.weight_in, model.bn1.weight)
    assert torch.equal(converted.layer1.get_submodule("1").bn1.running_var_in,
                       model.layer1[1].bn1.running_var)
    for name, value in converted.layer1.get_submodule("0").relu_qact.state_dict().items():
        assert torch.equal(value, fresh[name])
    other = qact.convert(ResNet(), torch.randn(X), sites="all")
    other.load_state_dict(converted.state_dict())
    absorbed = qact.convert(nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.ReLU()),
                            torch.randn(X), sites="all")
    before = {"0.weight": torch.ones(2, 1, 1, 1), "0.bias": torch.ones(2),
              **{"1." + k: v + 1 for k, v in nn.BatchNorm2d(2).state_dict().items()}}
    absorbed.load_state_dict(before)  # strict
    assert torch.equal(absorbed.get_submodule("1").running_var_in, torch.full((2,), 2.0))


def test_functions_methods_and_a_shared_norm():
    converted = qact.convert(Functional(), torch.randn(X), sites="all")
    found = layers(converted)
    assert len(found) == 3 and "bn" not in found  # two calls share it: it stays
    assert isinstance(converted.bn, nn.BatchNorm2d)
    losses = fit(converted)
    assert losses[-1] < losses[0]


def test_what_cannot_be_placed_raises():
    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(8, 8)

        def forward(self, x):
            return F.gelu(self.fc(x))

    class Residual(Tokens):
        """From a Linear by way of what leaves the values in their places."""

        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(0.1)

        def forward(self, x):
            x = x + self.drop(self.fc(x))
            return torch.relu(x * 2 + x)

    class Flow(nn.Module):
        def forward(self, x):
            return F.relu(x) if x.sum() > 0 else x

    class InPlace(nn.Module):
        def forward(self, x):
            y = x + 1
            return F.relu(y, inplace=True) + y

    class Dropout(nn.Module):
        def forward(self, x):
            return F.dropout(F.relu(x), 0.5, self.training)

    class Flat(nn.Module):
        def forward(self, x):
            return F.relu(x.mean((1, 2)))

    for model, x, message in (
            (Tokens(), torch.randn(2, 5, 8), "whose channels come last"),
            (Flow(), torch.randn(2, 5), "expected a model that torch.fx can trace"),
            (InPlace(), torch.randn(2, 5), "works in place"),
            (Dropout(), torch.randn(2, 5), "expected the same calls in train.*dropout"),
            (Flat(), torch.randn(2, 5, 8), r"no tensor of \(B,C,...\)"),
            (Residual(), torch.randn(2, 5, 8), "channels come last"),
            (nn.Sequential(nn.ReLU(), nn.TransformerEncoderLayer(8, 2, 16)), torch.randn(2, 5, 8),
             "torch.fx does not look into TransformerEncoderLayer, which has activations"),
            (nn.Sequential(nn.Linear(5, 5)), torch.randn(2, 5), "expected calls of activations")):
        with pytest.raises(ValueError, match=message):
            qact.convert(model, x, sites="all")
    with pytest.raises(ValueError, match="expected sites of"):
        qact.convert(ResNet(), torch.randn(X), sites="late")
    with pytest.raises(ValueError, match="expected sites of"):
        qact.convert(ResNet(), torch.randn(X), sites=["bn1"])
    with pytest.raises(ValueError, match=r"expected example_inputs that the model takes, got float32 "
                                         r"of shape \(2, 3, 8, 8\): .*to have 1 channels"):
        qact.convert(ResNet(), torch.randn(2, 3, 8, 8))


def test_training_and_type_are_kept():
    model = ResNet().double().eval()
    converted = qact.convert(model, torch.randn(X, dtype=torch.float64))
    assert not any(m.training for m in converted.modules())
    assert converted(torch.randn(X, dtype=torch.float64)).dtype == torch.float64


def test_whole_models_are_saved_and_loaded(tmp_path):
    """By pickle, which traces a graph anew."""
    x = torch.randn(X)
    model = qact.convert(ResNet(), x)
    model(x)
    model.bn1.eval()  # by hand
    for saved in (model, qact.freeze(model)):
        torch.save(saved, tmp_path / "model.pt")
        loaded = torch.load(tmp_path / "model.pt", weights_only=False)
        assert [m.training for m in loaded.modules()] == [m.training for m in saved.modules()]
        assert torch.equal(loaded.eval()(x), saved.eval()(x))


def test_a_frozen_model_exports_without_our_operators():
    model = qact.convert(ResNet(), torch.randn(X), sites="early")
    fit(model)
    frozen = qact.freeze(model, portable=True)
    x = torch.randn(X)
    batch = torch.export.Dim("batch", min=2, max=100)
    with torch.no_grad():
        program = torch.export.export(frozen, (x,), dynamic_shapes=({0: batch},))
        names = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
        assert not any("qact" in name for name in names)
        torch.testing.assert_close(program.module()(x[:5]), model.eval()(x[:5]))
