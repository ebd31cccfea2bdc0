"""Import before anything that imports torchvision. Its models are Python; its operators, which they
do not call, are compiled for the torch of its own release, and their names must be there."""

import torch

for _name in ("nms", "qnms", "roi_align", "ps_roi_align", "roi_pool", "ps_roi_pool",
              "deform_conv2d", "_roi_align_backward", "_ps_roi_align_backward",
              "_roi_pool_backward", "_ps_roi_pool_backward", "_deform_conv2d_backward"):
    if not hasattr(torch.ops.torchvision, _name):
        torch.library.define(f"torchvision::{_name}", "(Tensor x) -> Tensor")
