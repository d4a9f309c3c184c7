"""The data of a bundle, without the reading and writing of its directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from spyrec.bundle.constants import ConstantForm, HostArray
from spyrec.bundle.device_program import DeviceProgram
from spyrec.bundle.launch_artifacts import LaunchArtifacts
from spyrec.bundle.manifest import Manifest, Role
from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError, refuse
from spyrec.files.packed_files import Content, DamagedPackError
from spyrec.layout.conversion_table import DataConversionInfo

CONSTANTS_FILE = "constants.safetensors"
GRAPH_FILE = "graph.json"
OPSPECS_FILE = "opspecs.json"


@dataclass(frozen=True, slots=True, eq=False)
class BundleContent:
    """A compiled graph.

    ``programs`` are the programs of the plan; ``constants`` host arrays by argument name (read lazily where the
    bundle was loaded); ``dci`` the conversion tables by path; ``graph_json`` the graph it was compiled from,
    ``opspecs_json`` the OpSpecs that it was generated from instead.
    ``root``: the directory it was read from, for messages.  ``has_altered_constants``: known where a bundle was
    loaded unverified, for ``--bisect``.  ``correction_slots``: of each launch artefact that is made, 1 to 16.
    ``read_artifacts``: those that came with these programs and this manifest.  ``kept_files``: what is written of this
    bundle, where it is known.
    """

    manifest: Manifest
    programs: tuple[DeviceProgram, ...]
    constants: Mapping[str, HostArray] = field(default_factory=dict[str, HostArray])
    dci: Mapping[str, DataConversionInfo] = field(default_factory=dict[str, DataConversionInfo])
    graph_json: bytes | None = None
    has_altered_constants: bool = False
    root: str | None = None
    correction_slots: int = 1
    read_artifacts: LaunchArtifacts | None = None
    opspecs_json: bytes | None = None
    kept_files: KeptFiles | None = None

    def __post_init__(self) -> None:
        read = self.read_artifacts
        if read is None or not read.are_of(self.programs, self.manifest, self.correction_slots):
            made = LaunchArtifacts(self.programs, self.manifest, self.correction_slots, {})
            object.__setattr__(self, "read_artifacts", made)

    @property
    def artifacts(self) -> LaunchArtifacts:
        """The launch artefact of each program of the plan, by the program's directory; made where none was read."""
        assert self.read_artifacts is not None
        return self.read_artifacts


@dataclass(frozen=True, slots=True, eq=False)
class KeptFiles:
    """The files of a bundle by path, constants and manifest apart; they are those of ``programs`` and what follows.

    ``manifest_text``: the manifest as it is written without files.
    """

    programs: tuple[DeviceProgram, ...]
    manifest: Manifest
    dci: Mapping[str, DataConversionInfo]
    texts: tuple[bytes | None, bytes | None, int]
    files: Mapping[str, Content]
    manifest_text: bytes

    @classmethod
    def of(cls, content: BundleContent, files: Mapping[str, Content], manifest_text: bytes) -> KeptFiles:
        """Return the files that were made of a bundle."""
        return cls(content.programs, content.manifest, content.dci, _texts(content), files, manifest_text)

    def are_of(self, content: BundleContent) -> bool:
        """Whether these are the files of exactly these objects: a changed copy of a bundle needs its own."""
        is_same = self.programs is content.programs and self.manifest is content.manifest and self.dci is content.dci
        return is_same and self.texts == _texts(content)


def _texts(content: BundleContent) -> tuple[bytes | None, bytes | None, int]:
    return content.graph_json, content.opspecs_json, content.correction_slots


def unreadable(error: DamagedPackError) -> SpyrecError:
    """Return the error SPY0775 of a kept bundle whose hash was right, and that is still not what we pack."""
    hint = "remove the directory of --cache: somebody else writes there"
    return refuse("SPY0775", f"a bundle that was kept cannot be read: {error}", hint=hint)


def constant_forms(manifest: Manifest) -> dict[str, ConstantForm]:
    """Return dtype and shape of every constant that the manifest lists."""
    return {
        item.name: ConstantForm(item.dtype, item.shape)
        for item in manifest.arguments
        if item.role is Role.CONSTANT and item.dtype is not None and item.shape is not None
    }
