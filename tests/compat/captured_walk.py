"""In which order the captured commands are run, and in what state of the cluster; see test_captures_live.py."""

from __future__ import annotations

COUNTING = f"trap : TERM INT; echo started; for i in {' '.join(map(str, range(1, 31)))}; do sleep 1; done"
WALK = """
# --- nothing has run yet
bjobs-nojobs bjobs-noargs bhist-noargs
bhist-u bob
bjobs-bad bjobs-badm bjobs-noenv bjobs-V bjobs-json bjobs-X bhosts-noargs bhosts-w bhosts-R bhosts-group
bhosts-s bhosts-bad bqueues-noargs bqueues-m bugroup-noargs bugroup-l bmgroup-noargs bmgroup-bad busers-noargs
busers-all busers-bad bjgroup-noargs bjobs-spec lsid-V lsinfo-m lsinfo-r lsinfo-t lshosts-R lshosts-l
lshosts-s lsload-noargs lsload-E lsload-N lsload-w lsload-n lsload-s lsload-bad lsload-badR lseligible
lseligible-noargs lsplace-noargs
lsrun bob
lsrun-bad lsadmin-limstartup-denied lsadmin-reconfig-denied lsadmin-showconf
badmin-badcmd openlava
badmin-ckconfig openlava
badmin-mbdhist openlava
badmin-hclose openlava
bhosts-l-closed
$openlava badmin hopen ol3
badmin-hist openlava
badmin-hclose-bad openlava
badmin-hclose-denied badmin-hrestart-denied
badmin-qclose-bad openlava
badmin-qclose-denied
badmin-reconfig openlava
badmin-reconfig-denied bhist-bad bkill-bad bkill-J-none bkill-noid bmod-noid btop-bad bread-bad bgdel-bad
bgadd-bad
# --- what bsub refuses
bsub-badopt bsub-X bsub-badq bsub-badR bsub-badR2 bsub-rusage-dur bsub-badW bsub-badb
bsub-b-after-t bsub-badn bsub-n-toofew bsub-c bsub-c-badhost bsub-w-nojob bsub-sp-bad bsub-array-toobig
bsub-nocmd2
bsub-user-cannot bob
bsub-root root
bsub-root2 root
# --- queues and hosts with jobs, those of bob
on ol2
901/bob=sleep 1000
902/bob=sleep 1000
~901 RUN
~902 RUN
903/bob=-H -J 'x[1-6]' true
904/bob=-q night true
on ol1 ol2 ol3
bhosts-running bqueues-running
on ol2
$openlava badmin qclose night
bqueues-closed bqueues-l-closed
badmin-qopen openlava
badmin-qopen2 openlava
badmin-qopen3 openlava
905/bob=-q fair -H true
906/bob=-q fair -H true
badmin-qinact openlava
bqueues-inact
badmin-qact openlava
$bob bkill -r 0
on ol1
907/bob=-n 3 sleep 1000
~907 RUN
on ol1 ol2 ol3
bhosts-busy
$bob bkill -r 0
~907 EXIT
# --- the jobs of the listings, each on the host where it ran
on ol3
101=sleep 1
~101 DONE
on ol1
109=-J scripted true
~109 DONE
on ol2
105=-J "arr[1-4:2]" -o OUTS/arr.%J.%I.out 'env | sort'
~105 DONE
bsub-fail
~108 EXIT
report-fail < fail.out
on ol3
102=true
~102 DONE
on ol1
117=-J term true
~117 DONE
132=true
~132 DONE
on ol2
bsub-ok
~103 DONE
bjobs-UF bhist-l bhist-b bhist-l-arr bhist-J
on ol1 ol2
107=-n 2 -R 'order[slots] span[ptile=1]' -J par true
~107 DONE
on ol3
bsub-u
~133 DONE
report-mail-m.1gjh6Y < mail.*
report-mail-m.f922wT < mail.*
on ol2
bsub-K
on ol3
bsub-I
on ol2
bsub-queue
~104 DONE
on ol3
246=-J esub true
~246 DONE
144=-J '/shared/proj/jobs/outs/oo.out true' false
~144 EXIT
on ol1
bsub-g-auto
~143 DONE
on ol3
145=-J 'none true' false
~145 EXIT
on ol1
bsub-w
~121 DONE
on ol2
249=-R 'select[type==any] span[hosts=1]' -n 3 -J span1 true
~249 DONE
bsub-array-limit
~106[1-2] RUN
on ol1
$ touch OUTS/woken
~106[1-2] DONE
on ol2
247=-J res true
~247 DONE
on ol1
bsub-g
~142 DONE
# --- and those that wait
bsub-b
$ bstop $116
bjobs-psusp bresume-notsusp bsub-H bsub-sp
136=-H -J ck true
137=-H -J lims true
bsub-multi-m
139=-H -J xfer true
140=-b 23:58 -J preexec true
141=-H -J login true
bsub-unsat
~106[3-4] RUN
bjobs-w bjobs-wa bjobs-WL bjobs-WP bjobs-u-all bjobs-d bjobs-m bjobs-A bjobs-q bjobs-J bjobs-Jstar bjobs-P
bjobs-mixed bjobs-array-el bjobs-l-lim bjobs-l-dep bjobs-l-grp bhist-a bjdep bjdep-none bkill-g bpeek-pend
# --- jobs that are changed, moved, switched and posted to
on
353=-b 23:50 -J pend1 sleep 5
bmod-q bhist-l-mod bmod-n bmod-J
$ bmod -W 10 $353
$ bmod -r $353
$ bmod -R 'rusage[mem=50]' $353
bjobs-l-modified bmod-Rn bmod-bn bmod-b bmod-done bmod-wn
354=-b 23:50 -J pend2 sleep 6
bmod-Z
$ btop $354 1
btop-pos bswitch bhist-l-post bbot
btop-perm bob
bswitch-perm bob
bswitch-done
bmod-perm bob
bmod-badq
$ bpost -d 'my message' $354
bread bjdep-l bkill-multi
# --- control of a job that runs
on ol2
355=-q fair -W 0 -J wlim -o OUTS/wlim.out 'sleep 300'
~355 EXIT
report-wlim < wlim.out
352=-r -J runner -o OUTS/runner.out 'trap "echo gotUSR1" USR1; echo started; while :; do sleep 0.1; done'
~352 RUN
$ until bpeek $352 | grep -q started; do sleep 0.1; done
bkill-s
bkill-perm bob
bchkpnt bresume brequeue-norerun
~352 RUN
brun-denied
on ol1 ol2
bmig
~352 RUN
bkill
359=-J peek -o OUTS/peek.out 'echo line1; echo err1 >&2; while [ ! -e OUTS/go ]; do sleep 0.1; done; exit 9'
~359 RUN
$ until bpeek $359 | grep -q err1; do sleep 0.1; done
bpeek bpeek-J
bpeek-perm bob
$ touch OUTS/go
~359 EXIT
bjobs-W
251=-r -J rq sleep 1000
~251 RUN
brequeue
365=sleep 1000
~365 RUN
bkill-running
on ol3
360=-J 'ar[1-3]' 'while [ ! -e OUTS/go2 ]; do sleep 0.1; done; test $LSB_JOBINDEX = 1'
~360[1-2] RUN
on ol2
~360 RUN
bjobs-A-arr
$ touch OUTS/go2
~360 DONE EXIT
bjobs-arr-end bstop-arr bkill-pend bpost-none bkill-r
$ bkill -r 0
# --- a job killed before it ran, and one with a limit that was switched
on
250=-J runner -o OUTS/runner.out 'COUNTING'
$ bstop $250
$ bresume $250
$ bkill $250
~250 EXIT
bhist-l-run
357=-M 20000 -J mlim -o OUTS/mlim.out 'python3 -c "x=bytearray(300000000); import time; time.sleep(200)"'
$ bswitch fair $357
on ol2
~357 RUN
bhist-l-memlimit
$ bkill -r $357
# --- the queue priority, open to alice
$root sed -i 's/^USERS .*/USERS = bob alice/' CONF/lsb.queues
$openlava badmin reconfig
bsub-W-hard
356=-q priority -n 2 -J prio1 sleep 100
~356 RUN
$ until bjobs -l $356 | grep -q PIDs; do sleep 0.1; done
bjobs-l-prio
357=-q fair sleep 1000
~357 RUN
352=-q fair sleep 1000
~352 RUN
bkill-0
~356 EXIT
~352 EXIT
~357 EXIT
# --- what waits, killed at once
on
bsub-E-env bsub-q-multi
363=-J depNever true
367=-H true
bpeek-q
372=-H true
373=-H true
374=-H true
bsub-defproj bsub-badproj bsub-n-range bsub-longname bjobs-longname bsub-paren bsub-t-b-full bsub-or
393=-H true
358=-q night true
bkill-0-b bsub-noin bsub-unsat-host
918=-g /risk/a true
bgdel-nonempty
$ bgadd /lim/x
bgmod bgdel
$ bkill -r 0
bsub-R-rusage-comma bsub-R-rusage-colon
963=-H true
965=-H true
967=-H true
969=-H true
971=-H true
bsub-R-filter bsub-pend-excl bkill-0-c
on ol3
bsub-segv bsub-K-kill9 bsub-I-exit
on ol1
bsub-Ip
on ol2
364=-J depCnt true
~364 DONE
on ol3
362=-J depEl true
~362 DONE
361=-J depOK true
~361 DONE
on
363=-J depNever true
bjobs-l-deps bread-none bsub-eo bsub-gpu bsub-O bsub-same bsub-affinity bsub-R-strq bsub-R-spanh-1
""".replace("COUNTING", COUNTING)
