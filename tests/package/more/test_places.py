"""AOTInductor, ONNX, Lightning, DistributedDataParallel and FSDP2."""

import os

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
import torchvision_operators  # noqa: F401  (Lightning imports torchvision where it is)
from torch import nn

import qact


def network():
    model = nn.Sequential(nn.Conv2d(1, 4, 3), qact.QuantileActivation2d(4), nn.Flatten(),
                          nn.Linear(4 * 36, 3))
    for _ in range(3):
        model(torch.randn(32, 1, 8, 8))
    return model


@pytest.mark.parametrize("frozen", [False, True])
def test_aot_inductor(frozen, tmp_path):
    model = qact.freeze(network()) if frozen else network().eval()
    x = torch.randn(8, 1, 8, 8)
    with torch.no_grad():
        program = torch.export.export(
            model, (x,), dynamic_shapes=({0: torch.export.Dim("batch", min=2, max=64)},))
        package = torch._inductor.aoti_compile_and_package(
            program, package_path=str(tmp_path / "model.pt2"))
        found = torch._inductor.aoti_load_package(package)(x[:5])
        torch.testing.assert_close(found, model(x[:5]), rtol=1e-4, atol=1e-4)


def test_onnx(tmp_path):
    import onnxruntime

    model = network()
    frozen = qact.freeze(model, portable=True)
    x, path = torch.randn(8, 1, 8, 8), str(tmp_path / "model.onnx")
    torch.onnx.export(frozen, (x,), path, dynamo=True,
                      dynamic_shapes=({0: torch.export.Dim("batch", min=2, max=64)},))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {session.get_inputs()[0].name: x[:5].numpy()})
    with torch.no_grad():
        np.testing.assert_allclose(found, model.eval()(x[:5]).numpy(), rtol=1e-3, atol=1e-3)


def test_lightning(tmp_path):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = network()

        def training_step(self, batch, _):
            return F.cross_entropy(self.model(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    data = torch.utils.data.TensorDataset(torch.randn(64, 1, 8, 8), torch.randint(3, (64,)))
    module = Module()
    before = int(module.model[1].num_batches_tracked)
    lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
                      enable_progress_bar=False, enable_model_summary=False,
                      default_root_dir=tmp_path).fit(
        module, torch.utils.data.DataLoader(data, batch_size=32))
    assert int(module.model[1].num_batches_tracked) == before + 4


def _ranks(rank, folder, kind):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = network()
    if kind == "ddp":
        wrapped = nn.parallel.DistributedDataParallel(model)
    else:
        from torch.distributed.fsdp import fully_shard

        wrapped = fully_shard(model, mesh=dist.device_mesh.init_device_mesh("cpu", (2,)))
    torch.manual_seed(rank)
    for _ in range(2):
        wrapped(torch.randn(16, 1, 8, 8) + rank).square().mean().backward()
    weight = model[1].weight_out.grad
    weight = weight.full_tensor() if hasattr(weight, "full_tensor") else weight
    own = model[1].context.clone()
    qact.sync_contexts(model)
    torch.save((weight, own, dict(model[1].named_buffers())), f"{folder}/{rank}")
    dist.barrier()
    os._exit(0)  # as tests/python/ranks.py ends


@pytest.mark.parametrize("kind", ["ddp", "fsdp2"])
def test_two_processes(kind, tmp_path):
    torch.multiprocessing.spawn(_ranks, (str(tmp_path), kind), nprocs=2)
    (first, context, state), (second, other, like) = (
        torch.load(tmp_path / str(rank)) for rank in range(2))
    assert torch.equal(first, second), "gradients are those of all"
    assert not torch.equal(context, other), "each has ranked within its own batch"
    assert torch.equal(state["context"], (context + other) // 2)
    for name, value in state.items():
        assert torch.equal(value, like[name]), name
