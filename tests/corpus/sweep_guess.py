"""Finds the jit functions of a folder of Python files, and guesses with which arguments each could be called.

A jit function says little about its parameters. What can be read off: an annotation, a default, how the parameter is
used in the body (an address, a loop bound, a comparison with a string, a tile that is reduced), what the functions do
that it is passed on to, and names (BLOCK_M, stride_am, USE_BIAS). Each parameter gets a list of guesses, the likeliest
first. The same rules hold for every function; no function is named here.
"""
import ast
import os
import re

JIT = ("triton.jit", "jit", "triton.runtime.jit", "tl.jit")
MEMORY = {"load", "store", "atomic_add", "atomic_max", "atomic_min", "atomic_cas", "atomic_xchg", "atomic_and", "atomic_or",
          "atomic_xor", "make_block_ptr", "make_tensor_descriptor", "prefetch"}
INTS = {"arange", "cdiv", "range", "static_range", "program_id", "min", "max", "multiple_of", "max_contiguous", "swizzle2d"}
REDUCERS = {"sum", "max", "min", "argmax", "argmin", "reduce", "cumsum", "cumprod", "associative_scan", "sort", "flip",
            "softmax", "xor_sum", "topk"}


class Function:
    """One jit function: where it is, its parameters, and what its body says about them."""

    def __init__(self, root, path, node, imports, text, nested):
        self.root, self.path, self.node, self.imports, self.text = root, path, node, imports, text
        self.nodes = list(ast.walk(node))
        self.name, self.line, self.nested = node.name, node.lineno, nested
        self.module = os.path.relpath(path, root)[:-3].replace(os.sep, ".").removesuffix(".__init__")
        args = node.args
        self.params = [a.arg for a in args.posonlyargs + args.args + args.kwonlyargs]
        self.star = args.vararg.arg if args.vararg else None
        self.annotation = {a.arg: ast.unparse(a.annotation) if a.annotation else ""
                           for a in args.posonlyargs + args.args + args.kwonlyargs}
        positional = args.posonlyargs + args.args
        self.default = {a.arg: d for a, d in zip(positional[len(positional) - len(args.defaults):], args.defaults)}
        self.default |= {a.arg: d for a, d in zip(args.kwonlyargs, args.kw_defaults) if d}
        self.hidden = False  # another function of the same name hides it from an import
        self.roles = {}
        self.calls = {}  # name of what is called -> line of the first call
        for n in self.nodes:
            if isinstance(n, ast.Call):
                self.calls.setdefault(call_name(n), n.lineno)

    def key(self):
        return f"{os.path.relpath(self.path, self.root)}:{self.line}:{self.name}"

    def is_const(self, p):
        a = self.annotation[p].strip("'\"")
        return a.split(".")[-1].split("[")[0] == "constexpr"


def jit_functions(root, package):
    """All functions under root/package decorated with triton.jit, as Function objects."""
    out = []
    for folder, dirs, files in os.walk(os.path.join(root, package)):
        dirs.sort()
        for name in sorted(files):
            if not name.endswith(".py"):
                continue
            path = os.path.join(folder, name)
            with open(path, errors="replace") as f:
                text = f.read()
            if not re.search(r"^[ \t]*@[\w.]*jit\b", text, re.M):
                continue
            try:
                tree = ast.parse(text)
            except SyntaxError:
                continue
            statements = list(statements_of(tree, False))
            imports = [n for n, _ in statements if isinstance(n, ast.ImportFrom)]
            plain_jit = any((a.asname or a.name) == "jit" and re.search("triton|runtime", n.module or "")
                            for n in imports for a in n.names)
            found = [Function(root, path, n, imports, text, nested) for n, nested in statements
                     if isinstance(n, ast.FunctionDef) and is_jit(n, plain_jit)]
            bound = [n.name for n, inside in statements if not inside and isinstance(n, (ast.FunctionDef, ast.ClassDef))]
            for f in found:
                f.hidden = bound.count(f.name) > 1
            out += found
    return out


