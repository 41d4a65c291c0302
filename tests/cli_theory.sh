#!/bin/sh
# pipelag theory: numbers of the reference tables through the command line, JSON keys, and
# bad values, each refused in one line with exit status 2.
. "$top_srcdir/tests/tap.sh"

# refused TEXT ARGS...: exit status 2, one line on stderr with TEXT, nothing on stdout.
refused() {
    want=$1
    shift
    run 2 "$PIPELAG" theory "$@" && [ "$(wc -l <"$work/err")" -eq 1 ] &&
        grep -qF -- "$want" "$work/err" && [ ! -s "$work/out" ]
    ok $? "refused: theory $*"
}

# key NAME VALUE: the JSON output has it (a prefix of the number's digits).
key() { grep -q "\"$1\": $2" "$work/out"; }

run 0 "$PIPELAG" theory stability --beta 0.9 --delay 1 --lookahead 1 --json &&
    key a_max 2.7015621187 && key closed_form 2.7015621187 && key sync_a_max '3[78]' &&
    key momentum '"heavy-ball"' && key delay 1 && key lookahead 1 && key beta 0.9 &&
    key formula '"(-1 + sqrt(1 + 4/(1 - beta)))/2"' && ! grep -q noise_ratio "$work/out"
ok $? 'error feedback at delay 1: closed form'
run 0 "$PIPELAG" theory stability --nesterov --json && key a_max '2.53[01]' &&
    key closed_form null && key formula null && key momentum '"nesterov"'
ok $? 'Nesterov at delay 1: no closed form'
run 0 "$PIPELAG" theory stability --a 0.5 --json && key noise_ratio '1.99[89]'
ok $? 'noise ratio of the reference table'
run 0 "$PIPELAG" theory stability --a 1.5 --json && key noise_ratio null
ok $? 'noise beyond the limit'
run 0 "$PIPELAG" theory stability --a 1.5 && grep -q 'not stable' "$work/out"
ok $? 'noise beyond the limit, in words'
run 0 "$PIPELAG" theory stability --table --json &&
    [ "$(grep -c . "$work/out")" -gt 0 ] && [ "$(grep -o a_max "$work/out" | wc -l)" -eq 50 ]
ok $? 'table as JSON'
quadratic='--delta 2 --smoothness 3 --sigma 0.5 --rho 4 --updates 1000'
run 0 "$PIPELAG" theory bound $quadratic --eta 0.01 --lookahead 1 --json &&
    key start 0.2 && key drift 1.75 && key noise 0.95766 && key A 2 && key B 3 &&
    key measure '"dual norm of the gradient"' && ! grep -q best "$work/out"
ok $? 'bound: the three terms'
run 0 "$PIPELAG" theory bound $quadratic --eta 0.01 --decay 0.1 --json &&
    key measure '"Frank-Wolfe gap"' && key start '\(2\|1.9999\)'
ok $? 'bound with decay: another measure'
run 0 "$PIPELAG" theory bound $quadratic --best && grep -q '^best: eta' "$work/out" &&
    ! grep -q 'as given' "$work/out"
ok $? 'recommendation without a rate'
run 0 "$PIPELAG" theory bound $quadratic --best --eta 1 && grep -q 'as given' "$work/out"
ok $? 'recommendation beside a given rate'

refused 'unknown topic' stabilty
refused '--beta' stability --beta 1
refused '--beta' stability --beta -0.1
refused '--beta' stability --beta nan
refused '--delay' stability --delay 1.5
refused '--delay' stability --delay -1
refused '--delay' stability --delay 1000000000000
refused '--lookahead' stability --lookahead x
refused '--a' stability --a 0
refused 'does not belong' stability --eta 1
refused 'does not belong' stability --best
refused 'does not belong' bound --a 1
refused 'does not belong' bound --table
refused '--eta is needed' bound $quadratic
refused '--delta is needed' bound --eta 1
refused 'lookahead' bound $quadratic --eta 1 --lookahead -1
refused 'eta * decay' bound $quadratic --eta 1 --decay 2
refused 'smoothness' bound --delta 2 --smoothness 0 --sigma 1 --rho 1 --updates 5 --best
run 2 "$PIPELAG" theory && grep -q "Try .pipelag theory --help" "$work/err"
ok $? 'no topic'
run 2 "$PIPELAG" theory stability bound
ok $? 'two topics'
done_testing
