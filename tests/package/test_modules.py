"""The module and what is set in all of them."""

import copy
import ctypes
import pickle

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import qact

MODES = ("tracked", "batch", "prior", "stream")


def trained(**options):
    layer = qact.QuantileActivation(6, **options)
    for _ in range(3):
        layer(torch.randn(30, 6, 4, 4) * 2 + 1)
    return layer


def test_names_types_and_first_values_of_the_state():
    state = qact.QuantileActivation(3).state_dict()
    assert {name: (value.dtype, tuple(value.shape)) for name, value in state.items()} == {
        **{name: (torch.float32, (3,)) for name in (
            "weight_in", "bias_in", "running_mean_in", "running_var_in", "weight_out", "bias_out",
            "running_mean_out", "running_var_out")},
        "context": (torch.int64, (3, 256)), "num_batches_tracked": (torch.int64, ())}
    assert state["running_mean_out"][0] == 0.5
    assert state["context"].sum() == 3 * 1024 * 65536


@pytest.mark.parametrize("options,absent", [
    ({"affine": False}, {"weight_in", "bias_in", "weight_out", "bias_out"}),
    ({"affine_in": False}, {"weight_in", "bias_in"}),
    ({"norm_out": False}, {"weight_out", "bias_out", "running_mean_out", "running_var_out"}),
    ({"track_running_stats": False},
     {"running_mean_in", "running_var_in", "running_mean_out", "running_var_out", "context",
      "num_batches_tracked"})])
def test_what_options_leave_out(options, absent):
    everything = set(qact.QuantileActivation(3).state_dict())
    layer = qact.QuantileActivation(3, **options)
    assert everything - set(layer.state_dict()) == absent
    x = torch.randn(10, 3, 4)
    assert layer(x).shape == x.shape
    assert layer.eval()(x).shape == x.shape


@pytest.mark.parametrize("options,message", [
    ({"num_features": 0}, "num_features > 0"), ({"levels": 256}, "levels in 2..255"),
    ({"scope": "world"}, "a scope of"), ({"scope": "group"}, "group_images > 0"),
    ({"levels": 10.5}, "levels to be an int, got 10.5"),
    ({"levels": "10"}, "levels to be an int, got '10'"),
    ({"momentum": "x"}, "momentum to be a number, got 'x'"),
    ({"group_images": 2}, "group_images > 0"), ({"image_share": 2}, r"image_share in \[0, 1\]"),
    ({"image_share": 0.5, "norm_in": False}, "norm_in and norm_out"),
    ({"context_mode": "test"}, "a mode of"), ({"prior": -1}, "a finite prior"),
    ({"momentum": 2}, r"momentum in \[0, 1\]"), ({"algorithm": "fast"}, "algorithm auto"),
    ({"eps": 0}, "a finite eps")])
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        qact.QuantileActivation(**{"num_features": 3, **options})


@pytest.mark.parametrize("kind,good", [("1d", (2, 3)), ("2d", (4,)), ("3d", (5,))])
def test_dimensions(kind, good):
    layer = getattr(qact, "QuantileActivation" + kind)(3)
    for dims in range(1, 6):
        x = torch.randn([8, 3, 2, 2, 2][:dims])
        if dims in good:
            layer(x)
        else:
            with pytest.raises(ValueError, match=rf"\[QuantileActivation{kind}\] expected a tensor"):
                layer(x)


def test_channels_are_checked():
    with pytest.raises(ValueError, match="expected 3 channels in dimension 1"):
        qact.QuantileActivation(3)(torch.randn(8, 4))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("options", [{}, {"image_share": 0.5}, {"scope": "image"}])
def test_empty_batches_in_eval(mode, options):
    layer = trained(context_mode=mode, **options).eval()
    before = copy.deepcopy(layer.state_dict())
    x = torch.randn(0, 6, 4, 4, requires_grad=True)
    y = layer(x)
    assert y.shape == x.shape
    y.sum().backward()
    for name, value in layer.state_dict().items():
        assert torch.equal(value, before[name])


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_empty_batches_in_training_are_refused(device):
    with pytest.raises(RuntimeError, match="expected more than one value per channel"):
        qact.QuantileActivation(6, device=device)(torch.randn(0, 6, 4, 4, device=device))


def test_tracked_single_samples_do_not_see_each_other():
    layer, x = trained().eval(), torch.randn(10, 6, 4, 4)
    assert torch.equal(layer(x), torch.cat([layer(image[None]) for image in x]))


