# pipelag run under mpirun: rows do not depend on how many ranks share a batch, equal runs
# give equal bytes, and no way of ending leaves a rank waiting for another.
. "$top_srcdir/tests/tap.sh"
cd "$work" || exit 99

cat > tiny.yaml <<'Y'
seeds: 1
model: {layers: 4, hidden: 16, heads: 2, kv_heads: 1, ffn: 24}
train: {updates: 7, batch: 16, seq: 16, eval_every: 3, eval_sequences: 4, diagnose: yes}
schedule: {stages: 4, microbatches: 4}
clip: {norm: 0.5}
axes:
  optimizer:
    adamw: {optimizer: {name: adamw}}
    muon: {optimizer: {name: muon, lr: 0.02}}
  pipeline:
    sync: {}
    2bw: {schedule: {name: 2bw}}
    2bw-ef: {schedule: {name: 2bw}, corrector: {name: feedback}, train: {replay: yes}}
    pipedream: {schedule: {name: pipedream, microbatches: 1}}
Y
# of long runs: rounding does not grow
sed 's/name: adamw/name: sgd, lr: 0.002, momentum: 0/' tiny.yaml > steady.yaml

if ! grep -q '^#define HAVE_MPI 1' "$(dirname "$PIPELAG")/../config.h"; then
    skip 'training under MPI' 'configured without --with-mpi'
    OMPI_COMM_WORLD_SIZE=2 run 2 "$PIPELAG" run tiny.yaml -o x.h5 && grep -q 'configure --with-mpi' err &&
        [ "$(wc -l < err)" = 1 ] && [ ! -e x.h5.progress.jsonl ]
    ok $? 'under mpirun without MPI: says so'
    done_testing
    exit
elif ! command -v mpirun > /dev/null; then
    skip 'training under MPI' 'no mpirun'
    done_testing
    exit
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Ranks of a loaded machine yield while they wait.
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_odls_base_sigkill_timeout=3 # seconds to SIGTERM, and from it to SIGKILL

# The first rank tells its process.
cat > rank <<'R'
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = 0 ] && echo $$ > first && mv first pid
exec "$PIPELAG" "$@"
R
chmod +x rank
# ranks N ARGS...: pipelag ARGS on N ranks, at most a minute.
ranks() {
    ranks_n=$1
    shift
    timeout -k 20 60 mpirun --oversubscribe --bind-to none -n "$ranks_n" ./rank "$@"
}
# said TEXT STATUS: the exit status was as expected, and pipelag said one line with TEXT.
said() {
    [ "$tap_got" = "$2" ] && [ "$(grep -c '^pipelag: ' err)" = 1 ] && grep -q "^pipelag: .*$1" err && return 0
    echo "# exit status $tap_got, expected $2 and: $1"
    sed 's/^/# /' err | head -20
    return 1
}

run 0 "$PIPELAG" run tiny.yaml -o one.h5 && cp out one.txt && run 0 ranks 2 run tiny.yaml -o two.h5 &&
    cp out two.txt && grep -q 'on 2 ranks' err
ok $? 'runs on 2 ranks'
# close A B TOLERANCE TABLE: the table of every run, to a relative tolerance
close() {
    for close_arm in $arms; do
        close_table=/arms/$close_arm/seeds/1/$4
        "$PIPELAG" trace dump "$1" "$close_table" > a.csv && "$PIPELAG" trace dump "$2" "$close_table" > b.csv || return 1
        paste -d, a.csv b.csv | awk -F, -v t="$3" -v name="$close_table" '
            { for (i = 1; i <= NF / 2; i++) {
                  x = $i; y = $(i + NF / 2); d = x - y; s = x * x > y * y ? x : y
                  if (x == y) continue
                  if (x ~ /nan|inf/ || y ~ /nan|inf/ || d * d > t * t * s * s) {
                      print "# " name " line " NR ": " x " vs " y; bad = 1; exit } }
              cells += NF / 2 }
            END { exit bad || cells < 20 }' || return 1
    done
}
arms=$(echo adamw+sync adamw+2bw adamw+2bw-ef adamw+pipedream muon+sync muon+2bw muon+2bw-ef muon+pipedream)
close one.h5 two.h5 1e-6 rows && close one.h5 two.h5 1e-6 evals
ok $? '2 ranks: rows and evaluations of 1 rank, to 1e-6'
# Newton-Schulz multiplies the roundings of small singular values by 3.4445^5, 2^-23 each
close one.h5 two.h5 6e-5 diagnosis
ok $? '2 ranks: diagnosis of 1 rank, to its rounding'
run 0 ranks 4 run tiny.yaml -o four.h5 && close one.h5 four.h5 1e-6 rows && close one.h5 four.h5 1e-6 evals &&
    close one.h5 four.h5 6e-5 diagnosis
