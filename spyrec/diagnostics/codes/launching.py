"""09xx: program execution: memory, streams, launches."""

from __future__ import annotations

from spyrec.diagnostics.codes.code import Code

EXECUTION: dict[str, Code] = {
    # 09xx the program execution pipeline: 0901-0919 memory, 0920-0949 streams, 0950-0979 launches, 0980-0989 findings
    "SPY0901": Code(
        "out of device memory",
        "No region has a free block of that size. Device memory is a pool of regions; one allocation lies in one "
        "region, and the free bytes of a region need not lie side by side.",
        hint="free tensors that are done with, or make the tensor smaller than a region",
    ),
    "SPY0902": Code(
        "allocation used after it was freed",
        "The handle's generation is over: its memory may belong to another tensor by now.",
        hint="keep the tensor until its last use has been enqueued; what is enqueued keeps the memory itself",
    ),
    "SPY0903": Code(
        "allocation freed twice",
        "The handle was freed before. Nothing was changed.",
        hint="free each allocation once; a tensor frees its own",
    ),
    "SPY0904": Code(
        "no such memory region",
        "A virtual address is a region and an offset in it; the device has no such region, or the offset lies outside.",
        hint="resolve the allocation on the device that it belongs to",
    ),
    "SPY0905": Code(
        "bytes outside of an allocation",
        "What an operation touches must lie inside one live allocation.",
        hint="check offset and size against the allocation",
    ),
    "SPY0906": Code(
        "size or stride not possible",
        "Sizes are not negative, and strides (in elements) place every element of the shape at a place of its own.",
        hint="check shape, strides and dtype",
    ),
    "SPY0920": Code(
        "stream has an error",
        "An operation of this stream failed and what was queued behind it was skipped. The stream takes nothing until "
        "the error is cleared. Nothing was enqueued.",
        hint="read the error, then call clear_error()",
    ),
    "SPY0921": Code(
        "operation failed while it ran",
        "The note names the launch, its step and its tile iteration. What stood behind it in the stream, and what "
        "waits for events recorded there, was skipped.",
        hint="put the cause right, call clear_error() on the stream, and launch again",
    ),
    "SPY0922": Code(
        "synchronisation took too long",
        "The work was not done in the time given. It stays enqueued and goes on.",
        hint="synchronize again, or give it more time",
    ),
    "SPY0923": Code(
        "not permitted in a host function",
        "A host function runs inside of its stream: waiting for a stream there could never end, nor could closing its "
        "device, and enqueueing or recording would have no place in the order.",
        hint="do it after synchronize()",
    ),
    "SPY0924": Code(
        "event not reached",
        "Both events must have been recorded and reached before there is a time between them.",
        hint="synchronize with the later event first",
    ),
    "SPY0925": Code(
        "event without timing",
        "Only an event made with enable_timing=True knows when it was reached.",
        hint="make both events with enable_timing=True",
    ),
    "SPY0926": Code(
        "copy onto itself",
        "Source and destination of a copy on the device share bytes; the result would depend on the order of parts.",
        hint="copy through a tensor of its own",
    ),
    "SPY0927": Code(
        "no such schedule",
        "The order in which ready streams are served: fifo, rr, lifo, adversarial, random:SEED, or threads.",
        hint="choose fifo, rr, lifo, adversarial, random:SEED or threads",
    ),
    "SPY0928": Code(
        "device closed",
        "The device was closed; its memory is gone, and it hands out no more.",
        hint="open a device and allocate again",
    ),
    "SPY0929": Code(
        "device broken",
        "An error of the device that no check caught. Its memory can no longer be trusted.",
        hint="call reset() on the device, and file a report",
    ),
    "SPY0930": Code(
        "not permitted while a stream records",
        "A stream between begin_capture() and end_capture() only records: it can neither wait nor be asked, its device "
        "cannot be closed, and it records one sequence at a time. The capture was given up.",
        hint="end the capture first",
    ),
    "SPY0931": Code(
        "not a call of the execution contract",
        "An argument is out of its range, an object is destroyed or another context's (status INVALID). Nothing was "
        "enqueued.",
        hint="check the argument against docs/execution_contract.md",
    ),
    "SPY0932": Code(
        "no variant with this key",
        "A graph replays exactly the key that is asked for, and keeps its max_variants most recently used ones (status "
        "NO_VARIANT). Nothing was enqueued.",
        hint="capture or adopt the key first; has_variant() tells",
    ),
    "SPY0933": Code(
        "port without buffer",
        "A variant was captured with ports that stand for memory to be bound later (status UNBOUND). Nothing was "
        "enqueued.",
        hint="bind a buffer to each of the ports before replaying",
    ),
    "SPY0934": Code(
        "capture failed",
        "The record callback raised, or did what a capture cannot record (status CAPTURE). The graph and its streams "
        "are as they were.",
        hint="read the cause; synchronize and load programs before capturing",
    ),
    "SPY0935": Code(
        "backend failed",
        "The device or one of its streams reports an error of its own (status BACKEND); the cause is chained.",
        hint="read the cause, put it right, and clear the stream's error",
    ),
    "SPY0936": Code(
        "out of device memory in the execution contract",
        "There is no room for the buffer (status OOM). Nothing was allocated.",
        hint="destroy buffers and graphs that are done with",
    ),
    "SPY0937": Code(
        "C library not built",
        "The execution contract's C ABI is made by cffi and the system's C compiler.",
        hint="pip install 'spyrec[cabi]', and install a C compiler and Python's headers",
    ),
    "SPY0938": Code(
        "tensor among programs",
        "A tensor of a launch lies in the memory of programs, which holds images and corrections; programs reach their "
        "tensors in the other regions only.",
        hint="allocate the tensor's memory with MemoryKind.TENSOR",
    ),
    "SPY0939": Code(
        "argument of another kind",
        "A call of the runtime was given what it does not take there: another type, or a number out of its range. "
        "Whole numbers may be NumPy's. Nothing was done.",
        hint="pass what the call's documentation says; docs/runtime.md has examples",
    ),
    "SPY0940": Code(
        "memory that no device has",
        "A device has 2 to 8 regions of whole sticks, of at most 16 GiB each; the last one holds programs.",
        hint="choose sizes that are multiples of 128 bytes, as MemoryOptions(region_bytes=(1 << 30,) * 8)",
    ),
    "SPY0950": Code(
        "wrong number of tensors",
        "A plan takes as many tensors as it was compiled for, inputs and outputs. Nothing was enqueued.",
        hint="pass the tensors in the plan's order",
    ),
    "SPY0951": Code(
        "dtype does not match",
        "Nothing is cast silently. Nothing was enqueued.",
        hint="convert the array on the host first",
    ),
    "SPY0952": Code(
        "device layout does not match",
        "The elements of the tensor lie elsewhere in device memory than asked for. Nothing was enqueued.",
        hint="make the tensor with the layout asked for",
    ),
    "SPY0953": Code(
        "shape does not match",
        "The tensor's shape is not the one asked for. Nothing was enqueued.",
        hint="check the shape against the message",
    ),
    "SPY0954": Code(
        "belongs to another device",
        "Tensors, events and streams work together on one device only. Nothing was enqueued.",
        hint="copy through the host, or make it on the same device",
    ),
    "SPY0955": Code(
        "tiled launch not allowed",
        "The tensors are larger than the program was compiled for. A launch may repeat the program over tiles of them, "
        "but this one does not allow it. Nothing was enqueued.",
        hint="allow it (allow_tiled_launch), or compile for these shapes",
    ),
    "SPY0956": Code(
        "shapes do not determine the loops",
        "Without a tile contract only one reading of the shapes is accepted: a pointwise program, and in every tensor "
        "the same dim larger, by the same number of tiles. Nothing was enqueued.",
        hint="compile with named axes, so that the bundle has a tile contract",
    ),
    "SPY0957": Code(
        "tensors disagree on a loop",
        "Every dim that follows a loop of the tile contract has the same number of elements. Nothing was enqueued.",
        hint="give the tensors the same extent along the loop",
    ),
    "SPY0958": Code(
        "iterations would overwrite one another",
        "Two iterations of the launch would write the same bytes, or one would write what another reads. "
        "Nothing was enqueued.",
        hint="let every dim of the loops appear in each output, with a place of its own for every element",
    ),
    "SPY0959": Code(
        "tile begins inside a stick",
        "Device addresses are multiples of a stick of 128 bytes, so a tile of the stick's dim is whole sticks. "
        "Nothing was enqueued.",
        hint="tile the dim of the stick in multiples of the elements of a stick, or another dim",
    ),
    "SPY0960": Code(
        "tiles not reachable",
        "No mode of a tiled launch reaches the tiles of the argument: moving its base, setting its stick strides, "
        "runs of sticks, or copies through scratch memory (docs/tiled_launch.md). Nothing was enqueued.",
        hint="give the tensor the layout that the message names, or allow scratch memory",
    ),
    "SPY0961": Code(
        "too many tiles",
        "The number of iterations of one launch is limited. Nothing was enqueued.",
        hint="compile for larger tiles, or raise max_tiles",
    ),
    "SPY0962": Code(
        "elements left over",
        "The tiles of a loop do not fill the tensors, and none of the policies applies: beginning the last tile "
        "earlier, a program of its own, room beyond the tensor. Nothing was enqueued.",
        hint="make the extent a multiple of the tile, or compile a variant for what is left over",
    ),
    "SPY0963": Code(
        "tile contract malformed",
        "The loops, axes and extents of a tile contract agree with one another and with the arguments' shapes.",
        hint="compile the bundle again; the form is described in docs/tiled_launch.md",
    ),
    "SPY0964": Code(
        "program not on the device",
        "A job's program is copied to each device once, by loading its plan; a launch needs it there.",
        hint="load the plan on a stream of the device, or launch it with launch_kernel, which does",
    ),
    "SPY0965": Code(
        "job not self-contained",
        "A job's steps make everything they use: the HostOperation makes the correction tensor, the DMA copies all of "
        "it, the DeviceCompute starts the job's own program. A correction made by another job is refused.",
        hint="put HostOperation, DMA and DeviceCompute into one JobPlan",
    ),
    "SPY0966": Code(
        "correction missing",
        "A program that takes addresses from a correction tensor was started, and there is none in its area: the copy "
        "was left out, comes too late, or the tensor was used by a computation before. Each serves one computation.",
        hint="enqueue the correction's HostOperation and DMA before each DeviceCompute",
    ),
    "SPY0967": Code(
        "program outside of its operands",
        "Every address that a program uses must lie in memory that its launch names, and what it writes in memory that "
        "the launch writes. Another launch's correction, or a stale one, shows here.",
        hint="launch the job through a stream, which makes correction and operands agree",
    ),
    "SPY0968": Code(
        "no entry of a program",
        "A computation starts at an entry of a program image in the program segment, one for each correction slot.",
        hint="start at a job_bin_ptr of the launch artefact",
    ),
    "SPY0969": Code(
        "tensors not in their segments",
        "A program with baked addresses finds each tensor at a fixed place of a segment. Tensors that share a segment "
        "must have the distance that it was compiled for.",
        hint="compile with symbolic addresses, or give each tensor a segment of its own",
    ),
    "SPY0970": Code(
        "not a tensor of a device",
        "A launch takes tensors that lie on the stream's device, by position. Nothing was enqueued.",
        hint="bring arrays to the device with `SpyreTensor.to_device(device, array)`",
    ),
    "SPY0971": Code(
        "array cannot be written",
        "A copy to the host writes its array where it lies, as contiguous bytes. Nothing was enqueued.",
        hint="pass a contiguous array that is not read-only, as np.empty makes them",
    ),
    "SPY0972": Code(
        "stick strides without words",
        "A tile contract says that launches set the stick strides of an argument, and the program that is to walk it "
        "by them takes none from its correction: it would store at the compiled distances.",
        hint="compile the graph again",
    ),
    "SPY0973": Code(
        "program of a contract missing",
        "A tile contract names the programs that launches run: the body, what joins the parts of a reduction, variants "
        "for what is left over. A job that is launched by a contract has all of them.",
        hint="give the job the programs that the contract names, or none of the contract",
    ),
    "SPY0980": Code(
        "race between streams",
        "Two operations touch the same sticks, one of them writes, and neither happens before the other: the result "
        "depends on the schedule. The notes name both and the missing edge.",
        hint="record an event behind the first and let the second's stream wait for it",
    ),
    "SPY0981": Code(
        "read of memory nobody wrote",
        "The operation reads sticks that no copy and no program has written since they were allocated.",
        hint="copy to the tensor or compute it before it is read",
    ),
    "SPY0982": Code(
        "wait for an event that was never recorded",
        "Such a wait orders nothing, as in CUDA; most often the record was forgotten or comes too late.",
        hint="record the event before the wait is enqueued",
    ),
    "SPY0983": Code(
        "stick strides that a program cannot take",
        "A correction sets other distances between the sticks of an argument, and the program goes through them in a "
        "way that only the compiled distances allow: one of its dims, or a loop's step, covers several device dims.",
        hint="launch without stick strides: the tile is then copied",
    ),
    "SPY0984": Code(
        "no check at larger shapes",
        "The inputs of a run are larger than the bundle was compiled for, and its graph states sizes that no longer "
        "fit them, as those of a reshape.",
        hint="run without the check, or check at the compiled shapes",
    ),
    "SPY0990": Code(
        "profiled already",
        "A device is profiled by one profile at a time.",
        hint="end the other profile first",
    ),
    "SPY0991": Code(
        "memory given back while it is still to be used",
        "Copies and launches hold their memory until they are done; host functions hold nothing of what they touch.",
        hint="`tensor.record_stream(stream)` behind the host function, before the tensor is freed",
    ),
    "SPY0992": Code(
        "instruction of another program",
        "Only an instruction that was added to a program, or that its plan brought, can be removed from it.",
        hint="look at `program.instructions`",
    ),
    "SPY0993": Code(
        "no such dim",
        "A run gives sizes to the symbolic dims of its bundle, by the names that its graph or OpSpecs have for them.",
        hint="leave the size out: all dims of the bundle have one",
    ),
    "SPY0994": Code(
        "size that a dim does not take",
        "The sizes of a symbolic dim are the multiples of its step from the smallest to the largest; programs are "
        "compiled for the largest.",
        hint="give a size in these bounds",
    ),
}
