"""Times the package imagecorruptions, the Python baseline of `qact corrupt`, and prints as JSON the
milliseconds per image of each corruption, the mean over the five severities.

    python scripts/bench_imagecorruptions.py --side 224 --images 4 --processes 2

It knows the ImageNet-C constants alone, whatever the size. It was written for older
libraries; the names they have lost since are put back before it is imported.
"""

import argparse
import importlib.util
import json
import multiprocessing
import sys
import time
import types
import warnings

import numpy as np

warnings.simplefilter("ignore")


def load():
    import scipy.ndimage
    import skimage.filters

    if importlib.util.find_spec("scipy.ndimage.interpolation") is None:
        old = types.ModuleType("scipy.ndimage.interpolation")
        old.map_coordinates = scipy.ndimage.map_coordinates
        sys.modules[old.__name__] = old
    if importlib.util.find_spec("pkg_resources") is None:
        old = types.ModuleType("pkg_resources")
        folder = importlib.util.find_spec("imagecorruptions").submodule_search_locations[0]
        old.resource_filename = lambda _, name: f"{folder}/{name}"
        sys.modules[old.__name__] = old
    if not hasattr(np, "float_"):
        np.float_ = np.float64
    new = skimage.filters.gaussian

    def gaussian(image, sigma=1, multichannel=False, **options):
        return new(image, sigma, channel_axis=-1 if multichannel else None, **options)

    import imagecorruptions.corruptions

    imagecorruptions.corruptions.gaussian = gaussian
    return imagecorruptions


def corrupt(job):
    image, name, severity = job
    return load().corrupt(image, severity=severity, corruption_name=name)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--names", nargs="*")
    options = parser.parse_args()
    if importlib.util.find_spec("imagecorruptions") is None:
        sys.exit("imagecorruptions is not installed")
    from corruption_images import image

    images = [image(i, options.side) for i in range(options.images)]
    names = options.names or load().get_corruption_names("all")
    out = {}
    with multiprocessing.Pool(options.processes) as pool:
        for name in names:
            jobs = [(x, name, s) for s in range(1, 6) for x in images]
            try:
                pool.map(corrupt, jobs[: options.processes])
                start = time.perf_counter()
                pool.map(corrupt, jobs)
                out[name] = 1000 * (time.perf_counter() - start) / len(jobs)
            except Exception as error:
                print(f"{name}: {error}", file=sys.stderr)
    print(json.dumps(out))


if __name__ == "__main__":
    main()
