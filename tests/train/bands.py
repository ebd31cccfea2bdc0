"""A small dataset that networks learn quickly."""

import random
import struct

SIDE = 16


def band(noise, label, side=SIDE):
    """A grey image with a brighter band where its class says."""
    return bytes(noise.randrange(128) + (100 if p * 3 // (side * side) == label else 0)
                 for p in range(side * side))


def write_bands(folder, part, count, side=SIDE):
    """Images of 3 classes in turn, as idx files."""
    noise = random.Random(1)
    folder.mkdir(exist_ok=True)
    (folder / f"{part}-images-idx3-ubyte").write_bytes(
        struct.pack(">4B3I", 0, 0, 8, 3, count, side, side)
        + b"".join(band(noise, i % 3, side) for i in range(count)))
    (folder / f"{part}-labels-idx1-ubyte").write_bytes(
        struct.pack(">4BI", 0, 0, 8, 1, count) + bytes(i % 3 for i in range(count)))
