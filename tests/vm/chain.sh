#!/bin/sh
# A chain of processes on two CPUs, as examples/chain.toml has it: how long what passes through takes, seen by the last process and in the
# trace, there by wake-ups and by marks; half way a change of the plan brings another chain. Argument: seconds. See `a_chain_takes_no_longer_than_its_bound` in crates/tierce-cli/tests/kernel.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

seconds=$1
cat chain.toml - >/out/marked.toml <<END

# The same, known by marks.
[chain.marked]
tasks = ["camera", "detect", "plan", "act"]
delay = { act = "1ms" }
mark = "frame"

[run]
marks = ["$(command -v meter)"]
END
# A file in which nobody marks anything.
sed "s|^marks = .*|marks = [\"$(command -v busybox)\"]|" /out/marked.toml >/out/silent.toml
tierce run /out/silent.toml --for 1s >/dev/null 2>/out/silent.refused
say silent "{\"code\":$?,\"state\":\"$(state)\"}"
begin chain /out/marked.toml --trace /out/chain.trace || exit
at=$((($(now_ms) + 1000) / 100 * 100)) # in step with the motor
meter chain --start "${at}ms" --time "${seconds}s" --link camera,33ms,2ms,2900us --link detect,after,6ms,8800us \
	--link plan,20ms,3800us,3800us --link act,after:1ms,900us,900us --mark frame >/out/chain.meter &
meters=$!
tierce job --name motor --period 5ms --work 900us --for "$((seconds + 1))s" >/dev/null &
motor=$!
(
	sleep "$((seconds / 2))"
	sed 's/^# From a frame.*/[chain.half]\ntasks = ["camera", "detect"]\n/' /out/marked.toml >/out/half.toml
	apply half /out/half.toml
) &
applies=$!
meter spin --name log --start "${at}ms" --time "${seconds}s" >/dev/null
sleep 0.3
finish TERM
wait $meters $motor $applies
say inside "$(cat /out/chain.meter)"
say begin "$at"
