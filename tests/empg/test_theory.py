"""The paper's theory, and what the KL estimator's gradient really is, by autograd."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from empg.losses import k3


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 40), st.floats(0.1, 6.0), st.integers(0, 2**31))
def test_proposition_1_expected_squared_score_is_one_minus_exp_of_minus_renyi_2_entropy(size, spread, seed):
    logits = spread * torch.randn(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    policy = torch.softmax(logits, 0)
    expected_norm = torch.zeros((), dtype=torch.float64)
    for action in range(size):
        z = logits.clone().requires_grad_()
        torch.log_softmax(z, 0)[action].backward()
        assert z.grad is not None
        expected_norm += policy[action] * (z.grad**2).sum()
    renyi_2 = -torch.log((policy**2).sum())
    torch.testing.assert_close(expected_norm, 1 - torch.exp(-renyi_2), rtol=1e-10, atol=1e-12)


def _expected_gradient_of_k3(logits, reference):
    """Exact expectation of the gradient of k3 as a loss: actions are drawn, then fixed."""
    policy = torch.softmax(logits, 0)
    total = torch.zeros_like(logits)
    for action in range(len(logits)):
        z = logits.clone().requires_grad_()
        k3(torch.log_softmax(z, 0)[action], reference[action]).backward()
        total += policy[action] * z.grad
    return total


def _gradient(divergence, logits):
    z = logits.clone().requires_grad_()
    divergence(torch.log_softmax(z, 0)).backward()
    return z.grad


def test_the_k3_loss_follows_the_gradient_of_the_forward_kl_not_of_the_reverse_kl():
    logits = torch.tensor([1.0, 0.2, -0.7], dtype=torch.float64)
    reference = torch.log_softmax(torch.tensor([-0.5, 0.4, 1.1], dtype=torch.float64), 0)
    forward = _gradient(lambda logp: (reference.exp() * (reference - logp)).sum(), logits)
    reverse = _gradient(lambda logp: (logp.exp() * (logp - reference)).sum(), logits)

    actual = _expected_gradient_of_k3(logits, reference)
    torch.testing.assert_close(actual, forward)
    assert (actual - reverse).norm() > 0.1 * reverse.norm()


def test_the_expected_value_of_k3_is_the_reverse_kl():
    logp = torch.log_softmax(torch.tensor([1.0, 0.2, -0.7], dtype=torch.float64), 0)
    reference = torch.log_softmax(torch.tensor([-0.5, 0.4, 1.1], dtype=torch.float64), 0)
    torch.testing.assert_close(
        (logp.exp() * k3(logp, reference)).sum(), (logp.exp() * (logp - reference)).sum()
    )
