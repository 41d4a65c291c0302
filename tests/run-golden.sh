#!/bin/sh
# run-golden.sh FILE.test - run `pipelag ARGS` and compare what it prints, stdout and stderr
# together, with the text after the line "want:" (to the end of the file). Fields before it:
#   title: one line      args: words for the shell      exit: status (0 when absent)
set -u
file=$1
field() { sed -n "/^want:/q; s/^$1: *//p" "$file"; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
title=$(field title)
args=$(field args)
want_status=$(field exit)
sed '1,/^want:$/d' "$file" >"$work/want"
: "${title:?}" "${args:?}"
(cd "$top_srcdir" && eval "\"\$PIPELAG\" $args") >"$work/got" 2>&1
status=$?
echo 1..1
if [ "$status" = "${want_status:-0}" ] && cmp -s "$work/want" "$work/got"; then
    echo "ok 1 - $title"
    exit
fi
echo "# pipelag $args: exit status $status, expected ${want_status:-0}"
diff -u "$work/want" "$work/got" | sed 's/^/# /'
echo "not ok 1 - $title"
