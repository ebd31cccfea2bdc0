"""The layer in timm's models, by name.

>>> import qact.timm                                                          # doctest: +SKIP
>>> qact.timm.register()                                                      # doctest: +SKIP
>>> timm.create_model("resnetv2_50", norm_layer="qact")                       # doctest: +SKIP
"""

from typing import Any, Optional

from .modules import QuantileActivation2d
from .sync import SUBCLASSES, SyncQuantileActivation

__all__ = ["NormAct2d", "register"]


class NormAct2d(QuantileActivation2d):
    """QuantileActivation2d with the arguments of timm's norm-and-activation layers. What timm would
    have as activation is not asked for: the quantile activation is one."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: Optional[float] = 0.1,
                 affine: bool = True, track_running_stats: bool = True, apply_act: bool = True,
                 act_layer: Any = None, act_kwargs: Any = None, inplace: bool = True,
                 drop_layer: Any = None, device=None, dtype=None, **options: Any) -> None:
        if not apply_act:
            raise ValueError("[qact.timm] expected a norm with an activation, got apply_act=False: "
                             "this model has norms without one, which qact.convert leaves alone")
        super().__init__(num_features, eps=eps, momentum=momentum, affine=affine,
                         track_running_stats=track_running_stats, device=device, dtype=dtype,
                         **options)
        self.drop = drop_layer() if drop_layer is not None else None

    def forward(self, x):
        y = super().forward(x)
        return y if self.drop is None else self.drop(y)


class SyncNormAct2d(SyncQuantileActivation, NormAct2d):
    """What :func:`qact.convert_sync_quantile_activation` makes of it."""


SUBCLASSES[NormAct2d] = SyncNormAct2d


def register(name: str = "qact") -> None:
    """Makes the layer known to timm, for ``timm.create_model(..., norm_layer=name)`` of models that
    take a norm and an activation as one layer (resnetv2 and its like)."""
    try:
        from timm.layers import create_norm_act
    except ImportError as error:
        raise ImportError("[qact.timm] expected the package timm, found none: pip install timm") \
            from error
    for table in ("_NORM_ACT_MAP", "_NORM_ACT_TYPES"):
        if not hasattr(create_norm_act, table):
            raise RuntimeError(f"[qact.timm] expected timm's table {table}, found none in this "
                               "version of timm; pass norm_layer=qact.timm.NormAct2d instead")
    create_norm_act._NORM_ACT_MAP[name] = NormAct2d
    create_norm_act._NORM_ACT_TYPES.add(NormAct2d)
