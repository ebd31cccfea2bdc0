"""Contexts over several processes, connected by Gloo: as one process, as C++, under DDP and FSDP."""

import copy
import pickle
import sys
from unittest import mock

import pytest
import torch
import torch.distributed as dist
from conftest import ROOT
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

import qact
from qact.timm import NormAct2d

sys.path.append(str(ROOT / "tests" / "python"))
import ranks as processes  # noqa: E402

SPLITS = {2: (1, 5), 3: (2, 0, 4), 4: (2, 0, 3, 1)}
CASES = [(share, spatial, dtype) for share in (0.0, 0.5, 1.0) for spatial in (3, 90)
         for dtype in (torch.float32, torch.float64)]


def layer_and_input(share, spatial, dtype):
    torch.manual_seed(5)
    layer = qact.SyncQuantileActivation(4, image_share=share, dtype=dtype)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(4))
    return layer, torch.randn(6, 4, spatial, 5, dtype=dtype), torch.randn(6, 4, spatial, 5,
                                                                           dtype=dtype)


def step(case, images, group=None):
    layer, x, grad = layer_and_input(*case)
    layer.process_group = group
    x = x[images].requires_grad_()
    y = layer(x)
    y.backward(grad[images])
    return (y.detach(), x.grad, torch.stack([p.grad for p in layer.parameters()]),
            [buffer.clone() for buffer in layer.buffers()])


BLENDS = [(mode, momentum, share, dtype) for mode in ("prior", "stream")
          for momentum in (0.1, None) for share in (0.0, 0.5, 1.0)
          for dtype in (torch.float32, torch.float64)]


def blending_layer_and_input(mode, momentum, share, dtype):
    """A layer that has a running context."""
    layer, x, grad = layer_and_input(share, 90, dtype)
    tracked = qact.QuantileActivation(4, image_share=share, dtype=dtype)
    tracked.load_state_dict(layer.state_dict())
    tracked((0.3 * x).exp())
    layer.load_state_dict(tracked.state_dict())
    layer.momentum, layer.context_mode, layer.prior = momentum, mode, 3.0
    return layer.eval(), x, grad


def blend(case, images, group=None):
    """Two batches, of which the second has gradients."""
    layer, x, grad = blending_layer_and_input(*case)
    layer.process_group = group
    with torch.no_grad():
        layer(x[images] + 1)
    x = x[images].requires_grad_()
    y = layer(x)
    y.backward(grad[images])
    return (y.detach(), x.grad, torch.stack([p.grad for p in layer.parameters()]),
            [buffer.clone() for buffer in layer.buffers()])


def network():
    torch.manual_seed(7)
    model = nn.Sequential(nn.Conv2d(2, 6, 3), qact.QuantileActivation(6, image_share=0.5),
                          nn.Flatten(), nn.Linear(6 * 36, 8), qact.QuantileActivation(8),
                          nn.Linear(8, 3)).double()
    return qact.convert_sync_quantile_activation(model)


