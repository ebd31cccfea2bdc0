"""The fused layer by its parts, exactly and in float64 on the CPU, and how far from it a GPU may be.

Gradients of weights and biases are sums whose terms cancel, so they are judged by the sum of the
absolute terms, for each channel. tests/core/tolerance.h says what is allowed, and why.
"""

import torch
import torch.nn.functional as F

from qact import functional as QF

_FEW_VALUES = 128  # distinct ones: so few that the errors of their densities do not cancel


def gradient(x):
    """Of y: one whose sums over a channel's values do not cancel, so that a gradient that is off by
    a few per cent is seen."""
    z = F.batch_norm(x.float(), None, None, None, None, True)
    return (z.square() + 1.5 * z.sign()).to(x.dtype)


class Parts:
    """y, the gradients of x and of the four vectors, (4, C), and `allowed`, what each of those may
    be off by. scope: image_channels and context_images of quantile_layer."""

    def __init__(self, x, vectors, grad_y, levels=100, scope=(0, 0)):
        self._x, self._dy = x.detach().cpu().double(), grad_y.detach().cpu().double()
        self._vectors, self._levels = [v.detach().cpu().double() for v in vectors], levels
        self.y, self.grad_x, self.step = (torch.empty_like(self._x) for _ in range(3))
        self.affine, self.allowed = torch.zeros(2, 4, x.shape[1], dtype=torch.float64)
        images, (first, group) = x.shape[0], scope
        for i in range(images if first else 0):
            self._add(slice(0, first), slice(i, i + 1), _batch_norm, _exact(levels))
        self._add_others(slice(first, None), group or images)

    def _add_others(self, channels, group):
        for i in range(0, len(self._x), group):
            self._add(channels, slice(i, i + group), _batch_norm, _exact(self._levels))

    def _add(self, channels, images, norm, activation):
        """One context of each of those channels. norm(v, end) also gives its scale."""
        x = self._x[images, channels].clone().requires_grad_()
        if x.numel() == 0:
            return
        dy = self._dy[images, channels]
        w_in, b_in, w_out, b_out = (v[channels].clone().requires_grad_() for v in self._vectors)
        xhat, _ = norm(x, "in")
        z = xhat * _row(w_in, x) + _row(b_in, x)
        z.retain_grad()
        u = activation(z)
        (density,) = torch.autograd.grad(u.sum(), z, retain_graph=True)
        yhat, scale = norm(u, "out")
        y = yhat * _row(w_out, x) + _row(b_out, x)
        y.backward(dy)
        self.y[images, channels], self.grad_x[images, channels] = y.detach(), x.grad
        self.affine[:, channels] += torch.stack([v.grad for v in (w_in, b_in, w_out, b_out)])

        dz, xhat, yhat = z.grad, xhat.detach(), yhat.detach()
        outer = (_row(w_out, x) * scale).detach().abs()
        self.step[images, channels] = outer / self._levels  # one level, in units of y

        def mean(v):
            return v.mean(_dims(v), keepdim=True)

        # What cancels in dz: dy, its mean and its part along the output are summed apart.
        apart = density * outer * (dy.abs() + mean(dy).abs() + (yhat * mean(dy * yhat)).abs())
        share = torch.tensor([0.01 if len(c.unique()) < _FEW_VALUES else 0.003
                              for c in self._x[images, channels].transpose(0, 1)]).double()
        self.allowed[:, channels] += torch.stack([
            share * _size(dz * xhat) + 0.001 * _size(apart * xhat),
            share * _size(dz) + 0.001 * _size(apart),
            0.01 * _size(dy * yhat),  # needs no density, but a value may be a level off
            1e-6 * _size(dy)])  # a sum of what is given


class RunningParts(Parts):
    """The same of a module's channels whose context runs on; of others as above. The module is as
    it was before it was given x."""

    def __init__(self, layer, x, grad_y):
        self._layer = layer
        vectors = (layer.weight_in, layer.bias_in, layer.weight_out, layer.bias_out)
        super().__init__(x, vectors, grad_y, layer.levels,
                         (layer._image_channels, layer.group_images))

    def _add_others(self, channels, group):
        layer, images = self._layer, len(self._x)
        if layer.training or layer.context_mode == "batch":
            super()._add_others(channels, group)
            return
        momentum = 0.1 if layer.momentum is None else layer.momentum
        share = {"tracked": 0.0, "prior": images / (layer.prior + images),
                 "stream": momentum}[layer.context_mode]

        def norm(v, end):
            mean, var = (getattr(layer, f"running_{what}_{end}").cpu().double()[channels]
                         for what in ("mean", "var"))
            mean = torch.lerp(mean, v.mean(_dims(v)), share)
            scale = (torch.lerp(var, v.var(_dims(v), correction=1), share) + layer.eps).rsqrt()
            return (v - _row(mean, v)) * _row(scale, v), _row(scale, v)

        def activation(z):
            context = layer.context.cpu()[channels]
            if share:
                context = QF.context_blend(
                    context, QF.context_build(z), images=images, n=z.numel() // z.shape[1],
                    prior=layer.prior if layer.context_mode == "prior" else None,
                    momentum=momentum)
            quantiles = QF.context_quantiles(context, layer.levels, layer.bound,
                                             layer.positive_share)
            return QF.quantile_apply(z, quantiles, bandwidth=layer.bandwidth)

        self._add(channels, slice(0, images), norm, activation)


def _exact(levels):
    return lambda z: QF.quantile_activation(z, levels, algorithm="exact")


def _batch_norm(v, _):
    scale = (v.detach().var(_dims(v), correction=0) + 1e-5).rsqrt()
    return F.batch_norm(v, None, None, None, None, True, 0.0, 1e-5), _row(scale, v)


def _dims(v):
    return [0, *range(2, v.dim())]


def _row(vector, x):
    return vector.view(1, -1, *[1] * (x.dim() - 2))


def _size(terms):
    return terms.detach().abs().sum(_dims(terms))


def check_layer(parts, y, grad_x, affine, rounding=0.0):
    """rounding: of the type that the layer computes from, relative to a value of about 1."""
    off = (y.cpu().double() - parts.y).abs()
    # One level, which moves the outer norm's statistics a little, too.
    assert (off <= 1.2 * parts.step + 8 * rounding).all()
    # A bin's values are up to a quarter level off their ranks, which rounds so many to the next.
    assert (off / parts.step).mean() <= 0.25 + 4 * rounding / parts.step.min()
    if grad_x is not None:
        found, wanted = grad_x.cpu().double(), parts.grad_x
        assert (found - wanted).norm() <= (0.03 + 4 * rounding) * wanted.norm()
        check_affine(affine, parts.affine, parts.allowed)


def check_affine(found, expected, allowed):
    """The gradients of the four vectors, (4, C)."""
    off = (found.cpu().double() - expected.cpu().double()).abs()
    assert (off <= allowed).all(), f"up to {(off / allowed).amax(1).tolist()} of what is allowed"
