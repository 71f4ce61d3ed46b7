#!/usr/bin/env python3
"""Writes a few valid inputs per libFuzzer target into DIRECTORY/TARGET, for the fuzzer to begin with."""

import json
import pathlib
import struct
import sys


def safetensors(tensors):
    header, data = {"__metadata__": {"from": "seed"}}, b""
    for name, dtype, shape, payload in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(payload)]}
        data += payload
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def npy(descr, shape, payload, version=1):
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    prefix = 10 if version == 1 else 12
    text += b" " * (-(prefix + len(text) + 1) % 64) + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + payload


def dlpack(ndim, dtype, device, flags, shape):
    extents = [*shape, *[1] * (8 - len(shape))]
    return struct.pack("<bBBBbBB", ndim, *dtype, device, flags, 0) + struct.pack("<8q" if flags & 1 else "<8b", *extents)


def image(entries, code):
    head = b"BLGPIMG1" + struct.pack("<IIQ", 62, len(entries), len(code))
    return head + b"".join(name.ljust(48, b"\0") + struct.pack("<Q", at) for name, at in entries) + code


SEEDS = {
    "fuzz_safetensors": [
        safetensors([("logits", "BF16", [2, 3], bytes(12)), ("target_ids", "I64", [2], bytes(16))]),
        safetensors([("logits", "F32", [1, 4], bytes(16))]),
        safetensors([]),
    ],
    "fuzz_npy": [
        b"\0" + npy("<f4", (2, 3), bytes(24)),
        b"\2" + npy("<V2", (5,), bytes(10)),
        b"\5" + npy("<i8", (), bytes(8), version=2),
        b"\5" + npy("<f2", (0, 7), b"", version=3),
    ],
    "fuzz_dlpack": [
        dlpack(2, (2, 32, 1), 1, 0, [2, 3]),
        dlpack(3, (4, 16, 1), 1, 5, [1 << 40, 1 << 40, 8]),
        dlpack(2, (2, 16, 1), 2, 4, [0, 3]),
    ],
    "fuzz_store_row": [
        b"\x10" + bytes(16) + b"\x10" + bytes(16) + b"\x04text\x03cpu\x02v3\x05clang\x04logp" + b"payload",
        image([(b"bilogp_logp_forward", 0)], b"\x90" * 64 + b"\xc3"),
    ],
}

for target, seeds in SEEDS.items():
    directory = pathlib.Path(sys.argv[1]) / target
    directory.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (directory / f"seed-{number}").write_bytes(seed)
