"""NPZ, read and written by numpy's own format code. `numpy.savez` takes names as keywords, and some names of tensors are
those of its parameters; its reader also opens files of other kinds."""

from __future__ import annotations

import io
import zipfile
from typing import BinaryIO, Dict, Mapping, Union

import numpy as np

from ._dtypes import Array

CONTENT_TYPE = "application/x-npz"


def write(file: BinaryIO, tensors: Mapping[str, Array], compress: bool = False) -> None:
    """Writes an NPZ, of stored or of deflated members."""
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", method, allowZip64=True) as archive:
        for name, array in tensors.items():
            with archive.open(name + ".npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def dumps(tensors: Mapping[str, Array], compress: bool = False) -> bytes:
    """An NPZ as bytes.

    >>> sorted(loads(dumps({"file": np.ones(2), "a/b": np.array("x")})))
    ['a/b', 'file']
    """
    buffer = io.BytesIO()
    write(buffer, tensors, compress)
    return buffer.getvalue()


def read(file: BinaryIO) -> Dict[str, Array]:
    """The tensors of an NPZ, in its order; never unpickles."""
    tensors: Dict[str, Array] = {}
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            with archive.open(info) as member:
                name = info.filename[:-len(".npy")] if info.filename.endswith(".npy") else info.filename
                tensors[name] = np.lib.format.read_array(member, allow_pickle=False)
    return tensors


def loads(data: Union[bytes, bytearray, memoryview]) -> Dict[str, Array]:
    """The tensors of an NPZ in memory."""
    return read(io.BytesIO(data))
