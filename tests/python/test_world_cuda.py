"""The fused layer over processes that share a GPU, connected by Gloo: the CPU's bits."""

import itertools

import pytest
import ranks as processes
import torch
import torch.distributed as dist
from conftest import LIBRARY
from test_world import inputs, same

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")

SPLITS = {1: (6,), 2: (1, 5), 3: (2, 0, 4)}
CASES = list(itertools.product(
    ("normal", "ties", "tails", "nan"), (torch.float32, torch.bfloat16, torch.float16),
    (False, True), (5, 80)))


def step(case, images, group, device):
    x, grad, vectors = inputs(*case)
    # To the device before the layout is lost.
    x = x[images].to(device).detach().requires_grad_()
    vectors = [v.to(device).requires_grad_() for v in vectors]
    y, stats, context, values = torch.ops.qact.quantile_layer_world(
        x, *vectors, track=True, group=group)
    y.backward(grad[images].to(device))
    return [t.cpu() for t in (y.detach(), stats, context, values, x.grad,
                              torch.stack([v.grad for v in vectors]))]


def on_each_rank(rank, ranks, library):
    torch.ops.load_library(library)
    out = {}
    for n, split in SPLITS.items():
        group = dist.new_group(range(n))
        if rank < n:
            own = slice(sum(split[:rank]), sum(split[:rank + 1]))
            out[n] = [step(case, own, group.group_name, "cuda") for case in CASES]
    return out


@pytest.fixture(scope="module")
def results():
    found = processes.run(on_each_rank, max(SPLITS), str(LIBRARY))
    return {n: [of[n] for of in found[:n]] for n in SPLITS}


@pytest.mark.parametrize("n", SPLITS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_one_process_on_the_cpu(results, case, n):
    y, stats, context, values, grad, affine = step(case, slice(None), "", "cpu")
    found = [of[CASES.index(case)] for of in results[n]]
    assert same(torch.cat([f[0] for f in found]), y)
    for f in found:
        assert same(f[1], stats) and torch.equal(f[2], context) and f[3] == values
    # The CPU keeps the gradient's maps to 1/32767 of the largest, which tails feel.
    exact = case[1] == torch.float32
    torch.testing.assert_close(torch.cat([f[4] for f in found]), grad, equal_nan=True,
                               rtol=1e-3 if exact else 2e-2,
                               atol=(1e-3 if exact else 1e-2) * grad.nan_to_num().abs().max().item())
    torch.testing.assert_close(sum(f[5] for f in found), affine, equal_nan=True, rtol=1e-4,
                               atol=1e-4 * affine.nan_to_num().abs().max().item())
