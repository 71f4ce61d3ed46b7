from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.database import DirectoryBasedExampleDatabase

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
# One store for all runs: each kernel is compiled once.
os.environ.setdefault("BILOGP_CACHE_DIR", str(HERE.parents[1] / "build/python/test-store"))

settings.register_profile(
    "bilogp", database=DirectoryBasedExampleDatabase(HERE.parents[1] / "build/python/hypothesis"), deadline=None
)
settings.load_profile("bilogp")

if os.environ.get("BILOGP_TEST_WITHOUT_EXCHANGE") == "1":  # as with a torch from before DLPack's exchange table
    import torch

    del torch.Tensor.__dlpack_c_exchange_api__
    assert not hasattr(torch.nn.Parameter, "__dlpack_c_exchange_api__")

import arrays as array_kinds  # noqa: E402

KINDS = array_kinds.kinds()


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def arrays(request):
    return request.param


@pytest.fixture
def rng():
    import numpy as np

    return np.random.default_rng(20240611)


@pytest.fixture(params=[kind.device for kind in KINDS if kind.name.startswith("torch")])
def device(request):
    return request.param


@pytest.fixture
def logits(device):
    """torch's, on each of its devices."""
    import torch

    return torch.randn(3, 5, 600, generator=torch.Generator().manual_seed(7)).to(device).requires_grad_()


@pytest.fixture
def ids(device):
    import torch

    ids = torch.randint(0, 600, (3, 5), generator=torch.Generator().manual_seed(8)).to(device)
    ids[0, 1] = -100
    return ids