def statements_of(node, nested):
    """All statements below, each with whether a function or class is around it."""
    for field in ("body", "orelse", "finalbody", "handlers"):
        for child in getattr(node, field, ()):
            yield child, nested
            yield from statements_of(child, nested or isinstance(child, (ast.FunctionDef, ast.ClassDef)))


def is_jit(node, plain_jit):
    for d in node.decorator_list:
        d = d.func if isinstance(d, ast.Call) else d
        name = ast.unparse(d)
        if name in JIT and (name != "jit" or plain_jit):
            return True
    return False


# ---- what a body says about its parameters -------------------------------------------------------------------------
def call_name(call):
    f = call.func
    return f.attr if isinstance(f, ast.Attribute) else f.id if isinstance(f, ast.Name) else ""


def leaves_of_sum(e):
    """Names added up in an address: p + i * s -> p. Leftmost first."""
    if isinstance(e, ast.BinOp) and isinstance(e.op, (ast.Add, ast.Sub)):
        return leaves_of_sum(e.left) + leaves_of_sum(e.right)
    if isinstance(e, ast.Subscript):
        return leaves_of_sum(e.value)
    if isinstance(e, ast.IfExp):
        return leaves_of_sum(e.body) + leaves_of_sum(e.orelse)
    if isinstance(e, ast.Call):
        if isinstance(e.func, ast.Attribute) and e.func.attr in ("to", "cast"):
            inner = e.func.value
            return leaves_of_sum(e.args[0]) if isinstance(inner, ast.Name) and inner.id == "tl" and e.args else leaves_of_sum(inner)
        if call_name(e) in ("advance", "multiple_of", "max_contiguous", "cast", "broadcast_to") and e.args:
            return leaves_of_sum(e.args[0])
        if call_name(e) == "where" and len(e.args) == 3:
            return leaves_of_sum(e.args[1]) + leaves_of_sum(e.args[2])
    return [e.id] if isinstance(e, ast.Name) else []


def addends_of(e):
    if isinstance(e, ast.BinOp) and isinstance(e.op, (ast.Add, ast.Sub)):
        return addends_of(e.left) + addends_of(e.right)
    return [e]


def names_in(e):
    return {n.id for n in ast.walk(e) if isinstance(n, ast.Name)}


