"""Mathematical functions of a device, as in CUDA's libdevice. Written by scripts/gen-docs from builtins.def."""
from ._base import outside


def abs(x):
    """absolute value"""
    outside("abs")


def acos(x):
    outside("acos")


def acosh(x):
    outside("acosh")


def add_rd(x, y):
    """refused: rounds in a direction"""
    outside("add_rd")


def add_rn(x, y):
    outside("add_rn")


def add_ru(x, y):
    """refused: rounds in a direction"""
    outside("add_ru")


def add_rz(x, y):
    """refused: rounds in a direction"""
    outside("add_rz")


def asin(x):
    outside("asin")


def asinh(x):
    outside("asinh")


def atan(x):
    outside("atan")


def atan2(x, y):
    outside("atan2")


def atanh(x):
    outside("atanh")


def brev(x):
    outside("brev")


def byte_perm(x, y, z):
    outside("byte_perm")


def cbrt(x):
    outside("cbrt")


def ceil(x):
    """on fp32 and fp64"""
    outside("ceil")


def clz(x):
    outside("clz")


def copysign(x, y):
    outside("copysign")


def cos(x):
    """on fp32 and fp64"""
    outside("cos")


def cosh(x):
    outside("cosh")


def cospi(x):
    outside("cospi")


def cyl_bessel_i0(x):
    """refused: no form here"""
    outside("cyl_bessel_i0")


def cyl_bessel_i1(x):
    """refused: no form here"""
    outside("cyl_bessel_i1")


def div_rd(x, y):
    """refused: rounds in a direction"""
    outside("div_rd")


def div_rn(x, y):
    """float division, correctly rounded"""
    outside("div_rn")


def div_ru(x, y):
    """refused: rounds in a direction"""
    outside("div_ru")


def div_rz(x, y):
    """refused: rounds in a direction"""
    outside("div_rz")


def double2float_rd(x):
    outside("double2float_rd")


def double2float_rn(x):
    outside("double2float_rn")


def double2float_ru(x):
    outside("double2float_ru")


def double2float_rz(x):
    outside("double2float_rz")


def double2hiint(x):
    outside("double2hiint")


def double2int_rd(x):
    outside("double2int_rd")


def double2int_rn(x):
    outside("double2int_rn")


def double2int_ru(x):
    outside("double2int_ru")


def double2int_rz(x):
    outside("double2int_rz")


def double2ll_rd(x):
    outside("double2ll_rd")


def double2ll_rn(x):
    outside("double2ll_rn")


def double2ll_ru(x):
    outside("double2ll_ru")


def double2ll_rz(x):
    outside("double2ll_rz")


def double2loint(x):
    outside("double2loint")


def double2uint_rd(x):
    outside("double2uint_rd")


def double2uint_rn(x):
    outside("double2uint_rn")


def double2uint_ru(x):
    outside("double2uint_ru")


def double2uint_rz(x):
    outside("double2uint_rz")


def double2ull_rd(x):
    outside("double2ull_rd")


def double2ull_rn(x):
    outside("double2ull_rn")


def double2ull_ru(x):
    outside("double2ull_ru")


def double2ull_rz(x):
    outside("double2ull_rz")


def double_as_longlong(x):
    outside("double_as_longlong")


def erf(x):
    """on fp32 and fp64"""
    outside("erf")


def erfc(x):
    outside("erfc")


def erfcinv(x):
    outside("erfcinv")


def erfcx(x):
    outside("erfcx")


def erfinv(x):
    outside("erfinv")


def exp(x):
    """on fp32 and fp64"""
    outside("exp")


def exp10(x):
    outside("exp10")


def exp2(x):
    """on fp32 and fp64"""
    outside("exp2")


def expm1(x):
    outside("expm1")


def fabs(x):
    """absolute value"""
    outside("fabs")


def fast_cosf(x):
    """on fp32 and fp64"""
    outside("fast_cosf")


def fast_dividef(x, y):
    """float division"""
    outside("fast_dividef")


def fast_exp10f(x):
    outside("fast_exp10f")


def fast_expf(x):
    """on fp32 and fp64"""
    outside("fast_expf")


def fast_log10f(x):
    outside("fast_log10f")


def fast_log2f(x):
    """on fp32 and fp64"""
    outside("fast_log2f")