ok $? '4 ranks'
! close one.h5 two.h5 1e-12 rows > /dev/null
ok $? 'the work is split: sums round otherwise'
cut -c1-24 one.txt > one.cut; cut -c1-24 two.txt > two.cut
cmp one.cut two.cut
ok $? 'one table, of the first rank'
run 0 ranks 2 run tiny.yaml -o two.again.h5 && cmp two.h5 two.again.h5
ok $? 'equal runs on 2 ranks give equal bytes'
run 0 ranks 1 run tiny.yaml -o single.h5 && cmp one.h5 single.h5
ok $? 'mpirun -n 1: the bytes of no mpirun'
[ ! -e two.h5.ckpt ] && [ "$(wc -l < two.h5.progress.jsonl)" = "$(wc -l < one.h5.progress.jsonl)" ]
ok $? 'no checkpoints left, one line of progress an evaluation'

# Routers: biases move by the loads of all ranks; a load-balance loss over microbatches is of each
# rank's part, whether microbatches run one by one or fused.
set -- --set model.experts=4 --set model.experts_per_token=2 --set model.expert_ffn=16 \
    --set model.router_bias=yes --set model.z_loss_coef=1e-3 --set arms.only=adamw+2bw --set train.updates=6
arms=adamw+2bw
run 0 "$PIPELAG" run tiny.yaml -o moe1.h5 "$@" --set model.seq_aux=yes --set model.aux_loss_coef=0.1 &&
    run 0 ranks 2 run tiny.yaml -o moe2.h5 "$@" --set model.seq_aux=yes --set model.aux_loss_coef=0.1 &&
    close moe1.h5 moe2.h5 1e-6 rows
ok $? 'experts: the rows of 1 rank'
run 0 ranks 4 run tiny.yaml -o fused.h5 "$@" --set model.aux_loss_coef=0.1 &&
    run 0 ranks 4 run tiny.yaml -o replay.h5 "$@" --set model.aux_loss_coef=0.1 --set train.replay=yes &&
    close fused.h5 moe1.h5 1e-6 rows && close replay.h5 moe1.h5 1e-6 rows &&
    run 0 "$PIPELAG" run tiny.yaml -o micro.h5 "$@" --set model.aux_loss_coef=0.1 &&
    ! close micro.h5 moe1.h5 1e-6 rows > /dev/null
ok $? 'experts balanced over the part of a microbatch that a rank has: one sequence'

cat > convex.yaml <<'Y'
problem: {name: quadratic, size: 24}
train: {updates: 30, batch: 4, eval_every: 10}
schedule: {name: 2bw, stages: 2, microbatches: 2}
optimizer: {name: sgd, lr: 0.01}
Y
run 0 "$PIPELAG" run convex.yaml -o q1.h5 && run 0 ranks 2 run convex.yaml -o q2.h5 && cmp q1.h5 q2.h5
ok $? 'a problem without data: the bytes of one rank'

# begin FILE ARGS...: 2 ranks in the background, $job, up to the second evaluation.
begin() {
    begin_file=$1
    shift
    rm -f pid
    # --foreground: else mpirun gets a signal twice, from timeout and as one of its group, and the
    # second makes it leave the ranks at once
    timeout --foreground -k 90 180 mpirun --oversubscribe --bind-to none -n 2 ./rank run steady.yaml -o "$begin_file" "$@" > out 2> err &
    job=$!
    until [ "$(cat "$begin_file.progress.jsonl" 2> /dev/null | wc -l)" -ge 2 ] || ! kill -0 $job 2> /dev/null; do
        sleep 0.05
    done
}
# end: how it ended, $tap_got; 124 and 137 are timeout's.
end() {
    wait $job
    tap_got=$?
    [ $tap_got != 0 ] && [ $tap_got != 124 ] && [ $tap_got != 137 ]
}
set -- --set train.updates=600 --set train.eval_every=50 --set train.seq=8 --set train.diagnose=no \
    --set arms.only=adamw+2bw-ef