class Uses:
    """Walks one function: roles of its parameters, and of the locals made of them."""

    def __init__(self, f, by_name):
        self.f, self.by_name = f, by_name
        self.defs = {}  # local name -> expressions assigned to it
        for n in f.nodes:
            targets = n.targets if isinstance(n, ast.Assign) else [n.target] if isinstance(n, (ast.AugAssign, ast.AnnAssign)) else []
            for t in targets:
                if isinstance(t, ast.Name) and n.value:
                    value = ast.BinOp(t, n.op, n.value) if isinstance(n, ast.AugAssign) else n.value
                    self.defs.setdefault(t.id, []).append(value)
                elif isinstance(t, (ast.Tuple, ast.List)) and isinstance(n.value, (ast.Tuple, ast.List)) and \
                        len(t.elts) == len(n.value.elts):
                    for x, v in zip(t.elts, n.value.elts):
                        if isinstance(x, ast.Name):
                            self.defs.setdefault(x.id, []).append(v)
        self.roles = {p: {} for p in f.params}
        for n in f.nodes:
            self.visit(n)
        calls = [n for n in f.nodes if isinstance(n, ast.Call) and isinstance(n.func, (ast.Name, ast.Attribute))]
        self.calls = [(n, self.callee(n)) for n in calls if self.callee(n)]
        for values in self.defs.values():  # what starts as an integer stays one
            if any(isinstance(v, ast.Constant) and type(v.value) is int for v in values):
                for v in values:
                    self.mark_int(v)

    def mark(self, name, role, weight=1, seen=None):
        """Gives the role to a parameter, or to those that a local is made of by additions."""
        seen = set() if seen is None else seen
        if name in seen:
            return
        seen.add(name)
        if name in self.roles:
            self.roles[name][role] = self.roles[name].get(role, 0) + weight
        for e in self.defs.get(name, ()):
            names = leaves_of_sum(e)
            if role == "pointer" and len(names) > 1:  # one of a sum is the pointer
                names = [self.pointer_of(names)]
            for n in names:
                self.mark(n, role, weight, seen)

    def mark_int(self, e, seen=None):
        """What an integer is computed of are integers, or pointers to them."""
        seen = set() if seen is None else seen
        if isinstance(e, ast.BinOp):
            self.mark_int(e.left, seen)
            self.mark_int(e.right, seen)
        elif isinstance(e, (ast.UnaryOp, ast.Compare)):
            self.mark_int(e.operand if isinstance(e, ast.UnaryOp) else e.left, seen)
        elif isinstance(e, ast.Subscript):
            self.mark_int(e.value, seen)
        elif isinstance(e, ast.IfExp):
            self.mark_int(e.body, seen)
            self.mark_int(e.orelse, seen)
        elif isinstance(e, ast.Call):
            name = call_name(e)
            inner = e.func.value if isinstance(e.func, ast.Attribute) else None
            if name == "load" and (e.args or e.keywords):
                names = leaves_of_sum(e.args[0] if e.args else e.keywords[0].value)
                if names:
                    self.mark(self.pointer_of(names), "intptr", 2)
            elif name == "to" and inner is not None and not isinstance(e.args[0] if e.args else None, ast.Name):
                self.mark_int(inner, seen)
            elif name in ("where", "min", "max", "minimum", "maximum", "cdiv", "cast", "sum", "cumsum", "abs", "multiple_of"):
                for a in e.args[1:] if name == "where" else e.args[:1] if name in ("cast", "sum", "cumsum") else e.args:
                    self.mark_int(a, seen)
        elif isinstance(e, ast.Name):
            if e.id in seen:
                return
            seen.add(e.id)
            if e.id in self.roles:
                self.roles[e.id]["int"] = self.roles[e.id].get("int", 0) + 1
            for d in self.defs.get(e.id, ()):
                self.mark_int(d, seen)

    def mark_address(self, e, weight, seen=None):
        """An address is one pointer and integers."""
        seen = set() if seen is None else seen
        names = leaves_of_sum(e)
        if not names:
            return
        pointer = self.pointer_of(names)
        if pointer in self.roles:
            self.roles[pointer]["pointer"] = self.roles[pointer].get("pointer", 0) + weight
        for addend in addends_of(e):
            if pointer not in leaves_of_sum(addend):
                self.mark_int(addend)
        if pointer not in seen:
            seen.add(pointer)
            for d in self.defs.get(pointer, ()):
                self.mark_address(d, weight, seen)

    def pointer_of(self, names):
        scored = sorted(names, key=lambda n: (not self.reaches_param(n), -looks_like_pointer(n), names.index(n)))
        return scored[0]

    def reaches_param(self, name, seen=None):
        seen = set() if seen is None else seen
        if name in self.roles:
            return not self.f.is_const(name)
        if name in seen:
            return False
        seen.add(name)
        return any(self.reaches_param(x, seen) for e in self.defs.get(name, ()) for x in leaves_of_sum(e))

    def visit(self, n):
        if isinstance(n, ast.Call):
            self.visit_call(n)
        elif isinstance(n, ast.Subscript):
            items = n.slice.elts if isinstance(n.slice, ast.Tuple) else [n.slice]
            axes = sum(isinstance(i, ast.Slice) for i in items)
            if isinstance(n.value, ast.Name):
                if any(isinstance(i, ast.Constant) and i.value is None for i in items):
                    self.mark(n.value.id, f"rank{axes}" if axes else "scalar")
                elif all(isinstance(i, ast.Constant) for i in items) or not axes:
                    self.mark(n.value.id, "tuple")
        elif isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name):
            if n.attr in ("shape", "T", "numel"):
                self.mark(n.value.id, "tile")
            if n.attr == "element_ty":
                self.mark(n.value.id, "pointer", 2)
        elif isinstance(n, ast.Attribute) and n.attr == "element_ty":
            for x in names_in(n):
                self.mark(x, "pointer", 2)
        elif isinstance(n, ast.BinOp) and isinstance(n.op, (ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor)):
            self.mark_int(n)
        elif isinstance(n, ast.Compare) and isinstance(n.left, ast.Name):
            for c in n.comparators:
                if isinstance(c, ast.Constant):
                    self.mark(n.left.id, ("eq", c.value if c.value is not None else "None!"))
                for d in c.elts if isinstance(c, (ast.Tuple, ast.List)) else []:
                    if isinstance(d, ast.Constant):
                        self.mark(n.left.id, ("eq", d.value))
                if isinstance(c, ast.Attribute) and isinstance(c.value, ast.Name) and c.value.id in ("tl", "triton"):
                    self.mark(n.left.id, "dtype")
        elif isinstance(n, (ast.If, ast.IfExp, ast.While)):
            for x in condition_names(n.test):
                self.mark(x, "flag")
        elif isinstance(n, ast.For) and isinstance(n.iter, ast.Name):
            self.mark(n.iter.id, "tuple")

    def visit_call(self, n):
        name, args = call_name(n), n.args
        kw = {k.arg: k.value for k in n.keywords if k.arg}
        method_of = n.func.value if isinstance(n.func, ast.Attribute) else None
        of_library = isinstance(method_of, ast.Name) and method_of.id in ("tl", "triton", "core", "language", "tle")
        if isinstance(n.func, ast.Name) and n.func.id in self.roles:
            self.mark(n.func.id, ("call", len(args) + len(n.keywords)))
        if isinstance(method_of, ast.Name) and not of_library:
            if name in ("load", "store", "gather", "scatter") or name.startswith("atomic_"):
                self.mark(method_of.id, f"desc{len(args[0].elts) if args and isinstance(args[0], (ast.Tuple, ast.List)) else 2}", 3)
            elif name in ("to", "reshape", "trans", "sum", "max"):
                self.mark(method_of.id, "value")
        if name in MEMORY and (of_library or isinstance(n.func, ast.Name)):
            base = args[0] if args else kw.get("base") or kw.get("pointer") or kw.get("ptr")
            if base is not None:
                self.mark_address(base, 3)
            if name.startswith("make_"):
                for a in args[1:3] + [kw.get("shape"), kw.get("strides")]:
                    for x in names_in(a) if a is not None else ():
                        self.mark(x, "int")
            if name != "load" and len(args) > 1 and name.startswith(("store", "atomic")):
                for x in leaves_of_sum(args[1]):
                    self.mark(x, "value")
        elif name in INTS and name not in ("min", "max"):
            for a in args:
                self.mark_int(a)
                for x in leaves_of_sum(a) if name == "arange" else ():
                    self.mark(x, "pow2")
        elif name in ("zeros", "full", "make_tensor_descriptor", "reshape", "view", "broadcast_to"):
            for a in args:
                if isinstance(a, (ast.Tuple, ast.List)):
                    for e in a.elts:
                        for x in leaves_of_sum(e):
                            self.mark(x, "pow2")
        if name == "dot":
            for a in args[:2]:
                for x in leaves_of_sum(a):
                    self.mark(x, "rank2", 2)
                    self.mark(x, "dot")
        elif name in REDUCERS and args and (name not in ("min", "max", "sum") or not isinstance(n.func, ast.Name)):
            axis = kw.get("axis") or kw.get("dim") or (args[1] if len(args) > 1 else None)
            value = axis.value if isinstance(axis, ast.Constant) and isinstance(axis.value, int) else None
            parts = args[0].elts if isinstance(args[0], (ast.Tuple, ast.List)) else args[:1]
            for x in [x for part in parts for x in leaves_of_sum(part)]:
                self.mark(x, f"rank{value + 1}" if value is not None and value >= 0 else "tile")
        elif name in ("trans", "permute", "split", "join", "histogram", "gather") and args:
            for x in leaves_of_sum(args[0]):
                self.mark(x, "rank2" if name == "trans" else "tile")
        statics = [v for k, v in kw.items() if k in ("axis", "dim", "block_shape", "order", "boundary_check", "keep_dims")]
        if name in ("sum", "max", "min", "cumsum", "reduce", "associative_scan", "argmax", "argmin", "sort", "expand_dims") and of_library:
            statics += args[1:2]
        for v in statics + (args[4:6] if name == "make_block_ptr" else []):
            for x in names_in(v):
                self.mark(x, "block" if isinstance(v, (ast.Tuple, ast.List)) else "axis")
        for k, v in kw.items():
            if k in ("dtype", "out_dtype") and isinstance(v, ast.Name):
                self.mark(v.id, "dtype")
        if name in ("to", "cast", "zeros", "full") and args and isinstance(args[-1], ast.Name):
            self.mark(args[-1].id, "dtype" if name != "full" or len(args) > 2 else "value")

    def pass_on(self):
        """Roles of parameters handed to other jit functions."""
        changed = False
        for n, callee in self.calls:
            pairs = list(zip(callee.params, n.args)) + [(k.arg, k.value) for k in n.keywords if k.arg]
            for p, arg in pairs:
                if p in callee.annotation and callee.is_const(p) and isinstance(arg, ast.Name) and arg.id in self.roles and \
                        "static" not in self.roles[arg.id]:
                    self.roles[arg.id]["static"] = changed = True
                for role in [r for r in callee.roles.get(p, {}) if r != "flag" and not (isinstance(r, tuple) and r[0] == "call")]:
                    if role == "pointer":
                        names = [self.pointer_of(leaves_of_sum(arg))] if leaves_of_sum(arg) else []
                    elif isinstance(arg, ast.Name):
                        names = [arg.id]
                    else:
                        continue
                    for x in names:
                        before = sum(map(len, self.roles.values()))
                        self.mark(x, role, 3 if role == "pointer" else 1)
                        changed |= before != sum(map(len, self.roles.values()))
        return changed

    def callee(self, n):
        if isinstance(n.func, ast.Attribute) and isinstance(n.func.value, ast.Name) and n.func.value.id in ("tl", "triton"):
            return None
        found = self.by_name.get(call_name(n), [])
        same = [f for f in found if f.path == self.f.path]
        return (same or found or [None])[0]


