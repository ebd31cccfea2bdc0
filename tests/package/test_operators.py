"""Every operator: opcheck, tensors of a wrong device, type, shape and layout, odd layouts."""

import pytest
import torch
from calls import NUMBERS, calls, op, ops, tensor_places, vectors
from torch.library import opcheck

NAMES = [schema.name.split("::")[1] for schema in torch._C._jit_get_all_schemas()
         if schema.name.startswith("qact_python::")]


def test_each_operator_has_a_sound_call():
    assert sorted(NAMES) == sorted([*calls(), "constants"])


@pytest.mark.parametrize("name", calls())
def test_opcheck(name):
    opcheck(op(name), calls()[name])


@pytest.mark.parametrize("change", ["grad", "float64", "bfloat16", "channels_last", "transposed",
                                    "image", "group", "untracked", "kept", "kept image",
                                    "kept group"])
def test_opcheck_of_the_layer(change):
    x, *rest = calls()["layer_forward"]
    four, numbers = rest[:4], list(rest[4:])
    if change == "grad":
        x, four = x.requires_grad_(), [v.requires_grad_() for v in four]
    elif change in ("float64", "bfloat16"):
        x = x.to(getattr(torch, change)).requires_grad_()
    elif change == "channels_last":
        x = x.to(memory_format=torch.channels_last).requires_grad_()
    elif change == "transposed":
        x = x.transpose(2, 3).requires_grad_()
    elif change == "image":
        numbers[6], x = 1, x.requires_grad_()
    elif change == "group":
        numbers[7], x = 3, x.requires_grad_()
    elif change.startswith("kept"):  # contexts that are long enough for it
        x = torch.randn(5, 3, 24, 24, requires_grad=True)
        numbers[6], numbers[7] = int(change == "kept image"), 2 * (change == "kept group")
    else:
        numbers[8:] = False, False
    opcheck(ops.layer_forward.default, (x, *four, *numbers))


@pytest.mark.parametrize("name", ["quantile_apply", "activation_forward"])
def test_opcheck_with_gradients(name):
    first, *rest = calls()[name]
    rest = [r.requires_grad_() if isinstance(r, torch.Tensor) and r.dim() == 1 else r for r in rest]
    opcheck(op(name), (first.requires_grad_(), *rest))


@pytest.mark.parametrize("name,place", tensor_places())
def test_a_tensor_on_another_device_is_refused(name, place):
    arguments = list(calls()[name])
    arguments[place] = arguments[place].to("meta")
    with pytest.raises(RuntimeError, match=r"\] expected .* on (cpu|meta)"):
        op(name)(*arguments)


@pytest.mark.parametrize("name,place", tensor_places())
def test_a_tensor_of_another_type_is_refused(name, place):
    arguments = list(calls()[name])
    arguments[place] = arguments[place].to(torch.int16)
    with pytest.raises(RuntimeError, match=r"\] expected "):
        op(name)(*arguments)


@pytest.mark.parametrize("name,place", tensor_places())
def test_a_tensor_of_another_shape_is_refused(name, place):
    arguments = list(calls()[name])
    value = arguments[place]
    # x itself may have any shape; then the others do not fit.
    arguments[place] = value[:, :2] if value.dim() == 4 else value.new_ones(7)
    if name in ("activation_forward", "quantiles"):
        return
    with pytest.raises(RuntimeError, match=r"\] expected "):
        op(name)(*arguments)


def test_all_meta_gives_meta():
    x, *rest = calls()["layer_forward"]
    rest = [r.to("meta") if isinstance(r, torch.Tensor) else r for r in rest]
    y, kept, stats, context = ops.layer_forward(x.to("meta"), *rest)
    real = ops.layer_forward(*calls()["layer_forward"])
    assert [t.shape for t in (y, kept, stats, context)] == [t.shape for t in real]


@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "transposed"])
def test_opcheck_of_both_halves_tracked(layout):
    x, *rest = calls()["layer_tracked"]
    if layout == "channels_last":
        x = x.to(memory_format=torch.channels_last)
    elif layout == "transposed":
        x = x.transpose(2, 3)
    rest[0], rest[-4] = rest[0][1:], 1
    opcheck(ops.layer_tracked.default, (x, *rest))


def test_both_halves_tracked_are_each_by_itself():
    x, quantiles, *rest = calls()["layer_tracked"]
    vectors = rest[:8]
    for layout in (torch.contiguous_format, torch.channels_last):
        found = ops.layer_tracked(x.to(memory_format=layout), quantiles[2:], *vectors, 1e-5, True,
                                  2, 100.0, 0.5, 0)
        affine = [v[:2] for v in (*vectors[2:4], *vectors[6:])]
        images = ops.layer_forward(x[:, :2], *affine, 1e-5, 10, 100.0, 0.5, 0.5, 0, 2, 0, False,
                                   False)[0]
        others = ops.layer_tracked(x[:, 2:], quantiles[2:], *(v[2:] for v in vectors), 1e-5, True,
                                   0, 100.0, 0.5, 0)
        assert found.is_contiguous(memory_format=layout)
        assert torch.equal(found, torch.cat([images, others], 1))
    with pytest.raises(RuntimeError, match=r"expected quantiles .* of shape \(1,levels\)"):
        ops.layer_tracked(x, quantiles, *vectors, 1e-5, True, 2, 100.0, 0.5, 0)
    with pytest.raises(RuntimeError, match=r"expected image_channels in 0..3"):
        ops.layer_tracked(x, quantiles, *vectors, 1e-5, True, -1, 100.0, 0.5, 0)


def test_the_backward_pass_asks_for_x_where_contexts_are_short():
    grad_y, _, *rest = calls()["layer_backward"]
    with pytest.raises(RuntimeError, match="expected x, which is needed"):
        ops.layer_backward(grad_y, None, *rest)


def test_what_is_written_in_place_is_contiguous():
    arguments = list(calls()["layer_track"])
    arguments[0] = torch.ones(1).expand(3)
    with pytest.raises(RuntimeError, match=r"\[layer_track\] expected mean_in to be contiguous"):
        ops.layer_track(*arguments)


def test_one_value_per_channel_has_no_variance():
    with pytest.raises(RuntimeError, match="expected more than one value per channel"):
        ops.layer_forward(torch.randn(1, 3), *vectors(4), *NUMBERS, 0, 0, False, False)
    arguments = list(calls()["layer_track"])
    arguments[9] = 1
    with pytest.raises(RuntimeError, match=r"expected a number n > 1"):
        ops.layer_track(*arguments)


@pytest.mark.parametrize("place,value,message", [
    (1, 1, "levels in 2..255"), (1, 256, "levels in 2..255"), (2, 0.0, "a finite bound > 0"),
    (3, 1.0, r"positive_share in \(0, 1\)"), (4, -1.0, "a finite bandwidth > 0"),
    (5, 3, "algorithm 0"), (0, 0.0, "a finite eps > 0"), (6, 4, "image_channels in 0..3"),
    (7, -1, "context_images >= 0")])
def test_numbers_out_of_range_are_refused(place, value, message):
    numbers = [*NUMBERS, 0, 0]
    numbers[place] = value
    with pytest.raises(RuntimeError, match=message):
        ops.layer_forward(torch.randn(4, 3), *vectors(4), *numbers, False, False)
