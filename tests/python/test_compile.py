"""torch.compile traces the operators in one graph, forward and backward."""

import pytest
import torch

qact = torch.ops.qact


def activation(x, weight):
    return (qact.quantile_activation(x * weight) * 2).sum()


def layer(x, weight):
    y, _, _ = qact.quantile_layer(x, None, None, weight.expand(x.size(1)), None)
    return y.square().mul(x).sum()


def applied(x, weight):
    quantiles = qact.context_quantiles(qact.context_build(x.detach()))
    return (qact.quantile_apply(x, quantiles) * weight).sum()


# A gradient that lies otherwise than the output, in a trace without sizes.
def test_compiled_takes_gradients_in_any_layout():
    def function(x):
        y = torch.ops.qact.quantile_layer(x)[0]
        return y.permute(0, 2, 3, 1).contiguous() * torch.arange(3)

    compiled = torch.compile(function, backend="aot_eager", fullgraph=True, dynamic=True)
    for batch in (8, 40):  # the first is computed again from x, the second kept as codes
        grads = []
        for f in (function, compiled):
            x = torch.linspace(0, 9, batch * 3 * 10 * 9).sin().view(batch, 3, 10, 9).requires_grad_()
            f(x).square().sum().backward()
            grads.append(x.grad)
        assert torch.equal(*grads)
        assert grads[0].is_contiguous()


@pytest.mark.parametrize("function", [activation, layer, applied])
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_equals_eager(function, dynamic):
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for batch in (8, 12) if dynamic else (8,):
        values = torch.randn(batch, 3, 4, 5)
        results = []
        for f in (function, compiled):
            x = values.clone().requires_grad_()
            weight = torch.tensor(1.5, requires_grad=True)
            loss = f(x, weight)
            loss.backward()
            results.append((loss.detach(), x.grad, weight.grad))
        for eager, traced in zip(*results):
            assert torch.equal(eager, traced)
