"""What convert must not change: what a model does in train() and in eval(), in place, with BatchNorms
of other kinds, types and devices, its state and its hooks; and dimensions that are no channels."""

import copy

import pytest
import torch
import torch.nn.functional as F
from networks import ResNet
from torch import nn

import qact

IMAGES = (8, 3, 9, 7)
TOKENS = (4, 5, 8)


def layers(model):
    return {name: m for name, m in model.named_modules() if isinstance(m, qact.QuantileActivation)}


class DropPath(nn.Module):
    """timm's, and torchvision's StochasticDepth alike."""

    def forward(self, x):
        if not self.training:
            return x
        return x * x.new_empty(x.shape[0], 1, 1, 1).bernoulli_(0.5) / 0.5


class Model(nn.Module):
    """forward is a function of the model and x."""

    def __init__(self, function):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.path, self.same, self.drop = DropPath(), nn.Identity(), nn.Dropout(0.5)
        self.fc, self.norm, self.embed = nn.Linear(8, 16), nn.LayerNorm(8), nn.Embedding(9, 8)
        self.whole = nn.LayerNorm((6, 9, 7))
        self.root, self.w = nn.RMSNorm(8), nn.Parameter(torch.randn(8, 8))
        self.pool, self.conv1d = nn.MaxPool2d(2), nn.Conv1d(3, 6, 1)
        self.function = function

    def forward(self, x):
        return self.function(self, x)


TRAINING = {
    "F.dropout": lambda m, x: F.dropout(F.relu(m.conv(x)), 0.5, m.training),
    "F.dropout1d": lambda m, x: F.dropout1d(F.relu(m.conv(x)).flatten(2), 0.5, m.training),
    "torch.dropout": lambda m, x: torch.dropout(F.relu(m.conv(x)), 0.5, m.training),
    "feature_alpha_dropout": lambda m, x: F.feature_alpha_dropout(F.relu(m.conv(x)), 0.5, m.training),
    "rrelu": lambda m, x: F.rrelu(F.relu(m.conv(x)) - 1, training=m.training),
    "if": lambda m, x: F.relu(m.conv(x)) * 0 + 7 if m.training else F.relu(m.conv(x)),
    "of a part": lambda m, x: F.relu(m.conv(x)) + (1 if m.bn.training else 0),
}


@pytest.mark.parametrize("name", TRAINING)
@pytest.mark.parametrize("training", [False, True])
def test_what_depends_on_training_is_refused(name, training):
    model = Model(TRAINING[name]).train(training)
    with pytest.raises(ValueError, match="expected the same calls in train.*Model"):
        qact.convert(model, torch.randn(IMAGES), sites="all")


@pytest.mark.parametrize("training", [False, True])
def test_a_module_that_depends_on_training_is_kept(training):
    model = Model(lambda m, x: m.path(F.relu(m.bn(m.conv(x))))).train(training)
    converted, x = qact.convert(model, torch.randn(IMAGES), sites="all"), torch.randn(64, 3, 9, 7)
    assert isinstance(converted.path, DropPath) and converted.training == training
    dropped = (converted.train()(x).flatten(1) == 0).all(1).float().mean()
    assert 0.2 < dropped < 0.8
    assert torch.equal(converted.eval()(x), converted(x))
    assert not (converted(x).flatten(1) == 0).all(1).any()


def test_a_module_that_depends_on_training_and_activates_is_refused():
    class Noisy(nn.Module):
        def forward(self, x):
            return F.relu(x + torch.randn_like(x) if self.training else x)

    with pytest.raises(ValueError, match="expected the same calls in train.*module '1'"):
        qact.convert(nn.Sequential(nn.Linear(4, 4), Noisy()), torch.randn(8, 4), sites="all")


def geglu(m, x):
    a, b = m.fc(x).chunk(2, -1)
    return a * F.gelu(b)


