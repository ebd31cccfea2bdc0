"""Losses against loops that follow from their definitions."""

import pytest
import torch

from qact import losses


def loop_flood(distances, labels, seeds):
    flooded = {int(s): int(labels[s]) for s in seeds}
    while len(flooded) < len(labels):
        _, v, u = min((float(distances[u, v]), v, u) for u in flooded for v in range(len(labels))
                      if v not in flooded)
        flooded[v] = flooded[u]
    return torch.tensor([flooded[i] for i in range(len(labels))])


@pytest.mark.parametrize("ties", [False, True])
def test_flood(ties):
    for seed in range(5):
        torch.manual_seed(seed)
        e = torch.randint(0, 4, (20, 2)).float() if ties else torch.randn(20, 2)
        labels = torch.randint(0, 3, (20,))
        distances = torch.cdist(e, e, compute_mode="donot_use_mm_for_euclid_dist")
        seeds = torch.tensor([int((labels == k).nonzero()[0]) for k in labels.unique()])
        assert torch.equal(losses.flood_labels(distances, labels, seeds),
                           loop_flood(distances, labels, seeds))


def loop_watershed(e, labels, correct):
    terms = []
    for i in range(len(e)):
        logits = {}
        for label in labels.unique().tolist():
            members = [j for j in range(len(e)) if j != i and correct[j] and labels[j] == label]
            if members:
                logits[label] = -min((e[i] - e[j]).square().sum().add(1e-12).sqrt()
                                     for j in members)
        own = int(labels[i])
        if own in logits:
            terms.append(torch.logsumexp(torch.stack(list(logits.values())), 0) - logits[own])
    return torch.stack(terms).mean()


def test_watershed():
    e = torch.randn(30, 4, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(0, 3, (30,)) * 5
    found = losses.watershed(e, labels, generator=torch.Generator().manual_seed(1))
    _, target = labels.unique(return_inverse=True)
    seeds = losses._draw_seeds(target, 1, torch.Generator().manual_seed(1))
    flooded = loop_flood(torch.cdist(e, e).detach().float(), target, seeds)
    torch.testing.assert_close(found, loop_watershed(e, labels, flooded == target))
    (grad,) = torch.autograd.grad(found, e)
    assert grad.isfinite().all() and grad.abs().sum() > 0


def test_watershed_skips_a_class_of_one():
    e = torch.randn(9, 4, requires_grad=True)
    labels = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1, 2])
    loss = losses.watershed(e, labels)
    loss.backward()
    assert loss.isfinite() and e.grad.isfinite().all()


def test_hard_triplet():
    e, labels = torch.randn(12, 3), torch.randint(0, 3, (12,))
    terms = []
    for a in range(12):
        positives = [(e[a] - e[p] + 1e-6).norm() for p in range(12)
                     if p != a and labels[p] == labels[a]]
        negatives = [(e[a] - e[n] + 1e-6).norm() for n in range(12) if labels[n] != labels[a]]
        if positives and negatives:
            terms.append(torch.relu(max(positives) - min(negatives) + 1))
    torch.testing.assert_close(losses.hard_triplet(e, labels), torch.stack(terms).mean())


def test_random_triplet_draws_a_positive_and_a_negative():
    e = torch.tensor([[0.0], [1.0], [10.0], [12.0]], requires_grad=True)
    labels = torch.tensor([0, 0, 1, 1])
    # margin 20: (1, 2) apart in a class, 8 to 12 between classes; the loss is known to +-2.
    loss = losses.random_triplet(e, labels, margin=20.0)
    assert 20 + 1 - 12 - 0.1 < loss < 20 + 2 - 9 + 0.1
    loss.backward()


@pytest.mark.parametrize("loss", [losses.hard_triplet, losses.random_triplet])
def test_without_pairs_the_loss_is_zero(loss):
    e = torch.randn(4, 3, requires_grad=True)
    value = loss(e, torch.zeros(4, dtype=torch.int64))
    value.backward()
    assert value == 0 and (e.grad == 0).all()


def test_wrong_shapes_are_refused():
    for loss in (losses.watershed, losses.hard_triplet, losses.random_triplet):
        with pytest.raises(ValueError, match="expected an embedding of shape"):
            loss(torch.randn(4, 3), torch.zeros(4))


LOSSES = [losses.watershed, losses.hard_triplet, losses.random_triplet]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bits_are_computed_in_32(loss, dtype):
    e = torch.randn(8, 4).to(dtype).requires_grad_()
    wide, labels = e.detach().float().requires_grad_(), torch.arange(8) // 4
    values = []
    for embedding in (e, wide):
        torch.manual_seed(0)
        values.append(loss(embedding, labels))
        values[-1].backward()
    assert torch.equal(*values) and torch.equal(e.grad, wide.grad.to(dtype))


@pytest.mark.parametrize("loss", LOSSES)
def test_an_empty_batch_is_refused(loss):
    with pytest.raises(ValueError, match="expected an embedding of at least one sample"):
        loss(torch.randn(0, 4), torch.zeros(0, dtype=torch.int64))