def test_tracked_with_and_without_gradients_agree():
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        layer = trained().eval().to(dtype)
        assert layer.context.dtype == torch.int64
        x = torch.randn(10, 6, 4, 4, dtype=dtype)
        with torch.no_grad():
            found = layer(x)
        assert torch.equal(found, layer(x).detach())


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("mode", ["tracked", "prior", "stream"])
def test_both_halves_are_each_by_itself_with_and_without_gradients(mode, dtype, layout):
    layer = trained(image_share=0.5, context_mode=mode).to(dtype).eval()
    x = torch.randn(10, 6, 4, 4).to(dtype).to(memory_format=layout)
    with torch.no_grad():
        found = copy.deepcopy(layer)(x)  # both written to one output
        images, others = (qact.QuantileActivation(3, **options).to(dtype).eval() for options in (
            {"scope": "image"}, {"context_mode": mode}))
        for part, rows in ((images, slice(0, 3)), (others, slice(3, 6))):
            part.load_state_dict({name: value if value.dim() == 0 else value[rows]
                                  for name, value in layer.state_dict().items()})
        expected = torch.cat([images(x[:, :3]), others(x[:, 3:])], 1)
    assert torch.equal(found, expected) and found.is_contiguous(memory_format=layout)
    inputs = [x.clone().requires_grad_() for _ in range(2)]
    y = copy.deepcopy(layer)(inputs[0])
    assert torch.equal(y, expected)
    y.square().sum().backward()
    others.load_state_dict({name: value if value.dim() == 0 else value[3:]
                            for name, value in layer.state_dict().items()})
    torch.cat([images(inputs[1][:, :3]), others(inputs[1][:, 3:])], 1).square().sum().backward()
    assert torch.equal(inputs[0].grad, inputs[1].grad)


def test_batch_follows_an_increasing_map():
    layer, x = trained(context_mode="batch", affine_in=False).eval(), torch.randn(200, 6, 2, 2)
    torch.testing.assert_close(layer(x), layer(x * 3 + 5), atol=0.05, rtol=0)


def test_stream_moves_and_others_do_not():
    for mode in MODES:
        layer = trained(context_mode=mode).eval()
        before = layer.context.clone()
        layer(torch.randn(30, 6, 4, 4))
        assert torch.equal(before, layer.context) == (mode != "stream")


@pytest.mark.parametrize("options,shape", [
    ({}, (4, 6, 0)), ({"image_share": 0.5}, (4, 6)),
    ({"norm_in": False, "norm_out": False}, (4, 6, 0))])
def test_a_stream_that_raises_has_not_moved(options, shape):
    layer = trained(context_mode="stream", **options).eval()
    before = copy.deepcopy(layer.state_dict())
    for x in (torch.randn(shape), torch.ones(4, 6, 3, dtype=torch.int64)):
        for enabled in (False, True):
            with torch.set_grad_enabled(enabled), pytest.raises(RuntimeError, match="expected"):
                layer(x)
    for name, value in layer.state_dict().items():
        assert torch.equal(value, before[name]), name


@pytest.mark.parametrize("options", [{}, {"norm_out": False}, {"norm_in": False},
                                     {"norm_out": False, "momentum": None}])
def test_a_batch_that_raises_is_not_remembered(options):
    layer = trained(**options)
    before = copy.deepcopy(layer.state_dict())
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match="tangents"):
        x = torch.randn(30, 6, 4, 4)
        layer(forward_ad.make_dual(x, torch.ones_like(x)))
    for name, value in layer.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_a_changed_context_is_noticed():
    layer, x = trained().eval(), torch.randn(10, 6, 4, 4)
    with torch.no_grad():
        before = layer(x)
        other = trained()
        layer.load_state_dict(other.state_dict())
        assert torch.equal(layer(x), other.eval()(x)) and not torch.equal(layer(x), before)
        layer.running_mean_in.data += 1  # no version counter tells of it
        assert not torch.equal(layer(x), other(x))


def fresh(layer, x):
    """What a copy says, which remembers nothing of its original's calls."""
    return copy.deepcopy(layer)(x)


@pytest.mark.parametrize("options", [{}, {"image_share": 0.5}, {"momentum": None},
                                     {"norm_in": False, "norm_out": False},
                                     {"scope": "group", "group_images": 4}])
def test_training_between_evaluations_is_noticed(options):
    layer, x = trained(**options).eval(), torch.randn(10, 6, 4, 4)
    with torch.no_grad():
        before = layer(x)
        for _ in range(20):
            layer.train()((torch.randn(30, 6, 4, 4) * 2).exp())
        layer.eval()
        assert torch.equal(layer(x), fresh(layer, x)) and not torch.equal(layer(x), before)
    assert torch.equal(layer(x), fresh(layer, x))


