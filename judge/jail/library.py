"""Python's own library in memory, for programs that cannot read its files because they are root's alone.

Modules in Python wait as bytes, each until it is imported; those in C are loaded beforehand, since the loader of the
system wants a file.
"""

import contextlib
import fcntl
import importlib.machinery
import importlib.util
import marshal
import mmap
import os
import re
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

# not for programs: tests, editors, installers, windows
_LEFT_OUT = {"test", "tests", "idlelib", "idle_test", "lib2to3", "turtledemo", "tkinter", "ensurepip", "__pycache__"}
_NOT_LOADED = re.compile(r"_test|_xx|xx|_ctypes_test|_tkinter|_curses|nis|ossaudiodev|readline|spwd")
_HEADER = 16  # bytes, of a compiled file: magic number, flags, time and size of its source


class Library:
    """A finder and a loader of modules, for `sys.meta_path`."""

    def __init__(self, folders: Iterable[str]):
        """Reads all modules below these folders into a file in memory: of what is mapped, a fork copies nothing."""
        self._files: dict[str, tuple[Path, slice, bool]] = {}  # by module: path, place in it, whether it is compiled
        with _file_in_memory() as file:
            for name, path in (module for folder in folders for module in _modules(Path(folder))):
                if name not in self._files:
                    data, compiled = _read(path)
                    self._files[name] = path, slice(file.tell(), file.tell() + len(data)), compiled
                    file.write(data)
            file.flush()
            _seal(file.fileno())
            # private, so that nothing that is done to it reaches another process
            self._data = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ)

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        """Returns the spec of a module, None if it is not here, as `importlib.abc.MetaPathFinder` does."""
        if name not in self._files:
            return None
        file = self._files[name][0]
        return importlib.util.spec_from_file_location(
            name, file, loader=self, submodule_search_locations=[str(file.parent)] if file.stem == "__init__" else None
        )

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """Returns None, so that the import system creates the module as usual."""

    def exec_module(self, module: types.ModuleType) -> None:
        """Executes the module's code."""
        path, place, compiled = self._files[module.__spec__.name]
        data = self._data[place]
        exec(marshal.loads(data) if compiled else compile(data, path, "exec", dont_inherit=True), module.__dict__)


def extensions(folders: Iterable[str]) -> list[str]:
    """Returns the names of the C extension modules in these folders."""
    names = {path.name.partition(".")[0] for folder in folders for path in Path(folder).glob("*.so")}
    return sorted(name for name in names if not _NOT_LOADED.match(name))


def _file_in_memory() -> BinaryIO:
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("library", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), "w+b")
    import tempfile  # here, since it brings many modules along

    return tempfile.TemporaryFile()


def _seal(file: int) -> None:
    """Makes a file in memory immutable for all who have it open."""
    if hasattr(os, "memfd_create"):
        seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)


def _modules(folder: Path, prefix: str = "") -> Iterator[tuple[str, Path]]:
    """Yields the name and file of each module in a folder of the library."""
    for path in sorted(folder.iterdir()):
        if path.suffix == ".py" and path.stem.isidentifier():
            yield (prefix.removesuffix(".") if path.stem == "__init__" else prefix + path.stem), path
        elif path.name.isidentifier() and path.name not in _LEFT_OUT and (path / "__init__.py").exists():
            yield from _modules(path, f"{prefix}{path.name}.")


def _read(path: Path) -> tuple[bytes, bool]:
    """Returns a module's data and whether it is bytecode, which it is if a cached file matches the source."""
    with contextlib.suppress(OSError, NotImplementedError):
        data, stat = Path(importlib.util.cache_from_source(path)).read_bytes(), path.stat()
        of_source = [stat.st_mtime_ns // 10**9 & 0xFFFFFFFF, stat.st_size & 0xFFFFFFFF]
        header = [int.from_bytes(data[at : at + 4], "little") for at in (4, 8, 12)]
        if data[:4] == importlib.util.MAGIC_NUMBER and header == [0, *of_source]:
            return data[_HEADER:], True
    return path.read_bytes(), False
