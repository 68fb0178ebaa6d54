// lower_math
#include "target/target_impl.h"
void lower_math(Lower *l, const IrOp *op) {
  const V x = lower_operand(l, op, 0);
  lower_result(l, op, lower_un(l, "llvm.sqrt", x));
}
