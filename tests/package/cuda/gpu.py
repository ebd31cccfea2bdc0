"""What the tests on a GPU share. Where there is none, they are skipped as they import this."""

import pytest
import torch
import torch.nn.functional as F

from qact import functional as QF
from qact._library import CUDA_MISSING

if not torch.cuda.is_available():
    pytest.skip("no GPU here", allow_module_level=True)
if CUDA_MISSING:
    pytest.skip(CUDA_MISSING, allow_module_level=True)


def on_gpu(tensors):
    return [None if t is None else t.cuda() for t in tensors]


class Parts:
    """The fused layer by its parts, exactly and in float64 on the CPU, with its gradients, and with
    the sums of the absolute terms of those of the four vectors."""

    def __init__(self, x, vectors, grad_y, levels=100):
        x = x.detach().cpu().double().requires_grad_()
        w_in, b_in, w_out, b_out = (v.detach().cpu().double().requires_grad_() for v in vectors)
        z = self._norm(x) * self._row(w_in, x) + self._row(b_in, x)
        z.retain_grad()
        u = QF.quantile_activation(z, levels, algorithm="exact")
        self.y = self._norm(u) * self._row(w_out, x) + self._row(b_out, x)
        dy = grad_y.detach().cpu().double()
        self.y.backward(dy)
        self.y, self.grad_x = self.y.detach(), x.grad
        self.affine = torch.stack([w_in.grad, b_in.grad, w_out.grad, b_out.grad])
        dims = [0, *range(2, x.dim())]
        xhat, yhat = self._norm(x), self._norm(u)
        self.terms = torch.stack([t.detach().abs().sum(dims) for t in (
            z.grad * xhat, z.grad, dy * yhat, dy)])
        # One level, in units of y.
        spread = u.detach().var(dims, correction=0).add(1e-5).sqrt()
        self.step = self._row(w_out.detach().abs() / spread / levels, x)

    @staticmethod
    def _norm(v):
        return F.batch_norm(v, None, None, None, None, True, 0.0, 1e-5)

    @staticmethod
    def _row(vector, x):
        return vector.view(1, -1, *[1] * (x.dim() - 2))


def check_layer(parts, y, grad_x, affine, rounding=0.0):
    """rounding: of the type that the layer computes from, relative to a value of about 1."""
    off = (y.cpu().double() - parts.y).abs()
    # One level, which moves the outer norm's statistics a little, too.
    assert (off <= 1.2 * parts.step + 8 * rounding).all()
    assert (off / parts.step).mean() <= 0.15 + 4 * rounding / parts.step.min()
    if grad_x is not None:
        found, wanted = grad_x.cpu().double(), parts.grad_x
        assert (found - wanted).norm() <= (0.03 + 4 * rounding) * wanted.norm()
        bound = (0.01 + 4 * rounding) * parts.terms
        assert ((affine.cpu().double() - parts.affine).abs() <= bound).all()
