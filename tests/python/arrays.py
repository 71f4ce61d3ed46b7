"""The same tests over several kinds of arrays: each kind makes them from numpy's and takes them back."""

from __future__ import annotations

import numpy as np

import bilogp


class NumpyArrays:
    name = "numpy"

    def make(self, array):
        return array

    def back(self, array):
        return array

    def logp(self, logits, ids, **options):
        return self.back(bilogp.logp(self.make(logits), self.make(ids), **self.options(options)))

    def gradient(self, logits, ids, grad_logp, **options):
        """Of sum(grad_logp * logp), as numpy."""
        options.pop("inplace_backward", None)
        return bilogp.logp_backward(logits, ids, grad_logp, **options)

    def options(self, options):
        return {
            key: self.make(value) if isinstance(value, np.ndarray) and value.ndim else value
            for key, value in options.items()
        }


class TorchArrays(NumpyArrays):
    def __init__(self, device):
        self.device = device
        self.name = f"torch-{device}"

    def make(self, array):
        import torch

        if array.dtype.name == "bfloat16":
            return torch.from_numpy(np.array(array).view(np.int16)).view(torch.bfloat16).to(self.device)
        return torch.from_numpy(np.array(array)).to(self.device)

    def back(self, array):
        import ml_dtypes
        import torch

        array = array.detach().cpu()
        if array.dtype == torch.bfloat16:
            return array.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
        return array.numpy()

    def gradient(self, logits, ids, grad_logp, **options):
        leaf = self.make(logits).requires_grad_()
        row_major = bilogp.logp(leaf, self.make(ids), **self.options(options))
        row_major.backward(self.make(grad_logp))
        return self.back(leaf.grad)


def answers(logits, ids, **options):
    """logp and gradient of its sum of torch's tensors, eagerly."""
    leaf = logits.detach().clone().requires_grad_()
    logp = bilogp.logp(leaf, ids, **options)
    logp.sum().backward()
    return logp.detach(), leaf.grad


def kinds():
    found = [NumpyArrays()]
    try:
        import torch
    except ImportError:
        return found
    found.append(TorchArrays("cpu"))
    if torch.cuda.is_available():
        found.append(TorchArrays("cuda"))
    return found
