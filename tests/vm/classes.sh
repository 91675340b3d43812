#!/bin/sh
# Threads of SCHED_FIFO and SCHED_RR under a plan that matches them by class, one CPU, one boot. See `classes` in
# crates/tierce-cli/tests/kernel.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

# class_of PID: real-time priority and policy (1 FIFO, 2 RR, 7 EXT, 0 OTHER), as its process would see them
class_of() {
	awk '{ printf "[%d,%d]", $40, $41 }' "/proc/$1/stat"
}
# classes_of PID...: a list of these
classes_of() {
	list=''
	for one in "$@"; do list="$list,$(class_of "$one")"; done
	echo "[${list#,}]"
}
# spin NAME CHRT-OPTION...: a thread that never stops; its number is $!
spin() {
	spinning=$1
	shift
	chrt "$@" meter spin --name "$spinning" --time 300s >/dev/null 2>&1 &
}
# had PID: its CPU time, in us
had() {
	awk '{ printf "%d", $1 / 1000 }' "/proc/$1/schedstat"
}
# shares SCENARIO PID...: the CPU time of each in 2 s, in us, and how long that was
shares() {
	scenario=$1
	shift
	sleep 0.1
	before='' after=''
	from=$(now_ms)
	for pid in "$@"; do before="$before,$(had "$pid")"; done
	sleep 2
	to=$(now_ms)
	for pid in "$@"; do after="$after,$(had "$pid")"; done
	say "$scenario" "{\"before\":[${before#,}],\"after\":[${after#,}],\"ms\":$((to - from))}"
}
# in_ext PID: waits until it is contained
in_ext() {
	tries=0
	while [ -e "/proc/$1" ] && [ "$(class_of "$1")" != "[0,7]" ] && [ $tries -lt 100 ]; do
		tries=$((tries + 1))
		sleep 0.05
	done
}

begin classes classes.toml --trace /out/classes.trace || exit
meter spin --name rest --time 300s >/dev/null &
rest=$!

# Contained, from the moment when the loader has seen it.
since=$(now_ms)
spin low -f 50
low=$!
in_ext $low
say seen $(($(now_ms) - since))
sleep 0.2
say window-begin "$(now_ms)"
shares contained $low $rest
say window-end "$(now_ms)"
say ext "$(class_of $low)"
tierce status --json | tr -d '\n' >/out/status
say status "$(cat /out/status)"

# By priority; equals of SCHED_FIFO in the order in which they came.
spin high -f 60
high=$!
in_ext $high
shares priority $high $low
kill $high
spin later -f 50
later=$!
in_ext $later
shares equals $low $later
kill $low $later

# Equals of SCHED_RR take turns; one of SCHED_FIFO does not let them.
spin one -r 40
one=$!
spin two -r 40
two=$!
in_ext $one
in_ext $two
shares turns $one $two
chrt -f -p 41 $one
in_ext $one
shares raised $one $two

# Somebody has a newer wish: it counts, also at the end.
chrt -o -p 0 $one
shares newer $one $two $rest
say newer-class "$(class_of $one)"
kill $one

# An ordinary thread that never stops gets a class, while all others of the plan are throttled or sleep.
since=$(now_ms)
chrt -f -p 70 $rest
in_ext $rest
say rescued $(($(now_ms) - since))
say later-class "$(tierce status --json | tr -d '\n')"
kill $rest $two

# Children have the class of their parent; who asked for that, the default class.
calm() {
	chrt "$@" meter cyclic --name calm --interval 10ms --time 300s >/dev/null &
}
calm -f 70
rest=$!
calm -R -f 10
two=$!
chrt -f 30 sh -c 'meter cyclic --name child --interval 10ms --time 300s >/dev/null & chrt -o -p 0 $$; wait' &
parent=$!
sleep 1
child=$(tr -d ' ' </proc/$parent/task/$parent/children)
say child "$(class_of "$child")"
chrt -R -f 20 sh -c 'sleep 0.5; sleep 100 & wait' &
resets=$!
sleep 1
say reset "[$(class_of $resets),$(class_of "$(tr -d ' ' </proc/$resets/task/$resets/children)")]"
kill $resets

# A plan without the match, and with it again.
apply without no-classes.toml
say without-class "[$(class_of $two),$(class_of $rest),$(class_of "$child")]"
apply with classes.toml
in_ext $two
in_ext $rest
in_ext "$child"
say with-class "[$(class_of $two),$(class_of $rest),$(class_of "$child")]"
finish TERM
say end-class "[$(class_of $two),$(class_of $rest),$(class_of "$child"),$(class_of $parent)]"

