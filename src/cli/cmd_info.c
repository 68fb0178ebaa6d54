// ditron info: what this installation has and sees.
#include "cli/cli.h"

#include <stdio.h>

static const struct {
  const char *env, *text;
} knobs[] = {
#define KNOB(name, env, type, def, text) {env, text},
#include "base/knobs.def"
#undef KNOB
};

int cmd_info(int argc, char **argv) {
  CliList rest = {0};
  int over = cli_parse("info", NULL, 0, argc, argv, &rest);
  if (over) return over - 1;
  dt_context *c = cli_start(0, NULL);
  if (!c) return 1;
  printf("ditron %s\n", dt_version());
  printf("compiler  %s\n", *dt_compiler_info(c) ? dt_compiler_info(c) : "none in this process");
  dt_device d;
  for (size_t i = 0; dt_device_info(c, i, &d); i++)
    printf("device    %s: %s%s\n", d.name, d.usable ? "" : "none; ", d.text);
  printf("kernels   %s\n", *dt_kernels_dir(c) ? dt_kernels_dir(c) : "not found; set DITRON_KERNELS");
  printf("cache     %s\n", *dt_cache_dir(c) ? dt_cache_dir(c) : "off");
  int rank, world;
  const char *launcher;
  if (dt_job(c, &rank, &world, &launcher) == DT_OK)
    printf("job       rank %d of %d (launcher: %s)\n", rank, world, launcher);
  else
    printf("job       %s\n", dt_error(c));
  printf("operators\n");
  for (size_t i = 0; dt_operator_name(i); i++)
    printf("  %-15s %-30s %s\n", dt_operator_name(i), dt_operator_tensors(i), dt_operator_text(i));
  printf("environment\n");
  for (size_t i = 0; i < sizeof knobs / sizeof knobs[0]; i++)
    printf("  %-19s %s\n", knobs[i].env, knobs[i].text);
  dt_context_destroy(c);
  return 0;
}
