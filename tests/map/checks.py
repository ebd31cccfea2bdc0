"""What must hold between HACKING.md and the tree. Each check yields "FILE:LINE: what is wrong"."""

import itertools
import pathlib
import re

from tree import CODE, HEADERS, MAP, SOURCES

# Folders of tests/ that stand for no folder of sources.
OTHER_TESTS = {"cuda", "example", "fixtures", "fuzz", "interchange", "map", "mutants", "package",
               "page", "python"}


def stem(file):
    return pathlib.PurePosixPath(file).stem


def folder_of(file):
    return str(pathlib.PurePosixPath(file).parent)


def edges(tree):
    """(from row, to row): the includes, (file, line), that need the edge."""
    found = {}
    for file in tree.code("qact", "python", "cli"):
        here = tree.row_of(file)
        for number, path, _ in tree.includes(file):
            there = tree.row_of(path)
            if here and there and here is not there:
                edge = here.folders[0], there.folders[0]
                found.setdefault(edge, []).append((file, number))
    return found


def allowed(tree, row):
    """The rows that `row` lists, by their first folder."""
    places = [(name, tree.resolve(name)) for name in row.may_include]
    return {place: name for name, place in places if place}


def check_edges(tree):
    """Files include from the folders that the map lists, and from each of these."""
    used = edges(tree)
    rows = {row.folders[0]: row for row in tree.rows if row.folders}
    for (here, there), places in used.items():
        if rows[here].may_include is not None and there not in allowed(tree, rows[here]):
            for file, line in places:
                yield (f"{file}:{line}: expected no include from {there}, which the map does not "
                       "list")
    for here, row in rows.items():
        for name in row.may_include or ():
            place = tree.resolve(name)
            if place not in rows:
                yield f"{MAP}:{row.line}: expected the folder of a row, got {name}"
            elif (here, place) not in used:
                yield f"{MAP}:{row.line}: expected an include from {name} in {here}, found none"


def check_roots(tree):
    """An include in quotes says where the file is from the root, so that check_edges sees it."""
    for file in tree.code("qact", "python", "cli", "bench", "examples", "tests"):
        for number, path, quoted in tree.includes(file):
            if quoted and path not in tree.places:
                yield f"{file}:{number}: expected a path from the root, got {path}"


def check_folders(tree):
    """Every folder of sources is named in the map, and every folder in the map exists."""
    named = set()
    for row in tree.rows:
        for folder in row.folders:
            if folder not in tree.places:
                yield f"{MAP}:{row.line}: expected a folder or a file, got {folder}"
            named.add(folder)
            named.update(f"{folder}/{name.rstrip('/')}" for name in CODE.findall(row.text))
    code = tree.code("qact", "python", "cli", "bench", "examples")
    for folder in sorted({folder_of(file) for file in code}):
        if folder != "qact" and folder not in named:
            yield f"{MAP}:1: expected {folder} in the map, found no row that names it"


def check_cycles(tree):
    """Arrows point one way."""
    arrows = {row.folders[0]: (row, list(allowed(tree, row))) for row in tree.rows
              if row.may_include is not None}
    done = set()

    def walk(folder, path):
        if folder in path:
            yield (f"{MAP}:{arrows[folder][0].line}: expected no cycle, got "
                   f"{' -> '.join(path[path.index(folder):] + [folder])}")
        elif folder in arrows and folder not in done:
            for there in arrows[folder][1]:
                yield from walk(there, path + [folder])
            done.add(folder)

    for folder in arrows:
        yield from walk(folder, [])


def expand(word):
    """a.{h,cpp} as a.h, a.cpp"""
    parts = [part.split(",") for part in re.split(r"[{}]", word)]
    return ["".join(choice) for choice in itertools.product(*parts)]


OUTPUTS = ("build/", "runs/")


def is_path(word):
    """Of the tree: not an option, not an output."""
    if not re.fullmatch(r"[\w.][\w./{},*-]*", word) or word.startswith(OUTPUTS):
        return False
    return "/" in word or word.endswith(HEADERS + SOURCES + (".py", ".md", ".toml", ".cmake"))


def check_paths(tree):
    """Files that HACKING.md names exist; of NAME and * at least the folder."""
    rows = {row.line: row for row in tree.rows}
    for number, text in tree.quoted():
        near = rows[number].folders if number in rows else ()
        for word in itertools.chain.from_iterable(expand(w) for w in text.split() if is_path(w)):
            place = re.sub(r"/[^/]*(NAME|\*).*$", "", word)
            if tree.resolve(place, near) is None:
                yield f"{MAP}:{number}: expected a file or a folder, got {word}"


