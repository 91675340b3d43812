#!/bin/sh
# In the guest of ./run: what ordinary threads get done under EEVDF and below a plan, in turns. Each line is what one measurement
# gave, its scenario `SIDE/ROUND/WHAT`. In the environment: CPUS, ROUNDS, PARTS (what to measure), and how much of each.
# shellcheck source=../../tests/vm/lib.sh
. ./lib.sh
# shellcheck disable=SC2153 # in the environment
cpus=$CPUS seconds=$SECONDS_EACH

# tell WHAT JSON: of this side and round
tell() {
	say "$side/$round/$1" "${2:-null}"
}

# So many switches there have been, on all CPUs.
switches() {
	sed -n 's/^ctxt //p' /proc/stat
}

# stress NAME INSTANCES: operations per second
stress() {
	rm -f /tmp/stress
	stress-ng --"$1" "$2" --timeout "$seconds" --metrics --yaml /tmp/stress >/out/stress-ng.log 2>&1
	tell "$1" "$(sed -n 's/^ *bogo-ops-per-second-real-time: *//p' /tmp/stress)"
}
# work WHAT COMMAND...: that prints how many seconds it took: times it is done per second
work() {
	what=$1
	shift
	before=$(switches)
	tell "$what" "$("$@" 2>&1 |
		awk '/^ *[0-9.]+$/ { took = $1 } /^Time:/ { took = $2 } END { if (took > 0) print 1 / took; else print "null" }')"
	tell "switches of $what" $(($(switches) - before))
}
build() {
	make -s -C build clean
	began=$(cut -d ' ' -f 1 /proc/uptime)
	make -s -C build -j $((2 * cpus)) >/out/build.log 2>&1 || return
	awk -v began="$began" 'NR == 1 { print $1 - began }' /proc/uptime
}
# wakeups WHAT: how late as many threads as there are CPUs wake, once per ms or so
wakeups() {
	cyclictest --policy=other --quiet --default-system --threads="$cpus" --interval=1000 --distance=100 \
		--duration="$seconds" --histogram=200000 --json=/tmp/cyclictest >/dev/null 2>&1
	tell "$1" "$(tr -d '\n' </tmp/cyclictest)"
}
# loaded WHAT COMMAND...: wake-ups while that runs
loaded() {
	what=$1
	shift
	"$@" >/dev/null 2>&1 &
	load=$!
	sleep 0.3
	wakeups "$what"
	kill $load 2>/dev/null
	wait $load 2>/dev/null
}
messages() { # until it is killed
	hackbench -g 1 -f 4 -l 10000000
}
ordinary() {
	wakeups wake-idle
	echo 1 >/proc/$$/timerslack_ns # without it a thread is woken up to 50 us later than it asked for
	wakeups wake-idle-exact
	echo 0 >/proc/$$/timerslack_ns
	loaded wake-hogs meter hogs --count "$cpus" --time 1000s
	loaded wake-messages messages
	killall -q hackbench
	stress switch "$cpus"
	stress pipe "$cpus"
	stress futex "$cpus"
	stress mq "$cpus"
	stress fork "$cpus"
	work perf-pipe perf bench -f simple sched pipe -l "$PIPE_LOOPS"
	work messaging perf bench -f simple sched messaging -g 1 -l "$MESSAGING_LOOPS"
	work messaging-threads perf bench -f simple sched messaging -t -g 1 -l "$MESSAGING_LOOPS"
	work hackbench hackbench -g 2 -f 10 -l "$HACKBENCH_LOOPS"
	work hackbench-threads hackbench -T -g 2 -f 10 -l "$HACKBENCH_LOOPS"
	work build build
}

