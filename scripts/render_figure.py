"""Renders Vega-Lite specifications, as `qact report --figures DIR` writes them, to SVG or PNG.

Several specifications become one figure, or, with --each, one image beside each. --curve, repeated,
leaves only these curves in a chart. Ink takes the colour of the text around a chart on the page;
here it is black.
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


def choose_curves(part, labels):
    """The specification, or a part of it, with these curves alone: in its data and its scales."""
    if isinstance(part, list):
        return [choose_curves(each, labels) for each in part]
    if not isinstance(part, dict):
        return part
    if "domain" in part and "range" in part:
        pairs = [pair for pair in zip(part["domain"], part["range"]) if pair[0] in labels]
        return {**part, "domain": [a for a, _ in pairs], "range": [b for _, b in pairs]}
    if "values" in part and all(isinstance(v, dict) and "curve" in v for v in part["values"]):
        return {**part, "values": [v for v in part["values"] if v["curve"] in labels]}
    return {key: choose_curves(each, labels) for key, each in part.items()}


def read(path, labels):
    spec = json.loads(path.read_text())
    if not labels:
        return spec
    there = {v["curve"] for v in spec["data"]["values"]}
    if not set(labels) <= there:
        raise SystemExit(f"expected --curve among {sorted(there)}, got {labels}")
    return choose_curves(spec, labels)


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


def render(specs, path, columns, scale, labels):
    spec = together([read(spec, labels) for spec in specs], columns)
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
    parser.add_argument("--curve", action="append", default=[], metavar="LABEL",
                        help="only this one, or these")
    options = parser.parse_args()
    if options.each:
        for spec in options.specs:
            name = spec.name.removesuffix(".vl.json")
            render([spec], spec.with_name(f"{name}.{options.each}"), 1, options.scale, options.curve)
    elif options.output.suffix in (".svg", ".png"):
        render(options.specs, options.output, options.columns, options.scale, options.curve)
    else:
        parser.error(f"expected a name that ends in .svg or .png, got {options.output}")


if __name__ == "__main__":
    main()
