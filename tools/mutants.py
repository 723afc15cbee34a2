"""Make wrong variations (mutants) of a reference solution, by changing one thing in its syntax tree at a time.

The wrong solutions in `tests/grading/wrong` are mistakes that somebody thought of; mutants are those that nobody
thought of. Every change corresponds to a slip of a learner: a set for a list, a missing term, a loop over only the
first or the last few elements, one too many or too few, a negated condition, swapped operands, an answer that is always
the same. Others treat different values as equal: cut, case-folded, trimmed, normalized, divided with a remainder, glued
together, added up, or replaced by a hash or checksum; or they compare identity, or treat 0 as missing. A change in a
docstring is no mutant.
"""

import ast
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

CAPS = (1, 2, 8)
"""The numbers of elements after which a capped loop stops."""
WINDOW = 8
"""The number of elements to which a loop or a value is cut."""
_LOSSY = {
    "a cut value": (f"_[:{WINDOW}]", f"_[-{WINDOW}:]"),
    "a folded value": ("_.lower()",),
    "a trimmed value": ("_.strip()",),
    "a normal form": ("__import__('unicodedata').normalize('NFC', _)",),
    "a remainder": ("_ % 10", "_ % 100"),
    "a salted hash": ("hash(str(_))",),
}
"""By the name of the change, expressions that have the same result for different values of `_`."""
_DIGESTS = {
    "a salted hash": ("hash(str(_))", "str(hash(str(_)))"),
    "a short digest": ("__import__('hashlib').md5(str(_).encode()).hexdigest()[:4]",),
    "a checksum": ("str(__import__('zlib').crc32(str(_).encode()))",),
}
"""By the name of the change, expressions that replace a whole result `_`, such as a key, by a hash or checksum."""
_COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE, ast.Eq),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE, ast.Eq),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_COMPUTED: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
_CALLED = {"max": ("min",), "min": ("max",), "all": ("any",), "any": ("all",), "sorted": ("set",), "list": ("set",)}
_CONSTANTS = ("True", "False", "None", "0", "[]", "{}", "''")


class Mutant(NamedTuple):
    """A wrong variation: the name of the change, the line that it changes, and the whole source."""

    change: str
    line: str
    source: str

    @property
    def name(self) -> str:
        """The mutant's name, which is unique among the mutants of a solution."""
        return f"{self.change}: {self.line}"


Edit = tuple[str, ast.AST]
"""The name of a change, and the node that replaces another one."""


def mutants(source: str) -> list[Mutant]:
    """Return every mutant of a solution, without repetitions, in the order of the source."""
    tree = ast.parse(source)
    texts = sorted(
        {
            each.value
            for each in ast.walk(tree)
            if isinstance(each, ast.Constant) and isinstance(each.value, str) and _is_text(each, tree)
        }
    )
    results: dict[str, Mutant] = {}
    original = ast.unparse(tree)
    for number, node in enumerate(ast.walk(tree)):
        for change, new in _edits(node, texts, tree):
            changed = _replaced(tree, number, new)
            text = ast.unparse(ast.fix_missing_locations(changed))
            if text != original and text not in results and _compiles(text):
                results[text] = Mutant(change, _changed_line(original, text), text)
    return list(results.values())


def _compiles(text: str) -> bool:
    try:
        compile(text, "<mutant>", "exec")
    except SyntaxError:
        return False
    return True


def _replaced(tree: ast.Module, number: int, new: ast.AST) -> ast.Module:
    """Return a copy of the tree in which `new` replaces the node of this number in `ast.walk`."""
    changed = copy.deepcopy(tree)
    target = list(ast.walk(changed))[number]

    class Swap(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return copy.deepcopy(new) if node is target else self.generic_visit(node)

    result = Swap().visit(changed)
    assert isinstance(result, ast.Module)
    return result


def _changed_line(original: str, text: str) -> str:
    """Return the first line that differs; if the mutant has fewer lines, the original's line."""
    before, after = original.splitlines(), text.splitlines()
    for old, new in zip(before, after, strict=False):
        if old != new:
            return (old if len(after) < len(before) else new).strip()
    return (before or after)[-1].strip()


def _is_text(node: ast.AST, tree: ast.Module) -> bool:
    """Return whether a node is a text constant that is not a docstring."""
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and not any(isinstance(each, ast.Expr) and each.value is node for each in ast.walk(tree))
    )


def _edits(node: ast.AST, texts: Sequence[str], tree: ast.Module) -> Iterator[Edit]:
    """Yield every change of a node; `texts` are all text constants of the tree."""
    for kind, change in _CHANGES.items():
        if isinstance(node, kind):
            yield from change(node)
    if _is_value(node, tree):
        parents = [each for each in ast.walk(tree) if node in ast.iter_child_nodes(each)]
        if not any(map(_is_vocabulary, parents)):
            is_pair = any(_is_pair(each, node) for each in parents)
            for edit in _put_into(_LOSSY, node):
                if edit[0] != "a cut value" or not is_pair:
                    yield edit
    if _is_text(node, tree):
        for text in texts:
            yield "another word", ast.Constant(text)


