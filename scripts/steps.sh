# shellcheck shell=bash
# Steps of a longer job, to be sourced: each is timed, its output kept in target/log/NAME.log and shown if it fails.
#
#   step NAME COMMAND...         run it now
#   shown NAME COMMAND...        the same, and what it prints is seen at once
#   background NAME COMMAND...   run it beside the following ones; `collect NAME` waits for it and reports
#   summary                      what took how long; status 1 if a step failed

STEPS_LOG=target/log
STEPS_TABLE=()
STEPS_FAILED=0
declare -A STEPS_PID
mkdir -p "$STEPS_LOG"
# Most steps have no use for colours in their logs.
export CARGO_TERM_COLOR=never CARGO_TERM_PROGRESS_WHEN=never

steps_now() { printf '%s' "${EPOCHREALTIME/[.,]/}"; } # microseconds

steps_seconds() { # SINCE
	local tenths=$((($(steps_now) - $1) / 100000))
	printf '%d.%d' $((tenths / 10)) $((tenths % 10))
}

steps_report() { # NAME STATUS SECONDS
	STEPS_TABLE+=("$(printf '%8s s  %-22s %s' "$3" "$1" "$([ "$2" = 0 ] && echo ok || echo "FAILED ($2)")")")
	if [ "$2" = 0 ]; then
		printf '%8s s  %s\n' "$3" "$1"
		return 0
	fi
	STEPS_FAILED=$((STEPS_FAILED + 1))
	printf '%8s s  %s FAILED with status %s; the end of %s:\n' "$3" "$1" "$2" "$STEPS_LOG/$1.log"
	tail -n 80 "$STEPS_LOG/$1.log" | sed 's/^/    | /'
	return 1
}

step() { # NAME COMMAND...
	local name=$1 began status=0
	shift
	began=$(steps_now)
	[ ! -t 1 ] || printf '           %s ...\r' "$name"
	"$@" >"$STEPS_LOG/$name.log" 2>&1 </dev/null || status=$?
	steps_report "$name" "$status" "$(steps_seconds "$began")"
}

shown() { # NAME COMMAND...
	local name=$1 began status=0
	shift
	began=$(steps_now)
	printf '           %s ...\n' "$name"
	"$@" </dev/null 2>&1 | tee "$STEPS_LOG/$name.log" | sed -u 's/^/           /' || status=$?
	steps_report "$name" "$status" "$(steps_seconds "$began")"
}

background() { # NAME COMMAND...
	local name=$1
	shift
	(
		status=0
		began=$(steps_now)
		"$@" >"$STEPS_LOG/$name.log" 2>&1 </dev/null || status=$?
		steps_seconds "$began" >"$STEPS_LOG/$name.seconds"
		exit "$status"
	) &
	STEPS_PID[$name]=$!
}

collect() { # NAME
	local status=0
	wait "${STEPS_PID[$1]}" || status=$?
	steps_report "$1" "$status" "$(cat "$STEPS_LOG/$1.seconds")"
}

summary() {
	printf '\nSeconds per step:\n'
	printf '%s\n' "${STEPS_TABLE[@]}"
	return $((STEPS_FAILED > 0))
}
