/* Everything is made and destroyed again and again, in both orders, with work in flight: for leak checkers. */
#include "check.h"

#ifndef ROUNDS
#define ROUNDS 20
#endif

enum { SIZE = 4096 };

typedef struct {
    frt_ctx ctx;
    frt_buffer from, to;
} copy;

static void record(void* user, void* stream)
{
    copy* c = user;
    CHECK(frt_buffer_copy(c->ctx, c->to, 0, c->from, 0, SIZE, frt_ctx_wrap_stream(c->ctx, stream)) == FRT_OK);
}

static void one_round(frt_ctx ctx, unsigned char value)
{
    unsigned char data[SIZE], seen[SIZE];
    memset(data, value, SIZE);
    copy c = {ctx, frt_buffer_alloc(ctx, "from", SIZE), frt_buffer_alloc(ctx, "to", SIZE)};
    frt_graph graph = frt_graph_create(ctx, "copy", 2);
    frt_event event = frt_ctx_event(ctx);
    frt_plan plan = frt_plan_create(ctx);
    CHECK(c.from && c.to && graph && event && plan);
    CHECK(strcmp(frt_buffer_name(c.from), "from") == 0 && frt_buffer_name(c.to) == frt_buffer_name(c.to));
    CHECK(spyrec_buffer_write(c.from, 0, data, SIZE, 0) == FRT_OK);
    for (frt_shape_key key = 0; key < 3; key++) CHECK(frt_graph_capture(graph, key, record, &c) == FRT_OK);
    CHECK(frt_graph_bind(graph, "in", c.from) == FRT_OK);
    CHECK(frt_plan_add(plan, graph, FRT_KEY_INHERIT, 0) == 0);
    CHECK(frt_plan_execute(plan, 0) == FRT_ERR_NO_VARIANT && strlen(spyrec_last_error()) > 0);
    CHECK(frt_plan_execute(plan, 2) == FRT_OK);
    CHECK(frt_event_record(event, 0) == FRT_OK && frt_stream_wait(ctx, 0, event) == FRT_OK);
    frt_graph_destroy(graph);
    frt_buffer_destroy(c.from);
    CHECK(spyrec_buffer_read(c.to, 0, seen, SIZE, 0) == FRT_OK && memcmp(data, seen, SIZE) == 0);
    CHECK(frt_plan_execute(plan, 2) == FRT_ERR_INVALID);
    CHECK(frt_graph_replay(graph, 2, 0) == FRT_ERR_INVALID); /* a handle that is gone is refused, not followed */
    CHECK(frt_graph_replay((frt_graph)c.to, 2, 0) == FRT_ERR_INVALID && frt_buffer_dptr(NULL) == NULL);
    frt_plan_destroy(plan);
    frt_event_destroy(event);
    frt_buffer_destroy(c.to);
}

int main(int argc, char** argv)
{
    (void)argv;
    CHECK(argc >= 1);
    for (int contexts = 0; contexts < 2; contexts++) {
        frt_ctx ctx = frt_ctx_create();
        CHECK(ctx != NULL);
        for (int i = 0; i < ROUNDS; i++) one_round(ctx, (unsigned char)i);
        CHECK(spyrec_live_handles() == 1);
        CHECK(frt_buffer_alloc(ctx, "left to the context", SIZE) != NULL);
        frt_ctx_destroy(ctx);
        CHECK(spyrec_live_handles() == 0);
    }
    puts("lifetime: ok");
    return 0;
}