def _is_value(node: ast.AST, tree: ast.Module) -> bool:
    """Return whether a node reads a field by its name, or a variable that the solution assigns or gets."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Constant)
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
        return False
    nodes = list(ast.walk(tree))
    if any(isinstance(each, ast.Call) and each.func is node for each in nodes):
        return False
    return any(
        (isinstance(each, ast.arg) and each.arg == node.id)
        or (isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and each.id == node.id)
        for each in nodes
    )


def _is_vocabulary(parent: ast.AST) -> bool:
    """Return whether a value below this node is one of few: it is compared with a constant, or is a condition."""
    if isinstance(parent, ast.Compare):
        return any(not any(isinstance(each, ast.Name) for each in ast.walk(one)) for one in parent.comparators)
    return isinstance(parent, ast.If | ast.IfExp | ast.BoolOp | ast.UnaryOp)


def _is_pair(parent: ast.AST, node: ast.AST) -> bool:
    """Return whether the code states the number of the value's elements, or the value is the iterable of a loop."""
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.slice, ast.Constant)
    if isinstance(parent, ast.Assign):
        return isinstance(parent.targets[0], ast.Tuple)
    return isinstance(parent, ast.For | ast.comprehension) and parent.iter is node


def _put_into(expressions: Mapping[str, Sequence[str]], *values: ast.AST) -> Iterator[Edit]:
    """Yield each expression with the values in place of `_` and `__`, by the name of the change."""
    places = dict(zip(("_", "__"), values, strict=False))

    class Fill(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return copy.deepcopy(places.get(node.id, node))

    for change, texts in expressions.items():
        for text in texts:
            yield change, Fill().visit(ast.parse(text, mode="eval").body)


def _compare(node: ast.Compare) -> Iterator[Edit]:
    if len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq) and not _is_vocabulary(node):
        sums = "(len(_), sum(_)) == (len(__), sum(__))"
        yield from _put_into(
            {"equal sums": (sums,), "equal sets": ("set(_) == set(__)",)}, node.left, *node.comparators
        )
    if len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.NotEq) and not _is_vocabulary(node):
        is_same = ast.Is() if isinstance(node.ops[0], ast.Eq) else ast.IsNot()
        yield "the same object", ast.Compare(node.left, [is_same], node.comparators)
    if len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
        glued = "str(_) in ''.join(map(str, __))"
        for change, found in _put_into({"found in glued text": (glued,)}, node.left, *node.comparators):
            assert isinstance(found, ast.expr)
            yield change, found if isinstance(node.ops[0], ast.In) else _not(found)
    if len(node.ops) == 1 and isinstance(node.ops[0], ast.Is | ast.IsNot) and _is_none(node.comparators[0]):
        yield "0 is nothing", _not(node.left) if isinstance(node.ops[0], ast.Is) else node.left
    for place, operator in enumerate(node.ops):
        for other in _COMPARED.get(type(operator), ()):
            operators = [*node.ops]
            operators[place] = other()
            yield ("another comparison", ast.Compare(node.left, operators, node.comparators))
    for constant in (True, False):
        yield "a condition is always so", ast.Constant(constant)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _binary(node: ast.BinOp) -> Iterator[Edit]:
    yield "a term is dropped", node.left
    yield "a term is dropped", node.right
    yield "swapped operands", ast.BinOp(node.right, node.op, node.left)
    for other in _COMPUTED.get(type(node.op), ()):
        yield "another operator", ast.BinOp(node.left, other(), node.right)


def _boolean(node: ast.BoolOp) -> Iterator[Edit]:
    for place in range(len(node.values)):
        rest = node.values[:place] + node.values[place + 1 :]
        yield ("a condition is dropped", ast.BoolOp(node.op, rest) if len(rest) > 1 else rest[0])
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield "and for or", ast.BoolOp(other, node.values)


def _unary(node: ast.UnaryOp) -> Iterator[Edit]:
    yield "a sign is dropped", node.operand


def _choice(node: ast.IfExp) -> Iterator[Edit]:
    yield "swapped branches", ast.IfExp(node.test, node.orelse, node.body)
    yield "one branch only", node.body
    yield "one branch only", node.orelse
    yield "negated condition", ast.IfExp(_not(node.test), node.body, node.orelse)


def _branch(node: ast.If) -> Iterator[Edit]:
    yield "negated condition", ast.If(_not(node.test), node.body, node.orelse)
    yield ("a condition is dropped", ast.If(ast.Constant(value=True), node.body, node.orelse))
    yield "a step is dropped", ast.If(ast.Constant(value=False), node.body, node.orelse)


