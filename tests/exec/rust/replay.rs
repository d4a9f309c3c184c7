//! The contract from Rust: capture a copy, replay it, read the result.
use std::ffi::{c_char, c_int, c_void, CStr};

#[repr(C)]
pub struct FrtCtx {
    _private: [u8; 0],
}
#[repr(C)]
pub struct FrtBuffer {
    _private: [u8; 0],
}
#[repr(C)]
pub struct FrtGraph {
    _private: [u8; 0],
}
type Record = extern "C" fn(user: *mut c_void, stream: *mut c_void);

#[link(name = "flashrt_exec")]
extern "C" {
    fn frt_ctx_create() -> *mut FrtCtx;
    fn frt_ctx_destroy(ctx: *mut FrtCtx);
    fn frt_ctx_wrap_stream(ctx: *mut FrtCtx, handle: *mut c_void) -> c_int;
    fn frt_buffer_alloc(ctx: *mut FrtCtx, name: *const c_char, bytes: usize) -> *mut FrtBuffer;
    fn frt_buffer_copy(
        ctx: *mut FrtCtx,
        dst: *mut FrtBuffer,
        dst_off: usize,
        src: *mut FrtBuffer,
        src_off: usize,
        bytes: usize,
        stream_id: c_int,
    ) -> c_int;
    fn frt_graph_create(ctx: *mut FrtCtx, name: *const c_char, max_variants: usize) -> *mut FrtGraph;
    fn frt_graph_capture(graph: *mut FrtGraph, key: u64, record: Option<Record>, user: *mut c_void) -> c_int;
    fn frt_graph_replay(graph: *mut FrtGraph, key: u64, stream_id: c_int) -> c_int;
    fn spyrec_buffer_write(
        buffer: *mut FrtBuffer,
        offset: usize,
        source: *const c_void,
        bytes: usize,
        stream_id: c_int,
    ) -> c_int;
    fn spyrec_buffer_read(
        buffer: *mut FrtBuffer,
        offset: usize,
        destination: *mut c_void,
        bytes: usize,
        stream_id: c_int,
    ) -> c_int;
    fn spyrec_last_error() -> *const c_char;
    fn spyrec_live_handles() -> u64;
}

const SIZE: usize = 256;

struct Copy {
    ctx: *mut FrtCtx,
    from: *mut FrtBuffer,
    to: *mut FrtBuffer,
}

extern "C" fn record(user: *mut c_void, stream: *mut c_void) {
    unsafe {
        let copy = &*(user as *const Copy);
        let number = frt_ctx_wrap_stream(copy.ctx, stream);
        frt_buffer_copy(copy.ctx, copy.to, 0, copy.from, 0, SIZE, number);
    }
}

fn main() {
    unsafe {
        let ctx = frt_ctx_create();
        assert!(!ctx.is_null());
        let mut copy = Copy {
            ctx,
            from: frt_buffer_alloc(ctx, c"from".as_ptr(), SIZE),
            to: frt_buffer_alloc(ctx, c"to".as_ptr(), SIZE),
        };
        let graph = frt_graph_create(ctx, c"copy".as_ptr(), 0);
        assert_eq!(
            frt_graph_capture(graph, 7, Some(record), &mut copy as *mut Copy as *mut c_void),
            0
        );
        assert_eq!(frt_graph_replay(graph, 8, 0), -2);
        assert!(CStr::from_ptr(spyrec_last_error())
            .to_str()
            .unwrap()
            .contains("no variant 0x8"));
        let (data, mut seen) = ([5u8; SIZE], [0u8; SIZE]);
        assert_eq!(spyrec_buffer_write(copy.from, 0, data.as_ptr().cast(), SIZE, 0), 0);
        assert_eq!(frt_graph_replay(graph, 7, 0), 0);
        assert_eq!(spyrec_buffer_read(copy.to, 0, seen.as_mut_ptr().cast(), SIZE, 0), 0);
        assert_eq!(data, seen);
        frt_ctx_destroy(ctx);
        assert_eq!(spyrec_live_handles(), 0);
    }
    println!("replay: ok");
}
