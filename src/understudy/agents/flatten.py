"""Definitions of several of our modules as the text of one, with all that they use and no more.

The text is the source itself, comments included; nothing is written a second time. From the roots,
every name that a kept definition uses outside of annotations is followed through our imports. Of a
class, methods are kept whose names are used as attributes somewhere in what is kept. Three things
are changed: names that two modules define differently get the module's name in front, msgspec
structs become dataclasses, and names that annotations alone use become `Any`.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.abc import InspectLoader
from itertools import pairwise

_PACKAGE = "understudy"
_TITLE = 99
_CONSTRUCTORS = ("__post_init__",)
"""Checks of what a person configures: a spec that was exported has passed them."""
_Name = tuple[str, str]
"""A module and a name in it."""


@dataclass(frozen=True)
class Flattened:
    """The text of a module without its head."""

    imports: frozenset[str]
    """Import statements of the standard library and other packages."""
    code: str
    names: Mapping[_Name, str]
    """What each kept definition is called in the text."""


@dataclass(frozen=True)
class _Definition:
    """A statement at the top of a module that binds names."""

    module: str
    node: ast.stmt
    first: int
    """The first line, with decorators and the comment above; from 0."""
    last: int
    """Behind the last line, with the docstring of a constant."""


@dataclass(frozen=True)
class _Source:
    """One parsed module."""

    name: str
    lines: tuple[bytes, ...]
    """UTF-8: columns of syntax trees are counted in bytes."""
    definitions: Mapping[str, _Definition]
    imported: Mapping[str, tuple[str, str | None]]
    """By local name: a module and the name there; None: the module itself."""
    summary: str
    """The first line of its docstring."""


@dataclass
class _Kept:
    """What was reached so far."""

    names: set[_Name] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    annotated: set[str] = field(default_factory=set)
    external: set[tuple[str, str | None, str]] = field(default_factory=set)
    """Module, name in it and local name of imports from outside of the package."""


def flatten(
    roots: Sequence[_Name],
    *,
    methods: Collection[str],
    substitutes: Mapping[str, str] | None = None,
    never: Collection[str] = (),
) -> Flattened:
    """One text with the definitions that `roots` name, and everything that these use.

    Args:
        roots: Module and name of each.
        methods: Those that users of the text call.
        substitutes: By name, definitions that replace those of the same name in the sources.
        never: Classes that nothing is an instance of: `if isinstance(x, NEVER):` is left out.
    """
    flattener = _Flattener(substitutes or {}, frozenset(never))
    return flattener.flatten(roots, methods)


class _Flattener:
    def __init__(self, substitutes: Mapping[str, str], never: frozenset[str]) -> None:
        self._substitutes = substitutes
        self._never = never
        self._kept = _Kept()

    def flatten(self, roots: Sequence[_Name], methods: Collection[str]) -> Flattened:
        kept = self._kept
        kept.attributes |= set(methods)
        kept.names |= {self._resolved(*root) for root in roots}
        before = -1
        while before != (before := len(kept.names) + len(kept.attributes)):
            for name in sorted(kept.names):
                self._follow(*name)
        called = self._called()
        parts = [*self._substituted(called), *self._sections(called)]
        defined = {*called.values(), *(local for _, _, local in kept.external)}
        for text in self._substitutes.values():
            defined.update(name for node in ast.parse(text).body for name in _defined(node))
        unknown = sorted(name for name in kept.annotated - defined if name not in _BUILTINS)
        if unknown:
            kept.external.add(("typing", "Any", "Any"))
            unknown = [name for name in unknown if name != "Any"]
            parts.insert(0, "# Only annotations use these names.\n" + _wrapped_aliases(unknown))
        return Flattened(self._imports(), "\n\n\n".join(parts), called)

    def _follow(self, module: str, name: str) -> None:
        """Keep what one definition uses."""
        if name in self._substitutes:
            return
        source = _source(module)
        definition = source.definitions[name]
        for node in self._used(definition.node):
            if isinstance(node, ast.Attribute):
                self._kept.attributes.add(node.attr)
                target = self._module_attribute(source, node)
                if target is not None:
                    self._kept.names.add(target)
            elif node.id in source.definitions:
                self._kept.names.add((module, node.id))
            elif node.id in source.imported:
                self._keep_import(source, node.id)
        self._kept.annotated |= self._annotations(definition.node)

    def _keep_import(self, source: _Source, local: str) -> None:
        origin, name = source.imported[local]
        if not _ours(origin):
            self._kept.external.add((origin, name, local))
        elif name is not None:
            self._kept.names.add(self._resolved(origin, name))

    def _module_attribute(self, source: _Source, node: ast.Attribute) -> _Name | None:
        """What `gaussian.choose` names, where `gaussian` is a module of ours."""
        if not isinstance(node.value, ast.Name):
            return None
        origin, name = source.imported.get(node.value.id, ("", ""))
        return self._resolved(origin, node.attr) if name is None and _ours(origin) else None

    def _resolved(self, module: str, name: str) -> _Name:
        """Where a name is defined that a module may only import."""
        source = _source(module)
        if name in source.definitions or name in self._substitutes:
            return module, name
        origin, original = source.imported[name]
        if original is None:
            raise ValueError(f"{module}: {name} is a module, not a definition")
        return self._resolved(origin, original)

    # --- what a definition uses ------------------------------------------------------------------

    def _used(self, node: ast.AST) -> Iterator[ast.Name | ast.Attribute]:
        """Names that are not bound inside of a function, and attributes, outside annotations."""
        yield from self._visit(node, frozenset())

    def _visit(self, node: ast.AST, bound: frozenset[str]) -> Iterator[ast.Name | ast.Attribute]:
        if self._dropped(node):
            return
        if isinstance(node, ast.Name):
            if node.id not in bound:
                yield node
            return
        if isinstance(node, ast.Attribute):
            yield node
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            bound = bound | _bound_in(node)
        for child in _children(node):
            if isinstance(node, ast.ClassDef) and self._removed(child):
                continue
            yield from self._visit(child, bound)

    def _dropped(self, node: ast.AST) -> bool:
        """A branch for instances of a class that there are none of."""
        if not isinstance(node, ast.If) or node.orelse or not isinstance(node.test, ast.Call):
            return False
        test = node.test
        return (
            isinstance(test.func, ast.Name)
            and test.func.id == "isinstance"
            and isinstance(test.args[1], ast.Name)
            and test.args[1].id in self._never
        )

    def _removed(self, member: ast.AST) -> bool:
        """A member of a class: a method that nothing calls."""
        if not isinstance(member, ast.FunctionDef):
            return False
        special = member.name.startswith("__") and member.name not in _CONSTRUCTORS
        return not special and member.name not in self._kept.attributes

    def _annotations(self, node: ast.AST) -> set[str]:
        """Names in the annotations of what is kept."""
        found: set[str] = set()
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            found |= _names_in(node.annotation)
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            found |= _names_in(node.returns)
        for child in ast.iter_child_nodes(node):
            removed = isinstance(node, ast.ClassDef) and self._removed(child)
            if not removed and not self._dropped(child):
                found |= self._annotations(child)
        return found

    # --- the text --------------------------------------------------------------------------------

    def _called(self) -> dict[_Name, str]:
        """The name of each definition in the text."""
        by_name: dict[str, list[str]] = {}
        for module, name in sorted(self._kept.names):
            by_name.setdefault(name, []).append(module)
        called = {}
        for name, modules in by_name.items():
            alike = name in self._substitutes or len({_structure(m, name) for m in modules}) == 1
            for module in modules:
                called[module, name] = name if alike else _prefixed(module, name)
        return called

    def _substituted(self, called: Mapping[_Name, str]) -> list[str]:
        reached = {name for _, name in called}
        return [text.strip() for name, text in self._substitutes.items() if name in reached]

    def _sections(self, called: Mapping[_Name, str]) -> Iterator[str]:
        """Each module's part, those first that others import."""
        written: set[str] = set(self._substitutes)
        for module in _import_order({module for module, _ in called}):
            source = _source(module)
            parts: list[str] = []
            done: set[int] = set()
            own = sorted(
                (source.definitions[name].first, name)
                for where, name in called
                if where == module and name in source.definitions
            )
            for first, name in own:
                final = called[module, name]
                if first in done or final in written:
                    continue
                done.add(first)
                written |= {
                    called[module, other]
                    for start, other in own
                    if start == first  # one assignment of several names
                }
                parts.append(self._definition(source, source.definitions[name], called))
            if parts:
                where = module.removeprefix(f"{_PACKAGE}.").replace(".", "/")
                title = f"# --- {where}.py: {source.summary}"
                title = textwrap.shorten(title, _TITLE, placeholder=" ...")
                yield "\n\n\n".join([title, _joined(parts)])

    def _definition(
        self, source: _Source, definition: _Definition, called: Mapping[_Name, str]
    ) -> str:
        lines = list(source.lines)
        node = definition.node
        for used in sorted(self._used(node), key=_position, reverse=True):
            new = self._new_name(source, used, called)
            if new is not None:
                assert used.end_col_offset is not None
                line = lines[used.lineno - 1]
                lines[used.lineno - 1] = (
                    line[: used.col_offset] + new.encode() + line[used.end_col_offset :]
                )
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            final = called[source.name, node.name].encode()
            head = lines[node.lineno - 1]
            lines[node.lineno - 1] = head.replace(b" " + node.name.encode(), b" " + final, 1)
        removed = set(self._removed_lines(source, node))
        if isinstance(node, ast.ClassDef) and _is_struct(node):
            body = node.body[0].lineno - 1
            lines[node.lineno - 1] = b"@dataclass(frozen=True)\nclass %s:" % final
            removed |= set(range(node.lineno, body))
            self._kept.external.add(("dataclasses", "dataclass", "dataclass"))
        text = [lines[at] for at in range(definition.first, definition.last) if at not in removed]
        return b"\n".join(text).decode().rstrip()

    def _new_name(
        self, source: _Source, used: ast.Name | ast.Attribute, called: Mapping[_Name, str]
    ) -> str | None:
        """What stands in the text in place of a name; None: the same."""
        if isinstance(used, ast.Attribute):
            target = self._module_attribute(source, used)
            return None if target is None else called[target]
        if used.id in source.definitions:
            new = called[source.name, used.id]
        elif used.id in source.imported and _ours(source.imported[used.id][0]):
            origin, name = source.imported[used.id]
            if name is None:  # a module, whose attribute is replaced as a whole
                return None
            new = called[self._resolved(origin, name)]
        else:
            return None
        return None if new == used.id else new

    def _removed_lines(self, source: _Source, node: ast.stmt) -> Iterator[int]:
        """Lines, from 0, of methods that nothing calls and of branches that are never taken."""
        for owner in ast.walk(node):
            for member in ast.iter_child_nodes(owner):
                unused = isinstance(owner, ast.ClassDef) and self._removed(member)
                if unused or self._dropped(member):
                    assert isinstance(member, ast.stmt)
                    first, last = _extent(source.lines, member)
                    while not source.lines[first - 1].strip():
                        first -= 1
                    yield from range(first, last)

    def _imports(self) -> frozenset[str]:
        statements = set()
        for module, name, local in self._kept.external:
            if name is None:
                statements.add(f"import {module}" + (f" as {local}" if local != module else ""))
            else:
                statements.add(f"from {module} import {name}")
        return frozenset(statements)


