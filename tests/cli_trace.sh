#!/bin/sh
# pipelag trace and pipelag figure: verdicts, exit statuses and one-line messages.
. "$top_srcdir/tests/tap.sh"
make_trace=$(dirname "$PIPELAG")/../tests/make_trace
cd "$work" || exit 1
"$make_trace" plain a.h5 && "$make_trace" plain b.h5 && "$make_trace" other c.h5 &&
    "$make_trace" every e.h5
ok $? 'sample traces'

cmp -s a.h5 b.h5
ok $? 'equal traces are equal bytes'

# says TEXT: one line, somewhere, and it has TEXT.
says() { [ "$(cat out err | wc -l)" -eq 1 ] && grep -qF -- "$1" out err; }

run 0 "$PIPELAG" trace check a.h5 e.h5 && [ "$(grep -c ': ok$' out)" -eq 2 ]
ok $? 'check: good traces'
head -c 5000 a.h5 >short.h5
echo hello >text.h5
: >empty.h5
run 3 "$PIPELAG" trace check a.h5 short.h5 text.h5 empty.h5 missing.h5 . &&
    [ "$(wc -l <out)" -eq 6 ] && grep -q '^a.h5: ok$' out &&
    grep -q '^short.h5: .*truncated' out && grep -q '^text.h5: not an HDF5' out &&
    grep -q '^empty.h5: empty' out && grep -q '^missing.h5: No such file' out &&
    grep -q '^\.: ' out && [ ! -s err ]
ok $? 'check: bad files, one line each'
run 2 "$PIPELAG" trace info short.h5 && says truncated
ok $? 'info: a bad file'

run 0 "$PIPELAG" trace info a.h5 && grep -q '^pipelag-trace 1' out &&
    grep -q 'start \[ps\]' out && grep -q 'schedule = gpipe' out
ok $? 'info'
run 0 "$PIPELAG" trace dump a.h5 && grep -qx '/arms/muon+gpipe/seeds/1/evals' out
ok $? 'dump: names of the tables'
run 0 "$PIPELAG" trace dump a.h5 /arms/muon+gpipe/seeds/1/evals &&
    [ "$(sed -n 1p out)" = 'update,time_s [s],loss [nat],loss_y [nat]' ] &&
    [ "$(wc -l <out)" -eq 21 ] && [ "$(sed -n 3p out | cut -d, -f1,2)" = 20,10 ]
ok $? 'dump: CSV with units'
run 2 "$PIPELAG" trace dump a.h5 /arms/muon+gpip/timeline && says "did you mean"
ok $? 'dump: the nearest table'

run 0 "$PIPELAG" trace diff a.h5 b.h5 && [ ! -s out ]
ok $? 'diff: equal'
run 3 "$PIPELAG" trace diff a.h5 c.h5 && says '/arms/adamw+gpipe/seeds/1/evals/loss[0]: '
ok $? 'diff: the first difference'
run 0 "$PIPELAG" trace diff --tolerance=0.5 a.h5 c.h5
ok $? 'diff: within the tolerance'
run 2 "$PIPELAG" trace diff a.h5 missing.h5 && says 'missing.h5: No such file'
ok $? 'diff: a missing file'
run 2 "$PIPELAG" trace diff a.h5 && says 'expected 2'
ok $? 'diff: one file'
run 2 "$PIPELAG" trace chekc a.h5 && says "did you mean 'check'"
ok $? 'unknown verb'
run 2 "$PIPELAG" trace check --tolerance=1e-3 a.h5 && says 'belongs to trace diff'
ok $? 'an option of another verb'

run 0 "$PIPELAG" figure gantt a.h5 -o g.svg && grep -q 'adamw+gpipe: gpipe, P = 4, m = 8' g.svg
ok $? 'figure gantt: the first arm'
run 2 "$PIPELAG" figure gantt a.h5 -o g.svg && says 'g.svg: exists'
ok $? 'figure: no implicit overwrite'
run 0 "$PIPELAG" figure gantt a.h5 --arm muon+gpipe --updates 1 --force -o g.svg &&
    grep -q 'muon+gpipe: ' g.svg && [ "$(grep -c 'title>BW' g.svg)" -eq 4 ]
ok $? 'figure gantt: arm and updates'
run 0 "$PIPELAG" figure gantt a.h5 --width 300 --shade chunk -o n.svg && grep -q 'muon\|gpipe' n.svg &&
    [ "$(grep -c '>device<' n.svg)" -gt 1 ] && ! cmp -s n.svg g.svg
ok $? 'figure gantt: folded to a width'
run 2 "$PIPELAG" figure gantt a.h5 --shade tua -o x.svg && says "did you mean 'tau'" && [ ! -e x.svg ]
ok $? 'figure gantt: unknown shade'
run 2 "$PIPELAG" figure gantt a.h5 --shade tau -o x.svg && says 'no version map' && [ ! -e x.svg ]
ok $? 'figure gantt: shade tau without a version map'
run 2 "$PIPELAG" figure gantt a.h5 --arm muon+gpip -o x.svg && says "did you mean 'muon+gpipe'" &&
    [ ! -e x.svg ]
