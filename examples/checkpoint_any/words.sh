#!/bin/sh
# A shell pipeline that knows nothing of checkpoints:  words.sh RESULT STEPS [PAUSE]
# Each step counts letters of what awk writes and appends the counts to RESULT; the last line is the sum over all of it.
result=$1 steps=$2 pause=${3:-0}
: > "$result"
step=0
while [ $step -lt "$steps" ]; do
    step=$((step + 1))
    awk -v seed=$step 'BEGIN { srand(seed); for (i = 0; i < 200; i++) printf "%c\n", 97 + int(26 * rand()) }' |
        sort | uniq -c | sort -rn | { sleep "$pause"; head -n 3; } | tr '\n' ' ' >> "$result"
    echo "step $step" >> "$result"
done
sum=$(cksum < "$result")
echo "sum $sum" >> "$result"
