# pipelag run against its surroundings: what is in the way is named before any training, two
# runs do not share an output, what is killed is resumed.
. "$top_srcdir/tests/tap.sh"
cd "$work" || exit 99

cat >tiny.yaml <<'Y'
model: {layers: 2, hidden: 16, heads: 2, ffn: 24}
train: {updates: 4, batch: 4, seq: 16, eval_every: 2, eval_sequences: 3, threads: 1, checkpoint_s: 0}
schedule: {stages: 2, microbatches: 2, name: 2bw}
Y
train() { # STATUS ARGUMENTS...
    status=$1
    shift
    run "$status" "$PIPELAG" run tiny.yaml -o a.h5 "$@"
}
untouched() { [ "$(ls -d a* 2>/dev/null | tr '\n' ' ')" = "$1" ]; }

mkfifo a.h5.progress.jsonl && train 1 && grep -q 'a.h5.progress.jsonl: \(is not a regular\|No such device\)' err &&
    untouched 'a.h5.progress.jsonl '
ok $? 'a pipe in place of the progress file'
rm -f a.h5*

echo file >a.h5.ckpt && train 2 && grep -q 'a.h5.ckpt: is no folder' err && [ ! -e a.h5 ]
ok $? 'a file in place of the folder of checkpoints'
rm -f a.h5*

ln -s /nowhere/at/all a.h5.ckpt && train 1 && grep -q 'a.h5.ckpt: No such file' err && [ ! -e a.h5 ]
ok $? 'a link to nowhere there'
rm -f a.h5*

mkdir -p a.h5.ckpt/run-1.ckpt && train 2 --resume && grep -q 'run-1.ckpt: is no file, expected a checkpoint' err &&
    train 1 --force && grep -q 'run-1.ckpt: Is a directory' err && [ ! -e a.h5 ]
ok $? 'a folder in place of a checkpoint'
rm -rf a.h5*

train 1 --save /dev/null/x && grep -q -e '--save: /dev/null/x: Not a directory' err && untouched '' &&
    train 2 --save tiny.yaml && grep -q -e '--save: tiny.yaml: is no folder' err && untouched '' &&
    train 1 --save '' && untouched '' && train 1 --save no/where && grep -q 'no/where: No such' err && untouched '' &&
    mkdir w && echo >w/run-1 && train 2 --save w && grep -q 'w/run-1: is no folder' err && untouched '' &&
    [ "$(ls w)" = run-1 ] && [ ! -e no ]
ok $? '--save where nothing can be saved is refused before anything is written'

# trains PID: waits until it has a process that trains, having caught SIGTERM (signal 15; SIGHUP is
# caught with it), at most 20 s
trains() {
    n=0
    until { [ $((0x$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status") & 0x4000)) -ne 0 ] &&
        [ -n "$(cat "/proc/$1/task/$1/children")" ]; } 2>/dev/null || [ $n -gt 200 ]; do
        sleep 0.1
        n=$((n + 1))
    done
}
# the lock is the progress file's: held here by a run that waits inside its long first evaluation
long='--set train.eval_sequences=1000000'
"$PIPELAG" run tiny.yaml -o a.h5 $long >/dev/null 2>log & first=$!
n=0
until [ -d a.h5.ckpt ] || [ $n -gt 200 ]; do sleep 0.1; n=$((n + 1)); done
train 2 && grep -q "another 'pipelag run' is writing it" err && train 2 --resume &&
    grep -q another err && train 2 --force && grep -q another err
ok $? 'a second run on an output is refused, also by force'
trains $first
sleep 0.3
kill -TERM $first
wait $first
got=$?
[ $got = 143 ] && grep -q 'interrupted; resume with: .*--resume' log && [ -e a.h5.ckpt/run-1.ckpt ]
ok $? "SIGTERM inside an evaluation: 143 and a checkpoint, not after it (was $got)"
rm -rf a.h5*

# a job's process alone is stopped: no result may be made of its part
long='--set train.updates=100000'
"$PIPELAG" run tiny.yaml -o a.h5 $long --set train.checkpoint_updates=2 >out 2>log & first=$!
n=0
until [ -e a.h5.ckpt/run-1.ckpt ] || [ $n -gt 200 ]; do sleep 0.1; n=$((n + 1)); done
kill -TERM $(cat /proc/$first/task/$first/children)
wait $first
got=$?
[ $got = 1 ] && grep -q 'run, seed 1: its process was told to stop' log && grep -q 'what was done is kept; resume with' log &&
    [ ! -s out ] && [ ! -e a.h5 ] && [ -e a.h5.ckpt/run-1.ckpt ]
ok $? "a stopped job is no finished one (was $got)"
if [ $((0x$(sed -n 's/^SigIgn:[[:space:]]*[0-9a-f]*\(.\)$/\1/p' /proc/self/status) & 1)) -eq 0 ]; then
    n=0
    "$PIPELAG" run tiny.yaml -o a.h5 $long --resume --set train.checkpoint_updates=2 >out 2>log & first=$!
    until grep -q '^pipelag: 1 run ' log || [ $n -gt 200 ]; do sleep 0.1; n=$((n + 1)); done
    trains $first
    kill -HUP $first
    wait $first
    got=$?
    [ $got = 129 ] && grep -q 'interrupted; resume with' log
    ok $? "SIGHUP, of a closed terminal: as the others (was $got)"
else
    skip 'SIGHUP, of a closed terminal' 'this runs under nohup, and so would a run'
fi
rm -rf a.h5*

# a limit of the size of files, as a full disk makes writes fail; 1 block is 512 or 1024 bytes
if (ulimit -f 1) 2>/dev/null; then
    train 0 --save w2 && cp w2/run-1/model.safetensors old && rm -f a.h5* &&
        (trap '' XFSZ && ulimit -f 8 && train 1 --force --save w2 --set optimizer.lr=0.1) &&
        grep -q 'cannot write' err && cmp -s old w2/run-1/model.safetensors &&
        [ "$(ls -A w2/run-1 | tr '\n' ' ')" = 'config.json model.safetensors ' ]
    ok $? 'no room for weights: those of before stay, and nothing else'
else
    skip 'no room for weights' 'no ulimit -f'
fi
rm -rf a.h5*

warns() { # KEY ARGUMENTS...
    key=$1
    shift
    run 0 "$PIPELAG" run tiny.yaml --dry-run "$@" && grep -q "$key has no effect" err
}
warns cluster.preset --set cluster.preset=dgx-h100 && warns parallel.tp --set parallel.tp=2 &&
    warns schedule.group --set schedule.group=2 && warns schedule.max_activations --set schedule.max_activations=2
ok $? 'keys of costs and schedules that a run does not read are named'
done_testing