arms=adamw+2bw-ef
run 0 ranks 2 run steady.yaml -o whole.h5 "$@"
# mpirun kills the ranks some seconds after it has told them to end: more on a loaded machine
for patience in 3 10 30; do
    rm -rf stop.h5*
    OMPI_MCA_odls_base_sigkill_timeout=$patience begin stop.h5 --set train.updates=100000 \
        --set arms.only=adamw+2bw-ef --set train.checkpoint_s=1000
    kill -TERM $job # timeout passes it on to mpirun
    end && grep -q 'resume with: mpirun -n 2 .*--resume' err && [ -s stop.h5.ckpt/adamw+2bw-ef-1.ckpt ] &&
        run 0 "$PIPELAG" trace info stop.h5 && grep -q partial out
    tap_stop=$?
    [ $tap_stop -ne 0 ] || break
    echo "# not within $patience s"
done
ok $tap_stop 'SIGTERM to mpirun: checkpoint, partial trace and the hint'
begin cut.h5 "$@" --set train.checkpoint_s=1000
kill -TERM "$(cat pid)"
end && [ $tap_got = 143 ] && [ -s cut.h5.ckpt/adamw+2bw-ef-1.ckpt ]
ok $? 'SIGTERM to one rank: all stop, exit status 143'
cp -r cut.h5.ckpt kept.h5.ckpt; cp cut.h5 kept.h5
run 0 ranks 2 run steady.yaml -o cut.h5 "$@" --resume && run 0 "$PIPELAG" trace diff cut.h5 whole.h5
ok $? 'resumed on 2 ranks: the rows of a run in one piece'
run 0 ranks 4 run steady.yaml -o kept.h5 "$@" --resume && close kept.h5 whole.h5 1e-5 rows
ok $? 'resumed on 4 ranks: the same rows, rounded otherwise for hundreds of updates'

# What fails on the first rank only, at each of its moments.
ranks 3 run tiny.yaml -o x.h5 > out 2> err; tap_got=$?
said 'train.batch: 16 sequences in 4 microbatches do not split over 3 ranks' 2
ok $? 'a batch that does not split'
ranks 2 run tiny.yaml -o x.h5 --set optimizer.name=adam > out 2> err; tap_got=$?
said "adam" 2
ok $? 'a bad value'
ranks 2 run tiny.yaml -o two.h5 > out 2> err; tap_got=$?
said 'two.h5: exists' 2
ok $? 'an output that exists'
ranks 2 run tiny.yaml -o nowhere/x.h5 > out 2> err; tap_got=$?
said 'nowhere' 1
ok $? 'the output folder is missing'
[ "$(ls -d x.h5* nowhere* 2> /dev/null)" = '' ]
ok $? 'these touched no output'
begin gone.h5 "$@" --set train.checkpoint_updates=10
mv gone.h5.ckpt elsewhere
end && grep -q '^pipelag: adamw+2bw-ef, seed 1: gone.h5.ckpt/.*No such file' err && [ $tap_got = 1 ]
ok $? 'the folder of checkpoints goes away while training'
if command -v prlimit > /dev/null; then
    begin full.h5 "$@" --set train.checkpoint_updates=10
    prlimit --pid "$(cat pid)" --fsize=8192
    end && grep -q '^pipelag: adamw+2bw-ef, seed 1: full.h5.ckpt/.*File too large' err && [ $tap_got = 1 ]
    ok $? 'no room for a checkpoint'
    run 0 ranks 2 run steady.yaml -o full.h5 "$@" --resume && run 0 "$PIPELAG" trace diff full.h5 whole.h5
    ok $? 'resumed from the last good one when there is room'
    begin late.h5 "$@" --set train.checkpoint_s=1000
    kill -KILL "$(cat pid)"
    wait $job
    grep -q 'exited on signal 9' err && ! pgrep -f "run steady.yaml -o late.h5" > /dev/null
    ok $? 'the first rank is killed: the others end'
else
    skip 'no room for a checkpoint' 'no prlimit'
fi

# Ranks that do not see the same files must not compute with one another.
cat > apart << 'R'
#!/bin/sh
cd "rank$OMPI_COMM_WORLD_RANK" && exec "$PIPELAG" "$@"
R
chmod +x apart
mkdir rank0 rank1
cp tiny.yaml rank0
sed 's/hidden: 16/hidden: 32/' tiny.yaml > rank1/tiny.yaml
timeout -k 5 60 mpirun --oversubscribe --bind-to none -n 2 ./apart run tiny.yaml -o y.h5 > out 2> err
tap_got=$?
[ $tap_got = 1 ] && grep -q 'ranks see other files' err
ok $? 'another configuration on the second rank'
done_testing
