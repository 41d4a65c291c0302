# Shell half of the harness: sourced by tests/*.sh. Counts, prints TAP, makes a folder $work
# that is removed at the end. The test ends with `done_testing`.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
tap_n=0

# ok STATUS TITLE: the subtest passed when STATUS is 0.
ok() {
    tap_n=$((tap_n + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $tap_n - $2"
    else
        echo "not ok $tap_n - $2"
    fi
}

skip() {
    tap_n=$((tap_n + 1))
    echo "ok $tap_n - $1 # SKIP $2"
}

# run STATUS COMMAND...: passes when the exit status is as expected; output in $work/out, err.
run() {
    tap_want=$1
    shift
    "$@" >"$work/out" 2>"$work/err"
    tap_got=$?
    [ "$tap_got" -eq "$tap_want" ] && return 0
    echo "# '$*' exit status $tap_got, expected $tap_want"
    sed 's/^/# /' "$work/out" "$work/err" | head -n 20
    return 1
}

# whole FILE: its lines, those of `run` that are broken for width put together again.
whole() {
    awk '/^            [^ ]/ { line = line " " substr($0, 13); next }
        NR > 1 { print line } { line = $0 } END { print line }' "$1"
}

done_testing() { echo "1..$tap_n"; }
