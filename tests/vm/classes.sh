#!/bin/sh
# Threads of SCHED_FIFO and SCHED_RR under a plan that matches them by class, one CPU, one boot. See `classes` in
# crates/tierce-cli/tests/kernel.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

# class_of PID: real-time priority and policy (1 FIFO, 2 RR, 7 EXT, 0 OTHER), as its process would see them
class_of() {
	awk '{ printf "[%d,%d]", $40, $41 }' "/proc/$1/stat"
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

# Killed; ended by the kernel.
begin killed classes.toml || exit
in_ext $two
kill -KILL $loader
wait $loader
tries=0
while [ "$(state)" != disabled ] && [ $tries -lt 100 ]; do tries=$((tries + 1)); sleep 0.05; done
sleep 0.2
say killed "{\"state\":\"$(state)\",\"classes\":[$(class_of $two),$(class_of $rest),$(class_of "$child")]}"
begin ejected classes.toml || exit
in_ext $two
echo S >/proc/sysrq-trigger
wait $loader
say ejected "{\"code\":$?,\"classes\":[$(class_of $two),$(class_of $rest),$(class_of "$child")]}"
kill $two $rest "$child" $parent