_BUILTINS = frozenset(("int", "float", "str", "bool", "bytes", "tuple", "list", "dict", "set"))


@lru_cache(maxsize=64)
def _source(module: str) -> _Source:
    spec = importlib.util.find_spec(module)
    assert spec is not None and isinstance(spec.loader, InspectLoader)
    text = spec.loader.get_source(module)
    assert text is not None
    tree, lines = ast.parse(text), tuple(line.encode() for line in text.split("\n"))
    definitions: dict[str, _Definition] = {}
    imported: dict[str, tuple[str, str | None]] = {}
    for index, node in enumerate(tree.body):
        if isinstance(node, ast.Import):
            imported |= {alias.asname or alias.name: (alias.name, None) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            imported |= {
                alias.asname or alias.name: _import_target(node.module, alias.name)
                for alias in node.names
            }
        else:
            first, last = _extent(lines, node)
            following = tree.body[index + 1 : index + 2]
            if isinstance(node, ast.Assign | ast.AnnAssign) and following:
                last = _end_of_docstring(following[0]) or last
            for name in _defined(node):
                definitions[name] = _Definition(module, node, first, last)
    summary = (ast.get_docstring(tree) or "").partition("\n")[0]
    return _Source(module, lines, definitions, imported, summary)


def _import_target(module: str, name: str) -> tuple[str, str | None]:
    """What `from MODULE import NAME` names: a module of ours, or a definition in one."""
    if _ours(module):
        spec = importlib.util.find_spec(module)
        package = spec is not None and spec.submodule_search_locations is not None
        if package and importlib.util.find_spec(f"{module}.{name}") is not None:
            return f"{module}.{name}", None
    return module, name


def _ours(module: str) -> bool:
    return module == _PACKAGE or module.startswith(f"{_PACKAGE}.")


def _extent(lines: Sequence[bytes], node: ast.stmt) -> tuple[int, int]:
    """First line, with decorators and the comment above, and the line behind the last; from 0."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(one.lineno for one in decorators)]) - 1
    while first and lines[first - 1].lstrip().startswith(b"#"):
        first -= 1
    assert node.end_lineno is not None
    return first, node.end_lineno


def _end_of_docstring(node: ast.stmt) -> int | None:
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ):
        return node.end_lineno
    return None


def _defined(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    targets = node.targets if isinstance(node, ast.Assign) else []
    for target in [node.target] if isinstance(node, ast.AnnAssign) else targets:
        yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """All but annotations, and the names of a class's fields."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        if isinstance(node, ast.ClassDef) and name in ("bases", "keywords") and _is_struct(node):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.ClassDef) and isinstance(child, ast.AnnAssign):
                if child.value is not None:
                    yield child.value
            elif isinstance(child, ast.AST):
                yield child


def _bound_in(function: ast.FunctionDef | ast.Lambda) -> frozenset[str]:
    arguments = {one.arg for one in ast.walk(function) if isinstance(one, ast.arg)}
    stored = {
        one.id
        for one in ast.walk(function)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
    inner = {
        one.name
        for one in ast.walk(function)
        if isinstance(one, ast.FunctionDef) and one is not function
    }
    return frozenset(arguments | stored | inner)


def _names_in(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _is_struct(node: ast.ClassDef) -> bool:
    """Whether a class is a msgspec struct."""
    return any(isinstance(base, ast.Attribute) and base.attr == "Struct" for base in node.bases)


def _structure(module: str, name: str) -> str:
    """A definition without its comments: equal where two modules define the same."""
    return ast.dump(_source(module).definitions[name].node)


def _prefixed(module: str, name: str) -> str:
    """`_ZERO` of `policy.layers` as `_LAYERS_ZERO`."""
    stem = module.rpartition(".")[2]
    bare = name.lstrip("_")
    stem = stem.upper() if bare.isupper() else stem
    return f"{name[: len(name) - len(bare)]}{stem}_{bare}"


def _import_order(modules: Collection[str]) -> list[str]:
    """These modules, each behind those that it imports, directly or not."""
    order: list[str] = []
    seen: set[str] = set()

    def visit(module: str) -> None:
        if module in seen:
            return
        seen.add(module)
        for origin, _ in _source(module).imported.values():
            if _ours(origin):
                visit(origin)
        order.append(module)

    for module in sorted(modules):
        visit(module)
    return [module for module in order if module in modules]


def _position(node: ast.Name | ast.Attribute) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _joined(parts: Sequence[str]) -> str:
    """Constants below each other, functions and classes apart."""
    text = parts[0]
    for before, part in pairwise(parts):
        tight = all(re.match(r"(#|\w+(, \w+)*(: \w+)? = )", one) for one in (before, part))
        text += ("\n" if tight else "\n\n\n") + part
    return text


def _wrapped_aliases(names: Sequence[str]) -> str:
    return "\n".join(f"{name} = Any" for name in names)
