#!/bin/sh
# What is promised is counted in the kernel, however many records are lost: two storms of switches, two CPUs, one boot. See `promises` in
# crates/tierce-cli/tests/kernel.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

# counted SCENARIO: what the kernel side has counted, and the CPU time of the thread `kept`, in ns, while it is stopped
counted() {
	kill -STOP $kept
	sleep 0.05
	tierce status --json >"/out/$1.status"
	say "$1" "{\"ran_ns\":$(awk '{ print $1 }' /proc/$kept/schedstat),\"status\":$(tr -d '\n' <"/out/$1.status")}"
	kill -CONT $kept
}

mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null
mkdir -p /sys/fs/cgroup/web /sys/fs/cgroup/elsewhere
begin promises promises.toml --metrics 9464 --metrics-threads 50 || exit
meter spin --name kept --time 300s >/dev/null &
kept=$!
meter spin --name taken --time 300s >/dev/null &
taken=$!
meter cyclic --name sleeper --interval 7ms --time 300s >/dev/null &
sleeper=$!
tierce job --name over --period 50ms --work 3ms --for 300s >/dev/null &
over=$!
meter pingpong --cpu 0 --count 10000000 >/dev/null &
left=$!
meter pingpong --cpu 1 --count 10000000 >/dev/null &
right=$!
sleep 0.5
counted before
kill -STOP "$loader" # it reads nothing: the records of the storms are lost
sleep 2
kill -CONT "$loader"
counted after
meter spin --name above --policy fifo:10 --cpu 1 --time 45ms >/dev/null
sleep 0.2
counted above
kill $right
meter spin --name beside --time 300s >/dev/null &
beside=$!
trouble asks 20 600 &
asker=$!
sleep 1.5
counted asked
wait $asker
say asker $?
kill $beside
tierce status --watch --times 2 >/out/watch.txt
wget -q -O /out/metrics.txt http://127.0.0.1:9464/metrics
tierce status --metrics /out/metrics.prom
tierce top --json --interval 500ms --times 3 --threads >/out/top.jsonl
kill $left

# heard FILE WORDS: waits until the file has them
heard() {
	tries=0
	until grep -q "$2" "$1" || [ $tries -ge 100 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
}

# A rule hears of parts that nobody has asked for, and so does who watches for the system.
meter spin --name pages --time 300s >/dev/null &
pages=$!
echo $pages >/sys/fs/cgroup/web/cgroup.procs
tierce manager --no-bus --rule heard.rhai --books /out/books.json 2>/out/manager.err &
manager=$!
tries=0
until tierce request --list >/dev/null 2>&1 || [ $tries -ge 50 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
tierce request --watch --json >/out/heard.jsonl &
watcher=$!
sleep 1
meter spin --name above --policy fifo:10 --cpu 1 --time 45ms >/dev/null
heard /out/heard.jsonl 'rule heard: taken'
heard /out/heard.jsonl 'rule heard: over'
echo $pages >/sys/fs/cgroup/elsewhere/cgroup.procs
heard /out/heard.jsonl 'rule heard: pages'
heard /out/promises.err 'over: .* missed the deadline'
say moved $pages
kill $watcher $manager
wait $manager
kill $kept $taken $sleeper $over $pages
finish TERM
