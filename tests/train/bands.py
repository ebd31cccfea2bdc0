"""A small dataset that networks learn quickly."""

import pathlib
import random
import struct
import tempfile

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


def folder_of_bands(add_cleanup, test_images):
    """A folder for one test, or one class of them, with such a dataset in data/."""
    scratch = tempfile.TemporaryDirectory()
    add_cleanup(scratch.cleanup)
    folder = pathlib.Path(scratch.name)
    write_bands(folder / "data", "train", 150)
    write_bands(folder / "data", "t10k", test_images)
    return folder
