#!/bin/sh
# pipelag tokenize over the vocabulary of tests/vocab (200 rules learnt from COPYING, in GPT-2's
# file format), runs on what it writes, and, where there are files to compare with
# (PIPELAG_SHARED, default ../shared beside the source), GPT-2's own tokens.
. "$top_srcdir/tests/tap.sh"
cd "$work" || exit 99
src=$(cd "$top_srcdir" && pwd)
vocab=$src/tests/vocab
tokenize() { run 0 "$PIPELAG" tokenize "$@"; }

# fails STATUS TEXT NAME ARGS...: one line of stderr that has TEXT, nothing else
fails() {
    want=$1 text=$2 name=$3
    shift 3
    run "$want" "$PIPELAG" "$@" && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] &&
        grep -qF -e "$text" err
    status=$?
    [ $status -eq 0 ] || sed 's/^/# /' err
    ok $status "$name"
}

# 16116 tokens by Hugging Face's GPT2Tokenizer on the same files, and one before them
tokenize "$src/COPYING" --bpe "$vocab" -o c.bin && grep -qx 'tokens  *16117' out &&
    grep -qx 'documents  *1' out
ok $? "counts of a text"
[ "$(od -An -t u2 -j 1024 -N 8 c.bin | tr -s ' ')" = " 456 356 356 356" ]
ok $? "first tokens of it"
cksum <c.bin >sum
tokenize --decode c.bin --bpe "$vocab" -o c.txt && cmp -s c.txt "$src/COPYING"
ok $? "the text comes back"
tokenize - --bpe "$vocab" -o d.bin --json <"$src/COPYING" && cmp -s c.bin d.bin &&
    grep -q '"tokens": 16117' out
ok $? "standard input, JSON"
for format in nanogpt megatron; do
    tokenize "$src/COPYING" "$src/COPYING" --bpe "$vocab" -o $format.bin --format $format &&
        tokenize --decode $format.bin --bpe "$vocab" --format $format -o two.txt --force &&
        { cat "$src/COPYING" && printf '\n<|endoftext|>\n' && cat "$src/COPYING"; } |
        cmp -s - two.txt
    ok $? "$format: two files are two documents"
done
test "$(wc -c <megatron.idx)" -eq $((34 + 12 * 2 + 8 * 3)) && test "$(wc -c <megatron.bin)" -eq 64468
ok $? "sizes of a Megatron pair"

mkdir cut && tokenize "$src/COPYING" --bpe "$vocab" -o cut/c.bin --shard=6000 --val && grep -qx 'files  *3' out &&
    [ "$(ls cut | tr '\n' ' ')" = 'c_train_000001.bin c_train_000002.bin c_val_000000.bin ' ] &&
    tokenize --decode cut/c_val_000000.bin cut/c_train_*.bin --bpe "$vocab" -o two.txt --force &&
    cmp -s two.txt "$src/COPYING"
ok $? "a stream in several files, the first for validation"
fails 2 'cut/c_val_000000.bin: exists' "files that are there" tokenize "$src/COPYING" --bpe "$vocab" \
    -o cut/c.bin --shard=9000 --val
tokenize "$src/COPYING" --bpe "$vocab" -o cut/c.bin --shard=9000 --val --force &&
    [ "$(ls cut | tr '\n' ' ')" = 'c_train_000001.bin c_val_000000.bin ' ]
ok $? "... which --force replaces"
run 2 "$PIPELAG" tokenize "$src/COPYING" --bpe "$vocab" -o s.bin --shard=1e6 &&
    grep -qF -- "--shard: '1e6' is not an integer" err &&
    run 2 "$PIPELAG" tokenize "$src/COPYING" --bpe "$vocab" -o s.bin --shard 5000 &&
    grep -qF -- "--shard 5000: write --shard=5000" err &&
    run 2 "$PIPELAG" tokenize "$src/COPYING" --bpe "$vocab" -o s.bin --val && grep -q 'val without --shard' err &&
    tokenize "$src/COPYING" --bpe "$vocab" -o s.bin --shard && [ -e s_000001.bin ] && [ ! -e s.bin ]
ok $? "numbers of tokens"

