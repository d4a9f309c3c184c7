"""The launch artefacts of a bundle: read with it, or made when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256

from spyrec.bundle.device_program import DeviceProgram, ProgramFacts
from spyrec.bundle.image_table import ImageTable, ImageTables, write_table
from spyrec.bundle.launch_plan import LaunchArtifact
from spyrec.bundle.manifest import Manifest, PlanStep
from spyrec.bundle.program_image import program_files
from spyrec.bundle.spyrecode import artifact_of
from spyrec.files.packed_files import Content


def steps_by_program(manifest: Manifest) -> dict[str, PlanStep]:
    """Return the first step that runs each program, those outside of the plan included, by the program's directory."""
    return {step.program: step for step in reversed(manifest.steps)}


class LaunchArtifacts(Mapping[str, LaunchArtifact]):
    """The launch artefact of each program of a plan, by the program's directory.

    ``read``: those that came with the bundle; the others are made of the programs when asked for, each once, with
    ``slots`` correction slots.
    """

    def __init__(
        self, programs: Sequence[DeviceProgram], manifest: Manifest, slots: int, read: Mapping[str, LaunchArtifact]
    ) -> None:
        self._programs = programs
        self._manifest = manifest
        self._slots = slots
        self._steps = steps_by_program(manifest)
        self._by_directory = {item.directory: item for item in programs if item.directory in self._steps}
        self._known = dict(read)
        self._tables: ImageTables | None = None
        self._found: dict[str, ImageTable] = {}
        self._digests: dict[str, str] = {}

    def __getitem__(self, directory: str) -> LaunchArtifact:
        if directory not in self._known:
            self._known[directory] = self.made_of(directory, program_files(self._by_directory[directory]))
        return self._known[directory]

    def __contains__(self, directory: object) -> bool:
        return directory in self._by_directory  # without making the artefact

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_directory)

    def __len__(self) -> int:
        return len(self._by_directory)

    def are_of(self, programs: Sequence[DeviceProgram], manifest: Manifest, slots: int) -> bool:
        """Whether these are the artefacts of exactly these objects: a changed copy of a bundle needs its own."""
        return self._programs is programs and self._manifest is manifest and self._slots == slots

    def made_of(self, directory: str, files: Mapping[str, bytes]) -> LaunchArtifact:
        """Return an artefact without keeping it; ``files`` are those of the program, for a caller that has them."""
        if directory in self._known:
            return self._known[directory]
        return artifact_of(files, self._table_of(directory), self._slots)

    def written_of(self, directory: str) -> Mapping[str, Content] | None:
        """Return the files of an artefact that was written for the same table before, ``None`` where none was."""
        written = self._by_directory[directory].written
        if written is None or directory in self._known:
            return None
        return written.artifacts.get((self.digest_of_table(directory), self._slots))

    def digest_of_table(self, directory: str) -> str:
        """Return the SHA-256 of the table that a program is launched with."""
        if directory not in self._digests:
            self._digests[directory] = sha256(write_table(self._table_of(directory))).hexdigest()
        return self._digests[directory]

    def facts_of(self, directory: str) -> ProgramFacts:
        """Return what a program says of its launches."""
        self._table_of(directory)
        assert self._tables is not None
        return self._tables.facts[directory]

    def _table_of(self, directory: str) -> ImageTable:
        self._tables = self._tables or ImageTables(self._manifest)
        if directory not in self._found:
            self._found[directory] = self._tables.of(self._by_directory[directory], self._steps[directory])
        return self._found[directory]