def condition_names(e):
    if isinstance(e, ast.Name):
        return [e.id]
    if isinstance(e, ast.UnaryOp):
        return condition_names(e.operand)
    if isinstance(e, ast.BoolOp):
        return [x for v in e.values for x in condition_names(v)]
    return []


def looks_like_pointer(name):
    low = name.lower()
    return 2 if re.search(r"ptr|pointer|^p_|_p$", low) else 0 if re.search(r"stride|off|idx|pid|^[a-z]$|mask", low) else 1


def learn(functions):
    """Fills in the roles of all functions; those handed from callee to caller by going round until nothing changes."""
    by_name = {}
    for f in functions:
        by_name.setdefault(f.name, []).append(f)
    uses = [Uses(f, by_name) for f in functions]
    for u in uses:
        u.f.roles = u.roles
    for _ in range(4):
        if not any([u.pass_on() for u in uses]):
            break


# ---- guesses ---------------------------------------------------------------------------------------------------------
# An argument is a tuple: ("ptr", dtype), ("scalar", dtype), ("const", python value), ("dtype", name), ("func", arity),
# ("tile", dtype, shape), ("ptile", dtype, shape) tiles of pointers, ("desc", dtype, rank), ("tuple", (arguments)).
INT_NAME = re.compile(r"stride|size|num|len|idx|index|offs?et|^n_|_n$|^off|pid|start|end|count|^[A-Z]{1,3}[0-9]?$|^[mnkbhtdsl]$|"
                      r"dim|rank|seed|rows?$|cols?$|total|max_|cache_|page|head|batch|chunk|split|seq|shape|step|token|rows|cols")