model='--set model.vocab=457 --set model.hidden=16 --set model.ffn=32 --set model.layers=2
  --set model.heads=2 --set model.head_dim=8 -P 2 -m 2 --set train.batch=4 --set train.seq=16
  --set train.updates=6 --set train.eval_sequences=4'
# shellcheck disable=SC2086
train() { run 0 "$PIPELAG" run $model "$@"; }
train --set data.tokens=c.bin -o a.h5 && train --set 'data.tokens=c.bin d.bin' -o b.h5 &&
    train --set data.source=nanogpt --set data.tokens='nano*.bin' -o c.h5 &&
    train --set data.source=megatron --set data.tokens=megatron --set data.order=epoch -o d.h5 &&
    train --set data.tokens=c.bin --set data.order=file -o e.h5
ok $? "runs read every format, lists and patterns"
cp c.bin e.bin
rows() { "$PIPELAG" trace dump "$1" /arms/run/seeds/1/rows; }
train --set data.tokens=e.bin -o a2.h5 && rows a.h5 >a.csv && rows a2.h5 | cmp -s a.csv -
ok $? "another name, equal rows"
[ "$(wc -l <a.csv)" -ge 7 ] && rows e.h5 >e.csv && ! cmp -s a.csv e.csv
ok $? "another order, other rows"

# shellcheck disable=SC2086
train --set data.text=c.txt --set model.vocab=2000 -o t.h5 &&
    grep -q 'warning: .*data.text is read as bytes' err
ok $? "a warning of bytes where tokens were meant"

# A checkpoint belongs to its data.
# shellcheck disable=SC2086
"$PIPELAG" run $model --set data.tokens=e.bin --set train.updates=100000 -o r.h5 >/dev/null 2>&1 &
pid=$!
until [ -s r.h5.progress.jsonl ] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
kill -TERM $pid
wait $pid
[ $? -eq 143 ]
ok $? "an interrupted run"
printf '\1\0' | dd of=e.bin bs=1 seek=3000 conv=notrunc 2>/dev/null
# shellcheck disable=SC2086
fails 2 'of another run' "is not resumed on other data" run $model --set data.tokens=e.bin \
    --set train.updates=100000 -o r.h5 --resume

# Bad input: one line, and nothing is written.
fails 2 'missing.txt: No such file' "missing text" tokenize missing.txt --bpe "$vocab" -o x.bin
fails 2 'vocab.bpe: No such file' "missing vocabulary" tokenize c.txt --bpe . -o x.bin
fails 2 'it is llm.c tokens' "tokens as text" tokenize c.bin --bpe "$vocab" -o x.bin
fails 2 'no text' "nothing to do" tokenize /dev/null --bpe "$vocab" -o x.bin
fails 2 "did you mean 'llmc'" "unknown format" tokenize c.txt --bpe "$vocab" -o x.bin --format llm.c
fails 2 'expected NAME.bin' "Megatron's name" tokenize c.txt --bpe "$vocab" -o x --format megatron
fails 2 'regular file' "a device" tokenize c.txt --bpe "$vocab" -o /dev/null
fails 1 'nowhere/x.bin' "missing folder" tokenize c.txt --bpe "$vocab" -o nowhere/x.bin
fails 2 'exists' "does not overwrite" tokenize c.txt --bpe "$vocab" -o c.bin
fails 2 'it is perhaps raw 16-bit tokens' "wrong format" tokenize --decode nanogpt.bin --bpe "$vocab"
# shellcheck disable=SC2086
fails 2 'has id 456, expected below the vocabulary of 300 (model.vocab' "a vocabulary too small" \
    run $model --set model.vocab=300 --set data.tokens=c.bin -o x.h5
# shellcheck disable=SC2086
fails 2 'data.source: megatron reads data.tokens' "keys that contradict" run $model \
    --set data.source=megatron --set data.text=c.txt -o x.h5
# shellcheck disable=SC2086
fails 2 'no llm.c token file' "a text as tokens" run $model --set data.tokens=c.txt -o x.h5
test ! -e x.bin && test ! -e x.h5 && cksum <c.bin | cmp -s - sum && ! ls -A | grep -q tmp-
ok $? "bad input touches no output"

