"""The module on a GPU: training and every context mode, types, layouts, compilers, graphs."""

import copy

import pytest
import torch
import torch.nn.functional as F
import gpu  # noqa: F401  (skips)
from networks import ResNet
from oracle import RunningParts, check_affine, gradient
from torch import nn

import qact

MODES = ("tracked", "batch", "prior", "stream")
OPTIONS = {"plain": {}, "half": {"image_share": 0.5}, "image": {"scope": "image"},
           "group": {"scope": "group", "group_images": 4}, "cumulative": {"momentum": None},
           "no norms": {"norm_in": False, "norm_out": False}}


def trained(**options):
    torch.manual_seed(0)
    layer = qact.QuantileActivation2d(6, **options).cuda()
    for _ in range(3):
        layer(torch.randn(30, 6, 6, 6, device="cuda") * 2 + 1)
    return layer


@pytest.mark.parametrize("mode", ["train", *MODES])
@pytest.mark.parametrize("options", OPTIONS)
def test_every_mode_as_on_the_cpu(mode, options):
    layers = [trained(**OPTIONS[options])]
    layers[0].train(mode == "train").context_mode = "tracked" if mode == "train" else mode
    before = copy.deepcopy(layers[0]).cpu()
    layers.append(copy.deepcopy(before))
    x = torch.randn(20, 6, 6, 6) * 2 + 1
    grad_y = gradient(x)
    results = []
    for layer in layers:
        here = x.to(layer.context.device).requires_grad_()
        y = layer(here)
        y.backward(grad_y.to(y.device))
        gradients = [p.grad.cpu() for p in layer.parameters()]
        results.append((y.detach().cpu(), here.grad.cpu(), gradients,
                        {name: value.cpu() for name, value in layer.state_dict().items()}))
    (found, grad, gradients, state), (wanted, theirs, of, expected) = results
    level = 0.0101 if options == "no norms" else 0.045
    assert (found - wanted).abs().max() <= level and (found - wanted).abs().mean() <= level / 3
    assert (grad - theirs).norm() <= 0.04 * theirs.norm()
    if gradients:  # both sides are off
        check_affine(torch.stack(gradients), torch.stack(of),
                     2 * RunningParts(before, x, grad_y).allowed)
    for name, value in state.items():
        if name == "context":
            assert (value - expected[name]).abs().sum() <= 0.02 * expected[name].sum()
        else:
            torch.testing.assert_close(value, expected[name], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("options", ["plain", "half"])
def test_with_and_without_gradients_agree(mode, options):
    layers = [trained(**OPTIONS[options], context_mode=mode).eval() for _ in range(2)]
    x = torch.randn(20, 6, 6, 6, device="cuda")
    with torch.no_grad():
        found = layers[0](x)
    torch.testing.assert_close(found, layers[1](x).detach(), rtol=1e-5, atol=1e-5)


@pytest.mark.hardware
def test_a_converted_network_learns_and_adapts():
    """Two classes of noise patterns; then the same through an increasing map."""
    pattern = torch.randn(4, 1, 12, 12)
    labels = torch.randint(4, (512,))
    x = (pattern[labels] + torch.randn(512, 1, 12, 12) * 0.7).cuda()
    labels = labels.cuda()
    model = qact.convert(ResNet(), x[:2].cpu(), sites="split").cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    for _ in range(8):
        for i in range(0, 512, 128):
            optimizer.zero_grad()
            F.cross_entropy(model(x[i:i + 128]), labels[i:i + 128]).backward()
            optimizer.step()
    model.eval()

    @torch.no_grad()
    def accuracy(images):
        return float((model(images).argmax(1) == labels).float().mean())

    for mode in MODES:
        with qact.set_context_mode(model, mode):
            assert accuracy(x) > 0.9, mode
    frozen = qact.freeze(model)
    with torch.no_grad():
        torch.testing.assert_close(frozen(x), model(x), rtol=1e-3, atol=1e-3)
    before = {name: value.clone() for name, value in model.named_buffers()}
    qact.update_contexts(x.cpu().split(128), model, device=torch.device("cuda"))
    assert any(not torch.equal(value, before[name]) for name, value in model.named_buffers())
    assert accuracy(x) > 0.9


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("options", ["plain", "half", "cumulative"])
def test_training_in_half_the_digits(dtype, options):
    layer = qact.QuantileActivation2d(6, **OPTIONS[options]).cuda().to(dtype)
    single = qact.QuantileActivation2d(6, **OPTIONS[options]).cuda()
    assert layer.running_mean_in.dtype == dtype and layer.context.dtype == torch.int64
    for _ in range(3):
        x = torch.randn(30, 6, 6, 6, device="cuda") * 2 + 1
        layer(x.to(dtype)).square().sum().backward()
        single(x.to(dtype).float())
    assert layer.weight_out.grad.dtype == dtype and layer.weight_out.grad.isfinite().all()
    torch.testing.assert_close(layer.running_var_in.float(), single.running_var_in, rtol=0.03,
                               atol=0.03)
    for mode in MODES:
        layer.eval().context_mode = mode
        y = layer(torch.randn(8, 6, 6, 6, device="cuda", dtype=dtype))
        assert y.dtype == dtype and y.isfinite().all(), mode


def test_float64_is_refused_by_the_layer():
    layer = qact.QuantileActivation2d(6).cuda()
    with pytest.raises(RuntimeError, match="expected float32, bfloat16 or float16 on CUDA"):
        layer(torch.randn(8, 6, 4, 4, device="cuda", dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_takes_the_type_of_the_input(dtype):
    model = nn.Sequential(nn.Conv2d(3, 6, 3), qact.QuantileActivation2d(6)).cuda()
    for mode in ("train", *MODES):
        model.train(mode == "train")
        model[1].context_mode = "tracked" if mode == "train" else mode
        with torch.autocast("cuda", dtype):
            y = model(torch.randn(8, 3, 8, 8, device="cuda"))
            assert y.dtype == dtype, mode
            assert model[1](torch.randn(8, 6, 4, 4, device="cuda")).dtype == torch.float32, mode
        y.float().square().sum().backward()
    assert model[0].weight.grad.isfinite().all() and model[1].running_mean_in.dtype == torch.float32


@pytest.mark.parametrize("options", ["plain", "half"])
def test_channels_last_is_kept(options):
    layer = trained(**OPTIONS[options])
    for mode in ("train", *MODES):
        layer.train(mode == "train")
        layer.context_mode = "tracked" if mode == "train" else mode
        x = torch.randn(8, 6, 4, 4, device="cuda").to(memory_format=torch.channels_last)
        x.requires_grad_()
        y = layer(x)
        assert y.is_contiguous(memory_format=torch.channels_last), mode
        y.sum().backward()
        assert x.grad.is_contiguous(memory_format=torch.channels_last), mode
        with torch.no_grad():
            assert layer(x).is_contiguous(memory_format=torch.channels_last), mode


def test_a_layer_on_another_device_is_named():
    layer = qact.QuantileActivation2d(6)
    with pytest.raises(RuntimeError, match=r"expected weight_in on cuda:0, as x, got cpu"):
        layer(torch.randn(8, 6, 4, 4, device="cuda"))
    with pytest.raises(RuntimeError, match=r"expected weight_in on cpu, as x, got cuda:0"):
        layer.cuda()(torch.randn(8, 6, 4, 4))


class Scaled(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(channels, 1, 1) + 0.5)

    def forward(self, x):
        return x * self.weight


@pytest.mark.parametrize("mode,options,backend", [
    *((mode, "plain", "aot_eager") for mode in ("train", *MODES)), ("train", "half", "aot_eager"),
    ("train", "cumulative", "aot_eager"), ("prior", "half", "aot_eager"),
    *(pytest.param(mode, "plain", "inductor", marks=pytest.mark.hardware)
      for mode in ("train", "tracked"))])
def test_compiled_equals_eager(mode, options, backend):
    torch._dynamo.reset()
    model = nn.Sequential(Scaled(6), trained(**OPTIONS[options]), Scaled(6)).cuda()
    model.train(mode == "train")
    model[1].context_mode = "tracked" if mode == "train" else mode
    eager = copy.deepcopy(model)
    compiled = torch.compile(model, backend=backend, fullgraph=True, dynamic=True)
    for batch in (12, 20):
        images = torch.randn(batch, 6, 6, 6, device="cuda")
        results = []
        for f, m in ((compiled, model), (eager, eager)):
            x = images.clone().requires_grad_()
            y = f(x)
            y.square().sum().backward()
            results.append([y.detach(), x.grad, *(p.grad for p in m.parameters()),
                            *(b.clone() for b in m.buffers())])
            m.zero_grad()
        for found, expected in zip(*results, strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.hardware
def test_a_training_step_is_captured_and_replayed():
    torch.manual_seed(0)
    layers = [qact.QuantileActivation2d(6, image_share=0.5).cuda() for _ in range(2)]
    x = torch.randn(16, 6, 8, 8, device="cuda", requires_grad=True)
    grad_y = torch.randn(16, 6, 8, 8, device="cuda")
    images = [torch.randn(16, 6, 8, 8, device="cuda") for _ in range(3)]

    def step(layer):
        layer.zero_grad()
        y = layer(x)
        return y, *torch.autograd.grad(y, (x, *layer.parameters()), grad_y)

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # warm up
        for layer in layers:
            step(layer)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step(layers[0])
    for batch in images:
        x.data.copy_(batch)
        graph.replay()
        for found, expected in zip(captured, step(layers[1]), strict=True):
            assert torch.equal(found, expected)
    for ours, theirs in zip(layers[0].buffers(), layers[1].buffers(), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.hardware
@pytest.mark.parametrize("mode", MODES)
def test_inference_is_captured_and_replayed(mode):
    layer = trained(context_mode=mode).eval()
    x = torch.randn(16, 6, 8, 8, device="cuda")
    with torch.no_grad():
        layer(x)
        before = copy.deepcopy(layer)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = layer(x)
        x.copy_(torch.randn(16, 6, 8, 8, device="cuda"))
        graph.replay()
        assert torch.equal(y, before(x))
        layer.context.copy_(layer.context.roll(40, 1))  # what was captured reads it anew
        layer.running_mean_in += 1
        before.load_state_dict(layer.state_dict())
        graph.replay()
        assert torch.equal(y, before(x))


def test_per_sample_gradients_and_checkpoints():
    from torch.func import functional_call, grad, vmap
    from torch.utils.checkpoint import checkpoint

    layer = trained().eval()
    parameters = {name: p.detach() for name, p in layer.named_parameters()}
    x = torch.randn(5, 6, 4, 4, device="cuda")

    def loss(p, image):
        return functional_call(layer, (p, dict(layer.named_buffers())), (image[None],)).square().sum()

    found = vmap(grad(loss), in_dims=(None, 0))(parameters, x)
    for i in range(5):
        for name, value in grad(loss)(parameters, x[i]).items():
            torch.testing.assert_close(found[name][i], value, rtol=1e-3, atol=1e-3)
    train = qact.QuantileActivation2d(6, momentum=0.0).cuda()
    x.requires_grad_()
    (plain,) = torch.autograd.grad(train(x).pow(3).sum(), x)
    (again,) = torch.autograd.grad(checkpoint(train, x, use_reentrant=False).pow(3).sum(), x)
    assert torch.equal(plain, again)


def test_empty_batches_in_eval():
    for mode in MODES:
        layer = trained(context_mode=mode).eval()
        assert layer(torch.randn(0, 6, 4, 4, device="cuda")).shape == (0, 6, 4, 4)


def test_state_goes_from_device_to_device():
    layer = trained()
    other = qact.QuantileActivation2d(6)
    other.load_state_dict(layer.state_dict())
    x = torch.randn(8, 6, 6, 6)
    with torch.no_grad():
        found, expected = layer.eval()(x.cuda()).cpu(), other.eval()(x)
    assert (found - expected).abs().max() <= 0.045  # a level
    assert (found != expected).float().mean() < 0.01 or (found - expected).abs().mean() < 1e-3
