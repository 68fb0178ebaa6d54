// ditron compile: ahead of time into an image, or a stage of the compile as text.
#include "cli/sig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int show(dt_context *c, const char *file, const char *kernel, const CliSig *sig,
                const dt_compile_options *o, const char *stage, const char *out) {
  const char *text;
  dt_status st = dt_emit_file(c, file, kernel, sig->args, (size_t)sig->n, o, stage, &text);
  return st == DT_OK ? cli_write_text(c, out, text) : cli_failed(c, file, st);
}

static int make_image(dt_context *c, const char *file, const char *kernel, const CliSig *sig,
                      const dt_compile_options *o, const char *out) {
  dt_image *image;
  uint64_t start = cli_now_ns();
  dt_status st = dt_compile_file(c, file, kernel, sig->args, (size_t)sig->n, o, &image);
  if (st != DT_OK) return cli_failed(c, file, st);
  double ms = (double)(cli_now_ns() - start) / 1e6;
  if (out && (st = dt_image_save(image, out)) != DT_OK) {
    dt_image_destroy(image);
    return cli_failed(c, out, st);
  }
  printf("%s: compiled in %.1f ms%s%s\n", dt_image_kernel_name(image, 0), ms, out ? " -> " : "",
         out ? out : "");
  dt_image_destroy(image);
  return 0;
}

int cmd_compile(int argc, char **argv) {
  const char *target = NULL, *sig_text = "", *out = NULL, *emit = NULL, *dump = NULL;
  int64_t warps = 0, stages = 0, registers = 0;
  bool explain = false, list = false;
  CliList rest = {0}, search = {0};
  const CliOption options[] = {
      {"--target", "T", CLI_TEXT, &target, 0, 0,
       "host (default), x86-64 (AVX2, FMA), x86-64-v4 (AVX-512), sm_80, sm_89 or sm_90a"},
      {"--sig", "SIGNATURE", CLI_TEXT, &sig_text, 0, 0,
       "types of the arguments and values of the constexprs"},
      {"--warps", "W", CLI_INT, &warps, 1, 32, "warps of an instance (4)"},
      {"--stages", "S", CLI_INT, &stages, 1, 16, "pipeline stages of loops (2)"},
      {"--maxnreg", "R", CLI_INT, &registers, 24, 255, "registers of a thread of a GPU at most"},
      {"-o", "IMAGE", CLI_TEXT, &out, 0, 0, "write the image (or the text) here"},
      {"--emit", "STAGE", CLI_TEXT, &emit, 0, 0,
       "print ast, tile, placed (CPU) or lowered (GPU), llvm or asm"},
      {"--dump", "PASS|all", CLI_TEXT, &dump, 0, 0, "print the IR after a pass, or after each"},
      {"--path", "FOLDER", CLI_LIST, &search, 0, 0, "where imported kernel modules are looked for"},
      {"--list", NULL, CLI_FLAG, &list, 0, 0, "list the file's kernels with their parameters"},
      {"--explain", NULL, CLI_FLAG, &explain, 0, 0, "say what each pass did, and why not more"},
  };
  int over = cli_parse("compile", options, sizeof options / sizeof options[0], argc, argv, &rest);
  if (over) return over - 1;
  if (rest.n != 1) return cli_usage("compile", rest.n ? "one file at a time" : "which file?");
  if (emit && dump) return cli_usage("compile", "--emit and --dump print one thing each: give one of them");
  const char *stage = emit ? emit : dump, *kernel;
  char *file;
  cli_split_kernel(rest.v[0], &file, &kernel);
  CliSig *sig = malloc(sizeof *sig);
  const char **path = calloc((size_t)search.n + 1, sizeof *path);
  if (!sig || !path) abort();
  for (int i = 0; i < search.n; i++) path[i] = search.v[i];
  dt_context *c = cli_start(0, NULL);
  if (!c) return 1;
  dt_compile_options o = {.size = sizeof o,
                          .target = target,
                          .num_warps = (int)warps,
                          .num_stages = (int)stages,
                          .max_registers = (int)registers,
                          .explain = explain,
                          .search_path = path};
  CliProgress bar = {0};
  int code;
  dt_status st = cli_sig(c, sig_text, sig);
  if (st != DT_OK) {
    cli_failed(c, NULL, st);
    code = st == DT_INVALID ? 2 : 1;
  } else if (list) {
    static char text[1 << 16];
    st = dt_list_kernels(c, file, text, sizeof text);
    code = st == DT_OK ? cli_write_text(c, out, text) : cli_failed(c, file, st);
  } else {
    cli_working(&bar, "compiling");
    code = stage ? show(c, file, kernel, sig, &o, stage, out) : make_image(c, file, kernel, sig, &o, out);
  }
  cli_progress_end(&bar);
  cli_remarks(c);
  dt_context_destroy(c);
  cli_sig_free(sig);
  free(sig);
  free(path);
  free(search.v);
  free(rest.v);
  free(file);
  return code;
}
