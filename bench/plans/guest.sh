#!/bin/sh
# In the guest of ./run: each plan is enforced, real programs are started where it expects them, and what each part of the plan gets in
# TIME is left in /out/PLAN.json.
# shellcheck source=../../tests/vm/lib.sh
. ./lib.sh
TIME=8
groups=/sys/fs/cgroup
started=

# in_group CGROUP COMMAND...: it and its children, in the background
in_group() {
	mkdir -p "$groups/$1"
	group=$1
	shift
	(
		echo 0 >"$groups/$group/cgroup.procs" # whoever writes
		exec "$@"
	) &
	started="$started $!"
}
# busy NAME...: programs of these names that never stop: they hash zeros
busy() {
	for program in "$@"; do
		ln -sf /bin/sha256sum "/tmp/$program"
		"/tmp/$program" /dev/zero &
		started="$started $!"
	done
}
# busy_in CGROUP NAME
busy_in() {
	ln -sf /bin/sha256sum "/tmp/$2"
	in_group "$1" "/tmp/$2" /dev/zero
}
# job NAME PERIOD WORK: periodic jobs
job() {
	tierce job --name "$1" --period "$2" --work "$3" --for 60s --json >"/out/job-$1" 2>/dev/null &
	started="$started $!"
}
# site PORT CGROUP: a web server whose page takes some 40 ms to compute, and eight visitors who ask for it without end; what they
# were served is counted
site() {
	mkdir -p "/tmp/$1/cgi-bin"
	printf '#!/bin/sh\nprintf "Content-Type: text/plain\\r\\n\\r\\n"\nhead -c 1000000 /dev/zero | sha256sum\n' \
		>"/tmp/$1/cgi-bin/page"
	chmod +x "/tmp/$1/cgi-bin/page"
	in_group "$2" busybox httpd -f -p "127.0.0.1:$1" -h "/tmp/$1"
	for visitor in 1 2 3 4 5 6 7 8; do
		in_group "$2" sh -c "while :; do
			wget -q -O - http://127.0.0.1:$1/cgi-bin/page | grep -q . && echo >>/tmp/served-$1-$visitor
		done"
	done
}
served() {
	cat /tmp/served-"$1"-* 2>/dev/null | wc -l
}

programs() {
	case $1 in
	hls-6.3)
		busy t1 t2 t4
		job t3 50ms 9ms
		;;
	hls-6.4)
		busy t1 t4
		job t2 33ms 3ms,2ms,15ms,3ms,4ms,3ms
		job t3 33ms 4ms,3ms,3ms,2ms,3ms,15ms
		;;
	hls-6.5)
		busy t4 t5
		job t1 40ms 6ms
		job t2 20ms 3ms
		job t3 71ms 6ms
		;;
	hls-7.1)
		site 8001 vs1/shop
		site 8002 vs1/forum
		site 8003 vs2/mail
		site 8004 vs2/search
		;;
	hls-7.2)
		busy t7 t8
		busy_in untrusted other-1
		busy_in untrusted other-2
		job t1 10ms 950us
		job t2 20ms 3ms
		job t3 50ms 4ms
		job t4 32ms 2ms
		;;
	hls-7.3)
		for user in 1 2; do
			order=4ms,3ms,4ms,12ms
			[ $user = 1 ] || order=4ms,12ms,4ms,3ms
			in_group "user.slice/user-$user.slice/session" \
				tierce job --name video --period 33ms --work $order --for 60s --json
		done
		job t3 100ms 38ms
		busy_in user.slice/user-1.slice/session t4
		busy_in user.slice/user-1.slice/session t5
		busy_in user.slice/user-2.slice/session t6
		;;
	probabilistic)
		job decoder 20ms 3ms,4ms,3ms,6ms
		job encoder 40ms 5ms,9ms,7ms
		busy stress-ng-cpu-1 stress-ng-cpu-2
		;;
	three-servers) busy short middle long light heavy ;;
	periodic-servers) busy s0 s1 s2 s3 s4 s5 s6 s7 ;;
	nested)
		for program in first second; do
			busy_in cg $program
			busy_in cg/cg_0 inner-$program
		done
		;;
	hyper)
		job urgent 500ms 10ms
		busy batch stress-ng-cpu-1 stress-ng-cpu-2
		;;
	esac
}

for which in "$@"; do
	begin "$which" "$which.toml" || exit
	started=
	programs "$which" >/dev/null 2>&1
	sleep 1
	# what counts begins and ends here
	tierce ctl list --json >"/out/$which-from.json"
	[ "$which" != hls-7.1 ] || for port in 8001 8002 8003 8004; do served $port >/tmp/from-$port; done
	sleep $TIME
	tierce ctl list --json >"/out/$which-until.json"
	[ "$which" != hls-7.1 ] || for port in 8001 8002 8003 8004; do
		say "served-$port" "$(($(served $port) - $(cat /tmp/from-$port)))"
	done
	# shellcheck disable=SC2086 # a list
	kill $started
	finish TERM
	for group in vs1/shop vs1/forum vs2/mail vs2/search untrusted user.slice/user-1.slice/session user.slice/user-2.slice/session cg; do
		[ ! -d "$groups/$group" ] || echo 1 >"$groups/$group/cgroup.kill"
	done
	wait
done
