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

typedef struct Wanted { // every operator with every dtype and variant
  CliList ops, dtypes, variants;
  const char *target;
  int64_t world, m, n, k;
} Wanted;

static dt_status pack_one(Packing *p, const Wanted *w, const char *op, const char *variant,
                          const char *dtype) {
  dt_plan_options o = {.size = sizeof o,
                       .op = op,
                       .variant = variant,
                       .dtype = (dt_dtype)cli_dtype(dtype, strlen(dtype)),
                       .m = w->m,
                       .n = w->n,
                       .k = w->k};
  return dt_plan_requests(p->context, &o, (int)w->world, add, p);
}

static int make_pack(dt_context *c, const Wanted *w, const char *out) {
  Packing p = {.context = c, .target = w->target};
  const char *every[64] = {0}, *f32 = "f32", *own = NULL;
  int n = 0, done = 0;
  while (n < 64 && dt_operator_name((size_t)n)) every[n] = dt_operator_name((size_t)n), n++;
  const CliList o = w->ops.n ? w->ops : (CliList){every, n}, d = w->dtypes.n ? w->dtypes : (CliList){&f32, 1},
                v = w->variants.n ? w->variants : (CliList){&own, 1};
  for (int j = 0; j < d.n; j++)
    if (cli_dtype(d.v[j], strlen(d.v[j])) < 0) return cli_usage("pack", "no dtype '%s'", d.v[j]);
  if (!*dt_kernels_dir(c))
    return cli_fail("the kernel sources are not found; DITRON_KERNELS can name their folder");
  CliProgress bar = {.what = "packing"};
  dt_status st = dt_pack_writer_create(c, &p.writer);
  for (int i = 0; i < o.n * d.n * v.n && st == DT_OK; i++) {
    st = pack_one(&p, w, o.v[i / (d.n * v.n)], v.v[i % v.n], d.v[i / v.n % d.n]);
    cli_progress(&bar, (double)++done / (o.n * d.n * v.n));
  }
  cli_progress_end(&bar);
  if (st == DT_OK) st = dt_pack_writer_save(p.writer, out);
  int code = st == DT_OK ? 0 : cli_failed(c, out, st);
  if (code == 0) printf("%d kernel%s -> %s\n", p.kernels, p.kernels == 1 ? "" : "s", out);
  dt_pack_writer_destroy(p.writer);
  return code;
}

int cmd_pack(int argc, char **argv) {
  const char *out = NULL, *listed = NULL;
  Wanted wanted = {.target = "x86-64", .world = 2, .m = 1024, .n = 1024, .k = 1024};
  CliList rest = {0};
  const CliOption options[] = {
      {"-o", "FILE", CLI_TEXT, &out, 0, 0, "the pack to write"},
      {"--list", "FILE", CLI_TEXT, &listed, 0, 0, "list a pack's kernels instead"},
      {"--op", "NAME", CLI_LIST, &wanted.ops, 0, 0, "an operator (again for more; default: all)"},
      {"--variant", "NAME", CLI_LIST, &wanted.variants, 0, 0,
       "a variant of the operators (again for more; default: each one's own choice)"},
      {"--dtype", "D", CLI_LIST, &wanted.dtypes, 0, 0, "an element type (again for more; default: f32)"},
      {"--target", "T", CLI_TEXT, &wanted.target, 0, 0, "x86-64 (default), x86-64-v4 or host"},
      {"--ranks", "N", CLI_INT, &wanted.world, 1, 256, "ranks that the plans will have (2)"},
      {"--m", "M", CLI_INT, &wanted.m, 1, INT64_MAX >> 20,
       "sizes, as for bench: they choose the blocks (1024)"},
      {"--n", "N", CLI_INT, &wanted.n, 1, INT64_MAX >> 20, "the same (1024)"},
      {"--k", "K", CLI_INT, &wanted.k, 1, INT64_MAX >> 20, "the same (1024)"},
  };
  int over = cli_parse("pack", options, sizeof options / sizeof options[0], argc, argv, &rest);
  if (over) return over - 1;
  if (rest.n || (!out && !listed))
    return cli_usage("pack", "-o FILE says where to write, --list FILE what to show");
  dt_context *c = cli_start(0, NULL);
  if (!c) return 1;
  int code = listed ? list_pack(c, listed) : make_pack(c, &wanted, out);
  cli_remarks(c);
  dt_context_destroy(c);
  free(wanted.ops.v);
  free(wanted.dtypes.v);
  free(wanted.variants.v);
  free(rest.v);
  return code;
}
