#!/bin/sh
# In the guest of ./run: how late cyclictest wakes beside busy threads, under the kernel's own classes and below a plan.
# In the environment: CPUS, SECONDS_EACH.
# shellcheck source=../../tests/vm/lib.sh
. ./lib.sh
# shellcheck disable=SC2153 # in the environment
cpus=$CPUS seconds=$SECONDS_EACH
echo 1 >/proc/$$/timerslack_ns # without it an ordinary thread is woken up to 50 us later than it asked for

# wakes WHAT GROUP [ARGUMENT...]: a thread per CPU, of this cgroup, wakes each ms; its first hundred wake-ups do not count
wakes() {
	what=$1 group=/sys/fs/cgroup/$2
	shift 2
	mkdir -p "$group"
	# The loader has half a second to see where the process is, and gives its threads their places as they begin.
	sh -c 'echo $$ >"$0/cgroup.procs" && sleep 0.5 && exec "$@"' "$group" cyclictest "$@" --verbose --default-system \
		--threads="$cpus" --affinity --interval=1000 --distance=100 --duration="$seconds" >/tmp/measured 2>&1
	say "$what" "$(awk 'NF == 3 && $2 + 0 >= 100 { print $3 }' FS=: /tmp/measured | sort -n | awk '
		{ late[NR] = $1; sum += $1 }
		END { printf "{\"wakeups\":%d,\"mean\":%.1f,\"most\":%d,\"worst\":%d}", NR, sum / NR, late[int(NR * 0.99) + 1], late[NR] }')"
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
mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null
beside EEVDF others --policy=other
beside SCHED_FIFO others --policy=fifo --priority=50
begin plan plan.toml || exit
beside "tierce, as everybody else" others --policy=other
beside "tierce, 300us of each 1ms by deadlines" budgeted --policy=other
beside "tierce, by priority" urgent --policy=other
finish TERM
