"""The module against the C++ one: the same values, gradients and state, bit for bit, in training
and in every mode, with the state travelling both ways as safetensors."""

import subprocess

import pytest
import torch
from conftest import built
from safetensors_file import load, save
from torch import nn

import qact

SCOPES = {
    "batch": {},
    "image": {"scope": "image"},
    "group": {"scope": "group", "group_images": 5},
    "half": {"image_share": 0.5},
    "half groups": {"image_share": 0.3, "scope": "group", "group_images": 4},
    "levels": {"levels": 9, "momentum": 0.3},
    "cumulative": {"momentum": None},
    "no norms": {"norm_in": False, "norm_out": False},
    "inner norm": {"norm_out": False},
    "outer norm": {"norm_in": False},
}


def argument(value):
    return "none" if value is None else str(int(value) if isinstance(value, bool) else value)


def trained(options, shape):
    layer = qact.QuantileActivation(shape[1], **options)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(torch.randn_like(parameter) / 4)
        for _ in range(3):
            layer(torch.randn(shape) * 2 + 1)
    return layer


@pytest.mark.parametrize("mode", ["train", "tracked", "batch", "prior", "stream"])
@pytest.mark.parametrize("scope", SCOPES)
def test_values_gradients_and_state(mode, scope, tmp_path):
    program = built("tests/layer_interchange")
    options, shape = SCOPES[scope], (60, 6, 3, 5)  # 900 values per channel: binned
    layer = trained(options, shape)
    files = [tmp_path / name for name in ("state", "inputs", "output", "after")]
    inputs = {"a": torch.randn(shape), "b": torch.randn(shape) - 1}
    grad = torch.randn(shape)
    save(files[0], layer.state_dict())
    save(files[1], {**inputs, "grad": grad})
    keys = [f"{key}={argument(value)}" for key, value in options.items()]
    subprocess.run([program, *files, f"mode={mode}", *keys], check=True)
    expected, after = load(files[2]), load(files[3])

    layer.train(mode == "train")
    layer.context_mode = "tracked" if mode == "train" else mode
    for name, values in inputs.items():
        x = values.clone().requires_grad_()
        y = layer(x)
        y.backward(grad)
        assert torch.equal(y, expected[name])
        assert torch.equal(x.grad, expected[name + ".grad"])
    state = layer.state_dict()
    assert sorted(state) == sorted(after)
    for name in state:
        assert state[name].dtype == after[name].dtype
        assert torch.equal(state[name], after[name]), name


class Mlp(nn.Module):
    """The C++ library's, under its names."""

    def __init__(self):
        super().__init__()
        for i, inputs in enumerate((3 * 32 * 32, 512, 512), 1):
            setattr(self, f"fc{i}", nn.Linear(inputs, 512))
            setattr(self, f"bn{i}", nn.BatchNorm1d(512))
            setattr(self, f"activation{i}", qact.QuantileActivation1d(512))
        self.fc4 = nn.Linear(512, 10)

    def forward(self, x):
        x = x.flatten(1)
        for i in range(1, 4):
            x = getattr(self, f"fc{i}")(x)
            x = getattr(self, f"activation{i}")(getattr(self, f"bn{i}")(x))
        return self.fc4(x)


@pytest.mark.parametrize("made_in", ["python", "cpp"])
def test_a_network_travels_both_ways(made_in, tmp_path):
    program = built("tests/model_interchange")
    network = Mlp()
    weights, images, output = (tmp_path / name for name in ("weights", "images", "output"))
    if made_in == "cpp":
        subprocess.run([program, "make", "mlp", weights, "activation=qact"], check=True)
        network.load_state_dict(load(weights))
    else:
        with torch.no_grad():
            network(torch.randn(64, 3, 32, 32))
        save(weights, network.state_dict())
    x = torch.randn(5, 3, 32, 32)
    save(images, {"images": x})
    subprocess.run([program, "logits", "mlp", weights, images, output, "activation=qact"],
                   check=True)
    with torch.no_grad():
        expected = network.eval()(x)
    torch.testing.assert_close(load(output)["logits"], expected, rtol=1e-4, atol=1e-4)


def test_what_the_program_trained_loads(tmp_path):
    program, run = built("qact"), tmp_path / "run"
    subprocess.run([program, "train", "--output", run, "--data", "mnist-small", "--model", "mlp",
                    "--activation", "qact", "--epochs", "1", "--validation", "0.9",
                    "--fit-classifiers", "off"], check=True, capture_output=True)
    state = load(run / "model.safetensors")
    network = Mlp()
    network.fc1 = nn.Linear(state["fc1.weight"].shape[1], 512)
    network.load_state_dict(state)
    assert int(network.activation1.num_batches_tracked) > 0
