#!/bin/sh
# A trace read by another program: Python's h5py, against what `man pipelag-trace` says.
python=/usr/bin/python3
if ! $python -c 'import h5py' 2>/dev/null; then
    echo '1..0 # SKIP no h5py (package python3-h5py)'
    exit 0
fi
. "$top_srcdir/tests/tap.sh"
"$(dirname "$PIPELAG")/../tests/make_trace" every "$work/e.h5" &&
    "$(dirname "$PIPELAG")/../tests/make_trace" plain "$work/p.h5"
ok $? 'sample traces'
$python -B "$top_srcdir/tests/check_h5py.py" "$work/e.h5" "$work/p.h5" \
    "$top_srcdir/man/pipelag-trace-format.h2m" >"$work/out" 2>&1
status=$?
sed 's/^/# /' "$work/out"
ok $status 'h5py finds what the manual says'

# what others add or leave out
$python -B - "$work/p.h5" <<'PYTHON'
import h5py, shutil, sys
path = sys.argv[1]
def variant(name, edit):
    shutil.copy(path, path + name)
    with h5py.File(path + name, "r+") as f:
        edit(f)
T = "/arms/adamw+gpipe/timeline"
def extra(f):
    f["/extra/x"] = [1, 2]
    f[T + "/note"] = [1.5]
    f["/arms/adamw+gpipe"].attrs["tags"] = ["a", "b"]
    f["/link"] = h5py.SoftLink("/arms")
def replace(f, name, data, **how):
    del f[name]
    f.create_dataset(name, data=data, **how)
variant(".extra", extra)
variant(".missing", lambda f: f.__delitem__(T + "/start"))
variant(".type", lambda f: replace(f, T + "/start", f[T + "/start"][:].astype("f8")))
variant(".rows", lambda f: replace(f, T + "/start", f[T + "/start"][:-1]))
variant(".two", lambda f: replace(f, T + "/start", f[T + "/start"][:].reshape(-1, 1)))
variant(".enum", lambda f: replace(f, T + "/kind", f[T + "/kind"][:].astype("i1")))
variant(".group", lambda f: replace(f, T, [1]))
variant(".major", lambda f: f.attrs.__setitem__("schema_version", [2, 0]))
variant(".other", lambda f: f.attrs.__delitem__("Conventions"))
PYTHON
ok $? 'variants'
run 0 "$PIPELAG" trace check "$work/p.h5.extra" &&
    run 0 "$PIPELAG" trace diff "$work/p.h5" "$work/p.h5.extra"
ok $? 'unknown members are skipped'
# faulty SUFFIX TEXT
faulty() {
    run 3 "$PIPELAG" trace check "$work/p.h5$1" && grep -qF -- "$2" "$work/out" &&
        [ "$(wc -l <"$work/out")" -eq 1 ]
    ok $? "named: $2"
}
faulty .missing "/arms/adamw+gpipe/timeline: column 'start' is missing"
faulty .type '/arms/adamw+gpipe/timeline/start: wrong type'
faulty .rows '/arms/adamw+gpipe/timeline/start: 135 rows, but kind has 136'
faulty .two '/arms/adamw+gpipe/timeline/start: not one-dimensional'
faulty .enum '/arms/adamw+gpipe/timeline/kind: wrong type'
faulty .group '/arms/adamw+gpipe/timeline: not a readable group'
faulty .major '/schema_version is not of major version 1'
faulty .other 'not a pipelag trace: no attribute /Conventions'
done_testing
