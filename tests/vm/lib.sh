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
