"""torch.compile, torch.export and torch.jit.trace: one graph, the same bits, no recompilation when
the batch changes."""

import copy

import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend

import qact

MODES = ("train", "tracked", "batch", "prior", "stream")
OPTIONS = {
    "plain": {}, "cumulative": {"momentum": None}, "half": {"image_share": 0.5},
    "image": {"scope": "image"}, "group": {"scope": "group", "group_images": 4}, "no norms": {"norm_in": False, "norm_out": False},
    "cumulative, inner norm": {"norm_out": False, "momentum": None},
}


# All modes, and all options in one.
CASES = [*((mode, "plain") for mode in MODES), *(("train", options) for options in OPTIONS),
         ("prior", "half"), ("tracked", "group"), ("stream", "no norms")]


class Scaled(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(channels, 1, 1) + 0.5)

    def forward(self, x):
        return x * self.weight


def network(mode, options):
    """Without convolutions, whose kernels on the CPU specialise on the batch."""
    model = nn.Sequential(Scaled(4), qact.QuantileActivation2d(4, **options), Scaled(4))
    model(torch.randn(20, 4, 3, 3))
    model.train(mode == "train")
    qact.set_context_mode(model, "tracked" if mode == "train" else mode)
    return model


@pytest.mark.parametrize("mode,options", dict.fromkeys(CASES))
def test_compiled_equals_eager_for_every_batch_size(mode, options):
    torch._dynamo.reset()
    model = network(mode, OPTIONS[options])
    eager = copy.deepcopy(model)
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(model, backend=counter, fullgraph=True, dynamic=True)
    compilations = None
    for batch in (12, 20, 9):
        images = torch.randn(batch, 4, 3, 3)
        results = []
        for f, m in ((compiled, model), (eager, eager)):
            x = images.clone().requires_grad_()
            y = f(x)
            y.square().sum().backward()
            results.append([y.detach(), x.grad, *(p.grad for p in m.parameters()),
                            *(b.clone() for b in m.buffers())])
            m.zero_grad()
        for found, expected in zip(*results, strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
        compilations = compilations or counter.frame_count
    assert counter.frame_count == compilations


def test_compiled_by_default_follows_the_batch():
    """Without dynamic=True: one graph for the first size, one for all others."""
    torch._dynamo.reset()
    model = network("train", {})
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(model, backend=counter, fullgraph=True)
    counts = []
    for batch in (12, 20, 16, 9, 30):
        compiled(torch.randn(batch, 4, 3, 3)).sum().backward()
        counts.append(counter.frame_count)
    assert counts[1] == counts[-1]


def test_inductor_without_gradients():
    torch._dynamo.reset()
    model = network("tracked", {})
    x = torch.randn(8, 4, 3, 3)
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(model, fullgraph=True)(x), model(x), rtol=1e-4,
                                   atol=1e-4)


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("shape", [(8, 4, 3, 3), (8, 4, 24, 24)])  # that keeps x, and that does not
def test_compiled_autograd(shape):
    torch._dynamo.reset()
    model = network("train", {})
    x = torch.randn(shape)
    model(x).square().sum().backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="aot_eager")):
        model(x).square().sum().backward()
    for parameter, grad in zip(model.parameters(), expected):
        torch.testing.assert_close(parameter.grad, grad)


@pytest.mark.parametrize("mode,options,strict", [
    *((mode, "plain", False) for mode in MODES), ("train", "half", False), ("prior", "half", False),
    ("train", "plain", True)])
def test_export_with_a_dynamic_batch(mode, options, strict):
    model = network(mode, OPTIONS[options])
    eager = copy.deepcopy(model)
    with torch.no_grad():
        program = torch.export.export(
            model, (torch.randn(8, 4, 3, 3),), strict=strict,
            dynamic_shapes={"input": {0: torch.export.Dim("batch", min=2, max=4096)}})
        exported = program.module()
        for batch in (12, 5):
            x = torch.randn(batch, 4, 3, 3)
            torch.testing.assert_close(exported(x), eager(x))
    names = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert any(name.startswith("qact_python.") for name in names)


@pytest.mark.parametrize("mode,options", [
    *((mode, "half") for mode in MODES), ("train", "no norms"), ("train", "image"),
    ("train", "cumulative, inner norm")])
