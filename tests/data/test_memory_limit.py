"""`memory_limit` of files four times as large, by the private memory of a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

M, LIMIT = 4000, 40_000_000
NUMBERS = 40
"""For every column, beside the limit."""
SPARE = 6_000_000
"""What the allocator and the packages take beside it."""
ROOT = Path(__file__).parents[2]

SCRIPT = """
import gc, json, sys
import numpy as np
from benchmarks.scale.out_of_core import Peak, private
from blockl0 import l0_path, solve
from blockl0.storage import opened

path, name, limit = sys.argv[1], sys.argv[2], float(sys.argv[3])

def stored(path):
    if name != "hdf5":
        return path
    import h5py
    return h5py.File(path, "r")["X"]

y, given = np.load(path + ".y.npy"), {"n_nonzero_coefs": 5, "effort": "fast", "random_state": 0}
# the same way once before, on a small part: compilers and packages are loaded
rng = np.random.default_rng(0)
small = rng.standard_normal((200, 1500))
np.save(path + ".small.npy", np.asfortranarray(small))
solve(path + ".small.npy", small[:, :3].sum(axis=1), memory_limit=1e5, **given)
opened(stored(path), limit).columns(np.arange(3))
gc.collect()
before, peak = private(), Peak()
result = solve(stored(path), y, memory_limit=limit, **given)
print(json.dumps({"MiB": peak.end() - before, "passes": result.n_passes,
                  "support": result.support.tolist(), "certified": result.certificate.holds}))
"""


def write(folder, name, dtype):
    """A file of four limits, and y of three of its columns."""
    n = int(4 * LIMIT / (M * np.dtype(dtype).itemsize)) + 1
    rng = np.random.default_rng(0)
    path, y = str(folder / f"X.{'npy' if name == 'npy' else name}"), rng.standard_normal(M)
    chunk, step, true = 64, 1280, [7, n // 2, n - 1]
    out = None
    if name == "npy":
        out = np.lib.format.open_memmap(path, "w+", dtype, (M, n), fortran_order=True)
    elif name == "zarr":
        zarr = pytest.importorskip("zarr")
        out = zarr.create_array(path, shape=(M, n), chunks=(M, chunk), dtype=dtype)
    else:
        h5py = pytest.importorskip("h5py")
        out = h5py.File(path, "w").create_dataset("X", (M, n), dtype, chunks=(M, chunk))
    for start in range(0, n, step):
        X = rng.integers(-100, 101, (min(step, n - start), M), dtype=np.int8).T
        out[:, start : start + step] = X.astype(dtype)
        y += sum(X[:, j - start] / 30.0 for j in true if start <= j < start + step)
    if name == "hdf5":
        out.file.close()
    np.save(path + ".y.npy", y)
    return path, n, true


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="Linux tells it only")
@pytest.mark.parametrize(("name", "dtype"), [
    ("npy", "float64"), ("npy", "float32"), ("npy", "float16"), ("npy", "int8"),
    ("zarr", "float64"), ("zarr", "int8"), ("hdf5", "float64"), ("hdf5", "float32"),
])  # fmt: skip
def test_a_file_of_four_limits_is_solved_within_one(tmp_path, name, dtype):
    path, n, true = write(tmp_path, name, dtype)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, path, name, str(LIMIT)],
        capture_output=True, text=True, cwd=ROOT, check=False, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["certified"] and set(true) <= set(found["support"])
    assert found["passes"] <= 12
    assert found["MiB"] * 2**20 <= LIMIT + 8 * NUMBERS * n + SPARE, found


STREAM = """
import resource, sys
import numpy as np
from blockl0.app.cli import main
from blockl0.app.tables import chunks

small, large, room = sys.argv[1], sys.argv[2], int(sys.argv[3])
# parts of 1 instead of 32 MB, so that a folder of fifty is many of them
chunks.CHUNK_BYTES = 1 << 20

def fit(folder, more):
    sys.argv = ["blockl0", "fit", folder, "--target", "y", "-k", "2", "--quiet", *more]
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code

fit(small, [])
lines = open("/proc/self/status").read().splitlines()
used = next(int(line.split()[1]) for line in lines if line.startswith("VmData")) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (used + room, used + room))
try:
    np.ones(2 * room // 8)
except MemoryError:
    print("LIMITED")
fit(large, ["--out", large + ".json"])
print("DONE")
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the limit is one of Linux")
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_folder_larger_than_the_memory_is_streamed(tmp_path, kind):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    # text takes several times its bytes while it is read, and far more time
    rows, n_files, n = (100_000, 12, 15) if kind == "parquet" else (10_000, 12, 60)
    room, times = 36 << 20, 3.0 if kind == "parquet" else 1.5
    rng, large, small = np.random.default_rng(0), tmp_path / "large", tmp_path / "small"
    for folder, files, m in ((small, 2, 500), (large, n_files, rows)):
        folder.mkdir()
        for i in range(files):
            X = rng.standard_normal((m, n)).round(3) + 100.0
            table = pd.DataFrame(X, columns=[f"c{j}" for j in range(n)])
            table["y"] = X[:, 3] - 2.0 * X[:, 11] + rng.standard_normal(m).round(3)
            path = folder / f"part{i:02d}.{kind}"
            table.to_parquet(path) if kind == "parquet" else table.to_csv(path, index=False)
    # as numbers the folder is more than what the process may take
    assert 8 * rows * n_files * (n + 1) > times * room
    done = subprocess.run(
        [sys.executable, "-c", STREAM, str(small), str(large), str(room)],
        capture_output=True, text=True, cwd=ROOT, check=False, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "LIMITED" in done.stdout and done.stdout.endswith("DONE\n")
    model = json.loads(Path(f"{large}.json").read_text(encoding="utf-8"))
    assert "c11" in json.dumps(model) and "c3" in json.dumps(model)
