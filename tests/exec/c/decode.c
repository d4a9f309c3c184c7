/* LLM decode: the cache is a buffer, a step's place in it is the shape key, appending is a copy to an offset. */
#include "check.h"

enum { STEPS = 12, VARIANTS = 8 };

typedef struct {
    frt_ctx ctx;
    spyrec_program add;
    frt_buffer token, sum, next, cache;
    size_t row;
    unsigned position;
} model;

/* One step: sum += token; cache[position] = sum. */
static void step(void* user, void* stream)
{
    model* m = user;
    int s = frt_ctx_wrap_stream(m->ctx, stream);
    frt_buffer buffers[] = {m->sum, m->token, m->next};
    CHECK(spyrec_program_launch(m->add, buffers, 3, s) == FRT_OK);
    CHECK(frt_buffer_copy(m->ctx, m->sum, 0, m->next, 0, m->row, s) == FRT_OK);
    CHECK(frt_buffer_copy(m->ctx, m->cache, m->position * m->row, m->next, 0, m->row, s) == FRT_OK);
}

static void decode(model* m, frt_graph graph, int stream, unsigned tokens)
{
    unsigned total = 0;
    put(m->add, 0, m->sum, 0, stream);
    for (m->position = 0; m->position < tokens; m->position++) {
        if (!frt_graph_has_variant(graph, m->position)) {
            CHECK(frt_graph_replay(graph, m->position, stream) == FRT_ERR_NO_VARIANT);
            CHECK(frt_graph_capture(graph, m->position, step, m) == FRT_OK);
        }
        put(m->add, 1, m->token, m->position + 1, stream); /* the token: a buffer, overwritten between replays */
        CHECK(frt_graph_replay(graph, m->position, stream) == FRT_OK);
        total += m->position + 1;
        CHECK(holds(m->add, 2, m->next, total, stream));
    }
    for (unsigned at = 0, sum = 0; at < tokens; at++) {
        frt_buffer row = frt_buffer_wrap(m->ctx, "row", (char*)frt_buffer_dptr(m->cache) + at * m->row, m->row);
        CHECK(row != NULL);
        sum += at + 1;
        CHECK(holds(m->add, 2, row, sum, stream));
        frt_buffer_destroy(row);
    }
}

int main(int argc, char** argv)
{
    CHECK(argc == 3);
    model m = {.ctx = frt_ctx_create()};
    CHECK(m.ctx != NULL);
    m.add = spyrec_program_load(m.ctx, argv[1]);
    CHECK(m.add != NULL && spyrec_program_arguments(m.add) == 3);
    m.row = spyrec_program_argument_bytes(m.add, 0);
    m.token = frt_buffer_alloc(m.ctx, "token", m.row);
    m.sum = frt_buffer_alloc(m.ctx, "sum", m.row);
    m.next = frt_buffer_alloc(m.ctx, "next", m.row);
    m.cache = frt_buffer_alloc(m.ctx, "cache", STEPS * m.row);
    CHECK(strcmp(frt_buffer_name(m.cache), "cache") == 0 && frt_buffer_bytes(m.cache) == STEPS * m.row);
    frt_graph graph = frt_graph_create(m.ctx, "decode", VARIANTS);
    int stream = frt_ctx_stream(m.ctx, 0);
    CHECK(stream > 0);
    decode(&m, graph, stream, STEPS); /* captures every position; the oldest are evicted */
    CHECK(!frt_graph_has_variant(graph, 0) && frt_graph_has_variant(graph, STEPS - 1));
    decode(&m, graph, stream, VARIANTS);
    uint64_t before = spyrec_control_blocks(m.ctx);
    CHECK(frt_graph_replay(graph, STEPS + 1, stream) == FRT_ERR_NO_VARIANT);
    CHECK(spyrec_stream_sync(m.ctx, stream) == FRT_OK && spyrec_control_blocks(m.ctx) == before);
    frt_ctx_destroy(m.ctx);
    CHECK(spyrec_live_handles() == 0);
    puts("decode: ok");
    return 0;
}
