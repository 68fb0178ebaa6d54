// interp_check: what --check does at each event. So far nothing: interp_run refuses config.check.
#include "ir/interp_impl.h"

Clock *clock_keep(Clock *c) { return c; }
void clock_drop(World *w, Clock *c) { (void)w, (void)c; }
void clock_join(World *w, Clock **into, const Clock *c) { (void)w, (void)into, (void)c; }
void check_open(World *w) { (void)w; }
void check_range_open(World *w, Range *r) { (void)w, (void)r; }
bool check_access(World *w, Agent *a, const Access *x, Range *r) { (void)w, (void)a, (void)x, (void)r; return true; }
void check_block_memory(World *w, Agent *a, const Ins *i, const char *p, size_t bytes, unsigned kind, int warp, Actor *actor) { (void)w, (void)a, (void)i, (void)p, (void)bytes, (void)kind, (void)warp, (void)actor; }
void check_launch(World *w, Launch *l) { (void)w, (void)l; }
void check_launch_done(World *w, Launch *l) { (void)w, (void)l; }
void check_instance(World *w, Instance *in) { (void)w, (void)in; }
void check_instance_done(World *w, Instance *in) { (void)w, (void)in; }
void check_part_begin(World *w, Group *g) { (void)w, (void)g; }
void check_part_end(World *w, Group *g) { (void)w, (void)g; }
void check_barrier(World *w, Group *g) { (void)w, (void)g; }
void check_fence(World *w, Agent *a, const Ins *i, IrOrder o, IrScope s) { (void)w, (void)a, (void)i, (void)o, (void)s; }
void check_publish(World *w, Agent *a, int warp, Clock **into) { (void)w, (void)a, (void)warp, (void)into; }
void check_receive(World *w, Agent *a, int warp, const Clock *c) { (void)w, (void)a, (void)warp, (void)c; }
void check_job(World *w, Agent *a, Job *j) { (void)w, (void)a, (void)j; }
void check_job_complete(World *w, Agent *a, int warp, Job *j) { (void)w, (void)a, (void)warp, (void)j; }
void check_stream_wait(World *w, Stream *s, Stream *other) { (void)w, (void)s, (void)other; }
void check_stream_open(World *w, Stream *s) { (void)w, (void)s; }