FLOAT_NAME = re.compile(r"eps|scale|alpha|beta|lr|prob|^p$|dropout|momentum|decay|temperature|value|gamma|factor|lambda|thresh|"
                        r"softcap|weight|^inv|smoothing|ratio|margin|slope|rate")
INDEX_NAME = re.compile(r"idx|index|indic|ind_|indptr|offsets?|_ids?\b|cu_seq|lens|label|target|table|slot|mapping|lock|count|seq_|"
                        r"seqlen|position|order|sorted|num_|_lut|perm|inverse|segment|map|token|topk_id|expert|block_id|start|end")
BLOCK_NAME = re.compile(r"block|tile|^B[A-Z]?$|^B[A-Z]{1,2}$|chunk|^BLK|_SIZE|size|pow2|padded|np2|next_power|group|split|^K$|^V$|^D$")
FLAG_NAME = re.compile(r"^(is|has|use|do|enable|need|return|store|save|output|apply|with|add|head_first|reverse|causal|even|fuse|"
                       r"norm|transpose|allow|input|should|skip|training|inplace|compute|accum|no|not|keep|force|rcp|affine|bias|"
                       r"mask|masked|track|update|zero|dynamic|largest|descending|unbiased)(_|$)|causal|^IS|^HAS|^USE|TRANS|^EVEN")