def test_a_context_that_is_written_behind_torchs_back_is_noticed():
    """As collectives and other processes do, without a version counter."""
    layer, x = trained().eval(), torch.randn(10, 6, 4, 4)
    with torch.no_grad():
        before = layer(x)
        other = torch.randint(0, 1 << 20, layer.context.shape)
        ctypes.memmove(layer.context.data_ptr(), other.data_ptr(), other.nbytes)
        assert torch.equal(layer(x), fresh(layer, x)) and not torch.equal(layer(x), before)
        layer.context.data[5, 255] += 1 << 30
        assert torch.equal(layer(x), fresh(layer, x))
        layer.levels = 7
        assert torch.equal(layer(x), fresh(layer, x))


def test_fake_quantiles_are_not_kept():
    layer, x = trained().eval(), torch.randn(10, 6, 4, 4)
    with FakeTensorMode(allow_non_fake_inputs=True):
        layer(x)
    assert torch.equal(layer(x), fresh(layer, x))


def test_gradients_after_inference_mode():
    layer, x = trained().eval(), torch.randn(10, 6, 4, 4, requires_grad=True)
    with torch.inference_mode():
        expected = layer(x)
    y = layer(x)
    y.sum().backward()
    assert torch.equal(y, expected) and x.grad.abs().sum() > 0


def test_copies_pickles_and_types():
    layer = trained().eval()
    x = torch.randn(10, 6, 4, 4)
    expected = layer(x)
    for copied in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(copied(x), expected)
    half = copy.deepcopy(layer).half()
    assert half.context.dtype == torch.int64 and half.running_mean_in.dtype == torch.float16
    assert half(x.half()).dtype == torch.float16
    half.train()(x.half()).sum().backward()
    assert half.weight_out.grad.dtype == torch.float16


@pytest.mark.parametrize("mode", MODES)
def test_a_layer_on_another_device_is_named(mode):
    layer, x = trained(context_mode=mode).eval(), torch.randn(10, 6, 4, 4)
    with pytest.raises(RuntimeError, match=r"\] expected .* on meta, as x, got cpu|on cpu, as the"):
        layer(x.to("meta"))
    with pytest.raises(RuntimeError, match=r"\] expected .* on (cpu, as x|meta, as the layer), got"):
        layer.to("meta")(x)


def test_built_on_the_meta_device():
    layer = qact.QuantileActivation(6, device="meta")
    layer = layer.to_empty(device="cpu")
    layer.reset_parameters()
    x = torch.randn(10, 6, 4, 4)
    assert torch.equal(layer(x), qact.QuantileActivation(6)(x))


def test_channels_last_is_kept():
    x = torch.randn(8, 6, 4, 4).to(memory_format=torch.channels_last)
    layer = trained()
    for mode in ("train", *MODES):
        layer.train(mode == "train")
        layer.context_mode = "tracked" if mode == "train" else mode
        assert layer(x).is_contiguous(memory_format=torch.channels_last), mode


def test_autocast_takes_the_type_of_the_input():
    layer = trained()
    for mode in ("train", *MODES):
        layer.train(mode == "train")
        layer.context_mode = "tracked" if mode == "train" else mode
        with torch.autocast("cpu", torch.bfloat16):
            assert layer(torch.randn(8, 6, 4, 4)).dtype == torch.float32, mode
            assert layer(torch.randn(8, 6, 4, 4).bfloat16()).dtype == torch.bfloat16, mode


def test_momentum_none_is_a_cumulative_average():
    layer = qact.QuantileActivation(6, momentum=None)
    batches = [torch.randn(30, 6, 4, 4) + i for i in range(4)]
    for x in batches:
        layer(x)
    expected = torch.stack([x.mean((0, 2, 3)) for x in batches]).mean(0)
    torch.testing.assert_close(layer.running_mean_in, expected)


def network():
    return nn.Sequential(nn.Conv2d(3, 6, 3), qact.QuantileActivation2d(6), nn.Flatten(),
                         nn.Linear(6 * 36, 8), qact.QuantileActivation1d(8))


def test_set_context_mode():
    model = network()
    qact.set_context_mode(model, "prior", prior=4)
    assert (model[1].context_mode, model[1].prior) == ("prior", 4)
    with pytest.raises(ZeroDivisionError):
        with qact.set_context_mode(model, "batch"):
            assert model[4].context_mode == "batch"
            1 / 0
    assert (model[4].context_mode, model[4].prior) == ("prior", 4)
    with pytest.raises(ValueError, match="expected a mode of"):
        qact.set_context_mode(model, "other")
    with pytest.raises(ValueError, match="expected a model with a QuantileActivation"):
        qact.set_context_mode(nn.ReLU(), "batch")


