"""The published corruptions with the libraries they were made with: numpy, scipy,
scikit-image, OpenCV, Pillow and ImageMagick (through Wand). An image is uint8, (side, side, 3)
or (side, side) for MNIST-C; `scale` is cifar, tiny, imagenet or mnist."""

import ctypes
import io

import cv2
import numpy as np
import skimage.color
import skimage.feature
import skimage.transform
import skimage.util
from PIL import Image
from scipy.ndimage import map_coordinates, zoom
from skimage.filters import gaussian
from wand.api import library
from wand.image import Image as WandImage

from corruption_draw import Draw

library.MagickMotionBlurImage.argtypes = (ctypes.c_void_p,) + (ctypes.c_double,) * 3

CONSTANTS = {
    "gaussian_noise": {
        "cifar": [0.04, 0.06, 0.08, 0.09, 0.10],
        "tiny": [0.04, 0.08, 0.12, 0.15, 0.18],
        "imagenet": [0.08, 0.12, 0.18, 0.26, 0.38],
    },
    "speckle_noise": {
        "cifar": [0.06, 0.1, 0.12, 0.16, 0.2],
        "tiny": [0.15, 0.2, 0.25, 0.3, 0.35],
        "imagenet": [0.15, 0.2, 0.35, 0.45, 0.6],
    },
    "shot_noise": {
        "cifar": [500, 250, 100, 75, 50],
        "tiny": [250, 100, 50, 30, 15],
        "imagenet": [60, 25, 12, 5, 3],
    },
    "impulse_noise": {
        "cifar": [0.01, 0.02, 0.03, 0.05, 0.07],
        "tiny": [0.01, 0.02, 0.05, 0.08, 0.14],
        "imagenet": [0.03, 0.06, 0.09, 0.17, 0.27],
    },
    "defocus_blur": {
        "cifar": [(0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)],
        "tiny": [(0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)],
        "imagenet": [(3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)],
    },
    "glass_blur": {
        "cifar": [(0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)],
        "tiny": [(0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)],
        "imagenet": [(0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)],
    },
    "motion_blur": {
        "cifar": [(6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)],
        "tiny": [(10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)],
        "imagenet": [(10, 3), (15, 5), (15, 8), (15, 12), (20, 15)],
    },
    "zoom_blur": {
        "cifar": [(1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)],
        "tiny": [(1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)],
        "imagenet": [(1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)],
    },
    "gaussian_blur": {
        "cifar": [0.4, 0.6, 0.7, 0.8, 1],
        "tiny": [0.5, 0.75, 1, 1.25, 1.5],
        "imagenet": [1, 2, 3, 4, 6],
    },
    "snow": {
        "cifar": [
            (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ],
        "tiny": [
            (0.1, 0.2, 1, 0.6, 8, 3, 0.8),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.8),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.7),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.65),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6),
        ],
        "imagenet": [
            (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
            (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
            (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
            (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
        ],
    },
    "frost": {
        "cifar": [(1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)],
        "tiny": [(1, 0.3), (0.9, 0.4), (0.8, 0.45), (0.75, 0.5), (0.7, 0.55)],
        "imagenet": [(1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)],
    },
    "fog": {
        "cifar": [(0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)],
        "tiny": [(0.4, 3), (0.7, 3), (1, 2.5), (1.5, 2), (2, 1.75)],
        "imagenet": [(1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)],
    },
    "spatter": {
        "cifar": [
            (0.62, 0.1, 0.7, 0.7, 0.5, 0),
            (0.65, 0.1, 0.8, 0.7, 0.5, 0),
            (0.65, 0.3, 1, 0.69, 0.5, 0),
            (0.65, 0.1, 0.7, 0.69, 0.6, 1),
            (0.65, 0.1, 0.5, 0.68, 0.6, 1),
        ],
        "tiny": [
            (0.62, 0.1, 0.7, 0.7, 0.6, 0),
            (0.65, 0.1, 0.8, 0.7, 0.6, 0),
            (0.65, 0.3, 1, 0.69, 0.6, 0),
            (0.65, 0.1, 0.7, 0.68, 0.6, 1),
            (0.65, 0.1, 0.5, 0.67, 0.6, 1),
        ],
        "imagenet": [
            (0.65, 0.3, 4, 0.69, 0.6, 0),
            (0.65, 0.3, 3, 0.68, 0.6, 0),
            (0.65, 0.3, 2, 0.68, 0.5, 0),
            (0.65, 0.3, 1, 0.65, 1.5, 1),
            (0.67, 0.4, 1, 0.65, 1.5, 1),
        ],
    },
    "brightness": {
        "cifar": [0.05, 0.1, 0.15, 0.2, 0.3],
        "tiny": [0.1, 0.2, 0.3, 0.4, 0.5],
        "imagenet": [0.1, 0.2, 0.3, 0.4, 0.5],
    },
    "contrast": {
        "cifar": [0.75, 0.5, 0.4, 0.3, 0.15],
        "tiny": [0.4, 0.3, 0.2, 0.1, 0.05],
        "imagenet": [0.4, 0.3, 0.2, 0.1, 0.05],
    },
    "saturate": {
        "cifar": [(0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)],
        "tiny": [(0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (30, 0.2)],
        "imagenet": [(0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)],
    },
    "elastic_transform": {
        "cifar": [(0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)],
        "tiny": [(0, 0, 0.08), (0.05, 0.3, 0.06), (0.1, 0.08, 0.06), (0.1, 0.03, 0.03), (0.16, 0.03, 0.02)],
        "imagenet": [(2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02)],
    },
    "pixelate": {
        "cifar": [0.95, 0.9, 0.85, 0.75, 0.65],
        "tiny": [0.9, 0.8, 0.7, 0.6, 0.5],
        "imagenet": [0.6, 0.5, 0.4, 0.3, 0.25],
    },
    "jpeg_compression": {
        "cifar": [80, 65, 58, 50, 40],
        "tiny": [65, 58, 50, 40, 25],
        "imagenet": [25, 18, 15, 10, 7],
    },
    "shear": {"imagenet": [0.2, 0.4, 0.6, 0.8, 1.0]},
    "rotate": {"imagenet": [0.2, 0.4, 0.6, 0.8, 1.0]},
    "scale": {"imagenet": [1 / 0.9, 1 / 0.8, 1 / 0.7, 1 / 0.6, 1 / 0.5]},
    "translate": {"imagenet": [1, 2, 3, 4, 5]},
}


def constants(name, scale, severity):
    return CONSTANTS[name]["imagenet" if scale == "mnist" else scale][severity - 1]


def finish(x, scale):
    """[0, 255] to bytes. MNIST-C's functions return float32, which is rounded, ties to even."""
    x = np.clip(x, 0, 255)
    return (np.round(x.astype(np.float32)) if scale == "mnist" else x).astype(np.uint8)


def smooth(x, sigma, scale):
    # MNIST-C asks for channels on a grey image: its columns are taken as channels.
    return gaussian(x, sigma=sigma, channel_axis=-1)


def motion(array, radius, sigma, degrees):
    data = io.BytesIO()
    Image.fromarray(array).save(data, format="PNG")
    with WandImage(blob=data.getvalue()) as wand:
        library.MagickMotionBlurImage(wand.wand, radius, sigma, degrees)
        blob = np.frombuffer(wand.make_blob(), np.uint8)
    flag = cv2.IMREAD_GRAYSCALE if array.ndim == 2 else cv2.IMREAD_COLOR
    out = cv2.imdecode(blob, flag)
    return out if array.ndim == 2 else out[..., ::-1]


def clipped_zoom(x, factor):
    side = x.shape[0]
    crop = int(np.ceil(side / float(factor)))
    top = (side - crop) // 2
    factors = (factor, factor, 1)[: x.ndim]
    big = zoom(x[top : top + crop, top : top + crop], factors, order=1)
    trim = (big.shape[0] - side) // 2
    return big[trim : trim + side, trim : trim + side]


def plasma(side, decay, rng):
    p = np.zeros((side, side))
    step, width = side, 100.0
    while step >= 2:
        half = step // 2
        corner = p[::step, ::step]

        def displaced(total, uniform):
            return total / 4 + width * uniform

        right, below = np.roll(corner, -1, 1), np.roll(corner, -1, 0)
        uniform = rng.uniform(-width, width, corner.shape)
        total = corner + right + below + np.roll(right, -1, 0)
        p[half::step, half::step] = displaced(total, uniform)
        centre = p[half::step, half::step]
        uniform = rng.uniform(-width, width, corner.shape + (2,))
        total = centre + np.roll(centre, 1, 0) + corner + right
        p[::step, half::step] = displaced(total, uniform[..., 0])
        total = centre + np.roll(centre, 1, 1) + corner + below
        p[half::step, ::step] = displaced(total, uniform[..., 1])
        step //= 2
        width /= decay
    p -= p.min()
    return p / p.max()


def gaussian_noise(x, c, scale, rng):
    x = x / 255.0
    return finish(np.clip(x + rng.normal(size=x.shape, scale=c), 0, 1) * 255, scale)


def speckle_noise(x, c, scale, rng):
    x = x / 255.0
    return finish(np.clip(x + x * rng.normal(size=x.shape, scale=c), 0, 1) * 255, scale)


def shot_noise(x, c, scale, rng):
    return finish(np.clip(rng.poisson(x / 255.0 * c) / float(c), 0, 1) * 255, scale)


def impulse_noise(x, c, scale, rng):
    x = skimage.util.random_noise(x / 255.0, mode="s&p", amount=c, rng=rng)
    return finish(np.clip(x, 0, 1) * 255, scale)


def defocus_blur(x, c, scale, rng):
    radius, alias = c
    reach, size = (8, 3) if radius <= 8 else (radius, 5)
    line = np.arange(-reach, reach + 1)
    inside = np.array(line[:, None] ** 2 + line**2 <= radius**2, dtype=np.float32)
    inside /= inside.sum()
    kernel = cv2.GaussianBlur(inside, ksize=(size, size), sigmaX=alias)
    return finish(np.clip(cv2.filter2D(x / 255.0, -1, kernel), 0, 1) * 255, scale)


def offsets(rng, reach):
    if isinstance(rng, Draw):
        return rng.offsets(reach)
    return rng.integers(-reach, reach, size=2)


def glass_blur(x, c, scale, rng):
    sigma, reach, rounds = c
    x = np.uint8(smooth(x / 255.0, sigma, scale) * 255)
    height, width = x.shape[:2]
    for _ in range(rounds):
        for h in range(height - reach, reach, -1):
            for w in range(width - reach, reach, -1):
                if scale == "mnist" and rng.choice([False, True]):
                    continue
                dy, dx = offsets(rng, reach)
                if scale == "mnist":
                    x[h, w], x[h + dy, w + dx] = int(x[h + dy, w + dx]), int(x[h, w])
                else:
                    x[h, w] = x[h + dy, w + dx]
    return finish(np.clip(smooth(x / 255.0, sigma, scale), 0, 1) * 255, scale)


def motion_blur(x, c, scale, rng):
    return motion(x, c[0], c[1], rng.uniform(-45, 45))


def zoom_blur(x, c, scale, rng):
    x = (x / 255.0).astype(np.float32)
    factors = np.arange(1, c[0], c[1])
    out = np.zeros_like(x)
    for factor in factors:
        out += clipped_zoom(x, factor)
    return finish(np.clip((x + out) / (len(factors) + 1), 0, 1) * 255, scale)


def gaussian_blur(x, c, scale, rng):
    return finish(np.clip(smooth(x / 255.0, c, scale), 0, 1) * 255, scale)


def snow(x, c, scale, rng):
    mean, deviation, factor, threshold, radius, sigma, keep = c
    x = x.astype(np.float32) / 255.0
    layer = clipped_zoom(rng.normal(size=x.shape[:2], loc=mean, scale=deviation), factor)
    layer[layer < threshold] = 0
    layer = (np.clip(layer, 0, 1) * 255).astype(np.uint8)
    layer = motion(layer, radius, sigma, rng.uniform(-135, -45)) / 255.0
    grey = x
    if x.ndim == 3:
        grey = cv2.cvtColor(x, cv2.COLOR_RGB2GRAY)[..., None]
        layer = layer[..., None]
    x = keep * x + (1 - keep) * np.maximum(x, grey * 1.5 + 0.5)
    return finish(np.clip(x + layer + np.rot90(layer, k=2), 0, 1) * 255, scale)


def frost(x, c, scale, rng, textures):
    """textures: five uint8 images, RGB (grey for MNIST-C)."""
    side = x.shape[0]
    ice = textures[rng.integers(5)]
    factor = {"cifar": 0.2, "tiny": 0.3}.get(scale, 1)
    if factor != 1:
        ice = cv2.resize(ice, (0, 0), fx=factor, fy=factor)
    top, left = (rng.integers(0, ice.shape[k] - side) for k in (0, 1))
    return finish(c[0] * x + c[1] * ice[top : top + side, left : left + side], scale)


def fog(x, c, scale, rng):
    thickness, decay = c
    side = x.shape[0]
    x = x / 255.0
    brightest = x.max()
    mist = plasma({"cifar": 32, "tiny": 64}.get(scale, 256), decay, rng)[:side, :side]
    x = x + thickness * (mist[..., None] if x.ndim == 3 else mist)
    return finish(np.clip(x * brightest / (brightest + thickness), 0, 1) * 255, scale)


def spatter(x, c, scale, rng):
    mean, deviation, sigma, threshold, strength, mud = c
    x = x.astype(np.float32) / 255.0
    layer = gaussian(rng.normal(size=x.shape[:2], loc=mean, scale=deviation), sigma=sigma)
    layer[layer < threshold] = 0
    if mud or scale == "mnist":
        mask = gaussian((layer > threshold).astype(np.float32), sigma=strength)
        mask[mask < 0.8] = 0
        colour = np.float32(np.array([63, 42, 20]) / 255.0)
        if x.ndim == 3:
            mask = mask[..., None]
        else:
            colour = colour[0]
        return finish(np.clip(x * (1 - mask) + mask * colour, 0, 1) * 255, scale)
    layer = (layer * 255).astype(np.uint8)
    light = cv2.distanceTransform(255 - cv2.Canny(layer, 50, 150), cv2.DIST_L2, 5)
    light = np.minimum(light, 20)
    light = cv2.equalizeHist(cv2.blur(light, (3, 3)).astype(np.uint8))
    light = cv2.filter2D(light, cv2.CV_8U, np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]))
    mask = layer * cv2.blur(light, (3, 3)).astype(np.float32)
    if mask.max() > 0:
        mask = mask / mask.max() * strength
    colour = np.float32(np.array([175, 238, 238]) / 255.0)
    return finish(np.clip(x + mask[..., None] * colour, 0, 1) * 255, scale)


def in_hsv(x, change):
    grey = x.ndim == 2
    x = skimage.color.gray2rgb(x / 255.0) if grey else x / 255.0
    hsv = skimage.color.rgb2hsv(x)
    x = skimage.color.hsv2rgb(change(hsv))
    return np.clip(skimage.color.rgb2gray(x) if grey else x, 0, 1) * 255


def brightness(x, c, scale, rng):
    def change(hsv):
        hsv[..., 2] = np.clip(hsv[..., 2] + c, 0, 1)
        return hsv

    return finish(in_hsv(x, change), scale)


def saturate(x, c, scale, rng):
    def change(hsv):
        if scale == "mnist":
            return np.clip(hsv * c[0] + c[1], 0, 1)
        hsv[..., 1] = np.clip(hsv[..., 1] * c[0] + c[1], 0, 1)
        return hsv

    return finish(in_hsv(x, change), scale)


def contrast(x, c, scale, rng):
    x = x / 255.0
    mean = x.mean(axis=(0, 1), keepdims=True)
    return finish(np.clip((x - mean) * c + mean, 0, 1) * 255, scale)


def elastic_transform(x, c, scale, rng):
    side = x.shape[0]
    strength, sigma, reach = (v * (244 if scale == "imagenet" else side) for v in c)
    x = x.astype(np.float32) / 255.0
    shape = x.shape[:2]
    centre, q = np.float32(shape) // 2, side // 3
    points = np.float32([centre + q, [centre[0] + q, centre[1] - q], centre - q])
    moved = points + rng.uniform(-reach, reach, size=points.shape).astype(np.float32)
    border = cv2.BORDER_CONSTANT if scale == "mnist" else cv2.BORDER_REFLECT_101
    x = cv2.warpAffine(x, cv2.getAffineTransform(points, moved), shape[::-1], borderMode=border)
    if strength == 0:
        return finish(np.clip(x, 0, 1) * 255, scale)

    def displacement():
        field = gaussian(rng.uniform(-1, 1, size=shape), sigma, mode="reflect", truncate=3)
        return (field * strength).astype(np.float32)

    dx, dy = displacement(), displacement()
    column, row = np.meshgrid(np.arange(shape[1]), np.arange(shape[0]))
    mode = "constant" if scale == "mnist" else "reflect"
    planes = x[..., None] if x.ndim == 2 else x
    planes = [
        map_coordinates(planes[..., k], (row + dy, column + dx), order=1, mode=mode)
        for k in range(planes.shape[2])
    ]
    out = planes[0] if x.ndim == 2 else np.stack(planes, axis=-1)
    return finish(np.clip(out, 0, 1) * 255, scale)


def pixelate(x, c, scale, rng):
    side = x.shape[0]
    small = Image.fromarray(x).resize((int(side * c), int(side * c)), Image.BOX)
    return np.array(small.resize((side, side), Image.BOX))


def jpeg_compression(x, c, scale, rng):
    data = io.BytesIO()
    Image.fromarray(x).save(data, "JPEG", quality=c)
    return np.array(Image.open(data))


def warp(x, linear, shift=None):
    """out(p) = in(linear p + shift), keeping the centre in place unless a shift is given."""
    linear = np.array(linear, float)
    if shift is None:
        shift = 13.5 * (1 - linear.sum(axis=1))
    matrix = np.eye(3)
    matrix[:2, :2], matrix[:2, 2] = linear, shift
    out = skimage.transform.warp(x / 255.0, skimage.transform.AffineTransform(matrix=matrix))
    return finish(np.clip(out, 0, 1) * 255, "mnist")


def shear(x, c, scale, rng):
    c *= rng.choice([-1, 1])
    return warp(x, [[1, -np.sin(c)], [0, np.cos(c)]])


def rotate(x, c, scale, rng):
    c *= rng.choice([-1, 1])
    return warp(x, [[np.cos(c), -np.sin(c)], [np.sin(c), np.cos(c)]])


def scale(x, c, scale, rng):
    return warp(x, [[c, 0], [0, c]])


def translate(x, c, scale, rng):
    return warp(x, np.eye(2), c * rng.choice([-1, 1], 2))


def stripe(x, c, scale, rng):
    x = x.copy()
    x[:, :7] = 255 - x[:, :7]
    x[:, 21:] = 255 - x[:, 21:]
    return x


def line(c0, r0, c1, r1):
    column, row = np.meshgrid(np.arange(28.0), np.arange(28.0))
    if c0 == c1:
        return np.zeros((28, 28))
    slope = (r1 - r0) / (c1 - c0)
    away = np.clip(np.abs(row - (slope * (column - c0) + r0)), 0, 2.3 - 1e-10)
    ink = np.clip(np.log(1 - away / 2.3) + 1, 0, 1)
    ink[:, : int(np.floor(c0))] = 0
    ink[:, int(np.ceil(c1)) :] = 0
    return ink


def dotted_line(x, c, scale, rng):
    r0, r1 = rng.integers(0, 27, size=2)
    ink = line(0, r0, 27, r1)
    ink[:, np.arange(28) % 4 < 2] = 0
    return finish(np.clip(x / 255.0 + ink, 0, 1) * 255, "mnist")


def zigzag(x, c, scale, rng):
    c0, c1, a, b = 2, 25, 2.0, 2.0
    r0 = rng.integers(0, 27)
    r1 = r0 + rng.integers(-5, 5)
    angle = np.arctan((r1 - r0) / (c1 - c0))
    length = (c1 - c0) / np.cos(angle)
    corners = [(0, 0)]
    for i in range(int((length - a) // (2 * a)) + 1):
        corners.append(((2 * i + 1) * a, (-1) ** i * b))
    whole = 2 * a * (length // (2 * a))
    if length != whole:
        corners.append((length, corners[-1][1] / (2 * (length - whole))))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    cs, rs = turn @ np.array(corners).T + np.array([[c0], [r0]])
    x = x / 255.0
    for i in range(1, len(cs)):
        x = np.clip(x + line(cs[i - 1], rs[i - 1], cs[i], rs[i]), 0, 1)
    return finish(x * 255, "mnist")


def canny_edges(x, c, scale, rng):
    return skimage.feature.canny(x / 255.0).astype(np.uint8) * 255


def corrupt(name, image, scale, severity, rng, **extra):
    c = constants(name, scale, severity) if name in CONSTANTS else None
    return globals()[name](image, c, scale, rng, **extra)