def train_step(model, images, ranks):
    """The mean loss of 6 images; averaging over ranks divides by their number."""
    torch.manual_seed(8)
    x, target = torch.randn(6, 2, 8, 8).double(), torch.randint(3, (6,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    losses = nn.functional.cross_entropy(model(x[images]), target[images], reduction="sum")
    (losses * ranks / 6).backward()
    optimizer.step()
    return model


def mixed_contexts(rank):
    """Running state of ranks that tracked their own batches."""
    torch.manual_seed(rank)
    layer = qact.QuantileActivation(3, momentum=1.0)
    layer(torch.randn(64, 3) * (rank + 1) + rank)
    before = [layer.context.clone(), layer.running_mean_in.clone(), layer.running_var_in.clone()]
    qact.sync_contexts(layer)
    return before, [layer.context, layer.running_mean_in, layer.running_var_in]


def refusals():
    with pytest.raises((RuntimeError, ValueError)) as error:
        qact.SyncQuantileActivation(3)(torch.randn(int(dist.get_rank() == 0), 3))
    return str(error.value).splitlines()[0]


class Watch(TorchDispatchMode):
    """Notes when a reduction starts, when it is waited for, and when channels are ranked in their
    image, which may raise."""

    def __init__(self, raises=False):
        super().__init__()
        self.events, self.raises = [], raises
        self._start = dist.all_reduce

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in (torch.ops.qact_python.layer_forward.default,
                    torch.ops.qact_python.layer_backward.default):
            self.events.append("images")
            if self.raises:
                raise RuntimeError("no images")
        return func(*args, **(kwargs or {}))

    def all_reduce(self, numbers, by, **options):
        self.events.append(f"{by} {numbers.dtype}")
        work = self._start(numbers, by, **options)

        def wait():
            self.events.append("waited")
            work.wait()

        return mock.Mock(wait=wait)

    def run(self, layer, x):
        with mock.patch.object(dist, "all_reduce", self.all_reduce), self:
            layer(x).sum().backward()
        return self.events


def events(own):
    """Of a step whose contexts are gathered, of one whose image contexts keep codes, and of one that
    ends with an error on all ranks."""
    out = []
    for spatial in (3, 90):
        layer, x, _ = layer_and_input(0.5, spatial, torch.float32)
        out.append(Watch().run(layer, x[own].requires_grad_()))
    watch = Watch(raises=True)
    with pytest.raises(RuntimeError, match="no images"):
        watch.run(layer, x.requires_grad_())
    return [*out, watch.events]


def of_other_ranks(rank):
    """A tracked layer and a fresh copy of it, whose buffers are another rank's in the meantime."""
    torch.manual_seed(rank)
    model, x = nn.Sequential(nn.Linear(3, 4), qact.QuantileActivation(4)), torch.randn(8, 3)
    parallel, pairs = DistributedDataParallel(model), []
    for _ in range(3):
        model((torch.randn(64, 3) * (rank + 1)).exp())
    model.eval()
    with torch.no_grad():
        model(x)
        pairs.append((parallel.eval()(x), copy.deepcopy(model)(x)))  # which broadcasts buffers
        parallel.train()(torch.randn(64, 3) * (rank + 1))
        parallel.eval()
        model(x)
        for buffer in model.buffers():
            dist.broadcast(buffer, 0)
        pairs.append((model(x), copy.deepcopy(model)(x)))
    return pairs


def on_each_rank(rank, ranks):
    out = {"steps": {}, "blends": {}}
    for n, split in SPLITS.items():
        group = dist.new_group(range(n))
        if rank < n:
            own = slice(sum(split[:rank]), sum(split[:rank + 1]))
            out["steps"][n] = [step(case, own, group) for case in CASES]
            out["blends"][n] = [blend(case, own, group) for case in BLENDS]
    own = slice(sum(SPLITS[ranks][:rank]), sum(SPLITS[ranks][:rank + 1]))
    ddp = train_step(DistributedDataParallel(network()), own, ranks)
    out["ddp"] = ddp.module.state_dict()
    model = network()
    mesh = dist.device_mesh.init_device_mesh("cpu", (ranks,))
    for child in (model[0], model[3], model):
        fully_shard(child, mesh=mesh)
    out["fsdp"] = {name: value.full_tensor() if hasattr(value, "full_tensor") else value
                   for name, value in train_step(model, own, ranks).state_dict().items()}
    out["contexts"] = mixed_contexts(rank)
    out["refusals"] = refusals()
    out["events"] = events(own)
    out["no images"] = [qact.SyncQuantileActivation(3, context_mode=mode).eval()(torch.ones(0, 3))
                        for mode in ("prior", "stream", "tracked")]
    out["of other ranks"] = of_other_ranks(rank)
    return out


@pytest.fixture(scope="module")
def found():
    return processes.run(on_each_rank, max(SPLITS))


@pytest.mark.parametrize("ranks", SPLITS)
def test_ranks_are_one_process(found, ranks):
    for i, case in enumerate(CASES):
        y, grad_x, affine, buffers = step(case, slice(0, 6))
        of_ranks = [result["steps"][ranks][i] for result in found[:ranks]]
        assert torch.equal(torch.cat([r[0] for r in of_ranks]), y), case
        bound = 1e-12 if case[2] == torch.float64 else 1e-6
        for grad, expected in ((torch.cat([r[1] for r in of_ranks]), grad_x),
                               (sum(r[2] for r in of_ranks), affine)):
            assert (grad - expected).abs().max() <= bound * expected.abs().max(), case
        for rank in of_ranks:
            assert all(torch.equal(a, b) for a, b in zip(rank[3], buffers)), case


@pytest.mark.parametrize("ranks", SPLITS)
def test_blending_ranks_are_one_process(found, ranks):
    """Sums have another order, which moves no level of these inputs."""
    for i, case in enumerate(BLENDS):
        y, grad_x, affine, buffers = blend(case, slice(0, 6))
        of_ranks = [result["blends"][ranks][i] for result in found[:ranks]]
        bound = 1e-9 if case[-1] == torch.float64 else 1e-4
        for value, expected in ((torch.cat([r[0] for r in of_ranks]), y),
                                (torch.cat([r[1] for r in of_ranks]), grad_x),
                                (sum(r[2] for r in of_ranks), affine)):
            assert value.dtype == expected.dtype
            assert (value - expected).abs().max() <= bound * (1 + expected.abs().max()), case
        for rank in of_ranks:
            for a, b, first in zip(rank[3], buffers, of_ranks[0][3]):
                assert torch.equal(a, first), case
                assert torch.allclose(a.double(), b.double(), rtol=bound, atol=bound), case


@pytest.mark.parametrize("ranks", SPLITS)
def test_blending_levels_are_those_of_cpp(cpp, found, ranks):
    """By its operators, from the ranks' own contexts and the statistics of all images."""
    for i, case in enumerate(BLENDS):
        mode, momentum, share, dtype = case
        if mode != "prior" or share == 1.0 or dtype != torch.float64:
            continue
        layer, x, _ = blending_layer_and_input(*case)
        first = layer._image_channels
        parts = x[:, first:].split(SPLITS[ranks])

        def norm(end, values):
            running = [v[first:].detach() for v in (
                getattr(layer, "running_mean_" + end), getattr(layer, "running_var_" + end),
                getattr(layer, "weight_" + end), getattr(layer, "bias_" + end))]
            var, mean = torch.var_mean(values, [0, 2, 3])
            scale = running[2] * (running[1].lerp(var, 6 / 9) + layer.eps).rsqrt()
            return scale, running[3] - running[0].lerp(mean, 6 / 9) * scale

        inner = norm("in", x[:, first:])
        counts = sum(cpp.context_build(part, *inner) for part in parts if len(part) > 0)
        values = 450 * 6 * 9 / 6
        context = cpp.context_blend(layer.context[first:], values * 3 / 9, counts, values * 6 / 9)
        quantiles = cpp.context_quantiles(context)
        u = cpp.quantile_apply(x[:, first:], quantiles, *inner)
        scale, shift = (v.view(-1, 1, 1) for v in norm("out", u))
        y = torch.cat([rank["blends"][ranks][i][0] for rank in found[:ranks]])[:, first:]
        levels = ((y - shift) / scale * layer.levels)
        assert (levels - u * layer.levels).abs().max() < 1e-6, case
        assert torch.equal(levels.round(), (u * layer.levels).round()), case


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("spatial", [3, 90, 600])  # with x for the backward pass, and with codes
def test_halves_are_each_alone(spatial, dtype):
    layer, x, grad = layer_and_input(0.5, spatial, dtype)
    alone = [qact.SyncQuantileActivation(2, dtype=dtype, scope=scope) if scope == "batch" else
             qact.QuantileActivation(2, dtype=dtype, scope=scope) for scope in ("image", "batch")]
    with torch.no_grad():
        for first, half in zip((0, 2), alone):
            for own, whole in zip(half.parameters(), layer.parameters()):
                own.copy_(whole[first:first + 2])
    leaf = x.clone().requires_grad_()
    y = layer(leaf)
    y.backward(grad)
    others = x.clone().requires_grad_()
    expected = torch.cat([half(part) for half, part in zip(alone, others.split(2, 1))], 1)
    expected.backward(grad)
    assert torch.equal(y, expected) and torch.equal(leaf.grad, others.grad)
    for own, parts in zip(layer.parameters(), zip(*(half.parameters() for half in alone))):
        assert torch.equal(own.grad, torch.cat([part.grad for part in parts]))
    with torch.no_grad():
        assert torch.equal(layer(x), y)


def test_images_are_ranked_during_the_first_reduction(found):
    maximum, total = str(dist.ReduceOp.MAX), str(dist.ReduceOp.SUM)
    summary = [f"{maximum} torch.float64", f"{total} torch.int64"]
    for rank, images in zip(found, SPLITS[max(SPLITS)]):
        gathered, binned, raised = rank["events"]
        of_images = ["images"] if images > 0 else []
        assert gathered == [*summary, *of_images, "waited", "waited", f"{total} torch.int32", "waited",
                            f"{total} torch.float64", *of_images, "waited"]
        assert raised == [*summary, "images", "waited", "waited"]
        same = found[0]["events"][1]
        assert [e for e in binned if e != "images"] == [e for e in same if e != "images"]
        assert binned[2:2 + len(of_images)] == of_images


def test_images_of_one_value_are_refused_without_any():
    layer = qact.SyncQuantileActivation(4, image_share=0.5)
    for images in (0, 3):
        with pytest.raises(RuntimeError, match="expected more than one value per image"):
            layer(torch.randn(images, 4, 1))


def test_no_images_on_any_rank_stay_none(found):
    for rank in found:
        assert [y.shape for y in rank["no images"]] == [(0, 3)] * 3


@pytest.mark.parametrize("case", CASES)
def test_is_the_operator_of_cpp(cpp, case):
    layer, x, _ = layer_and_input(*case)
    first = layer._image_channels
    if first == 4:
        return
    expected = cpp.quantile_layer_world(
        x[:, first:], *(v[first:].detach() for v in layer.parameters()), track=True)
    assert torch.equal(layer(x)[:, first:], expected[0])


def test_a_step_in_double_is_one_process(found):
    expected = train_step(network(), slice(0, 6), 1).state_dict()
    plain = network()
    for i in (1, 4):  # the layer of the batch, without rounds
        layer = qact.QuantileActivation(plain[i].num_features, image_share=plain[i].image_share)
        plain[i] = layer.double()
    in_batch = train_step(plain, slice(0, 6), 1).state_dict()
    for state in (rank[name] for rank in found for name in ("ddp", "fsdp")):
        for name, value in expected.items():
            assert (state[name] - value).abs().max() <= 1e-9 * (1 + value.abs().max()), name
    for name, value in expected.items():  # whose short contexts have gradients by value
        difference, change = in_batch[name] - value, value - network().state_dict()[name]
        assert difference.double().norm() <= 0.05 * change.double().norm() + 1e-6, name


def test_contexts_of_ranks_are_mixed(found):
    before = [rank["contexts"][0] for rank in found]
    for rank in found:
        context, mean, var = rank["contexts"][1]
        assert torch.equal(context, sum(b[0] for b in before) // len(found))
        means = torch.stack([b[1].double() for b in before])
        expected = torch.stack([b[2].double() for b in before]).mean(0) + means.var(0, correction=0)
        assert torch.allclose(mean.double(), means.mean(0), rtol=1e-5)
        assert torch.allclose(var.double(), expected, rtol=1e-5)


def test_buffers_of_another_rank_are_noticed(found):
    for rank in found:
        assert all(torch.equal(a, b) for a, b in rank["of other ranks"])


def test_wrong_use_is_an_error_on_every_rank(found):
    for rank in found:
        assert rank["refusals"] == (
            "[quantile_layer_world] expected 2 to 2^30 - 1 values per channel over all ranks, got 1")


def test_conversion_keeps_parameters_and_other_scopes():
    model = nn.Sequential(qact.QuantileActivation(4), qact.QuantileActivation(4, scope="image"))
    parameters = list(model.parameters())
    converted = qact.convert_sync_quantile_activation(model)
    assert isinstance(converted[0], qact.SyncQuantileActivation)
    assert type(converted[1]) is qact.QuantileActivation
    assert all(a is b for a, b in zip(parameters, converted.parameters()))
    with pytest.raises(ValueError, match="expected norm_in, norm_out and the scope batch"):
        qact.convert_sync_quantile_activation(qact.QuantileActivation(4, norm_out=False))


def test_conversion_leaves_layers_without_norms():
    model = nn.Sequential(qact.QuantileActivation(4), qact.QuantileClassifier(4, 3))
    converted = qact.convert_sync_quantile_activation(model)
    assert isinstance(converted[0], qact.SyncQuantileActivation)
    assert type(converted[1].activation) is qact.QuantileActivation


def test_conversion_of_a_layer_with_two_names():
    model = nn.Module()
    model.a = model.b = qact.QuantileActivation(4)
    qact.convert_sync_quantile_activation(model)
    assert isinstance(model.a, qact.SyncQuantileActivation) and model.a is model.b


def test_conversion_of_subclasses():
    norm = NormAct2d(6, drop_layer=lambda: nn.Dropout(0.9))
    converted, x = qact.convert_sync_quantile_activation(norm), torch.randn(8, 6, 4, 4)
    assert isinstance(converted, qact.SyncQuantileActivation) and isinstance(converted, NormAct2d)
    assert 0.8 < (converted(x) == 0).float().mean() < 1
    again = pickle.loads(pickle.dumps(copy.deepcopy(converted)))
    assert torch.equal(again.eval()(x), norm.eval()(x))
    with pytest.raises(ValueError, match="expected a tensor of 4 dimensions"):
        converted(x[0])

    class Doubled(qact.QuantileActivation):
        def forward(self, x):
            return 2 * super().forward(x)

    model = nn.Sequential(qact.QuantileActivation(4), Doubled(4))
    with pytest.raises(ValueError, match="expected layers with the forward of QuantileActivation"):
        qact.convert_sync_quantile_activation(model)
    assert type(model[0]) is qact.QuantileActivation


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_bias_may_change_before_the_backward_pass(share):
    """Images of so many values keep codes: nothing is computed anew from it."""
    layer = qact.SyncQuantileActivation(4, image_share=share)
    y = layer(torch.randn(8, 4, 24, 24, requires_grad=True))
    with torch.no_grad():
        layer.bias_in.add_(1)
        layer.bias_out.add_(1)
    y.sum().backward()
    assert layer.bias_in.grad is not None
