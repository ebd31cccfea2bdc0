"""What CUDA's kernels of the plain operator do not take, in terms of what they do.

Their levels fit a byte. More of them, or none, are ranked by sorting. Nothing here knows its device.
"""

import torch

from ._fallback import ranked_by_sorting
from ._library import CUDA_MISSING, ops
from ._options import MOST_LAYER_LEVELS

def activation_forward(x, levels, bound, positive_share, bandwidth, algorithm, quantised,
                       density_samples, seed, keep):
    if density_samples:
        raise NotImplementedError("[quantile_activation] expected density_samples=0 on CUDA, where "
                                  f"the whole context is used, got {density_samples}")
    sorts = levels > MOST_LAYER_LEVELS or not quantised
    y = density = x.new_empty(0)
    if keep or not sorts:  # the density does not depend on the levels
        y, density = ops.activation_kernel(x, min(levels, MOST_LAYER_LEVELS), bound, positive_share,
                                           bandwidth, algorithm, keep)
    if sorts:
        y = ranked_by_sorting(x, levels, bound, positive_share, quantised)
    return y, density


if not CUDA_MISSING:
    _LIBRARY = torch.library.Library("qact_python", "FRAGMENT")
    _LIBRARY.impl("activation_forward", activation_forward, "CUDA")