# Interrupted while it waits for its input.
mkfifo pipe
sleep 30 >pipe &
writer=$!
"$PIPELAG" tokenize - --bpe "$vocab" -o x.bin <pipe >/dev/null 2>err &
pid=$!
sleep 0.5
kill -INT $pid 2>/dev/null || kill -TERM $pid
kill -TERM $pid 2>/dev/null # a background job of a script ignores SIGINT
wait $pid
status=$?
kill $writer
[ $status -ge 130 ] && [ ! -e x.bin ] && ! ls -A | grep -q tmp- && grep -q 'nothing was written' err
ok $? "interrupted: $status, nothing written"

# what shards do not replace, and names that make none
head -c 3000 "$src/COPYING" >some.txt
mkdir there && echo mine >there/c_000007.bin && echo mine >there/d_train_000002.bin && mkfifo there/e_000002.bin &&
    run 2 "$PIPELAG" tokenize some.txt --bpe "$vocab" -o there/c.bin --shard=500 &&
    grep -q 'there/c_000007.bin: exists' err &&
    run 2 "$PIPELAG" tokenize some.txt --bpe "$vocab" -o there/d.bin --shard=500 --val &&
    grep -q 'there/d_train_000002.bin: exists' err &&
    run 2 "$PIPELAG" tokenize some.txt --bpe "$vocab" -o there/e.bin --shard=500 --force &&
    grep -q 'there/e_000002.bin: expected the name of a regular file' err &&
    run 0 "$PIPELAG" tokenize some.txt --bpe "$vocab" -o there/d.bin --shard=1000 &&
    [ "$(ls -A there | tr '\n' ' ')" = 'c_000007.bin d_000001.bin d_000002.bin d_train_000002.bin e_000002.bin ' ]
ok $? '--shard: any file of the name in the way is named before a file is written'
status=0
for name in there there/ '' - /dev/null; do
    run 2 "$PIPELAG" tokenize some.txt --bpe "$vocab" -o "$name" --shard=500 && grep -q -- '--shard makes names' err ||
        status=1
done
[ $status = 0 ] && [ ! -e there_000001.bin ] && [ ! -e /dev/null_000001.bin ] && [ ! -e _000001.bin ]
ok $? '--shard: a name that names no files'
(ulimit -n 32 && tokenize some.txt --bpe "$vocab" -o there/few.bin --shard=20) &&
    [ "$(ls there/few_* | wc -l)" -gt 32 ]
ok $? '--shard: files are not held open'
mkfifo waits
"$PIPELAG" tokenize --decode there/d_000001.bin --bpe "$vocab" -o waits >/dev/null 2>&1 &
pid=$!
sleep 0.5
kill -TERM $pid
n=0
while kill -0 $pid 2>/dev/null && [ $n -lt 50 ]; do sleep 0.1; n=$((n + 1)); done
kill -KILL $pid 2>/dev/null
wait $pid
[ $? = 143 ]
ok $? 'SIGTERM while an output waits for its reader'

# GPT-2's vocabulary and token files that others made.
shared=${PIPELAG_SHARED:-$src/../shared}/data
if [ -r "$shared/gpt2/vocab.bpe" ]; then
    gpt2() { tokenize "$@" --bpe "$shared/gpt2"; }
    xz -dc "$shared/books-valid.txt.xz" >books.txt && gpt2 books.txt -o books.bin &&
        cmp -s books.bin "$shared/shards/books_valid_gpt2.bin"
    ok $? "GPT-2: six books, byte for byte"
    gpt2 --decode "$shared/shards/tiny_shakespeare_val.bin" -o val.txt && gpt2 val.txt -o val.bin &&
        cmp -s val.bin "$shared/shards/tiny_shakespeare_val.bin"
    ok $? "GPT-2: tinyshakespeare of llm.c, there and back"
    tail -c 111540 "$shared/tinyshakespeare.txt" >tail.txt &&
        gpt2 tail.txt -o tail.bin --format nanogpt && head -c -2 tail.bin |
        cmp -s - "$shared/shards/nanogpt_shakespeare_val.bin"
    ok $? "GPT-2: tinyshakespeare of nanoGPT, which ends without a mark"
else
    skip "GPT-2's own tokens" "no $shared/gpt2/vocab.bpe"
fi
done_testing
