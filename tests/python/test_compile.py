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
