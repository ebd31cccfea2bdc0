"""A small dataset that networks learn quickly."""

import random
import struct


def write_bands(folder, part, count, side=16):
    """Grey images of 3 classes, each with a brighter band of its own, as idx files."""
    noise = random.Random(1)
    images = bytearray()
    for i in range(count):
        for p in range(side * side):
            images.append(noise.randrange(128) + (100 if p * 3 // (side * side) == i % 3 else 0))
    folder.mkdir(exist_ok=True)
    (folder / f"{part}-images-idx3-ubyte").write_bytes(
        struct.pack(">4B3I", 0, 0, 8, 3, count, side, side) + images)
    (folder / f"{part}-labels-idx1-ubyte").write_bytes(
        struct.pack(">4BI", 0, 0, 8, 1, count) + bytes(i % 3 for i in range(count)))
