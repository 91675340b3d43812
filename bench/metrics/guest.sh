#!/bin/sh
# In the machine: a plan with metrics, sleeping threads, and curl that asks. See run.
# shellcheck source-path=SCRIPTDIR/../../tests/vm
. ./lib.sh
mkdir -p /out
# ran PID: the CPU time it has had, in us
ran() {
	awk '{ printf "%d", $1 / 1000 }' "/proc/$1/schedstat"
}
# top_costs: what `tierce top` twice a second takes of a CPU, and the loader for its answers, in %
top_costs() {
	before=$(ran "$loader")
	sleep 10
	without=$(($(ran "$loader") - before))
	tierce top --json --interval 500ms --times 1000 >/dev/null &
	top=$!
	sleep 1
	before=$(ran "$loader") top_before=$(ran $top)
	sleep 10
	echo $(($(ran $top) - top_before)) $(($(ran "$loader") - before - without)) | awk '{ printf "%.2f %.2f", $1 / 100000, $2 / 100000 }'
	{ kill $top; wait $top; } 2>/dev/null
}
begin plan promises.toml --metrics 9464 >/dev/null || exit
printf '%8s %14s %14s %14s %10s %8s %8s\n' threads 'least, ms' 'median, ms' 'most, ms' bytes 'top, %' 'loader, %'
for n in $THREADS; do
	./trouble crowd "$n" &
	crowd=$!
	until [ "$(awk '/^Threads:/ { print $2 }' "/proc/$crowd/status")" -gt "$n" ]; do sleep 0.5; done
	sleep 3 # the loader has seen them all
	costs=$(top_costs)
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		curl -s -o /dev/null -w '%{time_total} %{size_download}\n' http://127.0.0.1:9464/metrics
		sleep 0.3
	done | sort -n | awk -v n="$n" -v costs="$costs" '{ ms[NR] = 1000 * $1; bytes = $2 }
		END { split(costs, of)
			printf "%8d %14.1f %14.1f %14.1f %10d %8s %8s\n", n, ms[1], (ms[5] + ms[6]) / 2, ms[NR], bytes, of[1], of[2] }'
	{ kill "$crowd"; wait "$crowd"; } 2>/dev/null
	sleep 1
done
finish TERM >/dev/null
