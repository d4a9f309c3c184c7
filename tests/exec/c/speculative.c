/* Speculative decode: drafts run ahead, a side stream keeps a snapshot, the host compares and, on a mismatch, copies the
 * snapshot back and advances by what was accepted.  The contract knows nothing of any of it. */
#include "check.h"

enum { DRAFTS = 3 };

typedef struct {
    frt_ctx ctx;
    spyrec_program add;
    frt_buffer state, token, next;
    unsigned steps; /* of one replay: a part of the shape key */
    size_t size;
} model;

static void advance(void* user, void* stream)
{
    model* m = user;
    int s = frt_ctx_wrap_stream(m->ctx, stream);
    frt_buffer buffers[] = {m->state, m->token, m->next};
    for (unsigned i = 0; i < m->steps; i++) {
        CHECK(spyrec_program_launch(m->add, buffers, 3, s) == FRT_OK);
        CHECK(frt_buffer_copy(m->ctx, m->state, 0, m->next, 0, m->size, s) == FRT_OK);
    }
}

static frt_shape_key key_of(unsigned position, unsigned steps) { return ((frt_shape_key)position << 8) | steps; }

static int ensured(model* m, frt_graph graph, unsigned position, unsigned steps)
{
    m->steps = steps;
    if (frt_graph_has_variant(graph, key_of(position, steps))) return FRT_OK;
    return frt_graph_capture(graph, key_of(position, steps), advance, m);
}

int main(int argc, char** argv)
{
    CHECK(argc == 3);
    model m = {.ctx = frt_ctx_create()};
    CHECK(m.ctx != NULL);
    m.add = spyrec_program_load(m.ctx, argv[1]);
    CHECK(m.add != NULL);
    m.size = spyrec_program_argument_bytes(m.add, 0);
    m.state = frt_buffer_alloc(m.ctx, "state", m.size);
    m.token = frt_buffer_alloc(m.ctx, "token", m.size);
    m.next = frt_buffer_alloc(m.ctx, "next", m.size);
    frt_buffer snapshot = frt_buffer_alloc(m.ctx, "snapshot", m.size);
    frt_graph verify = frt_graph_create(m.ctx, "verify", 256);
    int stream = frt_ctx_stream(m.ctx, 0), side = frt_ctx_stream(m.ctx, 0);
    frt_event before = frt_ctx_event(m.ctx), taken = frt_ctx_event(m.ctx);
    CHECK(before != NULL && taken != NULL);
    CHECK(frt_stream_wait(m.ctx, side, before) == FRT_ERR_INVALID); /* never recorded: it would order nothing */

    unsigned position = 0;
    put(m.add, 0, m.state, 0, stream);
    put(m.add, 1, m.token, 1, stream);
    for (unsigned round = 0; round < 6; round++) {
        CHECK(frt_event_record(before, stream) == FRT_OK && frt_stream_wait(m.ctx, side, before) == FRT_OK);
        CHECK(frt_buffer_copy(m.ctx, snapshot, 0, m.state, 0, m.size, side) == FRT_OK);
        CHECK(frt_event_record(taken, side) == FRT_OK && frt_stream_wait(m.ctx, stream, taken) == FRT_OK);
        CHECK(ensured(&m, verify, position, DRAFTS) == FRT_OK);
        CHECK(frt_graph_replay(verify, key_of(position, DRAFTS), stream) == FRT_OK);
        CHECK(holds(m.add, 0, m.state, position + DRAFTS, stream));
        unsigned accepted = round % (DRAFTS + 1);
        if (accepted < DRAFTS) { /* roll back, and advance by what was accepted */
            CHECK(frt_buffer_copy(m.ctx, m.state, 0, snapshot, 0, m.size, stream) == FRT_OK);
            CHECK(holds(m.add, 0, m.state, position, stream));
            CHECK(ensured(&m, verify, position, accepted + 1) == FRT_OK);
            CHECK(frt_graph_replay(verify, key_of(position, accepted + 1), stream) == FRT_OK);
            accepted++;
        }
        position += accepted;
        CHECK(holds(m.add, 0, m.state, position, stream));
    }
    frt_event_destroy(before);
    frt_event_destroy(taken);
    spyrec_program_destroy(m.add);
    frt_ctx_destroy(m.ctx);
    CHECK(spyrec_live_handles() == 0);
    puts("speculative: ok");
    return 0;
}
