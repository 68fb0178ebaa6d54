# A file inside an installed copy of the library imports its neighbours relatively: they mean the compiler's own functions.
mkdir -p triton/language triton/runtime
touch triton/__init__.py triton/language/__init__.py triton/runtime/__init__.py
echo 'raise RuntimeError' >triton/runtime/jit.py
cat >triton/language/part.py <<'EOF'
from ..runtime.jit import jit
from . import core
from . import math


@jit
def square(p):
    core.store(p, math.sqrt(core.load(p)) + core.program_id(0))
EOF
ditron compile triton/language/part.py:square --sig 'p=*f32' --emit tile >out
grep -q 'sqrt' out
grep -q 'program_id' out