def _loop(node: ast.For) -> Iterator[Edit]:
    for capped in _capped(node.iter):
        yield ("a capped loop", ast.For(node.target, capped, node.body, node.orelse, None))


def _capped(iterated: ast.expr) -> Iterator[ast.expr]:
    listed = ast.Call(ast.Name("list", ast.Load()), [iterated], [])
    for count in CAPS:
        yield ast.Subscript(listed, ast.Slice(None, ast.Constant(count)), ast.Load())
    yield ast.Subscript(listed, ast.Slice(ast.Constant(1), None), ast.Load())
    yield ast.Subscript(listed, ast.Slice(None, ast.UnaryOp(ast.USub(), ast.Constant(1))), ast.Load())
    yield ast.Subscript(listed, ast.Slice(ast.UnaryOp(ast.USub(), ast.Constant(WINDOW)), None), ast.Load())


def _comprehension(node: ast.comprehension) -> Iterator[Edit]:
    for capped in _capped(node.iter):
        yield ("a capped loop", ast.comprehension(node.target, capped, node.ifs, node.is_async))
    for place, condition in enumerate(node.ifs):
        rest = node.ifs[:place] + node.ifs[place + 1 :]
        changed = [*rest, _not(condition)]
        yield ("a condition is dropped", ast.comprehension(node.target, node.iter, rest, node.is_async))
        yield ("negated condition", ast.comprehension(node.target, node.iter, changed, node.is_async))


def _list_comprehension(node: ast.ListComp) -> Iterator[Edit]:
    as_set = ast.SetComp(node.elt, node.generators)
    yield "a set for a list", ast.Call(ast.Name("list", ast.Load()), [as_set], [])


def _list(node: ast.List) -> Iterator[Edit]:
    for place in range(len(node.elts)):
        rest = node.elts[:place] + node.elts[place + 1 :]
        yield "an element is dropped", ast.List(rest, ast.Load())
    if len(node.elts) > 1:
        yield "swapped operands", ast.List(node.elts[::-1], ast.Load())
        yield from _put_into({"glued": ("''.join(map(str, _))", "'-'.join(map(str, _))")}, node)


def _dict(node: ast.Dict) -> Iterator[Edit]:
    if len(node.values) > 1:
        yield "swapped operands", ast.Dict(node.keys, node.values[::-1])


def _call(node: ast.Call) -> Iterator[Edit]:
    if isinstance(node.func, ast.Name):
        for other in _CALLED.get(node.func.id, ()):
            name = ast.Name(other, ast.Load())
            yield "another function", ast.Call(name, node.args, node.keywords)
    if len(node.args) > 1:
        for argument in node.args:
            yield "a term is dropped", argument


def _constant(node: ast.Constant) -> Iterator[Edit]:
    if type(node.value) is int:
        yield "one too many", ast.Constant(node.value + 1)
        yield "one too few", ast.Constant(node.value - 1)
    if type(node.value) is bool:
        yield "the opposite", ast.Constant(not node.value)


def _is_truth(value: ast.expr | None, constant: str) -> bool:
    """Return whether a value is False or True, and `constant` is the number 0 or 1 that equals it."""
    return isinstance(value, ast.Constant) and type(value.value) is bool and constant == str(int(value.value))


def _return(node: ast.Return) -> Iterator[Edit]:
    for constant in _CONSTANTS:
        if _is_truth(node.value, constant):
            continue  # no mistake
        yield ("a constant result", ast.Return(ast.parse(constant, mode="eval").body))
    if node.value is not None:
        for change, digest in _put_into(_DIGESTS, node.value):
            assert isinstance(digest, ast.expr)
            yield change, ast.Return(digest)


def _assign(node: ast.Assign) -> Iterator[Edit]:
    if not isinstance(node.targets[0], ast.Name):
        yield "a step is dropped", ast.Pass()


def _function(node: ast.FunctionDef) -> Iterator[Edit]:
    """Yield the function with a constant result, once for each text that it contains."""
    texts = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)}
    for text in sorted(texts - {ast.get_docstring(node, clean=False) or ""}):
        body: list[ast.stmt] = [ast.Return(ast.Constant(text))]
        constant = copy.copy(node)
        constant.body = body
        yield "a constant result", constant


def _not(condition: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), condition)


_CHANGES: dict[type[ast.AST], Callable[..., Iterator[Edit]]] = {
    ast.Compare: _compare,
    ast.BinOp: _binary,
    ast.BoolOp: _boolean,
    ast.UnaryOp: _unary,
    ast.IfExp: _choice,
    ast.If: _branch,
    ast.For: _loop,
    ast.comprehension: _comprehension,
    ast.ListComp: _list_comprehension,
    ast.List: _list,
    ast.Dict: _dict,
    ast.Call: _call,
    ast.Constant: _constant,
    ast.Return: _return,
    ast.Assign: _assign,
    ast.FunctionDef: _function,
}
"""For each kind of node, the function that yields its changes."""
