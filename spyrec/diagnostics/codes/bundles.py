"""06xx: bundles and what is in them."""

from __future__ import annotations

from spyrec.diagnostics.codes.code import Code

BUNDLE: dict[str, Code] = {
    # 0601-0606 files of a bundle, 0610-0617 manifest and directory, 0620-0625 SuperDSC, 0630-0635 bundle.mlir,
    # 0640-0659 launch artefact and program image (0641-0651 are its rules J1 to J11)
    "SPY0601": Code(
        "file of a bundle missing",
        "The bundle, or a file its manifest or bundle.mlir names, is absent.",
        hint="name the bundle's directory, or write the bundle again",
    ),
    "SPY0602": Code(
        "file of a bundle altered",
        "The SHA-256 of a file is not the one in the manifest: it was changed, truncated or damaged after the bundle "
        "was written. Compile again, or run with --no-verify if the change is meant.",
        hint="compile again, or run with --no-verify if the change is meant",
    ),
    "SPY0603": Code(
        "path leaves the bundle",
        "Names in a bundle are relative and may not leave its directory, by links neither.",
        hint="keep every file of the bundle inside its directory",
    ),
    "SPY0604": Code(
        "file too large",
        "The file is longer than anything spyrec writes; it is not read into memory.",
        hint="write the bundle again",
    ),
    "SPY0605": Code(
        "file cannot be read",
        "The path is no regular file, or the system refuses to read it.",
        hint="check the permissions, and that the path is a plain file",
    ),
    "SPY0606": Code(
        "file not listed",
        "A verified bundle uses a file that the manifest gives no hash of.",
        hint="write the bundle again, so that its manifest lists every file",
    ),
    "SPY0610": Code(
        "manifest or argument table malformed",
        "The JSON has another format version, an unknown or missing key, or a value of the wrong type or range.",
        hint="`spyrec schema bundle` says what each key takes",
    ),
    "SPY0611": Code(
        "manifest contradicts itself",
        "Two places of the manifest disagree, or the manifest and a conversion table, or the manifest and the graph.",
        hint="write the bundle again, or mend the manifest by hand",
    ),
    "SPY0612": Code(
        "output exists",
        "Nothing is overwritten without --force.",
        hint="pass --force to replace a bundle, or name another output",
    ),
    "SPY0613": Code(
        "output cannot be written",
        "The directory above is absent or not writable, or the disk is full.",
        hint="name an output in an existing, writable directory",
    ),
    "SPY0614": Code(
        "output is no bundle",
        "--force replaces an existing bundle, and never another kind of directory.",
        hint="name another output, or remove it yourself",
    ),
    "SPY0615": Code(
        "bundle without manifest",
        "A bundle written by others runs with a table of its arguments: --args ARGS.json.",
        hint="describe its arguments with --args ARGS.json",
    ),
    "SPY0616": Code(
        "constants damaged",
        "constants.safetensors does not hold exactly the constants that the manifest lists.",
        hint="write the bundle again: the constants must be those that the manifest lists",
    ),
    "SPY0617": Code(
        "argument table contradicts itself",
        "Every argument is described once, numbered from 0.",
        hint="describe every argument once, numbered from 0 without gaps",
    ),
    "SPY0620": Code(
        "SuperDSC malformed",
        "A key is missing, or a value has the wrong type or is out of range.",
        hint="`spyrec schema superdsc` says what each key takes",
    ),
    "SPY0621": Code(
        "SuperDSC form not understood",
        "Rule V14: a form whose meaning would have to be guessed is refused by name (distinct corelets, "
        "start addresses by other functions than Map, several compute operations, padding_, unknown keys).",
        rule="V14",
        hint="write the file in the form that torch-spyre emits",
    ),
    "SPY0622": Code(
        "SuperDSC contradicts itself",
        "Fields that must agree (rules V1, V2, V9, V11) do not.",
        hint="generate the file again, or make the fields agree",
    ),
    "SPY0623": Code(
        "SuperDSC repeats wrongly",
        "A field that only repeats what follows from others (folds, names, memOrg_, maskingConstId_, maxDimSizes_) "
        "disagrees with them. Execution does not depend on it, so this is a warning.",
        hint="generate the file again; it runs all the same",
    ),
    "SPY0624": Code(
        "not as torch-spyre emits",
        "A key that torch-spyre's writer always writes is absent, or an operation names another unit (exUnit) than it "
        "does. Execution depends on neither, so this is a warning.",
        hint="generate the file again with a current torch-spyre",
    ),
    "SPY0625": Code(
        "not as the public schema says",
        "spyrec check --profile spec holds SuperDSCs against the public sdscbundle schema 1.2.0, which forbids some of "
        "what torch-spyre writes.",
        hint="use --profile emitted for files as torch-spyre writes them",
    ),
    "SPY0626": Code(
        "unknown key ignored",
        "A key of a SuperDSC is not known here and holds nothing (null, or empty), so it changes nothing: a warning, "
        "and an error where reading is strict.",
        hint="a later version of spyrec may know the key; --strict refuses the file",
    ),
    "SPY0627": Code(
        "limit of the target exceeded",
        "A program uses more of the scratchpads, a wider operand, more arguments or more values of a topk than its "
        "target has; the message names the figure. The emulated device runs it, a card does not.",
        hint="compile for this target, or name another one with --target",
    ),
    "SPY0628": Code(
        "known failure of the back end",
        "spyrec check --profile pre-flight found what the closed back end is publicly known to reject or to compile "
        "wrongly; the note names the report in torch-spyre's tracker. A warning may fail, or is mended since.",
        hint="see docs/preflight.md for the conditions; divide, place or pad the operation otherwise",
    ),
    "SPY0630": Code(
        "bundle.mlir syntax",
        "The text is not the subset of MLIR that device programs are written in.",
        hint="put the text right at the place shown",
    ),
    "SPY0631": Code(
        "operation outside the subset",
        "bundle.mlir uses an operation or attribute that is not executed.",
        hint="keep to constants, additions, affine.apply, loops, argument extraction and sdsc_execute",
    ),
    "SPY0632": Code(
        "value undefined",
        "A value or map is unknown where it is used, defined twice, or of another kind.",
        hint="define each value once, before its use",
    ),
    "SPY0633": Code(
        "symbol ids disagree",
        "Rule V9: operands and ids of a call pair up, and bind exactly the SuperDSC's ids.",
        rule="V9",
        hint="take bundle.mlir and SuperDSCs from one compilation",
    ),
    "SPY0634": Code(
        "parameter not provided",
        "The program takes an argument or a pool that no table describes.",
        hint="describe every argument, and the pool, in the manifest or in --args",
    ),
    "SPY0635": Code(
        "loop not countable",
        "Bounds and step of a loop are constants, and the step is positive.",
        hint="give the loop constant bounds and a step above 0",
    ),
    "SPY0640": Code(
        "launch plan of another form",
        "spyrecode.json has a preparation (one Allocate, then InitTransfers), a JobExecPlan of known commands with all "
        "their properties, and the correction slots, of which the first is that of the JobExecPlan.",
        hint="the form is described in docs/program_image.md; write the bundle again",
    ),
    "SPY0641": Code(
        "number not in decimal digits",
        "Rule J1: every number of spyrecode.json is a string of decimal digits and fits 64 bits.",
        hint='write the number as "128"',
    ),
    "SPY0642": Code(
        "outside the job's allocation",
        "Rule J2: what a step copies or writes lies in the job's allocation, which lies in the program segment.",
        hint="make the allocation as large as the image and its correction areas",
    ),
    "SPY0643": Code(
        "transfer of another size than its file",
        "Rule J3: the size of an InitTransfer is that of the file it names.",
        hint="write the bundle again: the file was cut short, or the plan is that of another file",
    ),
    "SPY0644": Code(
        "file outside the artefact's directory",
        "Rule J4: init_bin_file names a file in the directory of spyrecode.json; no path or link leaves it.",
        hint="put the file beside spyrecode.json",
    ),
    "SPY0645": Code(
        "pointer not on a stick",
        "Rule J5: device pointers are multiples of 128 bytes.",
        hint="align the pointer to 128 bytes",
    ),
    "SPY0646": Code(
        "start of no program",
        "Rule J6: job_bin_ptr is an entry of an image that the preparation copies.",
        hint="point at an entry of the image: 128 bytes behind its start and every 128 bytes from there",
    ),
    "SPY0647": Code(
        "transfer of the wrong size",
        "Rule J7: a transfer has the size of what the host computed, or fits the buffer that it reads.",
        hint="give computation and transfer the size of the correction tensor",
    ),
    "SPY0648": Code(
        "correction over code",
        "Rule J8: correction areas lie apart from what the preparation copies, and apart from each other.",
        hint='move the area behind the image, or state "correctionOverlapsCode": "true"',
    ),
    "SPY0649": Code(
        "steps out of order",
        "Rule J9: host computations are followed by their transfers to the device and these by a program; a buffer is "
        "made once, and before it is used.",
        hint="order the steps ComputeOnHost, DataTransfer, ComputeOnDevice",
    ),
    "SPY0650": Code(
        "version or key of a launch plan",
        "Rule J10: schemaVersion is there and not newer than what is read; other keys are not read, a warning.",
        hint="write the bundle again with this version of spyrec",
    ),
    "SPY0651": Code(
        "correction of another job",
        "Rule J11: a job is self-contained: each start of a program that takes a correction has its own, computed and "
        "transferred by the same plan to where the entry takes it.",
        hint="put ComputeOnHost and DataTransfer before the ComputeOnDevice that they correct",
    ),
    "SPY0652": Code(
        "program image damaged",
        "Header, entries, sections or the table of a program image contradict each other or its length.",
        hint="write the bundle again",
    ),
    "SPY0653": Code(
        "code of a program image altered",
        "The SHA-256 of the code section is not the one in the image's header.",
        hint="write the bundle again: the image was altered or damaged",
    ),
    "SPY0654": Code(
        "no program image",
        "The bytes do not begin with the header of a program image, or its version is another.",
        hint="write the bundle again with this version of spyrec",
    ),
    "SPY0655": Code(
        "image of another program",
        "The image of a bundle's program holds its bundle.mlir and its SuperDSCs byte for byte, and its arguments.",
        hint="compile again; with --no-verify the files are taken, and the image is made of them anew",
    ),
    "SPY0656": Code(
        "host computation not understood",
        "The hcm object of a ComputeOnHost lists the words of a correction in a version that is known.",
        hint="the form is described in docs/program_image.md; write the bundle again",
    ),
    "SPY0657": Code(
        "words of a correction differ",
        "A host computation gives the words that the table of the program's image lists, in that order.",
        hint="take plan and image from one compilation",
    ),
    "SPY0658": Code(
        "correction without a number",
        "A host computation needs an address or a value that the launch does not give, or one that is no unsigned "
        "64-bit number.",
        hint="launch with every argument, the pool and every value that the program takes",
    ),
    "SPY0659": Code(
        "conversion table of another copy",
        "A table of dci/ copies its argument between the host tensor and the device layout that the manifest names: "
        "each element to its place, in the formats of both sides.",
        hint="write the bundle again, or let `spyrec inspect-layout` print the table that the layout needs",
    ),
    "SPY0660": Code(
        "layout that does not hold its tensor",
        "The device_size and stride_map of an argument have a place for every element of its shape and host strides.",
        hint="write the bundle again, or mend the manifest by hand",
    ),
    "SPY0661": Code(
        "schedule that cannot be followed",
        "Cores of a SuperDSC wait for others for ever, or the shares of its DSCs do not make up one iteration: every "
        "core of a data DSC comes to it after equally many barriers, every slice of a dim has one extent, and N_ of a "
        "DSC has the share of its cores or the whole.",
        hint="give all cores of a data DSC the same barriers before it, and every slice one owner",
    ),
    "SPY0662": Code(
        "data operation not executed",
        "Of the operations of datadscs_ STCDPOpLx is executed, pieces of one tensor moved from places to places; "
        "others are refused by name.",
        hint="write a shuffle, or a copy through device memory",
    ),
    "SPY0663": Code(
        "shared tensor that is none",
        "A record of ldsShareInfo_ names a tensor of labeledDs_ once, and every DSC in one of its sets.",
        hint="leave ldsShareInfo_ empty, or list each DSC in one set of each tensor",
    ),
    "SPY0664": Code(
        "ldsShareInfo_ that contradicts the DSCs",
        "DSCs of one set have one part of the tensor, with the same extents and the same start, and DSCs of different "
        "sets have different parts. Execution does not depend on it.",
        hint="write ldsShareInfo_ anew from the DSCs, or leave it empty",
    ),
}
