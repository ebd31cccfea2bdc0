"""The fused layer over several processes, connected by Gloo: as one process that has all images."""

import itertools

import pytest
import ranks as processes
import torch
import torch.distributed as dist
from conftest import LIBRARY

SPLITS = {1: (6,), 2: (1, 5), 4: (2, 0, 3, 1)}


def inputs(distribution, dtype, last, spatial):
    """The same on every rank: x, the gradient of y, and the affine parameters."""
    torch.manual_seed(3)
    x = torch.randn(6, 4, spatial, 5, dtype=torch.float64)
    if distribution == "ties":
        x = x.mul(2).round().clamp(min=0)
    if distribution == "tails":
        x = x.pow(9)
    if distribution == "nan":
        x[5, 1, 0, 0] = torch.nan
    grad = torch.randn(x.shape, dtype=torch.float64) + 0.3 + 0.1 * x.nan_to_num()
    vectors = [torch.randn(4) for _ in range(4)]
    layout = torch.channels_last if last else torch.contiguous_format
    return (x.to(dtype).contiguous(memory_format=layout), grad.to(dtype),
            [v.double() if dtype == torch.float64 else v for v in vectors])


CASES = list(itertools.product(
    ("normal", "ties", "tails", "nan"), (torch.float32, torch.float64, torch.bfloat16),
    (False, True), (5, 80)))


def step(case, images, group):
    x, grad, vectors = inputs(*case)
    x = x[images].detach().requires_grad_()
    vectors = [v.requires_grad_() for v in vectors]
    y, stats, context, values = torch.ops.qact.quantile_layer_world(
        x, *vectors, track=True, group=group)
    y.backward(grad[images])
    return (y.detach(), stats, context, values, x.grad, torch.stack([v.grad for v in vectors]))


def refusals(rank, group):
    """Fewer than two values on all ranks, and a group that nobody registered."""
    messages = []
    for x, name in ((torch.zeros(int(rank == 0), 3), group), (torch.zeros(2, 3), "nobody")):
        with pytest.raises((RuntimeError, ValueError)) as error:
            torch.ops.qact.quantile_layer_world(x, group=name)
        messages.append(str(error.value).splitlines()[0])
    return messages


def on_each_rank(rank, ranks, library):
    """All cases in groups of the first 1, 2 and 4 ranks."""
    torch.ops.load_library(library)
    out = {}
    for n, split in SPLITS.items():
        group = dist.new_group(range(n))
        if rank < n:
            own = slice(sum(split[:rank]), sum(split[:rank + 1]))
            out[n] = [step(case, own, group.group_name) for case in CASES]
    return out, refusals(rank, dist.group.WORLD.group_name)


@pytest.fixture(scope="module")
def ranks_found():
    return processes.run(on_each_rank, max(SPLITS), str(LIBRARY))


@pytest.fixture(scope="module")
def results(ranks_found):
    return {n: [found[n] for found, _ in ranks_found[:n]] for n in SPLITS}


def same(a, b):
    return torch.equal(a.nan_to_num(7.0), b.nan_to_num(7.0)) and torch.equal(a.isnan(), b.isnan())


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_is_one_process_to_the_bit(results, ranks):
    for i, case in enumerate(CASES):
        alone = step(case, slice(0, 6), "")
        found = [of_rank[i] for of_rank in results[ranks]]
        assert same(torch.cat([out[0] for out in found]), alone[0]), case
        for out in found:  # statistics, contexts and the number of values are those of all
            assert all(same(out[j].double(), alone[j].double()) for j in (1, 2, 3)), case


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_gradients_are_those_of_all_losses(results, ranks):
    for i, case in enumerate(CASES):
        alone = step(case, slice(0, 6), "")
        found = [of_rank[i] for of_rank in results[ranks]]
        bound = {torch.float64: 1e-12, torch.float32: 1e-6}.get(case[1], 1e-2)
        pairs = ((torch.cat([out[4] for out in found]), alone[4]),
                 (sum(out[5] for out in found), alone[5]))
        for grad, expected in pairs:
            assert torch.equal(grad.isnan(), expected.isnan()), case
            grad, expected = grad.nan_to_num(), expected.nan_to_num()
            assert (grad - expected).abs().max() <= bound * expected.abs().max(), case


def test_one_process_in_double_is_the_layer_of_the_batch():
    for case in CASES:
        if case[1] != torch.float64:
            continue
        alone = step(case, slice(0, 6), "")
        x, grad, vectors = inputs(*case)
        x.requires_grad_()
        y, stats, context = torch.ops.qact.quantile_layer(x, *vectors, track=True)
        y.backward(grad)
        # Up to 256 values one process adds up in another order, and has gradients by value.
        bound = 0.05 if x[:, 0].numel() <= 256 else 1e-9
        for found, expected in zip((alone[0], alone[1], alone[4]), (y, stats, x.grad)):
            found, expected = found.detach().nan_to_num(), expected.detach().nan_to_num()
            assert (found - expected).norm() <= bound * (1 + expected.norm()), case
        assert (alone[2] - context).abs().sum() <= 2 ** 17, case


def test_wrong_use_is_an_error_on_every_rank(ranks_found):
    for _, messages in ranks_found:
        assert messages == [
            "[quantile_layer_world] expected 2 to 2^30 - 1 values per channel over all ranks, got 1",
            "[quantile_layer_world] expected the name of a registered process group, got 'nobody'"]
