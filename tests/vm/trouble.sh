#!/bin/sh
# Two CPUs that run at once, one boot: a storm of processes, moves of all kinds, faults in the scheduler itself. Time means
# little here. See crates/tierce-cli/tests/kernel.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

# has N: the plan's task `left` has so many threads
has() {
	bound=$(list_of threads | grep -c '"name": "left"')
	[ "$bound" = "$1" ]
}
# is_bound SCENARIO YES: does the plan's task `left` have its thread (1), or not (0), within a minute?
is_bound() {
	awaits has "$2"
	say "$1" "$bound"
}
# has_said TEXT: the loader, of `left`
has_said() {
	grep -q "(left) matches left: .*$1" /out/trouble.err
}

begin trouble two-cpus.toml || exit

# Ten thousand processes come and go beside hogs; then some that match a set.
settled before
say storm "$(meter forkstorm --count 10000 --parallel 8 --hogs 2 --hog-policy nice:19)"
settled after
say crowd "$(meter forkstorm --name crowd --count 500 --parallel 8)"

for what in 'class 200' 'affinity 300' 'nice 300' 'cgroups 200' 'kill 100' 'stop 200' 'threads 200' 'execs 100'; do
	# shellcheck disable=SC2086 # words
	trouble $what
	say "${what%% *}" "{\"code\":$?,\"state\":\"$(state)\"}"
done

# A task of the plan where the plan does not lead, and in a class above it, and each time back.
trouble busy left &
is_bound at-first 1
taskset -p 2 $! >/dev/null
is_bound moved 0
awaits has_said 'it may run on CPU 1 only: cpu_not_allowed'
taskset -p 3 $! >/dev/null
is_bound moved-back 1
chrt -f -p 1 $!
is_bound class-above 0
awaits has_said 'SCHED_FIFO runs before all threads of a plan'
chrt -o -p 0 $!
is_bound class-back 1
kill $!
# Members of a set that die in a class above.
for _ in 1 2 3 4 5 6 7 8; do
	meter spin --name crowd --policy fifo:1 --time 20ms >/dev/null
done
settled trouble-held
finish TERM

# Timers that are due all the time, threads that move.
say switches-before "$(sed -n 's/ctxt //p' /proc/stat)"
begin tiny tiny.toml --trace /out/tiny.trace || exit
spins() {
	for task in tiny small; do
		meter spin --name $task --start "$at" --time 4s >/out/$task.meter &
		meters="$meters $!"
	done
}
together spins 2000 places 2
until [ "$(now_ms)" -ge "$at_ms" ]; do
	sleep 0.1
done
trouble affinity 300 &
moves=$!
say rest "$(meter hogs --count 4 --time 3s)"
wait $moves
# shellcheck disable=SC2086 # a list
wait $meters
for task in tiny small; do
	say $task "$(cat /out/$task.meter)"
done
say switches "$(sed -n 's/ctxt //p' /proc/stat)"
finish TERM

# No node left for new threads; the scheduler itself breaks: the kernel takes it out and says why; the loader is killed.
./fault two-cpus.toml full wild lost loop fork >/out/faults 2>&1
say faults "{\"code\":$?}"
child=$(sed -n 's/fork: //p' /out/faults)
awaits is_state disabled
say forked "{\"alive\":\"$(cat "/proc/$child/comm")\",\"state\":\"$(state)\"}"
