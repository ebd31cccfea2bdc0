"""Images that repeat exactly, made alike here and in tests/corrupt/test_images.cpp."""

import numpy as np

STEP = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Random:
    """qact::base::Random."""

    def __init__(self, seed, stream):
        self.state = mix(mix(seed) ^ ((stream + 1) * STEP & MASK))

    def bits(self):
        self.state = (self.state + STEP) & MASK
        return mix(self.state)

    def below(self, n):
        return (self.bits() >> 32) * n >> 32

    def many_bits(self, n):
        with np.errstate(over="ignore"):
            z = np.uint64(self.state) + np.uint64(STEP) * np.arange(1, n + 1, dtype=np.uint64)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            return z ^ (z >> np.uint64(31))


def ellipse(side, cx, cy, rx, ry):
    y, x = np.mgrid[0:side, 0:side].astype(np.int64)
    return ((x - cx) * ry) ** 2 + ((y - cy) * rx) ** 2 <= (rx * ry) ** 2


def image(index, side, channels=3):
    """RGB: a gradient between four corners, six ellipses, a fine texture. Grey: three rings
    on black, like strokes of a digit. uint8 (side, side, channels)."""
    random = Random(7, index)
    if channels == 1:
        out = np.zeros((side, side, 1), np.int64)
        for _ in range(3):
            cx, cy = (side // 4 + random.below(side // 2) for _ in range(2))
            rx, ry = (4 + random.below(side // 4) for _ in range(2))
            ink = 128 + random.below(128)
            ring = ellipse(side, cx, cy, rx, ry) & ~ellipse(side, cx, cy, rx - 3, ry - 3)
            out[ring] = ink
        return out.astype(np.uint8)
    corner = [[random.below(256) for _ in range(channels)] for _ in range(4)]
    corner = np.array(corner, np.int64)
    y, x = np.mgrid[0:side, 0:side].astype(np.int64)[..., None]
    end = side - 1
    out = (
        (end - y) * (end - x) * corner[0]
        + (end - y) * x * corner[1]
        + y * (end - x) * corner[2]
        + y * x * corner[3]
    ) // (end * end)
    for _ in range(6):
        cx, cy = (random.below(side) for _ in range(2))
        rx, ry = (2 + random.below(side // 3) for _ in range(2))
        colour = [random.below(256) for _ in range(channels)]
        out[ellipse(side, cx, cy, rx, ry)] = colour
    texture = random.many_bits(side * side * channels) & np.uint64(7)
    out += texture.astype(np.int64).reshape(out.shape) - 4
    return np.clip(out, 0, 255).astype(np.uint8)