def fast_logf(x):
    """on fp32 and fp64"""
    outside("fast_logf")


def fast_powf(x, y):
    outside("fast_powf")


def fast_sinf(x):
    """on fp32 and fp64"""
    outside("fast_sinf")


def fast_tanf(x):
    outside("fast_tanf")


def fast_tanhf(x):
    """on fp32 and fp64"""
    outside("fast_tanhf")


def fdim(x, y):
    outside("fdim")


def ffs(x):
    outside("ffs")


def finitef(x):
    outside("finitef")


def float2int_rd(x):
    outside("float2int_rd")


def float2int_rn(x):
    outside("float2int_rn")


def float2int_ru(x):
    outside("float2int_ru")


def float2int_rz(x):
    outside("float2int_rz")


def float2ll_rd(x):
    outside("float2ll_rd")


def float2ll_rn(x):
    outside("float2ll_rn")


def float2ll_ru(x):
    outside("float2ll_ru")


def float2ll_rz(x):
    outside("float2ll_rz")


def float2uint_rd(x):
    outside("float2uint_rd")


def float2uint_rn(x):
    outside("float2uint_rn")


def float2uint_ru(x):
    outside("float2uint_ru")


def float2uint_rz(x):
    outside("float2uint_rz")


def float2ull_rd(x):
    outside("float2ull_rd")


def float2ull_rn(x):
    outside("float2ull_rn")


def float2ull_ru(x):
    outside("float2ull_ru")


def float2ull_rz(x):
    outside("float2ull_rz")


def float_as_int(x):
    outside("float_as_int")


def float_as_uint(x):
    outside("float_as_uint")


def floor(x):
    """on fp32 and fp64"""
    outside("floor")


def fma(x, y, z):
    """x * y + z, rounded once"""
    outside("fma")


def fma_rd(x, y, z):
    """refused: rounds in a direction"""
    outside("fma_rd")


def fma_rn(x, y, z):
    outside("fma_rn")


def fma_ru(x, y, z):
    """refused: rounds in a direction"""
    outside("fma_ru")


def fma_rz(x, y, z):
    """refused: rounds in a direction"""
    outside("fma_rz")


def fmod(x, y):
    outside("fmod")


def hadd(x, y):
    outside("hadd")


def hiloint2double(x, y):
    outside("hiloint2double")


def hypot(x, y):
    outside("hypot")


def ilogb(x):
    outside("ilogb")


def int2double_rn(x):
    outside("int2double_rn")


def int2float_rd(x):
    outside("int2float_rd")


def int2float_rn(x):
    outside("int2float_rn")


def int2float_ru(x):
    outside("int2float_ru")


def int2float_rz(x):
    outside("int2float_rz")


def int_as_float(x):
    outside("int_as_float")


def isfinited(x):
    outside("isfinited")


def isinf(x):
    outside("isinf")


def isnan(x):
    outside("isnan")


def j0(x):
    """refused: no form here"""
    outside("j0")


def j1(x):
    """refused: no form here"""
    outside("j1")


def jn(x, y):
    """refused: no form here"""
    outside("jn")


def ldexp(x, y):
    outside("ldexp")


def lgamma(x):
    outside("lgamma")


def ll2double_rd(x):
    outside("ll2double_rd")


def ll2double_rn(x):
    outside("ll2double_rn")


def ll2double_ru(x):
    outside("ll2double_ru")


def ll2double_rz(x):
    outside("ll2double_rz")


def ll2float_rd(x):
    outside("ll2float_rd")


def ll2float_rn(x):
    outside("ll2float_rn")


def ll2float_ru(x):
    outside("ll2float_ru")


def ll2float_rz(x):
    outside("ll2float_rz")


def llrint(x):
    outside("llrint")


def llround(x):
    outside("llround")


def log(x):
    """on fp32 and fp64"""
    outside("log")


def log10(x):
    outside("log10")


def log1p(x):
    outside("log1p")


def log2(x):
    """on fp32 and fp64"""
    outside("log2")


def logb(x):
    outside("logb")


def longlong_as_double(x):
    outside("longlong_as_double")


def mul24(x, y):
    outside("mul24")


def mul_rd(x, y):
    """refused: rounds in a direction"""
    outside("mul_rd")


def mul_rn(x, y):
    outside("mul_rn")


