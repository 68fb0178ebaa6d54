"""What names of the language are to Python: element types and constants are values, everything else exists only in kernels."""


class dtype:
    """An element type."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"ditron.language.{self.name}"

    def __eq__(self, other):
        return isinstance(other, dtype) and other.name == self.name

    def __hash__(self):
        return hash(self.name)


class constexpr:
    """A compile-time value: as an annotation of a parameter, and around a global that kernels read."""

    def __init__(self, value):
        self.value = value.value if isinstance(value, constexpr) else value

    def __repr__(self):
        return f"constexpr[{self.value!r}]"

    def __eq__(self, other):
        return self.value == (other.value if isinstance(other, constexpr) else other)

    def __hash__(self):
        return hash(self.value)

    def __index__(self):
        return self.value.__index__()

    def __bool__(self):
        return bool(self.value)

    def __float__(self):
        return float(self.value)


class const:
    """As an annotation: a pointer that is only read."""


class tensor:
    """What values in kernels are."""


def outside(name):
    raise RuntimeError(f"{name} has a meaning only inside of a kernel, a function with @ditron.jit that is launched as kernel[grid](...)")
