#!/bin/sh
# Runs the examples that users read: lines that start with `pipelag` in the EXAMPLES of
# man/*.h2m and in the ```sh blocks of README.md, page by page, in an empty folder with a copy
# of experiments/, a small text in data/austen.txt and a small vocabulary in gpt2/. A line may
# end with `# exit status N`; otherwise 0 is expected. A ```text block of README.md shows lines
# that the command before it prints.
. "$top_srcdir/tests/tap.sh"
mkdir "$work/bin"
ln -s "$PIPELAG" "$work/bin/pipelag"
PATH=$work/bin:$PATH
export PATH

# examples_of FILE: its commands, as the shell sees them.
examples_of() {
    case $1 in
    *.md) awk '/^```/ { inside = ($0 == "```sh") } inside && /^pipelag /' "$1" ;;
    *) sed -n 's/\\-/-/g; s/\\e/\\/g; /^pipelag /p' "$1" |
        sed -n '/^pipelag [a-z-]* *- /!p' ;; # not the NAME line
    esac
}

# try_examples FILE: runs them in a fresh folder; prints those with another exit status.
try_examples() {
    rm -rf "$work/page"
    mkdir -p "$work/page/data"
    cp -R "$top_srcdir/experiments" "$work/page/"
    cp -R "$top_srcdir/tests/vocab" "$work/page/gpt2"
    chmod -R u+w "$work/page"
    for _ in 1 2 3; do cat "$top_srcdir/COPYING"; done >"$work/page/data/austen.txt"
    wrong=0
    examples_of "$1" >"$work/examples"
    while IFS= read -r line; do
        want=$(expr "$line" : '.*# exit status \([0-9]*\)$') || want=0
        (cd "$work/page" && eval "$line") >"$work/out" 2>&1 </dev/null
        got=$?
        [ "$got" -eq "$want" ] && continue
        wrong=1
        echo "# $line: exit status $got, expected $want"
        sed 's/^/#   /' "$work/out" | tail -n 10
    done <"$work/examples"
    return $wrong
}

# shown_is_real FILE.md: every line of a ```text block is printed by the command before it.
shown_is_real() {
    wrong=0 inside='' command=''
    while IFS= read -r line; do
        case $line in
        '```text') (cd "$work/page" && eval "$command") >"$work/out" 2>&1 </dev/null ;;
        esac
        case $line in
        '```'*) inside=${line#'```'} ;;
        *)
            if [ "$inside" = sh ]; then
                command=$line
            elif [ "$inside" = text ] && ! grep -qFx -e "$line" "$work/out"; then
                echo "# not printed: $line"
                wrong=1
            fi
            ;;
        esac
    done <"$1"
    return $wrong
}

for page in "$top_srcdir"/man/*.h2m "$top_srcdir/README.md"; do
    [ -n "$(examples_of "$page")" ] || continue
    try_examples "$page"
    ok $? "examples of $(basename "$page") run"
done
shown_is_real "$top_srcdir/README.md"
ok $? 'the output shown in README.md is real'
printf '```sh\npipelag --version\n```\n```text\nnot this\n```\n' >"$work/bad.md"
! shown_is_real "$work/bad.md" >"$work/said"
ok $? 'output that is not real is noticed'
echo 'pipelag --no-such-option' >"$work/bad.h2m"
try_examples "$work/bad.h2m" >"$work/said"
[ $? -eq 1 ] && grep -q 'exit status 2, expected 0' "$work/said"
ok $? 'a failing example is noticed'
done_testing
