"""The quantile classifier: a linear layer whose outputs are ranked per class."""

from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ._options import MOST_LEVELS
from .modules import QuantileActivation

CLASS_PRIORS = ("quantile", "loss")


class QuantileClassifier(nn.Module):
    r"""A class's probability says where a sample stands among all that the classifier is shown:
    :math:`p_k = \mathrm{QAct}(w_k \cdot x + b_k)`, one class against the rest.

    Args:
        in_features: D of the input ``(B, D)``.
        num_classes: K.
        levels: None: max(100, 10 K). Fewer would tie too often among many classes.
        class_prior: where it is told that one sample in K is of a class. ``quantile``: in the
            ranks; logits >= 0 share a weight of 1 - 1/K, so that a logit of 0 is ranked 1/K.
            ``loss``: in the loss; the class counts 1 - 1/K, the rest 1/K.

    Returns ``(B, K)`` probabilities, half a level off 0 and 1; rows need not sum to 1. In 16 bits
    that half is lost, so that they are float32 there, under autocast, too.

    >>> import torch, qact
    >>> classifier = qact.QuantileClassifier(16, 10)
    >>> p = classifier(torch.randn(32, 16))
    >>> p.shape, bool((p > 0).all() and (p < 1).all())
    (torch.Size([32, 10]), True)
    """

    def __init__(self, in_features: int, num_classes: int, *, levels: Optional[int] = None,
                 class_prior: str = "quantile", bandwidth: float = 0.5,
                 momentum: Optional[float] = 0.1, context_mode: str = "tracked",
                 prior: float = 16.0, device=None, dtype=None) -> None:
        super().__init__()
        if in_features <= 0:
            raise ValueError(f"[QuantileClassifier] expected in_features > 0, got {in_features}")
        if num_classes < 2:
            raise ValueError(
                f"[QuantileClassifier] expected at least 2 classes, got {num_classes}")
        if class_prior not in CLASS_PRIORS:
            raise ValueError(f"[QuantileClassifier] expected a class_prior of "
                             f"{', '.join(CLASS_PRIORS)}, got {class_prior!r}")
        self.class_prior = class_prior
        usual = min(MOST_LEVELS, max(100, 10 * num_classes))
        share = 1.0 - 1.0 / num_classes if class_prior == "quantile" else 0.5
        self.linear = nn.Linear(in_features, num_classes, device=device, dtype=dtype)
        self.activation = QuantileActivation(
            num_classes, levels=usual if levels is None else levels, positive_share=share,
            bandwidth=bandwidth, norm_in=False, norm_out=False, momentum=momentum,
            context_mode=context_mode, prior=prior, device=device, dtype=dtype)

    def _logits(self, x: Tensor) -> Tensor:
        z = self.linear(x)
        return z.float() if z.dtype.itemsize < 4 else z

    def forward(self, x: Tensor) -> Tensor:
        u = self.activation(self._logits(x))
        half = 0.5 / self.activation.levels
        # The clamp moves the value, not the gradient: a confident mistake must still be felt.
        return u + (u.detach().clamp(half, 1 - half) - u.detach())

    @torch.no_grad()
    def predict(self, x: Tensor) -> Tensor:
        """The class of the highest rank, ``(B)``. Levels that tie are told apart by the rank."""
        return self.activation.rank(self._logits(x)).argmax(1)

    def loss(self, probabilities: Tensor, labels: Tensor) -> Tensor:
        """Binary cross-entropy of forward's output against int64 labels ``(B)``."""
        if (probabilities.dim() != 2 or labels.dim() != 1 or labels.dtype != torch.int64
                or labels.shape[0] != probabilities.shape[0]):
            raise ValueError("[QuantileClassifier] expected probabilities of shape (B,K) and int64 "
                             f"labels of shape (B), got {tuple(probabilities.shape)} and "
                             f"{labels.dtype} of shape {tuple(labels.shape)}")
        classes = probabilities.shape[1]
        target = F.one_hot(labels, classes).to(probabilities.dtype)
        if self.class_prior == "quantile":
            return F.binary_cross_entropy(probabilities, target)
        prior = 1.0 / classes
        return F.binary_cross_entropy(probabilities, target, prior + (1 - 2 * prior) * target)
