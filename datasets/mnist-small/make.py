"""Makes the four files beside it from the full MNIST: python3 make.py FOLDER, where FOLDER
holds the four idx files, plain. The same files come out each time.

Of each class, 1,200 training and 200 test images are taken at even steps through the set
(the test set's two halves were written by different people), and kept in its order.
"""

import gzip
import pathlib
import struct
import sys


def values(path, header):
    return path.read_bytes()[header:]


def chosen(labels, per_class):
    picks = []
    for digit in range(10):
        where = [i for i, label in enumerate(labels) if label == digit]
        picks += [where[k * len(where) // per_class] for k in range(per_class)]
    return sorted(picks)


def write(name, magic, sizes, body):
    data = struct.pack(f">{1 + len(sizes)}I", magic, *sizes) + body
    path = pathlib.Path(__file__).parent / name
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(data)


source = pathlib.Path(sys.argv[1])
for prefix, per_class in (("train", 1200), ("t10k", 200)):
    images = values(source / f"{prefix}-images-idx3-ubyte", 16)
    labels = values(source / f"{prefix}-labels-idx1-ubyte", 8)
    picks = chosen(labels, per_class)
    pixels = b"".join(images[784 * i : 784 * (i + 1)] for i in picks)
    write(f"{prefix}-images-idx3-ubyte.gz", 0x803, (len(picks), 28, 28), pixels)
    write(f"{prefix}-labels-idx1-ubyte.gz", 0x801, (len(picks),), bytes(labels[i] for i in picks))
