"""Losses on embeddings: triplet and watershed. In 16 bits they are computed in float32."""

from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["flood_labels", "hard_triplet", "random_triplet", "watershed"]


def _checked(where: str, embedding: Tensor, labels: Tensor) -> Tensor:
    """The embedding, of 16 bits in float32: distances in them are too coarse."""
    if (embedding.dim() != 2 or labels.dim() != 1 or labels.dtype != torch.int64
            or labels.shape[0] != embedding.shape[0]):
        raise ValueError(
            f"[{where}] expected an embedding of shape (B,D) and int64 labels of shape (B), got "
            f"{tuple(embedding.shape)} and {labels.dtype} of shape {tuple(labels.shape)}")
    if len(labels) == 0:
        raise ValueError(f"[{where}] expected an embedding of at least one sample, got "
                         f"{tuple(embedding.shape)}")
    return embedding.float() if embedding.dtype.itemsize < 4 else embedding


@torch.no_grad()
def _distances(embedding: Tensor) -> Tensor:
    e = embedding.detach().contiguous()
    return torch.cdist(e, e, compute_mode="donot_use_mm_for_euclid_dist")


def _pairs(labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(positive, negative, valid): pairs of one class and of two, and who has both."""
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    positive = same.clone().fill_diagonal_(False)
    negative = ~same
    return positive, negative, positive.any(1) & negative.any(1)


def _triplet(embedding: Tensor, positive: Tensor, negative: Tensor, valid: Tensor,
             margin: float) -> Tensor:
    loss = F.triplet_margin_loss(embedding, embedding[positive], embedding[negative], margin,
                                 reduction="none")
    return loss.masked_fill(~valid, 0).sum() / valid.sum().clamp_min(1)


def random_triplet(embedding: Tensor, labels: Tensor, margin: float = 1.0,
                   generator: Optional[torch.Generator] = None) -> Tensor:
    r"""The mean over anchors a of :math:`\max(0, |a - p| - |a - n| + \text{margin})`, with a
    positive p of the anchor's class and a negative n of another, drawn uniformly.

    The anchors are all samples for which the batch has both; without any, the loss is 0.

    Args:
        embedding: ``(B, D)``.
        labels: ``(B)`` int64.
    """
    embedding = _checked("random_triplet", embedding, labels)
    positive, negative, valid = _pairs(labels)
    drawn = [torch.multinomial(choice.float() + (~valid).unsqueeze(1), 1, generator=generator)
             .squeeze(1) for choice in (positive, negative)]
    return _triplet(embedding, drawn[0], drawn[1], valid, margin)


def hard_triplet(embedding: Tensor, labels: Tensor, margin: float = 1.0) -> Tensor:
    """Batch-hard: the same with the farthest positive and the nearest negative.

    >>> import torch, qact
    >>> e = torch.tensor([[0.0], [1.0], [5.0], [6.0]])
    >>> qact.losses.hard_triplet(e, torch.tensor([0, 0, 1, 1]), margin=4.0)
    tensor(0.5000)
    """
    embedding = _checked("hard_triplet", embedding, labels)
    distance = _distances(embedding)
    positive, negative, valid = _pairs(labels)
    farthest = distance.masked_fill(~positive, -torch.inf).argmax(1)
    nearest = distance.masked_fill(~negative, torch.inf).argmin(1)
    return _triplet(embedding, farthest, nearest, valid, margin)


def flood_labels(distances: Tensor, labels: Tensor, seeds: Tensor) -> Tensor:
    """The label that a flood from the seeds gives each sample: the unlabelled sample nearest to
    any labelled one takes its label, until all have one (Prim's algorithm from all seeds at once;
    ties go to the smaller index). On the CPU, O(B^2).

    Args:
        distances: ``(B, B)``.
        labels: ``(B)`` int64; those of the seeds are used.
        seeds: indices, at least one.
    """
    matrix = distances.detach().float().cpu()
    flooded = torch.full((matrix.shape[0],), -1, dtype=torch.int64)
    flooded[seeds] = labels.cpu()[seeds]
    # The first of the sorted seeds that is nearest: argmin takes the smaller index.
    order = seeds.sort().values
    distance, place = matrix[order].min(0)
    parent = order[place]
    distance[order] = torch.inf
    for _ in range(matrix.shape[0] - len(order)):
        v = int(distance.argmin())
        flooded[v] = flooded[parent[v]]
        distance[v] = torch.inf
        left = flooded < 0
        nearer = left & ((matrix[v] < distance) | ((matrix[v] == distance) & (v < parent)))
        distance = torch.where(nearer, matrix[v], distance)
        parent = torch.where(nearer, v, parent)
    return flooded.to(labels.device)


def _draw_seeds(labels: Tensor, seeds: int, generator: Optional[torch.Generator]) -> Tensor:
    drawn = []
    for label in labels.unique():
        members = (labels == label).nonzero().squeeze(1)
        order = torch.randperm(len(members), generator=generator)
        drawn.append(members[order[:seeds]])
    return torch.cat(drawn).sort().values


def watershed(embedding: Tensor, labels: Tensor, seeds: int = 1,
              generator: Optional[torch.Generator] = None) -> Tensor:
    r"""Cross-entropy over the distances to the nearest sample of each class:

    .. math:: \mathrm{mean}_i\; -\log \frac{e^{-d(i, y_i)}}{\sum_l e^{-d(i, l)}},\qquad
        d(i, l) = |e_i - e_j|

    with j the nearest sample to i, never i itself, among those of class l that a flood from
    ``seeds`` samples of each class has labelled correctly. A class without such a sample is left
    out of i's sum; if i's own class has none, i is left out of the mean. The gradient reaches both
    :math:`e_i` and :math:`e_j`; the choice of j is constant.

    Args:
        embedding: ``(B, D)``. At least 10 samples per class, or few are labelled correctly.
        labels: ``(B)`` int64.
        generator: of the CPU, for the seeds.
    """
    embedding = _checked("watershed", embedding, labels)
    if seeds < 1:
        raise ValueError(f"[watershed] expected seeds >= 1, got {seeds}")
    classes, target = labels.unique(return_inverse=True)
    distances = _distances(embedding).float()
    on_cpu = target.cpu()
    flooded = flood_labels(distances, on_cpu, _draw_seeds(on_cpu, seeds, generator))
    correct = (flooded == on_cpu).to(embedding.device)
    # (B, K, B): whether j may stand for class l of sample i.
    member = (target.unsqueeze(0) == torch.arange(len(classes), device=labels.device).unsqueeze(1))
    allowed = (member & correct).unsqueeze(0) & ~torch.eye(
        len(target), dtype=torch.bool, device=labels.device).unsqueeze(1)
    least, nearest = distances.unsqueeze(1).masked_fill(~allowed, torch.inf).min(2)
    absent = least.isinf()
    chosen = embedding[nearest]
    distance = ((embedding.unsqueeze(1) - chosen).square().sum(2) + 1e-12).sqrt()
    own = target.unsqueeze(1)
    skipped = absent.gather(1, own).squeeze(1)
    # A skipped row may be all -inf: give it finite logits before it is masked out.
    logits = (-distance).masked_fill(absent, -torch.inf).masked_fill(skipped.unsqueeze(1), 0)
    loss = -logits.log_softmax(1).gather(1, own).squeeze(1).masked_fill(skipped, 0)
    return loss.sum() / (~skipped).sum().clamp_min(1)
