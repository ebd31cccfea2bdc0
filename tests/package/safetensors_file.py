"""Weights as safetensors files, in a few lines, so that the tests need no package for it."""

import json
import struct

import torch

TYPES = {"F32": torch.float32, "F64": torch.float64, "I64": torch.int64}
NAMES = {dtype: name for name, dtype in TYPES.items()}


def save(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = bytes(tensor.detach().contiguous().flatten().view(torch.uint8).tolist())
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def load(path):
    raw = path.read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    tensors = {}
    for name, entry in json.loads(raw[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        values = torch.frombuffer(bytearray(raw[begin:end]), dtype=torch.uint8)
        tensors[name] = values.view(TYPES[entry["dtype"]]).view(entry["shape"])
    return tensors