def mul_ru(x, y):
    """refused: rounds in a direction"""
    outside("mul_ru")


def mul_rz(x, y):
    """refused: rounds in a direction"""
    outside("mul_rz")


def mulhi(x, y):
    outside("mulhi")


def nearbyint(x):
    """on fp32 and fp64"""
    outside("nearbyint")


def nextafter(x, y):
    outside("nextafter")


def norm3d(x, y, z):
    outside("norm3d")


def norm4d(x, y, z, w):
    outside("norm4d")


def normcdf(x):
    outside("normcdf")


def normcdfinv(x):
    outside("normcdfinv")


def popc(x):
    outside("popc")


def pow(x, y):
    outside("pow")


def rcbrt(x):
    outside("rcbrt")


def rcp64h(x):
    """refused: no form here"""
    outside("rcp64h")


def rcp_rd(x):
    """refused: rounds in a direction"""
    outside("rcp_rd")


def rcp_rn(x):
    outside("rcp_rn")


def rcp_ru(x):
    """refused: rounds in a direction"""
    outside("rcp_ru")


def rcp_rz(x):
    """refused: rounds in a direction"""
    outside("rcp_rz")


def remainder(x, y):
    outside("remainder")


def rhadd(x, y):
    outside("rhadd")


def rhypot(x, y):
    outside("rhypot")


def rint(x):
    """on fp32 and fp64"""
    outside("rint")


def rnorm3d(x, y, z):
    outside("rnorm3d")


def rnorm4d(x, y, z, w):
    outside("rnorm4d")


def round(x):
    outside("round")


def rsqrt(x):
    """on fp32 and fp64"""
    outside("rsqrt")


def rsqrt_rn(x):
    outside("rsqrt_rn")


def sad(x, y, z):
    outside("sad")


def saturatef(x):
    outside("saturatef")


def scalbn(x, y):
    outside("scalbn")


def signbit(x):
    outside("signbit")


def sin(x):
    """on fp32 and fp64"""
    outside("sin")


def sinh(x):
    outside("sinh")


def sinpi(x):
    outside("sinpi")


def sqrt(x):
    """on fp32 and fp64"""
    outside("sqrt")


def sqrt_rd(x):
    """refused: rounds in a direction"""
    outside("sqrt_rd")


def sqrt_rn(x):
    """on fp32 and fp64"""
    outside("sqrt_rn")


def sqrt_ru(x):
    """refused: rounds in a direction"""
    outside("sqrt_ru")


def sqrt_rz(x):
    """refused: rounds in a direction"""
    outside("sqrt_rz")


def sub_rd(x, y):
    """refused: rounds in a direction"""
    outside("sub_rd")


def sub_rn(x, y):
    outside("sub_rn")


def sub_ru(x, y):
    """refused: rounds in a direction"""
    outside("sub_ru")


def sub_rz(x, y):
    """refused: rounds in a direction"""
    outside("sub_rz")


def tan(x):
    outside("tan")


def tanh(x):
    """on fp32 and fp64"""
    outside("tanh")


def tgamma(x):
    outside("tgamma")


def trunc(x):
    """on fp32 and fp64"""
    outside("trunc")


def uint2double_rn(x):
    outside("uint2double_rn")


def uint2float_rd(x):
    outside("uint2float_rd")


def uint2float_rn(x):
    outside("uint2float_rn")


def uint2float_ru(x):
    outside("uint2float_ru")


def uint2float_rz(x):
    outside("uint2float_rz")


def uint_as_float(x):
    outside("uint_as_float")


def ull2double_rd(x):
    outside("ull2double_rd")


def ull2double_rn(x):
    outside("ull2double_rn")


def ull2double_ru(x):
    outside("ull2double_ru")


def ull2double_rz(x):
    outside("ull2double_rz")


def ull2float_rd(x):
    outside("ull2float_rd")


def ull2float_rn(x):
    outside("ull2float_rn")


def ull2float_ru(x):
    outside("ull2float_ru")


def ull2float_rz(x):
    outside("ull2float_rz")


def umulhi(x, y):
    """upper half of an unsigned product"""
    outside("umulhi")


def y0(x):
    """refused: no form here"""
    outside("y0")


def y1(x):
    """refused: no form here"""
    outside("y1")


def yn(x, y):
    """refused: no form here"""
    outside("yn")
