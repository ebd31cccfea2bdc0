"""Writes the Vega, Vega-Lite and Vega-Embed scripts, as one, to the path given.

vl-convert-python carries them, so that no network is needed here, nor by the pages.
"""

import argparse
import pathlib
import sys


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=pathlib.Path)
    path = parser.parse_args().path
    try:
        import vl_convert
    except ImportError:
        print(
            f"[vega_bundle] expected vl-convert-python in {sys.executable}, found none; "
            f"run: {sys.executable} -m pip install vl-convert-python==1.9.0.post1",
            file=sys.stderr,
        )
        return 1
    bundle = vl_convert.javascript_bundle()
    # The page holds the script in an element that either of these would end or change.
    for forbidden in ("</script", "<!--"):
        if forbidden in bundle.lower():
            print(f"[vega_bundle] expected a script without {forbidden}", file=sys.stderr)
            return 1
    path.write_text(bundle, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