DTYPES = ("f32", "f16", "bf16", "i32", "i64", "i8", "u8", "i1")


def literal(node):
    try:
        return True, ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return False, None


def unique(seq):
    out = []
    for x in seq:
        if not any(same(x, y) for y in out):
            out.append(x)
    return out


def same(x, y):
    return x == y and repr(x) == repr(y)  # True is not 1


def const_guesses(f, p, roles):
    low, out = p.lower(), [("const", v) for v in (0, 1, 2)] if "axis" in roles else []
    compared = [r[1] for r in roles if isinstance(r, tuple) and r[0] == "eq"]
    for r in roles:
        if isinstance(r, tuple) and r[0] == "call":
            out.append(("func", r[1]))
    if p in f.default:
        known, v = literal(f.default[p])
        if known and not isinstance(v, (list, dict, set)):
            out.append(("const", v))
        elif not known and "float" in ast.unparse(f.default[p]):
            out.append(("dtype", "f32"))
    texts = [("const", v) for v in compared if isinstance(v, str) and v != "None!"]
    numbers = [("const", v) for v in compared if isinstance(v, (bool, int)) and v is not None]
    out += texts
    if texts:
        return out
    if numbers and "dtype" not in low:
        out += numbers
    if "dtype" in low or low.endswith(("type", "_ty")) or "dtype" in roles:
        out += [("dtype", d) for d in ("f32", "f16", "bf16", "i32", "i64", "u8")]
    flag = FLAG_NAME.search(p if p.isupper() else low) or ("flag" in roles and not roles.keys() & {"int", "pow2"})
    block = "pow2" in roles or BLOCK_NAME.search(p) or BLOCK_NAME.search(low)
    if block and not flag and not out and not numbers:
        return [("const", v) for v in (32, 64, 16, 128, 8, 4, 2, 1, 256)]
    ints = [("const", v) for v in ((32, 64, 16, 128, 8, 4, 2, 1, 256) if block else (4, 2, 1, 8, 16, 32, 64, 128))]
    bools = [("const", True), ("const", False)]
    if "precision" in low:
        out += [("const", v) for v in ("ieee", "tf32", "tf32x3")]
    if re.search(r"eps|scale|alpha|beta|lr$|theta|gamma|slope|thresh|cap$|limit", low):
        out.append(("const", 0.5))
    if re.search(r"act(ivation)?$|mode|reduc|kind|method|norm_type|format", low):
        out.append(("const", "none"))
    out += numbers
    out += bools + ints if flag else ints + bools
    if "tuple" in roles or "shape" in low or "stride" in low:
        out.append(("tuple", tuple(("const", v) for v in (4, 4, 4))))
    out += [("const", None), ("const", 0), ("const", 0.5), ("dtype", "f32"), ("const", ""), ("func", 1), ("func", 2)]
    return unique(out)