def test_exported_programs_have_gradients(mode, options, tmp_path):
    """Of batches whose contexts keep codes for the backward pass, and of those whose do not."""
    model = network(mode, OPTIONS[options])
    eager = copy.deepcopy(model)
    program = torch.export.export(
        model, (torch.randn(8, 4, 16, 16),),
        dynamic_shapes={"input": {0: torch.export.Dim("batch", min=2, max=4096)}})
    torch.export.save(program, tmp_path / "program.pt2")
    exported = torch.export.load(tmp_path / "program.pt2").module()
    for batch in (12, 3):
        images = torch.randn(batch, 4, 16, 16)
        results = []
        for f in (exported, eager):
            x = images.clone().requires_grad_()
            y = f(x)
            y.square().sum().backward()
            results.append((y.detach(), x.grad))
        for found, expected in zip(*results, strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_exported_programs_are_saved_and_loaded(tmp_path):
    model = network("tracked", {})
    x = torch.randn(8, 4, 3, 3)
    with torch.no_grad():
        torch.export.save(torch.export.export(model, (x,)), tmp_path / "program.pt2")
        found = torch.export.load(tmp_path / "program.pt2").module()(x)
    assert torch.equal(found, model(x).detach())


@pytest.mark.parametrize("options", [{"norm_out": False}, {"norm_in": False}, OPTIONS["no norms"],
                                     {"track_running_stats": False}])
@pytest.mark.parametrize("strict", [False, True])
def test_export_of_a_lone_layer_without_some_buffers(options, strict):
    layer, x = qact.QuantileActivation(4, **options), torch.randn(8, 4, 3, 3)
    layer(x)
    layer.eval()
    with torch.no_grad():
        exported = torch.export.export(layer, (x,), strict=strict).module()
        torch.testing.assert_close(exported(x), layer(x))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("options", ["plain", "half", "no norms"])
def test_traced(mode, options, tmp_path):
    """With torch's own check of what it traced, and for other batches."""
    model = network(mode, OPTIONS[options])
    eager = copy.deepcopy(model)
    traced = torch.jit.trace(copy.deepcopy(model), torch.randn(8, 4, 3, 3),
                             check_trace=mode != "stream")
    traced.load_state_dict(model.state_dict())  # tracing is a call, too
    for batch in (8, 3):
        other = torch.randn(batch, 4, 3, 3)
        torch.testing.assert_close(traced(other), eager(other))
    torch.jit.save(traced, tmp_path / "traced.pt")
    loaded, other = torch.jit.load(tmp_path / "traced.pt"), torch.randn(5, 4, 3, 3)
    torch.testing.assert_close(loaded(other), eager(other))


def test_a_traced_stream_weighs_each_batch_by_its_size():
    layer = qact.QuantileActivation(4, context_mode="stream").eval()
    eager = copy.deepcopy(layer)
    traced = torch.jit.trace(layer, torch.randn(100, 4, 100), check_trace=False)
    x = torch.randn(300, 4, 30)
    traced(x), eager(x)
    counts = [model.context.sum(1) / 65536 for model in (traced, eager)]
    torch.testing.assert_close(*counts, rtol=1e-6, atol=0)
    assert counts[0][0].round() == 9000


def test_traced_without_gradients_has_them():
    model, x = network("tracked", {}), torch.randn(8, 4, 3, 3, requires_grad=True)
    with torch.no_grad():
        traced = torch.jit.trace(model, x)
    for found, expected in zip(*(torch.autograd.grad(f(x).square().sum(), (x, *model.parameters()))
                                 for f in (traced, model))):
        torch.testing.assert_close(found, expected)


def test_functions_compile():
    torch._dynamo.reset()

    def loss(x):
        q = qact.functional.quantiles(x.detach(), 9)
        return (qact.functional.quantile_activation(x) * qact.functional.quantile_apply(x, q)).sum()

    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    results = []
    for f in (loss, compiled):
        torch.manual_seed(0)
        x = torch.randn(10, 3, requires_grad=True)
        f(x).backward()
        results.append(x.grad)
    torch.testing.assert_close(*results)
