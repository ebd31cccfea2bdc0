"""Noise below a grey level: its range, its draws, and the C++ program's pattern."""

import pytest
import torch

import qact


def test_stays_within_half_a_step():
    x = torch.randint(256, (3, 2, 7, 9)) / 255
    for module in (qact.Dither(), qact.Dither().eval()):
        noise = (module(x) - x) * 255
        assert noise.abs().max() <= 0.5001
        assert noise.abs().max() > 0.45
        assert abs(noise.mean()) < 0.1
        assert noise.unique().numel() > 100


def test_draws_anew_in_training_alone():
    x = torch.zeros(4, 1, 5, 5)
    module = qact.Dither()
    assert not torch.equal(module(x), module(x))
    module.eval()
    assert torch.equal(module(x), module(x))
    assert torch.equal(module(x)[0], module(x[:1])[0])
    assert module(x)[0].unique().numel() == 25


# The same numbers stand in tests/data/augment_test.cpp.
def test_has_the_pattern_of_the_program():
    noise = qact.Dither(65536.0).eval()(torch.zeros(1, 2, 5)) + 32768 - 0.5
    assert noise.flatten().round().int().tolist() == [
        16161, 48801, 50879, 5334, 51945, 1186, 56988, 24541, 9672, 31629]


def test_takes_a_step_for_each_channel():
    x = torch.zeros(1, 2, 300)
    noise = qact.Dither([1.0, 0.25]).eval()(x).abs().amax((0, 2))
    assert 0.45 < noise[0] <= 0.5 and 0.11 < noise[1] <= 0.125
    with pytest.raises(ValueError, match="a step for each of 2 channels, got"):
        qact.Dither([1.0, 2.0, 3.0])(x)


def test_refuses_bytes():
    with pytest.raises(ValueError, match="expected floating images .*, got torch.uint8"):
        qact.Dither()(torch.zeros(1, 1, 2, 2, dtype=torch.uint8))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_keeps_the_type(dtype):
    assert qact.Dither().eval()(torch.zeros(2, 3, 4, 4, dtype=dtype)).dtype == dtype


def test_compiles_and_exports_with_a_dynamic_batch():
    module = qact.Dither().eval()
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True, dynamic=True)
    batch = torch.export.Dim("batch")
    exported = torch.export.export(module, (torch.zeros(2, 3, 4, 4),),
                                   dynamic_shapes=({0: batch},)).module()
    for count in (2, 5):
        x = torch.rand(count, 3, 4, 4)
        assert torch.equal(compiled(x), module(x))
        assert torch.equal(exported(x), module(x))
