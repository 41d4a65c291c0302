#!/bin/sh
# Which folder may include which: every #include is held against this table. A new edge is a
# reviewed change here, not an accident.
. "$top_srcdir/tests/tap.sh"
cd "$top_srcdir" || exit 1

allowed() { # folder, file -> pattern of headers beyond libc
    case $1 in
    base) echo '^(base/|config\.h$|yaml\.h$|zlib\.h$|Random123/)' ;;
    sim) echo '^(base|sim)/' ;;
    gpu)
        case $2 in
        *.cu) echo '^(base/|gpu/|cuda|cublas|cub/|mma\.h|config\.h$)' ;;
        gpu/host*.c) echo '^(base/|gpu/|cblas\.h$|config\.h$)' ;;
        *) echo '^(base/|gpu/|config\.h$)' ;;
        esac ;;
    train) echo '^(base/|train/|gpu/(device|svd)\.h$|sim/(versions|model)\.h$)' ;;
    theory) echo '^(base/|theory/|gsl/|sim/versions\.h$)' ;;
    traces)
        case $2 in
        traces/h5.c) echo '^(base/|traces/|hdf5|H5|config\.h$)' ;;
        traces/record.*) echo '^(base/|traces/|sim/|train/run\.h$|theory/claim\.h$|config\.h$)' ;;
        *) echo '^(base/|traces/|config\.h$)' ;;
        esac ;;
    cli) echo '^(base|sim|gpu|train|theory|traces|cli)/|^config\.h$|^argp\.h$' ;;
    esac
}

# Headers of libc and of the compiler.
libc='^(argp|assert|complex|ctype|dirent|dlfcn|errno|fcntl|fenv|float|immintrin|inttypes|limits|locale|math|pthread|sched|signal|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn|string|strings|threads|time|unistd|sys/[a-z]+)\.h$'

# includes_of FILE: prints what FILE includes, without libc.
includes_of() {
    sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]([^>"]*)[>"].*/\1/p' "$1" |
        grep -vE "$libc"
}

bad() { # folder, file (as named in the table), path to read
    includes_of "$3" | grep -vE "$(allowed "$1" "$2")"
}

for folder in base sim gpu train theory traces cli; do
    status=0
    for file in $(find "$folder" -name '*.[ch]' -o -name '*.cu' | sort); do
        wrong=$(bad "$folder" "$file" "$file") && {
            echo "# $file includes" $wrong
            status=1
        }
    done
    ok $status "$folder/ includes only what it may"
done
printf '#include "sim/schedule.h"\n#include <stdio.h>\n' >"$work/wrong.c"
[ "$(bad train train/wrong.c "$work/wrong.c")" = sim/schedule.h ]
ok $? 'a forbidden include is found'
done_testing
