#!/bin/sh
# Scores beside the validation loss, end to end: texts by class, questions, bits per byte.
. "${top_srcdir:-.}/tests/tap.sh"
cd "$work" || exit 99

cat > base.yaml <<'END'
model: {layers: 2, hidden: 16, heads: 2, ffn: 24}
train: {updates: 8, batch: 4, seq: 16, eval_every: 4, eval_sequences: 8}
schedule: {stages: 2}
END
i=0
while [ $i -lt 400 ]; do echo "the cat sat on the mat, and the dog ate the hat number $i"; i=$((i + 1)); done > cats.txt
i=0
while [ $i -lt 100 ]; do echo "zyxwv 98765 utsrq 43210 #$i"; i=$((i + 1)); done > odd.txt
cat > quiz.jsonl <<'END'
{"context": "the cat sat on the", "choices": [" mat", " ##9", " zyx"], "answer": 0}
{"ctx": "and the dog ate the", "endings": [" hat", "ZZZZ"], "label": 0}
END
"$PIPELAG" run base.yaml -o a.h5 --set data.text=cats.txt --set 'eval.texts=odd=odd.txt same=cats.txt' \
    --set eval.questions=quiz=quiz.jsonl > out.txt 2> err.txt
ok $? "a run with texts and questions"
grep -q '^quiz .*acc_norm questions' out.txt && grep -q '^odd .*bits/B' out.txt; ok $? "prints its scores"
"$PIPELAG" trace dump a.h5 /arms/run/seeds/1/scores > scores.csv; ok $? "they are in the trace"
[ "$(grep -c ',odd,' scores.csv)" = 3 ] && [ "$(grep -c ',quiz,' scores.csv)" = 2 ]
ok $? "texts at every evaluation, questions first and last"
awk -F, '$2 == "odd" { d = $6 - $4 / log(2); if (d < -1e-9 || d > 1e-9) bad = 1; n++ } END { exit bad || n != 3 }' scores.csv
ok $? "bits per byte of text are nats over ln 2"
"$PIPELAG" run base.yaml -o b.h5 --json --set data.text=cats.txt --set eval.questions=quiz=quiz.jsonl > json.txt 2> err.txt &&
    grep -q '"accuracy_norm"' json.txt
ok $? "and in --json"
"$PIPELAG" run base.yaml -o c.h5 --set data.text=cats.txt > c.txt 2> err.txt && ! grep -q Scores c.txt
ok $? "nothing is said of scores that were not asked for"
"$PIPELAG" trace dump a.h5 /arms/run/seeds/1/rows > a.rows && "$PIPELAG" trace dump c.h5 /arms/run/seeds/1/rows > c.rows &&
    cmp -s a.rows c.rows
ok $? "scoring changes no row"

bad() { # TEXT NAME ARGS...
    text=$1 name=$2
    shift 2
    timeout 60 "$PIPELAG" run base.yaml -o x.h5 --set data.text=cats.txt "$@" > out.txt 2> err.txt
    got=$?
    [ $got = 2 ] && [ ! -s out.txt ] && [ "$(wc -l < err.txt)" = 1 ] &&
        grep -q -- "$text" err.txt && [ ! -e x.h5 ]
    r=$?
    [ $r = 0 ] || { echo "# exit $got:"; sed 's/^/# /' err.txt; }
    ok $r "$name"
}
bad 'NAME=PATH' 'no name' --set eval.texts=odd.txt
bad 'there is twice\|is there twice' 'a name twice' --set 'eval.texts=a=odd.txt a=cats.txt'
bad 'nowhere.txt' 'no file' --set eval.texts=a=nowhere.txt
bad 'nowhere.jsonl' 'no questions' --set eval.questions=a=nowhere.jsonl
bad '/dev/zero: not a regular file' 'questions without an end' --set eval.questions=a=/dev/zero
echo '{"context": "a", "choices": ["b"], "answer": 0}' > one.jsonl
bad 'one.jsonl:1: fewer than 2 choices' 'one choice' --set eval.questions=a=one.jsonl
bad 'nowhere' 'no vocabulary' --set data.bpe=nowhere
done_testing
