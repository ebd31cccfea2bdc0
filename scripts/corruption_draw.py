"""The draws of qact::corrupt::Rng with the interface of numpy's generators, as far as
corruption_oracle.py asks for it: the oracle then makes the very images that the library makes."""

import math

import numpy as np

from corruption_images import MASK, Random

TAIL = 3.6541528853610088
AREA = 0.00492867323399


def ziggurat():
    edge = [AREA / math.exp(-0.5 * TAIL * TAIL), TAIL]
    for i in range(1, 255):
        height = math.exp(-0.5 * edge[i] * edge[i])
        edge.append(math.sqrt(-2 * math.log(height + AREA / edge[i])))
    edge.append(0.0)
    return edge, [math.exp(-0.5 * x * x) for x in edge]


EDGE, HEIGHT = ziggurat()


def fnv1a(text):
    h = 0xCBF29CE484222325
    for c in text.encode():
        h = (h ^ c) * 0x100000001B3 & MASK
    return h


class Draw:
    def __init__(self, seed, name, severity, image):
        stream = (fnv1a(name) + severity) & MASK
        self.random = Random(Random(seed, stream).bits(), image)

    def unit(self):
        return (self.random.bits() >> 11) * 2.0**-53

    def each(self, one, size):
        if size is None:
            return one()
        return np.array([one() for _ in range(int(np.prod(size)))]).reshape(size)

    def uniform(self, low, high, size=None):
        return self.each(lambda: low + (high - low) * self.unit(), size)

    def integers(self, low, high=None, size=None):
        low, high = (0, low) if high is None else (low, high)
        return self.each(lambda: low + self.random.below(high - low), size)

    def choice(self, values, size=None):
        return self.each(lambda: values[self.random.bits() >> 63], size)

    def normal(self, loc=0.0, scale=1.0, size=None):
        return self.each(lambda: loc + scale * self.standard_normal(), size)

    def standard_normal(self):
        while True:
            bits = self.random.bits()
            layer = bits & 255
            signed = bits - (1 << 64) if bits >> 63 else bits
            x = (signed >> 11) * 2.0**-52 * EDGE[layer]
            if abs(x) < EDGE[layer + 1]:
                return x
            if layer == 0:
                return self.beyond(x)
            y = HEIGHT[layer] + self.unit() * (HEIGHT[layer + 1] - HEIGHT[layer])
            if y < math.exp(-0.5 * x * x):
                return x

    def beyond(self, x):
        while True:
            further = -math.log(1 - self.unit()) / TAIL
            y = -math.log(1 - self.unit())
            if 2 * y >= further * further:
                return -TAIL - further if x < 0 else TAIL + further

    def offsets(self, reach):
        """Two integers from -reach to below reach, of one draw."""
        bits = self.random.bits()
        return [(half * 2 * reach >> 32) - reach for half in (bits >> 32, bits & 0xFFFFFFFF)]
