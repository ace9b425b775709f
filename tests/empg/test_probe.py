"""Gradients of single steps against finite sums by hand: Proposition 1, and the scatter with and without g."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from empg.batch import make_batch
from empg.probe import draw_steps, probe
from empg.scores import open_model, score
from empg.update import Scored
from tests.empg.helpers import Bigram, make_step, random_trajectory, tiny_model, trajectory


def _scored(model, trajectories, temperature=1.0):
    batch = make_batch(trajectories, 0)
    own = score(model, batch, temperature=temperature, token_budget=1000, chunk=100)
    generator = torch.Generator().manual_seed(1)
    advantage = torch.randn(batch.num_trajectories, generator=generator)[batch.trajectory_of_step]
    entropy = torch.rand(batch.num_steps, generator=generator)
    return Scored(batch, advantage, entropy, own.logprob, own.logprob, own.entropy)


def _probe(model, scored, steps, g=None, temperature=1.0):
    g = torch.ones(scored.batch.num_steps) if g is None else g
    parameters = [p for p in model.parameters() if p.requires_grad]
    return probe(open_model(model), scored, torch.tensor(steps), g, parameters, temperature=temperature)


def _step_logprob(model, trajectory_, place, temperature):
    """Mean log-probability of one step, from the whole context fed on its own."""
    context = []
    for step in trajectory_.steps[: place + 1]:
        context = [*context, *step.prompt_ids] if step.continues else [*step.prompt_ids]
        start, context = len(context), [*context, *step.action_ids]
    logits = model(input_ids=torch.tensor([context])).logits[0, start - 1 : -1] / temperature
    targets = torch.tensor(context[start:])
    return torch.log_softmax(logits, -1).gather(-1, targets[:, None]).mean()


@pytest.mark.parametrize("window", [False, True])
def test_a_steps_gradient_is_that_of_its_mean_log_probability_alone(window):
    model = tiny_model()
    episodes = [random_trajectory(np.random.default_rng(i), sample=i, turns=3, window=window) for i in (0, 1)]
    scored = _scored(model, episodes, temperature=0.7)
    g = torch.linspace(0.5, 1.5, 6)
    found = _probe(model, scored, [1, 2, 4], g, temperature=0.7)
    gradients = []
    for number in (1, 2, 4):
        model.zero_grad()
        _step_logprob(model, episodes[number // 3], number % 3, 0.7).backward()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]).double())
    assert found.norm.tolist() == pytest.approx([float(one.norm()) for one in gradients], rel=1e-4)
    for weights, variance in ((torch.ones(6), found.plain), (g, found.scaled)):
        chosen = torch.stack(
            [
                float(scored.raw_advantage[n] * weights[n]) * each
                for n, each in zip((1, 2, 4), gradients, strict=True)
            ]
        )
        assert variance.mean_sq == pytest.approx(float(chosen.mean(0).square().sum()), rel=1e-4)
        assert variance.trace == pytest.approx(float(chosen.var(0).sum()), rel=1e-4)


def test_the_squared_logit_gradient_is_the_lemma_of_proposition_1_by_autograd():
    """A bigram's table rows are its logits, so autograd gives the gradient that the lemma speaks of."""
    model = Bigram()
    scored = _scored(model, [trajectory([make_step([3], [5], continues=False)])])
    found = _probe(model, scored, [0])
    logits = model.table[3].detach().requires_grad_()
    (gradient,) = torch.autograd.grad(torch.log_softmax(logits, 0)[5], logits)
    assert float(found.logit_sq[0]) == pytest.approx(float(gradient.square().sum()), rel=1e-5)
    assert float(found.norm[0]) == pytest.approx(float(gradient.norm()), rel=1e-5)


def test_the_expectation_over_all_actions_is_one_minus_exp_of_minus_renyi_2():
    model = Bigram()
    episodes = [trajectory([make_step([3], [a], continues=False)], sample=a) for a in range(20)]
    found = _probe(model, _scored(model, episodes), list(range(20)))
    p = torch.softmax(model.table[3].detach(), 0)
    assert float((p * found.logit_sq).sum()) == pytest.approx(float(1 - p.square().sum()), rel=1e-5)
    assert found.logit_expected.tolist() == pytest.approx([float(1 - p.square().sum())] * 20, rel=1e-5)
    assert found.renyi2.tolist() == pytest.approx([float(-p.square().sum().log())] * 20, rel=1e-5)


def test_a_step_of_several_tokens_has_their_means():
    model = Bigram()
    found = _probe(model, _scored(model, [trajectory([make_step([3], [5, 7], continues=False)])]), [0])
    p = torch.softmax(model.table[[3, 5]].detach(), -1)
    assert float(found.renyi2[0]) == pytest.approx(float(-p.square().sum(-1).log().mean()), rel=1e-5)


def test_one_probed_step_has_no_variance_and_zero_advantages_have_none_to_show():
    model = tiny_model()
    scored = _scored(model, [random_trajectory(np.random.default_rng(0), turns=3)])
    assert _probe(model, scored, [1]).plain.trace is None
    silent = Scored(
        scored.batch,
        torch.zeros(3),
        *[getattr(scored, n) for n in ("entropy", "old_logprob", "reference_logprob", "token_entropy")],
    )
    assert _probe(model, silent, [0, 1, 2]).plain == (0.0, 0.0)


def test_probing_leaves_gradients_and_mode_as_they_were():
    model = tiny_model().train()
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    _probe(model, _scored(model, [random_trajectory(np.random.default_rng(0), turns=2)]), [0, 1])
    assert all(bool((p.grad == 1).all()) for p in model.parameters())
    assert model.training


def test_steps_are_drawn_without_replacement_by_seed_and_iteration_alone():
    drawn = draw_steps(100, 10, seed=3, iteration=4)
    assert len(set(drawn.tolist())) == 10
    assert drawn.tolist() == sorted(drawn.tolist()) == draw_steps(100, 10, seed=3, iteration=4).tolist()
    assert drawn.tolist() != draw_steps(100, 10, seed=3, iteration=5).tolist()
    assert draw_steps(4, 10, seed=0, iteration=0).tolist() == [0, 1, 2, 3]
