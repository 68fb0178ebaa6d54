// ditron pack: the kernels that operators need, compiled ahead of time into one file; or a list of such a file.
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Packing {
  dt_context *context;
  const char *target;
  dt_pack_writer *writer;
  int kernels;
} Packing;

static dt_status add(void *user, const char *file, const char *kernel, const dt_named *args, size_t nargs,
                     const char *key) {
  Packing *p = user;
  if (dt_pack_writer_has(p->writer, key)) return DT_OK;
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", dt_kernels_dir(p->context), file);
  dt_compile_options o = {.size = sizeof o, .target = p->target, .no_specialise = true};
  dt_image *image;
  dt_status st = dt_compile_file(p->context, path, kernel, args, nargs, &o, &image);
  if (st != DT_OK) return st;
  st = dt_pack_writer_add(p->writer, key, image);
  dt_image_destroy(image);
  if (st == DT_OK) p->kernels++;
  return st;
}

static int list_pack(dt_context *c, const char *path) {
  dt_pack *p;
  dt_status st = dt_pack_open(c, path, &p);
  if (st != DT_OK) return cli_failed(c, path, st);
  const char *key;
  for (size_t i = 0; (key = dt_pack_key(p, i)); i++) puts(key);
  dt_pack_destroy(p);
  return 0;
}

static int dtype_of(const char *name) {
  for (int d = 0; d < DT_NDTYPES; d++)
    if (strcmp(dt_dtype_name((dt_dtype)d), name) == 0) return d;
  return -1;
}

int cmd_pack(int argc, char **argv) {
  const char *out = NULL, *target = "x86-64", *listed = NULL;
  int64_t world = 2, m = 1024, n = 1024, k = 1024;
  CliList rest = {0}, ops = {0}, dtypes = {0}, variants = {0};
  const CliOption options[] = {
      {"-o", "FILE", CLI_TEXT, &out, 0, 0, "the pack to write"},
      {"--list", "FILE", CLI_TEXT, &listed, 0, 0, "list a pack's kernels instead"},
      {"--op", "NAME", CLI_LIST, &ops, 0, 0, "an operator (again for more; default: all)"},
      {"--variant", "NAME", CLI_LIST, &variants, 0, 0,
       "a variant of the operators (again for more; default: each one's own choice)"},
      {"--dtype", "D", CLI_LIST, &dtypes, 0, 0, "an element type (again for more; default: f32)"},
      {"--target", "T", CLI_TEXT, &target, 0, 0, "x86-64 (default), x86-64-v4 or host"},
      {"--ranks", "N", CLI_INT, &world, 1, 256, "ranks that the plans will have (2)"},
      {"--m", "M", CLI_INT, &m, 1, INT64_MAX, "sizes, as for bench: they choose the blocks (1024)"},
      {"--n", "N", CLI_INT, &n, 1, INT64_MAX, ""},
      {"--k", "K", CLI_INT, &k, 1, INT64_MAX, ""},
  };
  int over = cli_parse("pack", options, sizeof options / sizeof options[0], argc, argv, &rest);
  if (over) return over - 1;
  if (rest.n || (!out && !listed))
    return cli_usage("pack", "-o FILE says where to write, --list FILE what to show");
  dt_context *c;
  dt_status st = dt_context_create(NULL, &c);
  if (st != DT_OK) return cli_failed(NULL, "start", st);
  int code = listed ? list_pack(c, listed) : 0;
  Packing p = {.context = c, .target = target};
  if (!listed) st = dt_pack_writer_create(c, &p.writer);
  const char *all_ops[64] = {0}, *f32 = "f32", *own = NULL;
  int nops = 0;
  for (; !ops.n && nops < 64 && dt_operator_name((size_t)nops); nops++)
    all_ops[nops] = dt_operator_name((size_t)nops);
  CliList o = ops.n ? ops : (CliList){all_ops, nops}, d = dtypes.n ? dtypes : (CliList){&f32, 1},
          v = variants.n ? variants : (CliList){&own, 1};
  CliProgress bar = {.what = "packing"};
  int total = o.n * d.n * v.n, done = 0;
  for (int i = 0; i < o.n && !listed && st == DT_OK && code == 0; i++)
    for (int j = 0; j < d.n && st == DT_OK && code == 0; j++)
      for (int w = 0; w < v.n && st == DT_OK; w++) {
        int dtype = dtype_of(d.v[j]);
        if (dtype < 0) {
          code = cli_usage("pack", "no dtype '%s'", d.v[j]);
          break;
        }
        dt_plan_options po = {.size = sizeof po,
                              .op = o.v[i],
                              .variant = v.v[w],
                              .dtype = (dt_dtype)dtype,
                              .m = m,
                              .n = n,
                              .k = k};
        st = dt_plan_requests(c, &po, (int)world, add, &p);
        cli_progress(&bar, (double)++done / total);
      }
  cli_progress_end(&bar);
  if (!listed && st == DT_OK && code == 0) st = dt_pack_writer_save(p.writer, out);
  if (!listed && st == DT_OK && code == 0) printf("%d kernels -> %s\n", p.kernels, out);
  if (st != DT_OK) code = cli_failed(c, out ? out : listed, st);
  dt_pack_writer_destroy(p.writer);
  cli_remarks(c);
  dt_context_destroy(c);
  return code;
}
