// Kernels for pass_place.c. Included there only.
static const Case cases[] = {
    {.name = "add",
     .grid = {3},
     .args = {2500},
     .text = "module stage=tile warps=4 stages=2 lanes=32\n"
             "kernel @add(%x: ptr<f32>, %y: ptr<f32>, %o: ptr<f32>, %n: i32) {\n"
             "  %pid = program_id {axis=0} : i32\n"
             "  %b = const {value=1024} : i32\n"
             "  %s = mul %pid, %b : i32\n"
             "  %r = arange {start=0, end=1024} : tile<1024xi32>\n"
             "  %ss = splat %s : tile<1024xi32>\n"
             "  %off = add %ss, %r : tile<1024xi32>\n"
             "  %ns = splat %n : tile<1024xi32>\n"
             "  %m = cmp %off, %ns {cmp=slt} : tile<1024xi1>\n"
             "  %xs = splat %x : tile<1024xptr<f32>>\n"
             "  %xp = ptr_add %xs, %off : tile<1024xptr<f32>>\n"
             "  %ys = splat %y : tile<1024xptr<f32>>\n"
             "  %yp = ptr_add %ys, %off : tile<1024xptr<f32>>\n"
             "  %a = load %xp, %m, _ : tile<1024xf32>\n"
             "  %c = load %yp, %m, _ : tile<1024xf32>\n"
             "  %v = fadd %a, %c : tile<1024xf32>\n"
             "  %os = splat %o : tile<1024xptr<f32>>\n"
             "  %op = ptr_add %os, %off : tile<1024xptr<f32>>\n"
             "  store %op, %v, %m\n"
             "  return\n"
             "}\n"},
    {.name = "softmax",
     .grid = {3},
     .args = {781, 800, 7, 781},
     .tolerance = 1e-6,
     .text = "module stage=tile warps=4 stages=2 lanes=32\n"
             "kernel @softmax(%x: ptr<f32>, %o: ptr<f32>, %xs: i32, %os: i32, %rows: i32, %n: i32) {\n"
             "  %pid = program_id {axis=0} : i32\n"
             "  %np = num_programs {axis=0} : i32\n"
             "  for %pid, %rows, %np { (%row: i32)\n"
             "    %r = arange {start=0, end=1024} : tile<1024xi32>\n"
             "    %ns = splat %n : tile<1024xi32>\n"
             "    %m = cmp %r, %ns {cmp=slt} : tile<1024xi1>\n"
             "    %ro = mul %row, %xs : i32\n"
             "    %xr = ptr_add %x, %ro : ptr<f32>\n"
             "    %xb = splat %xr : tile<1024xptr<f32>>\n"
             "    %xp = ptr_add %xb, %r : tile<1024xptr<f32>>\n"
             "    %minf = const {value=-inf} : tile<1024xf32>\n"
             "    %v = load %xp, %m, %minf : tile<1024xf32>\n"
             "    %mx = reduce %v {axis=0} : f32 { (%a: f32, %b: f32) %c = fmax %a, %b : f32 yield %c }\n"
             "    %mxs = splat %mx : tile<1024xf32>\n"
             "    %d = fsub %v, %mxs : tile<1024xf32>\n"
             "    %e = math %d, _ {fn=exp} : tile<1024xf32>\n"
             "    %sum = reduce %e {axis=0} : f32 { (%a: f32, %b: f32) %c = fadd %a, %b : f32 yield %c }\n"
             "    %sums = splat %sum : tile<1024xf32>\n"
             "    %q = fdiv %e, %sums : tile<1024xf32>\n"
             "    %oo = mul %row, %os : i32\n"
             "    %or = ptr_add %o, %oo : ptr<f32>\n"
             "    %ob = splat %or : tile<1024xptr<f32>>\n"
             "    %op = ptr_add %ob, %r : tile<1024xptr<f32>>\n"
             "    store %op, %q, %m\n"
             "    yield\n"
             "  }\n"
             "  return\n"
             "}\n"},
    {.name = "wide values at narrow indices",
     .grid = {1},
     .text = "module stage=tile warps=4 stages=2 lanes=32\n"
             "kernel @gathered(%x: ptr<i64>, %o: ptr<i64>) {\n"
             "  %r = arange {start=0, end=512} : tile<512xi32>\n"
             "  %last = const {value=511} : tile<512xi32>\n"
             "  %back = sub %last, %r : tile<512xi32>\n"
             "  %xs = splat %x : tile<512xptr<i64>>\n"
             "  %xa = ptr_add %xs, %r : tile<512xptr<i64>>\n"
             "  %v = load %xa, _, _ : tile<512xi64>\n"
             "  %g = gather %v, %back {axis=0} : tile<512xi64>\n"
             "  %os = splat %o : tile<512xptr<i64>>\n"
             "  %oa = ptr_add %os, %r : tile<512xptr<i64>>\n"
             "  store %oa, %g, _\n"
             "  return\n"
             "}\n"},
};
