"""A release as a model for BoTorch's acquisition functions. BoTorch is an extra: nothing else needs it."""

from __future__ import annotations

from botorch.models.gpytorch import GPyTorchModel
from botorch.models.model import FantasizeMixin

from .gpytorch_models import ReleasedGP


class ReleasedModel(ReleasedGP, GPyTorchModel, FantasizeMixin):  # type: ignore[misc]
    """A release that can be handed to acquisition functions, which look for the largest value."""

    _num_outputs = 1
