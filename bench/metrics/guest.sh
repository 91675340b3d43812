#!/bin/sh
# In the machine: a plan with metrics, sleeping threads, and curl that asks. See run.
# shellcheck source-path=SCRIPTDIR/../../tests/vm
. ./lib.sh
mkdir -p /out
begin plan promises.toml --metrics 9464 >/dev/null || exit
printf '%8s %14s %14s %14s %10s\n' threads 'least, ms' 'median, ms' 'most, ms' bytes
for n in $THREADS; do
	./trouble crowd "$n" &
	crowd=$!
	until [ "$(awk '/^Threads:/ { print $2 }' "/proc/$crowd/status")" -gt "$n" ]; do sleep 0.5; done
	sleep 3 # the loader has seen them all
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		curl -s -o /dev/null -w '%{time_total} %{size_download}\n' http://127.0.0.1:9464/metrics
		sleep 0.3
	done | sort -n | awk -v n="$n" '{ ms[NR] = 1000 * $1; bytes = $2 }
		END { printf "%8d %14.1f %14.1f %14.1f %10d\n", n, ms[1], (ms[5] + ms[6]) / 2, ms[NR], bytes }'
	{ kill "$crowd"; wait "$crowd"; } 2>/dev/null
	sleep 1
done
finish TERM >/dev/null
