"""The walk through a syntax tree that finds where a careless author would slip."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, cast

__all__ = ["Finder", "Place"]

SMALLEST, LARGEST = 1e-6, 1e6
DRAWS = (
    "standard_normal", "normal", "exponential", "uniform", "random", "randn", "rand", "standard_t", "gamma"
)  # fmt: skip
TWINS = {
    "min": "max",
    "max": "min",
    "amin": "amax",
    "amax": "amin",
    "maximum": "minimum",
    "minimum": "maximum",
}
MEANS = {"mean": "sum", "median": "mean"}
COMPARED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", ">"), ast.Gt: (">", "<"), ast.LtE: ("<=", ">="), ast.GtE: (">=", "<=")
}  # fmt: skip
ADDED: dict[type[ast.operator], tuple[str, str]] = {ast.Add: ("+", "-"), ast.Sub: ("-", "+")}
MULTIPLIED: dict[type[ast.operator], tuple[str, str]] = {ast.Mult: ("*", "/"), ast.Div: ("/", "*")}

CHECKS = ("_checks", "_limits", "_memory")
"""Modules that refuse arguments and ask for room."""

LIMITS = ("rtol", "atol", "tol", "xtol", "maxiter", "tolerance")
"""Keywords that bound an iteration or its rounding."""

TEXTS = ("__repr__", "__str__")


class Place(NamedTuple):
    """Where an edit is made, and what it does; `function` is the one around it."""

    line: int
    column: int
    end: int
    kind: str
    before: str
    after: str
    function: str


class Finder(ast.NodeVisitor):
    """Finds edits in a source, those that touch a quantity apart from those that touch none.

    Attributes
    ----------
    found
        Edits of quantities: line, columns, kind, what stands there, what is to stand there, function.
    passed
        The same of what states none: refusals and their conditions, arguments of checks, estimates of memory,
        tolerances and limits of iterations, texts.
    """

    def __init__(self, source: str) -> None:
        self.found, self.passed = list[Place](), list[Place]()
        self._lines = source.encode().splitlines(keepends=True)
        self._quiet, self._function = 0, list[str]()
        self._checks = set[str]()

    # --- what is passed by

    @contextmanager
    def _passing(self, when: bool = True) -> Iterator[None]:
        self._quiet += when
        yield
        self._quiet -= when

    def visit_Raise(self, node: ast.Raise) -> None:
        """A refusal."""
        with self._passing():
            self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        """A refusal."""
        with self._passing():
            self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """A condition under which is nothing but a refusal states no quantity; what else is under it does."""
        with self._passing(isinstance(node.body[0], ast.Raise)):
            self.visit(node.test)
        for statement in (*node.body, *node.orelse):
            self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """The body, and the defaults of its arguments; no decorators, no annotations."""
        self._function.append(node.name)
        with self._passing(node.name in TEXTS or _only_checks(node)):
            for part in (*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body):
                self.visit(part)
        self._function.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """The body."""
        self._function.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self._function.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """The value alone."""
        if node.value is not None:
            self._assigned(node, [node.target], node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        """A value; that of a constant called a tolerance is none."""
        self._assigned(node, node.targets, node.value)

    def _assigned(self, node: ast.stmt, targets: Iterable[ast.expr], value: ast.expr) -> None:
        named = any(isinstance(t, ast.Name) and "TOLERANCE" in t.id for t in targets)
        with self._passing(named):
            self.visit(value)
        if isinstance(node, ast.Assign):
            for target in targets:
                self.visit(target)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """A text."""
        with self._passing():
            self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Which names are checks."""
        if (node.module or "").endswith(CHECKS):
            self._checks |= {alias.asname or alias.name for alias in node.names} - {"representable"}

    def visit_keyword(self, node: ast.keyword) -> None:
        """A value; that of a tolerance is none."""
        with self._passing(node.arg in LIMITS):
            self.visit(node.value)

    def _is_check(self, node: ast.Call) -> bool:
        """Whether a call refuses its arguments; `representable` has the result itself as one of them."""
        if isinstance(node.func, ast.Attribute):
            of = node.func.value
            return isinstance(of, ast.Name) and of.id in CHECKS and node.func.attr != "representable"
        return isinstance(node.func, ast.Name) and node.func.id in self._checks

    # --- what is edited

    def visit_Constant(self, node: ast.Constant) -> None:
        """A number."""
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            return
        if isinstance(value, int) and abs(value) < LARGEST:
            self._replace(node, "off by one", str(value + 1))
        elif isinstance(value, float) and (value == 0 or SMALLEST < abs(value) < LARGEST):
            self._replace(node, "constant", repr(1.05 * value) if value else "0.05")

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """A minus."""
        if isinstance(node.op, ast.USub):
            self._replace(node, "sign", self._text(node.operand))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """An operation."""
        left, right = self._text(node.left), self._text(node.right)
        whole = self._text(node)
        if type(node.op) in ADDED:
            self._operator(node, "sign", *ADDED[type(node.op)])
        if type(node.op) in MULTIPLIED:
            self._operator(node, "swap", *MULTIPLIED[type(node.op)])
        if isinstance(node.op, ast.Sub):
            self._replace(node, "swap", f"(({right}) - ({left}))")
        if isinstance(node.op, ast.Pow):
            self._replace(node, "square", f"({left})" if right == "2" else f"({left}) ** (({right}) + 1)")
        if isinstance(node.op, ast.Div):
            self._replace(node, "normalisation", f"({left}) / (({right}) + 1)")
            self._replace(node, "normalisation", f"({left})")
        if isinstance(node.op, ast.Mult | ast.Div | ast.Add | ast.Sub | ast.Pow | ast.MatMult):
            self._replace(node, "factor", f"({1 + (1 + _number(whole) % 10) / 100:.2f} * ({whole}))")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """A comparison the other way round."""
        if len(node.ops) == 1 and type(node.ops[0]) in COMPARED:
            self._operator(node, "branch", *COMPARED[type(node.ops[0])], left=node.left)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """The last for the first."""
        index = self._text(node.slice)
        if index in ("0", "-1"):
            self._replace(node, "estimator", f"{self._text(node.value)}[{'-1' if index == '0' else '0'}]")
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        """A function of the libraries for its neighbour."""
        if self._is_check(node):
            with self._passing():
                self.generic_visit(node)
            return
        name, text = _called(node), self._text(node)
        if name in DRAWS:
            self._replace(node, "draw", f"(1.02 * {text})")
        if name in TWINS:
            self._name(node, "swap", TWINS[name])
        if name in MEANS:
            self._name(node, "estimator", MEANS[name])
        if name == "sqrt" and len(node.args) == 1:
            self._replace(node, "square", f"({self._text(node.args[0])})")
        if name == "square" and isinstance(node.func, ast.Attribute):
            argument = self._text(node.args[0] if node.args else node.func.value)
            self._replace(node, "square", f"({argument})")
        for keyword in node.keywords:
            if keyword.arg in ("ddof", "correction") and isinstance(keyword.value, ast.Constant):
                self._replace(keyword.value, "estimator", "0" if keyword.value.value else "1")
        self.generic_visit(node)

    # --- how

    def _text(self, node: ast.expr) -> str:
        return ast.unparse(node) if node.lineno != node.end_lineno else self._at(node)

    def _at(self, node: ast.expr) -> str:
        return self._lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode()

    def _replace(self, node: ast.expr, kind: str, after: str) -> None:
        if node.lineno == node.end_lineno and node.end_col_offset is not None:
            self._add(node.lineno, node.col_offset, node.end_col_offset, kind, self._at(node), after)

    def _operator(self, node: ast.expr, kind: str, old: str, new: str, left: ast.expr | None = None) -> None:
        """The sign itself, which stands after the left side."""
        first = left if left is not None else cast("ast.BinOp", node).left
        if node.lineno == node.end_lineno and first.end_col_offset is not None:
            line = self._lines[node.lineno - 1]
            at = line.find(old.encode(), first.end_col_offset, node.end_col_offset)
            if at >= 0:
                self._add(node.lineno, node.col_offset, node.end_col_offset or 0, kind, self._at(node), (
                    line[node.col_offset : at].decode() + new + line[at + len(old) : node.end_col_offset].decode()
                ))  # fmt: skip

    def _name(self, node: ast.Call, kind: str, new: str) -> None:
        name = _called(node)
        place = node.func
        if place.lineno == place.end_lineno and place.end_col_offset is not None:
            end = place.end_col_offset
            self._add(place.lineno, end - len(name), end, kind, name, new)

    def _add(self, line: int, column: int, end: int, kind: str, before: str, after: str) -> None:
        if before != after:
            place = Place(line, column, end, kind, before, after, ".".join(self._function))
            (self.passed if self._quiet else self.found).append(place)


def _only_checks(node: ast.FunctionDef) -> bool:
    """Whether a function can do nothing but refuse: it raises, and neither returns, yields nor sets anything."""
    inside = list(ast.walk(node))
    returns = any(isinstance(n, ast.Return) and n.value is not None for n in inside)
    sets = (ast.Yield, ast.YieldFrom, ast.AugAssign, ast.Subscript, ast.Attribute)
    writes = any(isinstance(n, sets) and _writes(n) for n in inside)
    return any(isinstance(n, ast.Raise) for n in inside) and not returns and not writes


def _writes(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", ast.Store()), ast.Store)


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _number(text: str) -> int:
    """Some number that is always the same for a text."""
    return sum(text.encode())
