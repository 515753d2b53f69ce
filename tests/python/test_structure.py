"""A module imports only modules below it, and few files import each other (ARCHITECTURE.md)."""

import ast
import re
from pathlib import Path

import pytest

import flashtwin

ROOT = Path(__file__).parents[2]
CRATES = sorted(path.parent for path in ROOT.glob("crates/*/src/lib.rs"))
MODEL = ROOT / "crates" / "flashtwin" / "src"

USE = re.compile(r"^ *(pub(?:\([^)]*\))? +)?use +([^;]+);", re.MULTILINE)
#: A path in code, outside of `use`.
PATH = re.compile(r"\bcrate((?:::\w+)+)")
COMMENT = re.compile(r"//[^\n]*")


def paths_of(tree):
    """Return the paths that a tree such as `a::{b, c::d}` names, as lists of words."""
    found = re.fullmatch(r"((?:\w+::)*)\{(.*)\}", tree.strip(), re.DOTALL)
    if not found:
        return [tree.split(" as ")[0].strip().split("::")]
    parts, depth, begin = [], 0, 0
    inside = found.group(2) + ","
    for at, char in enumerate(inside):
        depth += (char == "{") - (char == "}")
        if char == "," and not depth:
            parts.append(inside[begin:at])
            begin = at + 1
    prefix = found.group(1).split("::")[:-1]
    return [prefix + path for part in parts if part.strip() for path in paths_of(part)]


class Crate:
    """The files of a crate, except its tests, and the imports between these files."""

    def __init__(self, root):
        self.modules = {}
        self.texts = {}
        for path in sorted(root.rglob("*.rs")):
            module = path.relative_to(root).with_suffix("").parts
            module = module[:-1] if module[-1] in ("lib", "mod") else module
            if not {"tests", "vectors"}.intersection(module):
                self.modules[module] = path
                text = COMMENT.sub("", path.read_text())
                self.texts[module] = text.split("#[cfg(test)]\nmod tests")[0]
        self.exported = {}
        uses = {module: self.used(module) for module in self.modules}
        self.imports = {
            module: {target for path in paths if (target := self.target(path)) not in (None, module)}
            for module, paths in uses.items()
        }

    def used(self, module):
        """Return the paths, from the crate's root, that a module uses. Records the exports of the module."""
        paths = [path.split("::")[1:] for path in PATH.findall(self.texts[module])]
        for public, tree in USE.findall(self.texts[module]):
            for words in paths_of(tree):
                path = self.from_root(module, words)
                if path:
                    paths.append(path)
                    if public:
                        self.exported[module, path[-1]] = path
        return paths

    def from_root(self, module, path):
        """Return a path in `module` as a path from the crate's root; None if it belongs to another crate."""
        if path[0] == "super":
            ups = path.count("super")
            return [*module[: len(module) - ups], *path[ups:]]
        if path[0] == "crate":
            return path[1:]
        if path[0] == "self":
            return [*module, *path[1:]]
        return [*module, *path] if (*module, path[0]) in self.modules else None

    def target(self, path, depth=8):
        """Return the module that defines the item at a path."""
        for length in range(len(path), 0, -1):
            module = tuple(path[:length])
            if module not in self.modules:
                continue
            onwards = self.exported.get((module, path[length])) if length < len(path) else None
            if onwards and onwards != path and depth:
                return self.target([*onwards, *path[length + 1 :]], depth - 1) or module
            return module
        return None


