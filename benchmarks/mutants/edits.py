"""One-line edits of a source file, like mistakes of an author, found in its syntax tree.

| kind | edit |
|---|---|
| `constant` | a number 5 % larger |
| `off by one` | a whole number one larger |
| `sign` | plus for minus, minus for plus, a minus lost |
| `swap` | times for divided by and back, the two sides of a difference, the larger for the smaller |
| `square` | a square or a square root lost, a power one higher |
| `factor` | an expression 1 to 10 % larger |
| `draw` | a random draw 2 % larger |
| `estimator` | mean for median, sum for mean, the last for the first, one degree of freedom |
| `normalisation` | divided by one more, or not at all |
| `branch` | a comparison the other way round |

Code that states no quantity is left out: docstrings and annotations, texts and conditions of refusals, tolerances and
limits of iterations (numbers below 1e-6 or from 1e6 on), and modules that only check arguments.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

KINDS = (
    "constant", "off by one", "sign", "swap", "square", "factor", "draw", "estimator", "normalisation", "branch"
)  # fmt: skip

ELSEWHERE = ("_checks.py", "_limits.py", "_memory.py", "__main__.py")
"""Modules that state no quantity at all."""

SMALLEST, LARGEST = 1e-6, 1e6
DRAWS = (
    "standard_normal", "normal", "exponential", "uniform", "random", "randn", "rand", "standard_t", "gamma"
)  # fmt: skip
TWINS = {f"{a}{end}": f"{b}{end}" for a, b in (("min", "max"), ("max", "min")) for end in ("", "imum")}
TWINS |= {"amin": "amax", "amax": "amin"}
MEANS = {"mean": "sum", "median": "mean"}
COMPARED: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", ">"), ast.Gt: (">", "<"), ast.LtE: ("<=", ">="), ast.GtE: (">=", "<=")
}  # fmt: skip
ADDED: dict[type[ast.AST], tuple[str, str]] = {ast.Add: ("+", "-"), ast.Sub: ("-", "+")}
MULTIPLIED: dict[type[ast.AST], tuple[str, str]] = {ast.Mult: ("*", "/"), ast.Div: ("/", "*")}

CHECKS = ("_checks", "_limits", "_memory")
"""Modules that check arguments and memory."""

LIMITS = ("rtol", "atol", "tol", "xtol", "maxiter", "tolerance")
"""Keywords that bound an iteration or its rounding."""

TEXTS = ("__repr__", "__str__")


class Edit(NamedTuple):
    """Edit of one line: its place, the text before and the text after.

    `function` is the innermost function around it, with its class; empty for a line of the module itself.
    """

    file: str
    line: int
    column: int
    end: int
    kind: str
    before: str
    after: str
    function: str = ""

    def apply(self, root: Path) -> str:
        """Return the source of the edited file.

        Raises
        ------
        ValueError
            If the file has another text at this place.
        """
        # Columns of the syntax tree count bytes, not characters.
        lines = (root / self.file).read_bytes().splitlines(keepends=True)
        old = lines[self.line - 1]
        if old[self.column : self.end].decode() != self.before:
            raise ValueError(
                f"{self.file}:{self.line} must hold {self.before!r}; the campaign is of other code"
            )
        lines[self.line - 1] = old[: self.column] + self.after.encode() + old[self.end :]
        return b"".join(lines).decode()

    def lines(self, root: Path) -> tuple[str, str]:
        """Return the line before and after the edit."""
        texts = (root / self.file).read_text(), self.apply(root)
        before, after = (text.splitlines()[self.line - 1].strip() for text in texts)
        return before, after


def edits(root: Path, file: str) -> list[Edit]:
    r"""Return all edits of a file below `root`.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.py").write_text("def f(x, n):\n    return 2 * x**2 / n\n")
    >>> sorted({e.kind for e in edits(folder, "a.py")})
    ['factor', 'normalisation', 'off by one', 'square', 'swap']
    """
    return _find(root, file)[0]


def passed_by(root: Path, file: str) -> list[Edit]:
    r"""Return possible edits of a file that touch no quantity: of refusals, checks, tolerances, texts.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.py").write_text("def f(x):\n    if x < 0:\n        raise ValueError(x)\n    return x\n")
    >>> [e.after for e in passed_by(folder, "a.py")], edits(folder, "a.py")
    (['x > 0', '1'], [])
    """
    return _find(root, file)[1]


def _find(root: Path, file: str) -> tuple[list[Edit], list[Edit]]:
    finder = Finder(root, file)
    found, passed = list(dict.fromkeys(finder.found)), list(dict.fromkeys(finder.passed))
    return ([], found + passed) if Path(file).name in ELSEWHERE else (found, passed)


def sample(found: list[Edit], count: int, seed: int, root: Path, kinds: Sequence[str] = KINDS) -> list[Edit]:
    """Return `count` edits, evenly by kind; a larger sample of the same seed starts with the same edits.

    Edits after which the file does not parse are left out.
    """
    rng = random.Random(seed)
    in_order = sorted(found, key=lambda e: (e.file, e.line, e.column, e.after))
    piles = {kind: [edit for edit in in_order if edit.kind == kind] for kind in kinds}
    for pile in piles.values():
        rng.shuffle(pile)
    order: list[Edit] = []
    while len(order) < count and any(piles.values()):
        order += [edit for pile in piles.values() if pile and _parses(edit := pile.pop(), root)]
    return order[:count]


def _parses(edit: Edit, root: Path) -> bool:
    try:
        ast.parse(edit.apply(root))
    except SyntaxError:
        return False
    return True


class Finder(ast.NodeVisitor):
    """Visitor that finds edits in a file.

    Attributes
    ----------
    found
        Edits of quantities.
    passed
        Edits of other code: refusals and their conditions, arguments of checks, estimates of memory, tolerances and
        limits of iterations, texts.
    """

    def __init__(self, root: Path, file: str) -> None:
        self.found, self.passed = list[Edit](), list[Edit]()
        source = (root / file).read_text(encoding="utf-8")
        self._file, self._lines = file, source.encode().splitlines(keepends=True)
        self._skipping, self._function = 0, list[str]()
        self._checks = set[str]()
        self.visit(ast.parse(source))

    # --- code without quantities

    def _visit(self, *nodes: ast.AST, passing: bool = False) -> None:
        self._skipping += passing
        for node in nodes:
            self.visit(node)
        self._skipping -= passing

    def _skip(self, node: ast.AST) -> None:
        """Visit a refusal or a text."""
        self._visit(*ast.iter_child_nodes(node), passing=True)

    visit_Raise = visit_Assert = visit_JoinedStr = _skip  # noqa: N815

    def visit_If(self, node: ast.If) -> None:
        """Visit a condition, which states no quantity if its body is a refusal, and its body."""
        self._visit(node.test, passing=isinstance(node.body[0], ast.Raise))
        self._visit(*node.body, *node.orelse)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Visit body and defaults of arguments, without decorators and annotations."""
        parts = (*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body)
        self._function.append(node.name)
        self._visit(*parts, passing=node.name in TEXTS or _only_checks(node))
        self._function.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Visit the body."""
        self._function.append(node.name)
        self._visit(*node.body)
        self._function.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Visit the value alone."""
        if node.value is not None:
            self._visit(node.value, passing=_is_tolerance(node.target))

    def visit_Assign(self, node: ast.Assign) -> None:
        """Visit the value, which is no quantity if the name says that it is a tolerance."""
        self._visit(node.value, passing=any(map(_is_tolerance, node.targets)))
        self._visit(*node.targets)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Note which imported names are checks; `representable` is not, as it takes the result itself."""
        if (node.module or "").endswith(CHECKS):
            self._checks |= {alias.asname or alias.name for alias in node.names} - {"representable"}

    def visit_keyword(self, node: ast.keyword) -> None:
        """Visit the value, which is no quantity for a tolerance."""
        self._visit(node.value, passing=node.arg in LIMITS)

    def _is_check(self, node: ast.Call) -> bool:
        """Whether a call is a check of its arguments."""
        if isinstance(node.func, ast.Attribute):
            of = node.func.value
            return isinstance(of, ast.Name) and of.id in CHECKS and node.func.attr != "representable"
        return isinstance(node.func, ast.Name) and node.func.id in self._checks

    # --- edits

    def visit_Constant(self, node: ast.Constant) -> None:
        """Edit a number."""
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            return
        if isinstance(value, int) and abs(value) < LARGEST:
            self._replace(node, "off by one", str(value + 1))
        elif isinstance(value, float) and (value == 0 or SMALLEST < abs(value) < LARGEST):
            self._replace(node, "constant", repr(1.05 * value) if value else "0.05")

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Edit a minus."""
        if isinstance(node.op, ast.USub):
            self._replace(node, "sign", self._text(node.operand))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Edit an operation."""
        left, right, whole = map(self._text, (node.left, node.right, node))
        for kind, signs in (("sign", ADDED), ("swap", MULTIPLIED)):
            if type(node.op) in signs:
                self._operator(node, kind, node.left, *signs[type(node.op)])
        if isinstance(node.op, ast.Sub):
            self._replace(node, "swap", f"(({right}) - ({left}))")
        if isinstance(node.op, ast.Pow):
            self._replace(node, "square", f"({left})" if right == "2" else f"({left}) ** (({right}) + 1)")
        if isinstance(node.op, ast.Div):
            self._replace(node, "normalisation", f"({left}) / (({right}) + 1)")
            self._replace(node, "normalisation", f"({left})")
        if isinstance(node.op, ast.Mult | ast.Div | ast.Add | ast.Sub | ast.Pow | ast.MatMult):
            per_cent = 1 + sum(whole.encode()) % 10  # some number that is always the same for a text
            self._replace(node, "factor", f"({1 + per_cent / 100:.2f} * ({whole}))")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Invert a comparison."""
        if len(node.ops) == 1 and type(node.ops[0]) in COMPARED:
            self._operator(node, "branch", node.left, *COMPARED[type(node.ops[0])])
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """Take the last element for the first."""
        other = {"0": "-1", "-1": "0"}.get(self._text(node.slice))
        if other:
            self._replace(node, "estimator", f"{self._text(node.value)}[{other}]")
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        """Replace a library function by a similar one."""
        if self._is_check(node):
            self._skip(node)
            return
        function, text = node.func, self._text(node)
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in DRAWS:
            self._replace(node, "draw", f"(1.02 * {text})")
        for kind, others in (("swap", TWINS), ("estimator", MEANS)):
            if name in others:
                self._replace(function, kind, others[name], len(name))
        if name == "sqrt" and len(node.args) == 1:
            self._replace(node, "square", f"({self._text(node.args[0])})")
        if name == "square" and isinstance(function, ast.Attribute):
            self._replace(node, "square", f"({self._text(node.args[0] if node.args else function.value)})")
        for keyword in node.keywords:
            if keyword.arg in ("ddof", "correction") and isinstance(keyword.value, ast.Constant):
                self._replace(keyword.value, "estimator", "0" if keyword.value.value else "1")
        self.generic_visit(node)

    # --- how

    def _text(self, node: ast.expr) -> str:
        return ast.unparse(node) if node.lineno != node.end_lineno else self._at(node)

    def _at(self, node: ast.expr) -> str:
        return self._lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode()

    def _replace(self, node: ast.expr, kind: str, after: str, last: int | None = None) -> None:
        """Add an edit with another text for an expression of one line, or for its last letters."""
        end = node.end_col_offset or 0
        start = node.col_offset if last is None else end - last
        before = self._lines[node.lineno - 1][start:end].decode()
        if node.lineno == node.end_lineno and before != after:
            function = ".".join(self._function)
            edit = Edit(self._file, node.lineno, start, end, kind, before, after, function)
            (self.passed if self._skipping else self.found).append(edit)

    def _operator(self, node: ast.expr, kind: str, left: ast.expr, old: str, new: str) -> None:
        """Add an edit of the operator between two sides."""
        text, after = self._at(node).encode(), (left.end_col_offset or 0) - node.col_offset
        if node.lineno == node.end_lineno and (at := text.find(old.encode(), after)) >= 0:
            self._replace(node, kind, (text[:at] + new.encode() + text[at + len(old) :]).decode())


def _is_tolerance(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and "TOLERANCE" in target.id


def _only_checks(node: ast.FunctionDef) -> bool:
    """Whether a function only checks: it raises, and neither returns, yields nor sets anything."""
    inside = list(ast.walk(node))
    acts = (ast.Yield, ast.YieldFrom, ast.AugAssign, ast.Subscript, ast.Attribute)
    return any(isinstance(n, ast.Raise) for n in inside) and not any(
        (isinstance(n, ast.Return) and n.value is not None)
        or (isinstance(n, acts) and isinstance(getattr(n, "ctx", ast.Store()), ast.Store))
        for n in inside
    )