def test_a_prior_is_kept_where_none_is_given():
    layer = qact.QuantileActivation(6, prior=4.0)
    with qact.set_context_mode(layer, "prior"):
        assert layer.prior == 4.0
    with qact.set_context_mode(layer, "batch", prior=8.0):
        assert layer.prior == 8.0
    assert layer.prior == 4.0
    with pytest.raises(ValueError, match="expected a finite prior"):
        qact.set_context_mode(layer, "prior", prior=-1)


@pytest.mark.parametrize("options", [{}, {"scope": "image"}, {"image_share": 0.5}])
def test_a_mode_that_does_not_exist_is_no_other(options):
    layer = trained(**options).eval()
    layer.context_mode = "Batch"
    with pytest.raises(ValueError, match="expected a mode of .*, got 'Batch'"):
        layer(torch.randn(10, 6, 4, 4))


def test_update_contexts():
    model = network().eval()
    batches = [(torch.randn(16, 3, 8, 8) + 2, None) for _ in range(3)]
    qact.update_contexts(batches, model)
    assert not model.training and model[1].momentum == 0.1
    assert int(model[1].num_batches_tracked) == 3
    seen = model[0](torch.cat([x for x, _ in batches])).mean((0, 2, 3))
    torch.testing.assert_close(model[1].running_mean_in, seen)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match="expected a loader with a batch"):
        qact.update_contexts(iter([]), model)
    with pytest.raises(RuntimeError):
        qact.update_contexts([*batches, torch.randn(16, 5, 8, 8)], model)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert not model.training and model[1].momentum == 0.1
    with pytest.raises(ValueError, match="expected a model with"):
        qact.update_contexts(batches, nn.ReLU())


def test_reset_running_stats():
    model = network()
    model(torch.randn(16, 3, 8, 8))
    qact.reset_running_stats(model)
    for name, value in qact.QuantileActivation(6).state_dict().items():
        if "weight" not in name and "bias" not in name:
            assert torch.equal(model[1].state_dict()[name], value)


def test_an_average_of_models_and_its_contexts():
    """EMA truncates int64 contexts; update_contexts makes them anew."""
    model = network()
    average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99))
    batches = [torch.randn(16, 3, 8, 8) for _ in range(2)]
    for x in batches:
        model(x)
        average.update_parameters(model)
    qact.update_contexts(batches, average)
    assert int(average.module[1].num_batches_tracked) == 2


def test_classifier_learns_and_predicts():
    x = torch.randn(600, 8)
    labels = (x @ torch.randn(8, 4)).argmax(1)
    for prior in ("quantile", "loss"):
        model = qact.QuantileClassifier(8, 4, class_prior=prior)
        optimizer = torch.optim.Adam(model.parameters(), 0.05)
        for _ in range(60):
            optimizer.zero_grad()
            model.loss(model(x), labels).backward()
            optimizer.step()
        assert (model.eval().predict(x) == labels).float().mean() > 0.85, prior


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("autocast", [False, True])
def test_a_classifier_of_many_classes_in_16_bits(dtype, autocast):
    """Half of one of 1,000 levels is lost in them, and the loss at a probability of 1 explodes."""
    model, x, labels = qact.QuantileClassifier(16, 100), torch.randn(500, 16), torch.arange(500) % 100
    expected = model(x)
    model.loss(expected, labels).backward()
    steepest = model.linear.weight.grad.norm()
    model.zero_grad()
    if not autocast:
        model, x = model.to(dtype), x.to(dtype)
    with torch.autocast("cpu", dtype, enabled=autocast):
        p = model(x)
    model.loss(p, labels).backward()
    assert p.dtype == torch.float32 and p.min() > 0 and p.max() < 1
    assert model.linear.weight.grad.norm() < 2 * steepest
    assert model.predict(x).shape == (500,)


def test_a_small_network_learns_and_adapts():
    """Two classes of noise patterns; then the same through an increasing map."""
    pattern = torch.randn(2, 1, 8, 8)
    labels = torch.randint(2, (512,))
    x = pattern[labels] + torch.randn(512, 1, 8, 8) * 0.7
    model = nn.Sequential(nn.Conv2d(1, 8, 3), qact.QuantileActivation2d(8), nn.Conv2d(8, 8, 3),
                          qact.QuantileActivation2d(8), nn.Flatten(), nn.Linear(128, 2))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for epoch in range(6):
        for i in range(0, 512, 128):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[i:i + 128]), labels[i:i + 128]).backward()
            optimizer.step()
    model.eval()

    def accuracy(images):
        with torch.no_grad():
            return (model(images).argmax(1) == labels).float().mean()

    assert accuracy(x) > 0.95
    shifted = torch.exp(x * 0.7) * 3 - 8
    plain = accuracy(shifted)
    with qact.set_context_mode(model, "batch"):
        assert accuracy(shifted) > max(0.9, plain)
