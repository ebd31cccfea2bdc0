"""Networks that adapt to the distribution they are shown.

The output of a neuron with a quantile activation is the rank of its pre-activation within its
context, usually the batch. :class:`QuantileActivation` takes the place of BatchNorm and ReLU.
"""

from importlib import metadata as _metadata

from . import _fake, _autograd, _fallback, _cuda, _vmap  # noqa: F401  (they register with torch)
from . import functional, losses, timm
from ._convert import convert
from ._freeze import FrozenQuantileActivation, freeze
from ._sites import Site
from .classifier import QuantileClassifier
from .context_mode import reset_running_stats, set_context_mode, update_contexts
from .dither import Dither
from .modules import (QuantileActivation, QuantileActivation1d, QuantileActivation2d,
                      QuantileActivation3d)
from .sync import SyncQuantileActivation, convert_sync_quantile_activation, sync_contexts

__version__ = _metadata.version("qact")

__all__ = [
    "Dither", "FrozenQuantileActivation", "QuantileActivation", "QuantileActivation1d",
    "QuantileActivation2d", "QuantileActivation3d",
    "QuantileClassifier", "Site", "SyncQuantileActivation", "convert",
    "convert_sync_quantile_activation", "freeze", "functional", "losses", "reset_running_stats",
    "set_context_mode", "sync_contexts", "timm", "update_contexts",
]
