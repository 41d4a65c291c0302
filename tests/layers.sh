#!/bin/sh
# Every #include of the library against the layering: the table below is the only place
# that grants an edge. Planted violations prove that the check sees them.
set -u
src=${top_srcdir:-$(dirname "$0")/..}
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
folders="base sim gpu train theory traces cli"

# FILE PATTERN TAB HEADER PATTERN (extended regular expressions, whole match).
cat >"$tmp/table" <<'TABLE'
base/.*	base/.*
sim/.*	(base|sim)/.*
gpu/.*	(base|gpu)/.*
train/.*	(base|train)/.*|gpu/(device|svd|host_lapack|timed)\.h|sim/(versions|model)\.h
theory/.*	(base|theory)/.*|sim/versions\.h
traces/.*	(base|traces)/.*
traces/record\.[ch]	sim/.*|train/run\.h|theory/claim\.h
cli/.*	(base|sim|gpu|train|theory|traces|cli)/.*
.*	config\.h
base/yaml\.c	yaml\.h
base/xml\.c	expat\.h
base/file\.c	zlib\.h
base/json_read\.c	jansson\.h
base/mpi\.c	mpi\.h
base/rng\.c	Random123/.*
gpu/host[^/]*\.[ch]	cblas\.h|immintrin\.h
gpu/cuda_load\.c	dlfcn\.h
gpu/.*\.cuh?	cuda.*|cublas.*|nvtx3/nvToolsExt\.h|cusolver.*|mma\.h|cstd[a-z]+|cmath|cstring
theory/.*	gsl/.*
traces/h5\.c	hdf5\.h
.*	(assert|complex|ctype|errno|fenv|float|inttypes|limits|locale|math|setjmp)\.h
.*	(signal|std[a-z]+|string|strings|tgmath|threads|time|uchar|wchar|wctype)\.h
.*	(argp|dirent|fcntl|fnmatch|getopt|glob|malloc|poll|pthread|sched|spawn|unistd|sys/[a-z]+)\.h
TABLE

# Print "FILE:LINE: HEADER" for every include of the tree $1 that the table does not grant.
check() {
    (cd "$1" && find $folders -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort |
        xargs awk '
            /^[ \t]*#[ \t]*include/ {
                header = $0
                sub(/^[ \t]*#[ \t]*include[ \t]*/, "", header)
                sub(/^["<]/, "", header)
                sub(/[">].*$/, "", header)
                print FILENAME "\t" FNR "\t" header
            }') >"$tmp/includes"
    awk -F '\t' '
        NR == FNR { files[NR] = "^(" $1 ")$"; headers[NR] = "^(" $2 ")$"; n = NR; next }
        {
            granted = 0
            for (i = 1; i <= n && !granted; i++)
                granted = $1 ~ files[i] && $3 ~ headers[i]
            # the inside of a configuration, and its YAML, belong to its own files
            if ($3 ~ /^base\/(config_types|yaml)\.h$/ && $1 !~ /^base\/(config|yaml)/)
                granted = 0
            if ($3 ~ /\.c$|\.\.\//) granted = 0
            if (!granted) print $1 ":" $2 ": " $3
        }' "$tmp/table" "$tmp/includes"
}

number=0
tap() { # STATUS NAME
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; fi
}

check "$src" >"$tmp/bad"
sed 's/^/# /' "$tmp/bad"
test ! -s "$tmp/bad"
tap $? "every include is granted"
test "$(wc -l <"$tmp/includes")" -ge 100
tap $? "the search saw the includes"

mkdir "$tmp/tree"
for folder in $folders; do
    mkdir "$tmp/tree/$folder"
    for file in "$src/$folder"/*.[ch]; do
        [ -f "$file" ] && cat "$file" >"$tmp/tree/$folder/${file##*/}"
    done
done

# FILE INCLUDE
while read -r file include; do
    cp "$tmp/tree/$file" "$tmp/kept" 2>/dev/null || : >"$tmp/kept"
    echo "#include $include" >>"$tmp/tree/$file"
    check "$tmp/tree" >"$tmp/bad"
    header=$(echo "$include" | tr -d '<>"')
    grep -q "^$file:[0-9]*: $header\$" "$tmp/bad"
    tap $? "caught: $file includes $header"
    cp "$tmp/kept" "$tmp/tree/$file"
done <<'PLANTED'
base/err.c "sim/model.h"
base/config.c <yaml.h>
base/units.c <zlib.h>
base/json.c <jansson.h>
base/units.c <expat.h>
base/log.c <mpi.h>
cli/planted.c <mpi.h>
base/log.c "base/config_types.h"
sim/planted.c "train/run.h"
sim/planted.c "base/config_types.h"
gpu/planted.c "sim/model.h"
gpu/planted.c <cblas.h>
gpu/planted.c <cuda_runtime.h>
gpu/planted.c <dlfcn.h>
train/planted.c "gpu/ops.h"
train/planted.c "sim/timeline.h"
train/planted.c "traces/trace.h"
theory/planted.c "train/run.h"
theory/planted.c <hdf5.h>
traces/planted.c "sim/timeline.h"
traces/planted.c <hdf5.h>
cli/planted.c <gsl/gsl_math.h>
cli/planted.c <Random123/philox.h>
cli/planted.c "../base/err.h"
cli/planted.c "base/err.c"
PLANTED
echo "1..$number"
