"""The model of docs/scale.md: a group that delays its rounds sees those that the model counts."""

import sys
import time

import pytest
import ranks as processes
import torch
import torch.distributed as dist
from conftest import LIBRARY, ROOT

sys.path.append(str(ROOT / "scripts"))
import world_cost  # noqa: E402
import world_overlap  # noqa: E402

DELAY = 0.02
IMAGES = 20
LAYERS = [(6, 500), (3, 2000), (5, 10)]  # two counts to a word, one, and gathered


def on_each_rank(rank, ranks, library):
    from delaying_group import DelayingGroup
    torch.ops.load_library(library)
    torch.manual_seed(rank)
    group = DelayingGroup(dist.group.WORLD, lambda size: DELAY, "delaying")
    out = []
    for channels, spatial in LAYERS:
        x = torch.randn(IMAGES, channels, spatial, requires_grad=True)
        group.rounds.clear()
        start = time.perf_counter()
        torch.ops.qact.quantile_layer_world(x, group="delaying")[0].backward(torch.ones_like(x))
        out.append((list(group.rounds), time.perf_counter() - start))
    return out


@pytest.fixture(scope="module")
def found():
    return processes.run(on_each_rank, 2, str(LIBRARY))


@pytest.mark.parametrize("layer", range(len(LAYERS)))
def test_rounds_have_the_models_bytes(found, layer):
    channels, spatial = LAYERS[layer]
    expected = world_cost.sizes(channels, 2 * IMAGES * spatial, 2)
    for of in found:
        sizes = of[layer][0]
        assert len(sizes) == len(expected)
        assert sizes == pytest.approx(expected, rel=0.01, abs=16)


@pytest.mark.parametrize("layer", range(len(LAYERS)))
def test_rounds_do_not_overlap(found, layer):
    for of in found:
        sizes, seconds = of[layer]
        assert seconds >= len(sizes) * DELAY


def test_a_layer_that_overlaps_is_its_halves():
    """Which the script checks itself, over Gloo, on every rank."""
    shapes = ((4, 6, 5, 5), (4, 6, 30, 40))
    for of in processes.run(world_overlap.on_each_rank, 2, str(LIBRARY), shapes, 1):
        assert set(of) == {(shape, delay, layer.__name__) for shape in shapes
                           for delay in world_overlap.DELAYS for layer in world_overlap.LAYERS}
