"""The frozen policy that the KL term measures the distance to: another model, or the trained one without adapters."""

from __future__ import annotations

import copy
from contextlib import nullcontext

from torch import Tensor, nn

from agents.policies.adapters import adapters_off, base_weights, has_adapters
from empg import checkpoint
from empg.batch import Batch
from empg.config import LearnerConfig
from empg.parallel import Processes
from empg.scores import LanguageModel, open_model, score
from empg.sharding import shard


class Reference:
    """Scores under the reference, and what it is."""

    def __init__(self, trained: LanguageModel, given: nn.Module | None = None) -> None:
        """Take what is given, else the trained model without its adapters, else a copy of it as it is now.

        Raises `ValueError` where it would move with the trained model.
        """
        if given is trained.model:
            raise ValueError("the reference must be another module than the model, or it would move with it")
        self.shares = given is None and has_adapters(trained.model)
        """Whether its weights are those of the trained model without adapters."""
        if self.shares:
            _check_frozen(trained.model)
            self._lm = trained
        else:
            own = copy.deepcopy(trained.model) if given is None else given
            self._lm = open_model(own.requires_grad_(False).eval(), trained.precision)
        self._sha256: str | None = None

    @property
    def model(self) -> nn.Module:
        """Whose weights it has; with adapters, they are in the trained model."""
        return self._lm.model

    def divide(self, trained: LanguageModel, processes: Processes) -> None:
        """Share the weights out between processes, as those of the trained model have been."""
        self._lm = trained if self.shares else shard(self._lm, processes)

    def logprob(self, batch: Batch, config: LearnerConfig, processes: Processes) -> Tensor:
        """[N, T] log-probabilities (nats) of the batch's sampled tokens."""
        with adapters_off(self.model) if self.shares else nullcontext():
            return score(
                self._lm,
                batch,
                temperature=config.temperature,
                token_budget=config.batch.token_budget,
                chunk=config.batch.chunk,
                entropy=False,
                processes=processes,
            ).logprob

    def sha256(self) -> str:
        """Of its weights; of a model without adapters' own, whoever holds them."""
        if self._sha256 is None:
            found = dict(base_weights(self.model)) if self.shares else checkpoint.model_tensors(self.model)
            self._sha256 = checkpoint.digest(found)
        return self._sha256


def _check_frozen(model: nn.Module) -> None:
    moving = [name for name, weight in base_weights(model) if weight.requires_grad]
    if moving:
        raise ValueError(
            f"{moving[:3]} are trained beside the adapters, so the model without adapters is no fixed reference; "
            "expected a reference of its own, or trained adapters only"
        )