# spins WHAT NICE...: a busy process for each; their CPU time
spins() {
	what=$1
	shift
	start=$(in_ms $((500 + 50 * $#)))
	i=0 pids=''
	for nice; do
		meter spin --name "spin$i" --policy "nice:$nice" --start "$start" --time "$SHARES_TIME" >"/tmp/spin$i" &
		pids="$pids $!" i=$((i + 1))
	done
	# shellcheck disable=SC2086 # a list
	wait $pids
	i=0 all=''
	for nice; do
		all="$all${all:+,}{\"nice\":$nice,\"cpu_ns\":$(sed 's/.*"kernel_cpu_ns":\([0-9]*\).*/\1/' "/tmp/spin$i")}"
		i=$((i + 1))
	done
	tell "$what" "[$all]"
}
shares() {
	case $cpus in
	2) spins shares-3 0 0 0 ;;
	4)
		spins shares-5 0 0 0 0 0
		spins shares-6-weights 0 0 2 2 5 5
		spins shares-12-weights 0 0 0 0 2 2 2 2 5 5 5 5
		;;
	esac
}

# used POLICY: while the reservation on CPU 0 is used
used() {
	meter service --name audio --policy "$1" --time 1000s --gap 1ms >/dev/null 2>&1 &
	user=$!
	sleep 0.3
	wakeups used-wake-idle
	for what in switch fork; do
		stress $what "$cpus" | sed "s|/$what\"|/used-$what\"|"
	done
	work used-hackbench hackbench -g 2 -f 10 -l "$HACKBENCH_LOOPS"
	work used-build build
	kill $user
	wait $user 2>/dev/null
}

# pairs N: two processes in turn over a pipe on each of the first N CPUs, which share nothing but the default node
pairs() {
	start=$(in_ms $((300 + 100 * $1)))
	cpu=0 pids=''
	while [ "$cpu" -lt "$1" ]; do
		meter pingpong --cpu $cpu,$cpu --count "$PAIR_ROUNDS" --start "$start" >"/tmp/pair$cpu" &
		pids="$pids $!" cpu=$((cpu + 1))
	done
	if [ "$side" != eevdf ]; then # the loader looks around every 20 ms
		sleep 0.3
		kill -STOP "$loader"
	fi
	# shellcheck disable=SC2086 # a list
	wait $pids
	[ "$side" = eevdf ] || kill -CONT "$loader"
	tell "pairs-$1" "[$(cat /tmp/pair* | tr '\n' ',' | sed 's/,$//')]"
	rm /tmp/pair*
}
# reservation POLICY: the periods of the one that uses it, with processes that send messages, and others that are born and die
reservation() {
	hackbench -g 1 -f 4 -l 10000000 >/dev/null 2>&1 &
	messages=$!
	meter forkstorm --count 10000000 >/dev/null 2>&1 &
	storm=$!
	meter service --name audio --policy "$1" --period 10ms --budget 2ms --time "$STORM_TIME" >/tmp/service
	kill $messages $storm
	killall -q hackbench meter
	wait $messages $storm 2>/dev/null
	tell reservation "$(cat /tmp/service)"
}

# measure POLICY: all that is asked for; the reservation is used by a thread of that policy
measure() {
	for part in $PARTS; do
		case $part in
		ordinary) ordinary ;;
		shares) [ "$round" -gt "$SHARES_ROUNDS" ] || shares ;;
		used) used "$1" ;;
		reservation) reservation "$1" ;;
		pairs) for n in 1 2 4 8; do [ "$n" -gt "$cpus" ] || pairs "$n"; done ;;
		esac
	done
}

[ -z "$FILES" ] || ./sources build "$FILES"
echo HRTICK_DL >/sys/kernel/debug/sched/features
round=1
while [ "$round" -le "$ROUNDS" ]; do
	side=eevdf
	measure deadline:2ms:10ms
	TIERCE_DEBUG=1 begin "tierce-$round" plan.toml --stats counts || exit
	side=tierce
	sleep 1 # the loader has bound what runs
	measure other
	finish TERM
	round=$((round + 1))
done
case $PARTS in
*pairs*) # once more, and how often a lock was with another CPU before
	begin contention plan.toml --stats counts --contention || exit
	side=contention
	PAIR_ROUNDS=$((10 * PAIR_ROUNDS)) # the beginning and the end should not count
	sleep 1
	pairs "$cpus"
	finish TERM
	;;
esac
