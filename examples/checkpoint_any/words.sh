#!/bin/sh
# A shell pipeline that knows nothing of checkpoints:  words.sh RESULT STEPS [PAUSE]
# Each step counts letters of what awk writes and adds the counts to RESULT; the last line is the sum over all of it. RESULT is open
# all the time: so a restart cuts it to what it was at the checkpoint, which it does not with a file that each step opens again.
[ $# -ge 2 ] || { echo "usage: words.sh RESULT STEPS [PAUSE]" >&2; exit 1; }
result=$1 steps=$2 pause=${3:-0}
step=0
while [ $step -lt "$steps" ]; do
    step=$((step + 1))
    awk -v seed=$step 'BEGIN { srand(seed); for (i = 0; i < 200; i++) printf "%c\n", 97 + int(26 * rand()) }' |
        sort | uniq -c | sort -rn | { sleep "$pause"; head -n 3; } | tr '\n' ' '
    echo "step $step"
done > "$result"
sum=$(cksum < "$result")
echo "sum $sum" >> "$result"