ok $? 'figure gantt: unknown arm'
run 0 "$PIPELAG" figure curves a.h5 -o c.svg && grep -q 'adamw+gpipe' c.svg &&
    grep -q 'muon+gpipe' c.svg
ok $? 'figure curves'
run 2 "$PIPELAG" figure curves a.h5 -o c.jpeg && says 'expected .svg, .png or .pdf'
ok $? 'figure: unknown format'
run 2 "$PIPELAG" figure curves a.h5 --arm x -o d.svg && says 'belong to figure gantt'
ok $? 'figure: an option of another figure'
run 2 "$PIPELAG" figure pie a.h5 -o d.svg && says "unknown figure 'pie'"
ok $? 'unknown figure'
run 1 "$PIPELAG" figure curves a.h5 -o nowhere/c.svg && says 'nowhere'
ok $? 'figure: no such folder'
if command -v xmllint >/dev/null; then
    xmllint --noout g.svg c.svg
    ok $? 'xmllint takes the figures'
else
    skip 'xmllint takes the figures' 'no xmllint'
fi
run 2 env PATH=/nonexistent "$PIPELAG" figure curves a.h5 -o c.png &&
    says 'needs rsvg-convert' && [ ! -e c.png ]
ok $? 'png without a converter'
if command -v rsvg-convert >/dev/null; then
    run 0 "$PIPELAG" figure curves a.h5 -o c.png && run 0 "$PIPELAG" figure curves a.h5 -o c.pdf &&
        [ "$(head -c 4 c.pdf)" = '%PDF' ] && [ "$(head -c 4 c.png | tail -c 3)" = PNG ]
    ok $? 'png and pdf'
else
    skip 'png and pdf' 'no rsvg-convert'
fi
[ -z "$(find . -name '*.tmp*' -o -name '*.svg.*' -o -name '*.png.*')" ]
ok $? 'no temporary stays'
# what the simulator did is what the trace says: 2bw, P = 4, m = 4, delay 1
run 0 "$PIPELAG" sim --schedule 2bw -P 4 -m 4 --updates 6 --no-gantt -o sim.h5 &&
    run 0 "$PIPELAG" trace check sim.h5
ok $? 'a simulation as a trace'
arm=$("$PIPELAG" trace dump sim.h5 | sed -n 's|^\(/arms/.*\)/timeline$|\1|p')
"$PIPELAG" trace dump sim.h5 "$arm/timeline" >timeline.csv &&
    [ "$(grep -c '^F,' timeline.csv)" -eq 96 ] && [ "$(grep -c '^BW,' timeline.csv)" -eq 96 ] &&
    [ "$(grep -c '^U,' timeline.csv)" -eq 24 ] &&
    [ "$(awk -F, '$1 == "BW" { t += $6 - $5 } END { print t / 1e9 }' timeline.csv)" -eq 192 ]
ok $? 'timeline: every op, 2 ms each backward'
"$PIPELAG" trace dump sim.h5 "$arm/versions" >versions.csv &&
    awk -F, 'NR > 1 && ($3 - $4 != ($3 > 0) || $4 != $5 || $3 != int($2 / 4)) { bad = 1 }
        END { exit bad || NR != 97 }' versions.csv
ok $? 'versions: delay 1 after the first update'
"$PIPELAG" trace dump sim.h5 "$arm/messages" >messages.csv &&
    [ "$(grep -c '^F,' messages.csv)" -eq 72 ] && [ "$(grep -c '^B,' messages.csv)" -eq 72 ] &&
    awk -F, 'NR > 1 && ($3 - $2) ^ 2 != 1 { bad = 1 } END { exit bad }' messages.csv
ok $? 'messages: between neighbours'
run 0 "$PIPELAG" figure gantt sim.h5 --updates 2 -o sim.svg &&
    run 0 "$PIPELAG" figure gantt sim.h5 --shade tau -o tau.svg && grep -q 'delay tau 0 to 1' tau.svg &&
    grep -q '<title>F microbatch 5, update 1, tau 1</title>' sim.svg &&
    [ "$(grep -c '<title>U update 1<' sim.svg)" -eq 4 ] && ! grep -q 'U update 2<' sim.svg
ok $? 'figure gantt: delay as tooltip, first updates only'
if [ -c /dev/full ]; then
    "$PIPELAG" trace dump a.h5 /arms/adamw+gpipe/timeline >/dev/full 2>err
    [ $? -eq 1 ] && [ "$(wc -l <err)" -eq 1 ]
    ok $? 'dump: full disk'
else
    skip 'dump: full disk' 'no /dev/full'
fi
done_testing