def value_guesses(f, p, roles):
    low, note, out = p.lower(), f.annotation[p].strip("'\""), []
    if "axis" in roles:
        out += [("const", v) for v in ((True, False) if "keep" in low else (0, 1, True, False))]
    if "static" in roles:
        out += [("dtype", "f32")] if "dtype" in low else [("const", 4), ("const", 32), ("const", True), ("dtype", "f32"), ("const", 0.5)]
    if "block" in roles or "pow2" in roles and returns_value(f) and "pointer" not in roles:
        out += [("const", 32), ("const", 16), ("const", 1)]
    elem = "i32" if "intptr" in roles or INDEX_NAME.search(low) and not FLOAT_NAME.search(low) else "i8" if "mask" in low else "f32"
    for r in roles:
        if isinstance(r, tuple) and r[0] == "call":
            out.append(("func", r[1]))
    scalar = note.split(".")[-1]
    scalars = {"int64": "i64", "int32": "i32", "uint32": "u32", "uint64": "u64", "float32": "f32", "int": "i32", "float": "f32",
               "int8": "i8", "int16": "i16", "bool": "i1", "int1": "i1", "float16": "f16", "i32": "i32", "i64": "i64"}
    if scalar in scalars and not roles.keys() & {"pointer"}:
        out.append(("scalar", scalars[scalar]))
    ranks = sorted({int(r[4:]) for r in roles if isinstance(r, str) and r.startswith("rank")}, reverse=True)
    descs = sorted({int(r[4:]) for r in roles if isinstance(r, str) and r.startswith("desc")}, reverse=True)
    rank = ranks[0] if ranks else 1 if "tile" in roles else 0
    shape = {1: (32,), 2: (32, 32), 3: (4, 16, 16), 4: (4, 4, 8, 8)}.get(rank, (32,))
    pointer, weight = roles.get("pointer", 0), sum(v for r, v in roles.items() if r == "int")
    is_pointer = pointer and (pointer >= 3 or looks_like_pointer(p) == 2 or not weight)
    if descs:
        out += [("desc", "f32", d) for d in descs]
    if re.search(r"_?desc(riptor)?$", low):
        out.append(("desc", "f32", 2))
    if is_pointer or looks_like_pointer(p) == 2 or re.search(r"ptrs?$", low):
        tiles = [("ptile", elem, (32,)), ("ptile", elem, (32, 32))]
        if re.search(r"ptrs$", low) and not pointer >= 3 or rank:
            out += tiles
        out += [("ptr", elem)] + [("ptr", d) for d in DTYPES] + tiles + [("tuple", (("ptr", elem),) * 2)]
    if p in f.default:
        known, v = literal(f.default[p])
        if known and (v is None or isinstance(v, (bool, str))):
            out.append(("const", v))
    if "tuple" in roles:
        out[:0] = [("tuple", (("ptr", elem) if pointer else ("scalar", "i32"),) * 4)]
    if rank and not is_pointer:
        out += [("tile", d, shape) for d in (("i32" if "int" in roles and "dot" not in roles else "f32"), "f32", "i32", "f16", "bf16", "i1")]
    integer = ("int" in roles or INT_NAME.search(p)) and not (FLOAT_NAME.search(low) and "int" not in roles)
    out += [("scalar", d) for d in (("i32", "f32") if integer else ("f32", "i32"))]
    tiles = [("tile", "f32", (32,)), ("tile", "f32", (32, 32)), ("tile", "i32", (32,)), ("tile", "i1", (32,)),
             ("tile", "i32", (32, 32)), ("tile", "i1", (32, 32)), ("tile", "f32", (4, 16, 16)), ("tile", "u32", (32,)),
             ("tile", "u8", (32,)), ("tile", "i64", (32,)), ("tile", "f16", (32, 32))]
    out += [("scalar", d) for d in ("i64", "u32", "u64", "i1", "f16", "f64")] + [("ptr", elem)] + tiles
    out += [("ptr", d) for d in DTYPES] + [("const", None), ("const", 16), ("const", 1), ("const", True), ("const", False),
                                           ("dtype", "f32"), ("desc", "f32", 2), ("desc", "f32", 1), ("ptile", "f32", (32,)),
                                           ("ptile", "f32", (32, 32)), ("tuple", (("scalar", "i32"),) * 3), ("bptr", "f32", 2),
                                           ("bptr", "f32", 1), ("func", 1), ("func", 2)]
    return unique(out)


