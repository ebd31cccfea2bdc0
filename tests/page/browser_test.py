"""Opens pages made by `qact toy` and `qact report` in headless Chromium.

A page must draw every chart, with marks in each, and log nothing to the console: its
content policy turns any reach outside the page into an error there.
"""

import argparse
import html.parser
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import made_up_rows

SKIPPED = 77
NAMES = ("chromium", "chromium-browser", "google-chrome")


class Marks(html.parser.HTMLParser):
    """Counts the shapes that Vega drew as marks, chart by chart."""

    def __init__(self):
        super().__init__()
        self.drawn = None
        self.marks = {}
        self.chart = None
        self.depth = 0
        self.groups = []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "html":
            self.drawn = attributes.get("data-drawn")
        if "data-chart" in attributes:
            self.chart = attributes["data-chart"]
            self.marks[self.chart] = 0
        if tag == "g":
            self.groups.append("role-mark" in attributes.get("class", "").split())
        if tag == "path" and any(self.groups):
            self.marks[self.chart] += 1

    def handle_endtag(self, tag):
        if tag == "g":
            self.groups.pop()


def open_page(browser, page, folder, width):
    """The page's document once its scripts have run, and what it logged."""
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--disable-dev-shm-usage", f"--user-data-dir={folder}/profile-{width}",
        f"--window-size={width},900", "--virtual-time-budget=10000", "--enable-logging=stderr",
        "--dump-dom", page.resolve().as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    return done.stdout, re.findall(r"CONSOLE.*", done.stderr)


def check(browser, page, folder, width):
    document, console = open_page(browser, page, folder, width)
    if console:
        return [f"the console says: {line}" for line in console]
    found = Marks()
    found.feed(document)
    if found.drawn != str(len(found.marks)) or not found.marks:
        return [f"{found.drawn} charts of {len(found.marks)} were drawn"]
    return [f"chart {name} has no marks" for name, marks in found.marks.items() if marks == 0]


def make_pages(program, folder):
    """The toy's own page, and one of all kinds of rows that an evaluation writes."""
    toy = ["toy", "--seeds", "1", "--steps", "2", "--contexts", "20", "--output", folder / "toy"]
    rows = folder / "rows.jsonl"
    made_up_rows.write(rows)
    report = ["report", rows, "-o", folder / "evaluation.html", "--figures", folder / "figures"]
    for arguments in (toy, report):
        subprocess.run([program, *arguments], check=True, stdout=subprocess.DEVNULL)
    return folder / "toy" / "report.html", folder / "evaluation.html"


def check_errors(program, folder):
    """What cannot be drawn is said in one line, and no page is left."""
    (folder / "empty.jsonl").write_text("")
    (folder / "torn.jsonl").write_text('{"kind": "scores"\n{"kind": "scores"}\n')
    (folder / "other.jsonl").write_text('{"kind": "weather"}\n')
    (folder / "half.jsonl").write_text('{"kind": "scores", "severity": 1}\n')
    cases = {"empty.jsonl": "expected rows, got none", "torn.jsonl": "torn.jsonl:1: expected",
             "other.jsonl": "got only these kinds: weather", "half.jsonl": '"corruption"',
             "missing": "which is not there", ".": "expected results.jsonl in the folder"}
    page = folder / "none.html"
    for name, message in cases.items():
        done = subprocess.run([program, "report", folder / name, "-o", page],
                              capture_output=True, text=True, check=False)
        if done.returncode != 1 or message not in done.stderr or page.exists():
            yield f"report {name}: expected {message}, got {done.returncode}: {done.stderr}"


def check_choices(program, folder):
    """--where chooses rows, or says why it cannot; --json prints means and writes no page."""
    page = folder / "chosen.html"

    def report(*words):
        return subprocess.run([program, "report", folder / "rows.jsonl", "--no-sheet", "-o", page,
                               *words], capture_output=True, text=True, check=False)

    for words, code, message in ((["--where", "mood=batch"], 1, "got 'mood'"),
                                 (["--where", "mode=stream"], 1, "there is mode=batch, tracked"),
                                 (["--where", "stream=sorted"], 1,
                                  "there is stream=correlated, mixed, single"),
                                 (["--where", "mode"], 2, "expected --where KEY=VALUE")):
        done = report(*words)
        if done.returncode != code or message not in done.stdout + done.stderr or page.exists():
            yield f"report {words}: expected {message}, got {done.returncode}: {done.stderr}"
    done = report("--json", "--where", "mode=batch,activation=qact", "--where", "classifier=head",
                  "--where", "stream=single,adapt=none")
    found = json.loads(done.stdout or "[]")
    if [entry["kind"] for entry in found] != ["benchmark", "tone", "gamma4"] or page.exists():
        yield f"report --json: expected three entries and no page, got {done.stdout[:200]}"
    elif not 0.9 < found[0]["metrics"]["accuracy"]["mean"]["0"] <= 1:
        yield f"report --json: expected the accuracy of clean images, got {found[0]['metrics']}"
    done = report("--where", "mode=batch")
    modes = set(re.findall(r"(\w+) statistics<", page.read_text()))
    if done.returncode != 0 or modes != {"batch"}:
        yield f"report --where mode=batch: expected a page of it alone, got {modes} {done.stderr}"


