// channel: epochs and acks between the ranks of a team, over stream signals.
//
//   symmetric words, one cache line each:   [ epoch ][ flag of rank 0 ] ... [ ack of rank 0 ] ...
//
// flag[r] is raised by rank r when its data of an epoch has arrived here; ack[r] when rank r has read what this rank gave
// it. Publishing copies the epoch word, so the same commands may run again and again.
#include "rt/rt_impl.h"

#include <stdlib.h>

enum { LINE = 8 }; // words

struct RtChannel {
  RtRank *rank;
  uint64_t *words;
};

Status rt_channel_create(RtRank *r, const char *label, RtChannel **out, RtError *e) {
  RtChannel *c = calloc(1, sizeof *c);
  void *p = NULL;
  // also where memory has ended here: the others would wait
  const Status s =
      rt_symm_alloc(r, (1 + 2 * (uint64_t)r->team->world) * LINE * 8, label ? label : "channel", &p, e);
  if (s != ST_OK || !c) {
    free(c);
    return s != ST_OK ? s : rt_no_memory(e);
  }
  c->rank = r;
  c->words = p;
  *out = c;
  return ST_OK;
}

Status rt_channel_destroy(RtChannel *c, RtError *e) {
  if (!c) return ST_OK;
  const Status s = rt_symm_free(c->rank, c->words, e);
  free(c);
  return s;
}

uint64_t *rt_channel_epoch(RtChannel *c) { return c->words; }
uint64_t *rt_channel_flag(RtChannel *c, int from) { return c->words + (size_t)LINE * (size_t)(1 + from); }
uint64_t *rt_channel_ack_word(RtChannel *c, int from) {
  return rt_channel_flag(c, c->rank->team->world + from);
}

static Status check_peer(const RtChannel *c, int peer, RtError *e) {
  if (peer >= 0 && peer < c->rank->team->world) return ST_OK;
  return rt_fail(e, ST_INVALID, "rank %d does not exist; the team has ranks 0 to %d", peer,
                 c->rank->team->world - 1);
}

Status rt_channel_advance(RtChannel *c, RtStream *s, RtError *e) {
  return rt_signal_add(s, rt_channel_epoch(c), 1, c->rank->index, e);
}

Status rt_channel_publish(RtChannel *c, RtStream *s, int peer, RtError *e) {
  const Status st = check_peer(c, peer, e);
  return st != ST_OK ? st
                     : rt_signal_copy(s, rt_channel_flag(c, c->rank->index), rt_channel_epoch(c), peer, e);
}

Status rt_channel_wait(RtChannel *c, RtStream *s, int peer, RtError *e) {
  const Status st = check_peer(c, peer, e);
  return st != ST_OK ? st : rt_signal_wait_word(s, rt_channel_flag(c, peer), rt_channel_epoch(c), 0, e);
}

Status rt_channel_ack(RtChannel *c, RtStream *s, int peer, RtError *e) {
  const Status st = check_peer(c, peer, e);
  return st != ST_OK
             ? st
             : rt_signal_copy(s, rt_channel_ack_word(c, c->rank->index), rt_channel_epoch(c), peer, e);
}

Status rt_channel_wait_ack(RtChannel *c, RtStream *s, int peer, RtError *e) {
  const Status st = check_peer(c, peer, e);
  return st != ST_OK ? st : rt_signal_wait_word(s, rt_channel_ack_word(c, peer), rt_channel_epoch(c), -1, e);
}
