"""The options of a QuantileActivation, and what is wrong with them."""

import math
from typing import Any

from torch import Tensor

from .functional import algorithm_number

#: In eval(); train() always uses the batch's own.
CONTEXT_MODES = ("batch", "tracked", "prior", "stream")
SCOPES = ("batch", "image", "group")
#: The fused layer keeps a code, one byte, that refines the level.
MOST_LAYER_LEVELS, MOST_LEVELS = 255, 65535


def describe(x: Tensor) -> str:
    return f"{str(x.dtype).removeprefix('torch.')} of shape {tuple(x.shape)}"


def check_mode(where: str, mode: str, prior: float) -> None:
    if mode not in CONTEXT_MODES:
        raise ValueError(f"[{where}] expected a mode of {', '.join(CONTEXT_MODES)}, got {mode!r}")
    if not (math.isfinite(prior) and prior >= 0):
        raise ValueError(f"[{where}] expected a finite prior >= 0, got {prior}")


def check_options(layer: Any) -> None:
    """Of a QuantileActivation, which has them as attributes."""
    where = type(layer).__name__

    def expect(sound: bool, what: str, got: object) -> None:
        if not sound:
            raise ValueError(f"[{where}] expected {what}, got {got}")

    for name in ("num_features", "levels", "group_images"):
        value = getattr(layer, name)
        expect(isinstance(value, int) and not isinstance(value, bool), f"{name} to be an int",
               repr(value))
    for name in ("bound", "positive_share", "bandwidth", "eps", "image_share", "prior", "momentum"):
        value = getattr(layer, name)
        expect(isinstance(value, (int, float)) or (name == "momentum" and value is None),
               f"{name} to be a number", repr(value))
    fused = layer.norm_in and layer.norm_out
    most = MOST_LAYER_LEVELS if fused else MOST_LEVELS
    expect(layer.num_features > 0, "num_features > 0", layer.num_features)
    expect(2 <= layer.levels <= most, f"levels in 2..{most}", layer.levels)
    for name in ("bound", "bandwidth", "eps"):
        value = getattr(layer, name)
        expect(math.isfinite(value) and value > 0, f"a finite {name} > 0", value)
    expect(0 < layer.positive_share < 1, "positive_share in (0, 1)", layer.positive_share)
    expect(layer.momentum is None or 0 <= layer.momentum <= 1, "momentum in [0, 1]", layer.momentum)
    expect(0 <= layer.image_share <= 1, "image_share in [0, 1]", layer.image_share)
    expect(layer.scope in SCOPES, f"a scope of {', '.join(SCOPES)}", repr(layer.scope))
    grouped = layer.scope == "group"
    expect((layer.group_images > 0) if grouped else (layer.group_images == 0),
           "group_images > 0 with the scope group, and 0 with others", layer.group_images)
    expect(fused or (layer.scope == "batch" and layer.image_share == 0),
           "norm_in and norm_out with a scope other than batch",
           f"norm_in {layer.norm_in}, norm_out {layer.norm_out}")
    algorithm_number(layer.algorithm)
    check_mode(where, layer.context_mode, layer.prior)
