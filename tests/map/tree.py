"""The tree of sources, and the map of it that HACKING.md draws."""

import dataclasses
import os
import pathlib
import re

SKIPPED = {".git", ".venv", "build", "runs", "datasets", "__pycache__", ".pytest_cache"}
HEADERS = (".h", ".cuh")
SOURCES = (".cpp", ".cu")
TEXTS = HEADERS + SOURCES + (".py", ".txt", ".cmake", ".in", ".toml", ".json", ".js", ".css")
MAP = "HACKING.md"
CODE = re.compile(r"`([^`]+)`")


@dataclasses.dataclass
class Row:
    """A line of the map's table."""
    line: int
    folders: list  # of the first cell, from the root, without a slash at the end
    text: str
    may_include: list | None  # None: anything
    declared_in: list  # headers that declare what several sources define


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.files = []
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(name for name in folders if name not in SKIPPED
                                and not os.path.exists(os.path.join(folder, name, "CMakeCache.txt")))
            place = pathlib.PurePosixPath(os.path.relpath(folder, self.root))
            self.files += [str(place / file) for file in sorted(files)]
        self.places = set(self.files)
        for file in self.files:
            self.places.update(str(parent) for parent in pathlib.PurePosixPath(file).parents)
        self.rows = list(self._rows())

    def text(self, file):
        return (self.root / file).read_text(errors="replace")

    def code(self, *under):
        """C++ files below these folders."""
        return [file for file in self.files if file.endswith(HEADERS + SOURCES) and
                file.startswith(tuple(folder + "/" for folder in under))]

    def includes(self, file):
        """(line, path, whether in quotes)"""
        for number, line in enumerate(self.text(file).splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
            if found:
                yield number, found[2], found[1] == '"'

    def words(self):
        """All words of the sources, the documents left out."""
        found = set()
        for file in self.files:
            if file.endswith(TEXTS) or "." not in pathlib.PurePosixPath(file).name:
                found.update(re.findall(r"\w+", self.text(file)))
        return found

    def quoted(self):
        """(line, text) of all that HACKING.md has in backticks, and of where its links lead."""
        text = self.text(MAP)
        for found in re.finditer(r"`([^`]+)`|\]\(([^)#:]+)\)", text):
            yield text.count("\n", 0, found.start()) + 1, found[1] or found[2]

    def row_of(self, file):
        """The row of a file, of its folder or of the nearest folder around it; else None."""
        for place in (file, *map(str, pathlib.PurePosixPath(file).parents)):
            for row in self.rows:
                if place in row.folders:
                    return row
        return None

    def resolve(self, name, near=()):
        """Where a path of the map is: from the root, from qact/ or from one of these folders."""
        candidates = [name, "qact/" + name] + [f"{folder}/{name}" for folder in near]
        return next((place for place in candidates if place.rstrip("/") in self.places), None)

    def _rows(self):
        columns = None
        for number, line in enumerate(self.text(MAP).splitlines(), 1):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if not line.startswith("|"):
                columns = None
            elif "may include" in cells:
                columns = {cell: i for i, cell in enumerate(cells)}
            elif columns and set(line) - set("|- "):
                folders = [name.rstrip("/") for name in CODE.findall(cells[columns["folder"]])]
                allowed = cells[columns["may include"]]
                declared = re.search(r"declared in ((?:`[^`]+`(?:, | and )?)+)", line)
                names = CODE.findall(declared[1]) if declared else []
                yield Row(number, folders, line,
                          None if allowed == "any" else CODE.findall(allowed),
                          [self.resolve(name, folders) or name for name in names])