# The least and the largest priorities. SCHED_DEADLINE, SCHED_BATCH and SCHED_IDLE are left alone.
begin killed classes.toml || exit
calm -f 1
fifo_least=$!
calm -r 1
rr_least=$!
calm -f 99
fifo_most=$!
calm -r 99
rr_most=$!
calm -d -T 1000000 -D 10000000 -P 10000000 0
deadline=$!
calm -b 0
batch=$!
calm -i 0
idle=$!
sleep 0.3
for one in $fifo_least $rr_least $fifo_most $rr_most; do in_ext "$one"; done
say extremes "$(classes_of $fifo_least $rr_least $fifo_most $rr_most)"
say others "$(classes_of $deadline $batch $idle)"
say edges-status "$(tierce status --json | tr -d '\n')"

# Changed while they have a place, or have none: what the match fits is contained again, the rest is not.
chrt -b -p 0 $fifo_least
chrt -d -T 1000000 -D 10000000 -P 10000000 -p 0 $rr_least
chrt -r -p 50 $fifo_most
chrt -f -p 98 $batch
in_ext $fifo_most
in_ext $batch
sleep 0.2
say changed "$(classes_of $fifo_least $rr_least $fifo_most $rr_most $batch)"
say changed-status "$(tierce status --json | tr -d '\n')"

# One that never stops, of the guardian's own priority.
for policy in r f; do
	since=$(now_ms)
	spin top -$policy 99
	top=$!
	in_ext $top
	say top-$policy "{\"ms\":$(($(now_ms) - since)),\"class\":$(class_of $top)}"
	kill $top
done

# The loader is killed: the guardian gives classes back.
in_ext $two
kill -KILL $loader
wait $loader
ended() {
	tries=0
	while [ "$(state)" != disabled ] && [ $tries -lt 100 ]; do tries=$((tries + 1)); sleep 0.05; done
	state
}
say killed-state "\"$(ended)\""
sleep 0.2
say killed "$(classes_of $two $rest "$child")"
say edges-class "$(classes_of $fifo_least $rr_least $fifo_most $rr_most $deadline $batch $idle)"
kill $fifo_least $rr_least $fifo_most $deadline $batch $idle

# The guardian is killed, and then the loader: another guardian does it.
# successor PID: the guardian after that one, which is killed
successor() {
	kill -KILL "$1"
	tries=0 found=''
	while [ -z "$found" ] && [ $tries -lt 100 ]; do
		tries=$((tries + 1))
		sleep 0.05
		found=$(pidof tierce-classes)
		[ "$found" != "$1" ] || found=''
	done
	echo "$found"
}
begin succeeded classes.toml || exit
in_ext $two
in_ext $rest
in_ext "$child"
second=$(successor "$(pidof tierce-classes)")
kill -KILL $loader
wait $loader
say succeeded-state "\"$(ended)\""
sleep 0.2
say succeeded "{\"second\":${second:-0},\"classes\":$(classes_of $two $rest "$child"),\"said\":\"$(grep guardian_ /out/succeeded.err | tr '\n' '|')\"}"

# The guardian is killed, and its successor; the kernel ends the plan while there is none: the loader does it.
begin ejected classes.toml || exit
in_ext $two
second=$(successor "$(pidof tierce-classes)")
kill -KILL "$second"
echo S >/proc/sysrq-trigger
wait $loader
say ejected "{\"code\":$?,\"classes\":$(classes_of $two $rest "$child")}"
kill $two $rest "$child" $parent

# Both are killed at once: nobody does, and who wants a class back has to say so.
begin both classes.toml || exit
in_ext $rr_most
guardian=$(pidof tierce-classes)
kill -KILL "$guardian" $loader
wait $loader
say both-killed "{\"state\":\"$(ended)\",\"class\":$(class_of $rr_most)}"
begin after classes.toml || exit
sleep 0.3
say after-class "$(class_of $rr_most)"
say after-status "$(tierce status --json | tr -d '\n')"
chrt -r -p 99 $rr_most
in_ext $rr_most
say again-status "$(tierce status --json | tr -d '\n')"
finish TERM
say after-end-class "$(class_of $rr_most)"
kill $rr_most
