/* The execution contract, as a C ABI.
 *
 * Buffers, graphs and plans on the device of a context: capture a launch sequence once, replay it for ever.  Function
 * names and status values are those of seed 003.  Everything is asynchronous but frt_ctx_destroy and frt_plan_sync.
 *
 * Errors.  A function that returns int returns a status below 0, one that returns a pointer NULL.  Handles are tokens,
 * not addresses: one that was destroyed, or is of another kind, is refused with FRT_ERR_INVALID and never followed.
 *
 * Threads.  Every function may be called from any thread.  Calls take turns (the library runs on one interpreter), so
 * none may be made while holding a lock that a record callback or another caller needs.  A record callback runs on the
 * thread that called frt_graph_capture; it may give work to its stream only, and may not wait for it.  The number that
 * frt_ctx_wrap_stream gives it means that stream until the callback returns.  One graph is captured by one thread at a
 * time: another gets FRT_ERR_INVALID.
 */
#ifndef FLASHRT_EXEC_H
#define FLASHRT_EXEC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FRT_OK 0
#define FRT_ERR_INVALID (-1)    /* an argument out of range, a handle that is none */
#define FRT_ERR_NO_VARIANT (-2) /* the graph has no variant with exactly this key */
#define FRT_ERR_UNBOUND (-3)    /* a captured port has no buffer */
#define FRT_ERR_CAPTURE (-4)    /* what the callback did cannot be captured */
#define FRT_ERR_BACKEND (-5)    /* the device or a stream has an error */
#define FRT_ERR_OOM (-6)        /* no room for a buffer */

/* The key of a plan's node that takes the key given to frt_plan_execute; no variant's. */
#define FRT_KEY_INHERIT UINT64_MAX

typedef struct frt_ctx_s* frt_ctx;
typedef struct frt_buffer_s* frt_buffer;
typedef struct frt_graph_s* frt_graph;
typedef struct frt_plan_s* frt_plan;
typedef struct frt_event_s* frt_event;
typedef uint64_t frt_shape_key;

/* --- context, streams, events --- */
frt_ctx frt_ctx_create(void);
void frt_ctx_destroy(frt_ctx ctx); /* waits for what is enqueued; destroys what the context owns */
int frt_ctx_stream(frt_ctx ctx, int priority); /* a number >= 1; priority 0 is normal, more negative is earlier */
int frt_ctx_wrap_stream(frt_ctx ctx, void* handle); /* the number of a stream with a handle; NULL: the default one, 0 */
frt_event frt_ctx_event(frt_ctx ctx);
void frt_event_destroy(frt_event event);
int frt_event_record(frt_event event, int stream_id);
int frt_stream_wait(frt_ctx ctx, int stream_id, frt_event event); /* an event never recorded is refused */

/* --- buffers: named device memory --- */
frt_buffer frt_buffer_alloc(frt_ctx ctx, const char* name, size_t bytes);
frt_buffer frt_buffer_wrap(frt_ctx ctx, const char* name, void* dptr, size_t bytes); /* somebody else's memory */
void* frt_buffer_dptr(frt_buffer buffer); /* an address of the device: no host can follow it */
size_t frt_buffer_bytes(frt_buffer buffer);
const char* frt_buffer_name(frt_buffer buffer); /* until the buffer is destroyed */
void frt_buffer_destroy(frt_buffer buffer); /* memory that is enqueued, captured or bound stays until it is not */
int frt_buffer_copy(frt_ctx ctx, frt_buffer dst, size_t dst_off, frt_buffer src, size_t src_off, size_t bytes,
                    int stream_id);

/* --- graphs: exact shape key -> executable, least recently used evicted; 0 variants: any number --- */
frt_graph frt_graph_create(frt_ctx ctx, const char* name, size_t max_variants);
void frt_graph_destroy(frt_graph graph);
int frt_graph_capture(frt_graph graph, frt_shape_key key, void (*record)(void* user, void* stream), void* user);
int frt_graph_adopt(frt_graph graph, frt_shape_key key, void* exec); /* not freed by the graph */
int frt_graph_bind(frt_graph graph, const char* port, frt_buffer buffer);
int frt_graph_replay(frt_graph graph, frt_shape_key key, int stream_id);
int frt_graph_has_variant(frt_graph graph, frt_shape_key key); /* 1 or 0; no use */

/* --- plans: replays across streams, data dependencies only --- */
frt_plan frt_plan_create(frt_ctx ctx);
void frt_plan_destroy(frt_plan plan);
int frt_plan_add(frt_plan plan, frt_graph graph, frt_shape_key key, int stream_id); /* the node's number */
int frt_plan_after(frt_plan plan, int node, int dependency); /* of an earlier node */
int frt_plan_execute(frt_plan plan, frt_shape_key key); /* nothing is enqueued unless everything can be */
int frt_plan_sync(frt_plan plan);

#ifdef __cplusplus
}
#endif

#endif