def returns_value(f):
    return any(isinstance(n, ast.Return) and n.value is not None and not (isinstance(n.value, ast.Constant) and n.value.value is None)
               for n in f.nodes)


def guesses(f):
    """For each parameter the arguments worth a try, the likeliest first."""
    out = {}
    for p in f.params:
        roles = f.roles.get(p, {})
        out[p] = const_guesses(f, p, roles) if f.is_const(p) else value_guesses(f, p, roles)
    return out


def site_in(f, path, line, functions):
    """The line of f that an error belongs to: its own, or that of the call of the function where it is; 0: unknown."""
    if path == f.path and f.line <= line <= f.node.end_lineno:
        return line
    known, wave = set(), {g.name for g in functions if g.path == path and g.line <= line <= g.node.end_lineno}
    for _ in range(4):
        calls = [f.calls[name] for name in wave if name in f.calls]
        if calls or not wave:
            return min(calls, default=0)
        known |= wave
        wave = {g.name for g in functions if not wave.isdisjoint(g.calls)} - known
    return 0


def parameters_near(f, line):
    """Parameters that the statement at that line depends on, the nearest first."""
    stmt = None
    for n in f.nodes:
        if isinstance(n, ast.stmt) and n is not f.node and n.lineno <= line <= (n.end_lineno or n.lineno):
            if stmt is None or n.lineno >= stmt.lineno:
                stmt = n
    if stmt is None:
        return list(f.params)
    if isinstance(stmt, (ast.If, ast.While)):
        names = names_in(stmt.test)
    elif isinstance(stmt, ast.For):
        names = names_in(stmt.iter) | names_in(stmt.target)
    else:
        names = names_in(stmt)
    defs = {}
    for n in f.nodes:
        targets = n.targets if isinstance(n, ast.Assign) else [n.target] if isinstance(n, (ast.AugAssign, ast.AnnAssign, ast.For)) else []
        value = n.iter if isinstance(n, ast.For) else getattr(n, "value", None)
        for t in targets:
            for x in names_in(t):
                if value is not None:
                    defs.setdefault(x, set()).update(names_in(value))
    out, seen, wave = [], set(), sorted(names)
    for _ in range(6):
        out += [x for x in wave if x in f.params and x not in out]
        seen.update(wave)
        wave = sorted({y for x in wave for y in defs.get(x, ())} - seen)
    for n in f.nodes:  # flags that decide whether the statement is there at all
        if isinstance(n, ast.If) and n.lineno <= line <= (n.end_lineno or 0):
            out += [x for x in sorted(names_in(n.test)) if x in f.params and x not in out]
    return out
