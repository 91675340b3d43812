# shellcheck shell=sh
# Words for the scripts that run in the guest. What a script says is JSON, a line per scenario; tests judge it outside.

# now_ms: the time since boot
now_ms() {
	awk '{ printf "%d", $1 * 1000 }' /proc/uptime
}
# in_ms N: N ms from now, as `meter --start` wants it
in_ms() {
	echo "$(($(now_ms) + $1))ms"
}
# say SCENARIO JSON
say() {
	printf '{"scenario":"%s","got":%s}\n' "$1" "$2"
}
state() {
	cat /sys/kernel/sched_ext/state
}
# is_state STATE
is_state() {
	[ "$(state)" = "$1" ]
}
# awaits COMMAND...: repeats it until it succeeds, for at most 60 s; does it?
awaits() {
	awaits_until_ms=$(($(now_ms) + 60000))
	until "$@" 2>/dev/null; do
		[ "$(now_ms)" -lt $awaits_until_ms ] || return 1
		sleep 0.1
	done
}

# host_turns USR1|USR2: those of virtual CPUs are as long as the tick, or fine (guest/init.c); nothing on a machine without turns
host_turns() {
	[ ! -e /etc/tierce/turns ] || kill "-$1" 1
}

# begin NAME PLAN [ARGUMENT...]: enforce the plan; it is in force when this returns. What tierce says goes to /out/NAME.err,
# its report to /out/NAME.json.
begin() {
	name=$1 plan=$2
	shift 2
	: >"/out/$name.err" # the search below may come first
	host_turns USR1
	tierce run "$plan" --json "$@" >"/out/$name.json" 2>"/out/$name.err" &
	loader=$!
	until grep -q 'is in force' "/out/$name.err"; do
		if ! kill -0 "$loader" 2>/dev/null; then
			cat "/out/$name.err" >&2
			return 1
		fi
		sleep 0.1
	done
	host_turns USR2
}
# finish [SIGNAL]: end it; says how, and in which state the kernel is then
finish() {
	kill "-${1:-TERM}" "$loader"
	wait "$loader"
	say "$name-end" "{\"code\":$?,\"state\":\"$(state)\"}"
}
# list_of LIST: that list of the plan's state, as `tierce status --json` prints it
list_of() {
	tierce status --json | sed -n "/\"$1\": \\[\$/,/^  \\]/p"
}
# places N: so many threads have a place that the plan names
places() {
	[ "$(list_of threads | grep -c '"name":')" = "$1" ]
}
# together LAUNCH LEAD COMMAND...: LAUNCH starts meters, which begin at $at, and adds their numbers to $meters. Returns when it is not yet
# that time, and COMMAND has succeeded, as `places 3`; where LEAD ms are too short for that, all over with more.
together() {
	launch=$1 lead=$2
	shift 2
	while
		at_ms=$(($(now_ms) + lead)) meters=
		# shellcheck disable=SC2034 # for LAUNCH
		at=${at_ms}ms
		"$launch"
		awaits "$@"
		[ "$(now_ms)" -ge $at_ms ] && [ "$lead" -lt 100000 ]
	do
		# shellcheck disable=SC2086 # a list
		kill $meters 2>/dev/null
		# shellcheck disable=SC2086 # a list
		wait $meters
		awaits places 0
		lead=$((lead * 2))
	done
}
# kernel_of NAME: the kernel side of the report /out/NAME.json. A shell takes very long to cut a text of thousands of threads.
kernel_of() {
	tr -d ' \n' <"/out/$1.json" | grep -o '"kernel":.*' | head -c 20000
}
# number KEY [POOL]: of the kernel side, from $kernel
number() {
	of=$kernel
	[ -z "$2" ] || of=${of#*\""$2"\":}
	of=${of#*\""$1"\":}
	echo "${of%%[!0-9]*}"
}
# nothing_over NAME: a report, as /out/NAME.json; all nodes and edges in use are of the plan, or of a thread that is there
nothing_over() {
	tierce status --report --json >"/out/$1.json" || return
	kernel=$(kernel_of "$1")
	for pool in nodes edges; do
		[ "$(number $pool used)" = $(($(number $pool plan) + $(number threads))) ] || return
	done
}
# settled NAME: waits until that is so; a thread that has just ended may hold its leaf for a moment. What is still so after that is a leak.
settled() {
	awaits nothing_over "$1"
}
# apply NAME PLAN [ARGUMENT...]: its exit code, and what it said
apply() {
	scenario=$1
	shift
	tierce apply "$@" --json >"/out/$scenario.said" 2>"/out/$scenario.refused"
	code=$?
	[ -s "/out/$scenario.said" ] || echo null >"/out/$scenario.said"
	say "$scenario" "{\"code\":$code,\"said\":$(tr -d '\n' <"/out/$scenario.said")}"
}
# answer NAME USER COMMAND [ARGUMENT...]: the exit code of tierce COMMAND, and what was answered
answer() {
	scenario=$1 user=$2
	shift 2
	su "$user" -c "exec timeout 60 tierce $* --json" >"/out/$scenario.said" 2>"/out/$scenario.wrong"
	code=$?
	[ -s "/out/$scenario.said" ] || echo null >"/out/$scenario.said"
	say "$scenario" "{\"code\":$code,\"said\":$(tail -n 1 "/out/$scenario.said")}"
}
# ask NAME USER [ARGUMENT...]: a request to the manager
ask() {
	scenario=$1 user=$2
	shift 2
	answer "$scenario" "$user" request "$@"
}
