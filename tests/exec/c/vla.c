/* Three graphs, vision -> encoder -> action, on three streams: wired by shared buffers, chained by a plan; a subgoal is
 * overwritten between replays without a new capture, and speech runs on a stream of its own. */
#include "check.h"

typedef struct {
    frt_ctx ctx;
    spyrec_program program;
    frt_buffer one, other, result;
} stage;

static void run_stage(void* user, void* stream)
{
    stage* s = user;
    frt_buffer buffers[] = {s->one, s->other, s->result};
    CHECK(spyrec_program_launch(s->program, buffers, 3, frt_ctx_wrap_stream(s->ctx, stream)) == FRT_OK);
}

static frt_graph captured(stage* s, const char* name)
{
    frt_graph graph = frt_graph_create(s->ctx, name, 0);
    CHECK(graph != NULL && frt_graph_capture(graph, 1, run_stage, s) == FRT_OK);
    return graph;
}

int main(int argc, char** argv)
{
    CHECK(argc == 3);
    frt_ctx ctx = frt_ctx_create();
    CHECK(ctx != NULL);
    spyrec_program add = spyrec_program_load(ctx, argv[1]), multiply = spyrec_program_load(ctx, argv[2]);
    CHECK(add != NULL && multiply != NULL);
    size_t size = spyrec_program_argument_bytes(add, 0);
    frt_buffer image = frt_buffer_alloc(ctx, "image", size), vision_x = frt_buffer_alloc(ctx, "vision_x", size);
    frt_buffer subgoal = frt_buffer_alloc(ctx, "subgoal", size), enc_x = frt_buffer_alloc(ctx, "enc_x", size);
    frt_buffer gain = frt_buffer_alloc(ctx, "gain", size), action = frt_buffer_alloc(ctx, "action", size);
    frt_buffer sound = frt_buffer_alloc(ctx, "sound", size), text = frt_buffer_alloc(ctx, "text", size);

    stage vision = {ctx, add, image, image, vision_x};
    stage encoder = {ctx, add, vision_x, subgoal, enc_x};
    stage actor = {ctx, multiply, enc_x, gain, action};
    stage speech = {ctx, add, sound, sound, text};
    frt_graph graphs[] = {captured(&vision, "vision"), captured(&encoder, "encoder"), captured(&actor, "action")};
    CHECK(frt_graph_bind(graphs[0], "out", vision_x) == FRT_OK && frt_graph_bind(graphs[1], "in", vision_x) == FRT_OK);
    CHECK(frt_graph_bind(graphs[1], "out", enc_x) == FRT_OK && frt_graph_bind(graphs[2], "in", enc_x) == FRT_OK);
    frt_graph asr = captured(&speech, "asr");

    int streams[] = {frt_ctx_stream(ctx, 0), frt_ctx_stream(ctx, 0), frt_ctx_stream(ctx, 0)};
    int side = frt_ctx_stream(ctx, -2);
    frt_plan plan = frt_plan_create(ctx);
    int nodes[3];
    for (int i = 0; i < 3; i++) {
        nodes[i] = frt_plan_add(plan, graphs[i], FRT_KEY_INHERIT, streams[i]);
        CHECK(nodes[i] == i);
        if (i > 0) CHECK(frt_plan_after(plan, nodes[i], nodes[i - 1]) == FRT_OK);
    }
    CHECK(frt_plan_after(plan, 0, 2) == FRT_ERR_INVALID);
    put(add, 1, gain, 3, 0);
    CHECK(spyrec_stream_sync(ctx, 0) == FRT_OK);

    for (unsigned round = 1; round <= 5; round++) {
        put(add, 0, image, round, streams[0]);
        put(add, 1, subgoal, 10 * round, streams[1]); /* a new goal: a buffer is overwritten, nothing captured again */
        put(add, 0, sound, 100 + round, side);
        CHECK(frt_graph_replay(asr, 1, side) == FRT_OK); /* beside the plan */
        CHECK(frt_plan_execute(plan, 1) == FRT_OK);
        CHECK(frt_plan_sync(plan) == FRT_OK);
        CHECK(holds(multiply, 2, action, (2 * round + 10 * round) * 3, streams[2]));
        CHECK(holds(add, 2, text, 2 * (100 + round), side));
    }
    CHECK(frt_plan_execute(plan, 2) == FRT_ERR_NO_VARIANT);
    frt_graph_destroy(graphs[1]);
    CHECK(frt_plan_execute(plan, 1) == FRT_ERR_INVALID);
    frt_ctx_destroy(ctx);
    CHECK(spyrec_live_handles() == 0);
    puts("vla: ok");
    return 0;
}
