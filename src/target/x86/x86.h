// x86: what the files of this folder share.
#ifndef DITRON_TARGET_X86_H
#define DITRON_TARGET_X86_H

#include "target/target_impl.h"

Status x86_facts(const TargetOptions *o, Arena *a, Diags *d, TargetFacts *out);
void x86_kernel(Lower *l, const IrFunc *f, ImageVariant *out);
void x86_dot_mem(Lower *l, const IrOp *op);

#endif