def python_imports():
    """Return the imports between modules of the package, including those within functions."""
    root = ROOT / "python"
    files = {}
    for path in sorted((root / "flashtwin").rglob("*.py")):
        name = path.relative_to(root).with_suffix("").parts
        files[name[:-1] if name[-1] == "__init__" else name] = path
    imports = {}
    for module, path in files.items():
        package = module if path.name == "__init__.py" else module[:-1]
        imports[module] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [tuple(alias.name.split(".")) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else ()
                base += tuple(node.module.split(".")) if node.module else ()
                names = [(*base, alias.name) for alias in node.names]
            for name in names:
                starts = (name[:length] for length in range(len(name), 0, -1))
                imports[module].add(next((start for start in starts if start in files), ()))
    return {module: targets - {module, ()} for module, targets in imports.items()}


def is_part(inner, outer):
    """Return whether a module is within another one."""
    return inner[: len(outer)] == outer


def circles(imports, largest):
    """Return groups of more than `largest` modules in which each module reaches all others by imports.

    Imports of a module from its own parts, as in a folder's `mod.rs`, do not count.
    """
    imports = {module: {to for to in found if not is_part(to, module)} for module, found in imports.items()}
    reached = {}
    for module in imports:
        seen, todo = set(), [module]
        while todo:
            new = imports.get(todo.pop(), set()) - seen
            seen |= new
            todo.extend(new)
        reached[module] = seen
    groups = {
        frozenset({module, *(other for other in reached[module] if module in reached[other])})
        for module in imports
    }
    return [sorted("/".join(module) for module in group) for group in groups if len(group) > largest]


@pytest.mark.parametrize("root", CRATES, ids=lambda root: root.parent.name)
def test_no_circle_in_rust_has_more_than_two_files(root):
    """Two files that use each other can be read together. Three are too hard to read."""
    assert circles(Crate(root).imports, 2) == []


def test_python_has_no_circle():
    """Imports within functions count, too."""
    found = {
        module: {to for to in targets if not is_part(module, to)}
        for module, targets in python_imports().items()
    }
    assert circles(found, 1) == []


def test_modules_of_the_model_call_only_those_above_them_in_the_table():
    """The table of ARCHITECTURE.md lists the modules of the model, beginning with the lowest."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = text.split("| module | content |")[1].split("\n\n")[0]
    rows = [
        re.findall(r"`([\w/]+)`", row.split("|")[1]) for row in table.splitlines() if row.startswith("| `")
    ]
    place = {name: at for at, names in enumerate(rows) for name in names}
    imports = Crate(MODEL).imports
    assert {module[0] for module in imports if module} == {name for name in place if "/" not in name}
    up = [
        f"{module[0]} imports {target[0]}"
        for module, targets in imports.items()
        for target in targets
        if module and target and place[target[0]] >= place[module[0]] and target[0] != module[0]
    ]
    assert up == []


#: Tables of components: for each kind, the folder, the pattern of a line of the table in its `mod.rs`, and
#: other modules that name a component.
TABLES = {
    "policy": ("flashtwin/src/buffer/policies", r"^ {12}([a-z]\w+)::\w+", {"lru": {("buffer", "chosen")}}),
    "victim rule": ("flashtwin/src/gc/rules", r"^ {12}(\w+)::\w+", {}),
    # `idle` goes on where `selective` ends.
    "scheme": ("flashtwin/src/coordinate", r"^ {12}(\w+)::\w+", {"global": {("coordinate", "idle")}}),
    # DFTL's cached map.
    "layer": ("flashtwin/src/ftl/chip", r"^ {12}(\w+)::\w+", {"dftl": {("ftl", "chip", "cached_map")}}),
    # Formats that `trace convert` writes; CSV is also public.
    "format": (
        "flashtwin-workload/src/trace",
        r"^    \w+ => (\w+)::",
        {"binary": {("trace", "convert")}, "csv": {("trace", "convert"), ()}},
    ),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_component_is_named_by_its_table_only(kind):
    """Adding a component changes only two files, as CONTRIBUTING.md states."""
    folder, line, others = TABLES[kind]
    path = ROOT / "crates" / folder
    names = set(re.findall(line, (path / "mod.rs").read_text(), re.MULTILINE))
    assert len(names) > 3
    root = path.parent if path.name == "src" else next(up for up in path.parents if up.name == "src")
    imports = Crate(root).imports
    where = path.relative_to(root).parts
    for name in sorted(names):
        users = {module for module, targets in imports.items() if (*where, name) in targets}
        assert users - others.get(name, set()) - {where} == set(), name
        assert (path / f"{name}.rs").exists()


def test_public_names_for_type_checkers_are_those_of_the_package():
    stub = ast.parse((ROOT / "python" / "flashtwin" / "__init__.pyi").read_text())
    imports = [line for line in stub.body if isinstance(line, ast.ImportFrom)]
    modules = {alias.name: line.module or alias.name for line in imports for alias in line.names}
    assert modules == flashtwin._MODULES
    assert sorted(flashtwin.__all__) == next(
        ast.literal_eval(line.value) for line in stub.body if isinstance(line, ast.Assign)
    )
    for name in flashtwin.__all__:
        assert getattr(flashtwin, name) is not None


def test_no_public_function_shares_its_name_with_a_module():
    """A module of the same name would hide the function after the module has been imported."""
    modules = {module[1] for module in python_imports() if len(module) == 2}
    assert modules.intersection(flashtwin.__all__) == {"plot"}