NOT_FIRST = {
    "GEGLU": geglu,
    "cast": lambda m, x: F.relu(m.fc(x).float()), "sign": lambda m, x: F.relu(-m.fc(x)),
    "cat": lambda m, x: F.relu(torch.cat([m.fc(x), m.fc(x)], -1)),
    "matmul": lambda m, x: F.relu(x @ m.w), "RMSNorm": lambda m, x: F.relu(m.root(x)),
    "LayerNorm": lambda m, x: F.relu(m.norm(x)[:, 1:]), "input": lambda m, x: F.relu(x),
    "function": lambda m, x: F.relu(F.linear(x, m.w)),
    "permuted": lambda m, x: F.relu(m.conv(x).permute(0, 2, 3, 1)),
    "tokens": lambda m, x: F.relu(m.conv(x).flatten(2).transpose(1, 2)),
    "view": lambda m, x: F.relu(m.conv(x).view(x.shape[0], -1, 3)),
    "no batch": lambda m, x: F.relu(m.conv(x[0])),
}


@pytest.mark.parametrize("name", NOT_FIRST)
def test_other_dimensions_than_channels_are_not_ranked(name):
    images = name in ("permuted", "tokens", "view", "no batch")
    model, x = Model(NOT_FIRST[name]), torch.randn(IMAGES if images else TOKENS)
    with pytest.raises(ValueError, match="expected an activation that can be replaced.*dimension 1"):
        qact.convert(model, x, sites="all")
    with pytest.raises(ValueError, match="expected calls of activations that"):  # not chosen
        qact.convert(model, x, sites=lambda site: site.problem is None)


FIRST = {
    "conv": lambda m, x: F.relu(m.conv(x)), "pool": lambda m, x: F.relu(m.pool(x)),
    "function": lambda m, x: F.relu(F.max_pool2d(x, 2)),
    "conv function": lambda m, x: F.relu(F.conv2d(x, m.conv.weight)),
    "cat": lambda m, x: F.relu(torch.cat([m.conv(x), x], 1)),
    "split": lambda m, x: F.relu(m.conv(x).split(3, 1)[1]),
    "chunk": lambda m, x: torch.sigmoid(m.conv(x).chunk(2, 1)[0]) * F.relu(m.conv(x)[:, 3:]),
    "gate": lambda m, x: F.relu(m.conv(x) * m.conv(x).mean((2, 3)).view(x.shape[0], -1, 1, 1)),
    "there and back": lambda m, x: F.relu(m.conv(x).permute(0, 2, 3, 1).permute(0, 3, 1, 2) * 2),
    "flat": lambda m, x: F.relu(m.conv(x).flatten(2)), "path": lambda m, x: F.relu(m.path(m.conv(x))),
    "rows": lambda m, x: F.relu(m.conv(x).transpose(2, 3)), "read": lambda m, x: m.conv(F.relu(x + 1)),
    "pooled, then read": lambda m, x: m.conv(m.pool(m.drop(F.relu(x)))),
    "1d": lambda m, x: F.relu(m.conv1d(x.flatten(2))),
    "LayerNorm of images": lambda m, x: F.relu(m.whole(m.conv(x))),
}


@pytest.mark.parametrize("name", FIRST)
def test_channels_in_dimension_1_are_found(name):
    assert len(layers(qact.convert(Model(FIRST[name]), torch.randn(IMAGES), sites="all"))) == 1


class Gated(nn.BatchNorm2d):
    """With a forward of its own."""

    def __init__(self, channels):
        super().__init__(channels)
        self.gate = nn.Parameter(torch.full((1, channels, 1, 1), -3.0))

    def forward(self, x):
        return super().forward(x) * self.gate


class Renamed(nn.BatchNorm2d):
    pass


def test_only_a_batch_norm_as_torch_has_it_is_absorbed():
    x = torch.randn(IMAGES)
    model = nn.Sequential(nn.Conv2d(3, 6, 3), Gated(6), nn.ReLU())
    converted = qact.convert(model, x, sites="all")
    assert "1.gate" in dict(converted.named_parameters())
    expected, _, _ = qact.functional.quantile_layer(model[1](model[0](x)))
    torch.testing.assert_close(converted(x), expected)
    absorbed = qact.convert(nn.Sequential(nn.Conv2d(3, 6, 3), Renamed(6), nn.ReLU()), x, sites="all")
    assert list(layers(absorbed)) == ["1"]
    parametrised = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU())
    nn.utils.parametrize.register_parametrization(parametrised[1], "weight", nn.Tanh())
    assert list(layers(qact.convert(parametrised, x, sites="all"))) == ["2_qact"]
    model[1].act = nn.ReLU()
    with pytest.raises(ValueError, match="does not look into Gated, which has activations"):
        qact.convert(model, x, sites="all")


