/* What spyrec's backend offers beside the execution contract: programs to launch, and host access to buffers.
 *
 * No part of the contract: a host that only replays needs none of it.  Errors and threads as in exec.h.
 */
#ifndef FLASHRT_SPYREC_H
#define FLASHRT_SPYREC_H

#include "exec.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spyrec_program_s* spyrec_program;

const char* spyrec_last_error(void); /* why this thread's last failed call failed; until its next failed call */
uint64_t spyrec_live_handles(void);  /* handles that were given out and not destroyed, of all contexts */
uint64_t spyrec_control_blocks(frt_ctx ctx); /* executed by the device so far */

int spyrec_stream_sync(frt_ctx ctx, int stream_id);
int spyrec_buffer_write(frt_buffer buffer, size_t offset, const void* source, size_t bytes, int stream_id);
int spyrec_buffer_read(frt_buffer buffer, size_t offset, void* destination, size_t bytes, int stream_id); /* waits */

/* A compiled bundle.  Its arguments are the graph's inputs, then its outputs. */
spyrec_program spyrec_program_load(frt_ctx ctx, const char* bundle_directory); /* waits for the upload */
void spyrec_program_destroy(spyrec_program program);
int spyrec_program_arguments(spyrec_program program);
size_t spyrec_program_argument_bytes(spyrec_program program, int argument); /* of device memory, 0 for none such */
/* Between a row-major host array of the argument's own dtype and its form on the device; bytes: the array's size. */
int spyrec_program_write(spyrec_program program, int argument, frt_buffer buffer, const void* source, size_t bytes,
                         int stream_id);
int spyrec_program_read(spyrec_program program, int argument, frt_buffer buffer, void* destination, size_t bytes,
                        int stream_id); /* waits */
int spyrec_program_launch(spyrec_program program, const frt_buffer* buffers, int count, int stream_id);

/* A buffer that stands, in the capture of a graph that is under way, for the one bound to a port at replay.  Asked again
 * it is the same; its handle ends with the capture. */
frt_buffer spyrec_graph_port(frt_graph graph, const char* port, size_t bytes);
/* An executable of its own, for frt_graph_adopt; destroyed by its owner. */
void* spyrec_exec_capture(frt_ctx ctx, void (*record)(void* user, void* stream), void* user);
void spyrec_exec_destroy(void* exec);

#ifdef __cplusplus
}
#endif

#endif