def check_streams(program, folder):
    """Streams and adaptation have charts of their own; the first chart is without both."""
    charts = {}
    for file in (folder / "figures").glob("mnist_small_lenet_*accuracy.vl.json"):
        values = json.loads(file.read_text())["data"]["values"]
        name = file.name.removeprefix("mnist_small_lenet_").removesuffix("accuracy.vl.json")
        charts[name] = {value["curve"] for value in values}
    plain = {"QAct, batch statistics", "QAct, running statistics", "ReLU, batch statistics",
             "ReLU, running statistics"}
    tent = {"QAct, TENT, batch statistics", "ReLU, TENT, batch statistics"}
    expected = {"": plain, "tone_": plain, "adaptation_": plain | tent,
                "mixed_": {f"{curve}, mixed corruptions" for curve in plain | tent},
                "correlated_": {f"{curve}, correlated labels" for curve in plain | tent}}
    for name, curves in expected.items():
        if charts.get(name) != curves:
            yield f"chart {name}accuracy: expected {curves}, got {charts.get(name)}"
    text = (folder / "evaluation.html").read_text()
    for part in ("test-time adaptation", "mixed in every batch", "Against ReLU, TENT, batch"):
        if part not in text:
            yield f"evaluation.html: expected {part} on it"


def check_headline(program, folder):
    """The page begins with three curves and a table of what to take; the terminal has the same."""
    curves = json.loads((folder / "figures/mnist_small_lenet_headline.vl.json").read_text())
    expected = {"ReLU, running statistics", "ReLU, batch statistics", "QAct, batch statistics"}
    if {value["curve"] for value in curves["data"]["values"]} != expected:
        yield f"the headline's chart: expected {expected}, got {curves['data']['values']}"
    text = (folder / "evaluation.html").read_text()
    parts = ['data-chart="mnist_small_lenet_headline"', "best of another activation",
             "batches of 500 of one corruption, under gamma4", "of mixed corruptions",
             "with correlated labels", "single images, at severity 5", "Against ReLU"]
    places = [text.find(part) for part in parts]
    if -1 in places or places != sorted(places):
        yield f"evaluation.html: expected {parts} in this order, got them at {places}"
    done = subprocess.run([program, "report", folder / "rows.jsonl", "--no-sheet", "--summary",
                           "-o", folder / "summary.html"], capture_output=True, text=True,
                          check=True)
    if not done.stdout.startswith("For batches of 500 of one corruption, at severity 5: "):
        yield f"report --summary: expected what to take first, got {done.stdout[:200]}"


def refused(program, folder, page):
    done = subprocess.run([program, "report", folder / "rows.jsonl", "--no-sheet", "-o", page],
                          capture_output=True, text=True, check=False)
    return f"{done.returncode} {done.stderr}"


def check_outputs(program, folder):
    """Only a regular file gives way to a page, and links are followed."""
    fifo, target, link = (folder / name for name in ("fifo", "target.html", "link.html"))
    os.mkfifo(fifo)
    for page, message in {fifo: "got a FIFO", folder: "got a folder", "": "got ''"}.items():
        if not (got := refused(program, folder, page)).startswith("1 ") or message not in got:
            yield f"report -o {page}: expected {message}, got {got}"
    if not fifo.is_fifo():
        yield "report -o replaced a FIFO"
    link.symlink_to(target.name)
    refused(program, folder, link)
    if not link.is_symlink() or not target.is_file():
        yield "report -o replaced a link, not its target"


def check_commands(program, folder):
    """The page says how to train, evaluate and draw again; a run given twice counts once."""
    page, rows = folder / "commands.html", folder / "rows.jsonl"
    arguments = ["report", rows, folder / "." / ".." / folder.name / "rows.jsonl", "--no-sheet",
                 "-o", page]
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
    if "which was given before" not in done.stderr:
        yield f"a run given twice: expected a word about it, got {done.stderr}"
    commands = re.findall(r"<code>(qact .*)</code>", page.read_text())
    expected = ["qact eval runs/made-up",
                "qact train --output runs/made-up --data 'a folder/' --epochs 3 --nesterov=true "
                "--lr-steps 5,10 --weight-decay 0.0005"]
    if commands[:-1] != expected or not commands[-1].startswith(f"qact report {rows} "):
        yield f"expected the commands {expected} and qact report, got {commands}"
    # Settings that the program takes: this run fails only for want of the data.
    train = shlex.split(expected[1].replace("runs/made-up", str(folder / "run")))
    done = subprocess.run([program, *train[1:]], capture_output=True, text=True, check=False)
    if done.returncode != 1 or "a folder" not in done.stderr:
        yield f"{expected[1]}: expected its options to be known, got {done.stderr}"


def check_printing(browser, page, folder):
    """What is folded is open on paper, but for the menus of charts."""
    paper = folder / "paper.html"
    text = page.read_text()
    paper.write_text(text + "<script>dispatchEvent(new Event('beforeprint'))</script>")
    document, console = open_page(browser, paper, folder, 800)
    own = re.findall(r"<details( open[^>]*)?><summary>Configuration", document)
    if console or own != [' open=""']:
        yield f"printing: expected one open configuration, got {own} {console}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path, help="the program qact")
    program = parser.parse_args().program
    names = (os.environ.get("QACT_BROWSER", ""), *NAMES)
    browser = next(filter(None, map(shutil.which, names)), None)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        pages = make_pages(program, folder)
        faults = [*check_errors(program, folder), *check_outputs(program, folder),
                  *check_choices(program, folder), *check_streams(program, folder),
                  *check_headline(program, folder), *check_commands(program, folder)]
        # Chromium makes no window narrower than 500 pixels.
        faults += [f"{page.name} at {width} px: {fault}"
                   for page in pages for width in (1200, 500) if browser
                   for fault in check(browser, page, folder, width)]
        faults += check_printing(browser, pages[1], folder) if browser else []
    if browser is None and not faults:
        print(f"skipped: none of {', '.join(NAMES)} is here; apt-get install chromium gives one")
        return SKIPPED
    print("\n".join(faults) or "every chart is drawn and the console is silent")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