IN_PLACE = {
    "Identity": lambda m, x: (lambda y: F.relu(m.same(y), inplace=True) + y)(m.conv(x)),
    "positional": lambda m, x: (lambda y: F.relu(y, True) + y)(m.conv(x)),
    "Dropout": lambda m, x: (lambda y: F.relu_(m.drop(y)) + y)(m.conv(x)),
    "flatten": lambda m, x: (lambda y: (F.relu(y.flatten(2), inplace=True), y)[1])(m.conv(x)),
    "slice": lambda m, x: (lambda y: (y[:, 2:].relu_(), y)[1])(m.conv(x)),
    "iadd": lambda m, x: (lambda y, z: F.relu_(y.add_(z)) + y)(m.conv(x), x.mean()),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_under_another_name_is_refused(name):
    with pytest.raises(ValueError, match="works in place"):
        qact.convert(Model(IN_PLACE[name]), torch.randn(IMAGES), sites="all")


def test_in_place_where_nobody_reads_the_input_again():
    model = Model(lambda m, x: (lambda z: z + z.flatten(2).view_as(z))(
        F.relu_(m.same(m.conv(x)).add_(1))))
    x = torch.randn(IMAGES)
    converted = qact.convert(model, x, sites="all")
    expected, _, _ = qact.functional.quantile_layer(model.conv(x) + 1)
    torch.testing.assert_close(converted(x), expected + expected)


def test_a_layer_has_the_type_of_the_norm_that_it_absorbs():
    model = nn.Sequential(nn.Conv2d(3, 6, 3).half(), nn.BatchNorm2d(6), nn.ReLU(),
                          nn.Conv2d(6, 6, 3).half(), nn.ReLU())
    model[1].running_var.fill_(1e5)
    found = layers(qact.convert(model, torch.randn(IMAGES).half(), sites="all"))
    assert found["1"].weight_in.dtype == torch.float32
    assert torch.equal(found["1"].running_var_in, model[1].running_var)
    assert found["4_qact"].weight_in.dtype == torch.float16


def test_a_checkpoints_number_of_batches_is_not_the_contexts():
    model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6, momentum=None), nn.ReLU())
    model[1].num_batches_tracked += 1000
    converted = qact.convert(model, torch.randn(IMAGES), sites="all")
    converted.load_state_dict(model.state_dict())
    layer = converted.get_submodule("1")
    assert int(layer.num_batches_tracked) == 0
    converted((torch.randn(64, 3, 9, 7) * 3).exp())
    standard = qact.functional.context_standard_normal(6)
    assert (layer.context - standard).abs().sum() > standard.sum() / 2
    state = copy.deepcopy(converted.state_dict())
    converted.load_state_dict(state)  # its own
    assert int(layer.num_batches_tracked) == 1
    untracked = qact.QuantileActivation(6, track_running_stats=False)
    untracked.load_state_dict(nn.BatchNorm2d(6, track_running_stats=False).state_dict())


def test_a_norm_that_is_called_by_keyword():
    model = Model(lambda m, x: F.relu(input=m.bn(input=m.conv(x))))
    converted, x = qact.convert(model, torch.randn(IMAGES), sites="all"), torch.randn(IMAGES)
    assert list(layers(converted)) == ["bn"]
    torch.testing.assert_close(
        converted(x), qact.functional.quantile_layer(model.bn(model.conv(x)))[0], atol=0.05, rtol=0)


def test_buffers_that_are_no_state_stay_so():
    def made():
        model = Model(lambda m, x: F.relu(m.bn(m.conv(x - m.mean + m.plain))) + m.kept)
        model.register_buffer("mean", torch.zeros(1, 3, 1, 1), persistent=False)
        model.register_buffer("kept", torch.zeros(1, 6, 1, 1))
        model.plain = torch.zeros(1, 3, 1, 1)
        return model

    converted = qact.convert(made(), torch.randn(IMAGES), sites="all")
    assert set(converted.state_dict()) & {"mean", "plain", "kept"} == {"kept"}
    state = {name: value for name, value in made().state_dict().items()
             if name.startswith(("conv.", "bn.", "kept"))}
    converted.load_state_dict(state)  # strict


