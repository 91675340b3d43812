#!/bin/sh
# In the guest of ./run: how late cyclictest wakes beside busy threads, under the kernel's own classes and below a plan.
# In the environment: CPUS, SECONDS_EACH.
# shellcheck source=../../tests/vm/lib.sh
. ./lib.sh
cpus=$CPUS seconds=$SECONDS_EACH
echo 1 >/proc/$$/timerslack_ns # without it an ordinary thread is woken up to 50 us later than it asked for

# wakes WHAT NAME [ARGUMENT...]: a thread per CPU of this name wakes each ms
wakes() {
	what=$1 name=$2
	shift 2
	cp "$(command -v cyclictest)" "/tmp/$name"
	"/tmp/$name" "$@" --quiet --default-system --threads="$cpus" --affinity --interval=1000 --distance=100 \
		--duration="$seconds" --histogram=200000 --json=/tmp/cyclictest >/dev/null 2>&1
	say "$what" "$(tr -d '\n' </tmp/cyclictest)"
}
# beside WHAT ARGUMENT...: while four busy threads per CPU run
beside() {
	meter hogs --count $((4 * cpus)) --time 1000s >/dev/null &
	hogs=$!
	sleep 0.3
	wakes "$@"
	kill $hogs
	wait $hogs 2>/dev/null
}
beside EEVDF cyclictest --policy=other
beside SCHED_FIFO cyclictest --policy=fifo --priority=50
begin plan plan.toml || exit
beside "tierce, as everybody else" cyclictest --policy=other
beside "tierce, 300us of each 1ms by deadlines" by-budget --policy=other
beside "tierce, by priority" by-priority --policy=other
finish TERM