def check_names(tree):
    """Identifiers, options and goals that HACKING.md puts in backticks occur in the sources."""
    known = tree.words()
    for number, text in tree.quoted():
        words = [w for w in text.split() if not is_path(w) and not w.startswith(OUTPUTS)]
        for word in re.findall(r"[A-Za-z_]\w{2,}", " ".join(words)):
            word = re.sub(r"^D(?=QACT_)", "", word)
            if word not in known and not word.isupper():
                yield f"{MAP}:{number}: expected a name of the sources, got {word}"


def own_headers(tree, source):
    """x_y.cpp belongs to x_y.h or x.h, beside it or one folder up."""
    here = folder_of(source)
    words = stem(source).split("_")
    return [f"{folder}/{'_'.join(words[:n])}{suffix}" for folder in (here, folder_of(here))
            for n in range(len(words), 0, -1) for suffix in HEADERS
            if f"{folder}/{'_'.join(words[:n])}{suffix}" in tree.places]


def reached(tree, file):
    """All that a file includes, through others too."""
    found, waiting = set(), [file]
    while waiting:
        for _, path, _ in tree.includes(waiting.pop()):
            if path in tree.places and path not in found:
                found.add(path)
                waiting.append(path)
    return found


def declares_functions(text):
    """Whether a header declares a function, at the left margin, that another file must define."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\bnamespace[\w: ]*\{", "", text)
    text = re.sub(r"^template\s*<.*?>\s", "inline ", text, flags=re.MULTILINE | re.DOTALL)
    body = re.compile(r"\{[^{}]*\}")
    while body.search(text):
        text = body.sub("\0", text)  # what a body holds is no concern
    text = re.sub(r"=\s*\0", "", text)  # a default argument {}
    heads = re.findall(r"^([A-Za-z_][\w:<>,&*\s]*[\s&*])\w+\([^;\0]*\)\s*(?:noexcept)?;", text,
                       flags=re.MULTILINE)
    return any(not re.search(r"\b(inline|constexpr|typedef)\b", head) for head in heads)


def check_headers(tree):
    """A source includes the header of its name, or one that its row says it is declared in. A
    header that declares functions is one of the two."""
    declaring = {header: row for row in tree.rows for header in row.declared_in}
    needed = set()
    for file in tree.code("qact"):
        if file.endswith(SOURCES) and stem(file) != "cuda_missing":  # stands in for cuda/
            row, headers = tree.row_of(file), set(own_headers(tree, file))
            if not headers and row:
                headers = set(row.declared_in)
                needed |= headers
            if not headers & reached(tree, file):
                yield f"{file}:1: expected an include of the header that declares it, found none"
    for header in sorted(declaring.keys() - needed):
        yield (f"{MAP}:{declaring[header].line}: expected sources that {header} alone declares, "
               "found none")
    owned = {header for file in tree.code("qact") if file.endswith(SOURCES)
             for header in own_headers(tree, file)}
    owned |= {f"{folder_of(own)}/{stem(own)}_impl.h" for own in owned}  # shared by its backends
    for file in tree.code("qact"):
        if file.endswith(HEADERS) and file not in owned | declaring.keys():
            if declares_functions(tree.text(file)):
                yield f"{file}:1: expected a source of the same name, found none"


def check_tests(tree):
    """Tests are in files *_test.cpp, in a folder for each folder of sources."""
    folders = {file.split("/")[1] for file in tree.code("qact") if file.count("/") > 1}
    for file in tree.code("tests"):
        found = re.search(r"^(?:TYPED_)?TEST(?:_[FP])?\(", tree.text(file), flags=re.MULTILINE)
        if not found:
            continue
        line = tree.text(file).count("\n", 0, found.start()) + 1
        if not file.endswith("_test.cpp"):
            yield f"{file}:{line}: expected tests in a file *_test.cpp"
        if file.split("/")[1] not in folders | OTHER_TESTS | {"cli"}:
            yield f"{file}:{line}: expected tests in a folder like one of qact/"
    tested = {file.split("/")[1] for file in tree.code("tests") if file.endswith("_test.cpp")}
    for folder in sorted(folders - tested):
        yield f"{MAP}:1: expected tests of qact/{folder} in tests/{folder}, found none"


CHECKS = (check_edges, check_roots, check_folders, check_cycles, check_paths, check_names,
          check_headers, check_tests)
