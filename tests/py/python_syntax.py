"""What is Python and what is not, statement by statement, in code that no kernel reaches: the parser agrees with Python's own.

Mistakes in host code around kernels must not wait until somebody runs it; and no program that Python takes may be refused.
"""
import warnings

from _ditron import case, ditron, finish

PYTHON = [
    'x = *a, b', '*a, b = c', '[*a, b]', 'f(*a == b)', 'f(*a or b)', 'f(*a if b else c)', 'return *a, b',
    'return (*a,)', 'for i in *a, b: pass', 'for *i, j in a: pass', 'print(a)', 'print(a), b', 'print (a) % b',
    'exec(a)', 'print >>f, a', 'del a', '{*a}', '{**a}', 'f(**a)', 'f(*a, k=1, *b)', 'f(*a + b)', 'lambda *a: a',
    'lambda **a: a', 'with a as b: pass', 'with a as (b, *c): pass', 'x: a = *b, c', '(x): int = 1', 'x += *a, b',
    '(x, y) = 1', '(x := 1)', 'f(x := 1)', 'a.b = c', 'a[b] = c', 'for x.y in z: pass', 'import a.b.c',
    'from . import x', 'from .a import (x, y)', 'f(x for x in y)', 'def g(*, a): pass', 'def g(a, /, b): pass',
    'def g(a, *b, c=1, d): pass', 'class A(*a): pass', 'class A(**a): pass', '@a\n    def g(): pass', 'x = yield',
    'async def g(): pass', 'global a', '1 .a', "a = b'x' b'y'", "a = f'{*x,}'", "a = u'x'", 'a != b', 'a is not b',
    'a not in b', 'if a: pass\n    elif b: pass', 'while a: pass\n    else: pass', 'try: pass\n    except: pass',
    'try: pass\n    finally: pass', 'x = (yield)', 'a; b', 'a;', 'x = lambda: (yield)', 'x[:]', 'x[:, None]', 'f(a,)',
    '(a,)', '()', '[]', '{}', '{a}', 'raise', 'raise a from b', 'del (a, b)', 'from a import (b as c)',
    'a = b = *c, d', '*a,', 'class A: pass', 'with a, b: pass', 'with (a, b): pass', 'with (a as b, c as d): pass',
    'with (a as b): pass', 'def g() -> a: pass', 'def g(*a: b): pass', 'a@b', 'a @= b', 'a //= b', 'a =+ b', '~a',
    '++a', '--a', 'a+++b', 'f(x := 1, y := 2)', '[x := 1, 2]', 'x[y := 1]', 'if x := 1: pass', 'while x := 1: pass',
    '(a, x := 1)', '[y := x for x in z]', 'f(a)(b)(*c)', 'f(*a.b, *c[d], *e())', 'x = [*a, *b]', 'x, *y = z',
    'for x, *y in z: pass', '(a, *b), c = d', 'del a, b', 'del (a), [b]', 'del a.b, c[d]', '00', '0_0', '0', '1_000',
    '0b1_0', '0x_f', "a = rb'x'", "a = Rb'x' b'y'", "a = f'x' 'y'", "a = f'{x!r}'", "a = f'{x = !s}'",
    'def g(a, /, *, b): pass', 'def g(*a: int, **k: str): pass', 'lambda *, a: a', 'lambda a, /: a', 'raise (a, b)',
    'except_ = 1', 'f(a, b=1, *c, **d)', 'f(**a, b=1)', 'f(**a, **b)', 'f(a for a in b)', 'f((a for a in b), c)',
    'class A(B, metaclass=C): pass', 'print', 'print.x', 'print = 1', 'print(a, file=b)', 'print(*a)', 'print((a))',
    'exec', 'exec(a, b)', 'x: int', 'x.y: int = 1', 'x[0]: int = 1',
]
NOT_PYTHON = [
    'if *a == x:\n        pass', 'return **k', 'x.lambda:0(y)', 'x.lambda(y)', 'f((*a))', 'x = *a', '*a = b',
    '[*a == b]', '[*a or b]', '[*a if b else c]', 'f(k=*a)', 'x[*a:b]', 'return *a', 'return (*a)',
    'for i in *a: pass', 'for *i in a: pass', 'print a', 'exec a', "exec 'a'", 'assert *a', 'assert a, *b',
    'raise *a', 'del *a', '{*a: b}', '{a: *b}', 'f(**a, b)', 'f(k=1, b)', 'f(**a, *b)', 'a if *b else c', 'not *a',
    '-*a', 'a + *b', '*a + b', 'lambda: *a', 'lambda a=*b: a', 'with *a: pass', 'with a as *b: pass', 'x: *a = 1',
    'x: a = *b', '*x: a = 1', 'x, y: a = 1', 'x += *a', 'x, y += 1', '[x] += 1', 'f(x) = 1', 'f(x) += 1', '1 = x',
    'x = 1 = y', 'x + y = 1', 'x if y else z = 1', '-x = 1', 'x() : int = 1', 'None = 1', 'True = 1', '... = 1',
    "'a' = 1", 'x := 1', 'f(k=x := 1)', '(x.y := 1)', 'a < b = c', 'for f(x) in y: pass', 'for 1 in y: pass',
    'with a as f(x): pass', '[x for *x in y]', '[*x for x in y]', '(x for x in *y)', 'import *', 'from a import',
    'f(x for x in y, z)', 'f(a=1, a=2)', 'f(a.b=1)', 'f((a)=1)', 'f(1=2)', 'f(True=1)', 'def g(a, a): pass',
    'def g(None): pass', 'def g(*): pass', 'def g(a: **b.c): pass', 'def g(a, *): pass', 'def g(*, **k): pass', 'def g(**k, a): pass',
    'def g(*a, *b): pass', 'def g(/, b): pass', 'def g(a=1, b): pass', '@a b\n    def g(): pass', 'global a.b',
    'a.b.c.if', 'a..b', 'a.1', '1.a', 'a = 0777', 'a = 0o8', 'a = 1__0', 'a = 1_', 'a = 0x', 'a = 1e', "a = 'x' b'y'",
    "a = f'{x!z}'", "a = f'{}'", "a = f'{x'", "a = f'{*x}'", "a = ur'x'", 'a <> b', 'not a = b', 'a and b = c',
    'a ! b', 'a ? b', '$a', 'if a: pass\n    else b: pass', 'try: pass', 'try: pass\n    except a, b: pass',
    'return yield', 'a;; b', '; a', 'pass pass', 'x = [i for i in range(3) if i else 2]', '[i for i in a, b]',
    'x[a:b:c:d]', 'x[a=1]', 'x[]', 'x[,]', 'f(,)', 'f(a,,b)', '(,)', '[,]', '{a: b, c}', '{a, b: c}', '{**a, b}',
    '{*a, b: c}', 'return return', 'if if: pass', 'a = if', 'in a', 'is a', 'a b', 'a 1', '1 a', "'a' a", "a 'b'",
    'a = b c', 'assert', 'raise a, b', 'del', 'del f(x)', 'del a + b', 'import a as b.c', 'import a as 1',
    'from a import b as c.d', 'from a import ()', 'global', '@a', 'else: pass', 'elif a: pass', 'except: pass',
    'case a: pass', 'a = *b = c', '*a', '**a', 'f(* *a)', '[* *a]', 'f(***a)', 'a ** *b', 'x = a if b',
    'x = a else b', 'x = if a else b', 'for a: pass', 'for a in: pass', 'for in a: pass', 'while: pass', 'if: pass',
    'def g: pass', 'def (a): pass', 'class: pass', 'class A(: pass', 'with: pass', 'lambda', 'lambda:', 'lambda a',
    'lambda (a): a', 'lambda a, (b): a', 'def g((a, b)): pass', 'a->b', 'def g() -> *a: pass', 'def g(a: *b): pass',
    'a =! b', 'a ~ b', 'a~', 'a++', 'a--', 'a = x.lambda:0(y)', 'f(x.lambda:0(y))', 'x.lambda:0(y) + 1',
    'a[x.lambda:0(y)]', 'if x.lambda:0(y)', 'x.lambda :0(y)', 'x.if:0(y)', 'x.None = 1', 'a = x.None',
    'return x := 1', 'a = x := 1', 'lambda: x := 1', 'a if x := 1 else 2', 'a, x := 1', 'assert x := 1',
    '[y for x in z if y := x]', 'def g(a=x := 1): pass', '*x, *y = z', 'a = 0_7', "a = fb'x'", 'def g(*, a, /): pass',
    'def g(a, /, b, /): pass', 'lambda *: a', 'raise a(b), c', 'f(b=1, *c, d)', 'f(c, a for a in b)',
    'class A(metaclass=C, B): pass', '(x, y): int', 'x = y: int', 'x: int = y = 1',
    'global x', 'if x: global x', 'import None', 'import a.None', 'import a as None', 'from a import None', 'from a.if import b',
    'from a import b as None', '(None := 1)', 'class None: pass', 'def g(*None): pass', 'def g(a, None=1): pass', 'def g(None: int): pass',
    'f(and=True)', 'def g(a: tl.lambda:0): pass', 'def g(a: b: c): pass',
]


def is_python(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "k.py", "exec")
        except SyntaxError:
            return False
        return True


def program(statements):
    return "".join(f"def k{i}(x):\n    return\n    {s}\n" for i, s in enumerate(statements))


def parses(text):
    with open("k.py", "w") as f:
        f.write(text)
    return ditron("compile", "k.py", "--emit", "ast", ok=None)


def taken():
    p = parses(program(PYTHON))
    assert p.returncode == 0, p.stderr
    assert all(is_python(program([s])) for s in PYTHON)


def refused():
    for s in NOT_PYTHON:
        assert not is_python(program([s])), f"this is Python: {s}"
        p = parses(program([s]))
        assert p.returncode == 1 and "syntax error: " in p.stderr and p.stderr.startswith("k.py:"), (s, p.returncode, p.stderr)


case("what is Python", taken)
case("what is not", refused)
finish()
