"""The real rows that the repository carries, and their answers."""

from __future__ import annotations

import json
from functools import cache

import ml_dtypes
import numpy as np

from canon import REPOSITORY

DATA = REPOSITORY / "tests/data"


@cache
def rollouts() -> dict[str, np.ndarray]:
    """logits bfloat16 [48, 49152], target_ids and sequence_ids int64 [48]; memory-mapped, so read-only."""
    path = DATA / "smollm2_rollouts_bf16.safetensors"
    raw = np.memmap(path, np.uint8, mode="r")
    length = int(raw[:8].view(np.uint64)[0])
    header = json.loads(bytes(raw[8 : 8 + length]))
    dtypes = {"BF16": ml_dtypes.bfloat16, "I64": np.int64}
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[name] = raw[begin:end].view(dtypes[entry["dtype"]]).reshape(entry["shape"])
    return tensors


@cache
def expected(name: str) -> dict[str, np.ndarray]:
    answers = json.loads((DATA / "smollm2_rollouts_expected.json").read_text())[name]
    words = {key: np.array([int(word, 16) for word in answers[key]], np.uint32) for key in ("logp", "lse", "node_m")}
    crc = np.array([int(word, 16) for word in answers["grad_fp32_crc32_per_row"]], np.uint32)
    return words | {"node_E": np.array(answers["node_E"], np.int32), "gradient_crc32": crc}


@cache
def hand_cases() -> list[dict]:
    def floats(words):
        return np.array([int(word, 16) for word in np.atleast_1d(words)], np.uint32).view(np.float32)

    cases = json.loads((DATA / "hand_cases.json").read_text())["cases"]
    names = ("logits", "temperature", "g", "logp", "lse", "node_m", "grad")
    return [case | {name: floats(case[name]) for name in names} for case in cases]