def hook(*_):
    pass


@pytest.mark.parametrize("name", ["", "layer1", "bn1", "relu"])
def test_hooks_are_not_dropped(name):
    model, x = ResNet(), torch.randn(4, 1, 12, 12)
    model.get_submodule(name).register_forward_hook(hook)
    with pytest.raises(ValueError, match="expected no hooks on modules that something else takes"):
        qact.convert(model, x, sites="all")
    kept = ResNet()
    kept.conv1.register_forward_hook(hook)
    assert qact.convert(kept, x, sites="all").conv1._forward_hooks


@pytest.mark.parametrize("norms", [{"norm_in": False}, {"norm_in": False, "norm_out": False}])
@pytest.mark.parametrize("of_site", [False, True])
def test_a_norm_that_is_not_absorbed_stays(norms, of_site):
    model, x = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU()), torch.randn(8, 3, 9, 9)
    model[1].weight.data.uniform_(0.5, 2)
    converted = (qact.convert(model, x, sites=lambda site: norms) if of_site
                 else qact.convert(model, x, sites="all", **norms))
    assert isinstance(converted.get_submodule("1"), nn.BatchNorm2d)
    layer = qact.QuantileActivation(6, **norms)
    torch.testing.assert_close(converted(x), layer(model[1](model[0](x))))


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("function", [False, True])
def test_a_part_that_does_not_train_goes_on_so(norm, function):
    class Part(nn.Sequential):
        def forward(self, x):
            return F.relu(super().forward(x))

    part = [nn.Conv2d(3, 6, 3), *([nn.BatchNorm2d(6)] if norm else [])]
    model = nn.Sequential(Part(*part) if function else nn.Sequential(*part, nn.ReLU()),
                          nn.Conv2d(6, 6, 3), nn.ReLU()).train()
    model[0].eval()
    converted = qact.convert(model, torch.randn(8, 3, 9, 9), sites="all")
    assert [layer.training for layer in layers(converted).values()] == [False, True]


@pytest.mark.parametrize("cut", [
    lambda x: (x[:, :3], x[:, 3:]), lambda x: (x.chunk(2, 1)[0], x.chunk(2, 1)[1]),
    lambda x: (torch.split(x, 3, 1)[0],)])
def test_a_path_around_may_go_through_a_list(cut):
    def forward(m, x):
        x = m.conv(x)
        inside = F.relu(m.bn(x))
        return F.relu(torch.cat([inside, *cut(x)], 1))

    converted = qact.convert(Model(forward), torch.randn(IMAGES), sites="reference")
    assert len(layers(converted)) == 1, "the one behind the sum of paths"


@pytest.mark.parametrize("head", [
    lambda: qact.QuantileClassifier(6, 3), lambda: qact.QuantileActivation1d(6),
    lambda: qact.freeze(qact.QuantileActivation(6))])
def test_a_model_that_has_layers_of_ours(head):
    model, x = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), head()), torch.randn(8, 4)
    converted = qact.convert(model, x, sites="all")
    assert type(converted.get_submodule("2")) is type(model[2]) and "1_qact" in layers(converted)
    expected = model[2](qact.functional.quantile_layer(model[0](x))[0])
    torch.testing.assert_close(converted(x), expected)
    again = qact.convert(nn.Sequential(converted, nn.Linear(expected.shape[1], 4), nn.ReLU()), x,
                         sites="all")
    assert "0.1_qact" in layers(again) and "2_qact" in layers(again)


def test_a_placement_may_answer_with_anything():
    model, x = nn.Sequential(nn.Linear(4, 6), nn.ReLU()), torch.randn(8, 4)
    for answer in (0, None, False, ""):
        with pytest.raises(ValueError, match="expected calls of activations that"):
            qact.convert(model, x, sites=lambda site, answer=answer: answer)
    for answer in (1, True, torch.tensor(True), {}, {"levels": 9}):
        assert layers(qact.convert(model, x, sites=lambda site, answer=answer: answer))
