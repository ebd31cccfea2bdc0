"""Renders Vega-Lite specifications, as `qact report --figures DIR` writes them, to SVG or PNG.

Several specifications become one figure, or, with --each, one image beside each. Ink takes
the colour of the text around a chart on the page; here it is black.
"""

import argparse
import json
import pathlib
import struct
import zlib

import vl_convert


def together(specs, columns):
    """One specification with all of `specs` in rows of `columns`."""
    config = {**specs[0]["config"], "background": "white"}
    parts = [{k: v for k, v in spec.items() if k not in ("config", "usermeta")} for spec in specs]
    channels = ("color", "opacity", "shape", "strokeDash", "x", "y")
    return {"config": config, "padding": 12, "concat": parts, "columns": columns, "spacing": 36,
            "resolve": {"scale": {channel: "independent" for channel in channels}}}


def compressed(png):
    """The same image in fewer bytes: vl-convert compresses for speed."""
    chunks, at = [], 8
    while at < len(png):
        (size,) = struct.unpack(">I", png[at:at + 4])
        chunks.append((png[at + 4:at + 8], png[at + 8:at + 8 + size]))
        at += 12 + size
    pixels = zlib.decompress(b"".join(data for kind, data in chunks if kind == b"IDAT"))
    kept = [chunk for chunk in chunks if chunk[0] not in (b"IDAT", b"IEND")]
    kept += [(b"IDAT", zlib.compress(pixels, 9)), (b"IEND", b"")]
    return png[:8] + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in kept)


def render(specs, path, columns, scale):
    spec = together([json.loads(spec.read_text()) for spec in specs], columns)
    if path.suffix == ".svg":
        path.write_text(vl_convert.vegalite_to_svg(spec))
    else:
        path.write_bytes(compressed(vl_convert.vegalite_to_png(spec, scale=scale)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("specs", type=pathlib.Path, nargs="+", help="NAME.vl.json")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("-o", "--output", type=pathlib.Path, help=".svg or .png, all in one")
    where.add_argument("--each", choices=("svg", "png"), help="NAME.svg or NAME.png for each")
    parser.add_argument("--columns", type=int, default=2)
    parser.add_argument("--scale", type=float, default=1.5, help="pixels of a PNG per unit")
    options = parser.parse_args()
    if options.each:
        for spec in options.specs:
            name = spec.name.removesuffix(".vl.json")
            render([spec], spec.with_name(f"{name}.{options.each}"), 1, options.scale)
    elif options.output.suffix in (".svg", ".png"):
        render(options.specs, options.output, options.columns, options.scale)
    else:
        parser.error(f"expected a name that ends in .svg or .png, got {options.output}")


if __name__ == "__main__":
    main()
